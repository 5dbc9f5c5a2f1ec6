# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/analyzer

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


cdef extern from "analyzer/name_lists.h" nogil:
    ctypedef struct zn_suffix:
        zn_span name
        uint8_t listed
        uint16_t category
    ctypedef struct zn_category:
        zn_span name
        bint skipped
    ctypedef struct zn_network:
        uint32_t as_number
        char country[2]
    enum:
        ZN_NO_DOMAIN
    ctypedef struct zn_name_lists:
        uint64_t ignored_categories
    ctypedef struct zn_name_facts:
        uint8_t domain
        uint16_t category
        bint only, skipped
    int zn_name_lists_init(zn_name_lists *lists, const zn_suffix *suffixes, size_t suffix_count,
                           const zn_category *categories, size_t category_count, zn_error *err)
    void zn_name_lists_fini(zn_name_lists *lists)
    void zn_name_lists_look_up(const zn_name_lists *lists, zn_span name, zn_name_facts *out)
    zn_span zn_name_lists_category(const zn_name_lists *lists, uint16_t category)
