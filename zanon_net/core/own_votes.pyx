# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Releases of a probe that its own users suffice for: csrc/count/own_votes.h.

ctypedef struct sent_votes:
    zn_counted_vote *vote
    size_t n, space


cdef void keep_sent(void *to, const zn_counted_vote *vote) noexcept nogil:
    """Appends a vote. A vote without memory is lost, like a vote of a lost message."""
    cdef sent_votes *sent = <sent_votes *>to
    cdef void *grown
    if sent.n == sent.space:
        grown = realloc(sent.vote, (2 * sent.space + 64) * sizeof(zn_counted_vote))
        if grown == NULL:
            return
        sent.vote = <zn_counted_vote *>grown
        sent.space = 2 * sent.space + 64
    sent.vote[sent.n] = vote[0]
    sent.n += 1


cdef class OwnVotes:
    """OwnVotes(z, window_ns, *, max_leases=2**20, max_tuples=None, max_attributes=None)
--

    The votes of one probe's users, by which the probe releases names that they alone share, and
    the leases that report these releases to the counter (docs/reference/vote-messages.md).

    z: at most 64.
    max_leases: leases at a time. Without space for a lease, votes are sent as without leases.
    """

    cdef zn_own_votes own
    cdef zn_ztable *opened
    cdef sent_votes sent
    cdef _Guard guard

    def __cinit__(self, *arguments, **options):
        self.guard = _Guard()

    @embedsignature(False)
    def __init__(self, z, window_ns, *, max_leases=1 << 20, max_tuples=None, max_attributes=None):
        cdef zn_ztable_config config
        cdef zn_error err
        if self.opened != NULL:
            raise RuntimeError("these votes cannot be opened twice")
        memset(&err, 0, sizeof(err))
        self.own.z = whole("z", z, 1, ZN_LEASE_Z_MAX)
        self.own.window_ns = whole("window_ns", window_ns, 1, ZN_ZTABLE_WINDOW_MAX_NS)
        config = zn_ztable_default_config(self.own.z, self.own.window_ns)
        config.keep = self.own.z
        if max_tuples is not None:
            config.max_tuples = whole("max_tuples", max_tuples, 1, ZN_ZTABLE_TUPLES_MAX)
        if max_attributes is not None:
            config.max_attributes = whole("max_attributes", max_attributes, 1,
                                          ZN_ZTABLE_ATTRIBUTES_MAX)
        check(zn_ztable_open(&self.opened, &config, &err), &err)
        self.own.table = self.opened
        self.own.tell = keep_sent
        self.own.to = &self.sent
        check(zn_own_votes_init(&self.own, whole("max_leases", max_leases, 1, ZN_LEASES_MAX),
                                &err), &err)

    def __dealloc__(self):
        zn_own_votes_fini(&self.own)
        zn_ztable_close(self.opened)
        free(self.sent.vote)

    def __reduce__(self):
        raise TypeError("OwnVotes cannot be pickled or copied")

    cdef int _enter(self) except -1:
        if self.own.table == NULL:
            raise RuntimeError("these votes were never opened")
        return self.guard.enter()

    def observe(self, t_ns, user, lo, hi):
        """Decides one vote, as observe_columns() does; returns true if it is released."""
        np = numpy()
        columns = (np.array([column], np.uint64) for column in (user, lo, hi))
        return bool(self.observe_columns(np.array([t_ns], np.int64), *columns)[0])

    def observe_columns(self, t_ns, user, lo, hi):
        """Stores votes for names and returns an array of bool: true if the probe's own users
        suffice to release the vote.

        All other votes are to be sent to the counter, which decides them.
        """
        cdef const int64_t[::1] times
        cdef const uint64_t[::1] users, los, his
        cdef uint8_t[::1] released
        cdef zn_observation vote
        cdef Py_ssize_t i, n
        times, users, los, his = word_columns({"t_ns": t_ns, "user": user, "lo": lo, "hi": hi})
        n = times.shape[0]
        out = numpy().empty(n, numpy().uint8)
        released = out
        self._enter()
        with nogil:
            for i in range(n):
                vote.t_ns = times[i]
                vote.user = users[i]
                vote.attribute.lo = los[i]
                vote.attribute.hi = his[i]
                released[i] = zn_own_votes_observe(&self.own, &vote)
        self.guard.leave()
        return out.view(bool)

    def shares(self, lo, hi, t_ns):
        """Returns true if the probe's own users suffice to show the attribute at t_ns."""
        cdef zn_id attribute
        attribute.lo = lo
        attribute.hi = hi
        self._enter()
        share = zn_own_votes_share(&self.own, attribute, time_of(t_ns))
        self.guard.leave()
        return bool(share)

    def advance(self, watermark_ns):
        """Ends the leases that do not reach the watermark of the message that is finished next."""
        cdef int64_t watermark = time_of(watermark_ns)
        self._enter()
        zn_own_votes_advance(&self.own, watermark)
        self.guard.leave()

    def refused(self, lo):
        """Takes the counter's refusal of a lease of the attribute."""
        cdef uint64_t low = lo
        self._enter()
        zn_own_votes_refused(&self.own, low)
        self.guard.leave()

    def take_sent(self):
        """Takes the further votes for the counter since the last call, in this order.

        Returns arrays kind (uint8), t_ns (int64), user, lo and hi (uint64).
        """
        cdef uint8_t[::1] kind
        cdef int64_t[::1] t_ns
        cdef uint64_t[:, ::1] words
        cdef size_t i
        np = numpy()
        self._enter()
        n = self.sent.n
        arrays = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty((3, n), np.uint64)
        kind, t_ns, words = arrays
        for i in range(self.sent.n):
            kind[i] = self.sent.vote[i].kind
            t_ns[i] = self.sent.vote[i].t_ns
            words[0, i] = self.sent.vote[i].user
            words[1, i] = self.sent.vote[i].id.lo
            words[2, i] = self.sent.vote[i].id.hi
        self.sent.n = 0
        self.guard.leave()
        return (arrays[0], arrays[1], *arrays[2])

    @property
    def stats(self):
        """The counters of the probe's z-table."""
        self._enter()
        stats = zn_ztable_get_stats(self.opened)
        self.guard.leave()
        return stats
