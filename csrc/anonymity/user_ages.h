/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times at which users were first seen. Memory is bounded: users are in two generations, and a user
 * that is seen moves to the younger generation. When the younger generation is full, the older one
 * is forgotten. A forgotten user is new again.
 */
#ifndef ZN_ANONYMITY_USER_AGES_H
#define ZN_ANONYMITY_USER_AGES_H

#include "zanon/ztable.h"

typedef struct zn_user_age {
    uint64_t user;    /* keyed hash; 0: the slot is empty */
    int64_t first_ns; /* smallest time at which the user was seen, ns since the Unix epoch */
} zn_user_age;

typedef struct zn_user_ages {
    zn_user_age *generation[2]; /* hash tables; the first is the younger one */
    uint64_t mask;              /* slots of a generation - 1 */
    uint32_t members;           /* users of the younger generation */
    uint32_t cap;               /* users of a generation */
} zn_user_ages;

/* Makes generations for `cap` (>= 1) users each; *ages is zero. Returns 0, or -ZN_ERR_CAPACITY with
 * *err filled. */
int zn_user_ages_init(zn_user_ages *ages, uint32_t cap, zn_error *err);
void zn_user_ages_fini(zn_user_ages *ages);
/* Returns the time at which the user was first seen: t_ns if the user is new. */
int64_t zn_user_ages_first(const zn_user_ages *ages, uint64_t user, int64_t t_ns);
/* Notes that the user was seen at t_ns. Returns the smallest time at which it was seen. */
int64_t zn_user_ages_see(zn_user_ages *ages, uint64_t user, int64_t t_ns);
/* Returns the bytes of memory that the generations take at most. */
size_t zn_user_ages_memory(const zn_user_ages *ages);

#endif
