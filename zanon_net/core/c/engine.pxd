# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/engine

cdef extern from "engine/profile_stage.h" nogil:
    ctypedef enum zn_profile_stage:
        ZN_PROFILE_STAGE_COUNT
    const char *zn_profile_stage_name(zn_profile_stage stage)


cdef extern from "engine/minute_queue.h" nogil:
    ctypedef struct zn_minute_queue:
        pass
    void zn_minute_queue_fini(zn_minute_queue *q)
    uint8_t *zn_minute_queue_reserve(zn_minute_queue *q, size_t most)
    void zn_minute_queue_add(zn_minute_queue *q, int64_t minute, uint64_t rank, size_t n)
    int64_t zn_minute_queue_leave(zn_minute_queue *q, int64_t before)
    const uint8_t *zn_minute_queue_leaving(const zn_minute_queue *q, int64_t i)
    void zn_minute_queue_left(zn_minute_queue *q, int64_t before)


cdef extern from "output/outputs.h" nogil:
    ctypedef struct zn_field:
        const char *name
        zn_field_type type
        bint nullable
    ctypedef struct zn_fields:
        zn_field at[1]
        size_t n
    ctypedef struct zn_dictionary:
        int32_t *offsets
        uint8_t *bytes
        size_t n, bytes_n
    ctypedef struct zn_table_place:
        uint8_t *values
    ctypedef struct zn_table_layout:
        zn_table_place column[1]
    ctypedef struct zn_table_block:
        uint8_t *bytes
        size_t size
    ctypedef struct zn_table:
        zn_fields fields
        zn_dictionary dictionary[1]
        zn_table_block block
        zn_table_layout in_block
        size_t rows
    size_t zn_table_width(zn_field_type type)
    int zn_table_end(zn_table *t, zn_error *err)
    const uint8_t *zn_table_valid(const zn_table *t, size_t column)
    zn_table_block zn_table_take(zn_table *t)
    void zn_table_give(zn_table *t, zn_table_block block)
    void zn_table_block_free(zn_table_block block)
    ctypedef enum zn_output:
        pass
    enum:
        ZN_OUTPUT_TEXTS
        ZN_OUTPUT_TABLES
        ZN_OUTPUTS
        ZN_OUTPUTS_ROWS
    const char *zn_outputs_name(int output)
    const char *zn_outputs_stem(int output)
    const char *zn_outputs_suffix(int output)
    bint zn_outputs_is_rows(int output)
    ctypedef struct zn_mark:
        int64_t period_ns
        size_t at[1]
        size_t lines[1]
        size_t rows[1]
    ctypedef struct zn_outputs:
        zn_text text[1]
        size_t lines[1]
        zn_table table[1]
        zn_mark *marks
        size_t mark_count
    void zn_outputs_clear(zn_outputs *o)


cdef extern from "engine/engine.h" nogil:
    ctypedef struct zn_engine:
        pass
    ctypedef enum zn_counted_users:
        pass
    ctypedef enum zn_dns_votes:
        pass
    ctypedef enum zn_coarse_end:
        pass
    ctypedef enum zn_coarse_steps:
        pass
    ctypedef enum zn_coarse_client:
        pass
    ctypedef enum zn_packet_payload:
        pass
    ctypedef enum zn_server_addresses:
        pass
    ctypedef enum zn_packet_macs:
        pass
    ctypedef enum zn_tcp_timestamps:
        pass
    ctypedef enum zn_fingerprints:
        pass
    ctypedef struct zn_packet_view:
        uint32_t z
        zn_packet_payload payload
        zn_server_addresses server_addresses
        zn_fingerprints fingerprints
        int64_t times_ns
        bint exact
    ctypedef enum zn_tunnel_kind:
        pass
    ctypedef struct zn_tunnel_port:
        uint16_t port
        zn_tunnel_kind kind
    ctypedef struct zn_engine_config:
        size_t size
        uint32_t z
        int64_t window_ns, rotate_ns
        bint established
        zn_dns_votes dns_votes
        bint exact, keep_client_port, dn_hunter
        unsigned sets
        uint32_t outputs
        int64_t split_ns
        const zn_net *internal
        size_t internal_count
        const zn_span *never
        size_t never_count
        uint8_t user_v4_bits, user_v6_bits
        const char *key_file
        uint32_t max_flows, max_tuples, max_attributes
        uint32_t z_max
        zn_counted_users popularity
        unsigned workers
        zn_pseudonyms pseudonyms
        uint8_t block_v4_bits, block_v6_bits
        zn_coarse_end coarse_end
        zn_coarse_steps coarse_steps
        zn_coarse_client coarse_client
        int64_t times_ns
        unsigned digits
        unsigned order
        int64_t hold_ns
        uint64_t hold_bytes
        zn_packet_payload payload
        bint wide_addresses
        zn_server_addresses server_addresses
        zn_packet_macs macs
        zn_tcp_timestamps tcp_timestamps
        bint keep_ttl
        bint keep_encapsulation
        zn_fingerprints fingerprints
        bint coarse_suppressed
        int64_t packet_times_ns
        const zn_packet_view *views
        size_t view_count
        const char *count_probe
        int64_t count_hold_ns
        uint32_t max_per_prefix, max_names_per_user
        uint8_t cap_v4_bits, cap_v6_bits
        int64_t min_user_age_ns
        bint count_rows
        bint count_leases
        int64_t count_rotate_ns
        const zn_hash_key *count_secret
        const zn_tunnel_port *tunnel_ports
        size_t tunnel_port_count
        const zn_suffix *suffixes
        size_t suffixes_count "suffix_count"
        const zn_category *categories
        size_t categories_count "category_count"
        unsigned levels
        unsigned attributes
        const zn_network *networks
        size_t networks_count "network_count"
    ctypedef struct zn_source:
        zn_capture *capture
        zn_filter *filter
        uint32_t link_type[16]
        uint64_t link_frames[16]
        uint32_t links
    ctypedef struct zn_level_stats:
        uint64_t published, peeks, withdrawn, evicted
        uint32_t labels, votes
    ctypedef struct zn_level_report:
        uint32_t count
        zn_level_stats level[3]
        uint64_t paused, lacked_capacity
        uint32_t smallest, median
        uint64_t ignored_categories
    bint zn_engine_levels(const zn_engine *e, zn_level_report *out)
    ctypedef struct zn_attribute_counts:
        uint64_t observations, released, suppressed, malformed
    bint zn_engine_attributes(const zn_engine *e, unsigned attribute, zn_attribute_counts *out)
    bint zn_engine_attribute_window(const zn_engine *e, unsigned attribute,
                                    zn_popularity_window *window)
    int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err)
    void zn_engine_close(zn_engine *e)
    zn_span zn_engine_key_scope(const zn_engine *e)
    uint32_t zn_engine_networks_left_out(const zn_engine *e)
    c_bool zn_engine_pseudonym_id(zn_engine *e, uint8_t *id)
    int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err)
    int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
    bint zn_engine_is_over(const zn_engine *e, const zn_source *source)
    int zn_engine_finish(zn_engine *e, zn_error *err)
    bint zn_engine_window(const zn_engine *e, zn_popularity_window *window)
    size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap)
    bint zn_engine_window_levels(zn_engine *e, zn_level_shares *out)
    int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err)
    int zn_engine_set_never(zn_engine *e, const zn_span *never, size_t count, zn_error *err)
    int zn_engine_flush(zn_engine *e, zn_error *err)
    zn_outputs *zn_engine_outputs(zn_engine *e)
    int zn_engine_start_aside(zn_engine *e, zn_job *job, zn_error *err)
    zn_span zn_outputs_header(const zn_engine *e, zn_output output)
    bint zn_engine_waiting(const zn_engine *e)
    void zn_engine_packet_blocks(const zn_engine *e, zn_text *out)
    size_t zn_engine_hold_bytes_max(const zn_engine *e)
    const zn_stats *zn_engine_stats(const zn_engine *e)
    const zn_stats *zn_engine_view_stats(const zn_engine *e, unsigned view)
    zn_ztable_stats zn_engine_table_stats(const zn_engine *e)
    uint64_t zn_engine_users(const zn_engine *e, c_bool *saturated)
    bint zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns)
    size_t zn_engine_memory(const zn_engine *e)
    size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live)
    size_t zn_engine_table_memory(const zn_engine *e)
    size_t zn_engine_flow_memory_max(const zn_engine *e)
    const char *zn_engine_check(const zn_engine *e)
    uint64_t zn_engine_count_probe(const zn_engine *e, uint64_t *settings)
    int zn_engine_count_begin(zn_engine *e, unsigned shards, zn_error *err)
    int zn_engine_count_cut(zn_engine *e, zn_error *err)
    void zn_engine_count_hold(zn_engine *e, int64_t hold_ns)
    zn_span zn_engine_count_messages(const zn_engine *e)
    void zn_engine_count_sent(zn_engine *e)
    int zn_engine_count_answer(zn_engine *e, zn_span message, zn_error *err)
    void zn_engine_count_mute(zn_engine *e, bint muted)
    int zn_engine_count_abandon(zn_engine *e, zn_error *err)
    bint zn_engine_must_wait(const zn_engine *e)
    uint64_t zn_engine_count_waiting(const zn_engine *e)
    int zn_engine_suppress_waiting(zn_engine *e, bint all, zn_error *err)
    int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err)
    zn_profile_stage zn_engine_profile_stage(const zn_engine *e)


cdef extern from "engine/engine_live.h" nogil:
    int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                           zn_error *err)
