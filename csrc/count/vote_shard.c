/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The votes of a message are sorted when it is put, and a decision merges the messages by a heap of
 * their next votes. The table observes votes in batches, which is faster than single votes. A query
 * of a count is answered after the batch before it.
 */
#include "count/vote_shard_internal.h"
#include "util/arena.h"
#include "util/sort.h"

/* Bits that separate the counts of addresses of DNS flows within the one table. */
#define DNS_ADDR_BITS (UINT64_C(0x444e53) << 40)

#define DEFAULT_CLIENTS (UINT32_C(1) << 22)
#define DEFAULT_PENDING (UINT32_C(1) << 24)
#define DEFAULT_PROBES 4096
#define DEFAULT_LEASES (UINT32_C(1) << 20)
#define PROBES_MAX (UINT32_C(1) << 20)

/* ---- opening ---- */

void zn_vote_shard_config_init(zn_vote_shard_config *config, uint32_t z, int64_t window_ns)
{
    memset(config, 0, sizeof *config);
    config->table = zn_ztable_default_config(z, window_ns);
    /* The watermarks are the clock: late votes never move the clock back, regardless of their
     * number. */
    config->table.rebase_after = UINT32_MAX;
    config->max_clients = DEFAULT_CLIENTS;
    config->max_pending = DEFAULT_PENDING;
    config->max_probes = DEFAULT_PROBES;
    config->max_leases = DEFAULT_LEASES;
}

static int check_config(const zn_vote_shard_config *c, zn_error *err)
{
    if (c->rotate_ns < 0 || c->max_ahead_ns < 0 || c->max_lag_ns < 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "rotate_ns, max_ahead_ns and max_lag_ns must not be negative");
    if (c->max_clients < 1 || c->max_pending < 1 || c->max_probes < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "max_clients, max_pending and max_probes must be at least 1");
    if (c->max_probes > PROBES_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_probes must be at most %u", PROBES_MAX);
    return 0;
}

int zn_vote_shard_open(zn_vote_shard **out, const zn_vote_shard_config *config, zn_error *err)
{
    zn_vote_shard *s;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    s = zn_heap_alloc(sizeof *s);
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a shard");
    s->config = *config;
    rc = zn_membership_init(&s->members, config->max_probes, err);
    if (rc == 0)
        rc = zn_ztable_open(&s->table, &config->table, err);
    if (rc == 0)
        rc = zn_vote_clients_init(&s->clients, config->max_clients, config->rotate_ns, err);
    if (rc == 0)
        rc = zn_leases_init(&s->leases, config->max_leases, err);
    if (rc != 0) {
        zn_vote_shard_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void zn_vote_shard_close(zn_vote_shard *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->pending_count; i++)
        zn_heap_free(s->pending[i]);
    for (size_t i = s->ready_taken; i < s->ready_count; i++)
        zn_heap_free(s->ready[i]);
    zn_heap_free(s->pending);
    zn_heap_free(s->heap);
    zn_heap_free(s->ready);
    zn_block_free(s->decoded, s->decoded_bytes);
    zn_block_free(s->order, s->order_bytes);
    zn_block_free(s->release, s->release_bytes);
    zn_membership_fini(&s->members);
    zn_vote_clients_fini(&s->clients);
    zn_leases_fini(&s->leases);
    zn_ztable_close(s->table);
    zn_heap_free(s);
}

/* ---- probes ---- */

void zn_shard_note_gone(zn_vote_shard *s)
{
    s->clients.gone_epoch = zn_membership_gone_epoch(&s->members);
}

static void lose_epoch(zn_vote_shard *s, int64_t epoch)
{
    if (epoch > s->clients.lost_epoch)
        s->clients.lost_epoch = epoch;
}

/* Enters a session with its first message. A session that begins in the middle has sent marks of
 * clients before, up to the epoch of latest_ns, that this shard lacks. */
static zn_session *enter_session(zn_vote_shard *s, const zn_vote_header *h, int64_t latest_ns)
{
    int64_t lost_epoch;
    zn_session *session = zn_membership_enter(&s->members, h, &lost_epoch);
    if (session == NULL)
        return NULL;
    lose_epoch(s, lost_epoch);
    zn_shard_note_gone(s);
    if (h->sequence != 1 || h->marks_missing)
        lose_epoch(s, zn_vote_clients_epoch(&s->clients, latest_ns));
    return session;
}

bool zn_vote_shard_forget_probe(zn_vote_shard *s, uint64_t id)
{
    zn_session *session = zn_membership_find(&s->members, id);
    if (session == NULL)
        return false;
    s->stats.probe_gone +=
        zn_membership_leave(session, zn_vote_clients_epoch(&s->clients, s->newest_ns));
    zn_shard_note_gone(s);
    return true;
}

bool zn_vote_shard_begin(zn_vote_shard *s, uint32_t expected)
{
    return zn_membership_begin(&s->members, expected);
}

void zn_vote_shard_expect_no_more(zn_vote_shard *s, uint32_t expected)
{
    zn_membership_expect_no_more(&s->members, expected);
}

void zn_vote_shard_refuse(zn_vote_shard *s, uint64_t id)
{
    zn_session_set_add(&s->members.refused, id);
}

void zn_vote_shard_abandon(zn_vote_shard *s, uint64_t id)
{
    zn_session_set_add(&s->members.abandoned, id);
}

const zn_membership *zn_vote_shard_membership(const zn_vote_shard *s)
{
    return &s->members;
}

void zn_vote_shard_set_rules(zn_vote_shard *s, uint64_t rules)
{
    if (s->rules == ZN_VOTE_RULES_NONE)
        s->rules = rules;
}

uint64_t zn_vote_shard_rules(const zn_vote_shard *s)
{
    return s->rules;
}

int64_t zn_vote_shard_watermark(const zn_vote_shard *s)
{
    return zn_membership_watermark(&s->members, s->decided_ns);
}

/* ---- taking messages ---- */

zn_pending *zn_pending_make(const zn_vote_header *header)
{
    size_t votes = header->votes * sizeof(zn_pending_vote);
    zn_pending *m = zn_heap_alloc(sizeof *m + votes + header->votes / 8 + 1);
    if (m == NULL)
        return NULL;
    m->header = *header;
    m->vote = (void *)(m + 1);
    m->bits = (uint8_t *)m->vote + votes;
    return m;
}

static bool grow_pointers(zn_pending ***at, size_t n)
{
    zn_pending **grown = zn_heap_resize(*at, n * sizeof **at);
    if (grown != NULL)
        *at = grown;
    return grown != NULL;
}

int zn_shard_reserve(zn_vote_shard *s, uint32_t votes, zn_error *err)
{
    size_t messages = s->pending_count + s->ready_count + 1;
    size_t releases = (s->releases + s->pending_votes + votes) * sizeof *s->release;
    bool done = true;
    if (messages > s->message_cap) {
        size_t cap = 2 * messages + 64;
        done = grow_pointers(&s->pending, cap) && grow_pointers(&s->heap, cap) &&
               grow_pointers(&s->ready, cap);
        if (done)
            s->message_cap = cap;
    }
    if (done && s->config.keep_releases && releases > s->release_bytes) {
        zn_counted_vote *grown = zn_block_grow(s->release, &s->release_bytes, releases);
        done = grown != NULL;
        if (done)
            s->release = grown;
    }
    return done ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the votes that wait");
}

void zn_shard_append(zn_vote_shard *s, zn_pending *m)
{
    s->pending[s->pending_count++] = m;
    s->pending_votes += m->header.votes - m->next + UINT64_C(1);
}

static bool earlier(const void *votes, uint32_t a, uint32_t b)
{
    const zn_counted_vote *v = votes;
    return v[a].t_ns < v[b].t_ns;
}

/* Copies the decoded votes into the message, sorted. */
static void sort_votes(const zn_vote_shard *s, zn_pending *m)
{
    uint32_t n = m->header.votes;
    for (uint32_t i = 0; i < n; i++)
        s->order[i] = i;
    zn_sort(s->order, s->order + n, n, earlier, s->decoded);
    for (uint32_t i = 0; i < n; i++) {
        const zn_counted_vote *v = s->decoded + s->order[i];
        zn_pending_vote vote = {v->t_ns, v->user, v->id, s->order[i], v->kind};
        m->vote[i] = vote;
    }
}

static int decode(zn_vote_shard *s, const zn_vote_header *h, zn_span message, zn_error *err)
{
    size_t votes = (h->votes + (size_t)1) * sizeof *s->decoded;
    size_t order = (h->votes + (size_t)1) * 2 * sizeof *s->order;
    if (votes > s->decoded_bytes) {
        zn_counted_vote *grown = zn_block_grow(s->decoded, &s->decoded_bytes, votes);
        if (grown == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message");
        s->decoded = grown;
    }
    if (order > s->order_bytes) {
        uint32_t *grown = zn_block_grow(s->order, &s->order_bytes, order);
        if (grown == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message");
        s->order = grown;
    }
    return zn_votes_read(s->decoded, h, message, err);
}

/*
 * Rejects a message whose watermark is too far ahead of the other probes and the clock, or whose
 * votes are too far ahead of its watermark, because the votes would wait forever.
 */
static int check_times(zn_vote_shard *s, const zn_vote_header *h, int64_t now_ns, zn_error *err)
{
    int64_t most = s->config.max_ahead_ns, w = h->watermark_ns;
    int64_t reference = zn_membership_latest(&s->members, h->probe, now_ns);
    bool ends = w == ZN_VOTE_WATERMARK_END, too_early = false;
    if (most == 0)
        return 0;
    if (reference >= 0 && !ends)
        too_early = w > reference && w - reference > most;
    for (uint32_t i = 0; i < h->votes && !too_early; i++) {
        int64_t t_ns = s->decoded[i].t_ns, from = ends || reference > w ? reference : w;
        too_early = from >= 0 && t_ns > from && t_ns - from > most;
    }
    if (!too_early)
        return 0;
    s->stats.too_early++;
    return zn_fail(
        err, ZN_ERR_FORMAT, 0,
        "a vote message is further ahead of the other probes and the clock than allowed: "
        "set the probe's clock");
}

zn_standing zn_vote_shard_standing(const zn_vote_shard *s, const zn_vote_header *h, uint64_t last)
{
    const zn_session *session = zn_membership_find(&s->members, h->probe);
    if (zn_session_set_has(&s->members.refused, h->probe))
        return ZN_STANDING_REFUSED;
    if (h->settings != s->config.settings)
        return ZN_STANDING_OTHER_SETTINGS;
    if (s->rules != ZN_VOTE_RULES_NONE && h->rules != s->rules)
        return ZN_STANDING_OTHER_RULES;
    if (last == 0 && session != NULL)
        last = session->sequence;
    return zn_membership_standing(&s->members, h, last);
}

/* Checks that the message is the session's next one; *taken is false for a duplicate. */
static int check_sequence(zn_vote_shard *s, const zn_vote_header *h, bool *taken, zn_error *err)
{
    const zn_session *session = zn_membership_find(&s->members, h->probe);
    *taken = session == NULL || h->sequence > session->sequence;
    if (!*taken)
        s->stats.duplicates++;
    if (!*taken || session == NULL || h->sequence == session->sequence + 1)
        return 0;
    s->stats.gaps++;
    return zn_fail(err, ZN_ERR_FORMAT, 0,
                   "vote message %llu of a probe came after %llu: those between are missing",
                   (unsigned long long)h->sequence, (unsigned long long)session->sequence);
}

/*
 * Rejects a message if too many votes are pending. The session that decisions wait for may use the
 * double limit. Otherwise no vote could ever be decided.
 */
static int check_space(zn_vote_shard *s, const zn_vote_header *h, zn_error *err)
{
    const zn_session *p = zn_membership_find(&s->members, h->probe);
    bool awaited = p == NULL || p->state != ZN_SESSION_PRESENT ||
                   p->watermark_ns <= zn_vote_shard_watermark(s);
    uint64_t most = (uint64_t)s->config.max_pending * (awaited ? 2 : 1);
    if (s->pending_votes + h->votes + 1 <= most)
        return 0;
    s->stats.no_room++;
    return zn_fail(
        err, ZN_ERR_CAPACITY, 0,
        "%llu votes wait for other probes, and no more may: send the message again later",
        (unsigned long long)s->pending_votes);
}

static int check_header(const zn_vote_shard *s, const zn_vote_header *h, zn_error *err)
{
    if (h->settings != s->config.settings)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "a vote message was made with another z, window or rotation than the "
                       "counter's: give probes and counter the same");
    if (h->shard != s->config.shard)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "a vote message for shard %u came to shard %u",
                       h->shard, s->config.shard);
    if (s->rules != ZN_VOTE_RULES_NONE && h->rules != s->rules) {
        char text[ZN_VOTE_RULES_TEXT];
        zn_vote_rules_explain(h->rules, s->rules, text);
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s", text);
    }
    return 0;
}

/* Returns the latest time that the shard knows once it takes a message. */
static int64_t latest_time(const zn_vote_shard *s, const zn_pending *m)
{
    const zn_vote_header *h = &m->header;
    int64_t latest = s->newest_ns;
    if (h->watermark_ns != ZN_VOTE_WATERMARK_END && h->watermark_ns > latest)
        latest = h->watermark_ns;
    if (h->votes != 0 && m->vote[h->votes - 1].t_ns > latest)
        latest = m->vote[h->votes - 1].t_ns;
    return latest;
}

/* Takes a message that was checked. */
static int take(zn_vote_shard *s, const zn_vote_header *h, zn_error *err)
{
    zn_session *session = zn_membership_find(&s->members, h->probe);
    zn_pending *m;
    int64_t latest_ns;
    int rc = zn_shard_reserve(s, h->votes, err);
    if (rc != 0)
        return rc;
    m = zn_pending_make(h);
    if (m == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a message");
    sort_votes(s, m);
    latest_ns = latest_time(s, m);
    if (session == NULL && (session = enter_session(s, h, latest_ns)) == NULL) {
        zn_heap_free(m);
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "there are %u probes, and no more may join",
                       s->config.max_probes);
    }
    zn_shard_append(s, m);
    zn_vote_shard_set_rules(s, h->rules);
    s->newest_ns = latest_ns;
    if (zn_membership_advance(session, h, s->decided_ns, s->config.max_lag_ns,
                              zn_vote_clients_epoch(&s->clients, latest_ns)))
        zn_shard_note_gone(s);
    s->stats.messages++;
    s->stats.votes += h->votes;
    return 0;
}

/* Removes the decoded votes that are no marks of clients. */
static void keep_marks(zn_vote_shard *s, zn_vote_header *h)
{
    uint32_t marks = 0;
    for (uint32_t i = 0; i < h->votes; i++)
        if (s->decoded[i].kind == ZN_COUNTED_CLIENT)
            s->decoded[marks++] = s->decoded[i];
    h->votes = marks;
}

static int put(zn_vote_shard *s, zn_span message, int64_t now_ns, bool marks_only, bool *taken,
               zn_error *err)
{
    zn_vote_header h;
    int rc = zn_vote_header_read(&h, message, err);
    *taken = false;
    if (rc == 0)
        rc = check_header(s, &h, err);
    if (rc != 0) {
        s->stats.malformed++;
        return rc;
    }
    if ((rc = check_sequence(s, &h, taken, err)) != 0 || !*taken)
        return rc;
    *taken = false;
    if (!marks_only && (rc = check_space(s, &h, err)) != 0)
        return rc;
    if ((rc = decode(s, &h, message, err)) != 0) {
        s->stats.malformed += rc == -ZN_ERR_FORMAT;
        return rc;
    }
    if (marks_only) {
        keep_marks(s, &h);
        if ((rc = check_space(s, &h, err)) != 0)
            return rc;
    }
    if ((rc = check_times(s, &h, now_ns, err)) != 0)
        return rc;
    rc = take(s, &h, err);
    *taken = rc == 0;
    return rc;
}

int zn_vote_shard_put(zn_vote_shard *s, zn_span message, int64_t now_ns, bool *taken, zn_error *err)
{
    return put(s, message, now_ns, false, taken, err);
}

int zn_vote_shard_put_marks(zn_vote_shard *s, zn_span message, bool *taken, zn_error *err)
{
    return put(s, message, 0, true, taken, err);
}

/* ---- deciding ---- */

static void answer(zn_pending *m, uint32_t index, bool yes)
{
    m->bits[index / 8] |= (uint8_t)(yes << index % 8);
}

static void flush(zn_vote_shard *s)
{
    zn_shard_batch *b = &s->batch;
    uint8_t decisions[ZN_SHARD_BATCH];
    zn_ztable_observe_batch(s->table, b->o, b->n, decisions);
    for (size_t i = 0; i < b->n; i++) {
        const zn_pending_vote *v = b->vote[i];
        bool released = decisions[i] == ZN_RELEASE || b->leased[i];
        if (v->kind == ZN_COUNTED_ONLY)
            continue;
        answer(b->message[i], v->index, released);
        if (released && s->config.keep_releases) {
            zn_counted_vote vote = {v->t_ns, v->user, v->id, v->kind};
            s->release[s->releases++] = vote;
        }
    }
    b->n = 0;
}

/* Returns the id under which the table counts a vote. */
static zn_id counted_id(const zn_pending_vote *v)
{
    zn_id id = v->id;
    if (v->kind == ZN_COUNTED_DNS_ADDR || v->kind == ZN_COUNTED_DNS_ADDR_PEEK)
        id.lo ^= DNS_ADDR_BITS;
    return id;
}

static void count(zn_vote_shard *s, zn_pending *m, const zn_pending_vote *v)
{
    zn_shard_batch *b = &s->batch;
    zn_observation o = {v->t_ns, v->user, counted_id(v)};
    b->o[b->n] = o;
    b->message[b->n] = m;
    b->leased[b->n] =
        v->kind == ZN_COUNTED_NAME && zn_leases_cover(&s->leases, o.attribute, v->t_ns);
    b->vote[b->n++] = v;
    if (b->n == ZN_SHARD_BATCH)
        flush(s);
}

static void peek(zn_vote_shard *s, zn_pending *m, const zn_pending_vote *v)
{
    zn_id id = counted_id(v);
    bool leased = v->kind == ZN_COUNTED_PEEK && zn_leases_cover(&s->leases, id, v->t_ns);
    flush(s);
    answer(m, v->index, leased || zn_ztable_count_at(s->table, id, v->t_ns) >= s->config.table.z);
}

/* Notes a lease, and joins it with a touching lease of its attribute. Returns false if it reaches
 * too far, or there are too many leases. */
static bool note_lease(zn_vote_shard *s, const zn_pending_vote *v)
{
    int64_t reach_ns = (int64_t)zn_vote_user40(v->user) * ZN_LEASE_UNIT_NS, until_ns;
    zn_lease *lease;
    if (s->config.table.z > ZN_LEASE_Z_MAX || reach_ns > s->config.table.window_ns ||
        v->t_ns > INT64_MAX - reach_ns)
        return false;
    until_ns = v->t_ns + reach_ns;
    zn_leases_expire(&s->leases, v->t_ns);
    lease = zn_leases_find(&s->leases, v->id);
    if (lease == NULL)
        return zn_leases_add(&s->leases, v->id, v->t_ns, until_ns);
    if (v->t_ns > lease->until_ns)
        lease->since_ns = v->t_ns;
    else if (until_ns >= lease->since_ns && v->t_ns < lease->since_ns)
        lease->since_ns = v->t_ns;
    if (until_ns > lease->until_ns)
        zn_leases_extend(&s->leases, lease, until_ns);
    return true;
}

static void take_lease(zn_vote_shard *s, zn_pending *m, const zn_pending_vote *v)
{
    bool taken = note_lease(s, v);
    s->stats.leases += taken;
    s->stats.leases_refused += !taken;
    answer(m, v->index, taken);
}

/* Returns true if the vote is for the address of a server. */
static bool is_about_address(const zn_pending_vote *v)
{
    return v->kind >= ZN_COUNTED_ADDR && v->kind <= ZN_COUNTED_DNS_ADDR_PEEK;
}

static void decide(zn_vote_shard *s, zn_pending *m, const zn_pending_vote *v)
{
    s->stats.late += v->t_ns < s->decided_ns && v->kind != ZN_COUNTED_ONLY;
    if (v->kind == ZN_COUNTED_LEASE) {
        take_lease(s, m, v);
        return;
    }
    if (v->kind == ZN_COUNTED_CLIENT) {
        zn_vote_clients_add(&s->clients, v->id, v->t_ns);
        return;
    }
    if (is_about_address(v) && zn_vote_clients_have(&s->clients, v->id, v->t_ns)) {
        s->stats.client_addresses++;
        return;
    }
    if (v->kind == ZN_COUNTED_ADDR_CHECK)
        answer(m, v->index, true);
    else if (v->kind == ZN_COUNTED_PEEK || v->kind == ZN_COUNTED_ADDR_PEEK ||
             v->kind == ZN_COUNTED_DNS_ADDR_PEEK)
        peek(s, m, v);
    else
        count(s, m, v);
}

/* Returns true if the next vote of message a comes before the next vote of message b. */
static bool comes_first(const zn_pending *a, const zn_pending *b)
{
    int64_t t_a = a->vote[a->next].t_ns, t_b = b->vote[b->next].t_ns;
    if (t_a != t_b)
        return t_a < t_b;
    if (a->header.probe != b->header.probe)
        return a->header.probe < b->header.probe;
    return a->header.sequence < b->header.sequence;
}

/* Moves the message at `at` of a heap of n down to its place. */
static void sift_down(zn_pending **heap, size_t n, size_t at)
{
    zn_pending *m = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_first(heap[child + 1], heap[child]))
            child++;
        if (!comes_first(heap[child], m))
            break;
        heap[at] = heap[child];
    }
    heap[at] = m;
}

static bool is_due(const zn_pending *m, int64_t before_ns)
{
    return m->next < m->header.votes &&
           (m->vote[m->next].t_ns < before_ns || before_ns == ZN_VOTE_WATERMARK_END);
}

/* Collects the messages with due votes into a heap, and returns their number. */
static size_t make_heap(zn_vote_shard *s, int64_t before_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < s->pending_count; i++)
        if (is_due(s->pending[i], before_ns))
            s->heap[n++] = s->pending[i];
    for (size_t i = n / 2; i-- != 0;)
        sift_down(s->heap, n, i);
    return n;
}

/* Makes the answers of messages without pending votes ready. */
static void complete(zn_vote_shard *s)
{
    size_t left = 0;
    for (size_t i = 0; i < s->pending_count; i++) {
        zn_pending *m = s->pending[i];
        if (m->next < m->header.votes) {
            s->pending[left++] = m;
        } else {
            s->ready[s->ready_count++] = m;
            s->pending_votes--;
        }
    }
    s->pending_count = left;
}

void zn_vote_shard_decide(zn_vote_shard *s, int64_t before_ns)
{
    size_t n = make_heap(s, before_ns);
    int64_t known_ns = s->newest_ns < INT64_MAX ? s->newest_ns + 1 : INT64_MAX;
    while (n != 0) {
        zn_pending *m = s->heap[0];
        decide(s, m, m->vote + m->next);
        m->next++;
        s->stats.decided++;
        s->pending_votes--;
        if (!is_due(m, before_ns))
            s->heap[0] = s->heap[--n];
        if (n != 0)
            sift_down(s->heap, n, 0);
    }
    flush(s);
    complete(s);
    if (before_ns > known_ns)
        before_ns = known_ns;
    if (before_ns > s->decided_ns)
        s->decided_ns = before_ns;
    zn_leases_expire(&s->leases, s->decided_ns);
}

/* ---- results ---- */

size_t zn_vote_shard_answer_bytes(const zn_vote_shard *s)
{
    if (s->ready_taken == s->ready_count)
        return 0;
    return zn_answers_bytes(s->ready[s->ready_taken]->header.votes);
}

void zn_vote_shard_take_answer(zn_vote_shard *s, uint8_t *out)
{
    zn_pending *m = s->ready[s->ready_taken++];
    zn_answers_write(&m->header, m->bits, out);
    zn_heap_free(m);
    if (s->ready_taken == s->ready_count)
        s->ready_taken = s->ready_count = 0;
}

size_t zn_vote_shard_leases(const zn_vote_shard *s)
{
    return s->leases.n;
}

const zn_counted_vote *zn_vote_shard_releases(const zn_vote_shard *s, size_t *n)
{
    *n = s->releases;
    return s->release;
}

void zn_vote_shard_clear_releases(zn_vote_shard *s)
{
    s->releases = 0;
}

const zn_vote_shard_config *zn_vote_shard_get_config(const zn_vote_shard *s)
{
    return &s->config;
}

const zn_ztable *zn_vote_shard_table(const zn_vote_shard *s)
{
    return s->table;
}

zn_vote_shard_stats zn_vote_shard_get_stats(const zn_vote_shard *s)
{
    return s->stats;
}

uint64_t zn_vote_shard_pending(const zn_vote_shard *s)
{
    return s->pending_votes;
}

size_t zn_vote_shard_memory(const zn_vote_shard *s)
{
    return zn_ztable_memory(s->table) + zn_addr_set_memory(&s->clients.set[0]) +
           zn_addr_set_memory(&s->clients.set[1]) + s->decoded_bytes + s->order_bytes +
           s->release_bytes + s->pending_votes * sizeof(zn_pending_vote) +
           s->leases.n * sizeof(zn_lease);
}
