# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# HTTP, and prefixes before it or TLS: csrc/proto/http.h, http2.h, hpack.h,
# proxy_starttls_prefix.h.

def parse_http(bytes data not None, *, bint cut=False, bint any_method=False):
    """Returns (state, host as sent, method number, bytes of the head).

    any_method: true if a request is known to begin here.
    """
    cdef _Copy copy = _Copy(data)
    cdef zn_http_request request
    memset(&request, 0, sizeof(request))
    state = zn_http_request_head(
        copy.span, cut, ZN_HTTP_ANY if any_method else ZN_HTTP_REGISTERED, &request)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", 0, 0
    return "done", span_bytes(request.host), request.method, request.head_bytes


cdef class HeaderTable:
    """State of one HTTP/2 connection's header compression (proto/hpack)."""

    cdef zn_hpack table

    def __cinit__(self):
        zn_hpack_start(&self.table)

    def decode(self, bytes block not None):
        """Returns (state, [(name, value), ...]) of a header block."""
        cdef _Copy copy = _Copy(block)
        cdef zn_cursor cursor = zn_cursor_over_span(copy.span, True)
        cdef zn_hpack_scratch scratch
        cdef zn_hpack_field field
        fields = []
        while True:
            state = zn_hpack_next(&self.table, &cursor, &scratch, &field)
            if state != ZN_DONE:
                return "done" if state == ZN_OTHER else PARSE_STATES[state], fields
            fields.append((span_bytes(field.name), span_bytes(field.value)))

    def next_unit(self, bytes data not None):
        """Returns (state, bytes used, request begins?, its host, its method number)."""
        cdef _Copy copy = _Copy(data)
        cdef zn_http2_scratch scratch
        cdef zn_http2_unit unit
        state = zn_http2_next(copy.span, &self.table, &scratch, &unit)
        return (PARSE_STATES[state], unit.used, bool(unit.request), span_bytes(unit.host),
                unit.method)


def http2_preface(bytes data not None):
    """Returns (state, bytes) of the client's preface at the start of data."""
    cdef _Copy copy = _Copy(data)
    cdef size_t used = 0
    state = zn_http2_preface(copy.span, &used)
    return PARSE_STATES[state], used if state == ZN_DONE else 0


def skip_proxy_or_starttls_prefix(bytes data not None):
    """Returns the length of the prefix that data starts with; 0: no prefix."""
    cdef _Copy copy = _Copy(data)
    cdef size_t used
    zn_proxy_or_starttls_prefix_skip(copy.span, &used)
    return used
