/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Struct of a rewriter, for the files of this folder. rewriter.c opens it and follows flows and
 * decisions, take_packets.c queues packets, and emit.c lets packets leave.
 */
#ifndef ZN_REWRITE_REWRITER_STATE_H
#define ZN_REWRITE_REWRITER_STATE_H

#include "packet/defrag.h"
#include "release/packet_gate.h"
#include "rewrite/delay_line.h"
#include "rewrite/frame_builder.h"
#include "rewrite/packet_images.h"
#include "rewrite/rewriter.h"

#define ZN_PACKET_OUTPUTS_MAX (ZN_VIEWS_MAX + 1u)

/* An output of packets: the main output or a view. */
typedef struct zn_packet_output {
    uint32_t outputs; /* set of text outputs, as bits 1u << output */
    zn_stats *stats;  /* counters of the engine; a view has counters of its own */
    zn_keys *keys;    /* keys of the engine; a view with another z has keys of its own */
    zn_stats own_stats;
    zn_packet_payload payload;
    zn_packet_macs macs;
    zn_tcp_timestamps tcp_timestamps;
    bool keep_ttl;
    bool keep_layers; /* true if the headers around packets leave, too */
    int64_t times_ns; /* ns to whose multiples times are rounded down */
    zn_packet_gate gate;
    zn_delay_line delay_line;
    zn_packet_images images;
    /* Place of the first entry without a flow that came while the clock was behind its time,
     * because only packets of flows move the clock; or ZN_DELAYED_NONE. */
    uint32_t undated;
    uint32_t last_fragment[ZN_DEFRAG_DATAGRAMS + 1]; /* place, by zn_datagram.entry */
    zn_fragment_frame fragment;                      /* last fragment that came */
} zn_packet_output;

struct zn_rewriter {
    const zn_policy *policy;
    const zn_clock *clock;
    zn_keys *keys;
    zn_flow_table *flows;
    const zn_bucket_key *flow_key;
    zn_names *names;
    zn_dn_hunter *dn_hunter;
    zn_outputs *outputs;
    zn_gate_tap tap;
    zn_packet_output output[ZN_PACKET_OUTPUTS_MAX]; /* the main output, and its views */
    unsigned packet_outputs;                        /* outputs that are open */
    zn_frame_builder frame_builder;
    uint32_t reserved; /* slots of the main delay line that were reserved last */
    bool writes_async; /* true if threads of the pool write frames */
};

#endif
