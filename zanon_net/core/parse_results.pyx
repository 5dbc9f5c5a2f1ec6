# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Results of the parsers for zanon_net.parse, as tuples in the order of its classes' fields.
# Offsets count from the first byte of the data that was given.

SIGNATURES = (None, "http-request", "http-post", "http-response", "smtp-greeting", "smtp-helo",
              "pop3-greeting", "pop3-command", "imap-greeting", "ssh", "tls-client-hello",
              "tls-server-hello")
DATAGRAM_KINDS = (None, "sip", "teredo", "mpeg-ts", "dtls", "rtp", "rtcp", "rtp-companion")
ICMP_KINDS = ("other", "echo", "error")
ICMP_QUOTED = (None, "ip", "tcp", "udp", "echo")


cdef object offset_in(zn_span data, zn_span part):
    """Returns the offset of a part of the data; None if it is empty or was copied."""
    cdef size_t at = zn_span_offset(data, part)
    return None if part.n == 0 or at == data.n else at


# ---- TLS and DTLS --------------------------------------------------------------------------------

cdef object offset_in_records(zn_span records, zn_span handshake, zn_span part):
    """Returns the offset in the records of a part of their handshake bytes; None if the part is
    empty, or in several records."""
    cdef size_t at, first
    if part.n == 0 or offset_in(records, part) is not None:
        return offset_in(records, part)
    at = zn_span_offset(handshake, part)
    if at == handshake.n:
        return None
    first = zn_tls_handshake_offset(records, at)
    whole = zn_tls_handshake_offset(records, at + part.n - 1) == first + part.n - 1
    return first if whole else None


cdef tuple hello_fields(zn_parse state, const zn_tls_hello *hello, object offset):
    """Returns (state, name as sent, its offset, bytes read, ECH offered, versions, session ID?,
    pre-shared key?, early data?)."""
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", None, 0, False, (), False, False, False
    details = &hello.details
    versions = tuple([details.version[i] for i in range(details.versions)])
    return ("done", span_bytes(hello.name), offset, hello.consumed, bool(hello.ech_offered),
            versions, bool(details.session_id), bool(details.pre_shared_key),
            bool(details.early_data))


def read_hello(bytes data not None, *, bint cut=False):
    """Returns the fields of a ClientHello in the first records of a stream."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_tls_hello hello
    cdef zn_span joined
    memset(&hello, 0, sizeof(hello))
    state = zn_tls_client_hello(copy.span, cut, &scratch, &hello)
    joined.p, joined.n = scratch.bytes, sizeof(scratch.bytes)
    return hello_fields(state, &hello, offset_in_records(copy.span, joined, hello.name))


def read_hello_message(bytes data not None):
    """Returns the fields of a ClientHello without records, and QUIC's user agent."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_hello hello
    memset(&hello, 0, sizeof(hello))
    state = zn_tls_bare_hello(copy.span, &hello)
    agent = zn_quic_user_agent(hello.transport_parameters) if state == ZN_DONE else hello.name
    fields = hello_fields(state, &hello, offset_in(copy.span, hello.name))
    return (*fields, span_bytes(agent) if state == ZN_DONE else b"")


def read_hello_body(bytes data not None, *, size_t declared=0):
    """Returns the fields of a ClientHello's body as DTLS has it, and the cookie.

    declared: length of the body if the capture cut it; 0: the length of the data.
    """
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_hello hello
    memset(&hello, 0, sizeof(hello))
    state = zn_tls_datagram_hello(copy.span, declared or copy.span.n, &hello)
    fields = hello_fields(state, &hello, offset_in(copy.span, hello.name))
    return (*fields, span_bytes(hello.cookie) if state == ZN_DONE else b"")


cdef tuple server_fields(zn_span handshake):
    """Returns (state, bytes of the message, version, suite, suite encrypts?, retry?)."""
    cdef zn_tls_choice choice
    cdef zn_tls_details details
    state = zn_tls_server_choice(handshake, &choice)
    if state != ZN_DONE:
        return PARSE_STATES[state], 0, 0, 0, False, False
    zn_tls_read_details(handshake, &details)
    return ("done", choice.message_bytes, details.version[0], choice.suite,
            bool(zn_tls_suite_encrypts(choice.suite)), bool(details.retry))


def read_server_message(bytes data not None):
    """Returns the fields of a ServerHello without records."""
    cdef _Copy copy = _Copy(data)
    return server_fields(copy.span)


def read_server_hello(bytes data not None):
    """Returns the fields of the ServerHello in the first records of a server."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef c_bool ended
    handshake = zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended)
    state, message, *fields = server_fields(handshake)
    if state == "need_more" and ended:
        state = "malformed" if handshake.n != 0 else "other"
    used = zn_tls_handshake_offset(copy.span, message - 1) + 1 if state == "done" else 0
    return (state, used, *fields)


cdef tuple name_fields(zn_span data, zn_span handshake, zn_span certificate):
    """Returns (state, common name as sent, its offset) of a certificate."""
    cdef zn_span name
    memset(&name, 0, sizeof(name))
    state = zn_x509_common_name(certificate, &name)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", None
    return "done", span_bytes(name), offset_in_records(data, handshake, name)


def read_certificate(bytes data not None):
    """Returns (state, common name as sent, its offset, certificate, its offset) of the first
    certificate in a server's first records. The state is other if the certificate has no name."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_span certificate
    cdef c_bool ended
    memset(&certificate, 0, sizeof(certificate))
    handshake = zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended)
    state = zn_tls_first_certificate(handshake, &certificate)
    if state != ZN_DONE:
        never = state == ZN_NEED_MORE and ended
        return "other" if never else PARSE_STATES[state], b"", None, b"", None
    return (*name_fields(copy.span, handshake, certificate), span_bytes(certificate),
            offset_in_records(copy.span, handshake, certificate))


def read_common_name(bytes data not None):
    """Returns (state, common name as sent, its offset) of a certificate in DER."""
    cdef _Copy copy = _Copy(data)
    return name_fields(copy.span, copy.span, copy.span)


def read_dtls(bytes data not None, *, bint whole=True):
    """Returns (state, [(type, message number, length, offset in the message, offset, bytes), ...])
    of a datagram's fragments in clear."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dtls_reader reader = zn_dtls_read(copy.span, whole)
    cdef zn_dtls_fragment part
    fragments = []
    state = zn_dtls_next_fragment(&reader, &part)
    while state == ZN_DONE:
        fragments.append((part.type, part.message, part.length, part.offset,
                          offset_in(copy.span, part.bytes), span_bytes(part.bytes)))
        state = zn_dtls_next_fragment(&reader, &part)
    return "done" if state == ZN_OTHER and fragments else PARSE_STATES[state], fragments


# ---- QUIC ----------------------------------------------------------------------------------------

def read_quic_packets(bytes data not None, *, bint whole=True):
    """Returns (state, [(type, version, destination ID, source ID, offset, bytes), ...]) of a
    datagram's long headers. state: result of the search for a further header."""
    cdef _Copy copy = _Copy(data)
    cdef zn_cursor cursor = zn_cursor_over_span(copy.span, whole)
    cdef zn_quic_packet packet
    cdef size_t at = 0, end
    packets = []
    state = zn_quic_next_packet(&cursor, &packet)
    while state == ZN_DONE:
        end = copy.span.n - zn_cursor_left(&cursor)
        packets.append((QUIC_TYPES[packet.type], packet.version, span_bytes(packet.dcid),
                        span_bytes(packet.scid), at, end - at))
        at = end
        state = zn_quic_next_packet(&cursor, &packet)
    return "done" if state == ZN_OTHER and packets else PARSE_STATES[state], packets


def read_quic(bytes data not None, bytes first_dcid=None, *, bint server=False):
    """Returns (state, bytes read, version, destination ID, source ID, [(offset, bytes), ...],
    [offset, ...]) of one side's Initials in a datagram: CRYPTO frames, and places of the Initials
    that opened.

    first_dcid: the ID that the keys are derived from; None: the Initial's own.
    state: done if an Initial opened; need_more if the datagram is cut; malformed if an opened
        Initial has malformed frames; other if no Initial opened.
    """
    cdef _Copy copy = _Copy(data)
    cdef _Copy key_id = None if first_dcid is None else _Copy(first_dcid)
    cdef zn_cursor cursor = zn_cursor_over_span(copy.span, False)
    cdef zn_quic_packet packet
    cdef zn_quic_keys keys
    cdef zn_span plain
    cdef _Quic quic = shared_quic()
    cdef zn_quic_side side = ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT
    cdef size_t at = 0
    result, found, pieces, places = "other", (0, 0, b"", b""), [], []
    state = zn_quic_next_packet(&cursor, &packet)
    while state == ZN_DONE:
        if packet.type == ZN_QUIC_INITIAL:
            quic.keys(packet.version, packet.dcid if key_id is None else key_id.span, side, &keys)
            opened = zn_quic_unseal(quic.quic, &keys, &packet, &plain)
            if opened == ZN_DONE:
                frames = quic.pieces_of(plain)
                if frames is None:
                    return "malformed", 0, 0, b"", b"", [], []
                result = "done"
                found = (copy.span.n - zn_cursor_left(&cursor), packet.version,
                         span_bytes(packet.dcid), span_bytes(packet.scid))
                pieces += frames
                places.append(at)
            elif opened == ZN_NEED_MORE and result == "other":
                result = "need_more"
        at = copy.span.n - zn_cursor_left(&cursor)
        state = zn_quic_next_packet(&cursor, &packet)
    if result == "other" and state != ZN_OTHER:
        result = PARSE_STATES[state]
    return (result, *found, pieces, places)


# ---- HTTP ----------------------------------------------------------------------------------------

def read_http(bytes data not None, *, bint cut=False):
    """Returns (state, host as sent, its offset, bytes of the head, method number, target, its
    offset, Content-Length or None, chunked?, body is DNS?)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_http_request request
    memset(&request, 0, sizeof(request))
    state = zn_http_request_head(copy.span, cut, ZN_HTTP_ANY, &request)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", None, 0, 0, b"", None, None, False, False
    length = None if request.body_unknown or request.chunked else request.body_bytes
    return ("done", span_bytes(request.host), offset_in(copy.span, request.host),
            request.head_bytes, request.method, span_bytes(request.target),
            offset_in(copy.span, request.target), length, bool(request.chunked),
            bool(request.dns_body))


def read_http_chunk(bytes data not None):
    """Returns (state, bytes of the chunk with its frame, last?)."""
    cdef _Copy copy = _Copy(data)
    cdef uint32_t used = 0
    cdef c_bool last = False
    state = zn_http_chunk(copy.span, &used, &last)
    if state != ZN_DONE:
        return PARSE_STATES[state], 0, False
    return "done", used, bool(last)


def read_http_chunks(bytes data not None, size_t most):
    """Returns (state, content of the chunks, all of it?)."""
    cdef _Copy copy = _Copy(data)
    cdef bytearray room = bytearray(most)
    cdef zn_span content
    cdef c_bool whole
    state = zn_http_join_chunks(copy.span, <uint8_t *><char *>room, most, &content, &whole)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", False
    return "done", span_bytes(content), bool(whole)


# ---- DNS -----------------------------------------------------------------------------------------

cdef tuple question_fields(zn_parse state, const zn_dns_question *question, size_t start):
    """Returns (state, name as text, offset of the name, bytes read, response?, ID, type, class,
    opcode, other names asked?). start: offset of the message."""
    if state == ZN_DONE and question.name_odd:
        state = ZN_MALFORMED
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", None, 0, False, 0, 0, 0, 0, False
    name = PyBytes_FromStringAndSize(<const char *>question.name, question.name_bytes)
    wire = len(name) + 2 if name else 1
    return ("done", name, start + question.end - 4 - wire, start + question.end,
            bool(question.response), question.id, question.type, question.klass, question.opcode,
            bool(question.more))


def read_dns(bytes data not None, *, bint whole=True):
    """Returns the fields of a message's first question."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_question question
    memset(&question, 0, sizeof(question))
    state = zn_dns_question_parse(copy.span, whole, &question)
    return question_fields(state, &question, 0)


def read_dns_stream(bytes data not None):
    """Returns (state, bytes read, [fields of a question, ...]) of the messages of a TCP stream, up
    to the first that is cut or malformed. Messages without a question are passed over."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_question question
    cdef zn_span left
    cdef size_t at = 0, used = 0
    cdef zn_parse state = ZN_DONE
    questions = []
    while at < copy.span.n:
        left.p, left.n = copy.span.p + at, copy.span.n - at
        state = zn_dns_tcp_question_parse(left, &question, &used)
        fields = question_fields(state, &question, at + 2)
        if fields[0] not in ("done", "other") or (at == 0 and state == ZN_OTHER):
            return fields[0], at, questions
        if state == ZN_DONE:
            questions.append(fields)
        if used > left.n:
            return "need_more", at, questions
        at += used
    return "done" if at > 0 else "need_more", at, questions


def read_doh(bytes target not None):
    """Returns the fields of the question in the target of a request."""
    cdef _Copy copy = _Copy(target)
    cdef uint8_t message[ZN_DOH_MESSAGE_MAX]
    cdef zn_dns_question question
    cdef c_bool whole
    memset(&question, 0, sizeof(question))
    decoded = zn_doh_parameter(copy.span, message, &whole)
    state = ZN_OTHER if decoded.n == 0 else zn_dns_question_parse(decoded, whole, &question)
    return question_fields(state, &question, 0)


def read_dns_answers(bytes data not None, *, bint whole=True):
    """Returns (state, addresses of the answers)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_addresses addresses
    state = zn_dns_read_addresses(copy.span, whole, &addresses)
    return PARSE_STATES[state], tuple([address_from(&addresses.at[i]) for i in range(addresses.n)])


cdef object time_or_none(int64_t t_ns):
    return None if t_ns == ZN_DNSTAP_NO_TIME else t_ns


def read_dnstap(bytes data not None):
    """Returns (state, type, protocol, client, server, server's port, query's time, response's time,
    query, its offset, response, its offset)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dnstap found
    memset(&found, 0, sizeof(found))
    state = zn_dnstap_parse(copy.span, &found)
    if state != ZN_DONE:
        return PARSE_STATES[state], 0, 0, None, None, 0, None, None, b"", None, b"", None
    return ("done", found.type, found.socket_protocol,
            address_from(&found.client) if found.has_client else None,
            address_from(&found.server) if found.has_server else None, found.server_port,
            time_or_none(found.query_ns), time_or_none(found.response_ns),
            span_bytes(found.query), offset_in(copy.span, found.query),
            span_bytes(found.response), offset_in(copy.span, found.response))


def read_frame_stream(bytes data not None):
    """Returns (state, type, content is dnstap?) of a control frame's payload."""
    cdef _Copy copy = _Copy(data)
    cdef uint32_t kind = 0
    cdef c_bool dnstap = False
    state = zn_fstrm_control_parse(copy.span, &kind, &dnstap)
    if state != ZN_DONE:
        return PARSE_STATES[state], 0, False
    return "done", kind, bool(dnstap)


# ---- ICMP ----------------------------------------------------------------------------------------

cdef object quote_of(const zn_icmp_quote *quote):
    if <int>quote.kind == 0:
        return None
    return (ICMP_QUOTED[<int>quote.kind], address_from(&quote.src), address_from(&quote.dst),
            quote.protocol, quote.length, quote.hops, tuple(quote.port), quote.sequence,
            quote.echo_id, bool(quote.more_fragments))


def read_icmp(bytes data not None, bint v6):
    """Returns (state, kind, type, code, ID, sequence, MTU, pointer, gateway, quote)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_icmp found
    cdef zn_addr unset
    state = zn_icmp_parse(copy.span, v6, &found)
    memset(&unset, 0, sizeof(unset))
    gateway = address_from(&found.gateway)
    return (PARSE_STATES[state], ICMP_KINDS[<int>found.kind], found.type, found.code, found.id,
            found.sequence, found.mtu, found.pointer,
            None if gateway == address_from(&unset) else gateway, quote_of(&found.quote))


# ---- first bytes ---------------------------------------------------------------------------------

def read_prefix(bytes data not None):
    """Returns (state, length of the prefix, which may exceed the data)."""
    cdef _Copy copy = _Copy(data)
    cdef size_t used = 0
    state = zn_proxy_or_starttls_prefix_skip(copy.span, &used)
    return PARSE_STATES[state], used if state == ZN_DONE else 0


def read_nameless(bytes data not None, later, bint from_client):
    """Returns (protocols whose opening the bytes are, no name comes?). later: segments of the
    client behind them."""
    cdef _Copy copy = _Copy(data)
    cdef zn_nameless found
    memset(&found, 0, sizeof(found))
    zn_nameless_open(&found, copy.span, from_client)
    for segment in later:
        copy = _Copy(segment)
        zn_nameless_hear(&found, copy.span)
    names = []
    cdef unsigned row = 0
    while zn_nameless_name(row) != NULL:
        if found.opened >> row & 1:
            names.append(zn_nameless_name(row).decode().lower().replace("_", "-"))
        row += 1
    return tuple(names), bool(found.known)


def read_signature(bytes data not None):
    """Returns the service that a TCP segment's start looks like, or None."""
    cdef _Copy copy = _Copy(data)
    return SIGNATURES[<int>zn_service_signature_of(copy.span)]


def read_datagram_kind(bytes data not None, size_t wire):
    """Returns (kind that a datagram looks like or None, SSRC, sequence number)."""
    cdef _Copy copy = _Copy(data)
    found = zn_datagram_signature_of(copy.span, wire)
    return DATAGRAM_KINDS[<int>found.kind], found.source, found.sequence
