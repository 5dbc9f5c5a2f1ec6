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
        const char *first_fault
        uint64_t first_fault_line
        int64_t first_ns, last_ns
    const char *zn_row_fault_name(zn_row_fault fault)
    const char *zn_row_fault_text(zn_row_fault fault)


cdef extern from "rows/log_presets.h" nogil:
    ctypedef struct zn_log_column:
        zn_span name
        zn_log_role role
    ctypedef struct zn_log_preset:
        const char *name
        const zn_log_column *columns
        size_t count
    const zn_log_preset *zn_log_presets(size_t *count)
    const char *zn_log_role_name(zn_log_role role)
    const char *zn_log_role_disclosure(zn_log_role role)


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
        const zn_span *nulls
        size_t nulls_count "null_count"
        size_t preset
        c_bool established
        const zn_net *internal
        size_t internal_count
        uint8_t user_v4_bits, user_v6_bits
    ctypedef struct zn_row_filter_stats:
        zn_row_reader_stats read
        uint64_t written
        uint64_t reasons[1]
        uint64_t hold_full
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
    const zn_row_labels *zn_row_filter_labels(const zn_row_filter *s)
    const zn_levels *zn_row_filter_levels(const zn_row_filter *s)
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


cdef extern from "rows/cells.h" nogil:
    ctypedef enum zn_cells_kind:
        ZN_CELLS_NONE
        ZN_CELLS_I8
        ZN_CELLS_I16
        ZN_CELLS_I32
        ZN_CELLS_I64
        ZN_CELLS_U8
        ZN_CELLS_U16
        ZN_CELLS_U32
        ZN_CELLS_U64
        ZN_CELLS_TIME
        ZN_CELLS_BOOL
        ZN_CELLS_TEXT32
        ZN_CELLS_TEXT64
        ZN_CELLS_VIEW
        ZN_CELLS_SPAN
    ctypedef struct zn_cells:
        zn_cells_kind kind
        size_t n, offset
        const void *values
        const uint8_t *valid
        const uint8_t *bytes
        const void * const *blocks
        const int64_t *block_bytes
        size_t block_count
        const zn_cells *words
    ctypedef struct zn_cell_column:
        const zn_cells *chunks
        size_t chunk_count
        size_t chunk, at
    ctypedef enum zn_row_cell_kind:
        ZN_ROW_MISSING
        ZN_ROW_NUMBER
        ZN_ROW_TEXT
    ctypedef struct zn_row_cell:
        zn_row_cell_kind kind
        c_bool negative
        uint64_t number
        zn_span text
    void zn_cells_read(zn_cell_column *c, zn_row_cell *out, size_t n)
    bint zn_row_cell_time(const zn_row_cell *cell, int64_t unit_ns, int64_t *t_ns)
    size_t zn_cells_copy(zn_cell_column column, const uint8_t *marks, size_t n, uint8_t least,
                          int64_t *offsets, uint8_t *valid, uint8_t *data)
    void zn_padded_texts(const void *values, size_t n, size_t width, bint is_wide,
                         int64_t *offsets, uint8_t *data)


cdef extern from "rows/frame.h" nogil:
    ctypedef struct zn_frame_filter:
        pass
    enum:
        ZN_MARK_DROP
        ZN_MARK_BLANK
        ZN_MARK_RELEASE
    ctypedef struct zn_row_frame:
        zn_cell_column time
        zn_cell_column user
        zn_cell_column attribute
        int64_t unit_ns
        size_t n
    ctypedef struct zn_row_marks:
        uint8_t *marks
        char *pseudonyms
        size_t written
    int zn_frame_filter_open(zn_frame_filter **out, const zn_row_filter_config *config,
                             zn_error *err)
    void zn_frame_filter_close(zn_frame_filter *f)
    int zn_frame_filter_decide(zn_frame_filter *f, const zn_row_frame *frame, zn_row_marks *out,
                               zn_error *err)
    zn_row_filter_stats zn_frame_filter_get_stats(const zn_frame_filter *f)
    zn_ztable_stats zn_frame_filter_table_stats(const zn_frame_filter *f)
    size_t zn_frame_filter_memory(const zn_frame_filter *f)
