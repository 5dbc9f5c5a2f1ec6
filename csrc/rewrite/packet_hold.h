/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delay line of packets: what those that came have to leave with, until they are due. Entries
 * leave in the order in which they came. They hold no payload, and no address: the flow has those.
 *
 * The ring of slots doubles until it has the bytes that the operator gave. An entry takes a slot,
 * or two where it has TCP options that are shown; and up to three more for the headers around it,
 * where those are kept.
 */
#ifndef ZN_REWRITE_PACKET_HOLD_H
#define ZN_REWRITE_PACKET_HOLD_H

#include "build/build_encapsulation.h"

#define ZN_HELD_NONE UINT32_MAX
#define ZN_HELD_OUTER_SLOTS 3u /* most slots that the headers around a packet take */

typedef struct zn_held_packet {
    int64_t t_ns;
    int64_t due_ns;
    uint32_t flow;
    /* Place of the flow's entry before it, of a fragment of the datagram's; ZN_HELD_NONE: it has
     * left. */
    uint32_t before;
    union {
        uint32_t seq;
        uint32_t datagram_bytes; /* of a fragment */
    };
    union {
        uint32_t ack;
        uint32_t long_id; /* of a fragment: what its packets have for an identification */
    };
    uint32_t payload_bytes; /* on the wire */
    uint32_t image;         /* rewrite/packet_images: of the datagram, 0: none */
    union {
        uint16_t window;
        uint16_t offset; /* of a fragment: of its bytes in the datagram */
    };
    uint16_t ip_id;
    uint8_t tos, ttl, tcp_flags;
    uint8_t option_bytes;
    uint8_t proto;
    uint8_t sender; /* tuple index; of another protocol than TCP and UDP: of the quoted packet */
    /* Of another protocol: 1 + the tuple index of the flow's end that each address is of; 0:
     * none. */
    uint8_t end[2];
    bool from_inside; /* of another protocol */
    uint8_t slots;
    bool dont_fragment;
    uint8_t outer;       /* which of its slots has the headers around it, from 1 on; 0: none */
    uint32_t at;         /* place in the order of slots, modulo 2^32 */
    bool fragment, more; /* a fragment of UDP; of no flow while its datagram is not whole */
    uint16_t why;        /* of a fragment of no flow: the zn_stat that is its fate */
} zn_held_packet;
_Static_assert(sizeof(zn_held_packet) <= 64, "an entry is one slot");

typedef union zn_hold_slot {
    zn_held_packet packet;
    zn_addr address[2]; /* of another protocol: source and destination */
    uint8_t options[ZN_BUILD_OPTIONS_MAX];
    zn_build_layer layer[ZN_LAYERS_MAX];
    zn_addr layer_address[4]; /* of two IP headers */
    uint8_t bytes[64];
} zn_hold_slot;
_Static_assert(sizeof(zn_hold_slot) == 64, "a slot is one cache line");

typedef struct zn_packet_hold {
    zn_hold_slot *slots;
    uint32_t size, size_max; /* slots, a power of two, and most of them */
    uint32_t first, end;     /* places of the oldest entry and after the newest, modulo 2^32 */
    uint32_t n;              /* entries */
    uint64_t most;           /* slots in use at a time, so far */
} zn_packet_hold;

/* Makes an empty line of at most `bytes` bytes; *h is zero. Returns 0, or -ZN_ERR_CAPACITY. */
int zn_packet_hold_init(zn_packet_hold *h, uint64_t bytes, zn_error *err);
void zn_packet_hold_fini(zn_packet_hold *h);
/* Makes room for n more slots. Returns false where that would be more than there may be: entries
 * have to leave. */
bool zn_packet_hold_reserve(zn_packet_hold *h, uint32_t n);
/* Returns the place of a new entry, for which there is room; `options`: with space for options. */
zn_held_packet *zn_packet_hold_add(zn_packet_hold *h, bool options);
static inline size_t zn_packet_hold_memory(const zn_packet_hold *h)
{
    return (size_t)h->size * sizeof *h->slots;
}

static inline zn_held_packet *zn_packet_hold_at(const zn_packet_hold *h, uint32_t place)
{
    return &h->slots[place & (h->size - 1)].packet;
}

/* Adds the headers around the newest entry, for which there is room. */
void zn_packet_hold_add_outer(zn_packet_hold *h, zn_held_packet *p,
                              const zn_build_encapsulation *outer);
/* Writes the headers around an entry to *out, or that there are none. */
void zn_packet_hold_outer(const zn_packet_hold *h, const zn_held_packet *p,
                          zn_build_encapsulation *out);

/* The oldest entry, or NULL. */
static inline zn_held_packet *zn_packet_hold_first(const zn_packet_hold *h)
{
    return h->n == 0 ? NULL : zn_packet_hold_at(h, h->first);
}

/* The space for the options of an entry of two slots. */
static inline uint8_t *zn_packet_hold_options(const zn_packet_hold *h, const zn_held_packet *p)
{
    return h->slots[(p->at + 1) & (h->size - 1)].options;
}

/* The space for the addresses of an entry of another protocol, which has two slots. */
static inline zn_addr *zn_packet_hold_addresses(const zn_packet_hold *h, const zn_held_packet *p)
{
    return h->slots[(p->at + 1) & (h->size - 1)].address;
}

/* Forgets the oldest entry. */
static inline void zn_packet_hold_leave(zn_packet_hold *h)
{
    h->first += zn_packet_hold_at(h, h->first)->slots;
    h->n--;
}

/* Takes back the newest entry. */
static inline void zn_packet_hold_drop_last(zn_packet_hold *h)
{
    h->end -= 2; /* it has two slots, and no headers around it yet */
    h->n--;
}

/* Returns whether the entry of this place is still there. */
static inline bool zn_packet_hold_has(const zn_packet_hold *h, uint32_t place)
{
    return place != ZN_HELD_NONE && place - h->first < h->end - h->first;
}

#endif
