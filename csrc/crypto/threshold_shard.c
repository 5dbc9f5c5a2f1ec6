/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The m open epochs and the epoch that ended last share a ring. Epoch e lives at e modulo m + 1,
 * with a hash table of its own, and is replaced by e + m + 1. The ended epoch serves votes of
 * messages that were answered an interval later than their neighbours. Points are stored in lots of
 * five, the newest lot first.
 */
#include "crypto/threshold_shard.h"

#include "crypto/keys.h"
#include "util/arena.h"
#include "util/cursor.h"
#include "util/hash.h"

#include <endian.h>
#include <string.h>

#define LOT_POINTS 5u
#define SPARE 8u /* points kept beyond z */
#define ATTEMPTS_MAX 256u
#define LATE_MAX 256u
#define BUCKETS ((size_t)1 << 18) /* of each epoch; a power of two */
#define NO_EPOCH INT64_MIN
#define MAGIC "ZNTS"
#define VERSION 1
#define HEADER_BYTES 32
#define GROUP_BYTES 32
#define POINT_BYTES (sizeof(uint64_t) + ZN_F127_BYTES)

/* Points of one group, or, once it is recovered, the key of its rows. */
typedef struct lot {
    union {
        struct {
            uint64_t x, y[2];
        } point[LOT_POINTS];
        uint8_t key[ZN_ROW_KEY_BYTES];
    } u;
    uint32_t older; /* 0: none */
    uint32_t count;
} lot;

typedef struct group {
    zn_id id;
    uint32_t next_in_bucket, next_in_epoch;
    uint32_t newest; /* lot; 0: none */
    uint16_t points, attempts;
    bool recovered;
} group;

typedef struct epoch {
    int64_t epoch; /* NO_EPOCH: none yet */
    uint32_t *bucket;
    uint32_t first; /* group */
} epoch;

struct zn_threshold_shard {
    zn_threshold_rule rule;
    zn_threshold_stats stats;
    zn_bucket_key hash_key;
    zn_slab groups, lots;
    epoch ring[ZN_THRESHOLD_EPOCHS_MAX + 1];
    uint32_t ring_count;
    int64_t newest; /* epoch; NO_EPOCH: none yet */
    uint32_t late_in_a_row;
    zn_row_cipher *cipher;
    zn_share *shares; /* z + SPARE, twice: a circle without a seam */
    zn_f127 *scratch; /* 2 z */
};

/* ---- open and close ---- */

static size_t shares_bytes(const zn_threshold_shard *s)
{
    return 2 * (s->rule.z + SPARE) * sizeof *s->shares;
}

static size_t scratch_bytes(const zn_threshold_shard *s)
{
    return 2 * s->rule.z * sizeof *s->scratch;
}

static int open_parts(zn_threshold_shard *s, uint32_t max_groups, zn_error *err)
{
    int rc = zn_bucket_key_random(&s->hash_key, err);
    if (rc == 0)
        rc = zn_slab_init(&s->groups, sizeof(group), max_groups, err);
    if (rc == 0)
        rc = zn_slab_init(&s->lots, sizeof(lot), max_groups, err);
    if (rc == 0)
        rc = zn_row_cipher_open(&s->cipher, false, err);
    s->shares = zn_block_alloc(shares_bytes(s));
    s->scratch = zn_block_alloc(scratch_bytes(s));
    for (uint32_t i = 0; i < s->ring_count; i++) {
        s->ring[i].epoch = NO_EPOCH;
        s->ring[i].bucket = zn_block_alloc(BUCKETS * sizeof(uint32_t));
        if (rc == 0 && s->ring[i].bucket == NULL)
            rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for shares");
    }
    if (rc == 0 && (s->shares == NULL || s->scratch == NULL))
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for shares");
    return rc;
}

int zn_threshold_shard_open(zn_threshold_shard **out, const zn_threshold_rule *rule,
                            uint32_t max_groups, zn_error *err)
{
    int rc = zn_threshold_check(rule, err);
    zn_threshold_shard *s;
    *out = NULL;
    if (rc != 0)
        return rc;
    s = zn_block_alloc(sizeof *s);
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for shares");
    s->rule = *rule;
    s->ring_count = rule->epochs + 1;
    s->newest = NO_EPOCH;
    rc = open_parts(s, max_groups, err);
    if (rc != 0)
        zn_threshold_shard_close(s);
    else
        *out = s;
    return rc;
}

void zn_threshold_shard_close(zn_threshold_shard *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; i < s->ring_count; i++)
        zn_block_free(s->ring[i].bucket, BUCKETS * sizeof(uint32_t));
    zn_slab_fini(&s->groups);
    zn_slab_fini(&s->lots);
    zn_row_cipher_close(s->cipher);
    zn_block_free(s->shares, shares_bytes(s));
    if (s->scratch != NULL)
        zn_wipe(s->scratch, scratch_bytes(s));
    zn_block_free(s->scratch, scratch_bytes(s));
    zn_block_free(s, sizeof *s);
}

const zn_threshold_stats *zn_threshold_shard_stats(const zn_threshold_shard *s)
{
    return &s->stats;
}

/* ---- epochs and groups ---- */

static void give_lots(zn_threshold_shard *s, group *g)
{
    while (g->newest != 0) {
        uint32_t at = g->newest;
        g->newest = ((lot *)zn_slab_at(&s->lots, at))->older;
        zn_slab_give(&s->lots, at);
    }
}

static void close_epoch(zn_threshold_shard *s, epoch *e)
{
    while (e->first != 0) {
        uint32_t at = e->first;
        group *g = zn_slab_at(&s->groups, at);
        e->first = g->next_in_epoch;
        give_lots(s, g);
        zn_slab_give(&s->groups, at);
    }
    zn_block_clear(e->bucket, BUCKETS * sizeof(uint32_t));
    e->epoch = NO_EPOCH;
}

static epoch *place_of(zn_threshold_shard *s, int64_t number)
{
    int64_t n = (int64_t)s->ring_count;
    return &s->ring[(number % n + n) % n];
}

/* Returns the place of an epoch, and opens it if it is new; NULL if the epoch is over. */
static epoch *epoch_at(zn_threshold_shard *s, int64_t number)
{
    int64_t n = (int64_t)s->ring_count;
    epoch *e = place_of(s, number);
    if (ZN_LIKELY(e->epoch == number))
        return e;
    if (s->newest != NO_EPOCH && number <= s->newest - n)
        return NULL;
    if (number > s->newest)
        s->newest = number;
    close_epoch(s, e);
    e->epoch = number;
    return e;
}

static group *find(zn_threshold_shard *s, const epoch *e, zn_id id, uint32_t **bucket)
{
    group *g;
    *bucket = &e->bucket[zn_bucket_hash2(&s->hash_key, id.lo, id.hi) & (BUCKETS - 1)];
    for (uint32_t at = **bucket; at != 0; at = g->next_in_bucket) {
        g = zn_slab_at(&s->groups, at);
        if (zn_id_equal(g->id, id))
            return g;
    }
    return NULL;
}

/* Finds or makes the group; NULL when memory is out. */
static group *group_of(zn_threshold_shard *s, epoch *e, zn_id id)
{
    uint32_t *bucket, at;
    group *g = find(s, e, id, &bucket);
    if (g != NULL)
        return g;
    at = zn_slab_take(&s->groups);
    if (at == 0)
        return NULL;
    g = zn_slab_at(&s->groups, at);
    g->id = id;
    g->next_in_bucket = *bucket;
    g->next_in_epoch = e->first;
    *bucket = e->first = at;
    return g;
}

/* ---- points ---- */

/* Copies the points of a group, oldest first. */
static void gather(const zn_threshold_shard *s, const group *g, zn_share *out)
{
    size_t n = g->points;
    for (uint32_t at = g->newest; at != 0;) {
        const lot *l = zn_slab_at(&s->lots, at);
        for (uint32_t i = l->count; i-- > 0;) {
            out[--n].x = l->u.point[i].x;
            out[n].y = (zn_u128)l->u.point[i].y[1] << 64 | l->u.point[i].y[0];
        }
        at = l->older;
    }
}

/* Returns true if the group has a point at x. Counts the point as a conflict if its value differs
 * from y. */
static bool has_point(zn_threshold_shard *s, const group *g, uint64_t x, const uint64_t y[2])
{
    for (uint32_t at = g->newest; at != 0;) {
        const lot *l = zn_slab_at(&s->lots, at);
        for (uint32_t i = 0; i < l->count; i++) {
            if (l->u.point[i].x != x)
                continue;
            if (l->u.point[i].y[0] != y[0] || l->u.point[i].y[1] != y[1])
                s->stats.shares_conflicts++;
            return true;
        }
        at = l->older;
    }
    return false;
}

/* Adds a point that is not there yet; false when memory is out. */
static bool put_point(zn_threshold_shard *s, group *g, uint64_t x, const uint64_t y[2])
{
    lot *l = g->newest == 0 ? NULL : zn_slab_at(&s->lots, g->newest);
    if (l == NULL || l->count == LOT_POINTS) {
        uint32_t at = zn_slab_take(&s->lots);
        if (at == 0)
            return false;
        l = zn_slab_at(&s->lots, at);
        l->older = g->newest;
        g->newest = at;
    }
    l->u.point[l->count].x = x;
    memcpy(l->u.point[l->count].y, y, sizeof l->u.point[0].y);
    l->count++;
    g->points++;
    return true;
}

static void add_share(zn_threshold_shard *s, epoch *e, zn_id id, uint64_t x, const uint64_t y[2])
{
    group *g = group_of(s, e, id);
    if (g == NULL) {
        s->stats.shares_full++;
        return;
    }
    if (g->recovered || g->points >= s->rule.z + SPARE || has_point(s, g, x, y))
        return;
    if (!put_point(s, g, x, y))
        s->stats.shares_full++;
}

/* ---- keys ---- */

/* Makes the key from the z shares at `shares`; true when it opens the row. */
static bool attempt(zn_threshold_shard *s, const zn_threshold_group *of, const zn_share *shares,
                    const zn_threshold_decided *d, zn_span sealed, uint8_t key[ZN_ROW_KEY_BYTES],
                    zn_span *row)
{
    zn_f127 secret = zn_shamir_secret(shares, s->rule.z, s->scratch);
    return zn_threshold_row_key(of, secret, key) && zn_row_cipher_key(s->cipher, key) &&
           zn_row_cipher_unseal(s->cipher, d->nonce, &d->vote.place, sealed, row);
}

/* Replaces the points of a group by its key. */
static void keep_key(zn_threshold_shard *s, group *g, const uint8_t key[ZN_ROW_KEY_BYTES])
{
    uint32_t at;
    give_lots(s, g);
    at = zn_slab_take(&s->lots); /* one was just given back */
    memcpy(((lot *)zn_slab_at(&s->lots, at))->u.key, key, ZN_ROW_KEY_BYTES);
    g->newest = at;
    g->points = 0;
    g->recovered = true;
    s->stats.keys_recovered++;
}

/* Tries runs of z points of the group until one opens the row. */
static bool recover(zn_threshold_shard *s, group *g, const zn_threshold_group *of,
                    const zn_threshold_decided *d, zn_span sealed, zn_span *row)
{
    uint8_t key[ZN_ROW_KEY_BYTES];
    uint32_t n = g->points, runs = n == s->rule.z ? 1 : n;
    bool found = false;
    gather(s, g, s->shares);
    memcpy(s->shares + n, s->shares, n * sizeof *s->shares);
    for (uint32_t i = 0; i < runs && !found && g->attempts < ATTEMPTS_MAX; i++) {
        found = attempt(s, of, s->shares + i, d, sealed, key, row);
        g->attempts++;
        if (!found && g->attempts == ATTEMPTS_MAX)
            s->stats.keys_spoiled++;
    }
    if (found)
        keep_key(s, g, key);
    zn_wipe(key, sizeof key);
    return found;
}

/* Opens the row of a released vote, where its group has its key. */
static bool open_row(zn_threshold_shard *s, const zn_threshold_group *of,
                     const zn_threshold_decided *d, zn_span sealed, zn_span *row)
{
    const epoch *e = epoch_at(s, of->epoch);
    uint32_t *bucket;
    group *g = e == NULL ? NULL : find(s, e, of->id, &bucket);
    bool opened;
    if (g == NULL || (!g->recovered && g->points < s->rule.z)) {
        s->stats.rows_short++;
        return false;
    }
    if (g->recovered)
        opened = zn_row_cipher_key(s->cipher, ((lot *)zn_slab_at(&s->lots, g->newest))->u.key) &&
                 zn_row_cipher_unseal(s->cipher, d->nonce, &d->vote.place, sealed, row);
    else
        opened = recover(s, g, of, d, sealed, row);
    if (!opened)
        s->stats.rows_spoiled++;
    return opened;
}

/* ---- votes ---- */

static bool is_printed(zn_span row)
{
    for (size_t i = 0; i < row.n; i++)
        if (row.p[i] < 0x20 || row.p[i] > 0x7e)
            return false;
    return true;
}

static uint64_t cursor_le64(zn_cursor *c)
{
    uint64_t low = zn_cursor_le32(c);
    return low | (uint64_t)zn_cursor_le32(c) << 32;
}

/* Drops all shares when a run of late votes shows that the clock was wrong, as the z-table does. */
static void note_late(zn_threshold_shard *s)
{
    s->stats.votes_late++;
    if (++s->late_in_a_row < LATE_MAX)
        return;
    for (uint32_t i = 0; i < s->ring_count; i++)
        close_epoch(s, &s->ring[i]);
    s->newest = NO_EPOCH;
    s->late_in_a_row = 0;
    s->stats.resets++;
}

bool zn_threshold_shard_take(zn_threshold_shard *s, const zn_threshold_decided *d, zn_span *row)
{
    zn_cursor c = zn_cursor_over_span(d->attachment, true);
    zn_cursor shares = zn_cursor_sub(&c, s->rule.epochs * ZN_F127_BYTES);
    zn_threshold_group of = {d->vote.id, zn_threshold_epoch(&s->rule, d->vote.t_ns)};
    uint64_t x = zn_threshold_point(d->vote.user);
    bool live = false, opened;
    if (!zn_cursor_ok(&c)) {
        s->stats.votes_malformed++;
        return false;
    }
    s->stats.votes++;
    for (uint32_t i = 0; i < s->rule.epochs; i++, of.epoch--) {
        epoch *e = epoch_at(s, of.epoch);
        uint64_t y[2];
        y[0] = cursor_le64(&shares);
        y[1] = cursor_le64(&shares) & UINT64_MAX >> 1; /* one with more bits is false anyway */
        if (e != NULL) {
            add_share(s, e, of.id, x, y);
            live = true;
        }
    }
    of.epoch++; /* the oldest, for which the row is sealed */
    if (!live)
        note_late(s);
    else
        s->late_in_a_row = 0;
    if (!d->released || zn_cursor_left(&c) == 0)
        return false;
    opened = open_row(s, &of, d, zn_cursor_rest(&c), row);
    if (opened && !is_printed(*row)) {
        s->stats.rows_unprinted++;
        return false;
    }
    if (opened)
        s->stats.rows_opened++;
    return opened;
}

/* ---- snapshot ---- */

size_t zn_threshold_shard_dump_bytes(const zn_threshold_shard *s)
{
    size_t bytes = HEADER_BYTES;
    for (uint32_t i = 0; i < s->ring_count; i++)
        for (uint32_t at = s->ring[i].first; at != 0;) {
            const group *g = zn_slab_at(&s->groups, at);
            bytes += GROUP_BYTES + (g->recovered ? ZN_ROW_KEY_BYTES : g->points * POINT_BYTES);
            at = g->next_in_epoch;
        }
    return bytes;
}

static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static uint8_t *dump_group(const zn_threshold_shard *s, int64_t number, const group *g, uint8_t *at)
{
    at = put(at, (uint64_t)number, 8);
    at = put(put(at, g->id.lo, 8), g->id.hi, 8);
    at = put(put(at, g->recovered, 2), g->attempts, 2);
    at = put(at, g->points, 4);
    if (g->recovered) {
        memcpy(at, ((lot *)zn_slab_at(&s->lots, g->newest))->u.key, ZN_ROW_KEY_BYTES);
        return at + ZN_ROW_KEY_BYTES;
    }
    gather(s, g, s->shares);
    for (uint32_t i = 0; i < g->points; i++) {
        at = put(at, s->shares[i].x, 8);
        at = put(put(at, (uint64_t)s->shares[i].y, 8), (uint64_t)(s->shares[i].y >> 64), 8);
    }
    return at;
}

void zn_threshold_shard_dump(const zn_threshold_shard *s, uint8_t *out)
{
    uint64_t groups = s->groups.live;
    memcpy(out, MAGIC, 4);
    out = put(put(out + 4, VERSION, 4), s->rule.z, 4);
    out = put(put(out, s->rule.epochs, 4), (uint64_t)s->rule.window_ns, 8);
    out = put(out, groups, 8);
    for (uint32_t i = 0; i < s->ring_count; i++)
        for (uint32_t at = s->ring[i].first; at != 0;) {
            const group *g = zn_slab_at(&s->groups, at);
            out = dump_group(s, s->ring[i].epoch, g, out);
            at = g->next_in_epoch;
        }
}

/* Reads the points or the key of a new group; returns false for bytes that no dump has. */
static bool load_content(zn_threshold_shard *s, group *g, zn_cursor *c, bool recovered,
                         uint32_t points)
{
    if (recovered) {
        static const uint64_t none[2];
        zn_span key = zn_cursor_take(c, ZN_ROW_KEY_BYTES);
        if (points != 0 || key.n == 0 || !put_point(s, g, 1, none))
            return false;
        keep_key(s, g, key.p);
        return true;
    }
    if (points > s->rule.z + SPARE)
        return false;
    for (uint32_t i = 0; i < points; i++) {
        uint64_t x = cursor_le64(c), y[2];
        y[0] = cursor_le64(c);
        y[1] = cursor_le64(c);
        if (!zn_cursor_ok(c) || x < 1 || x > ZN_THRESHOLD_POINT_MAX || y[1] > UINT64_MAX >> 1 ||
            has_point(s, g, x, y) || !put_point(s, g, x, y))
            return false;
    }
    return true;
}

static bool load_group(zn_threshold_shard *s, zn_cursor *c)
{
    int64_t number = (int64_t)cursor_le64(c);
    zn_id id;
    uint32_t recovered, points, *bucket;
    uint16_t attempts;
    epoch *e;
    group *g;
    id.lo = cursor_le64(c);
    id.hi = cursor_le64(c);
    recovered = zn_cursor_le16(c);
    attempts = zn_cursor_le16(c);
    points = zn_cursor_le32(c);
    if (!zn_cursor_ok(c) || recovered > 1 || attempts > ATTEMPTS_MAX || number == NO_EPOCH)
        return false;
    e = place_of(s, number);
    if (e->epoch != NO_EPOCH && e->epoch != number)
        return false;
    e->epoch = number; /* the epoch may be over, if no other epoch has taken its place */
    if (number > s->newest)
        s->newest = number;
    if (find(s, e, id, &bucket) != NULL)
        return false;
    g = group_of(s, e, id);
    if (g == NULL)
        return false;
    g->attempts = attempts;
    return load_content(s, g, c, recovered == 1, points);
}

int zn_threshold_shard_load(zn_threshold_shard *s, zn_span dump, zn_error *err)
{
    zn_cursor c = zn_cursor_over_span(dump, true);
    zn_span magic = zn_cursor_take(&c, 4);
    bool ok = magic.n == 4 && memcmp(magic.p, MAGIC, 4) == 0;
    uint64_t groups;
    ok = zn_cursor_le32(&c) == VERSION && ok;
    if (!ok)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "no snapshot of shares, or one of another version");
    ok = zn_cursor_le32(&c) == s->rule.z;
    ok = zn_cursor_le32(&c) == s->rule.epochs && ok;
    ok = (int64_t)cursor_le64(&c) == s->rule.window_ns && ok;
    if (!ok)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "a snapshot of shares with other settings");
    groups = cursor_le64(&c);
    while (ok && groups-- > 0)
        ok = load_group(s, &c);
    if (!ok || !zn_cursor_ok(&c) || zn_cursor_left(&c) != 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "a damaged snapshot of shares");
    memset(&s->stats, 0, sizeof s->stats);
    return 0;
}
