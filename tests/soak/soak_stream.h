/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random configurations and random streams for them. The same seed gives the same.
 */
#ifndef SOAK_STREAM_H
#define SOAK_STREAM_H

#include "zanon/ztable.h"

/* How time goes. */
#define SOAK_ORDER_LIST(X)                                                                         \
    X(IN_ORDER, "in-order")     /* never back; gaps of years now and then */                       \
    X(LATE, "late")             /* behind the clock by up to a window and more; repeated */        \
    X(INTERLEAVED, "merged")    /* several clocks of their own, as of files read in turn */        \
    X(SHUFFLED, "shuffled")     /* anywhere in a few windows */                                    \
    X(JUMPING, "jumping")       /* back and forth by seconds, days and years */                    \
    X(CORRUPT, "corrupt")       /* in order, but for a few times from anywhere */                  \
    X(BACKWARDS, "backwards")   /* never forward */                                                \
    X(DUPLICATED, "duplicated") /* in order; each again later, at another time */                  \
    X(EDGES, "edges")           /* 1970, 2262, and just around the window from either */

typedef enum soak_order {
#define SOAK_ORDER_ENUM(name, text) SOAK_##name,
    SOAK_ORDER_LIST(SOAK_ORDER_ENUM)
#undef SOAK_ORDER_ENUM
        SOAK_ORDERS
} soak_order;

typedef struct soak_plan {
    zn_ztable_config config;
    soak_order order;
    uint32_t users, attributes;
    uint32_t per_window; /* observations in a window, about */
    uint64_t observations;
    bool change_z;
    bool exact; /* in order, and no cap or refusal may take anything away */
    uint64_t seed;
} soak_plan;

typedef struct soak_event {
    int64_t t_ns;
    uint32_t user, attribute;
} soak_event;

typedef struct soak_stream soak_stream;

const char *soak_order_name(int order);
soak_plan soak_draw(uint64_t seed);

/* `salt` makes another stream of the same plan. */
soak_stream *soak_stream_open(const soak_plan *plan, uint64_t salt);
void soak_stream_close(soak_stream *s);
soak_event soak_next(soak_stream *s);
/* A random number below n >= 1. */
uint32_t soak_below(soak_stream *s, uint32_t n);

#endif
