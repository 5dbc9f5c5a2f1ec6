# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/release

cdef extern from "release/row.h" nogil:
    ctypedef enum zn_row_format:
        ZN_ROWS_AUTO
    ctypedef enum zn_row_fault:
        ZN_FAULT_COUNT
    enum:
        ZN_ROW_COLUMNS_MAX
    ctypedef struct zn_row_columns:
        zn_span name[ZN_ROW_COLUMNS_MAX]
        size_t count


cdef extern from "release/row_ladder.h" nogil:
    enum:
        ZN_LADDER_STEPS_MAX
        ZN_LADDER_COLUMNS_MAX
    ctypedef enum zn_unknown:
        ZN_UNKNOWN_ERROR
    ctypedef struct zn_row_ladder_config:
        const zn_taxonomy * const *columns
        size_t column_count
        const uint8_t *levels
        size_t step_count
        zn_unknown unknown
    ctypedef struct zn_row_ladder_stats:
        uint64_t unknown
        double loss
        uint64_t released[ZN_LADDER_STEPS_MAX]


cdef extern from "release/row_labels.h" nogil:
    ctypedef struct zn_row_labels_config:
        unsigned levels
        const zn_suffix *suffixes
        size_t suffixes_count "suffix_count"
        const zn_category *categories
        size_t categories_count "category_count"
        const zn_network *networks
        size_t networks_count "network_count"
    ctypedef struct zn_row_labels_stats:
        uint64_t ignored_categories
    ctypedef struct zn_row_labels:
        pass
    const zn_row_labels_stats *zn_row_labels_get_stats(const zn_row_labels *l)


cdef extern from "release/row_gate.h" nogil:
    ctypedef struct zn_row_gate_config:
        uint32_t z
        int64_t window_ns, rotate_ns
        const char *key_file
        uint32_t max_tuples, max_attributes
        c_bool with_user, keep_suppressed, popularity
        zn_row_ladder_config ladder
        zn_row_labels_config labels
        const zn_span *never
        size_t never_count


cdef extern from "release/log_row.h" nogil:
    ctypedef enum zn_log_role:
        pass


cdef extern from "release/log_gate.h" nogil:
    ctypedef enum zn_log_reason:
        ZN_LOG_NO_ATTRIBUTE
        ZN_LOG_REASON_COUNT
    const char *zn_log_reason_name(zn_log_reason reason)
    const char *zn_log_reason_text(zn_log_reason reason)


cdef extern from "release/tuple_gate.h" nogil:
    ctypedef struct zn_tuple_gate:
        pass
    enum:
        ZN_TUPLE_SENSITIVE_MAX
    int zn_tuple_gate_open(zn_tuple_gate **out, const zn_class_rule *rule, size_t sensitive_count,
                           zn_error *err)
    void zn_tuple_gate_close(zn_tuple_gate *g)
    zn_id zn_tuple_gate_value(const zn_tuple_gate *g, zn_span written)
    zn_id zn_tuple_gate_user(const zn_tuple_gate *g, zn_span user)
    int zn_tuple_gate_add(zn_tuple_gate *g, const zn_id *quasi, size_t quasi_count,
                          const zn_id *sensitive, const zn_id *user, zn_error *err)
    int zn_tuple_gate_decide(zn_tuple_gate *g, uint8_t *faults, zn_error *err)
    size_t zn_tuple_gate_memory(const zn_tuple_gate *g)


cdef extern from "release/networks.h" nogil:
    ctypedef struct zn_networks:
        pass
    int zn_networks_init(zn_networks *networks, const zn_network *rows, size_t count, zn_error *err)
    void zn_networks_fini(zn_networks *networks)
    const zn_network *zn_networks_find(const zn_networks *networks, const zn_addr *address)
