# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/proto

cdef extern from "proto/tls.h" nogil:
    ctypedef struct zn_tls_scratch:
        uint8_t bytes[16384]
    ctypedef struct zn_tls_details:
        uint16_t version[15]
        uint8_t versions, protocols
        bint session_id, pre_shared_key, early_data, retry
    ctypedef struct zn_tls_hello:
        zn_span name
        c_bool ech_offered
        size_t consumed
        zn_span cookie
        zn_span transport_parameters
        zn_tls_details details
    zn_parse zn_tls_client_hello(zn_span head, bint cut, zn_tls_scratch *scratch, zn_tls_hello *out)
    zn_parse zn_tls_bare_hello(zn_span head, zn_tls_hello *out)
    zn_parse zn_tls_datagram_hello(zn_span body, size_t declared, zn_tls_hello *out)
    zn_span zn_tls_handshake_bytes(zn_span head, uint8_t *scratch, size_t cap, c_bool *ended)
    size_t zn_tls_handshake_offset(zn_span head, size_t at)
    void zn_tls_read_details(zn_span handshake, zn_tls_details *out)
    zn_parse zn_tls_first_certificate(zn_span handshake, zn_span *certificate)
    zn_parse zn_x509_common_name(zn_span certificate, zn_span *name)


cdef extern from "proto/tls_suite.h" nogil:
    ctypedef struct zn_tls_choice:
        uint16_t suite
        c_bool version_1_3
        size_t message_bytes
    zn_parse zn_tls_server_choice(zn_span handshake, zn_tls_choice *out)
    bint zn_tls_suite_encrypts(uint16_t suite)


cdef extern from "build/build.h" nogil:
    ctypedef struct zn_build_choice:
        c_bool name
        c_bool fingerprint
    void zn_build_masked_name(uint8_t *out, size_t n)


cdef extern from "build/build_tls.h" nogil:
    ctypedef struct zn_build_fingerprint:
        size_t n
        uint8_t bytes[1024]
    bint zn_build_client_hello(zn_span records, const zn_build_choice *choice,
                               zn_tls_scratch *scratch, uint8_t *out)
    bint zn_build_client_hello_message(zn_span message, const zn_build_choice *choice,
                                       uint8_t *out)
    bint zn_build_client_hello_datagram(zn_span body, const zn_build_choice *choice, uint8_t *out)
    bint zn_build_tls_fingerprint(zn_span records, zn_tls_scratch *scratch,
                                  zn_build_fingerprint *out)
    bint zn_build_tls_fingerprint_message(zn_span message, zn_build_fingerprint *out)
    bint zn_build_tls_fingerprint_datagram(zn_span body, zn_build_fingerprint *out)
    ctypedef struct zn_build_certificates:
        uint32_t named, unnamed
    bint zn_build_server_flight(zn_span records, zn_span common_name, zn_tls_scratch *scratch,
                                uint8_t *out, zn_build_certificates *certificates)


cdef extern from "build/build_x509.h" nogil:
    bint zn_build_x509(uint8_t *out, size_t n, zn_span common_name)


cdef extern from "proto/dtls.h" nogil:
    ctypedef struct zn_dtls_fragment:
        uint8_t type
        uint16_t message
        uint32_t length, offset
        zn_span bytes
        c_bool cut
    ctypedef struct zn_dtls_reader:
        pass
    zn_dtls_reader zn_dtls_read(zn_span datagram, bint whole)
    zn_parse zn_dtls_next_fragment(zn_dtls_reader *r, zn_dtls_fragment *out)
    zn_parse zn_dtls_verify_request(zn_span body, zn_span *cookie)


cdef extern from "proto/quic.h" nogil:
    enum:
        ZN_QUIC_TAG_BYTES
    ctypedef enum zn_quic_type:
        ZN_QUIC_INITIAL
    ctypedef struct zn_quic_packet:
        zn_quic_type type
        uint32_t version
        zn_span dcid, scid, header, sealed
        c_bool cut
    ctypedef struct zn_quic_crypto_frame:
        uint64_t offset
        zn_span bytes
    ctypedef struct zn_quic_crypto_frames:
        size_t n
        zn_quic_crypto_frame frame[1]
    zn_parse zn_quic_next_packet(zn_cursor *datagram, zn_quic_packet *out)
    zn_parse zn_quic_read_frames(zn_span plain, zn_quic_crypto_frames *out)
    zn_span zn_quic_user_agent(zn_span parameters)


cdef extern from "proto/quic_crypto.h" nogil:
    ctypedef enum zn_quic_side:
        ZN_QUIC_CLIENT
        ZN_QUIC_SERVER
    ctypedef struct zn_quic_secret:
        pass
    ctypedef struct zn_quic_keys:
        uint8_t key[16]
        uint8_t iv[12]
        uint8_t header_key[16]
    ctypedef struct zn_quic:
        pass
    int zn_quic_open(zn_quic **out, zn_error *err)
    void zn_quic_close(zn_quic *q)
    bint zn_quic_derive(const zn_quic *q, uint32_t version, zn_span first_dcid,
                        zn_quic_secret *sides)
    bint zn_quic_expand(uint32_t version, const zn_quic_secret *side, zn_quic_keys *out)
    zn_parse zn_quic_unseal(zn_quic *q, const zn_quic_keys *keys, const zn_quic_packet *packet,
                            zn_span *plain)
    bint zn_quic_seal(zn_quic *q, const zn_quic_keys *keys, uint8_t *packet, size_t header,
                      size_t n)


cdef extern from "proto/gquic.h" nogil:
    ctypedef struct zn_gquic_packet:
        uint32_t version
        zn_span id
    ctypedef struct zn_gquic_message:
        zn_span name, token
    zn_parse zn_gquic_packet_read(zn_span datagram, c_bool whole, uint32_t version,
                                  zn_gquic_packet *out)
    zn_parse zn_gquic_open(zn_quic *q, const zn_gquic_packet *packet, zn_quic_side sender,
                           zn_span id, zn_span *frames)
    zn_parse zn_gquic_frames_read(const zn_gquic_packet *packet, zn_span frames,
                                  zn_quic_crypto_frames *out)
    zn_parse zn_gquic_hello_read(zn_span bytes, zn_gquic_message *out)


cdef extern from "build/build_quic.h" nogil:
    ctypedef struct zn_build_quic_choice:
        zn_quic_side sender
        const zn_span *key_id
        zn_span crypto
    unsigned zn_build_quic_datagram(zn_quic *q, zn_span datagram, bint whole,
                                    const zn_build_quic_choice *choice, uint8_t *out)


cdef extern from "proto/icmp.h" nogil:
    ctypedef enum zn_icmp_kind:
        pass
    ctypedef enum zn_icmp_quoted:
        pass
    ctypedef struct zn_icmp_quote:
        zn_icmp_quoted kind
        zn_addr src, dst
        size_t bytes
        uint16_t length
        uint8_t protocol, hops, service
        uint16_t id
        c_bool dont_fragment, more_fragments
        uint16_t port[2]
        uint32_t sequence
        uint8_t echo_type
        uint16_t echo_id
    ctypedef struct zn_icmp:
        zn_icmp_kind kind
        c_bool v6
        uint8_t type, code
        uint16_t id, sequence
        zn_addr gateway
        uint32_t mtu, pointer
        zn_icmp_quote quote
    zn_parse zn_icmp_parse(zn_span message, bint v6, zn_icmp *out)


cdef extern from "build/build_icmp.h" nogil:
    ctypedef struct zn_build_icmp_quote:
        zn_addr src, dst
        uint8_t hops, service
        uint16_t id
        uint16_t port[2]
        uint32_t sequence
        uint16_t echo_id
    ctypedef struct zn_build_icmp_choice:
        zn_addr src, dst
        uint32_t wire
        uint16_t echo_id
        zn_addr gateway
        const zn_build_icmp_quote *quote
    void zn_build_icmp(const zn_icmp *message, size_t n, const zn_build_icmp_choice *choice,
                       uint8_t *out)


cdef extern from "proto/http.h" nogil:
    ctypedef struct zn_http_request:
        zn_span host, target
        uint16_t method
        size_t head_bytes
        uint64_t body_bytes
        c_bool body_unknown, chunked, dns_body
    ctypedef enum zn_http_methods:
        ZN_HTTP_REGISTERED
        ZN_HTTP_ANY
    zn_parse zn_http_request_head(zn_span head, bint cut, zn_http_methods allowed,
                                  zn_http_request *out)
    zn_parse zn_http_chunk(zn_span data, uint32_t *used, c_bool *last)
    zn_parse zn_http_join_chunks(zn_span data, uint8_t *room, size_t most, zn_span *content,
                                 c_bool *whole)


cdef extern from "proto/hpack.h" nogil:
    ctypedef struct zn_hpack:
        pass
    ctypedef struct zn_hpack_scratch:
        pass
    ctypedef struct zn_hpack_field:
        zn_span name
        zn_span value
    void zn_hpack_start(zn_hpack *table)
    zn_parse zn_hpack_next(zn_hpack *table, zn_cursor *block, zn_hpack_scratch *scratch,
                           zn_hpack_field *out)


cdef extern from "proto/http2.h" nogil:
    ctypedef struct zn_http2_scratch:
        pass
    ctypedef struct zn_http2_unit:
        size_t used
        bint headers
        bint request
        uint16_t method
        zn_span host
    zn_parse zn_http2_preface(zn_span data, size_t *used)
    zn_parse zn_http2_next(zn_span data, zn_hpack *table, zn_http2_scratch *scratch,
                           zn_http2_unit *out)


cdef extern from "proto/proxy_starttls_prefix.h" nogil:
    zn_parse zn_proxy_or_starttls_prefix_skip(zn_span data, size_t *used)


cdef extern from "proto/nameless.h" nogil:
    ctypedef struct zn_nameless:
        uint32_t opened
        c_bool known
    const char *zn_nameless_name(unsigned row)
    void zn_nameless_open(zn_nameless *n, zn_span data, bint from_client)
    void zn_nameless_hear(zn_nameless *n, zn_span data)


cdef extern from "proto/service_signature.h" nogil:
    ctypedef enum zn_service_signature:
        pass
    ctypedef enum zn_datagram_kind:
        pass
    ctypedef struct zn_datagram_signature:
        zn_datagram_kind kind
        uint32_t source
        uint16_t sequence
    zn_service_signature zn_service_signature_of(zn_span segment)
    zn_datagram_signature zn_datagram_signature_of(zn_span payload, size_t wire)


cdef extern from "proto/doh.h" nogil:
    enum:
        ZN_DOH_MESSAGE_MAX
    zn_span zn_doh_parameter(zn_span target, uint8_t *message, c_bool *whole)


cdef extern from "proto/dnstap.h" nogil:
    enum:
        ZN_DNSTAP_NO_TIME
    ctypedef struct zn_dnstap:
        uint64_t type, socket_protocol
        c_bool has_client, has_server
        zn_addr client, server
        uint64_t server_port
        int64_t query_ns, response_ns
        zn_span query, response
    zn_parse zn_dnstap_parse(zn_span frame, zn_dnstap *out)
    zn_parse zn_fstrm_control_parse(zn_span payload, uint32_t *type, c_bool *dnstap)


cdef extern from "proto/dns.h" nogil:
    ctypedef struct zn_dns_question:
        uint16_t id
        bint response
        uint8_t opcode
        uint16_t type
        uint16_t klass "class"
        uint8_t name_bytes
        uint8_t name[254]
        bint more
        bint name_odd
        uint16_t end
    zn_parse zn_dns_question_parse(zn_span message, bint whole, zn_dns_question *out)
    zn_parse zn_dns_tcp_question_parse(zn_span data, zn_dns_question *out, size_t *used)
    ctypedef struct zn_dns_addresses:
        size_t n
        zn_addr at[32]
    zn_parse zn_dns_read_addresses(zn_span message, bint whole, zn_dns_addresses *out)


cdef extern from "proto/attribute_readers.h" nogil:
    ctypedef struct zn_attribute_text:
        uint8_t text[253]
        uint8_t n
        zn_span place
        c_bool is_cut
    ctypedef struct zn_attribute_row:
        zn_parse (*read)(zn_span message, zn_attribute_text *out)
    const zn_attribute_row *zn_attribute_row_of(unsigned attribute)
