/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP/1.x messages (RFC 9112) for anonymized packets: see build/build.h.
 *
 * Written of a request:
 *   - empty lines in front of it, and the end of each line, as they are;
 *   - a registered method (another one as 'x') and the version; blanks as spaces;
 *   - of the target: "/" and 'x'; before it, where the target has them (RFC 9112 3.2.2, 3.2.3), a
 *     registered scheme in lower case (another one as 'x'), 'x' and "@" for user information, and
 *     the authority as the Host;
 *   - Host, if there is such a field: the request's host with its port, in lower case, when the
 *     choice has names and it is a name (build/build_name.h); otherwise, and where a Host field
 *     differs from the request's host, which its target may name, zn_build_masked_name over it;
 *   - Content-Length with its digits, or empty if its length is not known, Transfer-Encoding if the
 *     body comes in chunks, and Upgrade without a value.
 * Of a response: the version, a status of 100 to 599, and its registered phrase (another one as
 * 'x'); Content-Length and Transfer-Encoding likewise.
 * The fields are in this order, whatever their order was, and one field of 'x' replaces all others:
 * their names, number, order and lengths do not show. All fields together have as many bytes as
 * before. If that leaves too few bytes, ends of lines are LF and no blank is behind the colons.
 * A line whose end is not there, and all that follows the empty line, stays zero.
 */
#ifndef ZN_BUILD_BUILD_HTTP_H
#define ZN_BUILD_BUILD_HTTP_H

#include "build/build.h"

/*
 * Builds the head of a request into out[head.n], which is zero. `head` starts as
 * zn_http_request_head takes it, and is whole, or for good cut: its whole lines are built then.
 * Returns false, with all zeros, for what zn_http_request_head does not take as a request (no
 * method, two different hosts, a head that is too long), and where not even one line is whole.
 */
bool zn_build_http_request(zn_span head, const zn_build_choice *choice, uint8_t *out);

/*
 * Builds the head of a response into out[bytes.n], which is zero: the lines up to the empty one, or
 * to the last whole one, of the first ZN_HTTP_HEAD_MAX bytes. Returns false, with all zeros, when
 * the bytes do not start with a whole status line.
 */
bool zn_build_http_response(zn_span bytes, uint8_t *out);

#endif
