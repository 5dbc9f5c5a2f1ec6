/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet output: turns packets of flows into anonymized packets. Each packet waits in a delay line
 * until it is due. Then the packet gate decides its fate and its addresses, and a new packet is
 * built into the outputs.
 *
 * A view is a further output of the same packets, with a delay line, a gate and images of its own.
 * Its delay line has the same entries at the same places. A packet leaves all outputs in one step,
 * the main output first. No view shows a packet that the main output drops.
 *
 * The engine includes this header and no other header of this folder. It holds one pointer to a
 * rewriter, or NULL if no packets are wanted.
 */
#ifndef ZN_REWRITE_REWRITER_H
#define ZN_REWRITE_REWRITER_H

#include "analyzer/dn_hunter.h"
#include "analyzer/names.h"
#include "crypto/keys.h"
#include "output/outputs.h"
#include "packet/fragment_frame.h"
#include "release/gate_tap.h"
#include "release/policy.h"
#include "rewrite/packet_config.h"
#include "util/pool.h"

typedef struct zn_rewriter zn_rewriter;

/* Tables of the engine that a rewriter borrows. */
typedef struct zn_rewriter_tables {
    const zn_policy *policy;
    const zn_clock *clock; /* clock of packets */
    zn_stats *stats;       /* counters of the main output */
    zn_keys *keys;
    zn_span key_settings; /* text from which the digest of zn_key_scope is made */
    zn_flow_table *flows;
    const zn_bucket_key *flow_key; /* key of the flow table's buckets */
    zn_names *names;
    zn_dn_hunter *dn_hunter;
    zn_outputs *outputs;
} zn_rewriter_tables;

/* Opens a rewriter for a config that wants packets. Returns 0, or a negative zn_err with *err
 * filled and *out NULL. */
int zn_rewriter_open(zn_rewriter **out, const zn_engine_config *config,
                     const zn_rewriter_tables *tables, zn_error *err);
/* Frees a rewriter; NULL is fine. */
void zn_rewriter_close(zn_rewriter *r);
/* Lets the threads of a pool write frames. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_rewriter_use_pool(zn_rewriter *r, zn_pool *pool, zn_error *err);
/* Returns the tap by which the rewriter follows the decisions of the gate. */
const zn_gate_tap *zn_rewriter_tap(const zn_rewriter *r);

/* ---- flows ---- */

/* Makes the plan of a flow that has opened. */
void zn_rewriter_flow_opened(zn_rewriter *r, uint32_t flow);
/* Makes a new plan for a flow whose client has changed at t_ns. */
void zn_rewriter_client_changed(zn_rewriter *r, uint32_t flow, int64_t t_ns);
/* Notes the names of a flow after analyzers have looked at one of its packets. */
void zn_rewriter_names_read(zn_rewriter *r, uint32_t flow, const zn_flow *f);
/* Notes that a flow closed and that its record is written. Returns true if packets of the flow
 * wait. Then the rewriter calls zn_forget_flow when the last packet has left. Otherwise the
 * rewriter has forgotten the flow. */
bool zn_rewriter_flow_closed(zn_rewriter *r, uint32_t flow);

/* ---- packets that come ---- */

/* Makes room for n packets in the delay lines. Returns false if the lines are full. Then
 * zn_rewriter_emit_early makes room, after all votes are decided. */
bool zn_rewriter_reserve(zn_rewriter *r, uint32_t n);
/* Prefetches the memory that zn_rewriter_take_packet needs. flow: the probable flow. */
void zn_rewriter_fetch(const zn_rewriter *r, const zn_packet *p, uint32_t flow);
/* Sets the due time of entries that came while the clock was behind their time. Called before a
 * packet of t_ns moves the clock. */
void zn_rewriter_time_moves(zn_rewriter *r, int64_t t_ns);
/* Queues a packet of the flow (0: no flow), for which there is room. The fragments of a reassembled
 * packet are queued in its place, and the last of them came right before it. */
void zn_rewriter_take_packet(zn_rewriter *r, const zn_packet *p, uint32_t flow);
/* Queues a fragment, for which there is room. It leaves with the packets of its flow if its
 * datagram is whole when the first fragment of the datagram is due. */
void zn_rewriter_take_fragment(zn_rewriter *r, const zn_fragment_frame *frame);
/* Follows a packet clock that was set to t_ns, after all packets have left. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_rewriter_rebase(zn_rewriter *r, int64_t t_ns, zn_error *err);

/* ---- packets that leave ---- */

/* Emits the packets that are due before now_ns; INT64_MAX: all packets. All earlier votes are
 * decided. Returns true, without `all`, if it stopped because the outputs are more than full. */
bool zn_rewriter_emit(zn_rewriter *r, int64_t now_ns, bool all);
/* Emits the oldest packets before they are due, to make room in the delay lines. */
void zn_rewriter_emit_early(zn_rewriter *r);
/* Returns true if the program should take the packets that are ready. */
bool zn_rewriter_is_full(const zn_rewriter *r);
/* Lets the threads of the pool write frames until zn_rewriter_wait. */
void zn_rewriter_write_async(zn_rewriter *r);
/* Waits until all frames are written. */
void zn_rewriter_wait(zn_rewriter *r);

/* ---- figures ---- */

/* Appends the blocks in which addresses of packets lie, as zn_packet_keys_blocks does. */
void zn_rewriter_blocks(const zn_rewriter *r, zn_text *out);
/* Returns the most bytes that waiting packets have taken so far. */
size_t zn_rewriter_delayed_bytes_max(const zn_rewriter *r);
/* Returns the counters of a view. */
const zn_stats *zn_rewriter_view_stats(const zn_rewriter *r, unsigned view);
/* Returns the bytes of memory in use. */
size_t zn_rewriter_memory(const zn_rewriter *r);

#endif
