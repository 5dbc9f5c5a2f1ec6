# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Probes and the counter of one run on one machine: csrc/count/local_counter.h.

import mmap

VOTE_RING_BYTES = 1 << 23  # more than twice the longest message of a probe
ANSWER_RING_BYTES = 1 << 20


cdef class VoteRings:
    """VoteRings(probes)
--

    Memory that a process shares with the processes that it forks afterwards: for each probe, a ring
    of messages to the counter and a ring of answers to the probe.
    """

    cdef readonly Py_ssize_t probes
    cdef object memory
    cdef uint8_t *begin

    def __init__(self, probes):
        cdef uint8_t[::1] view
        if self.memory is not None:
            raise RuntimeError("rings cannot be made twice")
        self.probes = whole("probes", probes, 1, 1 << 10)
        self.memory = mmap.mmap(-1, self.probes * self._bytes_each())
        view = self.memory
        self.begin = &view[0]

    cdef size_t _bytes_each(self):
        return 2 * ZN_VOTE_RING_HEAD_BYTES + <size_t>VOTE_RING_BYTES + <size_t>ANSWER_RING_BYTES

    cdef int _init_votes(self, zn_vote_ring *ring, Py_ssize_t probe) except -1:
        zn_vote_ring_init(ring, self.begin + probe * self._bytes_each(),
                          ZN_VOTE_RING_HEAD_BYTES + <size_t>VOTE_RING_BYTES)
        return 0

    cdef int _init_answers(self, zn_vote_ring *ring, Py_ssize_t probe) except -1:
        zn_vote_ring_init(ring, self.begin + probe * self._bytes_each() + ZN_VOTE_RING_HEAD_BYTES
                          + <size_t>VOTE_RING_BYTES,
                          ZN_VOTE_RING_HEAD_BYTES + <size_t>ANSWER_RING_BYTES)
        return 0


cdef class VoteRing:
    """VoteRing(rings, probe)
--

    A probe's ends of its two rings, in the process of the probe. There is one object per probe.
    """

    cdef VoteRings rings
    cdef zn_vote_ring votes, answers

    def __init__(self, VoteRings rings not None, probe):
        number = whole("probe", probe, 0, rings.probes - 1)
        if self.rings is not None:
            raise RuntimeError("a ring cannot be opened twice")
        self.rings = rings
        rings._init_votes(&self.votes, number)
        rings._init_answers(&self.answers, number)

    def put(self, bytes message not None):
        """Puts a message for the counter; returns False if there is no space now."""
        cdef zn_span span
        span.p = <const uint8_t *><const char *>message
        span.n = len(message)
        if self.rings is None or not 0 < span.n <= zn_vote_ring_longest(&self.votes):
            raise ValueError("the message is empty or too long, or the ring is not open")
        return bool(zn_vote_ring_put(&self.votes, span))

    def take(self):
        """Takes the next answer of the counter; returns None if there is no answer. Raises
        FormatError for damaged memory."""
        cdef zn_error err
        cdef size_t n = 0
        cdef bytearray out
        if self.rings is None:
            raise ValueError("the ring is not open")
        memset(&err, 0, sizeof(err))
        check(zn_vote_ring_next(&self.answers, &n, &err), &err)
        if n == 0:
            return None
        out = bytearray(n)
        zn_vote_ring_read(&self.answers, <uint8_t *><char *>out, n)
        zn_vote_ring_remove(&self.answers, n)
        return bytes(out)


cdef class LocalCounter:
    """LocalCounter(shard, rings)
--

    Decides on the votes of all probes of `rings`, in the process that opened them.

    shard: an empty VoteShard, which belongs to the counter from now on.
    """

    cdef zn_local_counter *counter
    cdef VoteShard shard
    cdef VoteRings rings

    def __init__(self, VoteShard shard not None, VoteRings rings not None):
        cdef size_t n = rings.probes, i
        cdef zn_vote_ring *ends
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        if self.counter != NULL:
            raise RuntimeError("a counter cannot be opened twice")
        shard._enter()
        shard.guard.leave()
        self.shard, self.rings = shard, rings
        ends = <zn_vote_ring *>malloc(2 * n * sizeof(zn_vote_ring))
        if ends == NULL:
            raise MemoryError
        for i in range(n):
            rings._init_votes(ends + i, i)
            rings._init_answers(ends + n + i, i)
        rc = zn_local_counter_open(&self.counter, shard.shard, ends, ends + n, n, &err)
        free(ends)
        check(rc, &err)

    def __dealloc__(self):
        zn_local_counter_close(self.counter)

    def step(self, uint32_t expected):
        """Takes messages, decides and answers, without waiting.

        Returns whether a further call may have work now, and a number whose bit i % 64 is set if
        probe i got answers. Decides nothing before `expected` probes have sent a message. Raises
        FormatError or CapacityError; the run has to end then.
        """
        cdef zn_error err
        cdef uint64_t answered = 0
        cdef c_bool more = False
        cdef int rc
        if self.counter == NULL:
            raise RuntimeError("this counter was never opened")
        memset(&err, 0, sizeof(err))
        self.shard._enter()
        with nogil:
            rc = zn_local_counter_step(self.counter, expected, &more, &answered, &err)
        self.shard.guard.leave()
        check(rc, &err)
        return bool(more), answered

    def has_sent(self, probe):
        """Returns whether a message of a probe was taken."""
        if self.counter == NULL:
            raise RuntimeError("this counter was never opened")
        return bool(zn_local_counter_has_sent(self.counter,
                                              whole("probe", probe, 0, self.rings.probes - 1)))
