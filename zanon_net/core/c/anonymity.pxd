# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/anonymity

cdef extern from "zanon/ztable.h" nogil:
    ctypedef struct zn_ztable:
        pass
    ctypedef struct zn_ztable_config:
        uint32_t z, keep, max_tuples, max_attributes, rebase_after
        int64_t window_ns, max_jump_ns
        bint reserve
    ctypedef struct zn_observation:
        int64_t t_ns
        uint64_t user
        zn_id attribute
    ctypedef enum zn_decision:
        ZN_RELEASE
    ctypedef struct zn_ztable_stats:
        uint64_t observations, released, below_z, too_late, late, late_deep, no_room
        uint64_t clock_jumps, evicted, tuples, attributes
    zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns)
    uint32_t ZN_ZTABLE_Z_MAX
    int64_t ZN_ZTABLE_WINDOW_MAX_NS
    uint32_t ZN_ZTABLE_TUPLES_MAX
    uint32_t ZN_ZTABLE_ATTRIBUTES_MAX
    int zn_ztable_fit_caps(zn_ztable_config *config, size_t n, zn_error *err)
    int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err)
    void zn_ztable_close(zn_ztable *t)
    ctypedef struct zn_columns:
        const int64_t *t_ns
        const uint64_t *user
        const uint64_t *attribute
        uint8_t domain
    zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o)
    void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n,
                                 uint8_t *decisions)
    ctypedef struct zn_ztable_cursor:
        pass
    size_t zn_ztable_export(const zn_ztable *t, zn_ztable_cursor *cursor, void *out, size_t cap)
    int zn_ztable_snapshot_config(const void *snapshot, size_t n, zn_ztable_config *config,
                                  zn_error *err)
    int zn_ztable_import(zn_ztable *t, const void *snapshot, size_t n, zn_error *err)
    void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key,
                                   const zn_columns *columns, size_t n, uint8_t *decisions)
    uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
    size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
    int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err)
    void zn_ztable_clear(zn_ztable *t)
    zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t)
    size_t zn_ztable_memory(const zn_ztable *t)
    const char *zn_ztable_check(const zn_ztable *t)


cdef extern from "anonymity/popularity.h" nogil:
    enum: ZN_ZTABLE_BINS
    ctypedef struct zn_popularity_window:
        int64_t start_ns, end_ns
        uint64_t users
        uint64_t bins[1]
        c_bool whole
    ctypedef struct zn_popularity:
        zn_popularity_window *stored
        size_t stored_count


cdef extern from "microdata/diversity.h" nogil:
    ctypedef enum zn_diversity_kind:
        ZN_DIVERSITY_DISTINCT
        ZN_DIVERSITY_ENTROPY
        ZN_DIVERSITY_RECURSIVE
    ctypedef struct zn_class_rule:
        uint32_t k, l
        zn_diversity_kind kind
        double c, max_share, t


cdef extern from "microdata/interval.h" nogil:
    ctypedef struct zn_interval_width:
        uint64_t units
        int decimals
    int zn_interval_width_of(zn_interval_width *out, double width, zn_error *err)
    c_bool zn_interval_of(const zn_interval_width *width, c_bool whole, zn_span value,
                          int64_t *interval)


cdef extern from "microdata/taxonomy.h" nogil:
    ctypedef uint16_t zn_node
    zn_node ZN_NODE_NONE
    ctypedef struct zn_taxonomy:
        pass
    ctypedef struct zn_taxonomy_config:
        const zn_span *labels
        size_t lines, levels
        c_bool in_order
        double width
        int64_t first
        c_bool whole
    ctypedef struct zn_taxonomy_notes:
        uint32_t only_children
        size_t line
    int zn_taxonomy_open(zn_taxonomy **out, const zn_taxonomy_config *config,
                         zn_taxonomy_notes *notes, zn_error *err)
    void zn_taxonomy_close(zn_taxonomy *t)
    uint32_t zn_taxonomy_leaves(const zn_taxonomy *t)
    uint32_t zn_taxonomy_nodes(const zn_taxonomy *t)
    uint32_t zn_taxonomy_levels(const zn_taxonomy *t)
    zn_node zn_taxonomy_find(const zn_taxonomy *t, zn_span value)
    zn_node zn_taxonomy_ancestor(const zn_taxonomy *t, zn_node node, uint32_t level)
    zn_node zn_taxonomy_common(const zn_taxonomy *t, zn_node a, zn_node b)
    zn_node zn_taxonomy_parent(const zn_taxonomy *t, zn_node node)
    uint32_t zn_taxonomy_level(const zn_taxonomy *t, zn_node node)
    uint32_t zn_taxonomy_leaves_below(const zn_taxonomy *t, zn_node node)
    zn_span zn_taxonomy_label(const zn_taxonomy *t, zn_node node)
    double zn_taxonomy_loss(const zn_taxonomy *t, zn_node node)
    size_t zn_taxonomy_memory(const zn_taxonomy *t)


cdef extern from "microdata/groups.h" nogil:
    enum: ZN_GROUPS_COLUMNS_MAX
    uint32_t ZN_GROUP_NONE
    ctypedef struct zn_groups:
        pass
    ctypedef struct zn_groups_config:
        const zn_taxonomy **columns
        size_t column_count, sensitive_count
        zn_class_rule rule
        c_bool repair, strict
        uint32_t neighbours, growth
        double lambda_ "lambda"
        size_t rows_max, part_rows
    ctypedef struct zn_group_rows:
        size_t n
        const zn_node *quasi
        const uint64_t *sensitive
        const uint64_t *user
    ctypedef struct zn_groups_stats:
        uint64_t windows, groups, swaps, merges, pairs
    int zn_groups_open(zn_groups **out, const zn_groups_config *config, zn_error *err)
    void zn_groups_close(zn_groups *g)
    void zn_groups_window(zn_groups *g, const zn_group_rows *rows, uint32_t l)
    void zn_groups_oldest(zn_groups *g, const zn_group_rows *rows)
    void zn_groups_entropy(zn_groups *g, const zn_group_rows *rows, double *entropy,
                           uint32_t *values)
    size_t zn_groups_count(const zn_groups *g)
    const uint32_t *zn_groups_of(const zn_groups *g)
    const zn_node *zn_groups_nodes(const zn_groups *g, uint32_t group)
    zn_groups_stats zn_groups_get_stats(const zn_groups *g)
    size_t zn_groups_memory(const zn_groups *g)


cdef extern from "microdata/adaptive_l.h" nogil:
    double ZN_ADAPTIVE_ALPHA
    double ZN_ADAPTIVE_BAND
    uint32_t ZN_ADAPTIVE_DWELL
    ctypedef enum zn_adaptive_way:
        ZN_ADAPTIVE_UP
        ZN_ADAPTIVE_DOWN
    ctypedef struct zn_adaptive_l_config:
        uint32_t l_min, l_max, dwell
        zn_adaptive_way way
        double alpha, band
    ctypedef struct zn_adaptive_l:
        zn_adaptive_l_config config
    int zn_adaptive_l_init(zn_adaptive_l *a, const zn_adaptive_l_config *config, zn_error *err)
    uint32_t zn_adaptive_l_next(zn_adaptive_l *a, double entropy, uint32_t values)


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
        c_bool renewed, marks_missing
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
    ctypedef enum zn_vote_probe_state:
        ZN_PROBE_PRESENT
    ctypedef struct zn_vote_probe:
        uint64_t id, sequence
        int64_t watermark_ns
        zn_vote_probe_state state
    void zn_vote_shard_config_init(zn_vote_shard_config *config, uint32_t z, int64_t window_ns)
    int zn_vote_shard_open(zn_vote_shard **out, const zn_vote_shard_config *config, zn_error *err)
    void zn_vote_shard_close(zn_vote_shard *s)
    int zn_vote_shard_put(zn_vote_shard *s, zn_span message, int64_t now_ns, c_bool *taken,
                          zn_error *err)
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
    const zn_vote_probe *zn_vote_shard_probes(const zn_vote_shard *s, size_t *n)
    const zn_vote_shard_config *zn_vote_shard_get_config(const zn_vote_shard *s)
    const zn_ztable *zn_vote_shard_table(const zn_vote_shard *s)
    zn_vote_shard_stats zn_vote_shard_get_stats(const zn_vote_shard *s)
    uint64_t zn_vote_shard_pending(const zn_vote_shard *s)
    size_t zn_vote_shard_memory(const zn_vote_shard *s)
    int zn_vote_shard_dump(const zn_vote_shard *s, zn_text *out, zn_error *err)
    int zn_vote_shard_load(zn_vote_shard **out, zn_span dump, zn_error *err)


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
