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
