/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: the payload with which packets leave, in place of zeros.
 *
 * When an analyzer has read a whole message, the bytes of the message are kept. In a TCP stream
 * they are kept by sequence number, so that segments which repeat, overlap or come in another
 * order show the same bytes. The bytes of a datagram are kept with its packet. The verdict on a
 * message is the decision at hold_ns after the first packet that carries a byte of it. When that
 * packet leaves, a builder of build/ makes the image out of the bytes, and the bytes are wiped. A
 * message has no image if a packet with a byte of it was due before the message was read. Its
 * bytes stay zeros.
 */
#ifndef ZN_REWRITE_PACKET_IMAGES_H
#define ZN_REWRITE_PACKET_IMAGES_H

#include "analyzer/message_sink.h"
#include "proto/quic_crypto.h"
#include "release/packet_gate.h"
#include "rewrite/delay_line.h"
#include "rewrite/kept_records.h"
#include "util/clock.h"

#define ZN_IMAGE_INLINE 8u
#define ZN_IMAGE_SMALL 2048u
#define ZN_IMAGE_LARGE ZN_STREAM_MAX

typedef enum zn_image_state {
    ZN_IMAGE_RAW,  /* bytes as they were sent */
    ZN_IMAGE_BUILT /* bytes that may leave */
} zn_image_state;

typedef struct zn_image {
    uint32_t next; /* next image of the side's stream, 0: none; the slab's link while free */
    uint32_t seq;
    uint32_t n;
    uint32_t bytes; /* index in the slab of its size; 0: inline */
    int64_t due_ns; /* time of the verdict: due time of the first packet with a byte of it */
    uint32_t entry; /* name entry of a certificate's name or a hello's fingerprint; 0: none */
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
    bool keep_encrypted; /* encrypted TLS records and QUIC packets with a short header are kept */
    bool exact;          /* a withheld name is masked; false: its message is not shown */
} zn_image_policy;

typedef struct zn_packet_images {
    bool wanted; /* false: all payload is zeros, and the other members are zero */
    zn_image_policy policy;
    zn_packet_gate *gate;
    zn_delay_line *delay_line;
    zn_names *names;
    const zn_clock *clock;
    /* Images of the next view, which gets the same messages; NULL: none. Only the images of the
     * main output vote for fingerprints. */
    struct zn_packet_images *next;
    zn_message_sink sink; /* sink of all, in the images of the main output */
    zn_slab images, small, large;
    uint32_t datagram;        /* image of the datagram that analyzers looked at last, 0: none */
    uint32_t datagram_flow;   /* flow of that datagram */
    uint8_t *scratch, *hello; /* ZN_IMAGE_LARGE bytes for a datagram, and for other messages */
    zn_kept_records *kept;    /* by flow; NULL without keep_encrypted */
    uint8_t *kept_bytes;      /* bytes of a segment; NULL without keep_encrypted */
    zn_tls_scratch *tls;
    zn_quic *quic;
} zn_packet_images;

/* Prepares the images of an output of packets, whose members up to clock are set. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_packet_images_init(zn_packet_images *images, zn_error *err);
/* Passes the messages that analyzers read to images and to the images of views. */
void zn_packet_images_listen(zn_packet_images *images);
void zn_packet_images_fini(zn_packet_images *images);
size_t zn_packet_images_memory(const zn_packet_images *images);

/* Notes a packet of the flow that has come, after analyzers looked at it. Returns the image of its
 * own payload, which leaves with it; 0: none. */
uint32_t zn_packet_images_come(zn_packet_images *images, uint32_t flow, const zn_packet *p);
/* Notes a packet of the flow that has come and is not queued. */
void zn_packet_images_pass(zn_packet_images *images, uint32_t flow, const zn_packet *p);
/* Keeps a message as it came, for a packet that leaves with it. zn_packet_images_left frees it.
 * Returns its image; 0: no room. */
uint32_t zn_packet_images_keep(zn_packet_images *images, zn_message_kind kind, zn_span bytes);
/* Returns the bytes of an image that zn_packet_images_keep made; empty for 0. */
zn_span zn_packet_images_raw(zn_packet_images *images, uint32_t image);
/* Notes that a packet leaves the delay line, built or not. Its entry p is still there. */
void zn_packet_images_left(zn_packet_images *images, const zn_delayed *p);

/* Range of a payload from the first shown byte to the end of the last; both 0: no byte is shown. */
typedef struct zn_written_part {
    uint32_t from, end;
} zn_written_part;

/* Writes the shown bytes of the payload of a packet whose fate is known, and zeros between them.
 * Returns the range of these bytes, and writes nothing outside. */
zn_written_part zn_packet_images_show(zn_packet_images *images, const zn_delayed *p,
                                      uint8_t *payload);

/* Frees the images of a flow. */
void zn_packet_images_forget(zn_packet_images *images, uint32_t flow);

#endif
