# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# TLS and DTLS: csrc/proto/tls.h, dtls.h.

def parse_tls(bytes data not None, *, bint cut=False):
    """Returns (state, name as sent, ECH offered). state: done, need_more, malformed or other."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_tls_hello hello
    memset(&hello, 0, sizeof(hello))
    state = zn_tls_client_hello(copy.span, cut, &scratch, &hello)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", False
    return "done", span_bytes(hello.name), bool(hello.ech_offered)


def parse_tls_details(bytes data not None):
    """Returns details of a hello behind records: (versions, protocol bits, session id?, PSK?, early
    data?, retry?)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_tls_details details
    cdef c_bool ended
    zn_tls_read_details(
        zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended), &details)
    versions = [details.version[i] for i in range(details.versions)]
    return (versions, details.protocols, bool(details.session_id), bool(details.pre_shared_key),
            bool(details.early_data), bool(details.retry))


def parse_certificate(bytes data not None):
    """Returns (state, common name as sent) of the first certificate in a server's first records."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_span certificate, name
    cdef c_bool ended
    memset(&certificate, 0, sizeof(certificate))
    memset(&name, 0, sizeof(name))
    state = zn_tls_first_certificate(
        zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended),
        &certificate)
    if state == ZN_DONE:
        state = zn_x509_common_name(certificate, &name)
    return PARSE_STATES[state], span_bytes(name) if state == ZN_DONE else b""


def parse_hello(bytes data not None):
    """Parses as parse_tls, but handshake messages without records, as QUIC carries them."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_hello hello
    state = zn_tls_bare_hello(copy.span, &hello)
    return PARSE_STATES[state], span_bytes(hello.name), bool(hello.ech_offered)


def parse_dtls(bytes data not None, *, bint whole=True):
    """Returns (state, [(type, message number, length, offset, bytes), ...]) of a datagram's
    fragments in the clear.

    state: done if there are fragments and nothing contradicts them.
    """
    cdef _Copy copy = _Copy(data)
    cdef zn_dtls_reader reader = zn_dtls_read(copy.span, whole)
    cdef zn_dtls_fragment part
    fragments = []
    state = zn_dtls_next_fragment(&reader, &part)
    while state == ZN_DONE:
        fragments.append((part.type, part.message, part.length, part.offset,
                          span_bytes(part.bytes)))
        state = zn_dtls_next_fragment(&reader, &part)
    if state == ZN_OTHER and fragments:
        state = ZN_DONE
    return PARSE_STATES[state], fragments


def parse_dtls_hello(bytes body not None, *, size_t declared=0):
    """Returns (state, name as sent, ECH offered, cookie) of a ClientHello's body.

    declared: the length of the body if the capture cut it.
    """
    cdef _Copy copy = _Copy(body)
    cdef zn_tls_hello hello
    state = zn_tls_datagram_hello(copy.span, declared or copy.span.n, &hello)
    return (PARSE_STATES[state], span_bytes(hello.name), bool(hello.ech_offered),
            span_bytes(hello.cookie))


def parse_dtls_cookie(bytes body not None):
    """Returns (state, cookie) of a HelloVerifyRequest's body."""
    cdef _Copy copy = _Copy(body)
    cdef zn_span cookie
    state = zn_dtls_verify_request(copy.span, &cookie)
    return PARSE_STATES[state], span_bytes(cookie) if state == ZN_DONE else b""
