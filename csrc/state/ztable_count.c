/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "state/ztable_internal.h"

static size_t count_kind(const zn_ztable *t, uint32_t kind, uint32_t *out, size_t cap)
{
    uint32_t slots = t->size[kind].slab.used_high;
    size_t n = 0;
    for (uint32_t slot = 1; slot <= slots && n < cap; slot++) {
        zn_zref ref = zn_zref_of(kind, slot);
        uint64_t users = zn_zref_count(t, ref) != 0 ? zn_zref_live(t, ref) : 0;
        if (users != 0)
            out[n++] = users < UINT32_MAX ? (uint32_t)users : UINT32_MAX;
    }
    return n;
}

size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
{
    size_t n = 0;
    for (uint32_t kind = 0; kind < t->sizes; kind++)
        n += count_kind(t, kind, out + n, cap - n);
    if (t->with_lists)
        n += count_kind(t, ZN_ZKIND_LIST, out + n, cap - n);
    return n;
}
