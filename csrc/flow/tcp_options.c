/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/tcp_rtt.h"

enum {
    OPTION_END = 0,
    OPTION_NOTHING = 1,
    OPTION_MSS = 2,
    OPTION_SCALE = 3,
    OPTION_SACK_PERMITTED = 4,
    OPTION_SACK = 5,
    OPTION_TIMESTAMPS = 8
};

void zn_tcp_read_options(zn_path_side *side, zn_span options)
{
    zn_cursor c = zn_cursor_over_span(options, true);
    bool sacks = false;
    while (zn_cursor_left(&c) > 0) {
        uint8_t kind = zn_cursor_u8(&c), length;
        zn_cursor value;
        if (kind == OPTION_END)
            break;
        if (kind == OPTION_NOTHING)
            continue;
        length = zn_cursor_u8(&c);
        if (length < 2)
            break;
        value = zn_cursor_sub(&c, length - 2u);
        if (!zn_cursor_ok(&c))
            break;
        if (kind == OPTION_MSS) {
            side->mss = zn_cursor_be16(&value);
        } else if (kind == OPTION_SCALE) {
            side->scale = zn_cursor_u8(&value);
            side->scale_seen = true;
        } else if (kind == OPTION_SACK_PERMITTED) {
            side->sack_permitted = true;
        } else if (kind == OPTION_SACK) {
            sacks |= zn_cursor_left(&value) != 0;
        } else if (kind == OPTION_TIMESTAMPS) {
            side->timestamps = true;
        }
    }
    side->sacks += sacks;
}
