/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First pass of the engine, from frames to packets. It joins the decoder, which knows fragments,
 * and the table of fragments, which knows no protocol.
 *
 * A reassembled datagram is one packet, with its whole length and the time of the frame that
 * completed it. With packet output, the frames of the fragments are listed as well, because each
 * fragment leaves as a packet.
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
    const zn_flow_table *flows; /* table whose buckets are prefetched */
    zn_defrag *defrag;
    zn_bucket_key flow_key;
    zn_hash_key datagram_key;
    int64_t first_ns, last_ns; /* of all frames; -1: no frame yet */
    /* True if IP packets of other protocols are packets, and fragments are listed. */
    bool others;
    zn_tunnel_ports ports;
    bool layers;   /* true if headers around packets are noted, with `others` */
    bool live;     /* true if frames come from interfaces, which know their MTU */
    bool in_order; /* true if the frames taken last were in order of time */
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_GROUP];
    zn_packet_outer outer[ZN_DECODER_GROUP];       /* headers around the packets */
    zn_fragment_frame fragments[ZN_DECODER_GROUP]; /* fragments of the group, in order */
    size_t fragment_count;
} zn_packet_decoder;

/* Frames that any thread decoded ahead of their turn. Work that depends on earlier frames waits for
 * their turn. */
typedef struct zn_decoded {
    size_t n, fragments_taken;
    _Alignas(ZN_CACHE_LINE) zn_packet packets[ZN_DECODER_AHEAD];
    zn_packet_outer outer[ZN_DECODER_AHEAD]; /* headers around the packets */
    uint16_t why[ZN_DECODER_AHEAD];          /* zn_stat, result of zn_packet_decode */
    zn_fragment fragments[ZN_DECODER_AHEAD];
} zn_decoded;

/* Prepares all members except `stats` and `flows`, which the caller sets. Returns 0, or a negative
 * zn_err with *err filled. */
int zn_packet_decoder_init(zn_packet_decoder *decoder, zn_error *err);
/* Lists fragments, and packets of protocols other than TCP and UDP. With `layers`, notes the
 * headers around packets as well. */
void zn_packet_decoder_want_packets(zn_packet_decoder *decoder, bool layers);
/* Reads datagrams of this port as a tunnel. kind: a zn_tunnel_kind. Returns false in the cases of
 * zn_tunnel_ports_add. */
bool zn_packet_decoder_add_port(zn_packet_decoder *decoder, uint16_t port, unsigned kind);
/* Frees the memory of zn_packet_decoder_init, also if it failed. */
void zn_packet_decoder_fini(zn_packet_decoder *decoder);

/* Turns up to ZN_DECODER_GROUP frames into packets at out[0 .. ] and returns the number of packets.
 * They are valid until the next call. */
size_t zn_packet_decoder_take(zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_packet **out);

/* Decodes n <= ZN_DECODER_AHEAD frames into *out: the first half of zn_packet_decoder_take, which
 * does not change *decoder. */
void zn_packet_decoder_decode(const zn_packet_decoder *decoder, const zn_frame *frames, size_t n,
                              zn_decoded *out);
/* Takes n <= ZN_DECODER_GROUP frames of *d from `at` on: the second half of zn_packet_decoder_take.
 * Each frame passes once, in order. Puts their packets, which lie in *d, at out[0 .. ] and returns
 * the number of packets. They are valid until the next call. */
size_t zn_packet_decoder_join(zn_packet_decoder *decoder, const zn_frame *frames, zn_decoded *d,
                              size_t at, size_t n, zn_packet **out);

#endif
