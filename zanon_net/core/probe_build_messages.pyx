# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Builders of HTTP and DNS messages, for tests: csrc/build/build_name.h, build_http.h, build_dns.h.

BUILD_DNS_PARTS_MAX = ZN_BUILD_DNS_PARTS_MAX


def build_name_allowed(bytes name not None):
    """Returns true if a builder writes the name at all."""
    cdef _Copy copy = _Copy(name)
    return bool(zn_build_name_allowed(copy.span))


def build_http_request(bytes head not None, *, bint name):
    """Returns (built?, the replacement of the head). name: true if its host may be shown."""
    cdef _Copy copy = _Copy(head)
    cdef bytearray out = bytearray(len(head))
    cdef zn_build_http_choice choice
    memset(&choice, 0, sizeof(choice))
    choice.name = name
    built = zn_build_http_request(copy.span, &choice, out)
    return bool(built), bytes(out)


def build_http_response(bytes data not None):
    """Returns (built?, the replacement of the bytes)."""
    cdef _Copy copy = _Copy(data)
    cdef bytearray out = bytearray(len(data))
    built = zn_build_http_response(copy.span, out)
    return bool(built), bytes(out)


cdef c_bool _build_dns_shared(void *context, zn_span name) noexcept with gil:
    return span_bytes(name) in (<tuple>context)[0]


cdef void _build_dns_map(void *context, const zn_addr *real, zn_addr *out) noexcept with gil:
    mapped = (<tuple>context)[1].get(address_from(real))
    if mapped is not None:
        out[0] = addr_of(mapped.packed)


def build_dns(bytes message not None, *, bint name, shared=None, addresses=None):
    """Returns (built?, the replacement of the message).

    name: true if the first question's name may be shown.
    shared: a collection of further names, as bytes.
    addresses: a dict from each address to its replacement.
    """
    cdef _Copy copy = _Copy(message)
    cdef bytearray out = bytearray(len(message))
    cdef zn_build_dns_choice choice
    cdef tuple context = (shared, addresses)
    memset(&choice, 0, sizeof(choice))
    choice.name = name
    choice.context = <void *>context
    if shared is not None:
        choice.shared = _build_dns_shared
    if addresses is not None:
        choice.map = _build_dns_map
    built = zn_build_dns(copy.span, &choice, out)
    return bool(built), bytes(out)
