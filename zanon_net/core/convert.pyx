# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Converts values of Python for C, and values of C for Python.

cdef object numpy():
    """Imports NumPy when the first array is made: it takes longer than all the rest together."""
    import numpy as np

    return np


cdef object straight(array):
    """The array, or a copy when it is not in one piece or not aligned."""
    return numpy().require(array, None, "CA")


cdef object whole(name, value, low, high):
    """`value` as an int from low to high. Raises TypeError or ConfigError, which name it."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    number = value.__index__()
    if not low <= number <= high:
        raise ConfigError(f"{name} is {number}: it must be {low} to {high}")
    return number


cdef int expect_settings(dict settings, tuple names) except -1:
    """Raises TypeError unless the keys of `settings` are exactly `names`."""
    wrong = settings.keys() ^ set(names)
    if wrong:
        raise TypeError(f"missing or unknown settings: {', '.join(sorted(wrong))}")
    return 0


cdef zn_addr addr_of(bytes packed) except *:
    cdef zn_addr addr
    cdef bytes mapped = packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
    memcpy(addr.byte, <const char *>mapped, 16)
    return addr


cdef object address_from(const zn_addr *addr):
    packed = PyBytes_FromStringAndSize(<const char *>addr.byte, 16)
    if packed[:12] == bytes(10) + b"\xff\xff":
        return ipaddress.IPv4Address(packed[12:])
    return ipaddress.IPv6Address(packed)


cdef bytes span_bytes(zn_span span):
    return b"" if span.n == 0 else PyBytes_FromStringAndSize(<const char *>span.p, span.n)


cdef class _Copy:
    """Input in a heap block of exactly its size: AddressSanitizer sees a read past a bytes object's
    content only there."""

    cdef zn_span span

    def __cinit__(self, bytes data not None):
        cdef uint8_t *block = <uint8_t *>malloc(len(data) if data else 1)
        if block == NULL:
            raise MemoryError
        memcpy(block, <const char *>data, len(data))
        self.span.p = block
        self.span.n = len(data)

    def __dealloc__(self):
        free(<void *>self.span.p)


cdef class _Lists:
    """C arrays of the networks and suffixes an engine copies when it opens."""

    cdef zn_net *nets
    cdef zn_span *spans
    cdef object kept

    def __cinit__(self, internal, never):
        nets = [] if internal is None else list(internal)
        self.kept = [bytes(suffix) for suffix in never]
        self.nets = <zn_net *>malloc((len(nets) + 1) * sizeof(zn_net))
        self.spans = <zn_span *>malloc((len(self.kept) + 1) * sizeof(zn_span))
        if self.nets == NULL or self.spans == NULL:
            raise MemoryError
        for i, (prefix, bits) in enumerate(nets):
            if len(prefix) != 16 or not 0 <= bits <= 128:
                raise ValueError("a network is 16 bytes and 0 to 128 bits")
            memcpy(self.nets[i].prefix.byte, <const char *><bytes>prefix, 16)
            self.nets[i].bits = bits
        for i, suffix in enumerate(self.kept):
            self.spans[i].p = <const uint8_t *><const char *><bytes>suffix
            self.spans[i].n = len(suffix)

    def __dealloc__(self):
        free(self.nets)
        free(self.spans)
