# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Declarations of csrc/anon.

cdef extern from "analyzer/hostname.h" nogil:
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

cdef extern from "anonymity/popularity.h" nogil:
    enum: ZN_ZTABLE_BINS
    ctypedef struct zn_popularity_window:
        int64_t start_ns, end_ns
        uint64_t users
        uint64_t bins[1]
        c_bool whole
    ctypedef struct zn_popularity:
        zn_popularity_window *kept
        size_t kept_count

cdef extern from "release/gate_rows.h" nogil:
    ctypedef struct zn_row_gate_config:
        uint32_t z
        int64_t window_ns, rotate_ns
        const char *key_file
        uint32_t max_tuples, max_attributes
        c_bool with_user, keep_suppressed, popularity
