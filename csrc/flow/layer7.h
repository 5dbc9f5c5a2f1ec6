/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a TCP flow has beside its entry when its table was asked for ZN_SET_LAYER7. flow/tcp counts
 * the messages; the rest is analyzer/layer7's.
 */
#ifndef ZN_FLOW_LAYER7_H
#define ZN_FLOW_LAYER7_H

#include "util/base.h"

#define ZN_LAYER7_VERSIONS 15 /* of a ClientHello's list that are kept: what Tstat prints */

/*
 * Most segments do not touch it: what they change is kept in their zn_flow_side, where messages,
 * message_is_next and sent_is_next tell what is to be added to or taken instead of these three
 * here. Of the rest, the first cache line is what a packet behind the handshake touches.
 */
typedef struct zn_flow_layer7 {
    int64_t appdata_ns[2];   /* by tuple index, as everything with two; 0: none */
    uint32_t messages[2];    /* ended by PSH or FIN */
    uint32_t message_seq[2]; /* where the last one ended */
    uint32_t sent_seq[2];    /* where the last segment that was not sent before ended */
    uint32_t certificate;    /* name entry of the server certificate's name, 0: none */
    uint32_t server_seq;     /* where the server's hello starts */
    uint32_t stream;         /* its bytes from there, being collected; 0: none */
    uint16_t server_version; /* 0: no ServerHello */
    uint8_t state;           /* analyzer/layer7's */
    uint8_t segments;        /* segments put into `stream` */
    uint8_t version_count;
    uint8_t alpn[2];
    uint8_t session; /* bits of Tstat's tls_session_stat */
    char http_status[3];

    int64_t last_handshake_ns[2];
    uint32_t appdata_seq[2]; /* behind the ISN, of the segment that began with application data */
    uint32_t http_requests, http_responses;
    uint16_t versions[ZN_LAYER7_VERSIONS];
} zn_flow_layer7;
_Static_assert(sizeof(zn_flow_layer7) == 128, "two cache lines");

#endif
