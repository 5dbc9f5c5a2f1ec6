/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a z-table. All numbers are little endian:
 *
 *   header   152 bytes: magic "ZNZT", version, the settings, the clock, the counters (see HEADER)
 *   blocks   an attribute's 112 bits, four zero bits, a number of users in four bits (0: it
 *            follows in two bytes), and of each user how long before the clock it came, in as many
 *            bytes as the window needs, and its 40 bits; from the oldest user to the newest
 *   trailer  24 bytes: attributes, users of all attributes, SipHash-1-3 of all before under a
 *            published key
 *
 * An attribute that does not fit into a step continues in the next block. The checksum detects
 * accidents only. If a snapshot could be forged, the program that stores it has to seal it.
 *
 * Users are restored from the oldest to the newest, each as an observation. So every restored state
 * is a state that observations can reach.
 */
#include "anonymity/ztable_internal.h"
#include "util/cursor.h"
#include "util/hash.h"

#include <string.h>

#define VERSION 1
#define HEADER 152
#define TRAILER 24
#define USER 5               /* bytes of a user's 40 bits */
#define ID 15                /* bytes of an attribute and a small number */
#define BLOCK_MAX UINT16_MAX /* users */
#define COUNT_SMALL 15
#define FETCH_AHEAD 8 /* slots */

static const char magic[4] = {'Z', 'N', 'Z', 'T'};
/* "zanon-net/1/dump". The key is no secret, because the hash only detects damage. */
static const zn_hash_key published = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x706d75642f312f74)};

enum part { PART_HEADER, PART_BLOCKS, PART_TRAILER, PART_DONE };

/* Bytes that hold every time of a window, as the distance from its end. */
static size_t time_bytes(int64_t window_ns)
{
    return (size_t)(71 - __builtin_clzll((uint64_t)window_ns)) / 8;
}

/* ---- checksum ---- */

/* Adds n bytes to the checksum, eight at a time; the last few wait for more. */
static void checksum_add(zn_ztable_cursor *c, const uint8_t *at, size_t n)
{
    zn_sip s = {c->checksum[0], c->checksum[1], c->checksum[2], c->checksum[3]};
    for (; n != 0; n--) {
        c->word |= (uint64_t)*at++ << c->bytes % 8 * 8;
        if (++c->bytes % 8 == 0) {
            zn_sip_absorb(&s, c->word);
            c->word = 0;
            for (; n > 8; n -= 8, at += 8, c->bytes += 8)
                zn_sip_absorb(&s, zn_le_get(at, 8));
        }
    }
    c->checksum[0] = s.v0;
    c->checksum[1] = s.v1;
    c->checksum[2] = s.v2;
    c->checksum[3] = s.v3;
}

/* Returns the zn_hash64 of all bytes that were added. */
static uint64_t checksum_end(const zn_ztable_cursor *c)
{
    zn_sip s = {c->checksum[0], c->checksum[1], c->checksum[2], c->checksum[3]};
    zn_sip_absorb(&s, c->word | c->bytes << 56);
    s.v2 ^= 0xff;
    return zn_sip_squeeze(&s);
}

/* ---- export ---- */

static uint8_t *put_header(const zn_ztable *t, uint8_t *at)
{
    const zn_ztable_config *c = &t->config;
    const zn_ztable_stats *s = &t->stats;
    const uint64_t counters[] = {s->observations, s->released, s->below_z,     s->too_late, s->late,
                                 s->late_deep,    s->no_room,  s->clock_jumps, s->evicted};
    memcpy(at, magic, sizeof magic);
    at = zn_le_put(at + sizeof magic, VERSION, 4);
    at = zn_le_put(at, c->z, 4);
    at = zn_le_put(at, c->keep, 4);
    at = zn_le_put(at, (uint64_t)c->window_ns, 8);
    at = zn_le_put(at, c->max_tuples, 4);
    at = zn_le_put(at, c->max_attributes, 4);
    at = zn_le_put(at, (uint64_t)c->max_jump_ns, 8);
    at = zn_le_put(at, c->rebase_after, 4);
    at = zn_le_put(at, t->clock.rejected_late, 4);
    at = zn_le_put(at, t->clock.rejected_ahead, 4);
    at = zn_le_put(at, t->clock.started, 4);
    at = zn_le_put(at, (uint64_t)t->clock.now_ns, 8);
    at = zn_le_put(at, 0, 8);
    at = zn_le_put(at, 0, 8);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        at = zn_le_put(at, counters[i], 8);
    return at;
}

/* Moves to the next slot with users; returns false if no slot is left. */
static bool next_slot(const zn_ztable *t, zn_ztable_cursor *c)
{
    uint32_t last = t->with_lists ? ZN_ZKIND_LIST : t->sizes - 1;
    while (c->kind <= last) {
        while (c->slot < t->size[c->kind].slab.used_high)
            if (zn_zref_count(t, zn_zref_of(c->kind, ++c->slot)) != 0)
                return true;
        c->slot = 0;
        c->kind = c->kind + 1 == t->sizes ? ZN_ZKIND_LIST : c->kind + 1;
    }
    return false;
}

/* Finds the oldest user of the slot that the window holds, and how many follow it. */
static void start_attribute(const zn_ztable *t, zn_ztable_cursor *c)
{
    zn_zref ref = zn_zref_of(c->kind, c->slot);
    int64_t start = zn_zwindow_start(t, t->clock.now_ns);
    c->left = zn_zref_count(t, ref);
    if (c->kind != ZN_ZKIND_LIST) {
        while (c->left != 0 && zn_zrecord_get(t, ref, c->left - 1).t_ns < start)
            c->left--;
        c->next = c->left - (c->left != 0);
    } else {
        c->next = zn_zlist_at(t, c->slot)->oldest;
        for (; c->left != 0 && zn_zentry_at(t, c->next)->t_ns < start; c->left--)
            c->next = zn_zentry_at(t, c->next)->newer;
    }
    c->attributes += c->left != 0;
}

static zn_observation next_user(const zn_ztable *t, zn_ztable_cursor *c)
{
    c->left--;
    c->tuples++;
    if (c->kind != ZN_ZKIND_LIST)
        return zn_zrecord_get(t, zn_zref_of(c->kind, c->slot), c->next--);
    uint32_t entry = c->next;
    c->next = zn_zentry_at(t, entry)->newer;
    return zn_zentry_get(t, entry);
}

/* Returns the part of the attribute's identity that the slot stores. */
static zn_id id_at(const zn_ztable *t, zn_zref ref)
{
    return zn_zref_kind(ref) == ZN_ZKIND_LIST ? zn_zlist_at(t, zn_zref_index(ref))->id
                                              : zn_zrecord_id(zn_zrecord_at(t, ref));
}

/* Fetches the buckets of the next slots while users are written, because the buckets of
 * neighbouring slots are far apart in memory. */
ZN_ZFETCHER void fetch_bucket_ahead(const zn_ztable *t, const zn_ztable_cursor *c)
{
    uint32_t slot = c->slot + FETCH_AHEAD;
    if (slot <= t->size[c->kind].slab.used_high)
        ZN_PREFETCH(zn_zindex_home(&t->by_id, id_at(t, zn_zref_of(c->kind, slot)).lo));
}

/* The identity of the slot's attribute; a list's upper eight bits are the index's alone. */
static zn_id id_of(const zn_ztable *t, const zn_ztable_cursor *c)
{
    zn_zref ref = zn_zref_of(c->kind, c->slot);
    zn_id id = id_at(t, ref);
    const zn_zbucket *b = zn_zindex_home(&t->by_id, id.lo);
    id.hi &= ZN_ZID_HI;
    for (; b != NULL; b = zn_zindex_more(&t->by_id, b))
        for (int i = 0; i < ZN_ZBUCKET_SLOTS; i++)
            if (b->ref[i] == ref)
                id.hi |= (uint64_t)b->tag[i] << 56;
    return id;
}

/* Writes users of the current attribute until `end`; returns the end of the bytes written. */
static uint8_t *put_block(const zn_ztable *t, zn_ztable_cursor *c, uint8_t *at, const uint8_t *end)
{
    size_t width = time_bytes(t->config.window_ns);
    size_t n = ((size_t)(end - at) - ID - 2) / (width + USER);
    zn_id id = id_of(t, c);
    uint64_t small;
    if (n > c->left)
        n = c->left;
    if (n > BLOCK_MAX)
        n = BLOCK_MAX;
    small = n <= COUNT_SMALL ? n : 0;
    at = zn_le_put(at, id.lo, 8);
    at = zn_le_put(at, (id.hi & ZN_ZID_HI) | (id.hi >> 56) << 44 | small << 52, 7);
    if (small == 0)
        at = zn_le_put(at, n, 2);
    while (n-- != 0) {
        zn_observation o = next_user(t, c);
        at = zn_le_put(at, (uint64_t)(t->clock.now_ns - o.t_ns), width);
        at = zn_le_put(at, (o.user & UINT32_MAX) | o.user >> 56 << 32, USER);
    }
    return at;
}

static uint8_t *put_blocks(const zn_ztable *t, zn_ztable_cursor *c, uint8_t *at, const uint8_t *end)
{
    size_t least = ID + 2 + time_bytes(t->config.window_ns) + USER;
    while ((size_t)(end - at) >= least) {
        if (c->left != 0) {
            at = put_block(t, c, at, end);
        } else if (next_slot(t, c)) {
            fetch_bucket_ahead(t, c);
            start_attribute(t, c);
        } else {
            c->part = PART_TRAILER;
            break;
        }
    }
    return at;
}

size_t zn_ztable_export(const zn_ztable *t, zn_ztable_cursor *c, void *out, size_t cap)
{
    uint8_t *start = out, *at = out;
    if (c->part == PART_HEADER) {
        zn_sip s = zn_sip_start(&published);
        const uint64_t state[4] = {s.v0, s.v1, s.v2, s.v3};
        memcpy(c->checksum, state, sizeof state);
        at = put_header(t, at);
        c->part = PART_BLOCKS;
    }
    if (c->part == PART_BLOCKS)
        at = put_blocks(t, c, at, start + cap);
    if (c->part == PART_TRAILER && (size_t)(start + cap - at) >= TRAILER) {
        at = zn_le_put(at, c->attributes, 8);
        at = zn_le_put(at, c->tuples, 8);
        checksum_add(c, start, (size_t)(at - start));
        c->part = PART_DONE;
        at = zn_le_put(at, checksum_end(c), 8);
    } else {
        checksum_add(c, start, (size_t)(at - start));
    }
    return (size_t)(at - start);
}

/* ---- import ---- */

/* The header of a snapshot, checked as far as it can be without a table. */
typedef struct header {
    zn_ztable_config config;
    zn_ztable_stats stats;
    uint32_t rejected_late, rejected_ahead, started;
    int64_t now_ns;
    zn_cursor blocks;
    uint64_t attributes, tuples;
} header;

static void read_stats(zn_cursor *c, zn_ztable_stats *s)
{
    s->observations = zn_cursor_le(c, 8);
    s->released = zn_cursor_le(c, 8);
    s->below_z = zn_cursor_le(c, 8);
    s->too_late = zn_cursor_le(c, 8);
    s->late = zn_cursor_le(c, 8);
    s->late_deep = zn_cursor_le(c, 8);
    s->no_room = zn_cursor_le(c, 8);
    s->clock_jumps = zn_cursor_le(c, 8);
    s->evicted = zn_cursor_le(c, 8);
}

static void read_settings(zn_cursor *c, header *h)
{
    h->config = zn_ztable_default_config(1, 1);
    h->config.z = zn_cursor_le32(c);
    h->config.keep = zn_cursor_le32(c);
    h->config.window_ns = (int64_t)zn_cursor_le(c, 8);
    h->config.max_tuples = zn_cursor_le32(c);
    h->config.max_attributes = zn_cursor_le32(c);
    h->config.max_jump_ns = (int64_t)zn_cursor_le(c, 8);
    h->config.rebase_after = zn_cursor_le32(c);
    h->rejected_late = zn_cursor_le32(c);
    h->rejected_ahead = zn_cursor_le32(c);
    h->started = zn_cursor_le32(c);
    h->now_ns = (int64_t)zn_cursor_le(c, 8);
}

/* Returns true if a table can have the numbers of a header. */
static bool possible(const header *h, uint64_t reserved)
{
    const zn_ztable_stats *s = &h->stats;
    const zn_ztable_config *c = &h->config;
    if (reserved != 0 || h->started > 1 || h->now_ns < 0 || (h->started == 0 && h->now_ns != 0))
        return false;
    if (c->window_ns < 1 || c->window_ns > ZN_ZTABLE_WINDOW_MAX_NS || c->max_jump_ns < 0)
        return false;
    if (h->rejected_late >= c->rebase_after || h->rejected_ahead >= c->rebase_after)
        return false;
    return s->released + s->below_z + s->too_late + s->late_deep + s->no_room == s->observations;
}

static int damaged(zn_error *err)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0,
                   "the snapshot of a z-table is damaged: take another, or start without one");
}

static int read_header(header *h, const void *snapshot, size_t n, zn_error *err)
{
    const uint8_t *bytes = snapshot;
    zn_cursor c, trailer;
    uint64_t reserved, version;
    if (n < HEADER + TRAILER || memcmp(bytes, magic, sizeof magic) != 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "this is no snapshot of a z-table");
    c = zn_cursor_over(bytes + sizeof magic, HEADER - sizeof magic, true);
    version = zn_cursor_le32(&c);
    if (version != VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "the snapshot of a z-table has version %u, and this program reads %u",
                       (unsigned)version, VERSION);
    if (zn_le_get(bytes + n - 8, 8) != zn_hash64(&published, bytes, n - 8))
        return damaged(err);
    read_settings(&c, h);
    reserved = zn_cursor_le(&c, 8) | zn_cursor_le(&c, 8);
    read_stats(&c, &h->stats);
    if (!possible(h, reserved))
        return damaged(err);
    h->blocks = zn_cursor_over(bytes + HEADER, n - HEADER - TRAILER, true);
    trailer = zn_cursor_over(bytes + n - TRAILER, TRAILER, true);
    h->attributes = zn_cursor_le(&trailer, 8);
    h->tuples = zn_cursor_le(&trailer, 8);
    return 0;
}

int zn_ztable_snapshot_config(const void *snapshot, size_t n, zn_ztable_config *config,
                              zn_error *err)
{
    header h;
    size_t size = config->size;
    int rc = read_header(&h, snapshot, n, err);
    if (rc != 0)
        return rc;
    if (size < sizeof size || size > sizeof h.config)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the size of a zn_ztable_config is wrong");
    h.config.size = size;
    memcpy(config, &h.config, size);
    return 0;
}

/* Restores the users of a block; returns false if no table could have written the block. */
static bool read_block(zn_ztable *t, zn_cursor *c, int64_t *last_ns, zn_id *last)
{
    size_t width = time_bytes(t->config.window_ns);
    zn_observation o = {0};
    uint64_t upper, n;
    o.attribute.lo = zn_cursor_le(c, 8);
    upper = zn_cursor_le(c, 7);
    o.attribute.hi = (upper & ZN_ZID_HI) | (upper >> 44 & 0xff) << 56;
    if ((n = upper >> 52) == 0 && (n = zn_cursor_le(c, 2)) <= COUNT_SMALL)
        return false;
    if (!zn_id_equal(o.attribute, *last)) {
        if (zn_zref_find(t, o.attribute) != NULL)
            return false; /* its users are not together */
        *last_ns = 0;
        *last = o.attribute;
    }
    while (n-- != 0) {
        uint64_t before = zn_cursor_le(c, width), user = zn_cursor_le(c, USER);
        uint64_t tuples = t->stats.tuples;
        if (!zn_cursor_ok(c) || before > (uint64_t)t->clock.now_ns ||
            before > (uint64_t)t->config.window_ns)
            return false;
        o.t_ns = t->clock.now_ns - (int64_t)before;
        o.user = (user & UINT32_MAX) | user >> 32 << 56;
        if (o.t_ns < *last_ns || zn_zplace(t, &o) >= ZN_ZFULL || t->stats.tuples != tuples + 1)
            return false; /* out of order, twice, or more than `keep` */
        *last_ns = o.t_ns;
    }
    return true;
}

/* Returns 0 if the settings of the table are the settings of the snapshot. */
static int fits(const zn_ztable *t, const header *h, zn_error *err)
{
    const zn_ztable_config *mine = &t->config, *other = &h->config;
    if (t->marks.of != NULL)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "a snapshot has no votes for labels: start without it, or without levels");
    if (t->stats.observations != 0 || t->clock.started || t->stats.tuples != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a snapshot goes into a table that is empty");
    if (mine->z != other->z || mine->keep != other->keep || mine->window_ns != other->window_ns)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "the snapshot is of a table with z %u, keep %u and a window of %lld ns, and "
                       "this one has %u, %u and %lld",
                       other->z, other->keep, (long long)other->window_ns, mine->z, mine->keep,
                       (long long)mine->window_ns);
    if (h->tuples > mine->max_tuples || h->attributes > mine->max_attributes)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "the snapshot has %llu tuples and %llu attributes, and the table takes %u "
                       "and %u: raise its limits",
                       (unsigned long long)h->tuples, (unsigned long long)h->attributes,
                       mine->max_tuples, mine->max_attributes);
    return 0;
}

int zn_ztable_import(zn_ztable *t, const void *snapshot, size_t n, zn_error *err)
{
    header h;
    zn_id last = {0, 0};
    int64_t last_ns = 0;
    bool good = true;
    int rc = read_header(&h, snapshot, n, err);
    if (rc != 0 || (rc = fits(t, &h, err)) != 0)
        return rc;
    t->clock.now_ns = t->swept_ns = h.now_ns;
    while (good && zn_cursor_left(&h.blocks) != 0)
        good = read_block(t, &h.blocks, &last_ns, &last);
    if (!good || t->stats.tuples != h.tuples || t->stats.attributes != h.attributes ||
        (h.started == 0 && h.tuples != 0)) {
        static const zn_ztable_stats none;
        zn_ztable_clear(t);
        t->stats = none;
        return damaged(err);
    }
    t->clock.started = h.started != 0;
    t->clock.rejected_late = h.rejected_late;
    t->clock.rejected_ahead = h.rejected_ahead;
    h.stats.tuples = t->stats.tuples;
    h.stats.attributes = t->stats.attributes;
    t->stats = h.stats;
    return 0;
}
