/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caps against invented users. A vote that a cap refuses is not counted, so caps can only suppress.
 *
 *   prefix  In any window, at most max_per_prefix users of a network (such as a /24) count for an
 *           attribute. A z-table keeps the counted users by attribute and network.
 *   names   In any window, a user counts for at most max_names names. A z-table keeps the counted
 *           names by user.
 *   age     A user counts min_age_ns after it was first seen, whether its votes count or not.
 *
 * A vote is refused if the other users (names) that count in [t - window, t] or later reach the
 * cap. Their times are at most two windows old, because the z-table takes votes that are at most a
 * window late. The tables therefore keep two windows, and no vote that counts at any later time can
 * bring a count above its cap. If a table is full, it refuses votes instead of an eviction, because
 * an evicted user could not be subtracted.
 *
 * The z-table of the gate gets each vote that no cap refuses, in the same order. The clock of the
 * caps therefore equals the clock of that z-table, and the caps forget their users when the z-table
 * is emptied.
 */
#ifndef ZN_ANONYMITY_USER_CAPS_H
#define ZN_ANONYMITY_USER_CAPS_H

#include "util/addr.h"

typedef struct zn_user_caps zn_user_caps;

typedef struct zn_user_caps_config {
    uint32_t max_per_prefix; /* users of a network that count for an attribute; 0: no cap */
    uint8_t prefix_v4_bits;  /* prefix lengths of the networks: 1 .. 32 */
    uint8_t prefix_v6_bits;  /* 1 .. 128 */
    uint32_t max_names;      /* names for which a user counts in a window; 0: no cap */
    int64_t min_age_ns;      /* age from which a user counts, >= 0; 0: no cap */
    int64_t window_ns;       /* window of the z-table, at most half of ZN_ZTABLE_WINDOW_MAX_NS */
    uint32_t max_tuples;     /* caps of each table, as in zn_ztable_config */
    uint32_t max_attributes;
    uint32_t max_users; /* users whose age is kept: 1 .. 2^31 */
} zn_user_caps_config;

/* Vote, as the caps see it. */
typedef struct zn_capped_vote {
    const zn_observation *observation;
    const zn_addr *user; /* address, of the observation's user */
    bool is_name;        /* the attribute counts as a name of the user */
} zn_capped_vote;

/* Cap that refuses a vote. */
typedef enum zn_cap {
    ZN_CAP_NONE, /* the vote counts */
    ZN_CAP_PREFIX,
    ZN_CAP_NAMES,
    ZN_CAP_AGE,
    ZN_CAP_FULL /* a table has no space for the vote */
} zn_cap;

/* Returns true if the config has a cap. */
static inline bool zn_user_caps_are_set(const zn_user_caps_config *config)
{
    return config->max_per_prefix != 0 || config->max_names != 0 || config->min_age_ns != 0;
}

/* Opens caps by *config, which is copied. Returns 0, or with *out NULL a negative zn_err with *err
 * filled. */
int zn_user_caps_open(zn_user_caps **out, const zn_user_caps_config *config, zn_error *err);
/* Frees the caps. NULL is fine. */
void zn_user_caps_close(zn_user_caps *c);
/* Decides whether a vote counts, and keeps it if it does. The z-table gets the vote next if no cap
 * refuses it. Votes come in the order in which the z-table gets them. */
zn_cap zn_user_caps_vote(zn_user_caps *c, const zn_capped_vote *vote);
/* Returns the cap that would refuse the vote now. Nothing is kept. */
zn_cap zn_user_caps_ask(const zn_user_caps *c, const zn_capped_vote *vote);
/* Returns 32 bits of a keyed hash of the user's network; max_per_prefix is set. */
uint32_t zn_user_caps_network(const zn_user_caps *c, const zn_addr *user);
/* Returns true if the user was first seen less than a window before t_ns; false without a cap on
 * ages, because the caps then know no age. */
bool zn_user_caps_is_new(const zn_user_caps *c, uint64_t user, int64_t t_ns);
/* Returns the bytes of memory that the caps have touched at most. */
size_t zn_user_caps_memory(const zn_user_caps *c);

#endif
