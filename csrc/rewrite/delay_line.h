/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delay line of packets: it keeps the fields with which each packet leaves until the packet is due.
 * Entries leave in the order in which they came. No entry has payload. An entry of a flow has no
 * addresses, because the flow has them.
 *
 * The ring of slots doubles until it fills the memory that the operator allows. An entry takes one
 * slot. TCP options, or the addresses of a packet without a flow, take a second slot. Outer headers
 * take up to three more slots if they are kept.
 */
#ifndef ZN_REWRITE_DELAY_LINE_H
#define ZN_REWRITE_DELAY_LINE_H

#include "build/build_encapsulation.h"

#define ZN_DELAYED_NONE UINT32_MAX
#define ZN_DELAYED_OUTER_SLOTS 3u /* most slots that the outer headers of a packet take */

typedef enum zn_delayed_kind {
    ZN_DELAYED_PACKET,   /* TCP or UDP */
    ZN_DELAYED_FRAGMENT, /* fragment of a UDP datagram */
    ZN_DELAYED_OTHER     /* another protocol */
} zn_delayed_kind;

/* Packet of TCP or UDP; UDP uses ip_id only. */
typedef struct zn_delayed_packet {
    uint32_t seq, ack;
    uint16_t window;
    uint16_t ip_id;
    uint8_t tcp_flags;
    uint8_t option_bytes; /* bytes of TCP options in the second slot */
} zn_delayed_packet;

/* Fragment of a UDP datagram. It has no flow until the datagram is whole. */
typedef struct zn_delayed_fragment {
    uint32_t datagram_bytes; /* bytes of the whole datagram with its UDP header */
    uint32_t id;             /* IP identification with which the fragment leaves */
    uint16_t offset;         /* offset of the payload in the datagram */
    uint16_t why;            /* fate of the fragment while it has no flow: a zn_stat */
    bool more;               /* true if more fragments of the datagram follow */
} zn_delayed_fragment;

/* Packet of another protocol. It has a flow if it is an ICMP error about a packet of the flow. */
typedef struct zn_delayed_other {
    uint16_t echo_id;      /* identifier with which an ICMP echo leaves */
    uint16_t why;          /* fate of the packet if it has no flow: a zn_stat */
    uint8_t end[2];        /* 1 + tuple index of the flow's end for each address; 0: no end */
    uint8_t quoted_sender; /* tuple index of the sender of the quoted packet */
    bool from_inside;      /* true if the source is on the user's side */
} zn_delayed_other;

/* Entry of the delay line. */
typedef struct zn_delayed {
    int64_t t_ns;
    int64_t due_ns;
    uint32_t flow;          /* 0: no flow */
    uint32_t before;        /* place of the entry before it of the same flow, or datagram */
    uint32_t at;            /* place of the entry in the order of slots, modulo 2^32 */
    uint32_t payload_bytes; /* bytes on the wire */
    uint32_t image;         /* image of a datagram or of an ICMP message; 0: none */
    uint8_t kind;           /* zn_delayed_kind */
    uint8_t proto;
    uint8_t sender; /* tuple index of the sender; unused in ZN_DELAYED_OTHER */
    uint8_t tos, ttl;
    uint8_t slots; /* slots of the entry */
    uint8_t outer; /* index of the slot of the outer headers among them; 0: none */
    bool dont_fragment;
    union {
        zn_delayed_packet packet;
        zn_delayed_fragment fragment;
        zn_delayed_other other;
    };
} zn_delayed;
_Static_assert(sizeof(zn_delayed) <= 64, "an entry is one slot");

/* Outer headers of an entry: tags, labels, sessions and tunnels. The addresses of its IP headers
 * are in the slots behind it. */
typedef struct zn_delayed_outer {
    zn_build_layer layer[ZN_LAYERS_MAX];
} zn_delayed_outer;

typedef union zn_delay_slot {
    zn_delayed entry;
    uint8_t options[ZN_BUILD_OPTIONS_MAX]; /* TCP options of a packet */
    zn_addr address[2];                    /* source and destination of another protocol */
    zn_delayed_outer outer;
    zn_addr outer_address[4]; /* addresses of two outer IP headers */
    uint8_t bytes[64];
} zn_delay_slot;
_Static_assert(sizeof(zn_delay_slot) == 64, "a slot is one cache line");

typedef struct zn_delay_line {
    zn_delay_slot *slots;
    uint32_t size, size_max; /* slots now and at most, each a power of two */
    uint32_t first, end;     /* places of the oldest entry and after the newest, modulo 2^32 */
    uint32_t n;              /* entries */
    uint64_t most;           /* most slots in use so far */
} zn_delay_line;

/* Makes an empty line of at most `bytes` bytes; *line is zero. Returns 0, or -ZN_ERR_CAPACITY with
 * *err filled. */
int zn_delay_line_init(zn_delay_line *line, uint64_t bytes, zn_error *err);
void zn_delay_line_fini(zn_delay_line *line);
/* Makes room for n more slots. Returns false if the line may not grow so far: then entries have to
 * leave. */
bool zn_delay_line_reserve(zn_delay_line *line, uint32_t n);
/* Adds an entry of one or two slots, for which there is room. */
zn_delayed *zn_delay_line_add(zn_delay_line *line, uint8_t slots);
/* Returns the bytes of memory in use. */
static inline size_t zn_delay_line_memory(const zn_delay_line *line)
{
    return (size_t)line->size * sizeof *line->slots;
}

static inline zn_delay_slot *zn_delay_line_slot(const zn_delay_line *line, uint32_t place)
{
    return &line->slots[place & (line->size - 1)];
}

static inline zn_delayed *zn_delay_line_at(const zn_delay_line *line, uint32_t place)
{
    return &zn_delay_line_slot(line, place)->entry;
}

/* Adds outer headers to the newest entry, for which there is room. */
void zn_delay_line_add_outer(zn_delay_line *line, zn_delayed *p,
                             const zn_build_encapsulation *outer);
/* Writes the outer headers of an entry to *out. The list is empty if the entry has no outer
 * headers. */
void zn_delay_line_outer(const zn_delay_line *line, const zn_delayed *p,
                         zn_build_encapsulation *out);

/* Returns the oldest entry, or NULL. */
static inline zn_delayed *zn_delay_line_first(const zn_delay_line *line)
{
    return line->n == 0 ? NULL : zn_delay_line_at(line, line->first);
}

/* Returns the space for the TCP options of an entry of two slots. */
static inline uint8_t *zn_delay_line_options(const zn_delay_line *line, const zn_delayed *p)
{
    return zn_delay_line_slot(line, p->at + 1)->options;
}

/* Returns the space for the addresses of an entry of another protocol, which has two slots. */
static inline zn_addr *zn_delay_line_addresses(const zn_delay_line *line, const zn_delayed *p)
{
    return zn_delay_line_slot(line, p->at + 1)->address;
}

/* Removes the oldest entry. */
static inline void zn_delay_line_leave(zn_delay_line *line)
{
    line->first += zn_delay_line_at(line, line->first)->slots;
    line->n--;
}

/* Removes the newest entry, which has two slots and no outer headers. */
static inline void zn_delay_line_drop_last(zn_delay_line *line)
{
    line->end -= 2;
    line->n--;
}

/* Returns true if the entry of this place is still in the line. */
static inline bool zn_delay_line_has(const zn_delay_line *line, uint32_t place)
{
    return place != ZN_DELAYED_NONE && place - line->first < line->end - line->first;
}

#endif
