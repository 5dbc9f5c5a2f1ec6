# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Declarations of the C core: only what the binding uses.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "<stdbool.h>" nogil:
    ctypedef bint c_bool "bool"

cdef extern from "base/base.h" nogil:
    ctypedef enum zn_parse:
        ZN_DONE
        ZN_NEED_MORE
        ZN_MALFORMED
        ZN_OTHER
    ctypedef enum zn_err:
        ZN_ERR_OK
        ZN_ERR_CONFIG
        ZN_ERR_IO
        ZN_ERR_FORMAT
        ZN_ERR_CAPACITY
        ZN_ERR_CRYPTO
    ctypedef struct zn_error:
        zn_err code
        int os_errno
        char msg[256]

cdef extern from "base/arena.h" nogil:
    void zn_alloc_fail_after(uint64_t n)

cdef extern from "base/cursor.h" nogil:
    ctypedef struct zn_span:
        const uint8_t *p
        size_t n

    ctypedef struct zn_cursor:
        pass
    zn_cursor zn_cursor_over_span(zn_span s, bint whole)

cdef extern from "base/addr.h" nogil:
    ctypedef struct zn_addr:
        uint8_t byte[16]
    ctypedef struct zn_net:
        zn_addr prefix
        uint32_t bits
    size_t zn_addr_text(const zn_addr *a, char *out)

cdef extern from "base/hash.h" nogil:
    ctypedef struct zn_hash_key:
        uint64_t k0
        uint64_t k1
    ctypedef struct zn_id:
        uint64_t lo
        uint64_t hi
    int zn_hash_key_random(zn_hash_key *key, zn_error *err)
    uint64_t zn_hash64(const zn_hash_key *key, const void *data, size_t n)
    zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *data, size_t n)

cdef extern from "base/stats.h" nogil:
    ctypedef enum zn_stat:
        ZN_STAT_FRAGMENTS
        ZN_STAT_IN_FIRST
        ZN_STAT_COUNT
    ctypedef struct zn_stats:
        uint64_t n[1]
    ctypedef struct zn_stat_info:
        const char *name
        const char *group
        const char *text
    const zn_stat_info *zn_stat_describe(size_t i)

cdef extern from "base/bucket_hash.h" nogil:
    ctypedef struct zn_bucket_key:
        uint64_t word[8]

cdef extern from "base/text.h" nogil:
    ctypedef struct zn_text:
        char *bytes
        size_t n
    void zn_text_fini(zn_text *t)

cdef extern from "base/packet.h" nogil:
    ctypedef struct zn_tuple:
        zn_addr addr[2]
        uint16_t port[2]
        uint32_t proto
    ctypedef struct zn_tunnel:
        zn_addr end[2]
    ctypedef struct zn_packet:
        zn_tuple tuple
        uint64_t hash
        uint8_t sender, ttl, tcp_flags, fragment
        uint16_t window
        uint32_t seq, ack, payload_len
        zn_span payload
        uint64_t encapsulations
        uint32_t tunnel_count
        zn_tunnel *tunnels

cdef extern from "proto/packet.h" nogil:
    ctypedef struct zn_packet_input:
        zn_span bytes
        uint32_t wire
        uint32_t link_type
    ctypedef struct zn_fragment:
        zn_addr src
        zn_addr dst
        uint32_t id
        uint16_t offset
        uint8_t protocol
        bint more "more"
        zn_span bytes
    zn_stat zn_packet_decode(const zn_packet_input *source, const zn_bucket_key *key, zn_packet *out,
                             zn_fragment *fragment)

cdef extern from "proto/tls.h" nogil:
    ctypedef struct zn_tls_scratch:
        uint8_t bytes[16384]
    ctypedef struct zn_tls_hello:
        zn_span name
        c_bool ech_offered
        zn_span cookie
    zn_parse zn_tls_client_hello(zn_span head, bint cut, zn_tls_scratch *scratch, zn_tls_hello *out)
    zn_parse zn_tls_bare_hello(zn_span head, zn_tls_hello *out)
    zn_parse zn_tls_datagram_hello(zn_span body, size_t declared, zn_tls_hello *out)

cdef extern from "proto/dtls.h" nogil:
    ctypedef struct zn_dtls_fragment:
        uint8_t type
        uint16_t message
        uint32_t length, offset
        zn_span bytes
        c_bool cut
    ctypedef struct zn_dtls_reader:
        pass
    zn_dtls_reader zn_dtls_read(zn_span datagram, bint whole)
    zn_parse zn_dtls_next_fragment(zn_dtls_reader *r, zn_dtls_fragment *out)
    zn_parse zn_dtls_verify_request(zn_span body, zn_span *cookie)

cdef extern from "proto/quic.h" nogil:
    ctypedef enum zn_quic_type:
        ZN_QUIC_INITIAL
    ctypedef enum zn_quic_side:
        ZN_QUIC_CLIENT
        ZN_QUIC_SERVER
    ctypedef struct zn_quic_packet:
        zn_quic_type type
        uint32_t version
        zn_span dcid, scid, header, sealed
        c_bool cut
    ctypedef struct zn_quic_keys:
        uint8_t key[16]
        uint8_t iv[12]
        uint8_t header_key[16]
    ctypedef struct zn_quic_piece:
        uint64_t offset
        zn_span bytes
    ctypedef struct zn_quic_pieces:
        size_t n
        zn_quic_piece piece[1]
    ctypedef struct zn_quic:
        pass
    zn_parse zn_quic_next_packet(zn_cursor *datagram, zn_quic_packet *out)
    zn_parse zn_quic_read_frames(zn_span plain, zn_quic_pieces *out)
    int zn_quic_open(zn_quic **out, zn_error *err)
    void zn_quic_close(zn_quic *q)
    bint zn_quic_derive(zn_quic *q, uint32_t version, zn_span first_dcid, zn_quic_side side,
                        zn_quic_keys *out)
    zn_parse zn_quic_unseal(zn_quic *q, const zn_quic_keys *keys, const zn_quic_packet *packet,
                            zn_span *plain)

cdef extern from "proto/quic_seal.h" nogil:
    enum:
        ZN_QUIC_TAG_BYTES
    bint zn_quic_seal(const zn_quic_keys *keys, uint8_t *packet, size_t header, size_t n)
cdef extern from "proto/tls_handshake.h" nogil:
    ctypedef struct zn_tls_details:
        uint16_t version[15]
        uint8_t versions, protocols
        bint session_id, pre_shared_key, early_data, retry
    zn_span zn_tls_handshake_bytes(zn_span head, uint8_t *scratch, size_t cap, c_bool *ended)
    void zn_tls_read_details(zn_span handshake, zn_tls_details *out)
    zn_parse zn_tls_first_certificate(zn_span handshake, zn_span *certificate)

cdef extern from "proto/x509.h" nogil:
    zn_parse zn_x509_common_name(zn_span certificate, zn_span *name)

cdef extern from "proto/http.h" nogil:
    ctypedef struct zn_http_request:
        zn_span host
        uint16_t method
        size_t head_bytes
    bint zn_http_looks_like_request(zn_span data)
    zn_parse zn_http_request_head(zn_span head, bint cut, zn_http_request *out)

cdef extern from "proto/hpack.h" nogil:
    ctypedef struct zn_cursor:
        pass
    zn_cursor zn_cursor_over_span(zn_span s, bint whole)
    ctypedef struct zn_hpack:
        pass
    ctypedef struct zn_hpack_scratch:
        pass
    ctypedef struct zn_hpack_field:
        zn_span name
        zn_span value
    void zn_hpack_start(zn_hpack *table)
    zn_parse zn_hpack_next(zn_hpack *table, zn_cursor *block, zn_hpack_scratch *scratch,
                           zn_hpack_field *out)

cdef extern from "proto/h2.h" nogil:
    ctypedef struct zn_h2_scratch:
        pass
    ctypedef struct zn_h2_unit:
        size_t used
        bint headers
        bint request
        uint16_t method
        zn_span host
    zn_parse zn_h2_preface(zn_span data, size_t *used)
    zn_parse zn_h2_next(zn_span data, zn_hpack *table, zn_h2_scratch *scratch, zn_h2_unit *out)

cdef extern from "proto/preamble.h" nogil:
    zn_parse zn_preamble_skip(zn_span data, size_t *used)

cdef extern from "proto/dns.h" nogil:
    ctypedef struct zn_dns_question:
        uint16_t id
        bint response
        uint16_t type
        uint8_t name_bytes
        uint8_t name[254]
        bint name_odd
    zn_parse zn_dns_question_parse(zn_span message, bint whole, zn_dns_question *out)

cdef extern from "proto/dns_answers.h" nogil:
    ctypedef struct zn_dns_addresses:
        size_t n
        zn_addr at[32]
    zn_parse zn_dns_read_addresses(zn_span message, bint whole, zn_dns_addresses *out)

cdef extern from "anon/hostname.h" nogil:
    ctypedef enum zn_host_kind:
        ZN_HOST_NAME
        ZN_HOST_HOME
        ZN_HOST_ADDRESS
        ZN_HOST_EMPTY
        ZN_HOST_INVALID
    ctypedef struct zn_hostname:
        uint8_t text[256]
        uint8_t n
    zn_host_kind zn_hostname_normalize(zn_span raw, zn_hostname *out)

cdef extern from "state/stream.h" nogil:
    ctypedef struct zn_stream_pool:
        pass
    ctypedef enum zn_stream_result:
        ZN_STREAM_GREW
    int zn_stream_pool_init(zn_stream_pool *pool, uint32_t cap, zn_error *err)
    void zn_stream_pool_fini(zn_stream_pool *pool)
    uint32_t zn_stream_take(zn_stream_pool *pool)
    zn_stream_result zn_stream_add(zn_stream_pool *pool, uint32_t stream, uint32_t offset,
                                   zn_span piece)
    zn_span zn_stream_head(const zn_stream_pool *pool, uint32_t stream)
    void zn_stream_consume(zn_stream_pool *pool, uint32_t stream, uint32_t n)
    uint32_t zn_stream_first(const zn_stream_pool *pool, uint32_t stream)
    bint zn_stream_has_hole(const zn_stream_pool *pool, uint32_t stream)

cdef extern from "state/ztable.h" nogil:
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
    void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key,
                                   const zn_columns *columns, size_t n, uint8_t *decisions)
    uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
    size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
    int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err)
    void zn_ztable_clear(zn_ztable *t)
    zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t)
    size_t zn_ztable_memory(const zn_ztable *t)
    const char *zn_ztable_check(const zn_ztable *t)

cdef extern from "crypto/cryptopan.h" nogil:
    ctypedef struct zn_cryptopan:
        pass
    int zn_cryptopan_open(zn_cryptopan **out, const uint8_t *key, zn_error *err)
    void zn_cryptopan_close(zn_cryptopan *p)
    int zn_cryptopan_addrs(zn_cryptopan *p, const zn_addr *source, zn_addr *out, size_t n)
    int zn_cryptopan_v4(zn_cryptopan *p, const uint32_t *source, uint32_t *out, size_t n)
    int zn_cryptopan_v6(zn_cryptopan *p, const uint8_t *source, uint8_t *out, size_t n)

cdef extern from "crypto/keys.h" nogil:
    ctypedef struct zn_keys:
        pass
    int zn_keys_open(zn_keys **out, int64_t rotate_ns, const char *key_file, zn_error *err)
    void zn_keys_close(zn_keys *k)
    int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns)
    int zn_keys_pseudonym(zn_keys *k, int64_t t_ns, const zn_addr *real, zn_addr *pseudonym,
                          int64_t *epoch)
    int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err)
    int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n)

cdef extern from "io/frame.h" nogil:
    ctypedef struct zn_frame:
        const uint8_t *data
        int64_t t_ns
        uint32_t captured, wire, link_type

cdef extern from "io/capture.h" nogil:
    ctypedef struct zn_capture:
        pass
    int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err)
    int zn_capture_open_again(zn_capture **out, zn_error *err)
    int zn_capture_open_fd(zn_capture **out, int fd, zn_span start, const char *name,
                           zn_error *err)
    int zn_capture_open_memory(zn_capture **out, const uint8_t *data, size_t n, zn_error *err)
    void zn_capture_close(zn_capture *c)
    int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err)
    int zn_capture_peek(zn_capture *c, int64_t *t_ns, zn_error *err)
    const char *zn_capture_format(const zn_capture *c)
    uint64_t zn_capture_bytes_read(const zn_capture *c)
    uint64_t zn_capture_bytes_total(const zn_capture *c)
    const char *zn_capture_warning(const zn_capture *c)

cdef extern from "io/filter.h" nogil:
    ctypedef struct zn_filter:
        pass
    int zn_filter_open(zn_filter **out, const char *expression, zn_error *err)
    void zn_filter_close(zn_filter *f)
    bint zn_filter_pass(zn_filter *f, const zn_frame *frame)

cdef extern from "anon/popularity.h" nogil:
    enum: ZN_ZTABLE_BINS
    ctypedef struct zn_popularity_window:
        int64_t start_ns, end_ns
        uint64_t users
        uint64_t bins[1]
        c_bool whole
    ctypedef struct zn_popularity:
        zn_popularity_window *kept
        size_t kept_count

cdef extern from "base/stage.h" nogil:
    ctypedef enum zn_stage:
        ZN_STAGE_COUNT
    const char *zn_stage_name(zn_stage stage)

cdef extern from "outputs.h" nogil:
    ctypedef enum zn_field_type:
        ZN_FIELD_TEXT
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
        ZN_OUTPUT_TEXTS
        ZN_OUTPUTS
    enum:
        ZN_OUTPUTS_ROWS
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
    void zn_outputs_header(const zn_outputs *o, zn_output output, zn_text *out)
    void zn_outputs_clear(zn_outputs *o)

cdef extern from "engine.h" nogil:
    ctypedef struct zn_engine:
        pass
    ctypedef struct zn_engine_config:
        uint32_t z
        int64_t window_ns, rotate_ns
        bint established, dns_votes, exact, keep_client_port, dn_hunter
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
        bint popularity
        unsigned workers
    ctypedef struct zn_source:
        zn_capture *capture
        zn_filter *filter
        uint32_t link_type[16]
        uint64_t link_frames[16]
        uint32_t links
    int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err)
    void zn_engine_close(zn_engine *e)
    int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err)
    int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err)
    int zn_engine_finish(zn_engine *e, zn_error *err)
    bint zn_engine_window(const zn_engine *e, zn_popularity_window *window)
    size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap)
    int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err)
    int zn_engine_settle(zn_engine *e, zn_error *err)
    zn_outputs *zn_engine_outputs(zn_engine *e)
    bint zn_engine_waiting(const zn_engine *e)
    const zn_stats *zn_engine_stats(const zn_engine *e)
    zn_ztable_stats zn_engine_table_stats(const zn_engine *e)
    uint64_t zn_engine_users(const zn_engine *e, c_bool *saturated)
    bint zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns)
    size_t zn_engine_memory(const zn_engine *e)
    size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live)
    size_t zn_engine_flow_memory_max(const zn_engine *e)
    const char *zn_engine_check(const zn_engine *e)
    int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err)
    zn_stage zn_engine_stage(const zn_engine *e)

cdef extern from "io/event_log.h" nogil:
    ctypedef struct zn_event_field:
        const char *name
        const char *format
        size_t offset
    const zn_event_field *zn_event_record_fields(size_t *count, size_t *row_bytes)
    const zn_event_field *zn_event_observation_fields(size_t *count, size_t *row_bytes)

cdef extern from "io/live_group.h" nogil:
    ctypedef struct zn_live_config:
        const char *interface
        const char *filter
        uint32_t snaplen, ring_bytes
        bint promiscuous
    ctypedef struct zn_live_counts:
        uint64_t frames, bytes, received, dropped
    ctypedef struct zn_live_group:
        pass
    int zn_live_group_open(zn_live_group **out, zn_error *err)
    void zn_live_group_close(zn_live_group *g)
    int zn_live_group_add(zn_live_group *g, const zn_live_config *config, unsigned rings,
                          zn_error *err)
    int zn_live_group_next(zn_live_group *g, const zn_frame **frames, int wait_ms, zn_error *err)
    void zn_live_group_stop(zn_live_group *g)
    bint zn_live_group_ended(const zn_live_group *g)
    size_t zn_live_group_size(const zn_live_group *g)
    zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i)
    uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i)
    const char *zn_live_group_warning(const zn_live_group *g, size_t i)

cdef extern from "engine_live.h" nogil:
    int zn_engine_run_live(zn_engine *e, zn_live_group *group, int max_frames, int wait_ms,
                           zn_error *err)

cdef extern from "base/row.h" nogil:
    ctypedef enum zn_row_format:
        ZN_ROWS_AUTO
    ctypedef enum zn_row_fault:
        ZN_FAULT_GOOD
        ZN_FAULT_COUNT
    enum:
        ZN_ROW_COLUMNS_MAX
    ctypedef struct zn_row_columns:
        zn_span name[ZN_ROW_COLUMNS_MAX]
        size_t count

cdef extern from "base/moment.h" nogil:
    ctypedef enum zn_time_unit:
        ZN_TIME_ISO
    ctypedef struct zn_moment:
        int64_t t_ns
        c_bool has_offset
    bint zn_moment_parse(zn_span text, zn_time_unit unit, zn_moment *out)
    void zn_moment_put(zn_text *out, int64_t t_ns, zn_time_unit unit)

cdef extern from "anon/gate_rows.h" nogil:
    ctypedef struct zn_row_gate_config:
        uint32_t z
        int64_t window_ns, rotate_ns
        const char *key_file
        uint32_t max_tuples, max_attributes
        c_bool with_user, keep_suppressed, popularity

cdef extern from "sieve.h" nogil:
    ctypedef struct zn_sieve:
        pass
    ctypedef struct zn_sieve_config:
        zn_row_gate_config gate
        zn_row_format format
        zn_row_format to
        zn_time_unit unit
        uint8_t delimiter
        zn_row_columns columns
        zn_span header
        c_bool strict
    ctypedef struct zn_sieve_stats:
        uint64_t rows, observations, written, without_offset
        uint64_t faults[1]
        zn_row_fault first_fault
        uint64_t first_fault_line
        int64_t first_ns, last_ns
    int zn_sieve_open(zn_sieve **out, const zn_sieve_config *config, zn_error *err)
    void zn_sieve_close(zn_sieve *s)
    int zn_sieve_feed(zn_sieve *s, const uint8_t *data, size_t n, zn_error *err)
    int zn_sieve_end(zn_sieve *s, zn_error *err)
    int zn_sieve_finish(zn_sieve *s, zn_error *err)
    zn_popularity *zn_sieve_popularity(zn_sieve *s)
    zn_text *zn_sieve_output(zn_sieve *s)
    const zn_sieve_stats *zn_sieve_get_stats(const zn_sieve *s)
    zn_ztable_stats zn_sieve_table_stats(const zn_sieve *s)
    zn_row_format zn_sieve_format(const zn_sieve *s)
    size_t zn_sieve_memory(const zn_sieve *s)
    const char *zn_row_fault_name(zn_row_fault fault)
    const char *zn_row_fault_text(zn_row_fault fault)
