# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/proto: builders of HTTP and DNS messages

cdef extern from "build/build_name.h" nogil:
    bint zn_build_name_allowed(zn_span name)


cdef extern from "build/build_http.h" nogil:
    ctypedef struct zn_build_http_choice "zn_build_choice":
        c_bool name
    bint zn_build_http_request(zn_span head, const zn_build_http_choice *choice, uint8_t *out)
    bint zn_build_http_response(zn_span data, uint8_t *out)


cdef extern from "build/build_dns.h" nogil:
    enum:
        ZN_BUILD_DNS_PARTS_MAX
    ctypedef struct zn_build_dns_choice:
        c_bool name
        c_bool (*shared)(void *context, zn_span name) noexcept
        void (*map)(void *context, const zn_addr *real, zn_addr *out) noexcept
        void *context
    bint zn_build_dns(zn_span message, const zn_build_dns_choice *choice, uint8_t *out)
