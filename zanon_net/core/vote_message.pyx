# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Messages between probes and counters: csrc/count/vote_message.h.

VOTE_KINDS = {
    (<bytes>zn_counted_kind_names[kind]).decode(): kind for kind in range(1, ZN_COUNTED_KINDS + 1)
}
COUNTING_KINDS = tuple(kind for kind in VOTE_KINDS.values() if zn_counted_kind_counts(kind))
VOTE_ENTRIES = {
    "counted": ZN_ENTRY_COUNTED, "uncounted": ZN_ENTRY_UNCOUNTED, "gone": ZN_ENTRY_GONE,
    "all_present": ZN_ENTRY_ALL_PRESENT,
}
VOTE_WATERMARK_END = (1 << 63) - 1
WORD_MAX = (1 << 64) - 1


def vote_settings(z, window_ns, rotate_ns=None, count_rotate_ns=None):
    """Returns the digest by which probe and counter see that they have the same z, window, epochs
    and generations of hashes."""
    cdef zn_count_settings settings
    cdef uint64_t digest = 0
    cdef zn_error err
    memset(&err, 0, sizeof(err))
    settings.z = z
    settings.window_ns = window_ns
    settings.rotate_ns = rotate_ns or 0
    settings.generation_ns = count_rotate_ns or 0
    check(zn_count_settings_digest(&digest, &settings, &err), &err)
    return digest


def write_entry(kind, bytes message=b"", session=0):
    """Returns an entry of a log of votes (csrc/count/vote_entry.h).

    kind: a value of VOTE_ENTRIES. session: for the kind gone; the others but all_present have a
    message.
    """
    cdef zn_vote_entry entry
    cdef zn_text text
    memset(&entry, 0, sizeof(entry))
    memset(&text, 0, sizeof(text))
    number = whole("kind", kind, 0, ZN_ENTRY_KINDS - 1)
    entry.kind = <zn_vote_entry_kind><int>number
    entry.message.p = <const uint8_t *><const char *>message
    entry.message.n = len(message)
    entry.session = whole("session", session, 0, WORD_MAX)
    try:
        zn_vote_entry_write(&text, &entry)
        if text.failed:
            raise MemoryError
        return PyBytes_FromStringAndSize(text.bytes, text.n)
    finally:
        zn_text_fini(&text)


def read_entry(bytes entry not None):
    """Returns (kind, message, session) of an entry. Raises FormatError."""
    cdef zn_vote_entry read
    cdef zn_span span
    cdef zn_error err
    memset(&err, 0, sizeof(err))
    span.p = <const uint8_t *><const char *>entry
    span.n = len(entry)
    check(zn_vote_entry_read(&read, span, &err), &err)
    return int(read.kind), span_bytes(read.message), read.session


def vote_rules(*, user_prefix=(32, 56), evidence="established", dns_votes="own", internal=False,
               key_check=0):
    """Returns the digest of rules by which probes and counter see that all probes have the same
    users and voters.

    The arguments are the options of a run of these names. internal: true if the option was given.
    key_check: 40 bits that identify the key of the hashes of users and names.
    """
    cdef zn_vote_rules rules
    v4, v6 = user_prefix
    rules.user_v4_bits = whole("IPv4 prefix", v4, 1, 32)
    rules.user_v6_bits = whole("IPv6 prefix", v6, 1, 128)
    rules.any_evidence = {"established": False, "any": True}[evidence]
    rules.dns_votes = {"own": 0, "all": 1, "no": 2}[dns_votes]
    rules.internal_is_set = internal
    rules.key_check = whole("key_check", key_check, 0, ZN_VOTE_KEY_CHECK_MASK)
    return zn_vote_rules_pack(&rules)


cdef uint64_t rules_of(rules) except 0:
    """Returns the number if vote_rules() can give it; for None, the number of its defaults."""
    cdef zn_vote_rules unpacked
    cdef uint64_t packed = vote_rules() if rules is None else whole("rules", rules, 1, WORD_MAX)
    if not zn_vote_rules_unpack(&unpacked, packed):
        raise ValueError("rules must be of vote_rules()")
    return packed


def vote_rules_difference(probes, counted):
    """Returns the options in which a probe's rules differ from the rules of the probes counted
    before.

    Both arguments are numbers out of messages, and may be digests of no rules at all.
    """
    cdef char[ZN_VOTE_RULES_TEXT] text
    zn_vote_rules_explain(whole("rules", probes, 0, WORD_MAX), whole("rules", counted, 0, WORD_MAX),
                          text)
    return (<bytes>text).decode()


cdef zn_counted_vote vote_of(kind, t_ns, user, lo, hi) except *:
    cdef zn_counted_vote vote
    vote.kind = whole("kind", kind, 1, ZN_COUNTED_KINDS)
    vote.t_ns = time_of(t_ns)
    vote.user = user
    vote.id.lo = lo
    vote.id.hi = hi
    return vote


cdef object word_columns(dict columns):
    """Returns the columns as arrays that C can read: t_ns as int64, the others as uint64."""
    np = numpy()
    n = len(columns["t_ns"])
    read = []
    for name, array in columns.items():
        dtype = np.int64 if name == "t_ns" else np.uint64
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            raise TypeError(f"{name} must be an array of {np.dtype(dtype).name}")
        if array.ndim != 1 or len(array) != n:
            raise ValueError(f"{name} must have one dimension and the length of t_ns")
        read.append(straight(array))
    if n and columns["t_ns"].min() < 0:
        raise ValueError("t_ns holds a negative time")
    return read


cdef class VoteWriter:
    """VoteWriter(probe, shard, settings, *, rules=None, sequence=1, max_votes=65536,
    new_session=False, marks_missing=False)
--

    Writes the vote messages of a probe to a shard (docs/reference/vote-messages.md).

    probe: the probe's session, a number of 64 bits.
    settings: the digest that vote_settings() returns. shard: 0 to 65535.
    rules: the digest that vote_rules() returns; None: the digest of its defaults.
    sequence: number of the first message; finish() raises it by one.
    max_votes: most votes of a message, up to 2**20.
    new_session: in a first message, another session came before. In a last message, another
        follows.
    marks_missing: in a first message: the counter may lack clients of earlier sessions.
    """

    cdef zn_vote_writer writer
    cdef zn_vote_header header
    cdef readonly object order

    def __init__(self, probe, shard, settings, *, rules=None, sequence=1, max_votes=1 << 16,
                 new_session=False, marks_missing=False):
        cdef zn_error err
        if self.writer.max_votes != 0:
            raise RuntimeError("a writer cannot be opened twice")
        memset(&err, 0, sizeof(err))
        self.header.probe = whole("probe", probe, 0, WORD_MAX)
        self.header.shard = whole("shard", shard, 0, 0xffff)
        self.header.settings = whole("settings", settings, 0, WORD_MAX)
        self.header.rules = rules_of(rules)
        self.header.sequence = whole("sequence", sequence, 1, WORD_MAX)
        self.header.new_session = new_session
        self.header.marks_missing = marks_missing
        max_votes = whole("max_votes", max_votes, 1, ZN_VOTES_MAX)
        check(zn_vote_writer_init(&self.writer, max_votes, &err), &err)

    def __dealloc__(self):
        zn_vote_writer_fini(&self.writer)

    def __len__(self):
        return self.writer.votes

    @property
    def sequence(self):
        """The sequence number of the message that the next finish() writes."""
        return self.header.sequence

    cdef int _full(self) except -1:
        raise CapacityError(f"a message takes {self.writer.max_votes} votes: finish it first")

    def add(self, kind, t_ns, user, lo, hi):
        """Adds a vote: kind 1 to 10, time, the user's hash and both halves of the attribute's.

        Raises CapacityError when the message is full.
        """
        cdef zn_counted_vote vote = vote_of(kind, t_ns, user, lo, hi)
        if not zn_vote_writer_add(&self.writer, &vote):
            self._full()

    def add_columns(self, kind, t_ns, user, lo, hi):
        """Adds votes of one kind: arrays of int64, uint64, uint64 and uint64.

        Raises CapacityError, with none added, when the message does not take them all.
        """
        cdef const int64_t[::1] times
        cdef const uint64_t[::1] users, los, his
        cdef zn_counted_vote vote
        cdef Py_ssize_t i
        times, users, los, his = word_columns({"t_ns": t_ns, "user": user, "lo": lo, "hi": hi})
        vote.kind = whole("kind", kind, 1, ZN_COUNTED_KINDS)
        if times.shape[0] > self.writer.max_votes - self.writer.votes:
            self._full()
        for i in range(times.shape[0]):
            vote.t_ns = times[i]
            vote.user = users[i]
            vote.id.lo = los[i]
            vote.id.hi = his[i]
            zn_vote_writer_add(&self.writer, &vote)

    def finish(self, watermark_ns):
        """Returns the message of the votes added since the last message, and begins the next one.

        watermark_ns: no vote for an earlier time will follow. Afterwards order[k] is the number of
        the vote, as added, that the k-th answer is for.
        """
        cdef uint32_t[::1] order
        cdef uint32_t votes = self.writer.votes
        cdef bytearray out = bytearray(zn_vote_writer_bytes(&self.writer))
        cdef size_t size
        self.header.watermark_ns = time_of(watermark_ns)
        self.order = numpy().empty(max(votes, 1), numpy().uint32)
        order = self.order
        size = zn_vote_writer_finish(&self.writer, &self.header, <uint8_t *><char *>out, &order[0])
        self.order = self.order[:votes]
        self.header.sequence += 1
        return bytes(out[:size])


cdef dict start_of(const zn_vote_header *header):
    return {"shard": header.shard, "probe": header.probe, "sequence": header.sequence,
            "settings": header.settings}


def read_votes(bytes message not None):
    """Returns the header of a vote message and its votes as arrays, in the order of their answers.

    The dict has shard, probe, sequence, settings, rules, new_session, marks_missing and
    watermark_ns; and the arrays kind (uint8), t_ns (int64), user (40 bits of it), lo and hi
    (uint64). Raises FormatError for other bytes, and for a message that is cut or damaged.
    """
    cdef _Copy copy = _Copy(message)
    cdef zn_vote_header header
    cdef zn_counted_vote *votes
    cdef zn_error err
    cdef uint32_t i
    cdef uint8_t[::1] kind
    cdef int64_t[::1] t_ns
    cdef uint64_t[:, ::1] words
    memset(&err, 0, sizeof(err))
    check(zn_vote_header_read(&header, copy.span, &err), &err)
    np = numpy()
    block = np.empty(max(header.votes, 1) * sizeof(zn_counted_vote), np.uint8)
    kind = block
    votes = <zn_counted_vote *>&kind[0]
    check(zn_votes_read(votes, &header, copy.span, &err), &err)
    arrays = (np.empty(header.votes, np.uint8), np.empty(header.votes, np.int64),
              np.empty((3, header.votes), np.uint64))
    kind, t_ns, words = arrays
    for i in range(header.votes):
        kind[i] = votes[i].kind
        t_ns[i] = votes[i].t_ns
        words[0, i] = votes[i].user
        words[1, i] = votes[i].id.lo
        words[2, i] = votes[i].id.hi
    user, lo, hi = arrays[2]
    return {**start_of(&header), "rules": header.rules, "new_session": header.new_session,
            "marks_missing": header.marks_missing, "watermark_ns": header.watermark_ns,
            "kind": arrays[0], "t_ns": arrays[1], "user": user, "lo": lo, "hi": hi}


def read_answers(bytes message not None):
    """Returns the header of an answer message, as read_votes() does, and `answers`, an array of
    bool.

    Raises FormatError for other bytes, and for a message that is cut or damaged.
    """
    cdef _Copy copy = _Copy(message)
    cdef zn_vote_header header
    cdef zn_span bits
    cdef zn_error err
    memset(&err, 0, sizeof(err))
    check(zn_answers_read(&header, &bits, copy.span, &err), &err)
    np = numpy()
    packed = np.frombuffer(span_bytes(bits), np.uint8)
    answers = np.unpackbits(packed, count=header.votes, bitorder="little").astype(bool)
    return {**start_of(&header), "answers": answers}


def write_answers(shard, probe, sequence, settings, answers):
    """Returns the answer message to a vote message: answers[k] is the answer to its k-th vote."""
    cdef zn_vote_header header
    cdef bytes bits = numpy().packbits(numpy().asarray(answers, bool), bitorder="little").tobytes()
    cdef bytearray out
    memset(&header, 0, sizeof(header))
    header.shard = whole("shard", shard, 0, 0xffff)
    header.probe = whole("probe", probe, 0, WORD_MAX)
    header.sequence = whole("sequence", sequence, 1, WORD_MAX)
    header.settings = whole("settings", settings, 0, WORD_MAX)
    header.votes = whole("number of answers", len(answers), 0, ZN_VOTES_MAX)
    out = bytearray(zn_answers_bytes(header.votes))
    zn_answers_write(&header, <const uint8_t *><const char *>bits, <uint8_t *><char *>out)
    return bytes(out)
