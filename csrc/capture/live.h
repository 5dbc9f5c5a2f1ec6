/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One network interface, read through libpcap.
 *
 * On Linux that is a TPACKET_V3 ring in block mode: the kernel hands over a block of frames when it
 * is full or ZN_LIVE_BLOCK_MS old, which is the delay a frame can have here. Immediate mode would
 * spend a slot of the snapshot length on each frame and wake up for each. Frames are copied out of
 * the ring, because libpcap returns a block to the kernel with its last frame. VLAN tags that the
 * card or the kernel stripped are back in the frames, and the filter is compiled for the opened
 * interface, so that `vlan` finds them.
 *
 * An interface that goes down and comes up again goes on being read; one that is removed ends. An
 * interface may be opened several times, for several threads to read: the kernel then spreads its
 * frames over the handles (PACKET_FANOUT), a flow's both directions to the same one, fragments to
 * that of their addresses. A handle belongs to one thread at a time.
 */
#ifndef ZN_CAPTURE_LIVE_H
#define ZN_CAPTURE_LIVE_H

#include "zanon/zanon.h"

#define ZN_LIVE_BLOCK_MS 10 /* age at which the kernel hands over a block that is not full */
#define ZN_LIVE_WHOLE_MS (3 * ZN_LIVE_BLOCK_MS) /* until what came is there: two turns of a timer */
#define ZN_LIVE_BATCH 256 /* most frames a call delivers: what they hold stays in the cache */

typedef struct zn_live zn_live;

typedef struct zn_live_config {
    const char *interface;   /* "any": all of them */
    const char *filter;      /* pcap-filter(7); empty: every frame */
    uint32_t snaplen;        /* bytes stored of a frame, 1 .. ZN_FRAME_MAX */
    uint32_t ring_bytes;     /* memory of the ring, at most INT32_MAX */
    bool promiscuous;        /* also frames for other hosts */
    bool fanout;             /* shares the interface's frames with other handles */
    struct zn_live *sibling; /* one of those that is open already, or NULL */
} zn_live_config;

typedef struct zn_live_counts {
    uint64_t frames;   /* delivered by zn_live_next */
    uint64_t bytes;    /* captured, of those */
    uint64_t received; /* by the system, past the filter; `dropped` included */
    uint64_t dropped;  /* by the system: the ring was full */
} zn_live_counts;

/*
 * Opens an interface, which must be up. Returns 0, or a negative zn_err with *out NULL: ZN_ERR_IO
 * (os_errno EPERM where a privilege is missing), ZN_ERR_CONFIG for a wrong filter, ZN_ERR_CAPACITY.
 */
int zn_live_open(zn_live **out, const zn_live_config *config, zn_error *err);
/* Handles that share an interface take no frames before this, when all of them are open; what came
 * before they shared it is forgotten. 0, or a negative zn_err. */
int zn_live_begin(zn_live *l, const zn_live_config *config, zn_error *err);
void zn_live_close(zn_live *l);

/*
 * The frames that are there, at most ZN_LIVE_BATCH, into *frames, which borrows until the next
 * call. Never waits. Returns their number, 0 when there are none, or a negative zn_err: the
 * interface is gone. Later calls may deliver what it had brought, for ZN_LIVE_WHOLE_MS.
 */
int zn_live_next(zn_live *l, const zn_frame **frames, zn_error *err);
/* Becomes readable when there are frames; -1 where the system offers no such descriptor. */
int zn_live_descriptor(const zn_live *l);
/* LINKTYPE_* of its frames. */
uint32_t zn_live_link_type(const zn_live *l);

/* No frame enters the ring any more; those in it can still be read. */
void zn_live_stop(zn_live *l);

/* To be called at least once in 2^32 frames: the system's counters are no wider. */
zn_live_counts zn_live_get_counts(zn_live *l);

#endif
