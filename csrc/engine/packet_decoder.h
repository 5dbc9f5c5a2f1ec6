/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's first pass, from frames to packets. It joins the decoder, which knows fragments, and
 * the table of fragments, which knows no protocol.
 *
 * A datagram put together from fragments is one packet, with the time of the frame that completed
 * it and its whole length. Where packets leave, the frames of the fragments are told, too: each
 * leaves by itself.
 */
#ifndef ZN_ENGINE_PACKET_DECODER_H
#define ZN_ENGINE_PACKET_DECODER_H

#include "flow/flow.h"
#include "packet/decode.h"
#include "packet/defrag.h"
#include "packet/fragment_frame.h"
#include "packet/packet.h"
#include "util/hash.h"
#include "zanon/zanon.h"

#define ZN_DECODER_GROUP 32  /* frames taken at a time */
#define ZN_DECODER_AHEAD 512 /* frames decoded ahead of their turn at a time */

typedef struct zn_packet_decoder {
    zn_stats *stats;
    const zn_flow_table *flows; /* the table whose buckets are prefetched */
    zn_defrag *defrag;
    zn_bucket_key flow_key;
    zn_hash_key datagram_key;
    int64_t first_ns, last_ns; /* of any frame; -1: none yet */
    /* IP packets of other protocols than TCP and UDP are packets, too, and fragments are told. */
    bool others;
    zn_tunnel_ports ports;
    bool layers;   /* the headers around a packet are noted, with `others` */
    bool live;     /* frames come from interfaces, which know what is longer than their MTU */
    bool in_order; /* none of the frames taken last is older than one before it */
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_GROUP];
    zn_packet_outer outer[ZN_DECODER_GROUP];       /* of the packets */
    zn_fragment_frame fragments[ZN_DECODER_GROUP]; /* of the group, in order */
    size_t fragment_count;
} zn_packet_decoder;

/* Frames that any thread decoded ahead of their turn. All that depends on the frames before them
 * waits for their turn. */
typedef struct zn_decoded {
    size_t n, fragments_taken;
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_AHEAD];
    zn_packet_outer outer[ZN_DECODER_AHEAD]; /* of the packets */
    uint16_t why[ZN_DECODER_AHEAD];          /* what zn_packet_decode returned, a zn_stat */
    zn_fragment fragments[ZN_DECODER_AHEAD];
} zn_decoded;

/* Prepares all members but `stats` and `flows`, which the caller sets. Returns 0, or a negative
 * zn_err with *err filled. */
int zn_packet_decoder_init(zn_packet_decoder *decoder, zn_error *err);
/* Has packets of other protocols than TCP and UDP, and fragments, be told; with `layers`, also
 * where the headers around packets are. */
void zn_packet_decoder_want_packets(zn_packet_decoder *decoder, bool layers);
/* Has datagrams of this port read as a tunnel's, a zn_tunnel_kind. Returns false as
 * zn_tunnel_ports_add does. */
bool zn_packet_decoder_add_port(zn_packet_decoder *decoder, uint16_t port, unsigned kind);
/* Frees what zn_packet_decoder_init made, also after it failed. */
void zn_packet_decoder_fini(zn_packet_decoder *decoder);

/* Turns up to ZN_DECODER_GROUP frames into packets at out[0 .. ] and returns how many. They are
 * valid until the next call. */
size_t zn_packet_decoder_take(zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_packet **out);

/* The first half of zn_packet_decoder_take, which changes nothing of *decoder: decodes n frames, up
 * to ZN_DECODER_AHEAD, into *out. */
void zn_packet_decoder_decode(const zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_decoded *out);
/* The second half, for n frames (up to ZN_DECODER_GROUP) of *d from `at` on. Each frame passes
 * once, in order. Puts their packets, which lie in *d, at out[0 .. ] and returns how many; they are
 * valid until the next call. */
size_t zn_packet_decoder_join(zn_packet_decoder *decoder, const zn_frame *frames, zn_decoded *d,
                              size_t at, size_t n, zn_packet **out);

#endif
