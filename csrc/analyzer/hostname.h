/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostnames in the one form in which they are counted and released: lower case, without a final dot
 * or a port, LDH labels and underscores (RFC 5890 2.3.1, RFC 8552), at most 63 bytes a label and
 * 253 in all. Internationalised names stay A-labels.
 */
#ifndef ZN_ANALYZER_HOSTNAME_H
#define ZN_ANALYZER_HOSTNAME_H

#include "util/addr.h"
#include "util/cursor.h"
#include "util/hash.h"

#define ZN_HOSTNAME_MAX 253

typedef enum zn_host_kind {
    ZN_HOST_NAME,
    /* An address or a home spelled as a name: in-addr.arpa, ip6.arpa, .local, home.arpa. */
    ZN_HOST_HOME,
    ZN_HOST_ADDRESS, /* an IP literal, or numbers only, which are one in a URL: no name */
    ZN_HOST_EMPTY,
    ZN_HOST_INVALID
} zn_host_kind;

typedef struct zn_hostname {
    uint8_t text[ZN_HOSTNAME_MAX + 3]; /* room for a final dot and more while normalising */
    uint8_t n;
} zn_hostname;

/* Normalises `raw` into *out and returns its kind. out->n is 0 unless that is ZN_HOST_NAME or
 * ZN_HOST_HOME. */
zn_host_kind zn_hostname_normalize(zn_span raw, zn_hostname *out);

/* Names under suffixes that must never be released. */
typedef struct zn_never_list {
    uint64_t *slots; /* keyed hashes of the suffixes; 0: empty */
    uint32_t mask, members;
    zn_hash_key key;
} zn_never_list;

/* Makes a list with room for `cap` suffixes. Returns 0, or a negative zn_err with *err filled. An
 * all-zero list is empty and valid. */
int zn_never_list_init(zn_never_list *list, uint32_t cap, zn_error *err);
void zn_never_list_fini(zn_never_list *list);
/* Adds a normalised suffix such as "example.com", which covers itself and all names below it. */
void zn_never_list_add(zn_never_list *list, zn_span suffix);
/* Returns whether the name is a suffix of the list, or below one. */
bool zn_never_list_has(const zn_never_list *list, const zn_hostname *name);

static inline zn_span zn_hostname_span(const zn_hostname *name)
{
    return (zn_span){name->text, name->n};
}

#endif
