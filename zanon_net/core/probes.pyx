# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Tests look and reach into the C core with these: ZANON_TESTING=1, never in a wheel.

cdef list encapsulations_of(const zn_packet *p):
    names = (name for name, group, _ in STAT_INFO if group == "encapsulation")
    return [name for bit, name in enumerate(names) if p.encapsulations >> bit & 1]


def decode_packet(bytes data not None, uint32_t link_type, int64_t wire=-1, *, key=(0,) * 8,
                  tunnel_ports=()):
    """Returns the fields of a frame's packet or of its fragment, or the name of the counter of its
    drop.

    key: eight words, for the hash of the 5-tuple. tunnel_ports: names of tunnels, each with a port.
    """
    cdef _Copy copy = _Copy(data)
    cdef zn_packet_input source
    cdef zn_packet p
    cdef zn_packet_outer outer
    cdef zn_tunnel_ports ports
    cdef zn_fragment f
    cdef zn_bucket_key words
    words.word = key
    memset(&p, 0, sizeof(p))
    outer.wants_layers = False
    memset(&ports, 0, sizeof(ports))
    for kind, port in tunnel_ports:
        if not zn_tunnel_ports_add(&ports, port, TUNNEL_KINDS.index(kind)):
            raise ValueError("no port of a tunnel")
    outer.ports = &ports if tunnel_ports else NULL
    p.outer = &outer
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
        "tunnels": [(str(address_from(&p.outer.tunnels[i].end[0])),
                     str(address_from(&p.outer.tunnels[i].end[1])))
                    for i in range(p.tunnel_count)],
    }


def fail_allocation(uint64_t n):
    """Makes the n-th allocation from now on fail, once. 0: no allocation fails."""
    zn_alloc_fail_after(n)


cdef class MinuteQueue:
    """MinuteQueue(): entries that wait for their minute, by engine/minute_queue."""

    cdef zn_minute_queue queue

    def __dealloc__(self):
        zn_minute_queue_fini(&self.queue)

    def add(self, int64_t minute, uint64_t rank, bytes content not None):
        """Adds an entry."""
        cdef uint32_t n = len(content)
        cdef uint8_t *place = zn_minute_queue_reserve(&self.queue, sizeof(n) + n)
        if place == NULL:
            raise MemoryError
        memcpy(place, &n, sizeof(n))
        memcpy(place + sizeof(n), <const char *>content, n)
        zn_minute_queue_add(&self.queue, minute, rank, sizeof(n) + n)

    def leave(self, int64_t before):
        """Removes the entries of minutes before `before`. Returns their contents in order."""
        cdef int64_t count = zn_minute_queue_leave(&self.queue, before)
        cdef const uint8_t *place
        cdef uint32_t n
        if count < 0:
            raise MemoryError
        found = []
        for i in range(count):
            place = zn_minute_queue_leaving(&self.queue, i)
            memcpy(&n, place, sizeof(n))
            found.append(PyBytes_FromStringAndSize(<const char *>place + sizeof(n), n))
        zn_minute_queue_left(&self.queue, before)
        return found


def shamir_secret(points):
    """Returns the secret of shares (x, y), by crypto/shamir."""
    cdef size_t z = len(points)
    cdef zn_share *shares = <zn_share *>malloc(z * sizeof(zn_share))
    cdef zn_f127 *scratch = <zn_f127 *>malloc(2 * z * sizeof(zn_f127))
    cdef zn_f127 secret
    cdef uint64_t words[2]
    if shares == NULL or scratch == NULL:
        raise MemoryError
    for i, (x, y) in enumerate(points):
        words[0], words[1] = y & 0xffffffffffffffff, y >> 64
        shares[i].x = x
        memcpy(&shares[i].y, words, 16)
    secret = zn_shamir_secret(shares, z, scratch)
    memcpy(words, &secret, 16)
    free(shares)
    free(scratch)
    return (int(words[1]) << 64) | int(words[0])


cdef class CountGenerations:
    """CountGenerations(keys, generation_ns, window_ns, epoch_ns): the hashes of votes, by
    crypto/count_generations."""

    cdef Keys keys
    cdef zn_count_periods periods
    cdef zn_count_generations *generations

    def __cinit__(self, Keys keys not None, *periods):
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self.keys = keys
        self.periods.generation_ns, self.periods.window_ns, self.periods.epoch_ns = periods
        check(zn_count_generations_open(&self.generations, keys.keys, &self.periods, NULL, &err),
              &err)

    def __dealloc__(self):
        zn_count_generations_close(self.generations)

    def of_vote(self, int64_t t_ns):
        """Returns the first and the last generation of a vote."""
        of = zn_count_generations_of_vote(&self.periods, t_ns)
        return of.first, of.last

    def of_client(self, int64_t t_ns):
        """Returns the first and the last generation that need to know a client."""
        of = zn_count_generations_of_client(&self.periods, t_ns)
        return of.first, of.last

    def id(self, uint64_t generation, uint8_t domain, bytes value not None):
        """Returns (lo, hi) of a hash."""
        id = zn_count_generations_id(self.generations, generation, domain, bytes_span(value))
        return id.lo, id.hi

    def forget(self, int64_t now_ns):
        """Wipes keys that are not needed from now on; returns the number of keys left."""
        zn_count_generations_forget(self.generations, now_ns)
        return zn_count_generations_held(self.generations)
