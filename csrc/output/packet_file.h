/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as a capture file: pcap with times in ns, or pcapng with a section, one interface and an
 * enhanced packet block a frame (draft-ietf-opsawg-pcap, -pcapng). Both are of the byte order of
 * this machine, and Ethernet. Nothing else is ever written: no comments, names, or statistics of an
 * interface.
 */
#ifndef ZN_OUTPUT_PACKET_FILE_H
#define ZN_OUTPUT_PACKET_FILE_H

#include "util/text.h"
#include "zanon/zanon.h"

/* A frame to append. */
typedef struct zn_packet_file_frame {
    int64_t t_ns;      /* ns since the Unix epoch, >= 0 */
    uint32_t captured; /* its bytes here */
    uint32_t wire;     /* its bytes on the wire, >= captured */
} zn_packet_file_frame;

/* Bytes of a record before its frame. */
#define ZN_PACKET_FILE_PCAP_HEAD 16u
#define ZN_PACKET_FILE_PCAPNG_HEAD 28u

static inline uint32_t zn_packet_file_head(bool pcapng)
{
    return pcapng ? ZN_PACKET_FILE_PCAPNG_HEAD : ZN_PACKET_FILE_PCAP_HEAD;
}

/* Returns the bytes of the record of a frame of which `captured` bytes are there. */
size_t zn_packet_file_bytes(bool pcapng, uint32_t captured);
/* Writes the record of a frame to `at`, where it has that much space, but for the frame's bytes.
 * Returns where these are to be written, all `captured` of them. */
uint8_t *zn_packet_file_put(bool pcapng, const zn_packet_file_frame *frame, uint8_t *at);

/* Reads the frame that zn_packet_file_put wrote for pcap at *at of `records`, the bytes behind the
 * header of a file, and moves *at behind it. Returns false at the end. Borrows. */
bool zn_packet_file_next(zn_span records, size_t *at, zn_frame *out);

#endif
