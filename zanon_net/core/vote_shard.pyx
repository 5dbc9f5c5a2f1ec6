# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# The counter of one shard: csrc/count/vote_shard.h.

STANDINGS = {
    "next": ZN_STANDING_NEXT, "duplicate": ZN_STANDING_DUPLICATE, "gap": ZN_STANDING_GAP,
    "other_settings": ZN_STANDING_OTHER_SETTINGS, "other_rules": ZN_STANDING_OTHER_RULES,
    "refused": ZN_STANDING_REFUSED, "abandoned": ZN_STANDING_ABANDONED,
}


cdef class VoteShard:
    """VoteShard(z, window_ns, *, rotate_ns=None, count_rotate_ns=None, shard=0, keep=None,
    max_tuples=None, max_attributes=None, max_clients=None, max_pending=None, max_probes=None,
    max_leases=None, max_ahead_ns=None, max_lag_ns=0, keep_releases=False)
--

    Decides on the votes of many probes as one z-table over all of them would, in the order (time,
    probe, sequence, place in the message).

    z, window_ns: the threshold and the window, from which vote_settings() follows.
    rotate_ns: length of an epoch of client addresses; None: one epoch for all time.
    count_rotate_ns: length of a generation of the probes' hashes; None: one generation.
    keep: users kept of each attribute; None: z users, which suffice for every decision.
    max_tuples, max_attributes: as in ZTable. max_clients: addresses of clients in an epoch.
    max_pending: votes that may wait for other probes. max_probes: probes known at once.
    max_leases: leases in force at once; further leases are refused.
    max_ahead_ns: a message is rejected if its watermark or votes are further than this ahead of the
        other probes, or of the wall clock that put() gets; None: no message is rejected for it.
    max_lag_ns: the shard waits for a probe that joins if the probe is no further than this behind
        the decided time; the probe's votes for earlier times are late all the same.
    keep_releases: if true, releases() returns the released votes.

    A shard belongs to one thread at a time.
    """

    cdef zn_vote_shard *shard
    cdef _Guard guard

    def __cinit__(self, *arguments, **options):
        self.guard = _Guard()

    @embedsignature(False)
    def __init__(self, z, window_ns, *, rotate_ns=None, count_rotate_ns=None, shard=0, keep=None,
                 max_tuples=None, max_attributes=None, max_clients=None, max_pending=None,
                 max_probes=None, max_leases=None, max_ahead_ns=None, max_lag_ns=0,
                 keep_releases=False):
        cdef zn_vote_shard_config config
        cdef zn_error err
        if self.shard != NULL:
            raise RuntimeError("a shard cannot be opened twice")
        memset(&err, 0, sizeof(err))
        z = whole("z", z, 1, ZN_ZTABLE_Z_MAX)
        zn_vote_shard_config_init(&config, z, whole("window_ns", window_ns, 1,
                                                    ZN_ZTABLE_WINDOW_MAX_NS))
        config.table.keep = z if keep is None else whole("keep", keep, z, KEEP_MAX)
        config.settings = vote_settings(z, window_ns, rotate_ns, count_rotate_ns)
        config.shard = whole("shard", shard, 0, 0xffff)
        config.keep_releases = bool(keep_releases)
        if rotate_ns is not None:
            config.rotate_ns = whole("rotate_ns", rotate_ns, 1, (1 << 63) - 1)
        if max_ahead_ns is not None:
            config.max_ahead_ns = whole("max_ahead_ns", max_ahead_ns, 1, (1 << 63) - 1)
        config.max_lag_ns = whole("max_lag_ns", max_lag_ns, 0, (1 << 63) - 1)
        if max_tuples is not None:
            config.table.max_tuples = whole("max_tuples", max_tuples, 1, ZN_ZTABLE_TUPLES_MAX)
        if max_attributes is not None:
            config.table.max_attributes = whole("max_attributes", max_attributes, 1,
                                                ZN_ZTABLE_ATTRIBUTES_MAX)
        if max_clients is not None:
            config.max_clients = whole("max_clients", max_clients, 1, 1 << 30)
        if max_pending is not None:
            config.max_pending = whole("max_pending", max_pending, 1, (1 << 32) - 1)
        if max_probes is not None:
            config.max_probes = whole("max_probes", max_probes, 1, 1 << 20)
        if max_leases is not None:
            config.max_leases = whole("max_leases", max_leases, 1, ZN_LEASES_MAX)
        check(zn_vote_shard_open(&self.shard, &config, &err), &err)

    def __dealloc__(self):
        zn_vote_shard_close(self.shard)

    def __reduce__(self):
        raise TypeError("a VoteShard cannot be pickled or copied: dump() stores one")

    cdef int _enter(self) except -1:
        if self.shard == NULL:
            raise RuntimeError("this shard was never opened")
        return self.guard.enter()

    def put(self, message, now_ns=None, *, marks_only=False):
        """Takes a vote message; False for a message that was taken before, which has no effect.

        now_ns: the wall clock, if the probes' times must not lie far ahead of it.
        marks_only: of the votes, the marks of clients count alone; now_ns is not used then.
        Raises FormatError for a message that is damaged, for another shard, of other settings or
        rules, too far ahead, or that follows a missing message. Raises CapacityError if too much is
        pending: the message may be put again later. The shard does not change then.
        """
        cdef const uint8_t[::1] view = message
        cdef zn_span span
        cdef zn_error err
        cdef c_bool taken = False, marks = marks_only
        cdef int64_t now = 0 if now_ns is None else time_of(now_ns)
        cdef int rc
        memset(&err, 0, sizeof(err))
        span.n = view.shape[0]
        span.p = &view[0] if span.n != 0 else NULL
        self._enter()
        with nogil:
            if marks:
                rc = zn_vote_shard_put_marks(self.shard, span, &taken, &err)
            else:
                rc = zn_vote_shard_put(self.shard, span, now, &taken, &err)
        self.guard.leave()
        check(rc, &err)
        return taken

    def decide(self, before_ns=None):
        """Decides, in order, on every pending vote for a time before `before_ns`; None: the
        watermark.

        Returns the answer messages that this completes, in the order in which their messages were
        put.
        """
        cdef int64_t before
        cdef size_t size
        cdef bytearray out
        self._enter()
        try:
            before = (zn_vote_shard_watermark(self.shard) if before_ns is None
                      else time_of(before_ns))
            with nogil:
                zn_vote_shard_decide(self.shard, before)
            answers = []
            while True:
                size = zn_vote_shard_answer_bytes(self.shard)
                if size == 0:
                    return answers
                out = bytearray(size)
                zn_vote_shard_take_answer(self.shard, <uint8_t *><char *>out)
                answers.append(bytes(out))
        finally:
            self.guard.leave()

    def releases(self):
        """Returns times, users (40 bits), lo and hi of the votes released since the last call, as
        arrays.

        Empty unless the shard has keep_releases.
        """
        cdef const zn_counted_vote *votes
        cdef size_t n, i
        cdef int64_t[::1] t_ns
        cdef uint64_t[:, ::1] words
        np = numpy()
        self._enter()
        votes = zn_vote_shard_releases(self.shard, &n)
        arrays = np.empty(n, np.int64), np.empty((3, n), np.uint64)
        t_ns, words = arrays
        for i in range(n):
            t_ns[i] = votes[i].t_ns
            words[0, i] = votes[i].user
            words[1, i] = votes[i].id.lo
            words[2, i] = votes[i].id.hi
        zn_vote_shard_clear_releases(self.shard)
        self.guard.leave()
        return (arrays[0], *arrays[1])

    def forget_probe(self, probe):
        """Stops waiting for a session until it has caught up again. Raises KeyError for an unknown
        session."""
        cdef uint64_t number = probe
        self._enter()
        known = zn_vote_shard_forget_probe(self.shard, number)
        self.guard.leave()
        if not known:
            raise KeyError(probe)

    def begin(self, expected):
        """Returns True since the first call at which none of the expected probes was missing."""
        self._enter()
        begun = zn_vote_shard_begin(self.shard, expected)
        self.guard.leave()
        return bool(begun)

    @property
    def has_begun(self):
        """The last result of begin(); True after expect_no_more(), too."""
        return bool(self._members().begun)

    def expect_no_more(self, expected):
        """Counts sessions as probes of their own until none of the expected probes is missing."""
        self._enter()
        zn_vote_shard_expect_no_more(self.shard, expected)
        self.guard.leave()

    def missing(self, expected):
        """Returns the number of expected probes that have not joined. A session that replaces a
        previous session of its probe counts once with it."""
        return zn_membership_missing(self._members(), expected)

    def standing(self, session, sequence, settings, rules, *, after=0):
        """Returns the standing of a message with this header, a value of STANDINGS, before put().

        after: sequence of the session's last message that is about to be put; 0 if all earlier
        messages were put.
        """
        cdef zn_vote_header header
        cdef uint64_t last = after
        memset(&header, 0, sizeof(header))
        header.probe = session
        header.sequence = sequence
        header.settings = settings
        header.rules = rules
        self._enter()
        standing = <int>zn_vote_shard_standing(self.shard, &header, last)
        self.guard.leave()
        return standing

    def refuse(self, session):
        """Lets no message of a session count from now on, because its rules are others."""
        cdef uint64_t number = session
        self._enter()
        zn_vote_shard_refuse(self.shard, number)
        self.guard.leave()

    def abandon(self, session):
        """Lets no message of a session count from now on, because messages are missing."""
        cdef uint64_t number = session
        self._enter()
        zn_vote_shard_abandon(self.shard, number)
        self.guard.leave()

    cdef const zn_membership *_members(self) except NULL:
        self._enter()
        self.guard.leave()
        return zn_vote_shard_membership(self.shard)

    @property
    def probes(self):
        """Returns the sessions that are present, each with its last sequence and watermark."""
        return {probe: entry[:2] for probe, entry in self.known_probes.items() if entry[2]}

    def probe(self, number):
        """Returns the entry of known_probes for one session; None if it is unknown."""
        cdef const zn_session *session = zn_membership_find(self._members(), number)
        if session == NULL:
            return None
        return (session.sequence, session.watermark_ns, session.state == ZN_SESSION_PRESENT)

    @property
    def known_probes(self):
        """Returns all sessions: (sequence number, watermark, whether it is present)."""
        cdef const zn_membership *members = self._members()
        cdef size_t i
        return {members.session[i].id:
                (members.session[i].sequence, members.session[i].watermark_ns,
                 members.session[i].state == ZN_SESSION_PRESENT) for i in range(members.n)}

    @property
    def membership(self):
        """Returns counts of sessions: joined (ever), known, refused and abandoned."""
        cdef const zn_membership *members = self._members()
        return {"joined": members.joined, "known": members.n, "refused": members.refused.n,
                "abandoned": members.abandoned.n}

    def lags(self):
        """Returns the time, in ns, by which each session that is not present is behind the
        decided time."""
        cdef const zn_membership *members = self._members()
        cdef int64_t decided_ns = zn_vote_shard_watermark(self.shard), lag_ns
        cdef size_t i
        lags = {}
        for i in range(members.n):
            lag_ns = zn_session_lag(&members.session[i], decided_ns)
            if lag_ns != 0:
                lags[members.session[i].id] = lag_ns
        return lags

    @property
    def watermark(self):
        """The time up to which decide() decides; VOTE_WATERMARK_END once all probes have ended."""
        self._enter()
        watermark = zn_vote_shard_watermark(self.shard)
        self.guard.leave()
        return watermark

    @property
    def settings(self):
        """The digest of vote_settings() for the shard's z, window and rotation."""
        self._enter()
        settings = zn_vote_shard_get_config(self.shard).settings
        self.guard.leave()
        return settings

    @property
    def rules(self):
        """The digest of vote_rules() of the probes, set by the first message and then fixed; None
        before it.

        It can be set while it is None, as if a message had come.
        """
        self._enter()
        rules = zn_vote_shard_rules(self.shard)
        self.guard.leave()
        return None if rules == ZN_VOTE_RULES_NONE else rules

    @rules.setter
    def rules(self, rules):
        cdef uint64_t packed = rules_of(whole("rules", rules, 1, WORD_MAX))
        self._enter()
        zn_vote_shard_set_rules(self.shard, packed)
        same = zn_vote_shard_rules(self.shard) == packed
        self.guard.leave()
        if not same:
            raise ValueError("the shard has other rules")

    @property
    def stats(self):
        """Counters since the shard began, and numbers of live objects.

        messages, votes: taken.
        decided: votes that were decided. late: decided votes for a time that was decided already.
        client_addresses: votes for addresses that were, or may have been, a client's.
        duplicates: messages that were taken before.
        gaps: messages rejected because a message before them is missing.
        too_early: messages rejected because they are too far ahead of other probes.
        no_room: messages rejected because too much is pending.
        malformed: messages rejected because they are damaged, for another counter, or of other
            rules.
        probe_gone: probes that were forgotten before they ended.
        leases: leases taken. leases_refused: leases refused because there were too many or the
            lease reached too far. leases_now: leases in force.
        pending: votes and messages that wait.
        table: the counters of the z-table.
        """
        self._enter()
        stats = dict(zn_vote_shard_get_stats(self.shard))
        stats["leases_now"] = zn_vote_shard_leases(self.shard)
        stats["pending"] = zn_vote_shard_pending(self.shard)
        stats["table"] = zn_ztable_get_stats(zn_vote_shard_table(self.shard))
        self.guard.leave()
        return stats

    @property
    def memory_bytes(self):
        """Bytes of memory touched, at most."""
        self._enter()
        used = zn_vote_shard_memory(self.shard)
        self.guard.leave()
        return used

    def check(self):
        """Raises AssertionError if an invariant of the table is broken. Slow: for tests."""
        cdef const char *broken
        self._enter()
        broken = zn_ztable_check(zn_vote_shard_table(self.shard))
        self.guard.leave()
        if broken != NULL:
            raise AssertionError(broken.decode())

    def dump(self):
        """Returns the whole state, as bytes for load().

        The state can link users, so it must be encrypted where it is stored. Raises ConfigError if
        releases() were not taken before.
        """
        cdef zn_text text
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        memset(&text, 0, sizeof(text))
        self._enter()
        try:
            with nogil:
                rc = zn_vote_shard_dump(self.shard, &text, &err)
            check(rc, &err)
            return PyBytes_FromStringAndSize(text.bytes, text.n)
        finally:
            zn_text_fini(&text)
            self.guard.leave()

    @classmethod
    def load(cls, data):
        """Returns the shard whose dump() gave `data`, with its settings and limits.

        Raises FormatError for other bytes, a damaged dump, or another version, CapacityError if
        memory is exhausted.
        """
        cdef const uint8_t[::1] view = data
        cdef VoteShard loaded = cls.__new__(cls)
        cdef zn_span span
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        span.n = view.shape[0]
        span.p = &view[0] if span.n != 0 else NULL
        with nogil:
            rc = zn_vote_shard_load(&loaded.shard, span, &err)
        check(rc, &err)
        return loaded
