# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/rows

cdef extern from "rows/hierarchy.h" nogil:
    int zn_hierarchy_read(zn_taxonomy **out, zn_span file, uint8_t delimiter,
                          zn_taxonomy_notes *notes, zn_error *err)


cdef extern from "rows/reader.h" nogil:
    ctypedef struct zn_row_reader_stats:
        uint64_t rows, observations, without_offset
        uint64_t faults[1]
        zn_row_fault first_fault
        uint64_t first_fault_line
        int64_t first_ns, last_ns
    const char *zn_row_fault_name(zn_row_fault fault)
    const char *zn_row_fault_text(zn_row_fault fault)


cdef extern from "rows/filter.h" nogil:
    ctypedef struct zn_row_filter:
        pass
    ctypedef struct zn_row_filter_config:
        zn_row_gate_config gate
        zn_row_format format
        zn_row_format to
        zn_time_unit unit
        uint8_t delimiter
        c_bool quotes
        zn_row_columns columns
        zn_span header
        c_bool strict
    ctypedef struct zn_row_filter_stats:
        zn_row_reader_stats read
        uint64_t written
    int zn_row_filter_open(zn_row_filter **out, const zn_row_filter_config *config, zn_error *err)
    void zn_row_filter_close(zn_row_filter *s)
    int zn_row_filter_feed(zn_row_filter *s, const uint8_t *data, size_t n, zn_error *err)
    int zn_row_filter_end(zn_row_filter *s, zn_error *err)
    int zn_row_filter_finish(zn_row_filter *s, zn_error *err)
    zn_popularity *zn_row_filter_popularity(zn_row_filter *s)
    zn_text *zn_row_filter_output(zn_row_filter *s)
    zn_row_filter_stats zn_row_filter_get_stats(const zn_row_filter *s)
    zn_ztable_stats zn_row_filter_table_stats(const zn_row_filter *s)
    const zn_row_ladder_stats *zn_row_filter_ladder_stats(const zn_row_filter *s)
    zn_row_format zn_row_filter_format(const zn_row_filter *s)
    size_t zn_row_filter_memory(const zn_row_filter *s)


cdef extern from "rows/window.h" nogil:
    enum:
        ZN_FATE_USERS
        ZN_FATE_COUNT
        ZN_WINDOW_ENDS
        ZN_DELAY_BUCKETS
        ZN_WINDOW_L_MAX
    ctypedef enum zn_row_fate:
        pass
    ctypedef enum zn_window_end:
        ZN_WINDOW_IDLE
        ZN_WINDOW_LAST
    ctypedef struct zn_window:
        pass
    ctypedef struct zn_window_config:
        zn_groups_config groups
        size_t rows
        int64_t delay_ns
        c_bool sliding, with_user
        uint32_t adapt_l
        zn_adaptive_way adapt_way
        int64_t once_ns
        uint32_t once_users
    ctypedef struct zn_window_stats:
        uint64_t rows
        uint64_t fates[1]
        uint64_t windows[1]
        uint64_t clock_jumps, groups, swaps, merges, users_min
        double loss[1]
        uint64_t distinct_min[1]
        uint64_t distinct_sum[1]
        double entropy_min[1]
        double entropy_sum[1]
        double share_max[1]
        double delay_sum
        int64_t delay_max
        uint64_t delays[1]
        uint64_t l_windows[1]
    int zn_window_advance(zn_window *w, int64_t t_ns, zn_error *err)
    int zn_window_end_now(zn_window *w, zn_window_end why, zn_error *err)
    void zn_window_count_stopped(zn_window *w, uint64_t n)
    uint64_t *zn_window_payloads(zn_window *w, size_t *n)
    int64_t zn_window_deadline(const zn_window *w)
    const zn_window_stats *zn_window_get_stats(const zn_window *w)
    int64_t zn_window_delay_quantile(const zn_window *w, double p)
    size_t zn_window_memory(const zn_window *w)
    const char *zn_row_fate_name(zn_row_fate fate)
    const char *zn_row_fate_text(zn_row_fate fate)
    void zn_window_save(const zn_window *w, zn_text *out)
    int zn_window_load(zn_window *w, zn_span saved, zn_error *err)


cdef extern from "rows/release_list.h" nogil:
    ctypedef struct zn_coded_rows:
        size_t n
        const int64_t *t_ns
        const uint64_t *user
        const int32_t *quasi[1]
        const uint64_t *sensitive[1]
        uint64_t first_number
    ctypedef struct zn_release_list:
        zn_window *window
        size_t n, releases
        uint64_t *number
        uint64_t *user
        uint32_t *release
        uint16_t *nodes
        int64_t *release_ns
    int zn_release_list_open(zn_release_list *list, const zn_window_config *config, zn_error *err)
    void zn_release_list_fini(zn_release_list *list)
    int zn_release_list_take(zn_release_list *list, const zn_coded_rows *rows, zn_error *err)


cdef extern from "rows/publisher.h" nogil:
    ctypedef struct zn_publisher:
        pass
    ctypedef struct zn_publisher_config:
        zn_window_config window
        zn_row_format format
        zn_row_format to
        zn_time_unit unit
        uint8_t delimiter
        c_bool quotes
        zn_row_columns columns
        zn_span header
        c_bool strict, pseudonyms
        zn_unknown unknown
        uint64_t max_memory
    int zn_publisher_open(zn_publisher **out, const zn_publisher_config *config, zn_error *err)
    void zn_publisher_close(zn_publisher *p)
    int zn_publisher_feed(zn_publisher *p, const uint8_t *data, size_t n, zn_error *err)
    int zn_publisher_end(zn_publisher *p, zn_error *err)
    int zn_publisher_idle(zn_publisher *p, zn_error *err)
    int zn_publisher_finish(zn_publisher *p, zn_error *err)
    zn_text *zn_publisher_output(zn_publisher *p)
    const zn_row_reader_stats *zn_publisher_read_stats(const zn_publisher *p)
    const zn_window *zn_publisher_window(const zn_publisher *p)
    zn_row_format zn_publisher_format(const zn_publisher *p)
    size_t zn_publisher_memory(const zn_publisher *p)
