/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * z-anonymity (Jha et al. 2020 and 2022, Algorithm 1): may the observation (t, u, a) be released?
 *
 * It may iff at least z distinct users, u included, exposed attribute a in [t - window, t]. Each
 * attribute keeps its users in a list ordered by their latest exposure; users that fall out of the
 * window are evicted before every decision. All operations are O(1) amortised.
 *
 * Guarantee, for any input order: a release is never given where brute force over all observations
 * so far counts fewer than z users. On input in time order the decision equals brute force. Late
 * observations are placed at their true time (at most ZN_ZTABLE_LATE_STEPS list steps deep), those
 * older than the window and those a full table has no room for are suppressed and counted.
 *
 * Memory is laid out for the caps at start and touched as needed; at a cap the oldest entries go
 * first, which can only suppress. Attributes nobody touched for a window are reclaimed without
 * being touched again.
 *
 * Users and attributes come as hashes under a secret key (base/hash.h). A table belongs to one
 * thread at a time.
 */
#ifndef ZN_STATE_ZTABLE_H
#define ZN_STATE_ZTABLE_H

#include "base/hash.h"

#define ZN_ZTABLE_LATE_STEPS                                                                       \
    64 /* how deep a late observation is inserted before it is suppressed */

typedef struct zn_ztable zn_ztable;

typedef struct zn_ztable_config {
    uint32_t z;              /* 1 .. 2^31 */
    int64_t window_ns;       /* 1 ns .. 10 years */
    uint32_t keep;           /* most recent distinct users kept per attribute, >= z; 0: all */
    uint32_t max_tuples;     /* (attribute, user) entries alive at once */
    uint32_t max_attributes; /* attributes alive at once */
    int64_t max_jump_ns;     /* larger steps forward are refused at first; 0: off */
    uint32_t rebase_after;   /* refused observations in a row that prove the clock wrong */
} zn_ztable_config;

typedef struct zn_observation {
    int64_t t_ns;    /* ns since the Unix epoch, 0 .. INT64_MAX */
    uint64_t user;   /* keyed hash of the user */
    zn_id attribute; /* keyed hash of the attribute in its namespace */
} zn_observation;

/* Why an observation was or was not released. */
typedef enum zn_decision {
    ZN_RELEASE,
    ZN_BELOW_Z,
    ZN_TOO_LATE,  /* older than the window, or refused as a jump: not stored */
    ZN_LATE_DEEP, /* late and too deep in its list: not stored */
    ZN_NO_ROOM    /* a cap left no room for it: not stored */
} zn_decision;

typedef struct zn_ztable_stats {
    uint64_t observations, released, below_z, too_late, late, late_deep, no_room;
    uint64_t clock_jumps;        /* times the clock was rebased and the table emptied */
    uint64_t evicted;            /* live entries thrown out at a cap */
    uint64_t tuples, attributes; /* alive now */
} zn_ztable_stats;

/* A config with z, window and defaults for all else. */
zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns);

/* Returns 0, or -ZN_ERR_CONFIG / -ZN_ERR_CAPACITY / -ZN_ERR_IO with *err filled and *out NULL. */
int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err);
void zn_ztable_close(zn_ztable *t);

zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o);
/* The same for n observations in their order, faster: decisions[i] belongs to observations[i]. */
void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n, uint8_t *decisions);

/* Observations whose users and attributes are plain numbers, not hashed yet. */
typedef struct zn_columns {
    const int64_t *t_ns;
    const uint64_t *user, *attribute;
} zn_columns;

/*
 * Hashes n of them into out[n], several at a time: the user is zn_hash_words() of the number, the
 * attribute zn_hash128() of its eight bytes in `domain`.
 */
void zn_observations_hash(const zn_hash_key *key, uint8_t domain, const zn_columns *in, size_t n,
                          zn_observation *out);

/* Distinct users of `attribute` in the window that ends at the table's clock; saturates at keep. */
uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute);
/*
 * How many users each attribute has in the window that ends at the clock, in no order; of attributes
 * without a user nothing. Writes at most cap of these numbers and returns how many; there are at
 * most as many as attributes alive. Walks over everything.
 */
size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap);
/* Changes z for what comes; -ZN_ERR_CONFIG when out of range or above keep. */
int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err);
/* Forgets everything, the clock included; counters stay. */
void zn_ztable_clear(zn_ztable *t);

zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t);
/* Bytes of memory the table has touched and not given back. */
size_t zn_ztable_memory(const zn_ztable *t);
/* Checks every invariant; NULL, or what is broken. Slow: for tests. */
const char *zn_ztable_check(const zn_ztable *t);

#endif
