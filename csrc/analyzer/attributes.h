/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes votes of the attributes in util/attributes.h. A flow has the first text of each attribute.
 * An attribute waits for the same evidence as a name. It may only be shown if no name of the flow
 * is suppressed or unread when it votes; analyzer/unread says when a flow is unread.
 */
#ifndef ZN_ANALYZER_ATTRIBUTES_H
#define ZN_ANALYZER_ATTRIBUTES_H

#include "analyzer/names.h"
#include "util/attributes.h"

/* Counts of an attribute. */
typedef struct zn_attribute_counts {
    uint64_t observations; /* flows that exposed it */
    uint64_t released, suppressed;
    uint64_t malformed; /* messages in which it is damaged, so that it was not read */
} zn_attribute_counts;

/* State of the attributes of an engine. */
typedef struct zn_attributes {
    uint32_t wanted;   /* bits 1u << zn_attribute */
    uint32_t messages; /* bits 1u << zn_exposing_message that have a wanted attribute */
    uint32_t *first;   /* name entry of the first attribute, by flow; 0: none */
    uint32_t flows;
    zn_attribute_counts counts[ZN_ATTRIBUTE_COUNT];
} zn_attributes;

/* Opens the attributes `wanted` for max_flows flows, and puts them into *out; *out is NULL if none
 * is wanted. Returns 0, or a negative zn_err with *err filled. */
int zn_attributes_open(zn_attributes **out, uint32_t wanted, uint32_t max_flows, zn_error *err);
/* Frees the attributes. NULL is fine. */
void zn_attributes_close(zn_attributes *a);
/* Returns the bytes of memory in use. */
size_t zn_attributes_memory(const zn_attributes *a);

/* Reads the wanted attributes of a whole message. They vote, or wait for evidence. */
void zn_attributes_read(const zn_packet_context *s, zn_exposing_message message, zn_span bytes);
/* Counts a message in which a wanted attribute is damaged. */
void zn_attributes_malformed(const zn_packet_context *s, zn_attribute attribute);
/* Votes for the attributes of a flow that wait, if the flow's evidence is complete. */
void zn_attributes_confirm(const zn_packet_context *s);

/* Votes for an attribute that waits, because the packet completes its evidence. */
void zn_attributes_confirm_entry(const zn_packet_context *s, uint32_t entry);

/* Returns the first entry of a flow's attributes, or 0. The entries are linked by `next`. */
static inline uint32_t zn_attributes_first(const zn_names *names, uint32_t flow)
{
    return names->attributes == NULL ? 0 : names->attributes->first[flow];
}

/* Returns true if an attribute of such messages is wanted. */
static inline bool zn_attributes_want(const zn_packet_context *s, zn_exposing_message message)
{
    const zn_attributes *a = s->names->attributes;
    return ZN_UNLIKELY(a != NULL) && (a->messages & 1u << message) != 0;
}

/* Passes a message to zn_attributes_read if an attribute of it is wanted. */
static inline void zn_attributes_see(const zn_packet_context *s, zn_exposing_message message,
                                     zn_span bytes)
{
    if (zn_attributes_want(s, message) && bytes.n != 0)
        zn_attributes_read(s, message, bytes);
}

/* Sets the decision on the vote of an entry. is_shared: z users share the attribute. Returns true
 * if the attribute may be shown. */
bool zn_attributes_decide(zn_attributes *a, zn_name_store *name_store, const zn_flow *f,
                          uint32_t entry, bool is_shared, bool release_all);
/* Suppresses the attributes of a closed flow whose evidence never came. */
void zn_attributes_closed(zn_names *names, uint32_t flow);
/* Frees the attributes of a flow whose record is written. */
void zn_attributes_forget(zn_names *names, uint32_t flow);

#endif
