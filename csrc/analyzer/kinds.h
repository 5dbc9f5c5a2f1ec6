/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers in which analyzers report the source of a name, the service of a TCP flow, and the
 * type of a UDP flow. */
#ifndef ZN_ANALYZER_KINDS_H
#define ZN_ANALYZER_KINDS_H

typedef enum zn_name_source {
    ZN_SOURCE_NONE,
    ZN_SOURCE_TLS,
    ZN_SOURCE_QUIC,
    ZN_SOURCE_HTTP,
    ZN_SOURCE_DNS
} zn_name_source;

/* Bits of Tstat's con_t. */
enum {
    ZN_CONNECTION_HTTP = 1,
    ZN_CONNECTION_SMTP = 1024,
    ZN_CONNECTION_POP3 = 2048,
    ZN_CONNECTION_IMAP = 4096,
    ZN_CONNECTION_TLS = 8192,
    ZN_CONNECTION_SSH = 32768
};
/* Tstat's types of UDP flows. */
enum {
    ZN_UDP_OTHER = 0,
    ZN_UDP_DNS = 19,
    ZN_UDP_MPEG_TS = 22,
    ZN_UDP_TEREDO = 24,
    ZN_UDP_SIP = 25,
    ZN_UDP_DTLS = 26,
    ZN_UDP_QUIC = 27,     /* once both sides spoke the same version */
    ZN_UDP_RTP_ONCE = 28, /* one datagram looked like RTP or RTCP */
    ZN_UDP_RTP = 29       /* a second one of the same source followed it */
};

#endif
