/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate of packets, which alone decides whether a packet of a flow leaves, and with which addresses.
 *
 * A packet is due hold_ns of packet time after it came. Its fate depends on the decisions about its
 * flow's names up to that packet time, so neither batches nor threads matter. A name without a
 * decision counts as withheld. A name whose own vote is pending passes if enough other users share
 * it (a peek). A flow without names passes when it is known to have no name.
 *
 * Each flow has a plan, which is made when the flow opens, while the keys of its epoch exist.
 */
#ifndef ZN_RELEASE_PACKET_GATE_H
#define ZN_RELEASE_PACKET_GATE_H

#include "analyzer/name_store.h"
#include "analyzer/nameless_flow.h"
#include "crypto/packet_keys.h"
#include "flow/flow.h"
#include "release/coarse_positions.h"
#include "release/policy.h"
#include "util/clock.h"
#include "util/stats.h"

typedef enum zn_packet_server {
    ZN_PACKET_SERVER_OPEN, /* none of the flow's packets has left */
    ZN_PACKET_SERVER_RELEASED,
    ZN_PACKET_SERVER_PAIR,
    ZN_PACKET_SERVER_VEILED /* coarse packets; views of servers that the main output shows */
} zn_packet_server;

/*
 * Addresses, ports and state of the packets of a flow. Pairs are by tuple index.
 *
 * The plan has four cache lines: members for packets that come and leave, for packets that leave
 * (and `shift`), for packets that come, and the rest.
 */
typedef struct zn_packet_plan {
    _Alignas(ZN_CACHE_LINE) int64_t names_known_ns; /* time since which no more names can come */
    int64_t missed_ns;  /* time since which names may be missed or the server is withheld */
    uint32_t held;      /* packets in the delay line */
    uint32_t last_held; /* place of the newest packet in the delay line */
    /* rewrite/packet_images: bytes of each side's stream that are shown; end of the bytes that have
     * left. */
    uint32_t image[2];
    uint32_t left_seq[2];
    uint16_t port[2];        /* port of the end as a client */
    uint16_t hidden_port[2]; /* replaces `port` if masked packets leave first */
    uint16_t last_word;      /* zn_stat that the forgotten names decided; 0: not forgotten */
    uint8_t images[2];       /* number of images */
    bool has_left[2];
    uint8_t server;          /* zn_packet_server */
    bool is_internal[2];     /* address of the end itself, not of its tunnel */
    bool addr_shared : 1;    /* z is 1, and the server was no client when the flow opened */
    bool addr_released : 1;  /* enough users share the server's address with the flow's vote */
    bool ready : 1;          /* addresses, ports and `shift` are set */
    bool left : 1;           /* some packet left */
    bool passed : 1;         /* some packet left and was not masked */
    bool began_masked : 1;   /* first packet left masked, here or in the main output */
    bool turned : 1;         /* a later packet did not leave, because of a name */
    bool hides_client : 1;   /* coarse records do not show the client, and the flow is coarse */
    bool coarse : 1;         /* packets have positions and lengths by `sides` */
    bool record_written : 1; /* record was written while packets wait */

    _Alignas(ZN_CACHE_LINE) zn_addr client[2]; /* pseudonym as a client, or an internal host */
    /* Address that replaces a server in the flows of this user; the address that replaces any other
     * end with hides_client, in this flow alone. */
    zn_addr pair[2];

    /* rewrite/packet_images: where the next TLS record starts; the end of the data so far, with
     * has_data; true in saw_data if application data came. */
    _Alignas(ZN_CACHE_LINE) zn_packet_shift shift;
    uint32_t record_seq[2], end_seq[2];
    bool reads_records[2], has_data[2], saw_data[2];
    bool leapt[2]; /* end of the data so far is unknown */

    _Alignas(ZN_CACHE_LINE) zn_addr veil; /* server address with ZN_PACKET_SERVER_VEILED */
    int64_t addr_ns;                      /* time of the decision on the server's address */
    zn_coarse_side sides[2];
    uint32_t due_noted;   /* place of the newest packet that counts as left */
    uint32_t fingerprint; /* name entry of the fingerprint */
    zn_nameless nameless; /* protocol without names, for names_known_ns */
} zn_packet_plan;
_Static_assert(sizeof(zn_packet_plan) == 4 * ZN_CACHE_LINE, "a plan takes four cache lines");

typedef struct zn_packet_gate {
    const zn_policy *policy; /* borrowed from the engine, as the next four */
    zn_flow_table *flows;
    zn_name_store *name_store;
    zn_stats *stats;
    const zn_clock *clock;
    zn_packet_plan *plans; /* by flow, from 1 on */
    size_t plan_count;
    zn_packet_keys *keys;
    int64_t hold_ns;
    zn_server_addresses server_addresses;
    bool coarse;      /* TCP flows with withheld names leave with coarse positions */
    bool exact;       /* withheld names are masked; false: their packets do not leave */
    uint32_t least_z; /* users that a name or an address needs, also if z is lower */
    uint8_t bit;      /* bit of this output in zn_name_times */
    const struct zn_packet_gate *main; /* gate of the main output; NULL: this is the main output */
} zn_packet_gate;

/* Returns the due time of a packet of t_ns. */
static inline int64_t zn_packet_gate_due_after(const zn_packet_gate *g, int64_t t_ns)
{
    return t_ns > INT64_MAX - g->hold_ns ? INT64_MAX : t_ns + g->hold_ns;
}

static inline zn_packet_plan *zn_packet_gate_plan(const zn_packet_gate *g, uint32_t flow)
{
    return &g->plans[flow];
}

/* Prefetch the parts of the flow's plan that a packet which comes, or leaves, soon needs. Always
 * inline, like zn_flow_probe. */
__attribute__((always_inline)) static inline void
zn_packet_gate_fetch_to_hold(const zn_packet_gate *g, uint32_t flow)
{
    const zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    ZN_PREFETCH_WRITE(plan);
    ZN_PREFETCH_WRITE(&plan->shift);
}
__attribute__((always_inline)) static inline void
zn_packet_gate_fetch_to_leave(const zn_packet_gate *g, uint32_t flow)
{
    const zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    ZN_PREFETCH_WRITE(plan);
    ZN_PREFETCH(plan->client);
    ZN_PREFETCH(&plan->shift);
}

/* Makes the plans of max_flows flows; the members up to clock and keys are set. Returns 0,
 * or a negative zn_err with *err filled. */
int zn_packet_gate_init(zn_packet_gate *g, uint32_t max_flows, zn_error *err);
void zn_packet_gate_fini(zn_packet_gate *g);
/* Returns the bytes of memory in use. */
size_t zn_packet_gate_memory(const zn_packet_gate *g);

/* Make the plan of a flow that has opened, and a new plan if its client has changed, with the keys
 * of its epoch. If that fails, or if packets of the flow have left, no more packets leave. */
void zn_packet_gate_open(zn_packet_gate *g, uint32_t flow, int64_t epoch);
void zn_packet_gate_reopen(zn_packet_gate *g, uint32_t flow, int64_t epoch);
/* Notes the state of the flow's names at t_ns, after analyzers have read a packet of the flow.
 * all_read: no more names are expected. */
void zn_packet_gate_note(zn_packet_gate *g, uint32_t flow, int64_t t_ns, bool all_read);
/* Notes the state of the names of a flow that closed. Nothing is known of an unread flow. */
void zn_packet_gate_close(zn_packet_gate *g, uint32_t flow);

/* Withholds packets of the flow that are due at t_ns or later, because its server's address may no
 * longer be released. */
static inline void zn_packet_gate_withhold(zn_packet_gate *g, uint32_t flow, int64_t t_ns)
{
    zn_packet_plan *plan = zn_packet_gate_plan(g, flow);
    if (plan->missed_ns > t_ns)
        plan->missed_ns = t_ns;
}

/* Keeps the decision on the flow's names before they are forgotten, because packets may still
 * come. */
void zn_packet_gate_forget(zn_packet_gate *g, uint32_t flow);

/* Returns the fate of a packet of the flow that is due at due_ns: ZN_STAT_PACKETS_PASSED or
 * _MASKED, or the ZN_STAT_PACKETS_DROPPED_* counter of the reason. The first packet that leaves
 * fixes the server's address. proto: protocol of the packet itself, because an ICMP packet may be
 * about the flow. */
zn_stat zn_packet_gate_fate(zn_packet_gate *g, uint32_t flow, uint32_t proto, int64_t due_ns);

/* Returns true if the flow's names that were read by t_ns may be shown by the decisions up to
 * t_ns. */
bool zn_packet_gate_shows_names(const zn_packet_gate *g, uint32_t flow, int64_t t_ns);
/* Returns true if the entry of a fingerprint or certificate may be shown at t_ns. */
bool zn_packet_gate_shows(const zn_packet_gate *g, uint32_t entry, int64_t t_ns);

/* Returns the address that leaving packets have for an end of their flow. */
const zn_addr *zn_packet_gate_address(const zn_flow *f, const zn_packet_plan *plan, unsigned end);

/* Returns true for an address that packets always show: a registered multicast group
 * (zn_addr_is_known_group), and 255.255.255.255. */
bool zn_packet_address_is_open(const zn_addr *a);
/* Returns true for an address that has a client's pseudonym: of an internal network, and no group
 * even if the networks are all addresses. */
bool zn_packet_address_is_internal(const zn_roles *roles, const zn_addr *a);

/* Returns whether packets between these ends are of one network only, and never leave: protocols
 * that name hosts to their neighbours, and addresses that are not one host's own, but for multicast
 * groups and 255.255.255.255 as one of the ends. */
bool zn_packet_is_local(const zn_tuple *tuple);

#endif
