/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dumps of a shard: settings, rules, counters, clients' addresses, membership, leases, votes that
 * wait, and the snapshot of the table. All numbers are little endian, and the end is a checksum
 * under a published key. The data can link users, so a dump must be sealed before it is stored.
 */
#include "count/vote_shard_internal.h"
#include "util/arena.h"
#include "util/hash.h"

#define VERSION 4
#define CHECKSUM 8
#define STEP ((size_t)1 << 16) /* bytes of the table's snapshot that are written at once */
#define COUNTERS (sizeof(zn_vote_shard_stats) / sizeof(uint64_t))
#define VOTE_BYTES (8 + 5 + 16 + 4 + 1)
#define LEASE_BYTES (16 + 8 + 8)

static const char magic[4] = {'Z', 'N', 'V', 'S'};
/* "zanon-net/1/shrd" */
static const zn_hash_key published = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x647268732f312f74)};

_Static_assert(sizeof(zn_vote_shard_stats) == COUNTERS * sizeof(uint64_t), "counters alone");

/* ---- writing ---- */

static void put_settings(const zn_vote_shard_config *c, zn_text *out)
{
    zn_text_bytes(out, magic, sizeof magic);
    zn_text_le(out, VERSION, 4);
    zn_text_le(out, c->table.z, 4);
    zn_text_le(out, c->table.keep, 4);
    zn_text_le(out, (uint64_t)c->table.window_ns, 8);
    zn_text_le(out, c->table.max_tuples, 4);
    zn_text_le(out, c->table.max_attributes, 4);
    zn_text_le(out, c->settings, 8);
    zn_text_le(out, (uint64_t)c->rotate_ns, 8);
    zn_text_le(out, (uint64_t)c->max_ahead_ns, 8);
    zn_text_le(out, (uint64_t)c->max_lag_ns, 8);
    zn_text_le(out, c->max_clients, 4);
    zn_text_le(out, c->max_pending, 4);
    zn_text_le(out, c->max_probes, 4);
    zn_text_le(out, c->max_leases, 4);
    zn_text_le(out, c->shard, 2);
    zn_text_le(out, c->keep_releases, 1);
}

static void put_clients(const zn_vote_clients *c, zn_text *out)
{
    zn_text_le(out, (uint64_t)c->epoch, 8);
    zn_text_le(out, (uint64_t)c->last_epoch, 8);
    zn_text_le(out, (uint64_t)c->lost_epoch, 8);
    for (int i = 0; i < 2; i++) {
        const zn_addr_set *set = &c->set[i];
        zn_text_le(out, set->full, 1);
        zn_text_le(out, set->members, 4);
        for (uint64_t at = 0; set->members != 0 && at <= set->mask; at++)
            if (set->slots[at] != 0)
                zn_text_le(out, set->slots[at], 8);
    }
}

static void put_leases(const zn_leases *l, zn_text *out)
{
    zn_text_le(out, l->n, 4);
    for (uint32_t i = 0; i < l->n; i++) {
        const zn_lease *lease = l->lease + i;
        zn_text_le(out, lease->id.lo, 8);
        zn_text_le(out, lease->id.hi, 8);
        zn_text_le(out, (uint64_t)lease->since_ns, 8);
        zn_text_le(out, (uint64_t)lease->until_ns, 8);
    }
}

static void put_pending(const zn_vote_shard *s, zn_text *out)
{
    zn_text_le(out, s->pending_count, 4);
    for (size_t i = 0; i < s->pending_count; i++) {
        const zn_pending *m = s->pending[i];
        zn_text_le(out, m->header.probe, 8);
        zn_text_le(out, m->header.sequence, 8);
        zn_text_le(out, m->header.votes, 4);
        zn_text_le(out, m->next, 4);
        zn_text_bytes(out, (const char *)m->bits, m->header.votes / 8 + (size_t)1);
        for (uint32_t k = m->next; k < m->header.votes; k++) {
            const zn_pending_vote *v = m->vote + k;
            zn_text_le(out, (uint64_t)v->t_ns, 8);
            zn_text_le(out, zn_vote_user40(v->user), 5);
            zn_text_le(out, v->id.lo, 8);
            zn_text_le(out, v->id.hi, 8);
            zn_text_le(out, v->index, 4);
            zn_text_le(out, v->kind, 1);
        }
    }
}

static void put_table(const zn_ztable *table, zn_text *out)
{
    zn_ztable_cursor cursor = {0};
    size_t length_at = out->n, n;
    char *at;
    zn_text_le(out, 0, 8);
    do {
        at = zn_text_reserve(out, STEP);
        n = at == NULL ? 0 : zn_ztable_export(table, &cursor, at, STEP);
        out->n += n;
    } while (n != 0);
    if (!out->failed)
        (void)zn_le_put((uint8_t *)out->bytes + length_at, out->n - length_at - 8, 8);
}

int zn_vote_shard_dump(const zn_vote_shard *s, zn_text *out, zn_error *err)
{
    uint64_t counters[COUNTERS];
    size_t start = out->n;
    if (s->ready_count != 0 || s->releases != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "take answers and releases before the dump");
    memcpy(counters, &s->stats, sizeof counters);
    put_settings(&s->config, out);
    zn_text_le(out, s->rules, sizeof s->rules);
    zn_text_le(out, (uint64_t)s->decided_ns, 8);
    zn_text_le(out, (uint64_t)s->newest_ns, 8);
    for (size_t i = 0; i < COUNTERS; i++)
        zn_text_le(out, counters[i], 8);
    put_clients(&s->clients, out);
    zn_membership_put(&s->members, out);
    put_leases(&s->leases, out);
    put_pending(s, out);
    put_table(s->table, out);
    if (!out->failed)
        zn_text_le(out, zn_hash64(&published, out->bytes + start, out->n - start), CHECKSUM);
    return out->failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the dump of a shard") : 0;
}

/* ---- reading ---- */

static int damaged(zn_error *err)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0,
                   "the dump of a shard is damaged: take another, or start without one");
}

static void read_settings(zn_cursor *c, zn_vote_shard_config *out)
{
    zn_vote_shard_config_init(out, zn_cursor_le32(c), 1);
    out->table.keep = zn_cursor_le32(c);
    out->table.window_ns = (int64_t)zn_cursor_le(c, 8);
    out->table.max_tuples = zn_cursor_le32(c);
    out->table.max_attributes = zn_cursor_le32(c);
    out->settings = zn_cursor_le(c, 8);
    out->rotate_ns = (int64_t)zn_cursor_le(c, 8);
    out->max_ahead_ns = (int64_t)zn_cursor_le(c, 8);
    out->max_lag_ns = (int64_t)zn_cursor_le(c, 8);
    out->max_clients = zn_cursor_le32(c);
    out->max_pending = zn_cursor_le32(c);
    out->max_probes = zn_cursor_le32(c);
    out->max_leases = zn_cursor_le32(c);
    out->shard = zn_cursor_le16(c);
    out->keep_releases = zn_cursor_u8(c) != 0;
}

static bool read_clients(zn_cursor *c, zn_vote_clients *out)
{
    out->epoch = (int64_t)zn_cursor_le(c, 8);
    out->last_epoch = (int64_t)zn_cursor_le(c, 8);
    out->lost_epoch = (int64_t)zn_cursor_le(c, 8);
    for (int i = 0; i < 2; i++) {
        bool full = zn_cursor_u8(c) != 0;
        uint32_t members = zn_cursor_le32(c);
        for (uint32_t k = 0; k < members && zn_cursor_ok(c); k++) {
            uint64_t hash = zn_cursor_le(c, 8);
            if (hash == 0)
                return false;
            zn_addr_set_add_hash(&out->set[i], hash);
        }
        if (out->set[i].members != members || out->set[i].full)
            return false; /* a duplicate, or too many members */
        out->set[i].full = full;
    }
    return out->last_epoch >= 0 && out->epoch >= out->last_epoch &&
           out->lost_epoch >= ZN_VOTE_EPOCH_NONE;
}

static bool read_leases(zn_cursor *c, zn_vote_shard *s)
{
    uint32_t n = zn_cursor_le32(c);
    if (n > s->config.max_leases || n > zn_cursor_left(c) / LEASE_BYTES)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        zn_id id = {zn_cursor_le(c, 8), 0};
        int64_t since_ns, until_ns;
        id.hi = zn_cursor_le(c, 8);
        since_ns = (int64_t)zn_cursor_le(c, 8);
        until_ns = (int64_t)zn_cursor_le(c, 8);
        if (since_ns < 0 || until_ns < since_ns || zn_leases_find(&s->leases, id) != NULL ||
            !zn_leases_add(&s->leases, id, since_ns, until_ns))
            return false;
    }
    return true;
}

/* Reads the waiting votes of a message; false if they are invalid or out of order. */
static bool read_votes(zn_cursor *c, zn_pending *m)
{
    for (uint32_t k = m->next; k < m->header.votes; k++) {
        zn_pending_vote *v = m->vote + k;
        v->t_ns = (int64_t)zn_cursor_le(c, 8);
        v->user = zn_vote_user_of(zn_cursor_le(c, 5));
        v->id.lo = zn_cursor_le(c, 8);
        v->id.hi = zn_cursor_le(c, 8);
        v->index = zn_cursor_le32(c);
        v->kind = zn_cursor_u8(c);
        if (v->t_ns < 0 || v->kind < 1 || v->kind > ZN_COUNTED_KINDS ||
            v->index >= m->header.votes || (k > m->next && v->t_ns < v[-1].t_ns))
            return false;
    }
    return true;
}

static int read_message(zn_cursor *c, zn_vote_shard *s, zn_error *err)
{
    zn_vote_header h = {.shard = s->config.shard, .settings = s->config.settings};
    uint32_t next;
    zn_span bits;
    zn_pending *m;
    int rc;
    h.probe = zn_cursor_le(c, 8);
    h.sequence = zn_cursor_le(c, 8);
    h.votes = zn_cursor_le32(c);
    next = zn_cursor_le32(c);
    bits = zn_cursor_take(c, h.votes / 8 + (size_t)1);
    if (bits.n == 0 || h.votes > ZN_VOTES_MAX || next > h.votes ||
        h.votes - next > zn_cursor_left(c) / VOTE_BYTES || bits.p[bits.n - 1] >> h.votes % 8 != 0)
        return damaged(err);
    if ((rc = zn_shard_reserve(s, h.votes - next, err)) != 0)
        return rc;
    m = zn_pending_make(&h);
    if (m == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message");
    m->next = next;
    memcpy(m->bits, bits.p, bits.n);
    if (!read_votes(c, m)) {
        zn_heap_free(m);
        return damaged(err);
    }
    zn_shard_append(s, m);
    return 0;
}

static int read_pending(zn_cursor *c, zn_vote_shard *s, zn_error *err)
{
    uint32_t n = zn_cursor_le32(c);
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = read_message(c, s, err);
    return rc;
}

/* Reads the parts after the settings. */
static int read_state(zn_cursor *c, zn_vote_shard *s, zn_error *err)
{
    uint64_t counters[COUNTERS];
    zn_vote_rules rules;
    zn_span table;
    int rc;
    s->rules = zn_cursor_le(c, sizeof s->rules);
    s->decided_ns = (int64_t)zn_cursor_le(c, 8);
    s->newest_ns = (int64_t)zn_cursor_le(c, 8);
    for (size_t i = 0; i < COUNTERS; i++)
        counters[i] = zn_cursor_le(c, 8);
    memcpy(&s->stats, counters, sizeof counters);
    if (s->rules != ZN_VOTE_RULES_NONE && !zn_vote_rules_unpack(&rules, s->rules))
        return damaged(err);
    if (s->decided_ns < 0 || s->newest_ns < 0 || !read_clients(c, &s->clients) ||
        !zn_membership_read(&s->members, c) || !read_leases(c, s))
        return damaged(err);
    zn_shard_note_gone(s);
    if ((rc = read_pending(c, s, err)) != 0)
        return rc;
    table = zn_cursor_take(c, zn_cursor_le(c, 8));
    if (!zn_cursor_ok(c) || zn_cursor_left(c) != 0)
        return damaged(err);
    return zn_ztable_import(s->table, table.p, table.n, err);
}

int zn_vote_shard_load(zn_vote_shard **out, zn_span dump, zn_error *err)
{
    zn_vote_shard_config config;
    zn_vote_shard *s;
    zn_cursor c;
    uint32_t version;
    int rc;
    *out = NULL;
    if (dump.n < sizeof magic + 4 + CHECKSUM || memcmp(dump.p, magic, sizeof magic) != 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "this is no dump of a shard");
    c = zn_cursor_over(dump.p + sizeof magic, dump.n - sizeof magic - CHECKSUM, true);
    version = zn_cursor_le32(&c);
    if (version != VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "the dump of a shard has version %u, and this program reads %u", version,
                       VERSION);
    if (zn_le_get(c.end, CHECKSUM) != zn_hash64(&published, dump.p, dump.n - CHECKSUM))
        return damaged(err);
    read_settings(&c, &config);
    if (!zn_cursor_ok(&c))
        return damaged(err);
    rc = zn_vote_shard_open(&s, &config, err);
    if (rc != 0)
        return rc == -ZN_ERR_CONFIG ? damaged(err) : rc;
    rc = read_state(&c, s, err);
    if (rc != 0) {
        zn_vote_shard_close(s);
        return rc == -ZN_ERR_CONFIG ? damaged(err) : rc;
    }
    *out = s;
    return 0;
}
