# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Parts of the C core on their own, for tests.

cdef class Stream:
    """Ordered head bytes of one stream (state/stream), for tests."""

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
        """Places data at a sequence number; grew, stored, nothing, conflict or outside."""
        cdef _Copy copy = _Copy(data)
        return STREAM_RESULTS[zn_stream_add(&self.pool, self.stream, seq - self.base, copy.span)]

    def consume(self, uint32_t n):
        """Moves the base by n bytes."""
        zn_stream_consume(&self.pool, self.stream, n)
        self.base += n

    @property
    def first(self):
        """Where the first stored byte lies from the base."""
        return zn_stream_first(&self.pool, self.stream)

    @property
    def has_hole(self):
        """Whether bytes are stored behind missing ones."""
        return bool(zn_stream_has_hole(&self.pool, self.stream))

    def head(self):
        """The contiguous bytes from the base."""
        cdef zn_span head = zn_stream_start(&self.pool, self.stream)
        return PyBytes_FromStringAndSize(<const char *>head.p, head.n)


cdef list encapsulations_of(const zn_packet *p):
    names = (name for name, group, _ in STAT_INFO if group == "encapsulation")
    return [name for bit, name in enumerate(names) if p.encapsulations >> bit & 1]


def decode_packet(bytes data not None, uint32_t link_type, int64_t wire=-1, *, key=(0,) * 8):
    """The packet's fields, the fragment's fields, or the name of the counter that says why it was
    dropped. key: eight words, for the hash of the 5-tuple."""
    cdef _Copy copy = _Copy(data)
    cdef zn_packet_input source
    cdef zn_packet p
    cdef zn_tunnel tunnels[3]
    cdef zn_fragment f
    cdef zn_bucket_key words
    words.word = key
    memset(&p, 0, sizeof(p))
    p.tunnels = tunnels
    source.bytes = copy.span
    source.wire = len(data) if wire < 0 else wire
    source.link_type = link_type
    drop = zn_packet_decode(&source, &words, &p, &f)
    if drop == ZN_STAT_FRAGMENTS:
        return {
            "src": str(address_from(&f.src)), "dst": str(address_from(&f.dst)), "id": f.id,
            "offset": f.offset, "more": bool(f.more), "protocol": f.protocol,
            "bytes": span_bytes(f.bytes), "encapsulations": encapsulations_of(&p),
        }
    if drop != ZN_STAT_COUNT:
        return STAT_INFO[<int>drop][0]
    receiver = 1 - p.sender
    return {
        "src": str(address_from(&p.tuple.addr[p.sender])), "sport": p.tuple.port[p.sender],
        "dst": str(address_from(&p.tuple.addr[receiver])), "dport": p.tuple.port[receiver],
        "proto": p.tuple.proto, "ttl": p.ttl, "flags": p.tcp_flags, "seq": p.seq, "ack": p.ack,
        "window": p.window, "payload": span_bytes(p.payload), "payload_len": p.payload_len,
        "fragment": p.fragment, "hash": p.hash, "encapsulations": encapsulations_of(&p),
        "tunnels": [(str(address_from(&p.tunnels[i].end[0])),
                     str(address_from(&p.tunnels[i].end[1])))
                    for i in range(p.tunnel_count)],
    }


def fail_allocation(uint64_t n):
    """The n-th allocation from now on fails once; 0: none. For tests."""
    zn_alloc_fail_after(n)
