# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows that open where z users share a name: csrc/crypto/threshold.h and threshold_shard.h.

cdef enum:
    ATTACHMENT_PREFIX = 32


cdef zn_threshold_rule threshold_rule(z, window_ns, epochs) except *:
    cdef zn_threshold_rule rule
    rule.z = whole("z", z, 1, (1 << 31))
    rule.window_ns = whole("window_ns", window_ns, 1, (1 << 63) - 1)
    rule.epochs = whole("epochs", epochs, 1, (1 << 31))
    return rule


cdef class ThresholdSealer:
    """Makes shares, and seals the rows of a probe's votes so that z users' shares open them.

    key: 32 bytes that all probes have, and the counter does not. epochs: number of epochs that
    overlap.
    """

    cdef zn_threshold *sealer
    cdef zn_threshold_rule rule

    def __init__(self, bytes key not None, *, z, window_ns, epochs=4):
        cdef zn_error err
        if self.sealer != NULL:
            raise RuntimeError("a sealer cannot be opened twice")
        if len(key) != 32:
            raise ConfigError("the key of shares has 32 bytes")
        memset(&err, 0, sizeof(err))
        self.rule = threshold_rule(z, window_ns, epochs)
        check(zn_threshold_open(&self.sealer, &self.rule, <const uint8_t *><const char *>key,
                                &err), &err)

    def __dealloc__(self):
        zn_threshold_close(self.sealer)

    def attach(self, bytes message not None, list rows not None):
        """Returns a vote message with shares and rows of its votes.

        rows: for each vote, in the message's order, the row, b"" for shares alone, or None for
        neither. Raises ConfigError for a row of more than ROW_BYTES_MAX bytes.
        """
        cdef size_t shares = self.rule.epochs * 16
        cdef bytearray section = bytearray(
            ATTACHMENT_PREFIX + attached_bytes(rows) + len(rows) * shares)
        cdef uint8_t *start = <uint8_t *><char *>section
        cdef uint8_t *at = start + ATTACHMENT_PREFIX
        cdef zn_threshold_vote vote
        cdef const int64_t[::1] t_ns
        cdef const uint64_t[::1] user, lo, hi
        cdef zn_error err
        cdef size_t n, i = 0
        memset(&err, 0, sizeof(err))
        vote.place = place_of_rows(message, rows)
        votes = read_votes(message)
        t_ns, user, lo, hi = [straight(votes[name]) for name in ("t_ns", "user", "lo", "hi")]
        check(zn_threshold_renew(self.sealer, &err), &err)
        memcpy(start, zn_threshold_nonce(self.sealer), 12)
        start[12] = <uint8_t>self.rule.epochs
        for row in rows:
            n = 0
            if row is not None:
                vote.t_ns = t_ns[i]
                vote.user = user[i]
                vote.id = zn_id(lo[i], hi[i])
                vote.place.index = <uint32_t>i
                n = zn_threshold_seal(self.sealer, &vote, bytes_span(row), at + 2)
                if n == 0:
                    raise ZanonError("the crypto library could not seal a row")
            at = put_length(at, n) + n
            i += 1
        return with_section(message, ZN_VOTE_ROWS_SHARES, start, at - start)


cdef class ThresholdShard:
    """ThresholdShard(*, z, window_ns, epochs=4, max_groups=None)
--

    Collects the shares of decided votes, and opens the rows of released votes.

    z, window_ns, epochs: as ThresholdSealer.
    max_groups: most pairs of an attribute and an epoch whose shares are kept; None: 2**22.
    """

    cdef zn_threshold_shard *shard
    cdef zn_threshold_rule rule
    cdef uint32_t max_groups

    @embedsignature(False)
    def __init__(self, *, z, window_ns, epochs=4, max_groups=None):
        cdef zn_error err
        if self.shard != NULL:
            raise RuntimeError("a shard cannot be opened twice")
        memset(&err, 0, sizeof(err))
        self.rule = threshold_rule(z, window_ns, epochs)
        self.max_groups = whole("max_groups", 1 << 22 if max_groups is None else max_groups, 1,
                                (1 << 31))
        check(zn_threshold_shard_open(&self.shard, &self.rule, self.max_groups, &err), &err)

    def __dealloc__(self):
        zn_threshold_shard_close(self.shard)

    def take(self, list messages not None):
        """Takes decided messages: (VoteRows, their answer message) each, in any order.

        Returns the rows that are released, in the order of the decisions. An answer message with
        fewer votes than were sent means that the message was not counted.
        """
        votes, attached, prefixes = [], [], []
        np = numpy()
        for rows, answer in messages:
            asked, answers = read_votes(rows.plain()), read_answers(answer)["answers"]
            if len(answers) == len(asked["t_ns"]):
                votes.append((asked, answers))
                attached.append(rows.attachments())
                prefixes.append(rows.prefix)
        if not votes:
            return []
        lengths = [len(answers) for _asked, answers in votes]
        message = np.repeat(np.arange(len(votes)), lengths)
        index = np.concatenate([np.arange(n) for n in lengths])
        columns = {name: np.concatenate([asked[name] for asked, _answers in votes])
                   for name in ("t_ns", "user", "lo", "hi")}
        for name in ("probe", "shard", "sequence"):
            words = np.array([asked[name] for asked, _answers in votes], np.uint64)
            columns[name] = np.repeat(words, lengths)
        released = np.concatenate([answers for _asked, answers in votes])
        order = np.lexsort((index, columns["sequence"], columns["probe"], columns["t_ns"]))
        return self._take(columns, released, message, index, order, attached, prefixes)

    cdef list _take(self, dict columns, released, message, index, order, list attached,
                    list prefixes):
        cdef const int64_t[::1] t_ns = columns["t_ns"], messages = message, places = index
        cdef const int64_t[::1] turn = order
        cdef const uint64_t[::1] user = columns["user"], lo = columns["lo"], hi = columns["hi"]
        cdef const uint64_t[::1] probe = columns["probe"], shard = columns["shard"]
        cdef const uint64_t[::1] sequence = columns["sequence"]
        cdef const uint8_t[::1] answers = released.view(numpy().uint8)
        cdef zn_threshold_decided d
        cdef zn_span row
        cdef Py_ssize_t i, at
        cdef list rows = []
        cdef bytes attachment, prefix
        for at in range(turn.shape[0]):
            i = turn[at]
            attachment, prefix = attached[messages[i]][places[i]], prefixes[messages[i]]
            if not attachment:
                continue
            d.vote.t_ns = t_ns[i]
            d.vote.user = user[i]
            d.vote.id = zn_id(lo[i], hi[i])
            d.vote.place = zn_row_place(probe[i], sequence[i], <uint16_t>shard[i],
                                        <uint32_t>places[i])
            d.released = answers[i] != 0
            d.nonce = bytes_span(prefix).p
            d.attachment = bytes_span(attachment)
            if zn_threshold_shard_take(self.shard, &d, &row):
                rows.append(span_bytes(row))
        return rows

    @property
    def stats(self):
        """Counters by name."""
        return zn_threshold_shard_stats(self.shard)[0]

    def dump(self):
        """Returns a snapshot, as bytes. They contain shares, and keys of attributes that z users
        share."""
        cdef bytearray out = bytearray(zn_threshold_shard_dump_bytes(self.shard))
        zn_threshold_shard_dump(self.shard, <uint8_t *><char *>out)
        return bytes(out)

    def load(self, bytes dump not None):
        """Replaces the shard's content by a snapshot.

        Raises FormatError for another text, and the shard is then empty.
        """
        cdef _Copy copy = _Copy(dump)
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._empty()
        rc = zn_threshold_shard_load(self.shard, copy.span, &err)
        if rc != 0:
            self._empty()
        check(rc, &err)

    cdef int _empty(self) except -1:
        cdef zn_threshold_shard *fresh
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_threshold_shard_open(&fresh, &self.rule, self.max_groups, &err), &err)
        zn_threshold_shard_close(self.shard)
        self.shard = fresh
        return 0
