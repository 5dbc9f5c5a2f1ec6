/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's first pass: frames to packets. It brings together the decoder, which knows
 * fragments, and the table that puts datagrams together, which knows no protocol.
 *
 * A datagram put together is one packet, of the time of the frame that completed it and of its
 * whole length.
 */
#ifndef ZN_INTAKE_H
#define ZN_INTAKE_H

#include "util/hash.h"
#include "packet/packet.h"
#include "capture/frame.h"
#include "packet/decode.h"
#include "packet/defrag.h"
#include "flow/flow.h"

#define ZN_INTAKE_GROUP 32  /* frames taken at a time */
#define ZN_INTAKE_AHEAD 512 /* frames decoded before their turn, at a time */

typedef struct zn_intake {
    zn_stats *stats;
    const zn_flow_table *flows; /* whose buckets are prefetched */
    zn_defrag *defrag;
    zn_bucket_key flow_key;
    zn_hash_key datagram_key;
    int64_t first_ns, last_ns; /* of any frame; -1: none yet */
    bool in_order;             /* of the frames taken last none is older than any before it */
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_INTAKE_GROUP];
    zn_tunnel tunnels[ZN_INTAKE_GROUP][ZN_TUNNELS_MAX]; /* of the packets */
} zn_intake;

/* Frames that were decoded before their turn, by any thread. What depends on others of before waits
 * until then. */
typedef struct zn_decoded {
    size_t n, fragments_taken;
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_INTAKE_AHEAD];
    zn_tunnel tunnels[ZN_INTAKE_AHEAD][ZN_TUNNELS_MAX]; /* of the packets */
    uint16_t why[ZN_INTAKE_AHEAD]; /* zn_stat, as zn_packet_decode returns it */
    zn_fragment fragments[ZN_INTAKE_AHEAD];
} zn_decoded;

/* stats of *in is set; makes the rest but `flows`. 0, or a negative zn_err with *err filled. */
int zn_intake_init(zn_intake *in, zn_error *err);
void zn_intake_fini(zn_intake *in);

/* Turns up to ZN_INTAKE_GROUP frames into packets at out[0 .. ], which are valid until the next
 * call, and returns how many there are. */
size_t zn_intake_take(zn_intake *in, const zn_frame *frames, size_t n, zn_packet **out);

/* The first half of zn_intake_take, which changes nothing of *in: decodes up to ZN_INTAKE_AHEAD
 * frames. */
void zn_intake_decode(const zn_intake *in, const zn_frame *frames, size_t n, zn_decoded *out);
/* The second half, for n of them (up to ZN_INTAKE_GROUP) from `at` on, each once and in their
 * order. The packets are those of *d at out[0 .. ], whose number is returned; valid until the next
 * call. */
size_t zn_intake_join(zn_intake *in, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                      zn_packet **out);

#endif
