/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows: one entry for each 5-tuple in use, its direction, its counters and its life.
 *
 * Lookup is three steps, so that a batch of packets can overlap its cache misses: zn_flow_prefetch
 * (bucket), zn_flow_probe (entry), both in flow/flow_table.h, zn_flow_find. Buckets are one cache
 * line of ten 16-bit tags and ten 32-bit references.
 *
 * Life: open -> closed (FIN both ways acknowledged, RST, idle, end of input) -> emitted -> free.
 * Closed flows wait in a queue until their owner has written their record. A flow closed by its own
 * segments then lingers, findable, for ZN_FLOW_LINGER_NS, so that stray segments do not look like a
 * new flow. Expiry is a timer wheel of one-second slots that looks at each flow that had a packet
 * at least every ZN_FLOW_VISIT_S seconds; a gap of a year in the capture costs one turn of it.
 *
 * Semantics of opening, closing and completeness: Tstat's, as docs/reference/tstat.md has them.
 */
#ifndef ZN_FLOW_FLOW_H
#define ZN_FLOW_FLOW_H

#include "flow/layer7.h"
#include "flow/tcp_rtt.h"
#include "packet/packet.h"
#include "util/arena.h"
#include "util/stats.h"
#include "zanon/zanon.h"

#define ZN_FLOW_VISIT_S 16
#define ZN_FLOW_SPARE 32       /* flows a table has room for beyond its cap, until room is made */
#define ZN_FLOW_EVICT_MAX 1088 /* most flows closed early at a time */
#define ZN_FLOW_AHEAD 16       /* closed flows whose entries are fetched before their turn */
#define ZN_FLOW_LINGER_NS (10 * ZN_NS_PER_S)
#define ZN_WELL_KNOWN_PORTS 1024 /* ports below are servers' */
#define ZN_FLOW_TCP_IDLE_NS (300 * ZN_NS_PER_S)
#define ZN_FLOW_SYN_IDLE_NS (10 * ZN_NS_PER_S)
#define ZN_FLOW_UDP_IDLE_NS (200 * ZN_NS_PER_S)
#define ZN_FLOW_UDP_SINGLE_NS (10 * ZN_NS_PER_S)
#define ZN_FLOW_LEAST_IDLE_NS (10 * ZN_NS_PER_S) /* of all these */

/* What one endpoint sent: what every packet changes or is compared with, in one cache line. */
typedef struct zn_flow_side {
    uint64_t bytes; /* payload */
    int64_t first_data_ns,
        last_data_ns;     /* TCP: segments with payload; UDP: any datagram. 0: none */
    int64_t first_ack_ns; /* first ACK without SYN; 0: none */
    uint32_t packets, packets_data;
    uint32_t acks, acks_pure;
    union {
        uint32_t isn;       /* TCP: sequence number of the SYN */
        uint32_t udp_first; /* UDP: analyzer/'s */
    };
    union {
        uint32_t next_seq;   /* TCP: behind the highest byte sent */
        uint32_t udp_second; /* UDP: analyzer/'s */
    };
    uint32_t fin_end; /* sequence number behind the FIN */
    uint16_t fin;
    bool seq_known : 1;       /* next_seq means something */
    bool fin_acked : 1;       /* the other side acknowledged the FIN */
    bool sent_is_next : 1;    /* zn_flow_layer7.sent_seq is next_seq, whatever is there */
    bool message_is_next : 1; /* and so is message_seq */
    union {
        uint8_t messages; /* TCP: those that are not in zn_flow_layer7.messages yet */
        uint8_t udp_type; /* UDP: analyzer/'s, what this side's datagrams look like */
    };
} zn_flow_side;
_Static_assert(sizeof(zn_flow_side) == 64, "a side is one cache line");

/* The rest of it. */
typedef struct zn_flow_flag_counts {
    uint16_t rst, syn;
} zn_flow_flag_counts;

/* What one endpoint sent again or out of order. Most flows have none of it, and no room for it. */
typedef struct zn_flow_retransmissions {
    uint64_t bytes; /* payload seen before */
    uint32_t packets, packets_out_of_order;
    uint32_t gaps; /* zn_seq_gaps of bytes not seen yet, 0: none */
} zn_flow_retransmissions;

/* Cold data: few flows have it beside their entry. */
typedef struct zn_flow_cold {
    uint32_t
        resolution; /* analyzer/dn_hunter: how the client came by the server's address, 0: none */
    uint8_t epoch[sizeof(int64_t)]; /* where it is later than that of first_ns; 0: it is not */
    zn_addr user;                   /* of a flow with user_outside */
    zn_addr pseudonym;              /* of the end whose pseudonym is not in the entry */
} zn_flow_cold;
_Static_assert(sizeof(zn_flow_cold) == 44, "what is beside an entry has no holes");

/*
 * zn_flow.watch, of a side: which of its packets are to be looked into. Each bit is set until those
 * who look need it no more; packets that no bit asks for are only counted (analyzer/watch.h).
 */
enum {
    ZN_WATCH_PACKET = 0x01,  /* any */
    ZN_WATCH_TUNNEL = 0x02,  /* that came in a tunnel */
    ZN_WATCH_PAYLOAD = 0x04, /* with payload */
    ZN_WATCH_START = 0x08,   /* whose payload starts as something does that is recognised */
    ZN_WATCH_TEXT = 0x10,    /* whose payload starts with two capitals */
    ZN_WATCH_BEFORE = 0x20,  /* with payload that starts at watch_seq or before it; with START:
                                anywhere else, or too often, and watch_seq follows the others */
    ZN_WATCH_TIME = 0x40,    /* with payload: its time is noted, nothing else */
    ZN_WATCH_ALL = 0x7f,
    ZN_FLOW_COUNT_SLOWLY = 0x80 /* flow/'s own: the shortest way to count is not open */
};

#define ZN_FLOW_NO_USER 2u /* zn_flow.user: networks of users were given, and no end is in them */

/* Why a flow closed. */
typedef enum zn_flow_end {
    ZN_FLOW_OPEN,
    ZN_FLOW_FIN, /* both FINs acknowledged */
    ZN_FLOW_RST,
    ZN_FLOW_IDLE,
    ZN_FLOW_EVICTED, /* to make room for others */
    ZN_FLOW_INPUT_END
} zn_flow_end;

/* What flow/ reserves for analyzer/, which lays it out (analyzer/flow_state.h): in the first cache
 * line of a flow, in the rest of it, and behind the messages of a zn_flow_layer7. All zero at
 * first. */
#define ZN_FLOW_STATE_BYTES 7
#define ZN_FLOW_FACTS_BYTES 8

/* The first cache line and that of the side that sent it are what a usual packet touches. */
typedef struct zn_flow {
    zn_tuple tuple;
    int64_t last_ns;
    union {
        uint32_t watch_seq; /* TCP: where the message in progress or the next one starts */
        uint32_t datagram;  /* UDP: analyzer/'s, 0: none */
    };
    uint8_t state[ZN_FLOW_STATE_BYTES]; /* analyzer/'s: zn_flow_state */
    uint8_t watch[2];       /* by tuple index, ZN_WATCH_*; what is set too much costs time only */
    uint8_t watch_left;     /* packets until ZN_WATCH_PACKET is set, for once; 0: never */
    uint8_t client : 1;     /* tuple index of the client */
    uint8_t opener : 1;     /* of the one that was taken for the client at first */
    uint8_t user : 2;       /* of the user, or ZN_FLOW_NO_USER */
    uint8_t end : 4;        /* zn_flow_end */
    bool indexed : 1;       /* findable */
    bool emitted : 1;       /* its record is written: only lingering */
    bool midstream : 1;     /* TCP whose SYN was not seen */
    bool syn_acked : 1;     /* TCP: the server's SYN acknowledged the client's */
    bool client_acked : 1;  /* the client is no spoofed source: TCP: it acknowledged that SYN */
    bool user_outside : 1;  /* its user's address is not in the tuple: zn_flow_user */
    bool fin_seen : 1;      /* TCP: of either side */
    bool names_dropped : 1; /* exposed names that found no room: it has something to hide */

    zn_flow_side side[2]; /* by tuple index */
    int64_t first_ns;
    zn_addr pseudonym;       /* the opener's; the other's is zn_flow_pseudonym's */
    uint32_t bucket;         /* low bits of the tuple's hash, which choose the bucket */
    uint32_t next, previous; /* lingering: neighbours; open: part of the wheel, place there */
    uint8_t facts[ZN_FLOW_FACTS_BYTES]; /* analyzer/'s: zn_flow_facts */
    uint32_t retransmissions;           /* two zn_flow_retransmissions, by tuple index; 0: none */
    uint32_t cold;                      /* a zn_flow_cold, 0: none */
    zn_flow_flag_counts flag_counts[2]; /* by tuple index */
    bool internal[2];                   /* by tuple index */
    uint8_t plays_server;               /* bits by tuple index: that side sent what servers do */
} zn_flow;
_Static_assert(offsetof(zn_flow, side) == 64, "sides start on a cache line");
_Static_assert(offsetof(zn_flow, facts) % sizeof(uint32_t) == 0, "facts are words");
_Static_assert(sizeof(zn_flow) == 256, "a flow with core counters takes four cache lines");

#define ZN_SEQ_GAPS 16
/* Holes in one direction's sequence space, oldest first. */
typedef struct zn_seq_gaps {
    uint32_t link; /* the slab's, while free */
    uint32_t n;
    uint32_t from[ZN_SEQ_GAPS], to[ZN_SEQ_GAPS];
} zn_seq_gaps;

typedef struct zn_flow_table zn_flow_table;

/* Room for max_flows flows and ZN_FLOW_SPARE more, with what the column sets (ZN_SET_*) need,
 * counting into *stats, which must outlive the table. */
int zn_flow_table_open(zn_flow_table **out, uint32_t max_flows, unsigned sets, zn_stats *stats,
                       zn_error *err);
void zn_flow_table_close(zn_flow_table *t);

/* The flow of a packet, or 0. */
uint32_t zn_flow_find(const zn_flow_table *t, const zn_packet *p);

/*
 * The flow that packet `p` belongs to, opened when need be; `p` is counted in it and may close it.
 * 0 when the packet opens no flow (stray, RST without flow, table full) or is a RST that is none of
 * its flow's, counted. *opened tells whether the flow is new. Its caller lets the index grow:
 * zn_flow_grow in flow/flow_table.h.
 */
uint32_t zn_flow_update(zn_flow_table *t, const zn_packet *p, bool *opened);

/* Entries are addressed by index and stay where they are until freed. */
zn_flow *zn_flow_at(const zn_flow_table *t, uint32_t flow);

/* What a side sent again or out of order; NULL: nothing. Valid until the next of the table's
 * functions that takes a zn_flow *. */
const zn_flow_retransmissions *zn_flow_retransmissions_of(const zn_flow_table *t, const zn_flow *f,
                                                          unsigned side);

/* What the table keeps beside the entry of a TCP flow for the E2E and OPTIONS, or the LAYER7
 * columns; NULL for other flows and when it was not asked for. Valid as long as the entry. */
zn_tcp_path *zn_flow_path(const zn_flow_table *t, const zn_flow *f);
zn_flow_layer7 *zn_flow_layer7_of(const zn_flow_table *t, const zn_flow *f);
/* Remembers, or with NULL forgets, that the flow's user is known by another address than the
 * tuple's: that of a tunnel's end. */
void zn_flow_set_user(zn_flow_table *t, zn_flow *f, const zn_addr *user);
static inline bool zn_flow_has_user(const zn_flow *f)
{
    return f->user < ZN_FLOW_NO_USER;
}

/* The client sent what servers do: where a server echoes it, nobody is proven. Over UDP this is
 * noted of the client only. */
static inline bool zn_flow_client_plays_server(const zn_flow *f)
{
    return (f->plays_server >> f->client & 1u) != 0;
}

/* That side, by tuple index, sent what servers do. */
static inline void zn_flow_note_server(zn_flow *f, unsigned side)
{
    f->plays_server = (f->plays_server | 1u << side) & 3u;
}

/* The address of the flow's user, which it has. */
const zn_addr *zn_flow_user(const zn_flow_table *t, const zn_flow *f);

/* The pseudonym of an end, by tuple index: zero until it is set, which it is not of a special
 * address. */
void zn_flow_set_pseudonym(zn_flow_table *t, zn_flow *f, unsigned end, const zn_addr *pseudonym);
zn_addr zn_flow_pseudonym(const zn_flow_table *t, const zn_flow *f, unsigned end);
/* The epoch of the pseudonyms: that of first_ns, where one lasts rotate_ns, or a later one. */
void zn_flow_set_epoch(zn_flow_table *t, zn_flow *f, int64_t epoch, int64_t rotate_ns);
int64_t zn_flow_epoch(const zn_flow_table *t, const zn_flow *f, int64_t rotate_ns);
/* zn_flow_cold.resolution. */
void zn_flow_set_resolution(zn_flow_table *t, zn_flow *f, uint32_t resolution);
uint32_t zn_flow_resolution(const zn_flow_table *t, const zn_flow *f);

/* Takes the other side for the client: only when more is known than when the first was guessed. */
void zn_flow_swap_client(zn_flow *f);

/* Moves expiry to now_ns: closes idle flows, frees lingering ones. */
void zn_flow_expire(zn_flow_table *t, int64_t now_ns);
/* The packet clock was set back to now_ns: every open flow is closed as idle. */
void zn_flow_rebase(zn_flow_table *t, int64_t now_ns);
/* Closes flows early, or frees lingering ones, those idle for longest first: `want` of them, but at
 * most ZN_FLOW_EVICT_MAX. There is room once the records of those that closed are written. */
void zn_flow_evict(zn_flow_table *t, uint32_t want);
/* End of input at now_ns: closes all flows, those past their idle time as idle. */
void zn_flow_end_input(zn_flow_table *t, int64_t now_ns);

/* The next closed flow whose record is due, in closing order, or 0. Fetches the entry of the one
 * ZN_FLOW_AHEAD behind it. */
uint32_t zn_flow_next_closed(zn_flow_table *t);
/* The record of a flow from zn_flow_next_closed is written (or withheld): it may be freed. */
void zn_flow_emitted(zn_flow_table *t, uint32_t flow);

/* Tstat's "complete": closed by FIN, or by RST or idle with both SYNs seen; never when the client
 * sent data and the server's SYN was not seen. */
bool zn_flow_complete(const zn_flow *f);

uint32_t zn_flow_live(const zn_flow_table *t);
/* The flow in the next entry behind `flow` (0: in the first) that has one, open or not; 0: none. */
uint32_t zn_flow_after(const zn_flow_table *t, uint32_t flow);
/* Bytes in use, and bytes in use when the table is full. */
size_t zn_flow_memory(const zn_flow_table *t);
size_t zn_flow_memory_max(const zn_flow_table *t);
/* Checks every invariant; NULL, or what is broken. Slow: for tests. */
const char *zn_flow_check(const zn_flow_table *t);

#endif
