/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragments against a map of bytes: the input is a row of fragments of eight bytes each. Traps
 * when a datagram is whole too early, too late or with other bytes, when a fragment ends in no
 * counter, and on a broken invariant.
 */
#include "packet/defrag.h"

#include <string.h>

#define STORED_SEGMENTS_MAX 200
#define DATAGRAMS 4
#define PERIOD 128 /* of the bytes in a datagram, where a fragment does not say otherwise */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A datagram, byte by byte. */
typedef struct model {
    int64_t t_ns;
    uint32_t fragments, kind, end;
    uint32_t top; /* no byte from here on is known */
    bool spoilt, kind_known;
    bool known[ZN_DEFRAG_BYTES];
    uint8_t have[ZN_DEFRAG_BYTES];
} model;

static model models[DATAGRAMS];
static uint64_t waiting, whole, lost; /* fragments */

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void forget(model *m)
{
    memset(m->known, 0, m->top);
    m->fragments = m->end = m->top = 0;
    m->spoilt = m->kind_known = false;
}

static void give_up(model *m)
{
    waiting -= m->fragments;
    lost += m->fragments;
    forget(m);
}

static uint32_t count_ranges(const model *m)
{
    uint32_t ranges = 0;
    for (uint32_t i = 0; i < m->top; i++)
        ranges += m->known[i] && (i == 0 || !m->known[i - 1]);
    return ranges;
}

/* What is known of the datagram and what the fragment says of its bytes can both be true. */
static bool agrees(const model *m, const zn_datagram_fragment *fragment)
{
    uint32_t to = fragment->offset + (uint32_t)fragment->bytes.n, again = 0;
    if (m->end != 0 && (to > m->end || (fragment->last && to != m->end)))
        return false;
    if (fragment->offset == 0 && m->kind_known && m->kind != fragment->kind)
        return false;
    if (fragment->last && to < m->top)
        return false;
    for (uint32_t i = fragment->offset; i < to; i++) {
        if (m->known[i] && m->have[i] != fragment->bytes.p[i - fragment->offset])
            return false;
        again += m->known[i];
    }
    return !fragment->may_not_overlap || again == 0 || again == fragment->bytes.n;
}

static void take_in(model *m, const zn_datagram_fragment *fragment)
{
    if (!agrees(m, fragment)) {
        m->spoilt = true;
        return;
    }
    for (uint32_t i = 0; i < fragment->bytes.n; i++) {
        m->known[fragment->offset + i] = true;
        m->have[fragment->offset + i] = fragment->bytes.p[i];
    }
    if (fragment->offset + fragment->bytes.n > m->top)
        m->top = fragment->offset + (uint32_t)fragment->bytes.n;
    if (fragment->last)
        m->end = fragment->offset + (uint32_t)fragment->bytes.n;
    if (fragment->offset == 0) {
        m->kind = fragment->kind;
        m->kind_known = true;
    }
    m->spoilt = count_ranges(m) > ZN_DEFRAG_RANGES;
}

/* The fragment completes its datagram. */
static bool add(model *m, const zn_datagram_fragment *fragment)
{
    if (fragment->bytes.n == 0 || fragment->offset + fragment->bytes.n > ZN_DEFRAG_BYTES) {
        lost++;
        return false;
    }
    if (m->fragments != 0 && fragment->t_ns - m->t_ns > ZN_DEFRAG_TIMEOUT_NS)
        give_up(m);
    if (m->fragments == 0)
        m->t_ns = fragment->t_ns;
    m->fragments++;
    waiting++;
    if (!m->spoilt)
        take_in(m, fragment);
    for (uint32_t i = 0; i < m->end; i++)
        if (!m->known[i])
            return false;
    return !m->spoilt && m->end != 0;
}

static void compare(zn_defrag *d, const zn_datagram_fragment *fragment)
{
    model *m = &models[fragment->datagram.lo / 7];
    bool expected = add(m, fragment);
    zn_datagram out;
    require(zn_defrag_add(d, fragment, &out) == expected);
    if (!expected)
        return;
    require(out.bytes.n == m->end && out.kind == m->kind);
    require(memcmp(out.bytes.p, m->have, m->end) == 0);
    waiting -= m->fragments;
    whole += m->fragments;
    forget(m);
}

static void check(const zn_defrag *d, const zn_stats *stats)
{
    uint64_t dropped = 0;
    for (int i = ZN_STAT_DROP_FRAGMENT_OVERLAP; i <= ZN_STAT_DROP_FRAGMENT_EVICTED; i++)
        dropped += stats->n[i];
    require(zn_defrag_check(d) == NULL);
    require(dropped == lost && stats->n[ZN_STAT_FRAGMENTS] == waiting + whole + lost);
}

static void expire(zn_defrag *d, int64_t now_ns)
{
    zn_defrag_expire(d, now_ns);
    for (int i = 0; i < DATAGRAMS; i++)
        if (models[i].fragments != 0 && now_ns - models[i].t_ns > ZN_DEFRAG_TIMEOUT_NS)
            give_up(&models[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t text[PERIOD + 3 + UINT8_MAX];
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_stats stats = {{0}};
    zn_defrag *d;
    int64_t t_ns = 0;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i % PERIOD / 4);
    waiting = whole = lost = 0;
    require(zn_defrag_open(&d, &stats, NULL) == 0);
    for (unsigned n = 0; n < STORED_SEGMENTS_MAX && zn_cursor_left(&c) >= 8; n++) {
        uint8_t which = zn_cursor_u8(&c), flags = zn_cursor_u8(&c);
        uint32_t offset = zn_cursor_be24(&c) & 0x1ffff;
        uint8_t length = zn_cursor_u8(&c), seed = zn_cursor_u8(&c), step = zn_cursor_u8(&c);
        zn_datagram_fragment fragment = {.datagram = {7u * (which % DATAGRAMS), which % DATAGRAMS},
                                         .t_ns = t_ns += (step >> 4) * ZN_NS_PER_S,
                                         .offset = offset,
                                         .bytes = {text + offset % PERIOD + (seed & 3), length},
                                         .kind = flags >> 6,
                                         .last = (flags & 1) != 0,
                                         .may_not_overlap = (flags & 2) != 0};
        if ((step & 1) != 0)
            expire(d, t_ns);
        compare(d, &fragment);
        if ((step & 2) != 0)
            zn_defrag_release(d);
        check(d, &stats);
    }
    zn_defrag_clear(d);
    for (int i = 0; i < DATAGRAMS; i++)
        give_up(&models[i]);
    zn_defrag_release(d);
    check(d, &stats);
    zn_defrag_close(d);
    return 0;
}
