/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generalization: a value that fewer than z users share is published as a coarser label, and at
 * least z users stand behind each label.
 *
 * A value has a chain of labels, finest first; level 0 is the value itself, decided by a z-table.
 * An exposure that fails at a level votes for the label one level above. A vote counts until a
 * label beneath that contains the vote's value is published: a publication withdraws the votes
 * above it. A label that was published in the window is marked, and an exposure of a marked label
 * casts no vote above it. It may only look whether enough other users are there (a peek).
 *
 * A reader may remove every value that the output shows in the window, and every value that
 * passes and could be shown. The users counted at a label remain after that.
 *
 *     zn_levels_config config = zn_levels_default_config(table, 2, 20, 3600 * ZN_NS_PER_S);
 *     zn_levels *levels;
 *     if (zn_levels_open(&levels, &config, &err) != 0)
 *         ... err.msg says why ...
 *     zn_observation o = {.t_ns = t_ns, .user = user, .attribute = name};
 *     zn_exposures one = {.observations = &o, .n = 1, .chain = write_labels};
 *     zn_level_decision decision;
 *     zn_levels_decide(levels, &one, &decision);
 *     if (decision.decision == ZN_RELEASE)
 *         ... publish the label at decision.level ...
 *
 * Labels of several kinds share the tables, as attributes share a z-table: their identities are
 * hashes in different namespaces. Exposures of one batch are decided in their order, and a batch
 * gives the decisions that its exposures would have one by one.
 *
 * The levels belong to the thread of their z-table. Only they may store observations in it and
 * change its z; others may count. If the z-table is emptied, so are the levels, and labels stay off
 * until its clock is a window past the time of before. Nothing is allocated after opening.
 */
#ifndef ZN_ANONYMITY_LEVELS_H
#define ZN_ANONYMITY_LEVELS_H

#include "anonymity/vote_table.h"

#define ZN_LEVELS_MAX (ZN_VOTE_TABLE_TAGS_MAX - 1) /* levels above level 0 */
#define ZN_LEVELS_Z_MAX ZN_VOTE_TABLE_KEEP_MAX

/* Properties of an exposure. */
enum {
    /* Casts no vote. Is published at level 0 if z users share the value at its time, else
     * suppressed. */
    ZN_EXPOSURE_PEEK = 1,
    /* Belongs to the time before the last fall of z: is decided with the higher z of
     * zn_levels_set_early_z and gets no label above level 0. */
    ZN_EXPOSURE_EARLY = 2
};

/* Writes the labels of exposure i of a batch above level 0 to chain[1 .. levels], finest first; {0,
 * 0} if the value lacks a level. chain[0] is the attribute. */
typedef void zn_levels_chain(void *of, size_t i, zn_id *chain);

/* Returns 32 bits of a keyed hash of the network of the user of exposure i of a batch. */
typedef uint32_t zn_levels_network(void *of, size_t i);

/* Exposures in their order. */
typedef struct zn_exposures {
    const zn_observation *observations; /* the attribute is the value, the label at level 0 */
    const uint8_t *flags;               /* ZN_EXPOSURE_ bits of each exposure; NULL: none */
    size_t n;
    /* Is called for exposures that have to do with the levels above level 0, at most once each. */
    zn_levels_chain *chain;
    zn_levels_network *network; /* NULL without max_per_network */
    void *of;                   /* first argument of both functions */
} zn_exposures;

/* Decision besides zn_decision: as many users of the same network as the cap allows have votes for
 * a label of the chain. */
enum { ZN_OVER_NETWORK_CAP = ZN_NO_ROOM + 1 };

typedef struct zn_level_decision {
    uint8_t decision; /* ZN_RELEASE, or why nothing is published */
    uint8_t level;    /* of the label that is published; 0 unless decision is ZN_RELEASE */
    uint16_t users;   /* counted behind a label above level 0, at most the votes kept; else 0 */
} zn_level_decision;

/*
 * Returns the labels at level `above` beneath which values of `label`, a label at `level`, lie, and
 * sets *count. `one` is the label of the exposure's own chain. The labels stay valid until the next
 * call.
 */
typedef const zn_id *zn_levels_parents(void *of, uint32_t level, zn_id label, uint32_t above,
                                       const zn_id *one, size_t *count);

typedef struct zn_levels_config {
    zn_ztable *table;    /* level 0; borrowed, without observations */
    uint32_t levels;     /* above level 0, 0 .. ZN_LEVELS_MAX */
    uint32_t z;          /* of the table, 1 .. z_max */
    uint32_t z_max;      /* largest z that zn_levels_set_z may set, at most ZN_LEVELS_Z_MAX */
    int64_t window_ns;   /* of the table */
    uint32_t max_votes;  /* of each level */
    uint32_t max_labels; /* of each level */
    /* Users of a network that may have votes for a label at once. An exposure that would exceed it
     * is suppressed. 0: no cap. */
    uint32_t max_per_network;
    /* NULL: a label has one label above it at each level, the label of the chain */
    zn_levels_parents *parents;
    void *parents_of;
} zn_levels_config;

typedef struct zn_level_stats {
    uint64_t published; /* exposures */
    uint64_t peeks;     /* exposures published by a peek, part of `published` */
    uint64_t withdrawn; /* votes */
    uint64_t evicted;   /* votes that went at a cap */
    uint32_t labels;    /* alive now; 0 at level 0 */
    uint32_t votes;     /* alive now; 0 at level 0 */
} zn_level_stats;

typedef struct zn_levels_stats {
    uint64_t paused; /* suppressed while labels were off, after a clock rebase or a lost mark */
    uint64_t lacked_capacity;                   /* suppressed because a vote table was full */
    uint64_t users[ZN_VOTE_TABLE_KEEP_MAX + 1]; /* labels published above level 0, by users */
} zn_levels_stats;

typedef struct zn_levels zn_levels;

/* Returns a config whose caps at each level are a quarter of the default caps of a z-table. */
zn_levels_config zn_levels_default_config(zn_ztable *table, uint32_t levels, uint32_t z,
                                          int64_t window_ns);
/* Opens the levels by *config, which is copied, and puts them into *out. Returns 0, or with *out
 * NULL: -ZN_ERR_CONFIG for values out of range, -ZN_ERR_CAPACITY without memory. */
int zn_levels_open(zn_levels **out, const zn_levels_config *config, zn_error *err);
/* Frees the levels, and not the z-table. NULL is fine. */
void zn_levels_close(zn_levels *l);

/* Decides exposures in their order and writes a decision for each. */
void zn_levels_decide(zn_levels *l, const zn_exposures *exposures, zn_level_decision *decisions);
/* Changes z for later exposures, also of the z-table. If z falls, the votes of all labels are
 * dropped. Returns 0, or -ZN_ERR_CONFIG for a z above z_max or that the table cannot take. */
int zn_levels_set_z(zn_levels *l, uint32_t z, zn_error *err);
/* Sets the z of exposures that are ZN_EXPOSURE_EARLY, at least z. */
void zn_levels_set_early_z(zn_levels *l, uint32_t z);

/* Empties the levels above level 0, because the chains of values change. Labels stay off for a
 * window. */
void zn_levels_restart(zn_levels *l);

zn_levels_stats zn_levels_get_stats(const zn_levels *l);
/* Returns the counts of a level, 0 .. levels. */
zn_level_stats zn_levels_level_stats(const zn_levels *l, uint32_t level);
/* Returns the bytes of memory in use, without the z-table. */
size_t zn_levels_memory(const zn_levels *l);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
const char *zn_levels_check(const zn_levels *l);

#endif
