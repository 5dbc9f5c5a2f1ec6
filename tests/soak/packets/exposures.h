/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: who exposed which name when, as the generator made it, and brute force over that.
 * Nothing is shared with the code under test.
 */
#ifndef EXPOSURES_H
#define EXPOSURES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct exposures exposures;

/* For names 0 .. names - 1 and users 0 .. 63; ends the program without memory. */
exposures *exposures_open(uint32_t names);
void exposures_close(exposures *all);
/* A user exposed the name at some time in [from_ns, until_ns]. What ended before forget_ns will not
 * be asked for any more. */
void exposures_add(exposures *all, uint32_t name, uint32_t user, int64_t from_ns, int64_t until_ns,
                   int64_t forget_ns);
/* Distinct users who may have exposed the name in [from_ns, until_ns]; `sure`: those who have, as
 * the time of their exposure is known. */
uint32_t exposures_users(const exposures *all, uint32_t name, int64_t from_ns, int64_t until_ns,
                         bool sure);

#endif
