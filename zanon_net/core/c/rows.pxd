# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/rows

cdef extern from "rows/filter.h" nogil:
    ctypedef struct zn_row_filter:
        pass
    ctypedef struct zn_row_filter_config:
        zn_row_gate_config gate
        zn_row_format format
        zn_row_format to
        zn_time_unit unit
        uint8_t delimiter
        zn_row_columns columns
        zn_span header
        c_bool strict
    ctypedef struct zn_row_filter_stats:
        uint64_t rows, observations, written, without_offset
        uint64_t faults[1]
        zn_row_fault first_fault
        uint64_t first_fault_line
        int64_t first_ns, last_ns
    int zn_row_filter_open(zn_row_filter **out, const zn_row_filter_config *config, zn_error *err)
    void zn_row_filter_close(zn_row_filter *s)
    int zn_row_filter_feed(zn_row_filter *s, const uint8_t *data, size_t n, zn_error *err)
    int zn_row_filter_end(zn_row_filter *s, zn_error *err)
    int zn_row_filter_finish(zn_row_filter *s, zn_error *err)
    zn_popularity *zn_row_filter_popularity(zn_row_filter *s)
    zn_text *zn_row_filter_output(zn_row_filter *s)
    const zn_row_filter_stats *zn_row_filter_get_stats(const zn_row_filter *s)
    zn_ztable_stats zn_row_filter_table_stats(const zn_row_filter *s)
    zn_row_format zn_row_filter_format(const zn_row_filter *s)
    size_t zn_row_filter_memory(const zn_row_filter *s)
    const char *zn_row_fault_name(zn_row_fault fault)
    const char *zn_row_fault_text(zn_row_fault fault)
