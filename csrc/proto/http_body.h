/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The body of an HTTP/1.1 request that comes in chunks (RFC 9112 7.1), for where it ends. */
#ifndef ZN_PROTO_HTTP_BODY_H
#define ZN_PROTO_HTTP_BODY_H

#include "util/cursor.h"

/*
 * The chunk that the bytes start with: ZN_DONE with the bytes that it takes, which may be more than
 * are there; *last: the body ends with it. ZN_NEED_MORE: its size, or the trailer fields behind the
 * last one, are not whole. ZN_OTHER: it is no chunk.
 */
zn_parse zn_http_chunk(zn_span bytes, uint32_t *used, bool *last);

#endif
