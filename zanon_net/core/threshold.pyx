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

    key: 32 bytes that all probes have, and the counter does not.
    epochs: how many epochs overlap.
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

    def seal(self, uint64_t probe, uint16_t shard, uint64_t sequence, const int64_t[::1] t_ns,
             const uint64_t[::1] user, const uint64_t[::1] lo, const uint64_t[::1] hi,
             list rows not None):
        """The section of shares and rows of a message.

        The arrays are of its votes in its order, a user with the 40 bits that decide. rows: of
        each vote the row, b"" for shares alone, or None for neither.
        """
        cdef size_t shares = self.rule.epochs * 16
        cdef bytearray section = bytearray(
            ATTACHMENT_PREFIX + attached_bytes(rows) + len(rows) * shares)
        cdef uint8_t *start = <uint8_t *><char *>section
        cdef uint8_t *at = start + ATTACHMENT_PREFIX
        cdef zn_threshold_vote vote
        cdef zn_error err
        cdef size_t n, i = 0
        memset(&err, 0, sizeof(err))
        if not len(t_ns) == len(user) == len(lo) == len(hi) == len(rows):
            raise ValueError("votes and rows differ in number")
        check(zn_threshold_renew(self.sealer, &err), &err)
        memcpy(start, zn_threshold_nonce(self.sealer), 12)
        start[12] = <uint8_t>self.rule.epochs
        vote.place = zn_row_place(probe, sequence, shard, 0)
        for row in rows:
            n = 0
            if row is not None:
                vote.t_ns = t_ns[i]
                vote.user = user[i]
                vote.id = zn_id(lo[i], hi[i])
                vote.place.index = <uint32_t>i
                n = zn_threshold_seal(self.sealer, &vote, row_span(row), at + 2)
                if n == 0:
                    raise ZanonError("the crypto library could not seal a row")
            at = put_length(at, n) + n
            i += 1
        return bytes(section[:at - start])


cdef class ThresholdShard:
    """Collects the shares of decided votes, and opens the rows of released ones.

    z, window_ns, epochs: as ThresholdSealer.
    max_groups: most pairs of an attribute and an epoch whose shares are held; None: 2**22.
    """

    cdef zn_threshold_shard *shard
    cdef zn_threshold_rule rule
    cdef uint32_t max_groups

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

    def take(self, int64_t t_ns, uint64_t user, uint64_t lo, uint64_t hi, bint released, place,
             bytes prefix not None, bytes attachment not None):
        """Takes a decided vote, the next in order; its row where it is released, else None.

        place: its probe, shard, sequence and index. prefix: that of its message's section.
        """
        cdef zn_threshold_decided d
        cdef _Copy copy = _Copy(attachment)
        cdef zn_span row
        if len(prefix) != ATTACHMENT_PREFIX:
            raise FormatError("the section of shares begins with 32 bytes")
        probe, shard, sequence, index = place
        d.vote.t_ns = t_ns
        d.vote.user = user
        d.vote.id = zn_id(lo, hi)
        d.vote.place = zn_row_place(probe, sequence, shard, index)
        d.released = released
        d.nonce = <const uint8_t *><const char *>prefix
        d.attachment = copy.span
        return span_bytes(row) if zn_threshold_shard_take(self.shard, &d, &row) else None

    @property
    def stats(self):
        """Counters by name."""
        return zn_threshold_shard_stats(self.shard)[0]

    def dump(self):
        """A snapshot, as bytes; they hold keys of what z users share, and shares."""
        cdef bytearray out = bytearray(zn_threshold_shard_dump_bytes(self.shard))
        zn_threshold_shard_dump(self.shard, <uint8_t *><char *>out)
        return bytes(out)

    def load(self, bytes dump not None):
        """Replaces what the shard holds by a snapshot. Raises FormatError for another text, after
        which the shard is empty."""
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
