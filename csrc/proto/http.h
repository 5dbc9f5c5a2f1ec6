/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host of an HTTP/1.x request (RFC 9110 7.2, RFC 9112 3): the Host field, or the authority of
 * an absolute-form or CONNECT target, which RFC 9112 3.2.2 puts before the Host field.
 */
#ifndef ZN_PROTO_HTTP_H
#define ZN_PROTO_HTTP_H

#include "util/cursor.h"

#define ZN_HTTP_HEAD_MAX 16384 /* longest request head that is read at once */

typedef struct zn_http_request {
    zn_span host;      /* as sent, port and all; empty when the request names none. Borrows. */
    zn_span target;    /* of the request line, as sent. Borrows. */
    uint16_t method;   /* Tstat's http_t: 2 POST, 1 any other (its further numbers are contents) */
    size_t head_bytes; /* request line, fields, empty line; of a cut head: as much as is there */
    uint64_t body_bytes; /* Content-Length, 0 when absent */
    bool body_unknown;   /* neither a length nor chunks say where the body ends, or that part of the
                          head is cut */
    bool chunked;        /* zn_http_chunk finds where the body ends */
    bool no_content;     /* GET, HEAD or CONNECT: no body, also where the head is cut */
    bool goes_on;  /* the head is longer than ZN_HTTP_HEAD_MAX; zn_http_next_field reads the rest */
    bool too_long; /* malformed only because the head is longer and names no host so far */
    bool dns_body; /* the body is a DNS message (RFC 8484) */
    bool switches; /* CONNECT or an upgrade: another protocol may follow */
} zn_http_request;

/* Words that are methods. */
typedef enum zn_http_methods {
    ZN_HTTP_REGISTERED, /* methods of IANA's registry */
    ZN_HTTP_ANY         /* any token (RFC 9110 9.1): where a request is known to begin */
} zn_http_methods;

/* True when these bytes can be the start of a request: a registered method and a space, or a
 * beginning of that where fewer bytes are there. Empty lines in front are passed over, as servers
 * do (RFC 9112 2.2). */
bool zn_http_looks_like_request(zn_span bytes);

/* True when these bytes start with a registered method and a space, or are a beginning of that. */
bool zn_http_is_known_method(zn_span bytes);

/* True when these bytes start with a whole request line. */
bool zn_http_has_request_line(zn_span bytes);

/* True when these bytes start with a whole request line whose first word is not registered. Empty
 * lines in front are passed over. */
bool zn_http_has_other_method(zn_span bytes);

/* True for a byte that a token can hold (RFC 9110 5.6.2). */
bool zn_http_is_token_byte(uint8_t byte);

/*
 * Parses the head of a request. Returns ZN_DONE with *out once the empty line is there,
 * ZN_NEED_MORE, ZN_MALFORMED (two different Host fields, no host in the first ZN_HTTP_HEAD_MAX
 * bytes) or ZN_OTHER. A longer head is ZN_DONE with out->goes_on. `cut`: the capture lacks the
 * head's rest for good; it is then ZN_DONE as well when the request line names the host, or one
 * whole Host line is there and nothing after it says otherwise.
 */
zn_parse zn_http_request_head(zn_span head, bool cut, zn_http_methods allowed,
                              zn_http_request *out);

/* The rest of a head that is longer than ZN_HTTP_HEAD_MAX. */
typedef enum zn_http_rest {
    ZN_HTTP_REST_FIELDS, /* another field follows */
    ZN_HTTP_REST_LINE,   /* the bytes end in the middle of a field whose content does not matter */
    ZN_HTTP_REST_HOST,   /* a Host field was read */
    ZN_HTTP_REST_BODY,   /* a field or a folded line that may change where the request ends */
    ZN_HTTP_REST_END     /* the empty line was read */
} zn_http_rest;

/*
 * Reads the next line of a head, or the rest of a line of which `inside` says that it has begun.
 * Returns ZN_DONE with its bytes in *used, its kind, and *host for ZN_HTTP_REST_HOST; or
 * ZN_NEED_MORE.
 */
zn_parse zn_http_next_field(zn_span bytes, bool inside, size_t *used, zn_http_rest *kind,
                            zn_span *host);

/* Finds the value of the User-Agent field in a whole head, without blanks at its ends. Returns
 * ZN_DONE with *agent (borrows), ZN_OTHER if there is no such field, or ZN_MALFORMED if there are
 * two, if a folded line continues it, or if the head is not whole. */
zn_parse zn_http_user_agent(zn_span head, zn_span *agent);

/* ---- the body of a request that comes in chunks (RFC 9112 7.1), for where it ends ---- */

/*
 * Reads the chunk at the start of the bytes. Returns ZN_DONE, with the length of the chunk in
 * *used, which may exceed the bytes, and with *last true if the chunk ends the body. Returns
 * ZN_NEED_MORE if the chunk's size, or the trailer fields behind the last chunk, are incomplete.
 * Returns ZN_OTHER if the bytes are not a chunk.
 */
zn_parse zn_http_chunk(zn_span bytes, uint32_t *used, bool *last);

/*
 * Copies the content of the chunks at the start of the bytes to `room`, up to `most` bytes. Returns
 * ZN_DONE with *content, and with *whole false if the room is full; ZN_NEED_MORE if the body's end
 * is missing; or ZN_OTHER if the bytes are not chunks.
 */
zn_parse zn_http_join_chunks(zn_span bytes, uint8_t *room, size_t most, zn_span *content,
                             bool *whole);

#endif
