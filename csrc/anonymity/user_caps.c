/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/user_caps.h"

#include "anonymity/user_ages.h"
#include "anonymity/ztable_room.h"
#include "util/arena.h"
#include "util/clock.h"
#include "util/hash.h"

struct zn_user_caps {
    zn_user_caps_config config;
    zn_clock clock;      /* equals the clock of the gate's z-table */
    zn_ztable *prefixes; /* users by (attribute, network); NULL without the cap */
    zn_ztable *names;    /* names by user; NULL without the cap */
    zn_user_ages ages;
    zn_hash_key key; /* of (attribute, network) */
};

static int open_table(zn_ztable **out, const zn_user_caps_config *config, zn_error *err)
{
    zn_ztable_config table = zn_ztable_default_config(1, 2 * config->window_ns);
    table.max_tuples = config->max_tuples;
    table.max_attributes = config->max_attributes;
    table.rebase_after = UINT32_MAX; /* the caps follow the clock of another table */
    return zn_ztable_open(out, &table, err);
}

int zn_user_caps_open(zn_user_caps **out, const zn_user_caps_config *config, zn_error *err)
{
    zn_user_caps *c = zn_heap_alloc(sizeof *c);
    int rc;
    *out = NULL;
    if (c == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the caps of users");
    c->config = *config;
    zn_clock_init(&c->clock, config->window_ns, 0, ZN_CLOCK_REBASE_AFTER);
    rc = zn_hash_key_random(&c->key, err);
    if (rc == 0 && config->max_per_prefix != 0)
        rc = open_table(&c->prefixes, config, err);
    if (rc == 0 && config->max_names != 0)
        rc = open_table(&c->names, config, err);
    if (rc == 0 && config->min_age_ns != 0)
        rc = zn_user_ages_init(&c->ages, config->max_users, err);
    if (rc != 0) {
        zn_user_caps_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void zn_user_caps_close(zn_user_caps *c)
{
    if (c == NULL)
        return;
    zn_ztable_close(c->prefixes);
    zn_ztable_close(c->names);
    zn_user_ages_fini(&c->ages);
    zn_heap_free(c);
}

/* Returns the vote as an observation of the table of networks. */
static zn_observation in_prefixes(const zn_user_caps *c, const zn_capped_vote *vote)
{
    zn_observation o = *vote->observation;
    zn_addr network = zn_addr_cut(vote->user, c->config.prefix_v4_bits, c->config.prefix_v6_bits);
    uint8_t bytes[sizeof o.attribute + sizeof network];
    memcpy(bytes, &o.attribute, sizeof o.attribute);
    memcpy(bytes + sizeof o.attribute, &network, sizeof network);
    o.attribute = zn_hash128(&c->key, 0, bytes, sizeof bytes);
    return o;
}

/* Returns the vote as an observation of the table of names: the user is the attribute. */
static zn_observation in_names(const zn_capped_vote *vote)
{
    const zn_observation *o = vote->observation;
    zn_observation turned = {o->t_ns, o->attribute.lo, {o->user, o->user << 32 | o->user >> 32}};
    return turned;
}

/* Returns `cap`, ZN_CAP_FULL or ZN_CAP_NONE for an observation that would be stored in a table. */
static zn_cap cap_of(const zn_user_caps *c, const zn_ztable *table, const zn_observation *o,
                     uint32_t most, zn_cap cap)
{
    switch (zn_ztable_room_for(table, o, most, o->t_ns - c->config.window_ns)) {
    case ZN_ZTABLE_MOST_USERS:
        return cap;
    case ZN_ZTABLE_FULL:
        return ZN_CAP_FULL;
    case ZN_ZTABLE_ROOM:
        break;
    }
    return ZN_CAP_NONE;
}

/* Returns the cap that the counted users and names put on the vote. */
static zn_cap count_cap(const zn_user_caps *c, const zn_capped_vote *vote)
{
    zn_cap cap = ZN_CAP_NONE;
    zn_observation o;
    if (c->prefixes != NULL) {
        o = in_prefixes(c, vote);
        cap = cap_of(c, c->prefixes, &o, c->config.max_per_prefix, ZN_CAP_PREFIX);
    }
    if (cap == ZN_CAP_NONE && c->names != NULL && vote->is_name) {
        o = in_names(vote);
        cap = cap_of(c, c->names, &o, c->config.max_names, ZN_CAP_NAMES);
    }
    return cap;
}

/* Returns true if a table stores the observation. */
static bool keep_in(zn_ztable *table, const zn_observation *o)
{
    return zn_ztable_observe(table, o) <= ZN_BELOW_Z;
}

/* Keeps a vote that no cap refuses. Returns ZN_CAP_FULL if a table cannot store it. */
static zn_cap keep(zn_user_caps *c, const zn_capped_vote *vote)
{
    bool is_kept = true;
    zn_observation o;
    if (c->prefixes != NULL) {
        o = in_prefixes(c, vote);
        is_kept = keep_in(c->prefixes, &o);
    }
    if (is_kept && c->names != NULL && vote->is_name) {
        o = in_names(vote);
        is_kept = keep_in(c->names, &o);
    }
    return is_kept ? ZN_CAP_NONE : ZN_CAP_FULL;
}

/* Forgets the users and names that count. */
static void forget(zn_user_caps *c)
{
    if (c->prefixes != NULL)
        zn_ztable_clear(c->prefixes);
    if (c->names != NULL)
        zn_ztable_clear(c->names);
}

/* Decides on a vote that the z-table gets with a time in its window or after its clock. */
static zn_cap accepted_vote(zn_user_caps *c, const zn_capped_vote *vote)
{
    int64_t t_ns = vote->observation->t_ns;
    zn_cap cap;
    /* No later vote needs the users before the gap. A full table could otherwise stay full. */
    if (c->clock.started && t_ns - c->clock.now_ns > 2 * c->config.window_ns)
        forget(c);
    cap = count_cap(c, vote);
    if (cap == ZN_CAP_NONE)
        cap = keep(c, vote);
    if (cap == ZN_CAP_NONE)
        (void)zn_clock_see(&c->clock, t_ns);
    return cap;
}

zn_cap zn_user_caps_vote(zn_user_caps *c, const zn_capped_vote *vote)
{
    const zn_observation *o = vote->observation;
    if (c->config.min_age_ns != 0 &&
        o->t_ns - zn_user_ages_see(&c->ages, o->user, o->t_ns) < c->config.min_age_ns)
        return ZN_CAP_AGE;
    if (!c->clock.started || c->clock.now_ns - o->t_ns <= c->config.window_ns)
        return accepted_vote(c, vote);
    /* The z-table suppresses the vote, unless it is the vote that sets its clock back. */
    if (zn_clock_see(&c->clock, o->t_ns) == ZN_CLOCK_REBASED) {
        forget(c);
        (void)keep(c, vote);
    }
    return ZN_CAP_NONE;
}

zn_cap zn_user_caps_ask(const zn_user_caps *c, const zn_capped_vote *vote)
{
    const zn_observation *o = vote->observation;
    if (c->config.min_age_ns != 0 &&
        o->t_ns - zn_user_ages_first(&c->ages, o->user, o->t_ns) < c->config.min_age_ns)
        return ZN_CAP_AGE;
    return count_cap(c, vote);
}

uint32_t zn_user_caps_network(const zn_user_caps *c, const zn_addr *user)
{
    zn_addr network = zn_addr_cut(user, c->config.prefix_v4_bits, c->config.prefix_v6_bits);
    return (uint32_t)zn_hash64(&c->key, &network, sizeof network);
}

bool zn_user_caps_is_new(const zn_user_caps *c, uint64_t user, int64_t t_ns)
{
    return c->config.min_age_ns != 0 &&
           t_ns - zn_user_ages_first(&c->ages, user, t_ns) < c->config.window_ns;
}

size_t zn_user_caps_memory(const zn_user_caps *c)
{
    if (c == NULL)
        return 0;
    return sizeof *c + zn_user_ages_memory(&c->ages) +
           (c->prefixes != NULL ? zn_ztable_memory(c->prefixes) : 0) +
           (c->names != NULL ? zn_ztable_memory(c->names) : 0);
}
