/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of one engine, and the names and the crowd that it meets. The same seed gives the
 * same.
 */
#ifndef WORLD_H
#define WORLD_H

#include "dice.h"
#include "zanon/zanon.h"

#define WORLD_NAMES 512
#define WORLD_USERS 64
#define WORLD_LABEL 12 /* letters of a name's first label */
#define WORLD_SUFFIX 8 /* bytes behind it, with the first dot */
#define WORLD_NAME (WORLD_LABEL + WORLD_SUFFIX)

/* How time goes in the frames. */
typedef enum world_order {
    WORLD_IN_ORDER,
    WORLD_LATE,     /* some behind the clock by less than a window */
    WORLD_TOO_LATE, /* also by more */
    WORLD_ORDERS
} world_order;

typedef enum world_name_kind {
    WORLD_NAME_PLAIN,
    WORLD_NAME_HOME,
    WORLD_NAME_INVALID
} world_name_kind;

typedef struct world {
    uint64_t seed;
    zn_engine_config engine;
    world_order order;
    uint32_t names, users;
    int64_t gap_ns;   /* between the starts of conversations, about */
    int64_t pause_ns; /* longest between two frames of one */
    int64_t late_ns;  /* most that a frame is late */
    uint32_t batch;   /* most frames that are fed at a time */
    bool outer_users; /* in tunnels the users' addresses may be outside */
    uint8_t name[WORLD_NAMES][WORLD_NAME];
    uint8_t name_kind[WORLD_NAMES];
} world;

/* Draws a world; the number of the round chooses the settings that all rounds together have to
 * cover. */
void world_draw(world *w, uint64_t seed, uint64_t round);
/* Returns whether a byte is a letter that only labels of names have: no mask and no suffix. */
bool world_is_label_letter(uint8_t byte);
/* Returns which name has its label at `text`, of which WORLD_LABEL bytes can be read; negative:
 * none has. Upper case is as lower case. */
int world_find(const world *w, const uint8_t *text);

#endif
