/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anon/name_book.h"

/* Of all flows: one and its server's certificate. Few have more, and some none. */
#define NAMES_ON_AVERAGE 2

/* Most texts lie in its first cache line. While it is free, that begins with the slab's link. */
typedef struct kept_text {
    uint8_t n;
    uint8_t text[ZN_HOSTNAME_MAX + 2];
} kept_text;
_Static_assert(sizeof(kept_text) == 4 * ZN_CACHE_LINE, "texts begin where cache lines do");

int zn_book_init(zn_name_book *book, uint32_t max_flows, zn_error *err)
{
    uint32_t names = zn_slab_cap((uint64_t)max_flows * NAMES_ON_AVERAGE);
    int rc;
    memset(book, 0, sizeof *book);
    rc = zn_slab_init(&book->entries, sizeof(zn_name_entry), names, err);
    if (rc == 0)
        rc = zn_slab_init(&book->texts, sizeof(kept_text), names, err);
    return rc;
}

void zn_book_fini(zn_name_book *book)
{
    zn_slab_fini(&book->entries);
    zn_slab_fini(&book->texts);
}

uint32_t zn_book_add(zn_name_book *book, zn_flow *f, zn_name_source source)
{
    uint32_t *link = &f->names;
    uint32_t entry;
    unsigned n = 0;
    while (*link != 0) {
        link = &zn_book_at(book, *link)->next;
        if (++n == ZN_NAMES_PER_FLOW)
            return 0;
    }
    entry = zn_slab_take(&book->entries);
    if (entry == 0)
        return 0;
    *link = entry;
    zn_book_at(book, entry)->source = (uint8_t)source;
    return entry;
}

uint32_t zn_book_add_beside(zn_name_book *book)
{
    return zn_slab_take(&book->entries);
}

void zn_book_forget_beside(zn_name_book *book, uint32_t entry)
{
    if (entry == 0)
        return;
    zn_book_wipe_text(book, entry);
    zn_slab_give(&book->entries, entry);
}

bool zn_book_keep_text(zn_name_book *book, uint32_t entry, const zn_hostname *name)
{
    uint32_t index = zn_slab_take_zeroed(&book->texts); /* wiped when it was given back */
    kept_text *kept;
    if (index == 0)
        return false;
    kept = zn_slab_at(&book->texts, index);
    kept->n = name->n;
    memcpy(kept->text, name->text, name->n);
    zn_book_at(book, entry)->text = index;
    return true;
}

void zn_book_wipe_text(zn_name_book *book, uint32_t entry)
{
    zn_name_entry *e = zn_book_at(book, entry);
    kept_text *kept;
    if (e->text == 0)
        return;
    kept = zn_slab_at(&book->texts, e->text);
    memset(kept, 0, offsetof(kept_text, text) + kept->n); /* nothing was put behind it */
    zn_slab_give(&book->texts, e->text);
    e->text = 0;
}

zn_span zn_book_text(const zn_name_book *book, uint32_t entry)
{
    const zn_name_entry *e = zn_book_at(book, entry);
    const kept_text *kept;
    if (e->text == 0)
        return (zn_span){NULL, 0};
    kept = zn_slab_at(&book->texts, e->text);
    return (zn_span){kept->text, kept->n};
}

void zn_book_prefetch_text(const zn_name_book *book, uint32_t entry)
{
    const zn_name_entry *e = zn_book_at(book, entry);
    if (e->text != 0)
        ZN_PREFETCH_WRITE(zn_slab_at(&book->texts, e->text));
}

void zn_book_forget(zn_name_book *book, zn_flow *f)
{
    while (f->names != 0) {
        uint32_t entry = f->names;
        f->names = zn_book_at(book, entry)->next;
        zn_book_wipe_text(book, entry);
        zn_slab_give(&book->entries, entry);
    }
}
