# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Clocks of a counter's probes: csrc/count/probe_watch.h.

cdef class VoteWatch:
    """VoteWatch(timeout_ns, now_ns)
--

    Finds the sessions that are silent, late or slow, by one clock that only grows.

    timeout_ns: silence after which a session is gone. now_ns: the time at which the watch begins.
    """

    cdef zn_probe_watch watch

    def __cinit__(self):
        zn_probe_watch_init(&self.watch, 1, 0)

    @embedsignature(False)
    def __init__(self, timeout_ns, now_ns):
        self.watch.timeout_ns = timeout_ns
        self.watch.joined_ns = now_ns

    def __dealloc__(self):
        zn_probe_watch_fini(&self.watch)

    def __len__(self):
        return self.watch.n

    def __contains__(self, session):
        return zn_probe_watch_find(&self.watch, session) != NULL

    def hear(self, session, now_ns, *, joins):
        """Notes a message. joins: whether it is the first one of its session."""
        if not zn_probe_watch_hear(&self.watch, session, now_ns, joins):
            raise MemoryError

    def remove(self, session):
        """Removes a session; False if the watch does not know it."""
        return bool(zn_probe_watch_remove(&self.watch, session))

    cdef int _call(self, shards, held, int64_t now_ns, uint32_t expected,
                   c_bool looks) except -1:
        """Looks at the shards, or returns whether all expected probes are present."""
        cdef size_t n = len(shards), waiting = len(held), i
        cdef const zn_vote_shard **shard = <const zn_vote_shard **>malloc((n + 1) * sizeof(void *))
        cdef uint64_t *ids = <uint64_t *>malloc((waiting + 1) * sizeof(uint64_t))
        try:
            if shard == NULL or ids == NULL:
                raise MemoryError
            for i in range(n):
                shard[i] = (<VoteShard?>shards[i]).shard
                if shard[i] == NULL:
                    raise RuntimeError("this shard was never opened")
            for i in range(waiting):
                ids[i] = held[i]
            if not looks:
                return zn_probe_watch_all_present(&self.watch, shard, n, expected)
            if not zn_probe_watch_look(&self.watch, shard, n, ids, waiting, now_ns):
                raise MemoryError
            return 0
        finally:
            free(shard)
            free(ids)

    def look(self, shards, now_ns, held=()):
        """Looks at all shards of the counter. held: sessions whose messages wait elsewhere."""
        self._call(list(shards), list(held), now_ns, 0, True)

    def all_present(self, shards, expected):
        """Returns whether at least `expected` sessions are probes of their own: they send long
        after the newest session joined, or ended for good in all shards."""
        return bool(self._call(list(shards), (), 0, expected, False))

    def take_silent(self, now_ns):
        """Removes the sessions that have been silent for the timeout. Returns the sessions among
        them that decisions waited for at the last look, or that were held."""
        cdef uint64_t *gone = <uint64_t *>malloc((self.watch.n + 1) * sizeof(uint64_t))
        cdef size_t n, i
        if gone == NULL:
            raise MemoryError
        try:
            n = zn_probe_watch_take_silent(&self.watch, now_ns, gone)
            return [gone[i] for i in range(n)]
        finally:
            free(gone)

    def slow(self, limit_ns, now_ns):
        """Returns the sessions whose watermark has been before limit_ns for longer than the
        timeout; none if that is true of all."""
        cdef zn_watched *p
        cdef size_t i
        found = []
        zn_probe_watch_note_slow(&self.watch, limit_ns, now_ns)
        for i in range(self.watch.n):
            p = self.watch.probe + i
            if p.slow_since_ns >= 0 and now_ns - p.slow_since_ns > self.watch.timeout_ns:
                found.append(p.id)
        return found

    def note_late(self, now_ns):
        """Notes which sessions send and are behind the decided time, as of the last look."""
        zn_probe_watch_note_late(&self.watch, now_ns)

    def late(self, now_ns, patience_ns):
        """Returns the lags, in ns, of the sessions that were late for at least patience_ns."""
        cdef zn_watched *p
        cdef size_t i
        found = {}
        for i in range(self.watch.n):
            p = self.watch.probe + i
            if p.late_since_ns >= 0 and now_ns - p.late_since_ns >= patience_ns:
                found[p.id] = p.lag_ns
        return found

    def forget_unknown(self):
        """Forgets the sessions that no shard knew at the last look, and that were not held."""
        zn_probe_watch_forget_unknown(&self.watch)

    @property
    def heard(self):
        """The time of the last message of each session that is not silent."""
        cdef size_t i
        return {self.watch.probe[i].id: self.watch.probe[i].heard_ns for i in range(self.watch.n)
                if not self.watch.probe[i].away}

    @property
    def speakers(self):
        """The sessions that send although the newest session joined long ago."""
        cdef size_t i
        return {self.watch.probe[i].id for i in range(self.watch.n) if self.watch.probe[i].speaks}
