/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/probe_watch.h"

#include "util/arena.h"

void zn_probe_watch_init(zn_probe_watch *w, int64_t timeout_ns, int64_t now_ns)
{
    memset(w, 0, sizeof *w);
    w->timeout_ns = timeout_ns;
    w->joined_ns = now_ns;
}

void zn_probe_watch_fini(zn_probe_watch *w)
{
    zn_heap_free(w->probe);
}

/* Returns the place of a session, or the place where it belongs. */
static size_t place_of(const zn_probe_watch *w, uint64_t id)
{
    size_t low = 0, high = w->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->probe[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

zn_watched *zn_probe_watch_find(const zn_probe_watch *w, uint64_t id)
{
    size_t at = place_of(w, id);
    return at < w->n && w->probe[at].id == id ? w->probe + at : NULL;
}

/* Returns the session, which is watched from now_ns on if it was not before; NULL when memory is
 * out. */
static zn_watched *watched(zn_probe_watch *w, uint64_t id, int64_t now_ns)
{
    size_t at = place_of(w, id);
    if (at < w->n && w->probe[at].id == id) {
        if (w->probe[at].away)
            w->probe[at].heard_ns = now_ns;
        w->probe[at].away = false;
        return w->probe + at;
    }
    if (w->n == w->cap) {
        size_t cap = 2 * w->cap + 64;
        zn_watched *grown = zn_heap_resize(w->probe, cap * sizeof *grown);
        if (grown == NULL)
            return NULL;
        w->probe = grown;
        w->cap = cap;
    }
    memmove(w->probe + at + 1, w->probe + at, (w->n++ - at) * sizeof *w->probe);
    memset(w->probe + at, 0, sizeof *w->probe);
    w->probe[at].id = id;
    w->probe[at].heard_ns = now_ns;
    w->probe[at].late_since_ns = w->probe[at].slow_since_ns = w->probe[at].watermark_ns = -1;
    return w->probe + at;
}

/* Notes that a session joined, after which no session speaks. */
static void note_joined(zn_probe_watch *w, int64_t now_ns)
{
    size_t left = 0;
    w->joined_ns = now_ns;
    for (size_t i = 0; i < w->n; i++) {
        w->probe[i].speaks = false;
        if (!w->probe[i].away)
            w->probe[left++] = w->probe[i];
    }
    w->n = left;
}

bool zn_probe_watch_hear(zn_probe_watch *w, uint64_t id, int64_t now_ns, bool joins)
{
    zn_watched *p = watched(w, id, now_ns);
    if (p == NULL)
        return false;
    p->heard_ns = now_ns;
    if (joins) {
        note_joined(w, now_ns);
    } else if (now_ns - w->joined_ns > w->timeout_ns) {
        p->speaks = true;
    }
    return true;
}

bool zn_probe_watch_remove(zn_probe_watch *w, uint64_t id)
{
    size_t at = place_of(w, id);
    bool away;
    if (at == w->n || w->probe[at].id != id)
        return false;
    away = w->probe[at].away;
    memmove(w->probe + at, w->probe + at + 1, (--w->n - at) * sizeof *w->probe);
    return !away;
}

/* Notes that a shard knows a session. */
static void note_known(zn_watched *p, const zn_session *session, int64_t decided_ns)
{
    int64_t lag_ns = zn_session_lag(session, decided_ns);
    p->known = true;
    if (lag_ns > p->lag_ns)
        p->lag_ns = lag_ns;
    if (zn_session_is_awaited(session) &&
        (p->watermark_ns < 0 || session->watermark_ns < p->watermark_ns))
        p->watermark_ns = session->watermark_ns;
}

static bool look_at(zn_probe_watch *w, const zn_vote_shard *shard, int64_t now_ns)
{
    const zn_membership *members = zn_vote_shard_membership(shard);
    int64_t decided_ns = zn_vote_shard_watermark(shard);
    for (size_t i = 0; i < members->n; i++) {
        const zn_session *session = members->session + i;
        zn_watched *p = zn_session_is_awaited(session) ? watched(w, session->id, now_ns)
                                                       : zn_probe_watch_find(w, session->id);
        if (p != NULL)
            note_known(p, session, decided_ns);
        else if (zn_session_is_awaited(session))
            return false;
    }
    return true;
}

bool zn_probe_watch_look(zn_probe_watch *w, const zn_vote_shard *const *shard, size_t shards,
                         const uint64_t *held, size_t n, int64_t now_ns)
{
    for (size_t i = 0; i < w->n; i++) {
        w->probe[i].known = w->probe[i].held = false;
        w->probe[i].lag_ns = 0;
        w->probe[i].watermark_ns = -1;
    }
    for (size_t i = 0; i < n; i++) {
        zn_watched *p = watched(w, held[i], now_ns);
        if (p == NULL)
            return false;
        p->held = true;
    }
    for (size_t i = 0; i < shards; i++)
        if (!look_at(w, shard[i], now_ns))
            return false;
    return true;
}

static bool is_silent(const zn_probe_watch *w, const zn_watched *p, int64_t now_ns)
{
    return now_ns - p->heard_ns >= w->timeout_ns;
}

size_t zn_probe_watch_take_silent(zn_probe_watch *w, int64_t now_ns, uint64_t *gone)
{
    size_t left = 0, n = 0;
    for (size_t i = 0; i < w->n; i++) {
        zn_watched *p = w->probe + i;
        if (!p->away && is_silent(w, p, now_ns)) {
            p->away = true;
            if (p->held || p->watermark_ns >= 0)
                gone[n++] = p->id;
        }
        if (!p->away || (p->speaks && p->known))
            w->probe[left++] = *p;
    }
    w->n = left;
    return n;
}

void zn_probe_watch_note_slow(zn_probe_watch *w, int64_t limit_ns, int64_t now_ns)
{
    size_t slow = 0, present = 0;
    for (size_t i = 0; i < w->n; i++) {
        present += !w->probe[i].away;
        slow += w->probe[i].watermark_ns >= 0 && w->probe[i].watermark_ns < limit_ns;
    }
    for (size_t i = 0; i < w->n; i++) {
        zn_watched *p = w->probe + i;
        if (slow == present || p->watermark_ns < 0 || p->watermark_ns >= limit_ns)
            p->slow_since_ns = -1;
        else if (p->slow_since_ns < 0)
            p->slow_since_ns = now_ns;
    }
}

void zn_probe_watch_note_late(zn_probe_watch *w, int64_t now_ns)
{
    for (size_t i = 0; i < w->n; i++) {
        zn_watched *p = w->probe + i;
        if (p->lag_ns == 0 || is_silent(w, p, now_ns))
            p->late_since_ns = -1;
        else if (p->late_since_ns < 0)
            p->late_since_ns = now_ns;
    }
}

void zn_probe_watch_forget_unknown(zn_probe_watch *w)
{
    size_t left = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->probe[i].known || w->probe[i].held)
            w->probe[left++] = w->probe[i];
    w->n = left;
}

/* Returns true if a session has ended in all shards and no new session follows. */
static bool has_ended(const zn_vote_shard *const *shard, size_t shards, uint64_t id)
{
    for (size_t i = 0; i < shards; i++) {
        const zn_session *p = zn_membership_find(zn_vote_shard_membership(shard[i]), id);
        if (p == NULL || p->watermark_ns != ZN_VOTE_WATERMARK_END || p->continued)
            return false;
    }
    return true;
}

bool zn_probe_watch_all_present(const zn_probe_watch *w, const zn_vote_shard *const *shard,
                                size_t shards, uint32_t expected)
{
    const zn_membership *members = zn_vote_shard_membership(shard[0]);
    uint64_t present = 0;
    for (size_t i = 0; i < w->n; i++)
        present += w->probe[i].speaks;
    for (size_t i = 0; i < members->n && present < expected; i++) {
        const zn_session *session = members->session + i;
        const zn_watched *p = zn_probe_watch_find(w, session->id);
        present += (p == NULL || !p->speaks) && has_ended(shard, shards, session->id);
    }
    return present >= expected;
}
