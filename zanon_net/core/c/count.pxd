# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/count

cdef extern from "count/vote_rules.h" nogil:
    enum:
        ZN_VOTE_RULES_NONE
        ZN_VOTE_RULES_TEXT
    uint64_t ZN_VOTE_KEY_CHECK_MASK
    ctypedef struct zn_vote_rules:
        uint8_t user_v4_bits, user_v6_bits, dns_votes
        uint64_t key_check
        c_bool any_evidence, internal_is_set
    uint64_t zn_vote_rules_pack(const zn_vote_rules *rules)
    c_bool zn_vote_rules_unpack(zn_vote_rules *out, uint64_t packed)
    void zn_vote_rules_explain(uint64_t probes, uint64_t counted, char *text)


cdef extern from "count/vote_message.h" nogil:
    uint32_t ZN_VOTES_MAX
    enum: ZN_COUNTED_KINDS
    const char *const zn_counted_kind_names[]
    c_bool zn_counted_kind_counts(uint8_t kind)
    ctypedef struct zn_counted_vote:
        int64_t t_ns
        uint64_t user
        zn_id id
        uint8_t kind
    ctypedef struct zn_vote_header:
        uint16_t shard
        uint64_t probe, sequence, settings
        uint32_t votes
        uint64_t rules
        c_bool new_session, marks_missing
        int64_t watermark_ns
    ctypedef struct zn_vote_writer:
        uint32_t votes, max_votes
    int zn_vote_writer_init(zn_vote_writer *w, uint32_t max_votes, zn_error *err)
    void zn_vote_writer_fini(zn_vote_writer *w)
    c_bool zn_vote_writer_add(zn_vote_writer *w, const zn_counted_vote *vote)
    size_t zn_vote_writer_bytes(const zn_vote_writer *w)
    size_t zn_vote_writer_finish(zn_vote_writer *w, const zn_vote_header *header, uint8_t *out,
                                 uint32_t *order)
    int zn_vote_header_read(zn_vote_header *header, zn_span message, zn_error *err)
    int zn_votes_read(zn_counted_vote *out, const zn_vote_header *header, zn_span message,
                      zn_error *err)
    size_t zn_answers_bytes(uint32_t votes)
    void zn_answers_write(const zn_vote_header *header, const uint8_t *bits, uint8_t *out)
    int zn_answers_read(zn_vote_header *header, zn_span *bits, zn_span message, zn_error *err)


cdef extern from "count/membership.h" nogil:
    ctypedef enum zn_session_state:
        ZN_SESSION_PRESENT
    ctypedef struct zn_session:
        uint64_t id, sequence
        int64_t watermark_ns
        zn_session_state state
    ctypedef struct zn_session_set:
        uint32_t n
    ctypedef struct zn_membership:
        zn_session *session
        size_t n
        uint64_t joined
        c_bool begun
        zn_session_set refused, abandoned
    ctypedef enum zn_standing:
        ZN_STANDING_NEXT
        ZN_STANDING_DUPLICATE
        ZN_STANDING_GAP
        ZN_STANDING_OTHER_SETTINGS
        ZN_STANDING_OTHER_RULES
        ZN_STANDING_REFUSED
        ZN_STANDING_ABANDONED
    const zn_session *zn_membership_find(const zn_membership *m, uint64_t id)
    int64_t zn_session_lag(const zn_session *session, int64_t decided_ns)
    uint64_t zn_membership_missing(const zn_membership *m, uint32_t expected)


cdef extern from "count/vote_entry.h" nogil:
    ctypedef enum zn_vote_entry_kind:
        ZN_ENTRY_COUNTED
        ZN_ENTRY_UNCOUNTED
        ZN_ENTRY_GONE
        ZN_ENTRY_ALL_PRESENT
        ZN_ENTRY_KINDS
    ctypedef struct zn_vote_entry:
        zn_vote_entry_kind kind
        zn_span message
        uint64_t session
    void zn_vote_entry_write(zn_text *out, const zn_vote_entry *entry)
    int zn_vote_entry_read(zn_vote_entry *out, zn_span bytes, zn_error *err)


cdef extern from "count/vote_shard.h" nogil:
    int64_t ZN_VOTE_WATERMARK_END
    ctypedef struct zn_vote_shard:
        pass
    ctypedef struct zn_vote_shard_config:
        zn_ztable_config table
        uint64_t settings
        int64_t rotate_ns, max_ahead_ns, max_lag_ns
        uint32_t max_clients, max_pending, max_probes, max_leases
        uint16_t shard
        c_bool keep_releases
    ctypedef struct zn_vote_shard_stats:
        uint64_t messages, votes, decided, late, client_addresses, duplicates, gaps, too_early
        uint64_t no_room, malformed, leases, leases_refused, probe_gone
    void zn_vote_shard_config_init(zn_vote_shard_config *config, uint32_t z, int64_t window_ns)
    int zn_vote_shard_open(zn_vote_shard **out, const zn_vote_shard_config *config, zn_error *err)
    void zn_vote_shard_close(zn_vote_shard *s)
    int zn_vote_shard_put(zn_vote_shard *s, zn_span message, int64_t now_ns, c_bool *taken,
                          zn_error *err)
    int zn_vote_shard_put_marks(zn_vote_shard *s, zn_span message, c_bool *taken, zn_error *err)
    void zn_vote_shard_set_rules(zn_vote_shard *s, uint64_t rules)
    uint64_t zn_vote_shard_rules(const zn_vote_shard *s)
    int64_t zn_vote_shard_watermark(const zn_vote_shard *s)
    void zn_vote_shard_decide(zn_vote_shard *s, int64_t before_ns)
    size_t zn_vote_shard_answer_bytes(const zn_vote_shard *s)
    void zn_vote_shard_take_answer(zn_vote_shard *s, uint8_t *out)
    size_t zn_vote_shard_leases(const zn_vote_shard *s)
    const zn_counted_vote *zn_vote_shard_releases(const zn_vote_shard *s, size_t *n)
    void zn_vote_shard_clear_releases(zn_vote_shard *s)
    c_bool zn_vote_shard_forget_probe(zn_vote_shard *s, uint64_t probe)
    c_bool zn_vote_shard_begin(zn_vote_shard *s, uint32_t expected)
    void zn_vote_shard_expect_no_more(zn_vote_shard *s, uint32_t expected)
    void zn_vote_shard_refuse(zn_vote_shard *s, uint64_t session)
    void zn_vote_shard_abandon(zn_vote_shard *s, uint64_t session)
    zn_standing zn_vote_shard_standing(const zn_vote_shard *s, const zn_vote_header *h,
                                       uint64_t last)
    const zn_membership *zn_vote_shard_membership(const zn_vote_shard *s)
    const zn_vote_shard_config *zn_vote_shard_get_config(const zn_vote_shard *s)
    const zn_ztable *zn_vote_shard_table(const zn_vote_shard *s)
    zn_vote_shard_stats zn_vote_shard_get_stats(const zn_vote_shard *s)
    uint64_t zn_vote_shard_pending(const zn_vote_shard *s)
    size_t zn_vote_shard_memory(const zn_vote_shard *s)
    int zn_vote_shard_dump(const zn_vote_shard *s, zn_text *out, zn_error *err)
    int zn_vote_shard_load(zn_vote_shard **out, zn_span dump, zn_error *err)


cdef extern from "count/vote_ring.h" nogil:
    enum: ZN_VOTE_RING_HEAD_BYTES
    ctypedef struct zn_vote_ring:
        pass
    void zn_vote_ring_init(zn_vote_ring *ring, void *shared, size_t bytes)
    size_t zn_vote_ring_longest(const zn_vote_ring *ring)
    c_bool zn_vote_ring_put(zn_vote_ring *ring, zn_span message)
    int zn_vote_ring_next(const zn_vote_ring *ring, size_t *n, zn_error *err)
    void zn_vote_ring_read(const zn_vote_ring *ring, uint8_t *out, size_t n)
    void zn_vote_ring_remove(zn_vote_ring *ring, size_t n)


cdef extern from "count/local_counter.h" nogil:
    ctypedef struct zn_local_counter:
        pass
    int zn_local_counter_open(zn_local_counter **out, zn_vote_shard *shard,
                              const zn_vote_ring *votes, const zn_vote_ring *answers, size_t n,
                              zn_error *err)
    void zn_local_counter_close(zn_local_counter *c)
    int zn_local_counter_step(zn_local_counter *c, uint32_t expected, c_bool *more,
                              uint64_t *answered, zn_error *err)
    c_bool zn_local_counter_has_sent(const zn_local_counter *c, size_t i)


cdef extern from "count/probe_watch.h" nogil:
    ctypedef struct zn_watched:
        uint64_t id
        int64_t heard_ns, late_since_ns, slow_since_ns, lag_ns, watermark_ns
        c_bool speaks, away
    ctypedef struct zn_probe_watch:
        zn_watched *probe
        size_t n
        int64_t timeout_ns, joined_ns
    void zn_probe_watch_init(zn_probe_watch *w, int64_t timeout_ns, int64_t now_ns)
    void zn_probe_watch_fini(zn_probe_watch *w)
    zn_watched *zn_probe_watch_find(const zn_probe_watch *w, uint64_t id)
    c_bool zn_probe_watch_hear(zn_probe_watch *w, uint64_t id, int64_t now_ns, c_bool joins)
    c_bool zn_probe_watch_remove(zn_probe_watch *w, uint64_t id)
    c_bool zn_probe_watch_look(zn_probe_watch *w, const zn_vote_shard *const *shard, size_t shards,
                               const uint64_t *held, size_t n, int64_t now_ns)
    size_t zn_probe_watch_take_silent(zn_probe_watch *w, int64_t now_ns, uint64_t *gone)
    void zn_probe_watch_note_slow(zn_probe_watch *w, int64_t limit_ns, int64_t now_ns)
    void zn_probe_watch_note_late(zn_probe_watch *w, int64_t now_ns)
    void zn_probe_watch_forget_unknown(zn_probe_watch *w)
    c_bool zn_probe_watch_all_present(const zn_probe_watch *w, const zn_vote_shard *const *shard,
                                      size_t shards, uint32_t expected)


cdef extern from "count/vote_rows.h" nogil:
    enum:
        ZN_VOTE_ROWS_SEALED
        ZN_VOTE_ROWS_SHARES
        ZN_VOTE_ROWS_PREFIX
    ctypedef struct zn_vote_rows:
        uint64_t probe, sequence
        uint32_t votes
        uint16_t shard
        uint8_t flag
        zn_span prefix, rows
        size_t plain_bytes
    c_bool zn_vote_rows_flagged(zn_span message)
    int zn_vote_rows_read(zn_vote_rows *out, zn_span message, zn_error *err)
    void zn_vote_rows_plain(const zn_vote_rows *rows, zn_span message, uint8_t *out)
    zn_span zn_vote_rows_next(zn_cursor *c)
    size_t zn_vote_rows_bytes(size_t n, zn_span prefix_and_rows)
    void zn_vote_rows_attach(zn_span plain, uint8_t flag, zn_span prefix_and_rows, uint8_t *out)
cdef extern from "count/own_votes.h" nogil:
    uint32_t ZN_LEASE_Z_MAX
    uint32_t ZN_LEASES_MAX
    ctypedef void zn_own_votes_tell(void *to, const zn_counted_vote *vote)
    ctypedef struct zn_own_votes:
        zn_ztable *table
        uint32_t z
        int64_t window_ns
        zn_own_votes_tell *tell
        void *to
    int zn_own_votes_init(zn_own_votes *o, uint32_t max_leases, zn_error *err)
    void zn_own_votes_fini(zn_own_votes *o)
    c_bool zn_own_votes_observe(zn_own_votes *o, const zn_observation *vote)
    c_bool zn_own_votes_share(const zn_own_votes *o, zn_id attribute, int64_t t_ns)
    void zn_own_votes_advance(zn_own_votes *o, int64_t watermark_ns)
    void zn_own_votes_refused(zn_own_votes *o, uint64_t lo)
