/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a z-table; only anonymity/ztable*.c may see it. ztable.c joins the two forms, and
 * ztable_record.c and ztable_list.c do not know each other; ztable_batch.c, ztable_check.c and
 * ztable_snapshot.c stand above it.
 *
 * An attribute keeps its users with their latest times, from the newest to the oldest, in one of
 * two forms:
 *   record  a ring of users and times in one block of memory of one of several sizes; a record that
 *           is full moves to the next size;
 *   list    24-byte entries linked by 32-bit index, with an index (attribute, user) -> entry, for
 *           attributes with more users than the largest record holds.
 * The index of attributes maps an identity to a zn_zref, which holds the form, the size and the
 * slab index. With `keep` up to ZN_ZRECORD_USERS_MAX there are only records, the largest of `keep`
 * users.
 *
 * A long list that has to go as a whole is taken out of the index at once and put on the stack
 * `dying`, from which every observation frees a few entries. So no call pays for a long list.
 */
#ifndef ZN_ANONYMITY_ZTABLE_INTERNAL_H
#define ZN_ANONYMITY_ZTABLE_INTERNAL_H

#include "anonymity/ztable_index.h"
#include "anonymity/ztable_marks.h"
#include "util/clock.h"
#include "zanon/ztable.h"

/* Users of the largest record; with more than ZN_ZLIST_FROM an unlimited attribute becomes a list.
 * Both were chosen by measurement; a fuzzer makes them small. */
#ifndef ZN_ZRECORD_USERS_MAX
#define ZN_ZRECORD_USERS_MAX 1000 /* at most 1023, for ten bits hold them */
#endif
#ifndef ZN_ZLIST_FROM
#define ZN_ZLIST_FROM 36
#endif

/* Most entries that an observation evicts from its list, or z, if that is more: old ones that are
 * left do not count, and later observations evict them. */
#ifndef ZN_ZTRIM_MAX
#define ZN_ZTRIM_MAX 64
#endif

#define ZN_ZRECORD_SIZES_MAX 15
#define ZN_ZSWEEP_EVERY 8
#define ZN_ZSTALE_MAX (2 * ZN_ZSWEEP_EVERY) /* a step of the sweep: two slots an observation */
#define ZN_ZLIST_SHORT 64                   /* lists up to this length are freed in one go */

/* Left to itself, GCC 12 finds that functions which only prefetch do nothing, and drops the
 * call. */
#define ZN_ZFETCHER static inline __attribute__((always_inline))

/* Form and size in the upper 4 bits (called kind), slab index in the lower 28; 0: none. */
typedef uint32_t zn_zref;

#define ZN_ZREF_SHIFT 28
#define ZN_ZREF_INDEX_MAX ((UINT32_C(1) << ZN_ZREF_SHIFT) - 1)
#define ZN_ZKIND_LIST 15 /* smaller kinds are records, by size */

/* The start of every record: 104 bits of the identity (the index's tag has eight more), its mark,
 * and its ring. */
typedef struct zn_zrecord {
    uint64_t id_lo;
    uint32_t id_mid;
    uint32_t id_hi : 8;
    uint32_t mark : 4;   /* as zn_zlist's */
    uint32_t head : 10;  /* place of the newest user */
    uint32_t count : 10; /* users; 0: the slot is free */
} zn_zrecord;

_Static_assert(sizeof(zn_zrecord) == 16, "no padding");

/*
 * Records of one size: header; of each user a tag (upper eight bits of the hash), then its lower 32
 * bits, then times. The tags come first: all are compared and share the header's cache line.
 */
typedef struct zn_zsize {
    zn_slab slab;
    uint32_t users;
    uint32_t users_at, times_at; /* offsets */
} zn_zsize;

typedef struct zn_zentry {
    int64_t t_ns;
    uint32_t user; /* low half of the user's hash; eight more bits are the index's tag */
    uint32_t list;
    uint32_t newer, older;
} zn_zentry;

_Static_assert(sizeof(zn_zentry) == 24, "24 bytes a tuple");

/* On one cache line, which one prefetch brings. */
typedef struct zn_zlist {
    zn_id id; /* its lower 104 bits; a dying list's id.lo is the next one on the stack */
    int64_t newest_ns, oldest_ns;
    uint32_t newest, oldest;
    uint32_t count; /* entries; 0: the slot is free */
    bool dying;
    uint8_t mark; /* slice of the last publication modulo 15, plus 1; 0: none (ztable_marks.h) */
    uint8_t unused[14];
} zn_zlist;

_Static_assert(sizeof(zn_zlist) == 64, "a list's header is a cache line");

/* A place in the round through all attributes. */
typedef struct zn_zhand {
    uint32_t kind, slot;
} zn_zhand;

struct zn_ztable {
    zn_ztable_config config;
    zn_clock clock;
    uint64_t secret;    /* mixed into every hash of (list, user) */
    uint32_t sizes;     /* sizes of records in use */
    uint32_t full_size; /* users of the largest record */
    bool with_lists;
    zn_zsize size[ZN_ZRECORD_SIZES_MAX + 1]; /* by kind; the last entry is the size of lists */
    zn_slab entries;
    zn_zindex by_id, by_user;
    uint32_t dying;                /* stack of lists */
    uint32_t dying_tuples;         /* entries of those lists */
    zn_zhand sweep_hand, cap_hand; /* last slot looked at, last one thrown out */
    int64_t swept_ns;              /* clock when the sweep last came round */
    bool sweeping;                 /* a round is under way */
    uint32_t stale_count;          /* records the sweep has noted, to be freed at its next step */
    zn_zref stale[ZN_ZSTALE_MAX + 1];
    zn_zmarks marks;
    uint8_t answer_bits; /* ZN_ANSWER_LOST and ZN_ANSWER_REBASED of the current observation */
    uint32_t late_z;     /* 0; or z, while observations count as late and config.z is higher */
    int64_t slice_ns;
    int64_t slice_start_ns, slice; /* of the clock, when it was last noted */
    uint32_t slice_bits;           /* of a mark in this slice */
    zn_ztable_stats stats;         /* attributes and tuples: those not dying */
};

/* Results, besides a number of users, of the two functions that place an observation. */
#define ZN_ZDEEP UINT64_MAX       /* late, and too deep among the newer users */
#define ZN_ZFULL (UINT64_MAX - 1) /* no space */

static inline zn_zref zn_zref_of(uint32_t kind, uint32_t index)
{
    return kind << ZN_ZREF_SHIFT | index;
}

static inline uint32_t zn_zref_kind(zn_zref ref)
{
    return ref >> ZN_ZREF_SHIFT;
}

static inline uint32_t zn_zref_index(zn_zref ref)
{
    return ref & ZN_ZREF_INDEX_MAX;
}

static inline zn_zrecord *zn_zrecord_at(const zn_ztable *t, zn_zref ref)
{
    return zn_slab_at(&t->size[zn_zref_kind(ref)].slab, zn_zref_index(ref));
}

/* Times of a record's ring, by place. */
static inline const int64_t *zn_zrecord_times(const zn_ztable *t, zn_zref ref)
{
    const uint8_t *record = (const void *)zn_zrecord_at(t, ref);
    return (const void *)(record + t->size[zn_zref_kind(ref)].times_at);
}

static inline zn_zlist *zn_zlist_at(const zn_ztable *t, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= t->size[ZN_ZKIND_LIST].slab.used_high);
    return (zn_zlist *)(void *)t->size[ZN_ZKIND_LIST].slab.base + (index - 1);
}

static inline zn_zentry *zn_zentry_at(const zn_ztable *t, uint32_t index)
{
    ZN_ASSERT(index >= 1 && index <= t->entries.used_high);
    return (zn_zentry *)(void *)t->entries.base + (index - 1);
}

/* Anything older than this is out of the window that ends at t_ns. */
static inline int64_t zn_zwindow_start(const zn_ztable *t, int64_t t_ns)
{
    return t_ns - t->config.window_ns;
}

/* A tag has to be non-zero. */
static inline uint8_t zn_ztag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 56);
    return tag != 0 ? tag : 1;
}

static inline uint64_t zn_zentry_hash(const zn_ztable *t, uint32_t list, uint32_t user)
{
    uint64_t x = ((uint64_t)list << 32 | user) ^ t->secret;
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

#define ZN_ZID_HI ((UINT64_C(1) << 40) - 1) /* the bits of id.hi that are compared */

/* The lower 104 bits of an identity, which is what attributes are compared by. */
static inline zn_id zn_zrecord_id(const zn_zrecord *r)
{
    zn_id id = {r->id_lo, (uint64_t)r->id_hi << 32 | r->id_mid};
    return id;
}

/* Most attributes alive at once, each of which has a tuple. */
static inline uint32_t zn_zattribute_cap(const zn_ztable *t)
{
    const zn_ztable_config *c = &t->config;
    return c->max_attributes < c->max_tuples ? c->max_attributes : c->max_tuples;
}

static inline bool zn_zref_is(const zn_ztable *t, zn_zref ref, zn_id id)
{
    zn_id known;
    if (zn_zref_kind(ref) == ZN_ZKIND_LIST)
        known = zn_zlist_at(t, zn_zref_index(ref))->id;
    else
        known = zn_zrecord_id(zn_zrecord_at(t, ref));
    return known.lo == id.lo && known.hi == (id.hi & ZN_ZID_HI);
}

/* Users of an attribute; 0 for a slot that is free or a list that is dying. */
static inline uint32_t zn_zref_count(const zn_ztable *t, zn_zref ref)
{
    const zn_zlist *l;
    if (zn_zref_kind(ref) != ZN_ZKIND_LIST)
        return zn_zrecord_at(t, ref)->count;
    l = zn_zlist_at(t, zn_zref_index(ref));
    return l->dying ? 0 : l->count;
}

/* Takes a number below twice the ring's size to a place in it, without a branch that could be
 * mispredicted. */
static inline uint32_t zn_zring_wrap(uint32_t place, uint32_t size)
{
    return place - (size & -(uint32_t)(place >= size));
}

/* Returns the slot in the index of attributes that refers to `id`, or NULL. */
static inline zn_zref *zn_zref_find(const zn_ztable *t, zn_id id)
{
    zn_zbucket *b = zn_zindex_home(&t->by_id, id.lo);
    for (; b != NULL; b = zn_zindex_more(&t->by_id, b)) {
        uint32_t hits = zn_zbucket_match(b, zn_ztag(id.hi));
        for (; hits != 0; hits &= hits - 1) {
            zn_zref *ref = b->ref + __builtin_ctz(hits);
            if (zn_zref_is(t, *ref, id))
                return ref;
        }
    }
    return NULL;
}

/* ---- attributes of either form: ztable.c ---- */

/* Puts an observation in, without a look at the clock. Returns the users of its attribute up to its
 * time, ZN_ZDEEP or ZN_ZFULL. */
uint64_t zn_zplace(zn_ztable *t, const zn_observation *o);
/* Decides an observation, marks its attribute and returns the answer (ztable_marks.h). */
uint8_t zn_zobserve_marked(zn_ztable *t, const zn_observation *o);
/* Writes the newest users of an attribute, at most n, newest first, without it. Returns how many
 * there are of them. */
size_t zn_znewest(const zn_ztable *t, zn_id attribute, zn_observation *out, size_t n);

/* ---- records ---- */

/* Lays out the sizes of records: up to `users` users, for the caps of attributes and tuples. */
int zn_zrecord_lay_out(zn_ztable *t, uint32_t users, zn_error *err);
/* Makes a record with one user; the slab always has space for one. */
zn_zref zn_zrecord_make(zn_ztable *t, const zn_observation *o);
/*
 * Evicts from the record *ref what the window that ends at the observation does not hold, and puts
 * the user in. Returns the users up to the observation's time, ZN_ZDEEP, or ZN_ZFULL: only a list
 * has space for one more. The record may move, and *ref with it.
 */
uint64_t zn_zrecord_place(zn_ztable *t, zn_zref *ref, const zn_observation *o);
/* Looks for users older than `start` in n slots of records, and notes the records with some. */
void zn_zrecord_look(zn_ztable *t, zn_zref first, uint32_t n, int64_t start);
/* Frees users older than `start`, but not all, and the memory that the record no longer needs. */
void zn_zrecord_trim(zn_ztable *t, zn_zref ref, int64_t start);
/* Drops the oldest user of a record, which keeps at least one. */
void zn_zrecord_drop_oldest(zn_ztable *t, zn_zref ref);
/* Frees the memory of a record; its index entry and counts are the caller's. */
void zn_zrecord_free(zn_ztable *t, zn_zref ref);
/* The i-th newest observation of a record, 0 <= i < count; its attribute is left out. */
zn_observation zn_zrecord_get(const zn_ztable *t, zn_zref ref, uint32_t i);
/* The number of its users newer than this one; that of all when it is not among them. */
uint32_t zn_zrecord_find(const zn_ztable *t, zn_zref ref, const zn_observation *o);

/* ---- lists ---- */

/* Lays out entries, lists and their index. 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_zlist_lay_out(zn_ztable *t, zn_error *err);
/* Makes a list without users that is in no index; returns 0 if no list is left. */
uint32_t zn_zlist_make(zn_ztable *t, zn_id id);
/* Adds a user that is not in, at least as new as the newest; stats.tuples counts it already. */
void zn_zlist_push(zn_ztable *t, uint32_t list, const zn_observation *o);
/* Places an observation in a list as zn_zrecord_place does in a record; a list always has space for
 * one more user. */
uint64_t zn_zlist_place(zn_ztable *t, zn_zref ref, const zn_observation *o);
/* Frees at most n entries older than `start`, but never the last one. */
void zn_zlist_trim(zn_ztable *t, uint32_t list, int64_t start, uint32_t n);
/* Drops the oldest entry of a list, which keeps at least one. */
void zn_zlist_drop_oldest(zn_ztable *t, uint32_t list);
/* Frees a list that is out of the index of attributes: now when it is short, else by and by. */
void zn_zlist_free(zn_ztable *t, uint32_t list);
/* Frees up to n entries of dying lists. */
void zn_zlist_drain(zn_ztable *t, uint32_t n);
/* Index of the user's entry in a list, or 0. */
uint32_t zn_zentry_find(const zn_ztable *t, uint32_t list, uint64_t user);
/* The observation of an entry, as zn_zrecord_get gives it. */
zn_observation zn_zentry_get(const zn_ztable *t, uint32_t entry);

#endif
