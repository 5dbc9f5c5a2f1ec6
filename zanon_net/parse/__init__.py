# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The parsers one by one: bytes in, a typed result out, no flow and no decision.

Results are as the client sent them and not anonymized. If bytes are not read, no error is raised,
and the result's `state` gives the reason. Offsets count in bytes from the start of the data. The
parsers are the engine's own.
"""

from zanon_net.parse.attributes import (
    Attribute,
    attribute,
)
from zanon_net.parse.dns import (
    DnsAnswers,
    DnsQuestion,
    DnsQuestions,
    Dnstap,
    FrameStreamControl,
    dns_answers,
    dns_question,
    dns_stream,
    dnstap_message,
    doh_question,
    frame_stream_control,
)
from zanon_net.parse.first_bytes import (
    DatagramKind,
    IcmpMessage,
    IcmpQuote,
    NamelessProtocol,
    StreamPrefix,
    datagram_kind,
    icmp_message,
    nameless_protocol,
    service_signature,
    stream_prefix,
)
from zanon_net.parse.http import (
    HeaderBlock,
    Http2Hosts,
    HttpBody,
    HttpChunk,
    HttpHost,
    h2_hosts,
    hpack_blocks,
    http_chunk,
    http_chunks,
    http_host,
)
from zanon_net.parse.quic import (
    GquicHello,
    QuicInitial,
    QuicPacket,
    QuicPackets,
    QuicServerInitial,
    QuicType,
    gquic_hello,
    quic_initial,
    quic_packets,
    quic_server_initial,
)
from zanon_net.parse.result import (
    Parsed,
    State,
    hostname,
)
from zanon_net.parse.tls import (
    Certificate,
    ClientHello,
    CommonName,
    DtlsClientHello,
    DtlsCookie,
    DtlsFragment,
    DtlsFragments,
    ServerHello,
    dtls_client_hello,
    dtls_cookie,
    dtls_fragments,
    tls_certificate,
    tls_client_hello,
    tls_server_hello,
    x509_common_name,
)

__all__ = [
    "Attribute",
    "Certificate",
    "ClientHello",
    "CommonName",
    "DatagramKind",
    "DnsAnswers",
    "DnsQuestion",
    "DnsQuestions",
    "Dnstap",
    "DtlsClientHello",
    "DtlsCookie",
    "DtlsFragment",
    "DtlsFragments",
    "FrameStreamControl",
    "GquicHello",
    "HeaderBlock",
    "Http2Hosts",
    "HttpBody",
    "HttpChunk",
    "HttpHost",
    "IcmpMessage",
    "IcmpQuote",
    "NamelessProtocol",
    "Parsed",
    "QuicInitial",
    "QuicPacket",
    "QuicPackets",
    "QuicServerInitial",
    "QuicType",
    "ServerHello",
    "State",
    "StreamPrefix",
    "attribute",
    "datagram_kind",
    "dns_answers",
    "dns_question",
    "dns_stream",
    "dnstap_message",
    "doh_question",
    "dtls_client_hello",
    "dtls_cookie",
    "dtls_fragments",
    "frame_stream_control",
    "gquic_hello",
    "h2_hosts",
    "hostname",
    "hpack_blocks",
    "http_chunk",
    "http_chunks",
    "http_host",
    "icmp_message",
    "nameless_protocol",
    "quic_initial",
    "quic_packets",
    "quic_server_initial",
    "service_signature",
    "stream_prefix",
    "tls_certificate",
    "tls_client_hello",
    "tls_server_hello",
    "x509_common_name",
]


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
