/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/name_store.h"

/* Names a flow: its own and that in its server's certificate. Few flows have more, and some
 * none. */
#define NAMES_ON_AVERAGE 2

/* Sizes of the memory for a text. Most texts fit into the smallest, and few need the largest. */
static const size_t text_bytes[ZN_NAME_TEXT_SIZES] = {ZN_CACHE_LINE / 2, ZN_CACHE_LINE,
                                                      4 * ZN_CACHE_LINE};

/* Text of a name. While its memory is free, it begins with the slab's link. */
typedef struct kept_text {
    uint8_t n;
    uint8_t text[];
} kept_text;
_Static_assert(sizeof(kept_text) + ZN_HOSTNAME_MAX <= 4 * ZN_CACHE_LINE, "any name fits");

static kept_text *kept_of(const zn_name_store *name_store, const zn_name_entry *e)
{
    return zn_slab_at(&name_store->texts[e->text_size], e->text);
}

int zn_name_store_init(zn_name_store *name_store, uint32_t max_flows, zn_error *err)
{
    uint32_t names = zn_slab_cap((uint64_t)max_flows * NAMES_ON_AVERAGE);
    int rc;
    memset(name_store, 0, sizeof *name_store);
    rc = zn_slab_init(&name_store->entries, sizeof(zn_name_entry), names, err);
    for (size_t i = 0; i < ZN_NAME_TEXT_SIZES && rc == 0; i++)
        rc = zn_slab_init(&name_store->texts[i], text_bytes[i], names, err);
    return rc;
}

static size_t times_bytes(const zn_name_store *name_store, uint32_t entries)
{
    return name_store->times == NULL ? 0 : ((size_t)entries + 1) * sizeof *name_store->times;
}

int zn_name_store_keep_times(zn_name_store *name_store, const zn_clock *clock, zn_error *err)
{
    size_t bytes = ((size_t)name_store->entries.cap + 1) * sizeof *name_store->times;
    name_store->clock = clock;
    name_store->times = zn_block_alloc(bytes);
    return name_store->times != NULL ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for names");
}

void zn_name_store_fini(zn_name_store *name_store)
{
    zn_block_free(name_store->times, times_bytes(name_store, name_store->entries.cap));
    zn_slab_fini(&name_store->entries);
    for (size_t i = 0; i < ZN_NAME_TEXT_SIZES; i++)
        zn_slab_fini(&name_store->texts[i]);
}

size_t zn_name_store_memory(const zn_name_store *name_store)
{
    size_t bytes = zn_slab_bytes(&name_store->entries);
    for (size_t i = 0; i < ZN_NAME_TEXT_SIZES; i++)
        bytes += zn_slab_bytes(&name_store->texts[i]);
    return bytes + times_bytes(name_store, name_store->entries.used_high);
}

uint32_t zn_name_store_add(zn_name_store *name_store, zn_flow *f, zn_name_source source)
{
    uint32_t *link = &ZN_FACTS(f)->names;
    uint32_t entry;
    unsigned n = 0;
    while (*link != 0) {
        link = &zn_name_store_at(name_store, *link)->next;
        if (++n == ZN_NAMES_PER_FLOW)
            return 0;
    }
    entry = zn_slab_take(&name_store->entries);
    if (entry == 0)
        return 0;
    *link = entry;
    zn_name_store_at(name_store, entry)->source = (uint8_t)source;
    return entry;
}

uint32_t zn_name_store_add_secondary(zn_name_store *name_store)
{
    uint32_t entry = zn_slab_take(&name_store->entries);
    if (entry != 0)
        zn_name_store_observed(name_store, entry);
    return entry;
}

void zn_name_store_forget_secondary(zn_name_store *name_store, uint32_t entry)
{
    if (entry == 0)
        return;
    zn_name_store_wipe_text(name_store, entry);
    zn_slab_give(&name_store->entries, entry);
}

bool zn_name_store_keep_text(zn_name_store *name_store, uint32_t entry, const zn_hostname *name)
{
    zn_name_entry *e = zn_name_store_at(name_store, entry);
    kept_text *kept;
    e->text_size = 0;
    while (sizeof *kept + name->n > text_bytes[e->text_size])
        e->text_size++;
    e->text = zn_slab_take_zeroed(&name_store->texts[e->text_size]); /* wiped when given back */
    if (e->text == 0)
        return false;
    kept = kept_of(name_store, e);
    kept->n = name->n;
    memcpy(kept->text, name->text, name->n);
    return true;
}

void zn_name_store_wipe_text(zn_name_store *name_store, uint32_t entry)
{
    zn_name_entry *e = zn_name_store_at(name_store, entry);
    kept_text *kept;
    if (e->text == 0)
        return;
    kept = kept_of(name_store, e);
    memset(kept, 0, sizeof *kept + kept->n); /* nothing follows it */
    zn_slab_give(&name_store->texts[e->text_size], e->text);
    e->text = 0;
}

zn_span zn_name_store_text(const zn_name_store *name_store, uint32_t entry)
{
    const zn_name_entry *e = zn_name_store_at(name_store, entry);
    const kept_text *kept;
    if (e->text == 0)
        return (zn_span){NULL, 0};
    kept = kept_of(name_store, e);
    return (zn_span){kept->text, kept->n};
}

void zn_name_store_prefetch_text(const zn_name_store *name_store, uint32_t entry)
{
    const zn_name_entry *e = zn_name_store_at(name_store, entry);
    if (e->text != 0)
        ZN_PREFETCH_WRITE(kept_of(name_store, e));
}

void zn_name_store_forget(zn_name_store *name_store, zn_flow *f)
{
    while (ZN_FACTS(f)->names != 0) {
        uint32_t entry = ZN_FACTS(f)->names;
        ZN_FACTS(f)->names = zn_name_store_at(name_store, entry)->next;
        zn_name_store_wipe_text(name_store, entry);
        zn_slab_give(&name_store->entries, entry);
    }
}
