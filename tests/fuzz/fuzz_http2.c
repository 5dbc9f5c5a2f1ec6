/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A client's frames after its preface, to the first that is not whole. */
#include "proto/http2.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const zn_hash_key key = {1, 2};
    static zn_http2_scratch scratch;
    zn_hpack table = {0};
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_http2_unit unit;
    zn_span payload;
    bool whole;
    zn_parse state = ZN_DONE;
    zn_hpack_start(&table);
    while (zn_cursor_ok(&c) && zn_cursor_left(&c) > 0 && (state == ZN_DONE || state == ZN_OTHER)) {
        zn_cursor rest = c;
        state = zn_http2_next(zn_cursor_rest(&rest), &table, &scratch, &unit);
        if ((state == ZN_DONE || state == ZN_OTHER) && unit.used == 0)
            __builtin_trap();
        if (state == ZN_OTHER && unit.host.n != 0)
            __builtin_trap();
        (void)zn_hash64(&key, unit.host.p, unit.host.n);
        (void)zn_hash64(&key, unit.path.p, unit.path.n);
        rest = c;
        if (zn_http2_data(zn_cursor_rest(&rest), 40, &payload, &whole) == ZN_DONE)
            (void)zn_hash64(&key, payload.p, payload.n);
        zn_cursor_skip(&c, unit.used);
    }
    return 0;
}
