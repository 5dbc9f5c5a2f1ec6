# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Bytes in order: csrc/flow/reassembly.h.

cdef class Stream:
    """Ordered first bytes of one stream."""

    cdef zn_stream_pool pool
    cdef uint32_t stream
    cdef uint32_t base

    def __init__(self, uint32_t base):
        cdef zn_error err
        if self.stream != 0:
            raise RuntimeError("a stream cannot be opened twice")
        memset(&err, 0, sizeof(err))
        check(zn_stream_pool_init(&self.pool, 1, &err), &err)
        self.stream = zn_stream_take(&self.pool)
        self.base = base

    def __dealloc__(self):
        zn_stream_pool_fini(&self.pool)

    def add(self, uint32_t seq, bytes data not None):
        """Places data at a sequence number; returns grew, stored, nothing, conflict or outside."""
        cdef _Copy copy = _Copy(data)
        return STREAM_RESULTS[zn_stream_add(&self.pool, self.stream, seq - self.base, copy.span)]

    def consume(self, uint32_t n):
        """Moves the base by n bytes."""
        zn_stream_consume(&self.pool, self.stream, n)
        self.base += n

    @property
    def first(self):
        """The offset of the first stored byte from the base."""
        return zn_stream_first(&self.pool, self.stream)

    @property
    def has_hole(self):
        """True if bytes are stored behind missing bytes."""
        return bool(zn_stream_has_hole(&self.pool, self.stream))

    def head(self):
        """The contiguous bytes from the base."""
        cdef zn_span head = zn_stream_start(&self.pool, self.stream)
        return PyBytes_FromStringAndSize(<const char *>head.p, head.n)
