/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of hostname suffixes in one table: the Public Suffix List, categories, and the names that
 * may vote (--only) or may not (--skip). One walk over the suffixes of a name, from the top-level
 * domain down, reads all lists. A look-up compares whole suffixes, so a collision of hashes changes
 * no result, and it takes no memory.
 *
 * The registered domain of a name is the public suffix of the name and one label more
 * (https://publicsuffix.org/list/). A public suffix, and a name below no listed suffix, has no
 * registered domain.
 */
#ifndef ZN_ANALYZER_NAME_LISTS_H
#define ZN_ANALYZER_NAME_LISTS_H

#include "util/cursor.h"
#include "util/hash.h"
#include "zanon/zanon.h"

#define ZN_NO_DOMAIN UINT8_MAX

/* Entry of the table; n is 0 in an empty entry. */
typedef struct zn_name_lists_slot {
    uint32_t hash;
    uint32_t text; /* place of the suffix in zn_name_lists.texts */
    uint16_t category;
    uint8_t n;
    uint8_t listed; /* bits ZN_SUFFIX_* */
} zn_name_lists_slot;

/* Category that a suffix may have. Number i + 1 belongs to entry i. */
typedef struct zn_name_category {
    uint32_t text; /* place in zn_name_lists.texts */
    uint8_t n;
    bool skipped;
} zn_name_category;

typedef struct zn_name_lists {
    zn_name_lists_slot *slots; /* NULL: no lists */
    zn_name_category *categories;
    uint8_t *texts;
    size_t slot_bytes, category_bytes, text_bytes; /* sizes of the three blocks */
    uint32_t mask;
    uint32_t category_count;
    uint8_t longest;             /* bytes of the longest suffix */
    uint8_t listed;              /* bits that any suffix has */
    bool skips_categories;       /* true if a category is skipped */
    uint64_t ignored_categories; /* suffixes with a category that are below their own domain */
    zn_hash_key key;
} zn_name_lists;

/* Properties of a name that the lists state. */
typedef struct zn_name_facts {
    uint8_t domain;    /* place in the name where its registered domain begins, or ZN_NO_DOMAIN */
    uint16_t category; /* number of the category; 0: no category */
    bool only;         /* the name is in the list of names that may vote */
    bool skipped;      /* the name, or its category, may not vote */
} zn_name_facts;

/* Makes the table; *lists is zero before, and zn_name_lists_fini follows in any case. Returns 0, or
 * a negative zn_err with *err filled. */
int zn_name_lists_init(zn_name_lists *lists, const zn_suffix *suffixes, size_t suffix_count,
                       const zn_category *categories, size_t category_count, zn_error *err);
void zn_name_lists_fini(zn_name_lists *lists);
/*
 * Reads the properties of a normalised name. A name has the category of its longest listed suffix.
 * If the name has a registered domain, suffixes longer than the domain are ignored, so that all
 * names of a domain have one category.
 */
void zn_name_lists_look_up(const zn_name_lists *lists, zn_span name, zn_name_facts *out);
/* Returns the text of a category, by its number. */
zn_span zn_name_lists_category(const zn_name_lists *lists, uint16_t category);

/* Returns true if a list says which names may vote. */
static inline bool zn_name_lists_restrict(const zn_name_lists *lists)
{
    return (lists->listed & (ZN_SUFFIX_ONLY | ZN_SUFFIX_SKIP)) != 0 || lists->skips_categories;
}

#endif
