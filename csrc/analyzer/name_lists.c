/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/name_lists.h"

#include "analyzer/hostname.h"
#include "util/arena.h"

#define SLOTS_MAX (UINT32_C(1) << 30)

/* Checks the settings, and returns the bytes of all texts in *bytes. */
static int check(const zn_suffix *suffixes, size_t suffix_count, const zn_category *categories,
                 size_t category_count, size_t *bytes, zn_error *err)
{
    *bytes = 1;
    if (suffix_count > SLOTS_MAX / 2 || category_count >= UINT16_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "too many suffixes or categories");
    for (size_t i = 0; i < category_count; i++) {
        if (categories[i].name.n == 0 || categories[i].name.n > ZN_CATEGORY_MAX)
            return zn_fail(err, ZN_ERR_CONFIG, 0, "a category must have 1 to %d bytes",
                           ZN_CATEGORY_MAX);
        *bytes += categories[i].name.n;
    }
    for (size_t i = 0; i < suffix_count; i++) {
        if (suffixes[i].name.n == 0 || suffixes[i].name.n > ZN_HOSTNAME_MAX)
            return zn_fail(err, ZN_ERR_CONFIG, 0, "a suffix must have 1 to 253 bytes");
        if (suffixes[i].category > category_count)
            return zn_fail(err, ZN_ERR_CONFIG, 0, "a suffix has a category that is not there");
        *bytes += suffixes[i].name.n;
    }
    return *bytes <= UINT32_MAX ? 0 : zn_fail(err, ZN_ERR_CONFIG, 0, "the lists are too long");
}

static int alloc(zn_name_lists *lists, size_t suffix_count, size_t category_count, zn_error *err)
{
    uint32_t slots = 16;
    while (slots < 2 * suffix_count)
        slots *= 2;
    lists->mask = slots - 1;
    lists->slot_bytes = slots * sizeof *lists->slots;
    lists->category_bytes = (category_count + 1) * sizeof *lists->categories;
    lists->slots = zn_block_alloc(lists->slot_bytes);
    lists->categories = zn_block_alloc(lists->category_bytes);
    lists->texts = zn_block_alloc(lists->text_bytes);
    if (lists->slots == NULL || lists->categories == NULL || lists->texts == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for lists of %zu names", suffix_count);
    return zn_hash_key_random(&lists->key, err);
}

/* Adds a byte in front of a suffix to the suffix's hash. The first hash is the key's k0. */
static inline uint64_t hash_before(const zn_name_lists *lists, uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * (lists->key.k1 | 1);
}

/* Returns the entry of a suffix that has this hash, or the empty entry where it belongs. */
static zn_name_lists_slot *slot_of(const zn_name_lists *lists, uint64_t hash, const uint8_t *p,
                                   size_t n)
{
    uint32_t part = (uint32_t)(hash >> 32), at;
    for (at = part & lists->mask; lists->slots[at].n != 0; at = (at + 1) & lists->mask) {
        const zn_name_lists_slot *slot = &lists->slots[at];
        if (slot->hash == part && slot->n == n && memcmp(lists->texts + slot->text, p, n) == 0)
            break;
    }
    return &lists->slots[at];
}

/* Adds a suffix; *used counts the bytes of texts. */
static void add(zn_name_lists *lists, const zn_suffix *suffix, uint32_t *used)
{
    uint64_t hash = lists->key.k0;
    zn_name_lists_slot *slot;
    for (size_t at = suffix->name.n; at != 0; at--)
        hash = hash_before(lists, hash, suffix->name.p[at - 1]);
    slot = slot_of(lists, hash, suffix->name.p, suffix->name.n);
    if (slot->n == 0) {
        *slot = (zn_name_lists_slot){
            .hash = (uint32_t)(hash >> 32), .text = *used, .n = (uint8_t)suffix->name.n};
        memcpy(lists->texts + *used, suffix->name.p, suffix->name.n);
        *used += (uint32_t)suffix->name.n;
    }
    slot->listed |= suffix->listed;
    if (suffix->category != 0)
        slot->category = suffix->category;
    lists->listed |= suffix->listed;
    if (slot->n > lists->longest)
        lists->longest = slot->n;
}

/* Counts the suffixes whose category no name takes, because they are below their own domain. */
static void count_ignored(zn_name_lists *lists, const zn_suffix *suffixes, size_t suffix_count)
{
    for (size_t i = 0; i < suffix_count; i++) {
        zn_name_facts facts;
        if (suffixes[i].category == 0)
            continue;
        zn_name_lists_look_up(lists, suffixes[i].name, &facts);
        lists->ignored_categories += facts.domain != 0 && facts.domain != ZN_NO_DOMAIN;
    }
}

int zn_name_lists_init(zn_name_lists *lists, const zn_suffix *suffixes, size_t suffix_count,
                       const zn_category *categories, size_t category_count, zn_error *err)
{
    uint32_t used = 0;
    int rc = check(suffixes, suffix_count, categories, category_count, &lists->text_bytes, err);
    if (rc != 0 || suffix_count == 0)
        return rc;
    rc = alloc(lists, suffix_count, category_count, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < category_count; i++) {
        zn_name_category *to = &lists->categories[i];
        *to = (zn_name_category){used, (uint8_t)categories[i].name.n, categories[i].skipped};
        memcpy(lists->texts + used, categories[i].name.p, to->n);
        used += to->n;
        lists->skips_categories |= to->skipped;
    }
    lists->category_count = (uint32_t)category_count;
    for (size_t i = 0; i < suffix_count; i++)
        add(lists, &suffixes[i], &used);
    count_ignored(lists, suffixes, suffix_count);
    return 0;
}

void zn_name_lists_fini(zn_name_lists *lists)
{
    if (lists->slots != NULL)
        zn_block_free(lists->slots, lists->slot_bytes);
    if (lists->categories != NULL)
        zn_block_free(lists->categories, lists->category_bytes);
    if (lists->texts != NULL)
        zn_block_free(lists->texts, lists->text_bytes);
    memset(lists, 0, sizeof *lists);
}

/* Walk over the suffixes of a name, from the shortest on. */
typedef struct walk {
    size_t from, before; /* places of the current suffix and of the suffix before it */
    uint64_t hash;       /* of the current suffix */
    size_t public_from;  /* place of the longest public suffix so far; SIZE_MAX: none */
    bool is_exact;       /* an exception has fixed the public suffix */
    bool below_wildcard; /* the suffix before the current one has a wildcard */
} walk;

/* Applies the rules of the Public Suffix List to the current suffix. The suffix above a wildcard is
 * public, too. */
static void apply_rules(walk *w, uint8_t listed)
{
    if (w->is_exact)
        return;
    if ((listed & ZN_SUFFIX_EXCEPTION) != 0) {
        w->public_from = w->before;
        w->is_exact = true;
    } else if (w->below_wildcard || (listed & (ZN_SUFFIX_PUBLIC | ZN_SUFFIX_WILDCARD)) != 0) {
        w->public_from = w->from;
    }
    w->below_wildcard = (listed & ZN_SUFFIX_WILDCARD) != 0;
}

/* Returns the place of the next longer suffix of the name than the suffix at `from`. */
static size_t longer(zn_span name, size_t from)
{
    size_t at = from - 1; /* the dot before the suffix, or the end of the name */
    while (at != 0 && name.p[at - 1] != '.')
        at--;
    return at;
}

/* Moves to the next suffix. Returns its entry, or NULL if no further suffix can be listed. */
static const zn_name_lists_slot *next(const zn_name_lists *lists, zn_span name, walk *w)
{
    size_t at = w->from - 1; /* the dot before the current suffix, or the end of the name */
    uint64_t hash = w->hash;
    if (w->from == 0)
        return NULL;
    if (at != name.n)
        hash = hash_before(lists, hash, '.');
    for (; at != 0 && name.p[at - 1] != '.'; at--)
        hash = hash_before(lists, hash, name.p[at - 1]);
    w->before = w->from;
    w->from = at;
    w->hash = hash;
    if (name.n - at > lists->longest && !w->below_wildcard)
        return NULL;
    return slot_of(lists, hash, name.p + at, name.n - at);
}

/* Returns the category of the longest listed suffix of the name. */
static uint16_t category_of(const zn_name_lists *lists, zn_span name)
{
    walk w = {.from = name.n + 1, .hash = lists->key.k0};
    const zn_name_lists_slot *slot;
    uint16_t category = 0;
    while ((slot = next(lists, name, &w)) != NULL)
        if (slot->category != 0)
            category = slot->category;
    return category;
}

void zn_name_lists_look_up(const zn_name_lists *lists, zn_span name, zn_name_facts *out)
{
    walk w = {.from = name.n + 1, .hash = lists->key.k0, .public_from = SIZE_MAX};
    size_t category_from = 0;
    const zn_name_lists_slot *slot;
    *out = (zn_name_facts){.domain = ZN_NO_DOMAIN};
    if (lists->slots == NULL)
        return;
    while ((slot = next(lists, name, &w)) != NULL) {
        apply_rules(&w, slot->listed);
        out->only |= (slot->listed & ZN_SUFFIX_ONLY) != 0;
        out->skipped |= (slot->listed & ZN_SUFFIX_SKIP) != 0;
        if (slot->category != 0) {
            out->category = slot->category;
            category_from = w.from;
        }
    }
    if (w.public_from != SIZE_MAX && w.public_from != 0)
        out->domain = (uint8_t)longer(name, w.public_from);
    if (out->domain != ZN_NO_DOMAIN && category_from < out->domain) /* rare */
        out->category = category_of(lists, (zn_span){name.p + out->domain, name.n - out->domain});
    if (out->category != 0)
        out->skipped |= lists->categories[out->category - 1].skipped;
}

zn_span zn_name_lists_category(const zn_name_lists *lists, uint16_t category)
{
    const zn_name_category *c = &lists->categories[category - 1];
    return (zn_span){lists->texts + c->text, c->n};
}
