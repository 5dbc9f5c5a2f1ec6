/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/doh.h"
#include "proto/http.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the bytes as the rest of a long head, line by line. */
static void read_rest(zn_span bytes, bool inside)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    zn_http_rest kind = ZN_HTTP_REST_FIELDS;
    while (zn_cursor_left(&c) > 0 && kind != ZN_HTTP_REST_END) {
        zn_cursor rest = c;
        zn_span host = {bytes.p, 0};
        size_t used;
        if (zn_http_next_field(zn_cursor_rest(&rest), inside, &used, &kind, &host) != ZN_DONE)
            return;
        if (used == 0)
            __builtin_trap();
        inside = kind == ZN_HTTP_REST_LINE;
        zn_cursor_skip(&c, used);
    }
    if (!zn_cursor_ok(&c))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const zn_hash_key key = {1, 2};
    zn_span head = {data, size};
    zn_http_request request;
    uint8_t message[ZN_DOH_MESSAGE_MAX];
    uint8_t content[64];
    zn_span joined, agent;
    bool cut = size % 2 != 0, last, whole;
    uint32_t used;
    zn_http_methods allowed = size % 4 < 2 ? ZN_HTTP_REGISTERED : ZN_HTTP_ANY;
    zn_parse state = zn_http_request_head(head, cut, allowed, &request);
    if (state != ZN_OTHER && allowed == ZN_HTTP_REGISTERED && !zn_http_looks_like_request(head))
        __builtin_trap();
    if (state == ZN_DONE && request.head_bytes > size)
        __builtin_trap();
    if (zn_http_chunk(head, &used, &last) == ZN_DONE && used < 3)
        __builtin_trap();
    read_rest(head, cut);
    if (zn_http_user_agent(head, &agent) == ZN_DONE && agent.n > size)
        __builtin_trap();
    if (state == ZN_DONE && zn_doh_parameter(request.target, message, &whole).n > sizeof message)
        __builtin_trap();
    if (zn_http_join_chunks(head, content, sizeof content, &joined, &whole) == ZN_DONE &&
        joined.n > sizeof content)
        __builtin_trap();
    (void)zn_hash64(&key, request.host.p, request.host.n);
    return 0;
}
