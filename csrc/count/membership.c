/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/membership.h"

#include "count/vote_clients.h"
#include "util/arena.h"

#define SESSION_BYTES (8 + 8 + 8 + 8 + 1 + 1)

/* ---- sets of sessions ---- */

static bool set_init(zn_session_set *set, uint32_t max)
{
    set->max = max;
    set->id = zn_heap_alloc(max * sizeof *set->id);
    return set->id != NULL;
}

bool zn_session_set_has(const zn_session_set *set, uint64_t id)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (set->id[i] == id)
            return true;
    return false;
}

void zn_session_set_add(zn_session_set *set, uint64_t id)
{
    if (zn_session_set_has(set, id))
        return;
    if (set->n < set->max) {
        set->id[set->n++] = id;
        return;
    }
    set->id[set->first] = id;
    set->first = (set->first + 1) % set->max;
}

/* ---- sessions ---- */

int zn_membership_init(zn_membership *m, uint32_t max, zn_error *err)
{
    m->max = max;
    m->session = zn_heap_alloc(max * sizeof *m->session);
    if (m->session == NULL || !set_init(&m->refused, max) || !set_init(&m->abandoned, max))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for %u probes", max);
    return 0;
}

void zn_membership_fini(zn_membership *m)
{
    zn_heap_free(m->session);
    zn_heap_free(m->refused.id);
    zn_heap_free(m->abandoned.id);
}

zn_session *zn_membership_find(const zn_membership *m, uint64_t id)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->session[i].id == id)
            return m->session + i;
    return NULL;
}

/* Returns the session to forget for a new session: an ended session, or else the session that has
 * been gone or behind longest; NULL if decisions wait for all. */
static zn_session *longest_away(zn_membership *m)
{
    zn_session *best = NULL;
    for (size_t i = 0; i < m->n; i++) {
        zn_session *p = m->session + i;
        if (p->watermark_ns == ZN_VOTE_WATERMARK_END)
            return p;
        if (p->state != ZN_SESSION_PRESENT &&
            (best == NULL || p->watermark_ns < best->watermark_ns))
            best = p;
    }
    return best;
}

zn_session *zn_membership_enter(zn_membership *m, const zn_vote_header *h, int64_t *lost_epoch)
{
    zn_session *p = m->n < m->max ? m->session + m->n : longest_away(m);
    *lost_epoch = ZN_VOTE_EPOCH_NONE;
    if (p == NULL)
        return NULL;
    if (m->n < m->max)
        m->n++;
    else
        *lost_epoch = p->gone_epoch;
    memset(p, 0, sizeof *p);
    p->id = h->probe;
    p->gone_epoch = ZN_VOTE_EPOCH_NONE;
    m->joined++;
    m->replacing += h->new_session && h->sequence == 1;
    return p;
}

bool zn_membership_advance(zn_session *p, const zn_vote_header *h, int64_t decided_ns,
                           int64_t max_lag_ns, int64_t epoch)
{
    int64_t lag_ns;
    p->sequence = h->sequence;
    if (h->watermark_ns > p->watermark_ns)
        p->watermark_ns = h->watermark_ns;
    p->continued = h->new_session && h->watermark_ns == ZN_VOTE_WATERMARK_END;
    if (p->state == ZN_SESSION_PRESENT && p->gone_epoch == ZN_VOTE_EPOCH_NONE)
        return false;
    lag_ns = decided_ns - p->watermark_ns;
    if (lag_ns <= max_lag_ns)
        p->state = ZN_SESSION_PRESENT;
    p->gone_epoch = lag_ns <= 0 ? ZN_VOTE_EPOCH_NONE : epoch;
    return true;
}

bool zn_membership_leave(zn_session *p, int64_t epoch)
{
    bool ended = p->watermark_ns == ZN_VOTE_WATERMARK_END;
    bool leaves = !ended && p->state != ZN_SESSION_GONE;
    if (!ended)
        p->gone_epoch = epoch;
    p->state = ZN_SESSION_GONE;
    return leaves;
}

/* ---- what follows for the shard ---- */

bool zn_session_is_awaited(const zn_session *p)
{
    return p->state == ZN_SESSION_PRESENT && p->watermark_ns != ZN_VOTE_WATERMARK_END;
}

int64_t zn_session_lag(const zn_session *p, int64_t decided_ns)
{
    if (p->state == ZN_SESSION_PRESENT || p->watermark_ns >= decided_ns ||
        decided_ns == ZN_VOTE_WATERMARK_END)
        return 0;
    return decided_ns - p->watermark_ns;
}

int64_t zn_membership_watermark(const zn_membership *m, int64_t decided_ns)
{
    int64_t least = ZN_VOTE_WATERMARK_END;
    bool any = false;
    for (size_t i = 0; i < m->n; i++) {
        const zn_session *p = m->session + i;
        if (p->state != ZN_SESSION_PRESENT)
            continue;
        any = true;
        if (p->watermark_ns < least)
            least = p->watermark_ns;
    }
    return any && least > decided_ns ? least : decided_ns;
}

int64_t zn_membership_latest(const zn_membership *m, uint64_t except, int64_t now_ns)
{
    int64_t latest = now_ns != 0 ? now_ns : -1;
    for (size_t i = 0; i < m->n; i++) {
        const zn_session *p = m->session + i;
        if (zn_session_is_awaited(p) && p->id != except && p->watermark_ns > latest)
            latest = p->watermark_ns;
    }
    return latest;
}

int64_t zn_membership_gone_epoch(const zn_membership *m)
{
    int64_t last = ZN_VOTE_EPOCH_NONE;
    for (size_t i = 0; i < m->n; i++)
        if (m->session[i].gone_epoch > last)
            last = m->session[i].gone_epoch;
    return last;
}

uint64_t zn_membership_missing(const zn_membership *m, uint32_t expected)
{
    uint64_t probes = m->joined - m->replacing;
    return probes < expected ? expected - probes : 0;
}

bool zn_membership_begin(zn_membership *m, uint32_t expected)
{
    m->begun = m->begun || zn_membership_missing(m, expected) == 0;
    return m->begun;
}

void zn_membership_expect_no_more(zn_membership *m, uint32_t expected)
{
    uint64_t most = m->joined > expected ? m->joined - expected : 0;
    if (m->replacing > most)
        m->replacing = most;
    m->begun = true;
}

zn_standing zn_membership_standing(const zn_membership *m, const zn_vote_header *h, uint64_t last)
{
    if (zn_session_set_has(&m->abandoned, h->probe))
        return ZN_STANDING_ABANDONED;
    if (last == 0)
        return ZN_STANDING_NEXT;
    if (h->sequence <= last)
        return ZN_STANDING_DUPLICATE;
    return h->sequence == last + 1 ? ZN_STANDING_NEXT : ZN_STANDING_GAP;
}

/* ---- codec ---- */

void zn_membership_put(const zn_membership *m, zn_text *out)
{
    zn_text_le(out, m->joined, 8);
    zn_text_le(out, m->replacing, 8);
    zn_text_le(out, m->begun, 1);
    zn_text_le(out, m->n, 4);
    for (size_t i = 0; i < m->n; i++) {
        const zn_session *p = m->session + i;
        zn_text_le(out, p->id, 8);
        zn_text_le(out, p->sequence, 8);
        zn_text_le(out, (uint64_t)p->watermark_ns, 8);
        zn_text_le(out, (uint64_t)p->gone_epoch, 8);
        zn_text_le(out, p->state, 1);
        zn_text_le(out, p->continued, 1);
    }
    zn_text_le(out, m->abandoned.n, 4);
    for (uint32_t i = 0; i < m->abandoned.n; i++)
        zn_text_le(out, m->abandoned.id[(m->abandoned.first + i) % m->abandoned.max], 8);
}

static bool read_session(zn_membership *m, zn_cursor *c)
{
    zn_session p = {.id = zn_cursor_le(c, 8)};
    uint8_t state, continued;
    p.sequence = zn_cursor_le(c, 8);
    p.watermark_ns = (int64_t)zn_cursor_le(c, 8);
    p.gone_epoch = (int64_t)zn_cursor_le(c, 8);
    state = zn_cursor_u8(c);
    continued = zn_cursor_u8(c);
    if (p.sequence == 0 || p.watermark_ns < 0 || p.gone_epoch < ZN_VOTE_EPOCH_NONE ||
        state > ZN_SESSION_GONE || continued > 1 || zn_membership_find(m, p.id) != NULL)
        return false;
    p.state = (zn_session_state)state;
    p.continued = continued != 0;
    m->session[m->n++] = p;
    return true;
}

bool zn_membership_read(zn_membership *m, zn_cursor *c)
{
    uint32_t n;
    uint8_t begun;
    m->joined = zn_cursor_le(c, 8);
    m->replacing = zn_cursor_le(c, 8);
    begun = zn_cursor_u8(c);
    m->begun = begun != 0;
    n = zn_cursor_le32(c);
    if (begun > 1 || m->replacing > m->joined || n > m->joined || n > m->max ||
        n > zn_cursor_left(c) / SESSION_BYTES)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!read_session(m, c))
            return false;
    n = zn_cursor_le32(c);
    if (n > m->abandoned.max || n > zn_cursor_left(c) / 8)
        return false;
    for (uint32_t i = 0; i < n; i++)
        zn_session_set_add(&m->abandoned, zn_cursor_le(c, 8));
    return m->abandoned.n == n;
}
