/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each member has a batch of its interface's frames. A round reads every member whose batch is used
 * up, then hands out the earliest frames until one of the batches ends (its successor must be seen
 * first) or the horizon is reached: what a member without frames may still deliver is later.
 */
#include "io/live_group.h"

#include "base/arena.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

typedef struct member {
    zn_live *live;
    const zn_frame *frames;
    int n, at;        /* frames of the batch, and how many are handed out */
    int64_t empty_ns; /* wall clock when it was last found empty */
    bool gone;
    char warning[192];
} member;

struct zn_live_group {
    member members[ZN_LIVE_MAX];
    size_t count;
    int64_t held_ns; /* monotonic clock since when frames wait for another member; 0: none do */
    zn_frame out[ZN_LIVE_BATCH];
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * ZN_NS_PER_S + now.tv_nsec;
}

int zn_live_group_open(zn_live_group **out, zn_error *err)
{
    *out = zn_heap_alloc(sizeof **out);
    return *out != NULL ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for interfaces");
}

void zn_live_group_close(zn_live_group *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->count; i++)
        zn_live_close(g->members[i].live);
    zn_heap_free(g);
}

int zn_live_group_add(zn_live_group *g, const zn_live_config *config, zn_error *err)
{
    int rc;
    if (g->count == ZN_LIVE_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "at most %d interfaces can be read at once",
                       ZN_LIVE_MAX);
    rc = zn_live_open(&g->members[g->count].live, config, err);
    if (rc == 0)
        g->count++;
    return rc;
}

static bool has_frames(const member *m)
{
    return m->at < m->n;
}

/* Reads the members that have nothing left; true when any member has frames now. */
static bool refill(zn_live_group *g)
{
    bool any = false;
    for (size_t i = 0; i < g->count; i++) {
        member *m = &g->members[i];
        if (!has_frames(m) && !m->gone) {
            zn_error err = {0};
            int64_t asked_ns = clock_ns(CLOCK_REALTIME);
            m->at = 0;
            m->n = zn_live_next(m->live, &m->frames, &err);
            if (m->n == 0)
                m->empty_ns = asked_ns;
            if (m->n < 0) {
                m->n = 0;
                m->gone = true;
                memcpy(m->warning, err.msg, sizeof m->warning - 1);
            }
        }
        any |= has_frames(m);
    }
    return any;
}

/* Frames up to this time may be handed out: members without frames have nothing older. */
static int64_t horizon(const zn_live_group *g)
{
    int64_t limit = INT64_MAX;
    for (size_t i = 0; i < g->count; i++) {
        const member *m = &g->members[i];
        int64_t seen_ns = m->empty_ns - ZN_LIVE_LAG_MS * ZN_NS_PER_MS;
        if (!has_frames(m) && !m->gone && seen_ns < limit)
            limit = seen_ns;
    }
    return limit;
}

static member *earliest(zn_live_group *g)
{
    member *first = NULL;
    for (size_t i = 0; i < g->count; i++) {
        member *m = &g->members[i];
        if (has_frames(m) &&
            (first == NULL || m->frames[m->at].t_ns < first->frames[first->at].t_ns))
            first = m;
    }
    return first;
}

/* Frames have waited for so long that the clock that they were stamped with must have been set. */
static bool overdue(const zn_live_group *g)
{
    return g->held_ns != 0 &&
           clock_ns(CLOCK_MONOTONIC) - g->held_ns > ZN_LIVE_HOLD_MS * ZN_NS_PER_MS;
}

/* Hands out what may be handed out now. */
static int merge(zn_live_group *g)
{
    int64_t limit = horizon(g);
    int n = 0;
    while (n < ZN_LIVE_BATCH) {
        member *m = earliest(g);
        if (m == NULL)
            break;
        if (m->frames[m->at].t_ns <= limit)
            g->held_ns = 0;
        else if (!overdue(g))
            break;
        g->out[n++] = m->frames[m->at++];
        if (!has_frames(m) && !m->gone)
            break;
    }
    if (n == 0 && g->held_ns == 0)
        g->held_ns = clock_ns(CLOCK_MONOTONIC);
    return n;
}

/* Waits for frames of the members that have none. 0, or a negative zn_err for a signal. */
static int wait_for_frames(zn_live_group *g, int wait_ms, zn_error *err)
{
    struct pollfd wanted[ZN_LIVE_MAX];
    nfds_t n = 0;
    for (size_t i = 0; i < g->count; i++)
        if (!g->members[i].gone && !has_frames(&g->members[i]))
            wanted[n++] = (struct pollfd){zn_live_descriptor(g->members[i].live), POLLIN, 0};
    if (poll(wanted, n, wait_ms) < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "waiting for frames: %s", strerror(errno));
    return 0;
}

int zn_live_group_next(zn_live_group *g, const zn_frame **frames, int wait_ms, zn_error *err)
{
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + wait_ms * ZN_NS_PER_MS;
    *frames = g->out;
    while (true) {
        bool any = refill(g);
        int n = any ? merge(g) : 0, rc;
        int64_t left_ms = (until_ns - clock_ns(CLOCK_MONOTONIC)) / ZN_NS_PER_MS;
        if (n > 0 || left_ms <= 0 || zn_live_group_ended(g))
            return n;
        if (any && left_ms > ZN_LIVE_BLOCK_MS)
            left_ms = ZN_LIVE_BLOCK_MS; /* what is held may be due without a further frame */
        rc = wait_for_frames(g, (int)left_ms, err);
        if (rc != 0)
            return rc;
    }
}

void zn_live_group_stop(zn_live_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        zn_live_stop(g->members[i].live);
}

bool zn_live_group_ended(const zn_live_group *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (!g->members[i].gone || has_frames(&g->members[i]))
            return false;
    return true;
}

size_t zn_live_group_size(const zn_live_group *g)
{
    return g->count;
}

zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i)
{
    return zn_live_get_counts(g->members[i].live);
}

uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i)
{
    return zn_live_link_type(g->members[i].live);
}

const char *zn_live_group_warning(const zn_live_group *g, size_t i)
{
    return g->members[i].gone ? g->members[i].warning : NULL;
}
