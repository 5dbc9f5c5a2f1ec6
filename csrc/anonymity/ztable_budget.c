/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a table may cost at most. Every table lays out its memory for its caps at start and never
 * asks for more, so the most it can touch is what it laid out; and the caps for a budget are found
 * by laying out tables on trial, which takes address space only. Neither has to know what a tuple
 * costs in which form, nor what an adversary could do to bring all forms to their largest.
 */
#include "anonymity/ztable_internal.h"

#include <unistd.h>

#define TUPLES_AN_ATTRIBUTE 4 /* of the caps, as in the default ones */

/* A block takes whole pages. */
static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static size_t slab_max(const zn_slab *s)
{
    return pages(s->object_bytes * s->cap);
}

static size_t index_max(const zn_zindex *x)
{
    return pages(x->bucket_cap * sizeof *x->bucket) + slab_max(&x->overflow);
}

size_t zn_ztable_memory_max(const zn_ztable *t)
{
    size_t bytes = pages(sizeof *t) + index_max(&t->by_id);
    for (uint32_t i = 0; i < t->sizes; i++)
        bytes += slab_max(&t->size[i].slab);
    if (t->with_lists)
        bytes +=
            index_max(&t->by_user) + slab_max(&t->size[ZN_ZKIND_LIST].slab) + slab_max(&t->entries);
    return bytes;
}

static void set_caps(zn_ztable_config *c, uint32_t tuples)
{
    uint32_t attributes = tuples / TUPLES_AN_ATTRIBUTE;
    if (attributes > ZN_ZTABLE_ATTRIBUTES_MAX)
        attributes = ZN_ZTABLE_ATTRIBUTES_MAX;
    c->max_tuples = tuples;
    c->max_attributes = attributes != 0 ? attributes : 1;
}

/* Most bytes of a table with this config; SIZE_MAX when there is not even address space for it. */
static int measure(const zn_ztable_config *c, size_t *bytes, zn_error *err)
{
    zn_ztable *t;
    int rc = zn_ztable_open(&t, c, err);
    *bytes = SIZE_MAX;
    if (rc != 0)
        return rc == -ZN_ERR_CAPACITY ? 0 : rc;
    *bytes = zn_ztable_memory_max(t);
    zn_ztable_close(t);
    return 0;
}

int zn_ztable_fit_caps(zn_ztable_config *config, size_t bytes, zn_error *err)
{
    zn_ztable_config trial = *config;
    uint32_t fits = 0, too_many = ZN_ZTABLE_TUPLES_MAX;
    trial.reserve = false;
    while (fits + 1 < too_many) {
        uint32_t middle = fits + (too_many - fits) / 2;
        size_t needed;
        int rc;
        set_caps(&trial, middle);
        if ((rc = measure(&trial, &needed, err)) != 0)
            return rc;
        if (needed <= bytes)
            fits = middle;
        else
            too_many = middle;
    }
    if (fits == 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%zu bytes are not enough for a z-table", bytes);
    set_caps(config, fits);
    return 0;
}
