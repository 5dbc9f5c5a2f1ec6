/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names each flow exposed, as a list of small entries. The text of a name is kept only while it
 * waits for its evidence or decision, and after that only if it was released; otherwise it is wiped
 * at once. A suppressed name is then nowhere in the program.
 */
#ifndef ZN_ANALYZER_NAME_STORE_H
#define ZN_ANALYZER_NAME_STORE_H

#include "analyzer/flow_state.h"
#include "analyzer/hostname.h"
#include "analyzer/kinds.h"
#include "util/clock.h"

#define ZN_NAME_TEXT_SIZES 3 /* sizes of the memory for a text */
#define ZN_NAMES_PER_FLOW 32 /* distinct names one flow may expose; more are suppressed */

typedef enum zn_entry_state {
    ZN_ENTRY_PENDING, /* waits for evidence */
    ZN_ENTRY_VOTED,   /* in the batch that is being decided */
    ZN_ENTRY_RELEASED,
    ZN_ENTRY_SUPPRESSED,
    ZN_ENTRY_UNCONFIRMED,
    ZN_ENTRY_INVALID,
    ZN_ENTRY_REPEATED, /* another entry of the flow has the same name and its decision */
    /* suppressed, and published as a label, which is the entry's text */
    ZN_ENTRY_DOMAIN,
    ZN_ENTRY_CATEGORY
} zn_entry_state;

/* The part of a name that was read. */
typedef enum zn_reading {
    ZN_READ_WHOLE,
    ZN_READ_TRUNCATED, /* its hello, request or question never came whole */
    ZN_READ_INVALID,   /* not a hostname, or two that contradict each other */
    ZN_READ_NOT        /* of a version that is not read, or without room for it */
} zn_reading;

typedef struct zn_name_entry {
    uint32_t next; /* the flow's next name, 0: none; the slab's link while free */
    uint32_t text; /* in zn_name_store.texts; 0: wiped */
    zn_id id;      /* zero for a name that was not read (invalid, incomplete) */
    union {
        struct {
            uint16_t dns_id, dns_type; /* the query a response must match */
        };
        struct {
            uint8_t attribute;    /* zn_attribute, of an entry of analyzer/attributes */
            uint8_t names_before; /* names of its flow when it voted; see analyzer/attributes.c */
            uint16_t reply;       /* of the response that it waits for; 0: it waits for none */
        };
    };
    uint8_t source;    /* zn_name_source */
    uint8_t state;     /* zn_entry_state */
    uint8_t reading;   /* zn_reading */
    uint8_t text_size; /* index of the text's slab in zn_name_store.texts */
} zn_name_entry;
_Static_assert(sizeof(zn_name_entry) == 32, "entries fill cache lines");

/* When what happened to an entry, by the packet clock: a late packet changes nothing before it. */
typedef struct zn_name_times {
    int64_t observed_ns; /* the name was read */
    int64_t voted_ns;    /* its vote was cast */
    int64_t decided_ns;  /* its state became final; INT64_MAX: it did not yet */
    /* Outputs of packets, as bits: those for which enough other users shared it when it was read,
     * and enough did with its own vote. */
    uint8_t shared_in, released_in;
} zn_name_times;

typedef struct zn_name_store {
    zn_name_times *times;  /* by entry, from 1 on; NULL: not kept */
    const zn_clock *clock; /* of packets, where times are kept */
    zn_slab entries;
    zn_slab texts[ZN_NAME_TEXT_SIZES]; /* by size, the smallest first */
} zn_name_store;

/* Makes an empty store for max_flows flows. Returns 0, or a negative zn_err with *err filled. */
int zn_name_store_init(zn_name_store *name_store, uint32_t max_flows, zn_error *err);
void zn_name_store_fini(zn_name_store *name_store);
/* Has the store keep the times of its entries. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_name_store_keep_times(zn_name_store *name_store, const zn_clock *clock, zn_error *err);
/* Bytes in use. */
size_t zn_name_store_memory(const zn_name_store *name_store);

/* Adds an entry at the end of the flow's list. Returns it, or 0 when the store or the flow has no
 * room. */
uint32_t zn_name_store_add(zn_name_store *name_store, zn_flow *f, zn_name_source source);
/* Returns a new entry that is in no flow's list of names, such as a certificate's name; 0: no
 * room. */
uint32_t zn_name_store_add_secondary(zn_name_store *name_store);
/* Frees such an entry; 0 is fine. */
void zn_name_store_forget_secondary(zn_name_store *name_store, uint32_t entry);
/* Keeps a copy of the name; false when there is no room. */
bool zn_name_store_keep_text(zn_name_store *name_store, uint32_t entry, const zn_hostname *name);
/* Wipes the text of an entry, if one is kept. */
void zn_name_store_wipe_text(zn_name_store *name_store, uint32_t entry);
/* The text of an entry, empty when none is kept; borrows the store. */
zn_span zn_name_store_text(const zn_name_store *name_store, uint32_t entry);
/* Prefetches the kept text of an entry. */
void zn_name_store_prefetch_text(const zn_name_store *name_store, uint32_t entry);
/* Frees the flow's whole list. */
void zn_name_store_forget(zn_name_store *name_store, zn_flow *f);

/* Notes that the name of an entry was read now. The next functions note other times of an entry.
 * They do nothing if the store keeps no times. */
static inline void zn_name_store_observed(zn_name_store *name_store, uint32_t entry)
{
    if (ZN_UNLIKELY(name_store->times != NULL))
        name_store->times[entry] =
            (zn_name_times){name_store->clock->now_ns, INT64_MAX, INT64_MAX, 0, 0};
}

static inline void zn_name_store_voted(zn_name_store *name_store, uint32_t entry)
{
    if (ZN_UNLIKELY(name_store->times != NULL))
        name_store->times[entry].voted_ns = name_store->clock->now_ns;
}

static inline void zn_name_store_decided(zn_name_store *name_store, uint32_t entry, int64_t t_ns)
{
    if (ZN_UNLIKELY(name_store->times != NULL))
        name_store->times[entry].decided_ns = t_ns;
}

static inline void zn_name_store_decided_now(zn_name_store *name_store, uint32_t entry)
{
    if (ZN_UNLIKELY(name_store->times != NULL))
        name_store->times[entry].decided_ns = name_store->clock->now_ns;
}

/* Sets the times of a withheld entry back to t_ns if they are later. A flow that closed at t_ns is
 * looked at when its batch ends, and the clock may be later then. */
static inline void zn_name_store_withheld_by(zn_name_store *name_store, uint32_t entry,
                                             int64_t t_ns)
{
    if (ZN_UNLIKELY(name_store->times != NULL) && name_store->times[entry].observed_ns > t_ns)
        name_store->times[entry].observed_ns = name_store->times[entry].decided_ns = t_ns;
}

static inline void zn_name_store_decided_by_vote(zn_name_store *name_store, uint32_t entry,
                                                 uint8_t released_in)
{
    if (ZN_LIKELY(name_store->times == NULL))
        return;
    name_store->times[entry].decided_ns = name_store->times[entry].voted_ns;
    name_store->times[entry].released_in = released_in;
}

static inline zn_name_entry *zn_name_store_at(const zn_name_store *name_store, uint32_t entry)
{
    return zn_slab_at(&name_store->entries, entry);
}

#endif
