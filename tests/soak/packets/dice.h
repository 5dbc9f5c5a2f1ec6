/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chance from a seed (SplitMix64).
 */
#ifndef DICE_H
#define DICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t dice_roll(dice *d)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number below n >= 1. */
static inline uint32_t dice_below(dice *d, uint32_t n)
{
    return (uint32_t)((dice_roll(d) >> 32) * n >> 32);
}

/* True in so many of 100. */
static inline bool dice_percent(dice *d, uint32_t percent)
{
    return dice_below(d, 100) < percent;
}

/* From 0 to n, both possible. */
static inline int64_t dice_up_to(dice *d, int64_t n)
{
    return (int64_t)(dice_roll(d) % ((uint64_t)n + 1));
}

#endif
