/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: users in a ring, in time order from the newest at `head`. A new user takes the place
 * before the head, which in a full ring is the place of the oldest user. A known user moves to the
 * head, and the users in front of it move up by one.
 */
#include "anonymity/ztable_internal.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Sizes that waste no more than a few bytes and grow by about 1.4. */
static const uint16_t sizes[ZN_ZRECORD_SIZES_MAX] = {
    1, 2, 3, 5, 8, 11, 16, 24, 36, 54, 80, 120, 180, 280, ZN_ZRECORD_USERS_MAX};

#define SCAN 16      /* users compared in one go */
#define SHIFT_MIN 12 /* as many users are moved faster in one go than one by one */

/* A record opened for use. */
typedef struct ring {
    zn_zrecord *r;
    uint8_t *tag;
    uint32_t *user;
    int64_t *t_ns;
    uint32_t size;
} ring;

static ring open_ring(const zn_ztable *t, zn_zref ref)
{
    const zn_zsize *s = t->size + zn_zref_kind(ref);
    uint8_t *base = zn_slab_at(&s->slab, zn_zref_index(ref));
    ring g = {(void *)base, base + sizeof(zn_zrecord), (void *)(base + s->users_at),
              (void *)(base + s->times_at), s->users};
    return g;
}

/* The place of the i-th newest user. */
static inline uint32_t place_of(const ring *g, uint32_t i)
{
    return zn_zring_wrap(g->r->head + i, g->size);
}

static inline void copy_place(const ring *to, uint32_t p, const ring *from, uint32_t q)
{
    to->user[p] = from->user[q];
    to->tag[p] = from->tag[q];
    to->t_ns[p] = from->t_ns[q];
}

static inline void set_place(const ring *g, uint32_t p, const zn_observation *o)
{
    g->user[p] = (uint32_t)o->user;
    g->tag[p] = zn_ztag(o->user);
    g->t_ns[p] = o->t_ns;
}

/* Bit i is set when tag[i] is the wanted one, for i < SCAN. */
static inline uint32_t match_tags(const uint8_t *tag, uint8_t wanted)
{
#ifdef __SSE2__
    __m128i tags = _mm_loadu_si128((const void *)tag);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8((char)wanted)));
#else
    uint32_t hits = 0;
    for (uint32_t i = 0; i < SCAN; i++)
        hits |= (uint32_t)(tag[i] == wanted) << i;
    return hits;
#endif
}

/*
 * Returns the number of users newer than this one; the ring's count when it is not there. The last
 * tags looked at may lie outside the ring, but never outside the record: matches there are not
 * used.
 */
static inline uint32_t find_user(const ring *g, const zn_observation *o)
{
    uint32_t count = g->r->count, first = 0;
    uint8_t tag = zn_ztag(o->user);
    do {
        uint32_t hits = match_tags(g->tag + first, tag);
        for (; hits != 0; hits &= hits - 1) {
            uint32_t p = first + (uint32_t)__builtin_ctz(hits);
            uint32_t i = zn_zring_wrap(p + g->size - g->r->head, g->size);
            if (p < g->size && g->user[p] == (uint32_t)o->user && i < count)
                return i;
        }
        first += SCAN;
    } while (first < g->size);
    return count;
}

int zn_zrecord_lay_out(zn_ztable *t, uint32_t users, zn_error *err)
{
    uint32_t attributes = zn_zattribute_cap(t), before = 0;
    t->full_size = users;
    for (t->sizes = 0; before < users; t->sizes++) {
        zn_zsize *s = t->size + t->sizes;
        uint32_t cap = attributes;
        s->users = sizes[t->sizes] < users ? sizes[t->sizes] : users;
        s->users_at = ((uint32_t)sizeof(zn_zrecord) + s->users + 3) & ~UINT32_C(3);
        s->times_at = (s->users_at + s->users * (uint32_t)sizeof(uint32_t) + 7) & ~UINT32_C(7);
        /* One more than the cap, because an attribute is inserted before the oldest is evicted for
         * it. Records have more users than the next smaller size holds. Records with fewer users
         * that fill a slab move to larger sizes. */
        if (t->config.max_tuples / (before + 1) < cap)
            cap = t->config.max_tuples / (before + 1);
        if (zn_slab_init(&s->slab, s->times_at + s->users * sizeof(int64_t), cap + 1, err))
            return -ZN_ERR_CAPACITY;
        before = s->users;
    }
    return 0;
}

zn_zref zn_zrecord_make(zn_ztable *t, const zn_observation *o)
{
    zn_zref ref = zn_slab_take(&t->size[0].slab);
    ring g = open_ring(t, ref);
    g.r->id_lo = o->attribute.lo;
    g.r->id_mid = (uint32_t)o->attribute.hi;
    g.r->id_hi = (uint32_t)(o->attribute.hi >> 32) & 0xff;
    g.r->count = 1;
    set_place(&g, 0, o);
    zn_zindex_add(&t->by_id, o->attribute.lo, zn_ztag(o->attribute.hi), ref);
    t->stats.attributes++;
    t->stats.tuples++;
    return ref;
}

void zn_zrecord_free(zn_ztable *t, zn_zref ref)
{
    zn_zrecord_at(t, ref)->count = 0;
    zn_slab_give(&t->size[zn_zref_kind(ref)].slab, zn_zref_index(ref));
}

/* Moves a record to a size that holds it; false when there is no space. */
static bool move_to(zn_ztable *t, zn_zref *ref, uint32_t size)
{
    ring from = open_ring(t, *ref), to;
    uint32_t index = zn_slab_take(&t->size[size].slab);
    zn_zref moved = zn_zref_of(size, index);
    if (index == 0)
        return false;
    to = open_ring(t, moved);
    *to.r = *from.r;
    to.r->head = 0;
    for (uint32_t i = 0; i < from.r->count; i++)
        copy_place(&to, i, &from, place_of(&from, i));
    zn_zrecord_free(t, *ref);
    *ref = moved;
    return true;
}

static void drop_oldest(zn_ztable *t, const ring *g)
{
    g->r->count--;
    t->stats.tuples--;
}

static void trim(zn_ztable *t, const ring *g, int64_t start)
{
    while (g->r->count != 0 && g->t_ns[place_of(g, g->r->count - 1u)] < start)
        drop_oldest(t, g);
}

/* Puts a user that is not in after `newer` others; there is space. */
static void insert(const ring *g, uint32_t newer, const zn_observation *o)
{
    g->r->head = zn_zring_wrap(g->r->head + g->size - 1, g->size) & 0x3ff;
    g->r->count++;
    for (uint32_t i = 0; i < newer; i++)
        copy_place(g, place_of(g, i), g, place_of(g, i + 1));
    set_place(g, place_of(g, newer), o);
}

/* Moves users at places from .. to - 1 one place up. */
static void shift(const ring *g, uint32_t from, uint32_t to)
{
    size_t n = to - from;
    memmove(g->user + from + 1, g->user + from, n * sizeof *g->user);
    memmove(g->tag + from + 1, g->tag + from, n * sizeof *g->tag);
    memmove(g->t_ns + from + 1, g->t_ns + from, n * sizeof *g->t_ns);
}

/* Moves the i-th newest user up, after `newer` others. */
static void renew(const ring *g, uint32_t i, uint32_t newer, const zn_observation *o)
{
    uint32_t from = place_of(g, newer), to = place_of(g, i);
    if (i - newer < SHIFT_MIN) {
        for (; i > newer; i--)
            copy_place(g, place_of(g, i), g, place_of(g, i - 1));
    } else if (from < to) {
        shift(g, from, to);
    } else {
        shift(g, 0, to);
        copy_place(g, 0, g, g->size - 1);
        shift(g, from, g->size - 1);
    }
    set_place(g, from, o);
}

/*
 * Makes space for one more user in a full ring: moves the record to a larger size, or evicts the
 * oldest user if no larger size exists. Returns false, without a change, if the attribute has to
 * become a list.
 */
static bool grow(zn_ztable *t, zn_zref *ref)
{
    uint32_t size = zn_zref_kind(*ref);
    bool largest = size + 1 == t->sizes;
    ring g;
    while (++size < t->sizes)
        if (move_to(t, ref, size))
            return true;
    if (t->with_lists)
        return false;
    g = open_ring(t, *ref);
    drop_oldest(t, &g);
    t->stats.evicted += !largest;
    return true;
}

uint64_t zn_zrecord_place(zn_ztable *t, zn_zref *ref, const zn_observation *o)
{
    ring g = open_ring(t, *ref);
    uint32_t newer = 0, mine;
    uint64_t users;
    trim(t, &g, zn_zwindow_start(t, o->t_ns));
    while (newer < g.r->count && g.t_ns[place_of(&g, newer)] > o->t_ns)
        if (++newer > ZN_ZTABLE_LATE_STEPS)
            return ZN_ZDEEP;
    users = g.r->count - newer;
    mine = find_user(&g, o);
    if (mine < newer)
        return users + 1; /* stored with a later time already */
    if (mine < g.r->count) {
        renew(&g, mine, newer, o);
        return users;
    }
    if (g.r->count == g.size) {
        if (newer == t->full_size && !t->with_lists)
            return users + 1; /* older than the `keep` most recent */
        if (!grow(t, ref))
            return ZN_ZFULL;
        g = open_ring(t, *ref);
        if (newer > g.r->count)
            return users + 1;
    }
    insert(&g, newer, o);
    t->stats.tuples++;
    return users + 1;
}

/* Moves a record that is much too large to a smaller size. */
static void shrink(zn_ztable *t, zn_zref ref)
{
    const zn_zrecord *r = zn_zrecord_at(t, ref);
    uint32_t size = zn_zref_kind(ref), fits = size;
    while (fits != 0 && t->size[fits - 1].users >= r->count)
        fits--;
    if (fits + 1 >= size) /* one size too large: it may grow again */
        return;
    (void)move_to(t, zn_zindex_slot(&t->by_id, r->id_lo, ref), fits);
}

void zn_zrecord_look(zn_ztable *t, zn_zref first, uint32_t n, int64_t start)
{
    const zn_zsize *s = t->size + zn_zref_kind(first);
    /* Users that a record two sizes smaller holds: what was trimmed since may shrink. */
    uint32_t few = zn_zref_kind(first) < 2 ? 0 : t->size[zn_zref_kind(first) - 2].users;
    ZN_ASSERT(t->stale_count + n <= ZN_ZSTALE_MAX);
    for (zn_zref ref = first; ref < first + n; ref++) {
        const zn_zrecord *r = zn_zrecord_at(t, ref);
        const int64_t *t_ns = (const void *)((const uint8_t *)r + s->times_at);
        uint32_t oldest = zn_zring_wrap(r->head + r->count - (r->count != 0 ? 1u : 0u), s->users);
        /* Without a branch: whether it is stale cannot be predicted. */
        t->stale[t->stale_count] = ref;
        t->stale_count += (uint32_t)(r->count != 0) &
                          ((uint32_t)(t_ns[oldest] < start) | (uint32_t)(r->count <= few));
    }
    for (uint32_t i = 0; i < t->stale_count; i++)
        ZN_PREFETCH_WRITE(zn_zindex_home(&t->by_id, zn_zrecord_at(t, t->stale[i])->id_lo));
}

void zn_zrecord_trim(zn_ztable *t, zn_zref ref, int64_t start)
{
    ring g = open_ring(t, ref);
    trim(t, &g, start);
    shrink(t, ref);
}

void zn_zrecord_drop_oldest(zn_ztable *t, zn_zref ref)
{
    ring g = open_ring(t, ref);
    drop_oldest(t, &g);
}

zn_observation zn_zrecord_get(const zn_ztable *t, zn_zref ref, uint32_t i)
{
    ring g = open_ring(t, ref);
    uint32_t p = place_of(&g, i);
    zn_observation o = {g.t_ns[p], (uint64_t)g.tag[p] << 56 | g.user[p], {0, 0}};
    return o;
}

uint32_t zn_zrecord_find(const zn_ztable *t, zn_zref ref, const zn_observation *o)
{
    ring g = open_ring(t, ref);
    return find_user(&g, o);
}
