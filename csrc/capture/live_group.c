/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member is a ring of an interface, with a batch of its frames. A round reads every member whose
 * batch is used up, then hands out the earliest frames until a batch ends (the next one of that
 * member must be read first) or the horizon is reached: frames that a member without a batch may
 * still deliver are later.
 */
#include "capture/live_group.h"

#include "util/arena.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#define MEMBERS (ZN_LIVE_MAX * ZN_LIVE_RINGS)

typedef struct member {
    zn_live *live;
    zn_live *former; /* the handle from before it was opened again, whose frames may be in use */
    size_t interface;
    uint32_t longest; /* zn_live_longest */
    const zn_frame *frames;
    int n, at;         /* frames of the batch, and how many were handed out */
    int64_t empty_ns;  /* wall clock when it was last found empty */
    int64_t failed_ns; /* monotonic clock when its interface was found to be gone; 0: never */
    bool gone;         /* and its last frames are read */
    char warning[192];
} member;

struct zn_live_group {
    member members[MEMBERS];
    size_t count, interfaces;
    zn_pool *pool; /* NULL: the caller reads all rings */
    zn_job job;
    member *empty[MEMBERS]; /* members that the job reads */
    int64_t held_ns; /* monotonic clock since when frames wait for another member; 0: none do */
    uint64_t merged; /* frames in `out`, and before, that are longer than their MTU allows */
    zn_frame out[ZN_LIVE_BATCH];
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * ZN_NS_PER_S + now.tv_nsec;
}

/* Marks a member whose interface is gone. The system hands over its last frames a little later. */
static void give_up(member *m, const zn_error *err)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (m->failed_ns == 0) {
        memcpy(m->warning, err->msg, sizeof m->warning - 1);
        zn_live_stop(m->live); /* it may still exist under another name */
        m->failed_ns = now_ns;
    }
    m->gone = now_ns - m->failed_ns > ZN_LIVE_WHOLE_MS * ZN_NS_PER_MS;
    m->n = 0;
}

static void read_member(void *of, uint32_t task)
{
    zn_live_group *g = of;
    member *m = g->empty[task];
    zn_error err = {0};
    int64_t asked_ns = clock_ns(CLOCK_REALTIME);
    m->at = 0;
    m->n = zn_live_next(m->live, &m->frames, &err);
    if (m->n < 0)
        give_up(m, &err);
    if (m->n == 0)
        m->empty_ns = asked_ns;
}

int zn_live_group_open(zn_live_group **out, zn_error *err)
{
    zn_live_group *g = zn_heap_alloc(sizeof *g);
    *out = g;
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for interfaces");
    g->job.run = read_member;
    g->job.of = g;
    return 0;
}

static void close_former(zn_live_group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        zn_live_close(g->members[i].former);
        g->members[i].former = NULL;
    }
}

void zn_live_group_close(zn_live_group *g)
{
    if (g == NULL)
        return;
    close_former(g);
    for (size_t i = 0; i < g->count; i++)
        zn_live_close(g->members[i].live);
    zn_heap_free(g);
}

/* Opens n rings of an interface that begin together. Returns 0, or a negative zn_err with none
 * open. */
static int open_rings(zn_live **rings, unsigned n, const zn_live_config *config, zn_error *err)
{
    zn_live_config each = *config;
    unsigned opened = 0;
    int rc = 0;
    each.fanout = n > 1;
    while (opened < n && rc == 0) {
        each.sibling = opened == 0 ? NULL : rings[0];
        rc = zn_live_open(&rings[opened], &each, err);
        opened += rc == 0;
    }
    for (unsigned i = 0; i < n && rc == 0 && each.fanout; i++)
        rc = zn_live_begin(rings[i], &each, err);
    for (unsigned i = 0; i < opened && rc != 0; i++)
        zn_live_close(rings[i]);
    return rc;
}

int zn_live_group_add(zn_live_group *g, const zn_live_config *config, unsigned rings, zn_error *err)
{
    zn_live *opened[ZN_LIVE_RINGS];
    int rc;
    if (g->interfaces == ZN_LIVE_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "at most %d interfaces can be read at once",
                       ZN_LIVE_MAX);
    if (rings < 1 || rings > ZN_LIVE_RINGS)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "an interface can have from 1 to %d rings",
                       ZN_LIVE_RINGS);
    rc = open_rings(opened, rings, config, err);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < rings; i++)
        g->members[g->count++] = (member){
            .live = opened[i], .interface = g->interfaces, .longest = zn_live_longest(opened[i])};
    g->interfaces++;
    return 0;
}

void zn_live_group_keep(zn_live_group *g, unsigned part, unsigned parts)
{
    size_t each = g->count / g->interfaces / parts, kept = 0;
    for (size_t k = 0; k < g->count; k++) {
        size_t ring = k % (each * parts);
        if (ring / each == part)
            g->members[kept++] = g->members[k];
        else
            zn_live_close(g->members[k].live);
    }
    g->count = kept;
}

/* Returns the first ring of an interface; the others follow it. */
static size_t first_of(const zn_live_group *g, size_t i)
{
    size_t k = 0;
    while (g->members[k].interface != i)
        k++;
    return k;
}

static unsigned rings_of(const zn_live_group *g, size_t i)
{
    unsigned n = 0;
    for (size_t k = first_of(g, i); k < g->count && g->members[k].interface == i; k++)
        n++;
    return n;
}

int zn_live_group_reopen(zn_live_group *g, size_t i, const zn_live_config *config, zn_error *err)
{
    zn_live *opened[ZN_LIVE_RINGS];
    member *m = &g->members[first_of(g, i)];
    unsigned rings = rings_of(g, i);
    int rc;
    ZN_ASSERT(zn_live_group_gone(g, i));
    rc = open_rings(opened, rings, config, err);
    for (unsigned k = 0; k < rings && rc == 0; k++, m++)
        *m = (member){.live = opened[k],
                      .former = m->live,
                      .interface = i,
                      .longest = zn_live_longest(opened[k])};
    return rc;
}

void zn_live_group_share(zn_live_group *g, zn_pool *pool)
{
    g->pool = pool;
}

static bool has_frames(const member *m)
{
    return m->at < m->n;
}

/* Reads the members whose batches are used up. Returns true when any member has frames now. */
static bool refill(zn_live_group *g)
{
    uint32_t wanted = 0;
    bool any = false;
    for (size_t i = 0; i < g->count; i++)
        if (!has_frames(&g->members[i]) && !g->members[i].gone)
            g->empty[wanted++] = &g->members[i];
    if (g->pool != NULL && wanted > 1) {
        zn_pool_start(g->pool, &g->job, wanted, true);
        zn_pool_finish(g->pool, &g->job);
    } else {
        for (uint32_t i = 0; i < wanted; i++)
            read_member(g, i);
    }
    for (size_t i = 0; i < g->count; i++)
        any |= has_frames(&g->members[i]);
    return any;
}

/* Returns the time up to which frames may be handed out: members without frames have none that is
 * older. */
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

/* Returns true when frames have waited for so long that the clock of their times must have been
 * set. */
static bool overdue(const zn_live_group *g)
{
    return g->held_ns != 0 &&
           clock_ns(CLOCK_MONOTONIC) - g->held_ns > ZN_LIVE_HOLD_MS * ZN_NS_PER_MS;
}

/* Hands out the frames that are due, and returns how many. */
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
        g->merged += m->frames[m->at].wire > m->longest;
        g->out[n++] = m->frames[m->at++];
        if (!has_frames(m) && !m->gone)
            break;
    }
    if (n == 0 && g->held_ns == 0)
        g->held_ns = clock_ns(CLOCK_MONOTONIC);
    return n;
}

/* Waits for frames of the members that have none. Returns 0, or a negative zn_err for a signal. */
static int wait_for_frames(zn_live_group *g, int wait_ms, zn_error *err)
{
    struct pollfd wanted[MEMBERS];
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
    close_former(g);
    while (true) {
        bool any = refill(g);
        int n = any ? merge(g) : 0, rc;
        int64_t left_ms = (until_ns - clock_ns(CLOCK_MONOTONIC)) / ZN_NS_PER_MS;
        if (n > 0 || left_ms <= 0)
            return n;
        if (any && left_ms > ZN_LIVE_BLOCK_MS)
            left_ms = ZN_LIVE_BLOCK_MS; /* frames that wait may be due before another frame comes */
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

bool zn_live_group_gone(const zn_live_group *g, size_t i)
{
    const member *m = &g->members[first_of(g, i)];
    for (unsigned k = 0; k < rings_of(g, i); k++)
        if (!m[k].gone)
            return false;
    return true;
}

uint64_t zn_live_group_take_merged(zn_live_group *g)
{
    uint64_t merged = g->merged;
    g->merged = 0;
    return merged;
}

size_t zn_live_group_size(const zn_live_group *g)
{
    return g->interfaces;
}

/* Returns the counts of one ring; `frames` and `bytes` are of the frames that were handed out. */
static zn_live_counts counts_of(const member *m)
{
    zn_live_counts counts = zn_live_get_counts(m->live);
    for (int k = m->at; k < m->n; k++) {
        counts.frames--;
        counts.bytes -= m->frames[k].captured;
    }
    return counts;
}

zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i)
{
    zn_live_counts all = {0};
    for (size_t k = 0; k < g->count; k++) {
        zn_live_counts one;
        if (g->members[k].interface != i)
            continue;
        one = counts_of(&g->members[k]);
        all.frames += one.frames;
        all.bytes += one.bytes;
        all.received += one.received;
        all.dropped += one.dropped;
    }
    return all;
}

uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i)
{
    return zn_live_link_type(g->members[first_of(g, i)].live);
}

const char *zn_live_group_warning(const zn_live_group *g, size_t i)
{
    for (size_t k = 0; k < g->count; k++)
        if (g->members[k].interface == i && g->members[k].failed_ns != 0)
            return g->members[k].warning;
    return NULL;
}
