/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of a flow that an analyzer still needs: its part in the watch mask
 * (analyzer/watch.h). */
#ifndef ZN_ANALYZER_WATCH_NEED_H
#define ZN_ANALYZER_WATCH_NEED_H

#include "flow/flow.h"

typedef struct zn_watch_need {
    uint8_t side[2]; /* ZN_WATCH_*, by tuple index */
    uint32_t left;   /* packets until one is needed; UINT32_MAX: any number */
    bool follows;    /* with START and BEFORE: watch_seq follows the payload that begins nothing */
} zn_watch_need;

/* Adds the packets that `bits` select, of both sides. */
static inline void zn_watch_need_both(zn_watch_need *need, unsigned bits)
{
    need->side[0] |= (uint8_t)bits;
    need->side[1] |= (uint8_t)bits;
}

/* Adds the packet of this number from now on, whatever it is. */
static inline void zn_watch_need_after(zn_watch_need *need, uint32_t packets)
{
    if (packets < need->left)
        need->left = packets;
}

#endif
