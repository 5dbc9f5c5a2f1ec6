/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows: an entry for each 5-tuple in use, with its direction, counters and state.
 *
 * A lookup has three steps, so that the lookups of a batch of packets overlap their cache misses:
 * zn_flow_prefetch (bucket), zn_flow_probe (entry), both in flow/flow_table.h, zn_flow_find.
 *
 * States: open -> closed (FIN both ways acknowledged, RST, idle, end of input) -> emitted -> free.
 * Closed flows wait in a queue until the table's owner has written their record. A flow closed by
 * its own segments then lingers, findable, for ZN_FLOW_LINGER_NS, so that stray segments do not
 * look like a new flow. A timer wheel of one-second slots expires flows: it looks at each flow that
 * had a packet at least every ZN_FLOW_VISIT_S seconds. A gap of a year in the capture costs one
 * turn of it.
 *
 * Directions of TCP may be captured in any order: a flow that opens with a SYN-ACK becomes whole
 * with the SYN that the SYN-ACK acknowledges.
 *
 * Flows open, close and are complete as Tstat's are (docs/reference/tstat.md).
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
/* flows that a table holds beyond its cap, until its owner evicts some */
#define ZN_FLOW_SPARE 32
#define ZN_FLOW_EVICT_MAX 1088 /* most flows evicted at a time */
#define ZN_FLOW_AHEAD 16       /* closed flows whose entries are prefetched before their turn */
#define ZN_FLOW_LINGER_NS (10 * ZN_NS_PER_S)
#define ZN_WELL_KNOWN_PORTS 1024 /* ports below are servers' */
#define ZN_FLOW_TCP_IDLE_NS (300 * ZN_NS_PER_S)
#define ZN_FLOW_SYN_IDLE_NS (10 * ZN_NS_PER_S)
#define ZN_FLOW_UDP_IDLE_NS (200 * ZN_NS_PER_S)
#define ZN_FLOW_UDP_SINGLE_NS (10 * ZN_NS_PER_S)
#define ZN_FLOW_LEAST_IDLE_NS (10 * ZN_NS_PER_S) /* the shortest of these */

/* The counts of one endpoint's packets: all that a packet changes or is compared with, in one cache
 * line. */
typedef struct zn_flow_side {
    uint64_t bytes; /* payload */
    int64_t first_data_ns,
        /* TCP: time of the last segment with payload; UDP: of the last datagram; 0: no such
         * packet */
        last_data_ns;
    int64_t first_ack_ns; /* first ACK without SYN; 0: none */
    uint32_t packets, packets_data;
    uint32_t acks, acks_pure;
    union {
        uint32_t isn;       /* TCP: sequence number of the SYN; see isn_claimed */
        uint32_t udp_first; /* UDP: analyzer/'s */
    };
    union {
        /* TCP: after the highest byte sent. Before the side's first segment: after the bytes that
         * the other side's SYN carries. */
        uint32_t next_seq;
        uint32_t udp_second; /* UDP: analyzer/'s */
    };
    uint32_t fin_end; /* sequence number after the FIN; see fin_claimed */
    uint16_t fin;
    bool seq_known : 1;       /* next_seq means something */
    bool fin_acked : 1;       /* the other side acknowledged the FIN */
    bool sent_is_next : 1;    /* zn_flow_layer7.sent_seq is next_seq, whatever is there */
    bool message_is_next : 1; /* and so is message_seq */
    /* True before the side's SYN if the other side acknowledged isn + 1 with its SYN-ACK or, as the
     * client, with its first ACK. */
    bool isn_claimed : 1;
    /* True before the side's FIN if the other side acknowledged fin_end since its own FIN. */
    bool fin_claimed : 1;
    union {
        uint8_t messages; /* TCP: messages that are not in zn_flow_layer7.messages yet */
        uint8_t udp_type; /* UDP: analyzer/'s, what this side's datagrams look like */
    };
} zn_flow_side;
_Static_assert(sizeof(zn_flow_side) == 64, "a side is one cache line");

/* Counts of rarer flags of one endpoint. */
typedef struct zn_flow_flag_counts {
    uint16_t rst, syn;
} zn_flow_flag_counts;

/* The counts of packets that one endpoint sent again or out of order. Most flows have none of them,
 * and no such entry. */
typedef struct zn_flow_retransmissions {
    uint64_t bytes; /* payload that was sent before */
    uint32_t packets, packets_out_of_order;
    uint32_t gaps; /* zn_seq_gaps of bytes not seen yet, 0: none */
} zn_flow_retransmissions;

/* Cold data: few flows have this beside their entry. */
typedef struct zn_flow_cold {
    uint32_t
        /* analyzer/dn_hunter: DNS response that gave the server's address to the client, or 0 */
        resolution;
    /* the pseudonyms' epoch, where later than that of first_ns; else 0 */
    uint8_t epoch[sizeof(int64_t)];
    zn_addr user;      /* the user's address, of a flow with user_outside */
    zn_addr pseudonym; /* of the end other than the opener */
} zn_flow_cold;
_Static_assert(sizeof(zn_flow_cold) == 44, "what is beside an entry has no holes");

/*
 * zn_flow.watch, of a side: which of its packets the analyzers are shown. A bit is set until no
 * analyzer needs such packets any more; a packet that no bit asks for is only counted
 * (analyzer/watch.h).
 */
enum {
    ZN_WATCH_PACKET = 0x01,  /* any */
    ZN_WATCH_TUNNEL = 0x02,  /* any that came in a tunnel */
    ZN_WATCH_PAYLOAD = 0x04, /* with payload */
    ZN_WATCH_START = 0x08,   /* whose payload starts as a protocol that an analyzer recognises */
    ZN_WATCH_TEXT = 0x10,    /* whose payload starts with two capitals */
    /* With payload that starts at or before watch_seq. With START: with payload that starts
     * anywhere but at watch_seq. Payload that starts there moves watch_seq behind it, a limited
     * number of times, and then is wanted too. */
    ZN_WATCH_BEFORE = 0x20,
    ZN_WATCH_TIME = 0x40, /* whose time is to be noted, if with payload */
    ZN_WATCH_ALL = 0x7f,
    ZN_FLOW_COUNT_SLOWLY = 0x80 /* flow/'s own: zn_flow_count_shortly must not be used */
};

/* zn_flow.user: the users' networks are set, and neither end lies in them */
#define ZN_FLOW_NO_USER 2u

/* Why a flow closed. */
typedef enum zn_flow_end {
    ZN_FLOW_OPEN,
    ZN_FLOW_FIN, /* both sides' FINs were acknowledged */
    ZN_FLOW_RST,
    ZN_FLOW_IDLE,
    ZN_FLOW_EVICTED, /* closed to make room for others */
    ZN_FLOW_INPUT_END
} zn_flow_end;

/* Bytes that flow/ reserves for analyzer/ (analyzer/flow_state.h has their layout): in the first
 * cache line of a flow, in the rest of the flow, and behind the messages of a zn_flow_layer7. All
 * are zero at first. */
#define ZN_FLOW_STATE_BYTES 7
#define ZN_FLOW_FACTS_BYTES 8

/* Flow. Most packets touch its first cache line and the cache line of the side that sent them. */
typedef struct zn_flow {
    zn_tuple tuple;
    int64_t last_ns;
    union {
        uint32_t watch_seq; /* TCP: where the message in progress or the next one starts */
        uint32_t datagram;  /* UDP: analyzer/'s, 0: none */
    };
    uint8_t state[ZN_FLOW_STATE_BYTES]; /* analyzer/'s: zn_flow_state */
    uint8_t watch[2];       /* by tuple index, ZN_WATCH_*; a bit too many costs time only */
    uint8_t watch_left;     /* packets until ZN_WATCH_PACKET is set once; 0: never */
    uint8_t client : 1;     /* tuple index of the client */
    uint8_t opener : 1;     /* tuple index of the end first taken for the client */
    uint8_t user : 2;       /* tuple index of the user, or ZN_FLOW_NO_USER */
    uint8_t end : 4;        /* zn_flow_end */
    bool indexed : 1;       /* the index holds it: lookups find it */
    bool emitted : 1;       /* its record is written: only lingering */
    bool midstream : 1;     /* TCP whose SYN was not seen, or not yet */
    bool syn_acked : 1;     /* TCP: the server's SYN acknowledged the client's */
    bool client_acked : 1;  /* the client is no spoofed source; TCP: it acknowledged that SYN */
    bool user_outside : 1;  /* its user's address is not in the tuple: zn_flow_user */
    bool fin_seen : 1;      /* TCP: either side sent a FIN */
    bool names_dropped : 1; /* it may have exposed names that have no entry: more is withheld */

    zn_flow_side side[2]; /* by tuple index */
    int64_t first_ns;
    zn_addr pseudonym; /* of the opener; zn_flow_pseudonym has both */
    union {
        /* Open: part of the wheel, index in it. Lingering: neighbours. */
        struct {
            uint32_t next, previous;
        };
        /* Closed, and its record is not written yet: when it closed. After FINs or RST that is at
         * its last packet; else at the packet time at which it was closed, or before that at the
         * end of its idle time, whenever that was noticed. */
        int64_t closed_ns;
    };
    uint32_t bucket;                    /* low bits of the tuple's hash, which choose the bucket */
    uint8_t facts[ZN_FLOW_FACTS_BYTES]; /* analyzer/'s: zn_flow_facts */
    uint32_t retransmissions;           /* two zn_flow_retransmissions, by tuple index; 0: none */
    uint32_t cold;                      /* a zn_flow_cold, 0: none */
    zn_flow_flag_counts flag_counts[2]; /* by tuple index */
    bool internal[2];                   /* by tuple index */
    /* bits by tuple index: that side sent what only servers send */
    uint8_t plays_server;
} zn_flow;
_Static_assert(offsetof(zn_flow, side) == 64, "sides start on a cache line");
_Static_assert(offsetof(zn_flow, facts) % sizeof(uint32_t) == 0, "facts are words");
_Static_assert(sizeof(zn_flow) == 256, "a flow with core counters takes four cache lines");

#define ZN_SEQ_GAPS 16
/* Holes in one direction's sequence space, oldest first: bytes [from, to). */
typedef struct zn_seq_gaps {
    uint32_t link; /* the slab's, while free */
    uint32_t n;
    uint32_t from[ZN_SEQ_GAPS], to[ZN_SEQ_GAPS];
} zn_seq_gaps;

typedef struct zn_flow_table zn_flow_table;

/* Opens a table for max_flows flows and ZN_FLOW_SPARE more, with the data that the column sets
 * (ZN_SET_*) need. Counts into *stats, which must outlive the table. Returns 0, or a negative
 * zn_err with *err filled. */
int zn_flow_table_open(zn_flow_table **out, uint32_t max_flows, unsigned sets, zn_stats *stats,
                       zn_error *err);
/* Frees the table. NULL is fine. */
void zn_flow_table_close(zn_flow_table *t);

/* Returns the flow of a packet, or 0. */
uint32_t zn_flow_find(const zn_flow_table *t, const zn_packet *p);

/*
 * Counts packet `p` in its flow, which it may open or close, and returns the flow. Returns 0 when
 * the packet opens no flow (stray, RST without flow, table full), or is a RST that cannot be of its
 * flow's connection, which is counted in the flow. *opened: the flow is new. The caller lets the
 * index grow (zn_flow_grow in flow/flow_table.h).
 */
uint32_t zn_flow_update(zn_flow_table *t, const zn_packet *p, bool *opened);

/* Returns the entry of a flow, which stays where it is until the flow is freed. */
zn_flow *zn_flow_at(const zn_flow_table *t, uint32_t flow);

/* Returns what a side sent again or out of order; NULL: nothing. Valid until the next call of a
 * function of the table that takes a zn_flow *. */
const zn_flow_retransmissions *zn_flow_retransmissions_of(const zn_flow_table *t, const zn_flow *f,
                                                          unsigned side);

/* Return the data beside the entry of a TCP flow: for the E2E and OPTIONS columns, and for
 * LAYER7's. NULL for other flows, and when the table was opened without those columns. Valid as
 * long as the entry. */
zn_tcp_path *zn_flow_path(const zn_flow_table *t, const zn_flow *f);
zn_flow_layer7 *zn_flow_layer7_of(const zn_flow_table *t, const zn_flow *f);
/* Sets the address of the flow's user if it is the address of a tunnel's end; NULL if it is in the
 * tuple. */
void zn_flow_set_user(zn_flow_table *t, zn_flow *f, const zn_addr *user);
static inline bool zn_flow_has_user(const zn_flow *f)
{
    return f->user < ZN_FLOW_NO_USER;
}

/* Returns true when the client sent what only servers send: where a server echoes that, it proves
 * nothing about the client. Over UDP this is noted of the client only. */
static inline bool zn_flow_client_plays_server(const zn_flow *f)
{
    return (f->plays_server >> f->client & 1u) != 0;
}

/* Notes that a side, by tuple index, sent what only servers send. */
static inline void zn_flow_note_server(zn_flow *f, unsigned side)
{
    f->plays_server = (f->plays_server | 1u << side) & 3u;
}

/* Returns the address of the flow's user, for a flow with zn_flow_has_user. */
const zn_addr *zn_flow_user(const zn_flow_table *t, const zn_flow *f);

/* Sets and returns the pseudonym of an end, by tuple index: zero until it is set. That of a special
 * address is never set. */
void zn_flow_set_pseudonym(zn_flow_table *t, zn_flow *f, unsigned end, const zn_addr *pseudonym);
zn_addr zn_flow_pseudonym(const zn_flow_table *t, const zn_flow *f, unsigned end);
/* Sets and returns the epoch of the pseudonyms, the number of a period of rotate_ns: that of
 * first_ns, or a later one. */
void zn_flow_set_epoch(zn_flow_table *t, zn_flow *f, int64_t epoch, int64_t rotate_ns);
int64_t zn_flow_epoch(const zn_flow_table *t, const zn_flow *f, int64_t rotate_ns);
/* Sets and returns zn_flow_cold.resolution, 0: none. */
void zn_flow_set_resolution(zn_flow_table *t, zn_flow *f, uint32_t resolution);
uint32_t zn_flow_resolution(const zn_flow_table *t, const zn_flow *f);

/* Takes the other side for the client. Only when more is known than when the client was guessed. */
void zn_flow_swap_client(zn_flow *f);

/* Closes the flows that are idle at now_ns, and frees the flows that have lingered. */
void zn_flow_expire(zn_flow_table *t, int64_t now_ns);
/* Closes every open flow as idle, after the packet clock was set back to now_ns. */
void zn_flow_rebase(zn_flow_table *t, int64_t now_ns);
/* Makes room at now_ns: frees `want` lingering flows or, when these are too few, closes open ones,
 * those idle for longest first; at most ZN_FLOW_EVICT_MAX. Closed flows take room until their
 * records are written. */
void zn_flow_evict(zn_flow_table *t, uint32_t want, int64_t now_ns);
/* Closes all flows at the end of input, at now_ns; those past their idle time as idle. */
void zn_flow_end_input(zn_flow_table *t, int64_t now_ns);

/* Returns the next closed flow whose record is to be written, in the order of closing, or 0.
 * Prefetches the entry of the one ZN_FLOW_AHEAD after it. */
uint32_t zn_flow_next_closed(zn_flow_table *t);
/* Frees a flow that zn_flow_next_closed returned, or lets it linger: its record is written (or
 * withheld). */
void zn_flow_emitted(zn_flow_table *t, uint32_t flow);

/* Returns whether the flow is "complete" in Tstat's sense: closed by FIN, or by RST or idle with
 * both SYNs seen; never when the client sent data and the server's SYN was not seen. */
bool zn_flow_complete(const zn_flow *f);

/* Returns how many entries are in use: open, closed and lingering flows. */
uint32_t zn_flow_live(const zn_flow_table *t);
/* Returns the next flow after `flow` (0: the first), open or not, in the order of entries; 0 at the
 * end. */
uint32_t zn_flow_after(const zn_flow_table *t, uint32_t flow);
/* Return the bytes of memory in use, and the bytes of a full table. */
size_t zn_flow_memory(const zn_flow_table *t);
size_t zn_flow_memory_max(const zn_flow_table *t);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
const char *zn_flow_check(const zn_flow_table *t);

#endif
