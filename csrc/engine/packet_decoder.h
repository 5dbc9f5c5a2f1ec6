/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's first pass: frames to packets. It brings together the decoder, which knows
 * fragments, and the table that puts datagrams together, which knows no protocol.
 *
 * A datagram put together is one packet, of the time of the frame that completed it and of its
 * whole length.
 */
#ifndef ZN_ENGINE_PACKET_DECODER_H
#define ZN_ENGINE_PACKET_DECODER_H

#include "flow/flow.h"
#include "packet/decode.h"
#include "packet/defrag.h"
#include "packet/packet.h"
#include "util/hash.h"
#include "zanon/zanon.h"

#define ZN_DECODER_GROUP 32  /* frames taken at a time */
#define ZN_DECODER_AHEAD 512 /* frames decoded before their turn, at a time */

typedef struct zn_packet_decoder {
    zn_stats *stats;
    const zn_flow_table *flows; /* whose buckets are prefetched */
    zn_defrag *defrag;
    zn_bucket_key flow_key;
    zn_hash_key datagram_key;
    int64_t first_ns, last_ns; /* of any frame; -1: none yet */
    bool in_order;             /* of the frames taken last none is older than any before it */
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_GROUP];
    zn_tunnel tunnels[ZN_DECODER_GROUP][ZN_TUNNELS_MAX]; /* of the packets */
} zn_packet_decoder;

/* Frames that were decoded before their turn, by any thread. What depends on others of before waits
 * until then. */
typedef struct zn_decoded {
    size_t n, fragments_taken;
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_AHEAD];
    zn_tunnel tunnels[ZN_DECODER_AHEAD][ZN_TUNNELS_MAX]; /* of the packets */
    uint16_t why[ZN_DECODER_AHEAD]; /* zn_stat, as zn_packet_decode returns it */
    zn_fragment fragments[ZN_DECODER_AHEAD];
} zn_decoded;

/* stats of *in is set; makes the rest but `flows`. 0, or a negative zn_err with *err filled. */
int zn_packet_decoder_init(zn_packet_decoder *in, zn_error *err);
void zn_packet_decoder_fini(zn_packet_decoder *in);

/* Turns up to ZN_DECODER_GROUP frames into packets at out[0 .. ], which are valid until the next
 * call, and returns how many there are. */
size_t zn_packet_decoder_take(zn_packet_decoder *in, const zn_frame *frames, size_t n,
                              zn_packet **out);

/* The first half of zn_packet_decoder_take, which changes nothing of *in: decodes up to
 * ZN_DECODER_AHEAD frames. */
void zn_packet_decoder_decode(const zn_packet_decoder *in, const zn_frame *frames, size_t n,
                              zn_decoded *out);
/* The second half, for n of them (up to ZN_DECODER_GROUP) from `at` on, each once and in their
 * order. The packets are those of *d at out[0 .. ], whose number is returned; valid until the next
 * call. */
size_t zn_packet_decoder_join(zn_packet_decoder *in, const zn_frame *frames, zn_decoded *d,
                              size_t at, size_t n, zn_packet **out);

#endif
