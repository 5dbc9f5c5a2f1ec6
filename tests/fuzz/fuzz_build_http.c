/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last bit of byte 0: whether the host may be shown. Then a head, taken as a request's and as a
 * response's. */
#include "build/build_http.h"
#include "proto/ascii.h"
#include "proto/http.h"
#include "util/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is)
{
    if (!is)
        __builtin_trap();
}

/* The parser reads of what was built what it reads of the original: all but a masked host. */
static void compare(zn_span head, zn_span built, bool name, bool cut)
{
    zn_http_request before, after;
    zn_parse state = zn_http_request_head(head, cut, ZN_HTTP_ANY, &before);
    expect(zn_http_request_head(built, cut, ZN_HTTP_ANY, &after) == state);
    expect(before.method == after.method && before.head_bytes == after.head_bytes);
    expect(before.body_bytes == after.body_bytes && before.body_unknown == after.body_unknown);
    expect(before.chunked == after.chunked && before.no_content == after.no_content);
    expect(before.switches == after.switches && before.host.n == after.host.n);
    for (size_t i = 0; i < after.host.n; i++) {
        uint8_t byte = zn_ascii_first(zn_span_after(after.host, i));
        expect(byte == zn_ascii_lower(byte));
        expect(name || byte == 'x' || byte == '.' || after.host.n - i < 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_build_choice choice = {.name = (zn_cursor_u8(&c) & 1) != 0};
    zn_span head = zn_cursor_rest(&c);
    uint8_t *out = zn_heap_alloc(head.n + 1);
    zn_span built = {out, head.n};
    expect(out != NULL);
    memset(out, 0, head.n + 1);
    if (zn_build_http_request(head, &choice, out)) {
        compare(head, built, choice.name, true);
        compare(head, built, choice.name, false);
        memset(out, 0, head.n);
    }
    if (zn_build_http_response(head, out))
        expect(zn_cursor_over_span(built, true).p == out && out[0] == 'H');
    else
        for (size_t i = 0; i < head.n; i++)
            expect(out[i] == 0);
    expect(out[head.n] == 0);
    zn_heap_free(out);
    return 0;
}
