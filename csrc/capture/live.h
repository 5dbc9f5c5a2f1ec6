/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network interface, read through libpcap.
 *
 * On Linux this is a TPACKET_V3 ring in block mode: the kernel hands over a block of frames when it
 * is full or ZN_LIVE_BLOCK_MS old, so a frame is delayed by at most that. Immediate mode would
 * spend a slot of the snapshot length on each frame, and wake up for each. Frames are copied out of
 * the ring, because libpcap returns a block to the kernel with its last frame. VLAN tags that the
 * card or the kernel removed are back in the frames, and the filter is compiled for the opened
 * interface, so that `vlan` finds them.
 *
 * An interface that goes down and comes up again is read further; an interface that is removed
 * ends. An interface may be opened several times, for several threads. The kernel then spreads its
 * frames over the handles (PACKET_FANOUT): both directions of a flow go to the same handle, and
 * fragments to the handle that their addresses select. A handle belongs to one thread at a time.
 */
#ifndef ZN_CAPTURE_LIVE_H
#define ZN_CAPTURE_LIVE_H

#include "zanon/zanon.h"

#define ZN_LIVE_BLOCK_MS 10 /* age at which the kernel hands over a block that is not full */
/* ms until the kernel has handed over every frame: two turns of its timer, and some */
#define ZN_LIVE_WHOLE_MS (3 * ZN_LIVE_BLOCK_MS)
/* largest number of frames that a call delivers; they stay in the cache */
#define ZN_LIVE_BATCH 256

typedef struct zn_live zn_live;

typedef struct zn_live_config {
    const char *interface;   /* "any": all of them */
    const char *filter;      /* pcap-filter(7); empty: every frame */
    uint32_t snaplen;        /* bytes kept of a frame, 1 .. ZN_FRAME_MAX */
    uint32_t ring_bytes;     /* memory of the ring, at most INT32_MAX */
    bool promiscuous;        /* also frames for other hosts */
    bool fanout;             /* shares the interface's frames with other handles */
    struct zn_live *sibling; /* one of those handles that is open already, or NULL */
} zn_live_config;

typedef struct zn_live_counts {
    uint64_t frames;   /* delivered by zn_live_next */
    uint64_t bytes;    /* captured bytes of those */
    uint64_t received; /* frames that passed the filter in the system; `dropped` included */
    uint64_t dropped;  /* frames that the system dropped, as the ring was full */
} zn_live_counts;

/*
 * Opens an interface, which must be up. Returns 0, or with *out NULL a negative zn_err: ZN_ERR_IO
 * (os_errno EPERM where a privilege is missing), ZN_ERR_CONFIG for a wrong filter or number,
 * ZN_ERR_CAPACITY.
 */
int zn_live_open(zn_live **out, const zn_live_config *config, zn_error *err);
/* Begins to read handles that share an interface, which get no frames before this; call it for each
 * when all of them are open. Frames from before they shared it are dropped. Returns 0, or a
 * negative zn_err. */
int zn_live_begin(zn_live *l, const zn_live_config *config, zn_error *err);
/* Closes the handle. NULL is fine. */
void zn_live_close(zn_live *l);

/*
 * Sets *frames to the available frames, at most ZN_LIVE_BATCH, borrowed until the next call. Never
 * waits. Returns the number of frames (0 if no frame is available), or a negative zn_err if the
 * interface is gone. Later calls may still deliver frames that came before, for ZN_LIVE_WHOLE_MS.
 */
int zn_live_next(zn_live *l, const zn_frame **frames, zn_error *err);
/* Returns a descriptor that is readable if frames are available; -1 if the system has no such
 * descriptor. */
int zn_live_descriptor(const zn_live *l);
/* Returns the LINKTYPE_* of its frames. */
uint32_t zn_live_link_type(const zn_live *l);

/* Returns the length of the longest frame that the interface's MTU allows, its link header
 * included; UINT32_MAX if that is not known. A longer frame was merged from several by a receive
 * offload. */
uint32_t zn_live_longest(const zn_live *l);

/* Lets no frame enter the ring any more. Those in it can still be read. */
void zn_live_stop(zn_live *l);

/* Returns the counts. Call it at least once in 2^32 frames, as the system's counters are no
 * wider. */
zn_live_counts zn_live_get_counts(zn_live *l);

#endif
