/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_message.h"

#include "util/arena.h"
#include "util/hash.h"

#define VERSION 1
#define USER_BYTES 5
#define FIRST_SLOTS 512u         /* slots of an empty message; a power of two */
#define GROUP_BYTES_MAX (15 + 3) /* id and kind, count */
#define SEVERAL 8                /* flag next to a kind: the count follows */
#define GROUP_KINDS 8            /* kinds in the bits of a kind; the kinds of lease groups follow */
/* Bits above the rules, in the bytes of the rules. */
#define NEW_SESSION_AT 22
#define MARKS_MISSING_AT 23
#define OPTIONS_MASK ((UINT32_C(1) << NEW_SESSION_AT) - 1)
#define KEY_CHECK_AT (8 * ZN_VOTE_RULES_BYTES)

static const char vote_magic[4] = {'Z', 'N', 'V', 'M'};
static const char answer_magic[4] = {'Z', 'N', 'V', 'A'};
const char *const zn_counted_kind_names[ZN_COUNTED_KINDS + 1] = {
    NULL,
    [ZN_COUNTED_NAME] = "name",
    [ZN_COUNTED_PEEK] = "peek",
    [ZN_COUNTED_CLIENT] = "client",
    [ZN_COUNTED_ADDR] = "addr",
    [ZN_COUNTED_DNS_ADDR] = "dns_addr",
    [ZN_COUNTED_ADDR_CHECK] = "addr_check",
    [ZN_COUNTED_ADDR_PEEK] = "addr_peek",
    [ZN_COUNTED_DNS_ADDR_PEEK] = "dns_addr_peek",
    [ZN_COUNTED_LEASE] = "lease",
    [ZN_COUNTED_ONLY] = "only",
};
/* "zanon-net/1/vote" */
static const zn_hash_key published = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x65746f762f312f74)};

uint64_t zn_vote_checksum(const uint8_t *message, size_t n)
{
    return zn_hash64(&published, message, n);
}

/* ---- writing ---- */

static size_t vote_bytes(const zn_vote_writer *w)
{
    return w->max_votes * sizeof *w->vote;
}

static size_t group_bytes(const zn_vote_writer *w)
{
    return w->max_votes * sizeof *w->group;
}

/* Returns the bytes for twice as many slots as a message can have groups. */
static size_t slot_bytes(const zn_vote_writer *w)
{
    uint32_t slots = FIRST_SLOTS;
    while (slots < 2 * w->max_votes)
        slots *= 2;
    return slots * sizeof *w->slot;
}

int zn_vote_writer_init(zn_vote_writer *w, uint32_t max_votes, zn_error *err)
{
    memset(w, 0, sizeof *w);
    if (max_votes < 1 || max_votes > ZN_VOTES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a message takes from 1 to %u votes", ZN_VOTES_MAX);
    w->max_votes = max_votes;
    w->mask = FIRST_SLOTS - 1;
    w->vote = zn_block_alloc(vote_bytes(w));
    w->group = zn_block_alloc(group_bytes(w));
    w->slot = zn_block_alloc(slot_bytes(w));
    if (w->vote == NULL || w->group == NULL || w->slot == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message of %u votes", max_votes);
    return 0;
}

void zn_vote_writer_fini(zn_vote_writer *w)
{
    zn_block_free(w->vote, vote_bytes(w));
    zn_block_free(w->group, group_bytes(w));
    zn_block_free(w->slot, slot_bytes(w));
    memset(w, 0, sizeof *w);
}

static uint32_t first_slot(const zn_vote_writer *w, uint64_t id_lo, uint8_t kind)
{
    return (uint32_t)(id_lo + kind * UINT64_C(0x9e3779b9)) & w->mask;
}

/* Empties the slots of all groups. */
static void clear_slots(zn_vote_writer *w)
{
    for (uint32_t i = 0; i < w->groups; i++)
        w->slot[w->group[i].slot] = 0;
}

/* Doubles the number of slots in use. A small message thus needs few cache lines. */
static void grow_slots(zn_vote_writer *w)
{
    clear_slots(w);
    w->mask = 2 * w->mask + 1;
    for (uint32_t i = 0; i < w->groups; i++) {
        zn_vote_group *g = w->group + i;
        uint32_t slot = first_slot(w, g->id.lo, g->kind);
        while (w->slot[slot] != 0)
            slot = (slot + 1) & w->mask;
        w->slot[slot] = i + 1;
        g->slot = slot;
    }
}

/* Returns the group of an id and kind, and makes it if it is missing. */
static zn_vote_group *group_of(zn_vote_writer *w, const zn_counted_vote *vote)
{
    zn_id id = {vote->id.lo, vote->id.hi & ZN_VOTE_ID_HI};
    zn_vote_group *g;
    uint32_t slot;
    if (w->groups > w->mask / 2)
        grow_slots(w);
    slot = first_slot(w, id.lo, vote->kind);
    for (; w->slot[slot] != 0; slot = (slot + 1) & w->mask) {
        g = w->group + w->slot[slot] - 1;
        if (zn_id_equal(g->id, id) && g->kind == vote->kind)
            return g;
    }
    g = w->group + w->groups++;
    w->slot[slot] = w->groups;
    g->id = id;
    g->kind = vote->kind;
    g->slot = slot;
    g->count = 0;
    w->lease_groups += vote->kind > GROUP_KINDS;
    return g;
}

bool zn_vote_writer_add(zn_vote_writer *w, const zn_counted_vote *vote)
{
    zn_vote_group *g;
    if (w->votes == w->max_votes)
        return false;
    if (w->votes == 0)
        w->first_ns = w->last_ns = vote->t_ns;
    else if (vote->t_ns < w->first_ns)
        w->first_ns = vote->t_ns;
    else if (vote->t_ns > w->last_ns)
        w->last_ns = vote->t_ns;
    g = group_of(w, vote);
    w->vote[w->votes].t_ns = vote->t_ns;
    w->vote[w->votes].user40 = zn_vote_user40(vote->user);
    if (g->count++ == 0)
        g->first = w->votes;
    else
        w->vote[g->last].next = w->votes;
    g->last = w->votes++;
    return true;
}

/* Returns the bytes that hold the distance of every time from the first time. */
static size_t time_bytes(const zn_vote_writer *w)
{
    uint64_t span = (uint64_t)(w->last_ns - w->first_ns);
    return span == 0 ? 1 : (size_t)(71 - __builtin_clzll(span)) / 8;
}

size_t zn_vote_writer_bytes(const zn_vote_writer *w)
{
    return ZN_VOTE_HEADER_BYTES + (size_t)w->groups * GROUP_BYTES_MAX +
           w->votes * (time_bytes(w) + USER_BYTES) + ZN_VOTE_CHECKSUM_BYTES;
}

static uint8_t *put_leb128(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* Writes the lowest n bytes of a number. It may write all eight: more bytes of the message
 * follow. */
static inline uint8_t *put_wide(uint8_t *at, uint64_t value, size_t n)
{
    (void)zn_le_put(at, value, sizeof value);
    return at + n;
}

static uint8_t *put_group(const zn_vote_writer *w, const zn_vote_group *g, size_t width,
                          uint8_t *at, uint32_t **order)
{
    uint32_t i = g->first;
    uint64_t form = (g->kind - UINT64_C(1)) % GROUP_KINDS + (g->count > 1 ? SEVERAL : 0);
    at = put_wide(at, g->id.lo, 8);
    at = put_wide(at, (g->id.hi & ZN_VOTE_ID_LOW) | g->id.hi >> 56 << 44 | form << 52, 7);
    if (g->count > 1)
        at = put_leb128(at, g->count);
    for (uint32_t left = g->count; left != 0; left--) {
        const zn_vote_cast *v = w->vote + i;
        at = put_wide(at, (uint64_t)(v->t_ns - w->first_ns), width);
        at = put_wide(at, v->user40, USER_BYTES);
        if (*order != NULL)
            *(*order)++ = i;
        i = v->next;
    }
    return at;
}

static uint8_t *put_start(uint8_t *at, const char *magic, const zn_vote_header *h)
{
    memcpy(at, magic, 4);
    at[4] = VERSION;
    at[5] = 0; /* flags */
    at = zn_le_put(at + 6, h->shard, 2);
    at = zn_le_put(at, h->probe, 8);
    at = zn_le_put(at, h->sequence, 8);
    return zn_le_put(at, h->settings, 8);
}

static uint8_t *put_checksum(uint8_t *at, const uint8_t *message)
{
    return zn_le_put(at, zn_vote_checksum(message, (size_t)(at - message)), 8);
}

static void forget(zn_vote_writer *w)
{
    clear_slots(w);
    w->mask = FIRST_SLOTS - 1;
    w->groups = w->lease_groups = w->votes = 0;
    w->first_ns = w->last_ns = 0;
}

size_t zn_vote_writer_finish(zn_vote_writer *w, const zn_vote_header *header, uint8_t *out,
                             uint32_t *order)
{
    size_t width = time_bytes(w);
    uint8_t *at = put_start(out, vote_magic, header);
    at = zn_le_put(at, (uint64_t)header->watermark_ns, 8);
    at = zn_le_put(at, (uint64_t)w->first_ns, 8);
    at = zn_le_put(at, w->groups, 4);
    at = zn_le_put(at, w->votes, 4);
    at = zn_le_put(at, width, 1);
    at = zn_le_put(at,
                   header->rules | (uint64_t)header->new_session << NEW_SESSION_AT |
                       (uint64_t)header->marks_missing << MARKS_MISSING_AT,
                   ZN_VOTE_RULES_BYTES);
    at = zn_le_put(at, w->lease_groups, 4);
    at = zn_le_put(at, header->rules >> KEY_CHECK_AT, ZN_VOTE_KEY_CHECK_BYTES);
    for (uint32_t i = 0; i < w->groups; i++)
        if (w->group[i].kind <= GROUP_KINDS)
            at = put_group(w, w->group + i, width, at, &order);
    for (uint32_t i = 0; i < w->groups && w->lease_groups != 0; i++)
        if (w->group[i].kind > GROUP_KINDS)
            at = put_group(w, w->group + i, width, at, &order);
    at = put_checksum(at, out);
    forget(w);
    return (size_t)(at - out);
}

/* ---- reading ---- */

static int damaged(zn_error *err, const char *what)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is damaged or cut", what);
}

/* Reads the start that both messages share. *c is left behind it, and ends before the checksum. */
static int read_start(zn_vote_header *h, zn_cursor *c, zn_span message, const char *magic,
                      size_t least, zn_error *err)
{
    const char *what = magic == vote_magic ? "the vote message" : "the answer message";
    uint8_t version, flags;
    zn_span body;
    if (message.n < least + ZN_VOTE_CHECKSUM_BYTES || memcmp(message.p, magic, 4) != 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is cut, or is none", what);
    body = zn_span_part(message, 0, message.n - ZN_VOTE_CHECKSUM_BYTES);
    version = message.p[4];
    flags = message.p[5];
    if (version != VERSION || flags != 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "%s has version %u and flags %u, and this program reads %u and 0", what,
                       version, flags, VERSION);
    if (zn_le_get(message.p + body.n, 8) != zn_vote_checksum(body.p, body.n))
        return damaged(err, what);
    memset(h, 0, sizeof *h);
    *c = zn_cursor_over_span(zn_span_after(body, 6), true);
    h->shard = zn_cursor_le16(c);
    h->probe = zn_cursor_le(c, 8);
    h->sequence = zn_cursor_le(c, 8);
    h->settings = zn_cursor_le(c, 8);
    return h->sequence != 0 ? 0 : damaged(err, what);
}

int zn_vote_header_read(zn_vote_header *h, zn_span message, zn_error *err)
{
    zn_cursor c;
    zn_vote_rules rules;
    uint8_t width;
    int rc = read_start(h, &c, message, vote_magic, ZN_VOTE_HEADER_BYTES, err);
    if (rc != 0)
        return rc;
    h->watermark_ns = (int64_t)zn_cursor_le(&c, 8);
    h->base_ns = (int64_t)zn_cursor_le(&c, 8);
    h->groups = zn_cursor_le32(&c);
    h->votes = zn_cursor_le32(&c);
    width = zn_cursor_u8(&c);
    h->rules = zn_cursor_le(&c, ZN_VOTE_RULES_BYTES);
    h->new_session = (h->rules >> NEW_SESSION_AT & 1) != 0;
    h->marks_missing = (h->rules >> MARKS_MISSING_AT & 1) != 0;
    h->rules &= OPTIONS_MASK;
    h->lease_groups = zn_cursor_le32(&c);
    h->rules |= zn_cursor_le(&c, ZN_VOTE_KEY_CHECK_BYTES) << KEY_CHECK_AT;
    if (h->watermark_ns < 0 || h->base_ns < 0 || width < 1 || width > 8 ||
        h->votes > ZN_VOTES_MAX || h->lease_groups > h->groups ||
        !zn_vote_rules_unpack(&rules, h->rules))
        return damaged(err, "the vote message");
    h->time_bytes = width;
    if (h->votes > zn_cursor_left(&c) / (width + (size_t)USER_BYTES))
        return damaged(err, "the vote message");
    return 0;
}

/* Reads a number below 2^21 in the fewest bytes that hold it. The cursor fails for other bytes. */
static uint32_t read_leb128(zn_cursor *c)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 21; shift += 7) {
        uint8_t byte = zn_cursor_u8(c);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0 && shift != 0)
                break;
            return value;
        }
    }
    zn_cursor_fail(c, ZN_CURSOR_BAD);
    return 0;
}

/* Reads a group of at most `most` votes, whose kind comes after the first `before` kinds. Returns
 * the number of its votes, 0 if it is damaged. */
static uint32_t read_group(zn_counted_vote *out, const zn_vote_header *h, zn_cursor *c,
                           uint32_t most, uint32_t before)
{
    size_t width = h->time_bytes, each = width + USER_BYTES;
    zn_id id = {zn_cursor_le(c, 8), 0};
    uint64_t upper = zn_cursor_le(c, 7);
    uint8_t form = (uint8_t)(upper >> 52);
    uint32_t n = form & SEVERAL ? read_leb128(c) : 1;
    uint32_t kind = before + (form & (SEVERAL - 1)) + 1;
    zn_span votes;
    id.hi = (upper & ZN_VOTE_ID_LOW) | (upper >> 44 & 0xff) << 56;
    if (n > most || n < 1 || (n == 1 && (form & SEVERAL) != 0) || kind > ZN_COUNTED_KINDS)
        return 0;
    votes = zn_cursor_take(c, n * each);
    if (votes.n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t since = zn_le_get(votes.p + i * each, width);
        if (since > (uint64_t)(INT64_MAX - h->base_ns))
            return 0;
        out[i].t_ns = h->base_ns + (int64_t)since;
        out[i].user = zn_vote_user_of(zn_le_get(votes.p + i * each + width, USER_BYTES));
        out[i].id = id;
        out[i].kind = (uint8_t)kind;
    }
    return n;
}

int zn_votes_read(zn_counted_vote *out, const zn_vote_header *h, zn_span message, zn_error *err)
{
    zn_span body = zn_span_part(message, ZN_VOTE_HEADER_BYTES, message.n - ZN_VOTE_CHECKSUM_BYTES);
    zn_cursor c = zn_cursor_over_span(body, true);
    uint32_t done = 0;
    for (uint32_t group = 0; group < h->groups; group++) {
        uint32_t before = group < h->groups - h->lease_groups ? 0 : GROUP_KINDS;
        uint32_t n = read_group(out + done, h, &c, h->votes - done, before);
        if (n == 0)
            return damaged(err, "the vote message");
        done += n;
    }
    if (done != h->votes || zn_cursor_left(&c) != 0)
        return damaged(err, "the vote message");
    return 0;
}

/* ---- answers ---- */

static size_t bits_bytes(uint32_t votes)
{
    return ((size_t)votes + 7) / 8;
}

size_t zn_answers_bytes(uint32_t votes)
{
    return ZN_ANSWER_HEADER_BYTES + bits_bytes(votes) + ZN_VOTE_CHECKSUM_BYTES;
}

void zn_answers_write(const zn_vote_header *header, const uint8_t *bits, uint8_t *out)
{
    uint8_t *at = put_start(out, answer_magic, header);
    at = zn_le_put(at, header->votes, 4);
    if (header->votes != 0)
        memcpy(at, bits, bits_bytes(header->votes));
    (void)put_checksum(at + bits_bytes(header->votes), out);
}

int zn_answers_read(zn_vote_header *h, zn_span *bits, zn_span message, zn_error *err)
{
    zn_cursor c;
    int rc = read_start(h, &c, message, answer_magic, ZN_ANSWER_HEADER_BYTES, err);
    if (rc != 0)
        return rc;
    h->votes = zn_cursor_le32(&c);
    *bits = zn_cursor_rest(&c);
    if (h->votes > ZN_VOTES_MAX || bits->n != bits_bytes(h->votes))
        return damaged(err, "the answer message");
    if (h->votes % 8 != 0 && bits->p[bits->n - 1] >> h->votes % 8 != 0)
        return damaged(err, "the answer message");
    return 0;
}
