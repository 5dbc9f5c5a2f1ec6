/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host of an HTTP/1.x request (RFC 9110 7.2, RFC 9112 3): the Host field, or the authority of an
 * absolute-form or CONNECT target, which RFC 9112 3.2.2 puts before the Host field.
 */
#ifndef ZN_PROTO_HTTP_H
#define ZN_PROTO_HTTP_H

#include "base/cursor.h"

#define ZN_HTTP_HEAD_MAX 16384 /* longest request head looked at */

typedef struct zn_http_request {
    zn_span host;      /* as sent, port and all; empty when the request names none. Borrows. */
    uint16_t method;   /* Tstat's http_t: 2 POST, 1 any other (its further numbers are contents) */
    size_t head_bytes; /* request line, fields and the empty line */
    uint64_t body_bytes; /* Content-Length, 0 when absent */
    bool body_unknown;   /* chunked, CONNECT or an upgrade: where the next request is, is unknown */
} zn_http_request;

/* True when these bytes can be the start of a request: a method of RFC 9110/5789/4918 and a space,
 * or a beginning of one where fewer bytes are there. */
bool zn_http_looks_like_request(zn_span bytes);

/*
 * Parses the head of a request. Returns ZN_DONE with *out once the empty line is there,
 * ZN_NEED_MORE, ZN_MALFORMED (two different Host fields, a head longer than ZN_HTTP_HEAD_MAX) or
 * ZN_OTHER.
 */
zn_parse zn_http_request_head(zn_span head, zn_http_request *out);

#endif
