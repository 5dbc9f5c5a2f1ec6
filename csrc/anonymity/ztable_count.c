/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* How many users each attribute has: a walk over every slot of every form. */
#include "anonymity/ztable_internal.h"

#include <string.h>

/* Takes numbers in: into `out` while there is room, into `bins` if there are any. */
typedef struct tally {
    uint32_t *out;
    size_t n, cap;
    uint64_t *bins;
} tally;

static void add(tally *to, uint64_t users)
{
    if (to->n < to->cap)
        to->out[to->n++] = users < UINT32_MAX ? (uint32_t)users : UINT32_MAX;
    if (to->bins != NULL)
        to->bins[63 - __builtin_clzll(users)]++;
}

static void tally_kind(const zn_ztable *t, uint32_t kind, tally *to)
{
    uint32_t slots = t->size[kind].slab.used_high;
    for (uint32_t slot = 1; slot <= slots; slot++) {
        zn_zref ref = zn_zref_of(kind, slot);
        uint64_t users = zn_zref_count(t, ref) != 0 ? zn_zref_live(t, ref, t->clock.now_ns) : 0;
        if (users != 0)
            add(to, users);
    }
}

static void tally_all(const zn_ztable *t, tally *to)
{
    for (uint32_t kind = 0; kind < t->sizes; kind++)
        tally_kind(t, kind, to);
    if (t->with_lists)
        tally_kind(t, ZN_ZKIND_LIST, to);
}

size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
{
    tally to = {out, 0, cap, NULL};
    tally_all(t, &to);
    return to.n;
}

void zn_ztable_histogram(const zn_ztable *t, uint64_t *bins)
{
    tally to = {NULL, 0, 0, bins};
    memset(bins, 0, ZN_ZTABLE_BINS * sizeof *bins);
    tally_all(t, &to);
}
