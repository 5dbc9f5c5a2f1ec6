/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: the payload that packets leave with where it is not zeros.
 *
 * When an analyzer has read a message whole, its bytes are kept: of a TCP stream by their sequence
 * numbers, so that segments which repeat, overlap or come in another order show the same; of a
 * datagram with its packet. The verdict on a message is what was decided hold_ns after the first
 * packet that carries a byte of it. When the first such packet leaves, a builder of proto/ makes
 * the image out of the bytes, and then wipes them. A message that was read after a packet with a
 * byte of it was due has no image: its bytes stay zeros for good.
 */
#ifndef ZN_REWRITE_PACKET_IMAGES_H
#define ZN_REWRITE_PACKET_IMAGES_H

#include "analyzer/message_sink.h"
#include "rewrite/kept_records.h"
#include "proto/quic_crypto.h"
#include "release/packet_gate.h"
#include "rewrite/packet_hold.h"
#include "util/clock.h"

#define ZN_IMAGE_INLINE 8u
#define ZN_IMAGE_SMALL 2048u
#define ZN_IMAGE_LARGE ZN_STREAM_MAX

typedef enum zn_image_state {
    ZN_IMAGE_RAW,  /* the bytes as they were sent */
    ZN_IMAGE_BUILT /* what may leave */
} zn_image_state;

typedef struct zn_image {
    uint32_t next; /* of the side's stream, 0: none; the slab's link while free */
    uint32_t seq;
    uint32_t n;
    uint32_t bytes; /* in the slab of its size; 0: inline */
    int64_t due_ns; /* of the first packet with a byte of it: the time of the verdict */
    uint32_t entry; /* of a certificate's name, or a hello's fingerprint; 0: none */
    uint8_t kind;   /* zn_message_kind */
    uint8_t state;  /* zn_image_state */
    uint8_t side;
    uint8_t earlier; /* ZN_MESSAGE_DTLS_HELLO: see zn_message */
    uint8_t key_id_bytes;
    uint8_t key_id[ZN_QUIC_ID_MAX];
    uint8_t inline_bytes[ZN_IMAGE_INLINE];
} zn_image;

/* The operator's choice. */
typedef struct zn_image_policy {
    zn_fingerprints fingerprints;
    bool keep_encrypted; /* encrypted records of TLS, and QUIC packets with a short header, stay */
    bool exact;          /* a withheld name is masked; false: its message is not shown */
} zn_image_policy;

typedef struct zn_packet_images {
    bool wanted; /* false: all payload is zeros, and the other members are zero */
    zn_image_policy policy;
    zn_packet_gate *gate;
    zn_packet_hold *hold;
    zn_names *names;
    const zn_clock *clock;
    /* Those of a view, which gets the same messages; NULL: none. Only the first of all asks who
     * shares a fingerprint. */
    struct zn_packet_images *next;
    zn_message_sink sink; /* of the first */
    zn_slab images, small, large;
    uint32_t datagram;        /* image of the datagram that is looked at, 0: none */
    uint32_t datagram_flow;   /* its flow */
    uint8_t *scratch, *hello; /* ZN_IMAGE_LARGE bytes for a datagram, and for other messages */
    zn_kept_records *kept;    /* by flow, and bytes of a segment; NULL without keep_encrypted */
    uint8_t *kept_bytes;
    zn_tls_scratch *tls;
    zn_quic *quic;
} zn_packet_images;

/* Prepares the images of an engine's output of packets, of which the members up to clock are set.
 * Returns 0, or a negative zn_err with *err filled. */
int zn_packet_images_init(zn_packet_images *images, zn_error *err);
/* Has images, and those of their views, get the messages that analyzers read. */
void zn_packet_images_listen(zn_packet_images *images);
void zn_packet_images_fini(zn_packet_images *images);
size_t zn_packet_images_memory(const zn_packet_images *images);

/* Takes note of a packet of the flow that has come, and was looked into. Returns the image of its
 * datagram, which leaves with it; 0: none. */
uint32_t zn_packet_images_come(zn_packet_images *images, uint32_t flow, const zn_packet *p);
/* Does the same for a packet that does not wait, or shows nothing. */
void zn_packet_images_pass(zn_packet_images *images, uint32_t flow, const zn_packet *p);
/* Keeps a message as it came, for a packet that leaves with it: freed by zn_packet_images_left.
 * Returns its image, 0: no room. */
uint32_t zn_packet_images_keep(zn_packet_images *images, zn_message_kind kind, zn_span bytes);
/* The bytes of such an image; empty for 0. */
zn_span zn_packet_images_raw(zn_packet_images *images, uint32_t image);
/* Takes note of a packet that leaves, built or not, with `held` still there. */
void zn_packet_images_left(zn_packet_images *images, const zn_held_packet *held);

/* The bytes of a payload from the first one that is shown to the last; `end` is behind that. None:
 * both are 0. */
typedef struct zn_written_part {
    uint32_t from, end;
} zn_written_part;

/* Writes what is shown of the payload of a packet whose fate has been found, and zeros between what
 * is shown. Returns where that is, and writes nothing outside. */
zn_written_part zn_packet_images_show(zn_packet_images *images, const zn_held_packet *held,
                                      uint8_t *payload);

/* Forgets the images of a flow. */
void zn_packet_images_forget(zn_packet_images *images, uint32_t flow);

#endif
