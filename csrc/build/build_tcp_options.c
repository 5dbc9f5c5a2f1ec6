/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_tcp_options.h"

#include <endian.h>

enum {
    OPTION_END = 0,
    OPTION_NOP = 1,
    OPTION_MSS = 2,
    OPTION_WINDOW_SCALE = 3,
    OPTION_SACK_PERMITTED = 4,
    OPTION_SACK = 5,
    OPTION_TIMESTAMPS = 8
};

#define HEADER_BYTES 2u /* kind and length of an option */
#define SACK_BLOCK_BYTES 8u

static void put_be32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
}

/* Writes the value of an option of this kind behind its kind and length. Returns false if it writes
 * nothing. */
static bool put_value(uint8_t kind, zn_span value, const zn_build_tcp_options *how, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    switch (kind) {
    case OPTION_MSS:
    case OPTION_WINDOW_SCALE:
    case OPTION_SACK_PERMITTED:
        if (value.n != (kind == OPTION_MSS ? 2u : kind == OPTION_WINDOW_SCALE ? 1u : 0u))
            return false;
        if (value.n != 0)
            memcpy(out, value.p, value.n);
        return true;
    case OPTION_SACK:
        if (value.n == 0 || value.n % SACK_BLOCK_BYTES != 0)
            return false;
        for (size_t at = 0; at < value.n; at += 4)
            put_be32(out + at, zn_cursor_be32(&c) + how->seq_shift);
        return true;
    case OPTION_TIMESTAMPS: {
        uint32_t own = zn_cursor_be32(&c), echo = zn_cursor_be32(&c);
        if (value.n != 8 || !how->timestamps)
            return false;
        put_be32(out, own + how->own_shift);
        put_be32(out + 4, echo == 0 ? 0 : echo + how->echo_shift); /* 0: nothing to echo yet */
        return true;
    }
    default:
        return false;
    }
}

bool zn_build_tcp_options_put(zn_span options, const zn_build_tcp_options *how, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(options, true);
    bool written = false;
    if (options.n != 0)
        memset(out, OPTION_NOP, options.n);
    while (zn_cursor_left(&c) != 0) {
        size_t at = options.n - zn_cursor_left(&c);
        uint8_t kind = zn_cursor_u8(&c), length;
        zn_span value;
        if (kind == OPTION_NOP)
            continue;
        if (kind == OPTION_END)
            break;
        length = zn_cursor_u8(&c);
        value = zn_cursor_take(&c, length < HEADER_BYTES ? options.n : length - HEADER_BYTES);
        if (!zn_cursor_ok(&c))
            break;
        if (!put_value(kind, value, how, out + at + HEADER_BYTES))
            continue;
        out[at] = kind;
        out[at + 1] = length;
        written = true;
    }
    return written;
}

/* Changes the blocks of the SACK option at `option`, whose value is `value`. */
static void map_blocks(zn_span value, uint8_t *option, zn_build_sack_map map, const void *context)
{
    zn_cursor c = zn_cursor_over_span(value, true);
    size_t kept = HEADER_BYTES;
    for (size_t at = 0; at < value.n; at += SACK_BLOCK_BYTES) {
        uint32_t edge[2] = {zn_cursor_be32(&c), 0};
        edge[1] = zn_cursor_be32(&c);
        if (!map(context, edge))
            continue;
        put_be32(option + kept, edge[0]);
        put_be32(option + kept + sizeof edge[0], edge[1]);
        kept += SACK_BLOCK_BYTES;
    }
    option[1] = (uint8_t)kept;
    if (kept == HEADER_BYTES) /* no block is left of the option */
        kept = 0;
    memset(option + kept, OPTION_NOP, HEADER_BYTES + value.n - kept);
}

void zn_build_tcp_options_map_sack(uint8_t *options, size_t n, zn_build_sack_map map,
                                   const void *context)
{
    zn_cursor c = zn_cursor_over(options, n, true);
    while (zn_cursor_left(&c) != 0) {
        size_t at = n - zn_cursor_left(&c);
        uint8_t kind = zn_cursor_u8(&c);
        zn_span value;
        if (kind == OPTION_NOP)
            continue;
        value = zn_cursor_take(&c, zn_cursor_u8(&c) - HEADER_BYTES);
        if (kind == OPTION_SACK && zn_cursor_ok(&c))
            map_blocks(value, options + at, map, context);
    }
}
