/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Votes of a label lie in its block from place `first` on, the oldest first. A new vote goes behind
 * the newest. If the block is full, its votes slide to the start or move to a larger block. Blocks
 * of the largest size have a quarter more places than a label has votes, so that votes slide once
 * in many.
 *
 * A block is a number of cache lines and begins with the users, so that a new vote of a label with
 * up to 64 votes usually touches two lines of it.
 */
#include "anonymity/vote_table.h"

#include <string.h>

#define SCAN 64         /* users compared at once, a cache line */
#define CANDIDATES 16   /* labels looked at in search of a label that can go */
#define RECLAIM_STEPS 2 /* labels looked at by each exposure */
#define BLOCK_SHIFT 28  /* of the kind in a block's number */
#define BLOCK_INDEX_MAX ((UINT32_C(1) << BLOCK_SHIFT) - 1)

/* A block opened for use. */
typedef struct places {
    uint8_t *high;  /* upper 8 bits of each user */
    uint32_t *body; /* `words` words of each vote */
    uint32_t size, words;
} places;

/* Words of a body. */
enum { WORD_TIME, WORD_TIME_HIGH, WORD_USER, WORD_TAGS };

static places open_block(const zn_vote_table *t, uint32_t block)
{
    const zn_vote_kind_size *s = &t->size[block >> BLOCK_SHIFT];
    uint8_t *base = zn_slab_at(&s->slab, block & BLOCK_INDEX_MAX);
    places p = {base, (void *)(base + s->bodies_at), s->votes, WORD_TAGS + t->config.tags};
    return p;
}

static inline uint32_t *body_at(const places *p, uint32_t at)
{
    return p->body + (size_t)at * p->words;
}

static inline int64_t time_at(const places *p, uint32_t at)
{
    const uint32_t *body = body_at(p, at);
    return (int64_t)((uint64_t)body[WORD_TIME_HIGH] << 32 | body[WORD_TIME]);
}

/* ---- opening ---- */

static uint64_t rehash_id(const void *table, uint32_t label)
{
    return zn_vote_label_at(table, label)->id.lo;
}

static void fetch_id(const void *table, uint32_t label)
{
    ZN_PREFETCH(zn_vote_label_at(table, label));
}

/* Returns the offset of the bodies in a block, in bytes. A body of 16 bytes lies in one line. */
static uint32_t bodies_at(uint32_t votes)
{
    return (votes + 15) & ~UINT32_C(15);
}

/* Returns the cache lines of a block. */
static uint32_t lines_of(const zn_vote_table *t, uint32_t votes)
{
    size_t body = (WORD_TAGS + t->config.tags) * sizeof(uint32_t);
    return (uint32_t)((bodies_at(votes) + votes * body + ZN_CACHE_LINE - 1) / ZN_CACHE_LINE);
}

/* Lays out the blocks of one size, with at least `votes` places, and more if the last cache line
 * has space. `before` is the number of places of the next smaller size. */
static int lay_out_kind(zn_vote_table *t, uint32_t votes, uint32_t before, zn_error *err)
{
    zn_vote_kind_size *s = &t->size[t->kinds];
    uint32_t cap = t->config.max_votes / (before + 1) + 1, lines = lines_of(t, votes);
    while (lines_of(t, votes + 1) == lines)
        votes++;
    s->votes = votes;
    s->bodies_at = bodies_at(votes);
    if (cap > t->config.max_labels)
        cap = t->config.max_labels;
    if (cap > BLOCK_INDEX_MAX)
        cap = BLOCK_INDEX_MAX;
    if (zn_slab_init(&s->slab, (size_t)lines * ZN_CACHE_LINE, cap, err) != 0)
        return -ZN_ERR_CAPACITY;
    t->kinds++;
    return 0;
}

int zn_vote_table_init(zn_vote_table *t, const zn_vote_table_config *config, zn_error *err)
{
    static const zn_zindex_keys keys = {rehash_id, fetch_id};
    uint32_t largest = config->keep + config->keep / 4, votes = 1, before = 0;
    memset(t, 0, sizeof *t);
    t->config = *config;
    if (zn_slab_init(&t->labels, sizeof(zn_vote_label), config->max_labels, err) != 0 ||
        zn_zindex_init(&t->by_id, config->max_labels, keys, t, err) != 0)
        return -ZN_ERR_CAPACITY;
    for (; before < largest; votes += votes / 2 + 1) {
        if (votes > largest || t->kinds + 1 == ZN_VOTE_TABLE_KINDS_MAX)
            votes = largest;
        if (lay_out_kind(t, votes, before, err) != 0)
            return -ZN_ERR_CAPACITY;
        votes = before = t->size[t->kinds - 1].votes;
    }
    return 0;
}

void zn_vote_table_fini(zn_vote_table *t)
{
    for (uint32_t i = 0; i < t->kinds; i++)
        zn_slab_fini(&t->size[i].slab);
    zn_zindex_fini(&t->by_id);
    zn_slab_fini(&t->labels);
    memset(t, 0, sizeof *t);
}

void zn_vote_table_clear(zn_vote_table *t)
{
    for (uint32_t i = 0; i < t->kinds; i++)
        zn_slab_reset(&t->size[i].slab);
    zn_zindex_reset(&t->by_id);
    zn_slab_reset(&t->labels);
    t->oldest = t->newest = t->votes = 0;
}

/* ---- labels ---- */

uint32_t zn_vote_table_find(const zn_vote_table *t, zn_id id)
{
    const zn_zbucket *b = zn_zindex_home(&t->by_id, id.lo);
    for (; b != NULL; b = zn_zindex_more(&t->by_id, b)) {
        uint32_t hits = zn_zbucket_match(b, (uint8_t)zn_vote_tag(id) | 1);
        for (; hits != 0; hits &= hits - 1) {
            uint32_t label = b->ref[__builtin_ctz(hits)];
            const zn_vote_label *l = zn_vote_label_at(t, label);
            if (l->id.lo == id.lo && l->id.hi == id.hi)
                return label;
        }
    }
    return 0;
}

static void enqueue(zn_vote_table *t, uint32_t label, int64_t now_ns)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    l->queued_ns = now_ns;
    l->next = 0;
    if (t->newest != 0)
        zn_vote_label_at(t, t->newest)->next = label;
    else
        t->oldest = label;
    t->newest = label;
}

static uint32_t dequeue(zn_vote_table *t)
{
    uint32_t label = t->oldest;
    t->oldest = zn_vote_label_at(t, label)->next;
    if (t->oldest == 0)
        t->newest = 0;
    return label;
}

static void give_block(zn_vote_table *t, zn_vote_label *l)
{
    if (l->block != 0)
        zn_slab_give(&t->size[l->block >> BLOCK_SHIFT].slab, l->block & BLOCK_INDEX_MAX);
    l->block = 0;
}

/* Frees a label that is out of the queue. */
static void free_label(zn_vote_table *t, uint32_t label)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    t->votes -= l->count;
    give_block(t, l);
    zn_zindex_remove(&t->by_id, l->id.lo, label);
    memset(&l->id, 0, sizeof l->id); /* not the number of the label any more (zn_vote_table_is) */
    zn_slab_give(&t->labels, label);
}

/* Returns the time of the last vote or publication of a label. */
static int64_t touched_ns(const zn_vote_label *l)
{
    return l->count != 0 && l->newest_ns > l->mark_ns ? l->newest_ns : l->mark_ns;
}

/* Takes a block with at least `votes` places; returns 0 if all blocks of these sizes are taken. */
static uint32_t take_block(zn_vote_table *t, uint32_t votes)
{
    for (uint32_t kind = 0; kind < t->kinds; kind++) {
        uint32_t index = votes <= t->size[kind].votes ? zn_slab_take(&t->size[kind].slab) : 0;
        if (index != 0)
            return kind << BLOCK_SHIFT | index;
    }
    return 0;
}

static void copy_votes(const places *to, uint32_t at, const places *from, uint32_t first,
                       uint32_t n)
{
    memmove(to->high + at, from->high + first, n);
    memmove(body_at(to, at), body_at(from, first), n * to->words * sizeof *to->body);
}

/* Moves the votes of a label to another block. */
static void move_to(zn_vote_table *t, zn_vote_label *l, uint32_t block)
{
    places to = open_block(t, block);
    if (l->count != 0) {
        places from = open_block(t, l->block);
        copy_votes(&to, 0, &from, l->first, l->count);
    }
    give_block(t, l);
    l->block = block;
    l->first = 0;
}

/* Moves a label's votes out of a block that is much too large, and frees an empty block. */
static void shrink(zn_vote_table *t, zn_vote_label *l)
{
    uint32_t kind = l->block >> BLOCK_SHIFT, block;
    if (l->count == 0) {
        give_block(t, l);
        return;
    }
    if (kind < 2 || l->count > t->size[kind - 2].votes)
        return;
    block = take_block(t, l->count);
    if (block != 0)
        move_to(t, l, block);
}

/* Sets the times of the first and the last vote. */
static void note_ends(const zn_vote_table *t, zn_vote_label *l)
{
    places p;
    if (l->count == 0) {
        l->first = 0;
        return;
    }
    p = open_block(t, l->block);
    l->oldest_ns = time_at(&p, l->first);
    l->newest_ns = time_at(&p, l->first + l->count - 1u);
}

static void drop_oldest(zn_vote_table *t, zn_vote_label *l, uint32_t n)
{
    l->first = (uint16_t)(l->first + n);
    l->count = (uint16_t)(l->count - n);
    t->votes -= n;
    note_ends(t, l);
}

static void trim(zn_vote_table *t, zn_vote_label *l, int64_t start_ns)
{
    places p;
    uint32_t n = 1;
    if (l->count == 0 || l->oldest_ns >= start_ns)
        return;
    p = open_block(t, l->block);
    while (n < l->count && time_at(&p, l->first + n) < start_ns)
        n++;
    drop_oldest(t, l, n);
}

void zn_vote_table_trim(zn_vote_table *t, uint32_t label, int64_t start_ns)
{
    trim(t, zn_vote_label_at(t, label), start_ns);
}

/* Trims the label at the end of the queue, and queues it again. */
static void queue_again(zn_vote_table *t, int64_t now_ns)
{
    uint32_t label = dequeue(t);
    zn_vote_label *l = zn_vote_label_at(t, label);
    trim(t, l, now_ns - t->config.window_ns);
    shrink(t, l);
    enqueue(t, label, now_ns);
}

void zn_vote_table_reclaim_some(zn_vote_table *t, int64_t now_ns)
{
    int64_t start_ns = now_ns - t->config.window_ns;
    for (int i = 0; i < RECLAIM_STEPS && t->oldest != 0; i++) {
        const zn_vote_label *l = zn_vote_label_at(t, t->oldest);
        if (l->queued_ns >= start_ns)
            return;
        if (touched_ns(l) < start_ns)
            free_label(t, dequeue(t));
        else
            queue_again(t, now_ns);
    }
}

/* Frees a label that was not touched since it was queued, is not marked, and is not `keep`. Returns
 * false if none of the next labels is such a label. */
static bool evict(zn_vote_table *t, uint32_t keep, int64_t now_ns)
{
    for (int i = 0; i < CANDIDATES && t->oldest != 0; i++) {
        const zn_vote_label *l = zn_vote_label_at(t, t->oldest);
        if (t->oldest != keep && touched_ns(l) <= l->queued_ns &&
            l->mark_ns < now_ns - t->config.window_ns) {
            t->evicted += l->count;
            free_label(t, dequeue(t));
            return true;
        }
        queue_again(t, now_ns);
    }
    return false;
}

uint32_t zn_vote_table_add(zn_vote_table *t, zn_id id, int64_t now_ns)
{
    uint32_t label = zn_vote_table_find(t, id);
    zn_vote_label *l;
    if (label != 0)
        return label;
    if (t->labels.live == t->labels.cap && !evict(t, 0, now_ns))
        return 0;
    label = zn_slab_take(&t->labels);
    l = zn_vote_label_at(t, label);
    l->id = id;
    l->mark_ns = ZN_MARK_NONE;
    zn_zindex_add(&t->by_id, id.lo, (uint8_t)zn_vote_tag(id) | 1, label);
    enqueue(t, label, now_ns);
    return label;
}

/* ---- votes ---- */

/* Bit i is set if high[i] is the wanted one, for i < SCAN. `high` begins a cache line. */
static inline uint64_t match_users(const uint8_t *high, uint8_t wanted)
{
    uint64_t hits = 0;
#ifdef __SSE2__
    __m128i all = _mm_set1_epi8((char)wanted);
    for (uint32_t i = 0; i < SCAN; i += 16) {
        __m128i users = _mm_load_si128((const void *)(high + i));
        hits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(users, all)) << i;
    }
#else
    for (uint32_t i = 0; i < SCAN; i++)
        hits |= (uint64_t)(high[i] == wanted) << i;
#endif
    return hits;
}

/* Returns the place of the user's vote, or the place behind the newest vote if the user has no
 * vote. */
static uint32_t find_user(const zn_vote_label *l, const places *p, uint64_t user)
{
    uint32_t first = l->first, end = first + (uint32_t)l->count;
    uint64_t wanted = UINT64_MAX << first % SCAN; /* places from `first` on */
    for (uint32_t at = first - first % SCAN; at < end; at += SCAN, wanted = UINT64_MAX) {
        uint64_t hits = match_users(p->high + at, (uint8_t)(user >> 56)) & wanted;
        for (; hits != 0; hits &= hits - 1) {
            uint32_t i = at + (uint32_t)__builtin_ctzll(hits);
            if (i < end && body_at(p, i)[WORD_USER] == (uint32_t)user)
                return i;
        }
    }
    return end;
}

/* Finds a place behind the newest vote of a label with fewer votes than the table keeps. Returns
 * false if there is no block with such a place. */
static bool make_place(zn_vote_table *t, zn_vote_label *l)
{
    places p;
    uint32_t block, kind = l->block >> BLOCK_SHIFT;
    bool dense;
    if (l->block == 0) {
        block = take_block(t, 1);
        if (block != 0)
            move_to(t, l, block);
        return block != 0;
    }
    p = open_block(t, l->block);
    if (l->first + (uint32_t)l->count < p.size)
        return true;
    dense = l->first == 0 || (l->count > p.size - p.size / 4 && kind + 1 < t->kinds);
    block = dense ? take_block(t, p.size + 1) : 0;
    if (block != 0) {
        move_to(t, l, block);
        return true;
    }
    if (l->first == 0)
        return false;
    copy_votes(&p, 0, &p, l->first, l->count);
    l->first = 0;
    return true;
}

/* Makes room for one more vote of a label, by eviction if need be. */
static bool make_room(zn_vote_table *t, uint32_t label, int64_t now_ns)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    while (t->votes >= t->config.max_votes || !make_place(t, l)) {
        if (evict(t, label, now_ns))
            continue;
        if (l->count == 0)
            return false;
        drop_oldest(t, l, 1);
        t->evicted++;
    }
    return true;
}

/* Removes the user's vote. */
static void drop_user(zn_vote_table *t, zn_vote_label *l, const places *p, uint64_t user)
{
    uint32_t end = l->first + (uint32_t)l->count, at = find_user(l, p, user);
    if (at == end)
        return;
    copy_votes(p, at, p, at + 1, end - at - 1);
    l->count--;
    t->votes--;
    note_ends(t, l);
}

bool zn_vote_table_vote(zn_vote_table *t, uint32_t label, const zn_ballot *ballot)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    places p = {.size = 0};
    uint32_t at, *body;
    if (l->count != 0) {
        p = open_block(t, l->block);
        drop_user(t, l, &p, ballot->user);
    }
    if (l->count == t->config.keep)
        drop_oldest(t, l, 1);
    if (t->votes >= t->config.max_votes || l->first + (uint32_t)l->count >= p.size) {
        if (!make_room(t, label, ballot->t_ns))
            return false;
        p = open_block(t, l->block);
    }
    at = l->first + (uint32_t)l->count++;
    t->votes++;
    p.high[at] = (uint8_t)(ballot->user >> 56);
    body = body_at(&p, at);
    body[WORD_TIME] = (uint32_t)ballot->t_ns;
    body[WORD_TIME_HIGH] = (uint32_t)((uint64_t)ballot->t_ns >> 32);
    body[WORD_USER] = (uint32_t)ballot->user;
    for (uint32_t i = 0; i < t->config.tags; i++)
        body[WORD_TAGS + i] = ballot->tags[i];
    l->newest_ns = ballot->t_ns;
    if (l->count == 1)
        l->oldest_ns = ballot->t_ns;
    return true;
}

bool zn_vote_table_has(const zn_vote_table *t, uint32_t label, uint64_t user)
{
    const zn_vote_label *l = zn_vote_label_at(t, label);
    places p;
    if (l->count == 0)
        return false;
    p = open_block(t, l->block);
    return find_user(l, &p, user) < l->first + (uint32_t)l->count;
}

uint32_t zn_vote_table_others(const zn_vote_table *t, uint32_t label, uint64_t user, uint32_t at,
                              uint32_t tag)
{
    const zn_vote_label *l = zn_vote_label_at(t, label);
    uint32_t end = l->first + (uint32_t)l->count, n = 0, own;
    places p;
    if (l->count == 0)
        return 0;
    p = open_block(t, l->block);
    for (uint32_t i = l->first; i < end; i++)
        n += body_at(&p, i)[WORD_TAGS + at] == tag;
    own = n != 0 ? find_user(l, &p, user) : end;
    return n - (own < end && body_at(&p, own)[WORD_TAGS + at] == tag);
}

uint32_t zn_vote_table_withdraw(zn_vote_table *t, uint32_t label, uint32_t level, uint32_t tag)
{
    zn_vote_label *l = zn_vote_label_at(t, label);
    uint32_t end = l->first + (uint32_t)l->count, i = l->first, kept, hits;
    places p;
    if (l->count == 0)
        return 0;
    p = open_block(t, l->block);
    while (i != end && body_at(&p, i)[WORD_TAGS + level] != tag)
        i++;
    for (kept = i; i != end; i++) { /* without a branch that could be mispredicted */
        const uint32_t *from = body_at(&p, i);
        uint32_t *to = body_at(&p, kept);
        p.high[kept] = p.high[i];
        for (uint32_t word = 0; word < p.words; word++)
            to[word] = from[word];
        kept += from[WORD_TAGS + level] != tag;
    }
    hits = end - kept;
    if (hits == 0)
        return 0;
    l->count = (uint16_t)(kept - l->first);
    t->votes -= hits;
    t->withdrawn += hits;
    note_ends(t, l);
    return hits;
}

/* ---- prefetching ---- */

uint32_t zn_vote_table_fetch_label(const zn_vote_table *t, zn_id id)
{
    const zn_zbucket *b = zn_zindex_home(&t->by_id, id.lo);
    uint32_t hits = zn_zbucket_match(b, (uint8_t)zn_vote_tag(id) | 1);
    uint32_t label = hits != 0 ? b->ref[__builtin_ctz(hits)] : 0;
    if (label != 0)
        ZN_PREFETCH_WRITE(zn_vote_label_at(t, label));
    return label;
}

uint32_t zn_vote_table_fetch_votes(const zn_vote_table *t, zn_id id, uint32_t label, bool all)
{
    const zn_vote_label *l;
    const uint8_t *from, *to;
    uint32_t end;
    places p;
    if (!zn_vote_table_is(t, label, id))
        label = zn_vote_table_find(t, id);
    if (label == 0 || zn_vote_label_at(t, label)->block == 0)
        return label;
    l = zn_vote_label_at(t, label);
    p = open_block(t, l->block);
    end = l->first + (uint32_t)l->count;
    from = (const void *)body_at(&p, all ? l->first : end);
    to = (const void *)body_at(&p, end);
    for (; from <= to; from += ZN_CACHE_LINE)
        ZN_PREFETCH_WRITE(from);
    for (from = p.high + l->first; from <= p.high + end; from += ZN_CACHE_LINE)
        ZN_PREFETCH_WRITE(from);
    return label;
}

/* ---- tests ---- */

size_t zn_vote_table_memory(const zn_vote_table *t)
{
    size_t bytes = zn_slab_bytes(&t->labels) + zn_zindex_bytes(&t->by_id);
    for (uint32_t i = 0; i < t->kinds; i++)
        bytes += zn_slab_bytes(&t->size[i].slab);
    return bytes;
}

static const char *check_label(const zn_vote_table *t, const zn_vote_label *l)
{
    places p;
    if (zn_vote_table_find(t, l->id) == 0)
        return "label not in the index";
    if (l->block == 0)
        return l->count == 0 ? NULL : "votes without a block";
    p = open_block(t, l->block);
    if (l->first + (uint32_t)l->count > p.size || l->count > t->config.keep)
        return "more votes than places";
    for (uint32_t i = l->first; i < l->first + (uint32_t)l->count; i++) {
        if (i > l->first && time_at(&p, i) < time_at(&p, i - 1))
            return "votes out of order";
        if (find_user(l, &p, (uint64_t)p.high[i] << 56 | body_at(&p, i)[WORD_USER]) != i)
            return "two votes of a user";
    }
    if (l->count != 0 && (l->oldest_ns != time_at(&p, l->first) ||
                          l->newest_ns != time_at(&p, l->first + l->count - 1u)))
        return "times of the first and the last vote";
    return NULL;
}

const char *zn_vote_table_check(const zn_vote_table *t)
{
    uint32_t labels = 0, last = 0, votes = 0, blocks = 0, taken = 0;
    for (uint32_t i = t->oldest; i != 0; i = zn_vote_label_at(t, i)->next) {
        const zn_vote_label *l = zn_vote_label_at(t, i);
        const char *wrong = check_label(t, l);
        if (wrong != NULL)
            return wrong;
        labels++;
        votes += l->count;
        blocks += l->block != 0;
        last = i;
    }
    for (uint32_t i = 0; i < t->kinds; i++)
        taken += t->size[i].slab.live;
    if (labels != t->labels.live || labels != t->by_id.live || last != t->newest)
        return "number of labels";
    if (votes != t->votes || votes > t->config.max_votes)
        return "number of votes";
    return blocks == taken ? zn_zindex_check(&t->by_id) : "number of blocks";
}
