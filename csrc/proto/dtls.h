/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake messages in the clear of a DTLS datagram (RFC 6347 4, RFC 9147 4): records of epoch
 * 0, and in them fragments of messages, which may come in any order and more than once.
 */
#ifndef ZN_PROTO_DTLS_H
#define ZN_PROTO_DTLS_H

#include "util/cursor.h"

enum { ZN_DTLS_CLIENT_HELLO = 1, ZN_DTLS_HELLO_VERIFY_REQUEST = 3 };

typedef struct zn_dtls_fragment {
    uint8_t type;     /* of the message */
    uint16_t message; /* its number */
    uint32_t length;  /* of the whole message's body */
    uint32_t offset;  /* of this part in it */
    zn_span bytes;    /* borrows the datagram */
    bool cut;         /* the capture lacks the end of this part */
} zn_dtls_fragment;

/* The state of reading a datagram. */
typedef struct zn_dtls_reader {
    zn_cursor datagram;
    zn_cursor record; /* the rest of the current handshake record */
} zn_dtls_reader;

/* `whole`: no byte of the datagram is missing from the capture. */
zn_dtls_reader zn_dtls_read(zn_span datagram, bool whole);

/* The next handshake fragment. ZN_DONE with *out; ZN_OTHER when none follows, or no DTLS record;
 * ZN_NEED_MORE when the capture cut its header; ZN_MALFORMED when lengths contradict each other. */
zn_parse zn_dtls_next_fragment(zn_dtls_reader *r, zn_dtls_fragment *out);

/* The cookie in the body of a HelloVerifyRequest (RFC 6347 4.2.1); borrows. */
zn_parse zn_dtls_verify_request(zn_span body, zn_span *cookie);

#endif
