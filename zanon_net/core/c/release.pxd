# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/release

cdef extern from "release/row.h" nogil:
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


cdef extern from "release/row_gate.h" nogil:
    ctypedef struct zn_row_gate_config:
        uint32_t z
        int64_t window_ns, rotate_ns
        const char *key_file
        uint32_t max_tuples, max_attributes
        c_bool with_user, keep_suppressed, popularity
