/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host of an HTTP/2 request in clear (RFC 9113): `:authority`, or else `host`, in the header blocks
 * that a client sends after its preface.
 */
#ifndef ZN_PROTO_HTTP2_H
#define ZN_PROTO_HTTP2_H

#include "proto/doh.h"
#include "proto/hpack.h"

#define ZN_HTTP2_BLOCK_MAX 16384u /* longest header block looked at, over all its frames */

/* Room for a header block whose frames are put together; one a parser thread, reused. */
typedef struct zn_http2_scratch {
    uint8_t block[ZN_HTTP2_BLOCK_MAX];
    zn_hpack_scratch hpack;
    uint8_t authority[ZN_HPACK_BYTES], host[ZN_HPACK_BYTES], path[ZN_HPACK_BYTES];
    uint8_t agent[ZN_HPACK_BYTES];
} zn_http2_scratch;

/* The content of one frame, or of a header block over several. */
typedef struct zn_http2_unit {
    size_t used;     /* bytes of the stream up to its end, which may lie after `bytes` */
    bool headers;    /* it is a header block; set for ZN_NEED_MORE as well */
    bool request;    /* it begins a request, and is not its trailer */
    uint16_t method; /* Tstat's http_t, as in proto/http.h */
    zn_span host;    /* as sent; empty when the request names none. Borrows the scratch. */
    zn_span path;    /* as sent. Borrows the scratch. */
    zn_span agent;   /* user-agent, as sent; empty if there are two. Borrows the scratch. */
    uint32_t stream;
    bool get;      /* it is a GET, whose path may have a DNS message (RFC 8484) */
    bool dns_body; /* the request's body is a DNS message */
    bool is_data;  /* it is a DATA frame */
} zn_http2_unit;

/* ZN_DONE when the bytes start with the client's preface, with its length in *used; ZN_NEED_MORE
 * when they are a beginning of it; else ZN_OTHER. */
zn_parse zn_http2_preface(zn_span bytes, size_t *used);

/*
 * Reads the frame at the start of `bytes`, with all CONTINUATION frames that belong to it. Returns
 * ZN_DONE with *out; or ZN_NEED_MORE; or ZN_MALFORMED, after which the rest of the connection
 * cannot be read: for frames that RFC 9113 does not allow here, for a block longer than
 * ZN_HTTP2_BLOCK_MAX, and for a block that zn_hpack_next rejects. Returns ZN_OTHER for a request
 * with two different hosts, or with one host twice; the connection continues after out->used.
 */
zn_parse zn_http2_next(zn_span bytes, zn_hpack *table, zn_http2_scratch *scratch,
                       zn_http2_unit *out);

/* Reads the payload of the DATA frame at the start of `bytes` (RFC 9113 6.1), up to `most` bytes.
 * *whole is true if that is the rest of the body. Returns ZN_DONE with *payload, ZN_NEED_MORE, or
 * ZN_MALFORMED for a wrong padding. */
zn_parse zn_http2_data(zn_span bytes, size_t most, zn_span *payload, bool *whole);

#endif
