/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Votes for the labels of one level of generalization (anonymity/levels.h). A vote says that a user
 * exposed a value that lies beneath the label and that was not published. Each vote holds a tag of
 * its value's label at each level beneath. A publication beneath the label withdraws the votes that
 * have the tag of the published label.
 *
 * A label has a mark, the time of its last publication, and the latest `keep` votes, one for each
 * user. The votes lie in a block of one of several sizes, in the order of their times. Times of
 * calls never go back, unless the table is emptied.
 *
 * Labels stand in a queue. A label that nothing touched for a window is freed at the end of the
 * queue, and a touched label is queued again. At a cap, a label goes that was not touched since it
 * was queued. A label whose mark lasts never goes; if no other label is found, there is no room.
 */
#ifndef ZN_ANONYMITY_VOTE_TABLE_H
#define ZN_ANONYMITY_VOTE_TABLE_H

#include "anonymity/ztable_index.h"

#define ZN_VOTE_TABLE_KEEP_MAX 1000u
#define ZN_VOTE_TABLE_TAGS_MAX 64u
#define ZN_VOTE_TABLE_KINDS_MAX 16
#define ZN_VOTE_TAG_ABSENT 1u /* tag of a level that the value's chain lacks */
#define ZN_MARK_NONE INT64_MIN

typedef struct zn_vote_table_config {
    /* Tags of a vote: one for each level beneath, and one more if networks of users are counted. 0
     * .. ZN_VOTE_TABLE_TAGS_MAX. */
    uint32_t tags;
    uint32_t keep;       /* latest votes of a label, 1 .. ZN_VOTE_TABLE_KEEP_MAX */
    uint32_t max_votes;  /* alive at once, 1 .. ZN_ZTABLE_TUPLES_MAX */
    uint32_t max_labels; /* alive at once, 1 .. ZN_ZTABLE_ATTRIBUTES_MAX */
    int64_t window_ns;
} zn_vote_table_config;

typedef struct zn_vote_label {
    zn_id id;
    int64_t mark_ns;   /* time of the last publication, or ZN_MARK_NONE */
    int64_t queued_ns; /* time when the label was queued */
    int64_t oldest_ns; /* time of the oldest vote; meaningful if there are votes */
    int64_t newest_ns; /* time of the newest vote; meaningful if there are votes */
    uint32_t block;    /* kind in the upper 4 bits, index in the lower 28; 0: none */
    uint32_t next;     /* label behind this one in the queue; 0: none */
    uint16_t first;    /* place of the oldest vote in the block */
    uint16_t count;    /* votes */
} zn_vote_label;

_Static_assert(sizeof(zn_vote_label) == 64, "a label is a cache line");

/* Blocks of one size. A block has the upper 8 bits of each user, and then a body of each vote: time
 * (two words), lower 32 bits of the user, and tags by level. */
typedef struct zn_vote_kind_size {
    zn_slab slab;
    uint32_t votes;
    uint32_t bodies_at; /* offset in bytes */
} zn_vote_kind_size;

typedef struct zn_vote_table {
    zn_vote_table_config config;
    zn_slab labels;
    zn_zindex by_id;
    zn_vote_kind_size size[ZN_VOTE_TABLE_KINDS_MAX];
    uint32_t kinds;
    uint32_t oldest, newest; /* ends of the queue */
    uint32_t votes;          /* alive */
    uint64_t withdrawn;      /* votes withdrawn so far */
    uint64_t evicted;        /* votes that went at a cap */
} zn_vote_table;

/* A vote to be stored. */
typedef struct zn_ballot {
    int64_t t_ns;
    uint64_t user;
    const uint32_t *tags; /* for each level beneath the table's, finest first; then the network */
} zn_ballot;

/* Lays out a table for its caps. Returns 0, or -ZN_ERR_CAPACITY with *err filled;
 * zn_vote_table_fini accepts what is left. */
int zn_vote_table_init(zn_vote_table *t, const zn_vote_table_config *config, zn_error *err);
void zn_vote_table_fini(zn_vote_table *t);
/* Deletes all labels with their votes and marks. Counters stay. */
void zn_vote_table_clear(zn_vote_table *t);

static inline zn_vote_label *zn_vote_label_at(const zn_vote_table *t, uint32_t label)
{
    ZN_ASSERT(label >= 1 && label <= t->labels.used_high);
    return (zn_vote_label *)(void *)t->labels.base + (label - 1);
}

/* Returns the label's number, or 0 if the table does not have the label. */
uint32_t zn_vote_table_find(const zn_vote_table *t, zn_id id);
/* Returns the label's number, and adds a label that is new. Returns 0 if there is no room. */
uint32_t zn_vote_table_add(zn_vote_table *t, zn_id id, int64_t now_ns);
/* Drops the votes of a label that are older than start_ns. */
void zn_vote_table_trim(zn_vote_table *t, uint32_t label, int64_t start_ns);
/* Stores a vote of a trimmed label, in place of an older vote of the user. The ballot's time is
 * the time of the call. Returns false if there is no room. */
bool zn_vote_table_vote(zn_vote_table *t, uint32_t label, const zn_ballot *ballot);
/* Returns the number of votes of a label. */
static inline uint32_t zn_vote_table_count(const zn_vote_table *t, uint32_t label)
{
    return zn_vote_label_at(t, label)->count;
}

/* Returns true if the label has a vote of the user. */
bool zn_vote_table_has(const zn_vote_table *t, uint32_t label, uint64_t user);
/* Returns the number of votes of a label that have `tag` at place `at` of their tags, without the
 * vote of `user`. */
uint32_t zn_vote_table_others(const zn_vote_table *t, uint32_t label, uint64_t user, uint32_t at,
                              uint32_t tag);
/* Removes the votes of a label that have `tag` at `level`. Returns their number. */
uint32_t zn_vote_table_withdraw(zn_vote_table *t, uint32_t label, uint32_t level, uint32_t tag);

/* Returns the time of the label's last publication, or ZN_MARK_NONE. */
static inline int64_t zn_vote_table_mark_of(const zn_vote_table *t, uint32_t label)
{
    return zn_vote_label_at(t, label)->mark_ns;
}

/* Notes a publication of the label. The mark never goes back. */
static inline void zn_vote_table_mark(const zn_vote_table *t, uint32_t label, int64_t t_ns)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    if (t_ns > l->mark_ns)
        l->mark_ns = t_ns;
}

void zn_vote_table_reclaim_some(zn_vote_table *t, int64_t now_ns); /* for the function below */
/* Frees a few labels that are out of the window. Each exposure calls it once. */
static inline void zn_vote_table_reclaim(zn_vote_table *t, int64_t now_ns)
{
    if (t->oldest != 0 && zn_vote_label_at(t, t->oldest)->queued_ns < now_ns - t->config.window_ns)
        zn_vote_table_reclaim_some(t, now_ns);
}

/* Prefetch the memory of a label that is about to be used: the index, then the label, then the
 * places of its votes that a new vote touches, or the places of all votes. fetch_label returns a
 * guess of the label's number for fetch_votes. fetch_votes returns the label's number, or 0 if the
 * table does not have the label. */
static inline void zn_vote_table_fetch_index(const zn_vote_table *t, zn_id id)
{
    ZN_PREFETCH_WRITE(zn_zindex_home(&t->by_id, id.lo));
}
uint32_t zn_vote_table_fetch_label(const zn_vote_table *t, zn_id id);
uint32_t zn_vote_table_fetch_votes(const zn_vote_table *t, zn_id id, uint32_t guess, bool all);

/* Returns true if `label` is the number of the label with this identity. It may be 0, or the number
 * of a label that was freed. */
static inline bool zn_vote_table_is(const zn_vote_table *t, uint32_t label, zn_id id)
{
    const zn_vote_label *l;
    if (label == 0)
        return false;
    l = zn_vote_label_at(t, label);
    return l->id.lo == id.lo && l->id.hi == id.hi;
}

/* Returns the tag of a label: 32 bits of its identity that are neither 0 nor ZN_VOTE_TAG_ABSENT. */
static inline uint32_t zn_vote_tag(zn_id id)
{
    uint32_t tag = (uint32_t)(id.hi >> 24);
    return tag > ZN_VOTE_TAG_ABSENT ? tag : tag + 2;
}

/* Returns the bytes of memory in use. */
size_t zn_vote_table_memory(const zn_vote_table *t);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
const char *zn_vote_table_check(const zn_vote_table *t);

#endif
