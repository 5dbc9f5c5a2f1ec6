/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of dnstap, in the encoding of Protocol Buffers (dnstap.proto of dnstap.info), and the
 * control frames of Frame Streams, which is the format of a file or socket of dnstap.
 */
#ifndef ZN_PROTO_DNSTAP_H
#define ZN_PROTO_DNSTAP_H

#include "util/addr.h"
#include "util/cursor.h"

#define ZN_DNSTAP_NO_TIME (-1)

/* Types of messages whose query address is the client of the server that logs. A server is itself
 * the sender of the queries of the other types. */
enum {
    ZN_DNSTAP_AUTH_QUERY = 1,
    ZN_DNSTAP_AUTH_RESPONSE = 2,
    ZN_DNSTAP_CLIENT_QUERY = 5,
    ZN_DNSTAP_CLIENT_RESPONSE = 6
};

/* A message. Spans borrow the frame. */
typedef struct zn_dnstap {
    uint64_t type;            /* dnstap.Message.Type */
    uint64_t socket_protocol; /* dnstap.SocketProtocol; 0: none */
    bool has_client, has_server;
    zn_addr client, server; /* query_address, response_address */
    uint64_t server_port;
    int64_t query_ns, response_ns; /* ns since the Unix epoch, or ZN_DNSTAP_NO_TIME */
    zn_span query, response;       /* DNS messages; empty: none */
} zn_dnstap;

/* Parses a data frame. Returns ZN_DONE with *out; ZN_OTHER if the frame holds no message; or
 * ZN_MALFORMED. */
zn_parse zn_dnstap_parse(zn_span frame, zn_dnstap *out);

typedef enum zn_fstrm_control {
    ZN_FSTRM_ACCEPT = 1,
    ZN_FSTRM_START = 2,
    ZN_FSTRM_STOP = 3,
    ZN_FSTRM_READY = 4,
    ZN_FSTRM_FINISH = 5
} zn_fstrm_control;

/* Parses the payload of a control frame into *type. Sets *dnstap to false if the frame names types
 * of content, without dnstap's. Returns ZN_DONE or ZN_MALFORMED. */
zn_parse zn_fstrm_control_parse(zn_span payload, uint32_t *type, bool *dnstap);

#endif
