/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP/1.x messages (RFC 9112) for anonymized packets (see build/build.h).
 *
 * A request has these parts:
 *   - empty lines in front of it, and the end of each line, unchanged;
 *   - the version and a registered method; 'x' replaces any other method; blanks become spaces;
 *   - the target as "/" and 'x'. Before it, if the target has them (RFC 9112 3.2.2, 3.2.3): a
 *     registered scheme in lower case, or 'x'; 'x' and "@" for user information; the authority,
 *     written as the Host field is;
 *   - Host, if there is such a field: the request's host with its port in lower case, if the choice
 *     shows names and the host is a name (build/build_name.h). Otherwise zn_build_masked_name
 *     replaces it. The mask also replaces a Host field that differs from the host in the target;
 *   - Content-Length with its digits, or empty if the length is unknown; Transfer-Encoding if the
 *     body comes in chunks; Upgrade without a value.
 * A response has the version, a status of 100 to 599, its registered phrase (or 'x'), and the
 * fields Content-Length and Transfer-Encoding of a request.
 *
 * The fields have this order in all heads, and one field of 'x' replaces all other fields. So the
 * names, number, order and lengths of other fields do not show. All fields together keep their
 * length. If the length is too short, lines end with LF and no blank follows a colon. A line
 * without its end, and all bytes behind the empty line, stay zeros.
 */
#ifndef ZN_BUILD_BUILD_HTTP_H
#define ZN_BUILD_BUILD_HTTP_H

#include "build/build.h"

/*
 * Builds the head of a request into out[head.n], which is zero. `head` starts as
 * zn_http_request_head takes it. It is whole, or the capture has cut it; then its whole lines are
 * built. Returns false, with all zeros, if no line is whole or if zn_http_request_head does not
 * take the head: it has no method, two different hosts, or too many bytes.
 */
bool zn_build_http_request(zn_span head, const zn_build_choice *choice, uint8_t *out);

/*
 * Builds the head of a response into out[bytes.n], which is zero: the lines up to the empty line,
 * or up to the last whole line, in the first ZN_HTTP_HEAD_MAX bytes. Returns false, with all zeros,
 * if the bytes do not start with a whole status line.
 */
bool zn_build_http_response(zn_span bytes, uint8_t *out);

#endif
