/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of names and server addresses: the chain of a value, finest first, and the text of a
 * label. A name has the levels domain ("*.example.org") and category ("category:news"). An address
 * has the levels AS ("as:3269") and country ("country:IT"). A name contains neither '*' nor ':', so
 * a label is never taken for a name.
 */
#ifndef ZN_RELEASE_LABELS_H
#define ZN_RELEASE_LABELS_H

#include "analyzer/roles.h"
#include "anonymity/votes.h"
#include "release/networks.h"
#include "release/record.h"

#define ZN_LABEL_LEVELS_MAX 2 /* levels above level 0 */

typedef struct zn_labels_config {
    const zn_roles *roles; /* the lists of names; borrowed */
    const zn_votes *votes; /* the identities; borrowed */
    unsigned levels;       /* bits ZN_LEVEL_*, not 0 */
    const zn_network *networks;
    size_t network_count;
} zn_labels_config;

/* Countries of an AS that has several. */
typedef struct zn_as_countries {
    zn_id label;           /* of the AS; zero in an empty entry */
    uint32_t first, count; /* in zn_labels.countries */
} zn_as_countries;

/* Labels above a value whose labels were looked up before, on one cache line. */
typedef struct zn_known_chain {
    zn_id value; /* {0, 0} in an empty entry */
    zn_id above[ZN_LABEL_LEVELS_MAX];
    zn_name_facts facts; /* of a name */
    uint8_t unused[16 - sizeof(zn_name_facts)];
} zn_known_chain;

_Static_assert(sizeof(zn_known_chain) == 64, "an entry is a cache line");

typedef struct zn_labels {
    zn_labels_config config;
    uint32_t count; /* levels above level 0 */
    zn_name_level name_level[ZN_LABEL_LEVELS_MAX + 1];
    zn_server_level server_level[ZN_LABEL_LEVELS_MAX + 1];
    zn_networks networks;
    zn_never_list nameless; /* domains above a suffix of the never list, which are no labels */
    zn_as_countries *as;    /* table by label, for each namespace of addresses; NULL: no table */
    uint32_t as_mask;
    size_t as_bytes;
    zn_id *countries;
    size_t country_bytes;
    zn_known_chain *known; /* the place of a value is fixed by its identity */
} zn_labels;

/* Prepares the labels; *labels is zero before, and zn_labels_fini follows in any case. Returns 0,
 * or a negative zn_err with *err filled. */
int zn_labels_init(zn_labels *labels, const zn_labels_config *config, zn_error *err);
void zn_labels_fini(zn_labels *labels);
/* Follows a change of the never list, which has `count` suffixes. Returns 0, or a negative
 * zn_err. */
int zn_labels_set_never(zn_labels *labels, const zn_span *never, size_t count, zn_error *err);

/* Write the labels above a name, and above an address, to chain[1 .. labels->count]; a level that
 * the value lacks is {0, 0}. chain[0] is the value's identity. kind: a kind of the namespace in
 * which the value votes. */
void zn_labels_of_name(const zn_labels *labels, zn_vote_kind kind, zn_span name, zn_id *chain);
void zn_labels_of_address(const zn_labels *labels, zn_vote_kind kind, const zn_addr *address,
                          zn_id *chain);
/* Writes the text of a label of a name, whose identity is `value`. Returns false if the name has no
 * such label. */
bool zn_labels_text(const zn_labels *labels, zn_name_level level, zn_id value, zn_span name,
                    zn_hostname *out);
/* Returns the AS of an address, or the letters of the country in 16 bits; 0 if the table
 * does not have it. */
uint32_t zn_labels_place(const zn_labels *labels, zn_server_level level, const zn_addr *address);
/* Writes the text of a label that the address has at this level. */
void zn_labels_server_text(const zn_labels *labels, zn_server_level level, const zn_addr *address,
                           zn_hostname *out);
/* Returns the countries of an AS, as zn_levels_parents does; of: a zn_labels. */
const zn_id *zn_labels_parents(void *of, uint32_t level, zn_id label, uint32_t above,
                               const zn_id *one, size_t *count);
/* Returns the bytes of memory in use. */
size_t zn_labels_memory(const zn_labels *labels);

#endif
