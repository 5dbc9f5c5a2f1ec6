/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/http.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const zn_hash_key key = {1, 2};
    zn_span head = {data, size};
    zn_http_request request;
    bool cut = size % 2 != 0, last;
    uint32_t used;
    zn_http_methods allowed = size % 4 < 2 ? ZN_HTTP_REGISTERED : ZN_HTTP_ANY;
    zn_parse state = zn_http_request_head(head, cut, allowed, &request);
    if (state != ZN_OTHER && allowed == ZN_HTTP_REGISTERED && !zn_http_looks_like_request(head))
        __builtin_trap();
    if (state == ZN_DONE && request.head_bytes > size)
        __builtin_trap();
    if (zn_http_chunk(head, &used, &last) == ZN_DONE && used < 3)
        __builtin_trap();
    (void)zn_hash64(&key, request.host.p, request.host.n);
    return 0;
}
