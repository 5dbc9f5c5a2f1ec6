/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Question to a z-table before an observation: would it exceed a number of users? */
#ifndef ZN_ANONYMITY_ZTABLE_ROOM_H
#define ZN_ANONYMITY_ZTABLE_ROOM_H

#include "zanon/ztable.h"

typedef enum zn_ztable_room {
    ZN_ZTABLE_ROOM,       /* the observation may be stored */
    ZN_ZTABLE_MOST_USERS, /* the attribute has the largest number of other users */
    ZN_ZTABLE_FULL        /* the observation would evict another user */
} zn_ztable_room;

/* Returns ZN_ZTABLE_ROOM if fewer than `most` users other than the observation's user are stored
 * for its attribute with a time of from_ns or later, and if the table can store the observation
 * without an eviction. The table stores all users (keep is 0), and from_ns is not before its
 * window. */
zn_ztable_room zn_ztable_room_for(const zn_ztable *t, const zn_observation *o, uint32_t most,
                                  int64_t from_ns);

#endif
