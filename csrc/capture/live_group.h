/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several interfaces as one stream of frames in the order of their times.
 *
 * The two directions of a link often arrive on two interfaces, and a handshake that is read out of
 * order proves nothing. The kernel hands over a frame up to ZN_LIVE_BLOCK_MS late. So a frame of
 * one interface waits until each other interface has delivered a later frame, or was found empty
 * late enough. A single interface does not wait; a change of the clock costs ZN_LIVE_HOLD_MS once.
 */
#ifndef ZN_CAPTURE_LIVE_GROUP_H
#define ZN_CAPTURE_LIVE_GROUP_H

#include "capture/live.h"
#include "util/pool.h"

#define ZN_LIVE_MAX 16   /* interfaces in a group */
#define ZN_LIVE_RINGS 64 /* rings of an interface */
#define ZN_LIVE_LAG_MS                                                                             \
    (2 * ZN_LIVE_BLOCK_MS)  /* a ring that is empty now has delivered all frames older than this */
#define ZN_LIVE_HOLD_MS 200 /* longest that a frame waits for other interfaces */

typedef struct zn_live_group zn_live_group;

/* Opens a group without interfaces. Returns 0, or -ZN_ERR_CAPACITY with *out NULL. */
int zn_live_group_open(zn_live_group **out, zn_error *err);
/* Closes all interfaces and frees the group. NULL is fine. */
void zn_live_group_close(zn_live_group *g);
/* Opens one more interface, before the first zn_live_group_next, with `rings` (1 .. ZN_LIVE_RINGS)
 * rings of config->ring_bytes each, over which the kernel spreads its frames. Returns 0, or a
 * negative zn_err: then the group can only be closed. */
int zn_live_group_add(zn_live_group *g, const zn_live_config *config, unsigned rings,
                      zn_error *err);
/* Keeps the part-th of `parts` equal parts of each interface's rings, and closes the other rings in
 * this process. It may be called once, before the first zn_live_group_next, in a process that was
 * forked after the rings were opened. */
void zn_live_group_keep(zn_live_group *g, unsigned part, unsigned parts);
/* Opens the i-th interface again, which is gone, with as many rings as before; its counts begin
 * anew. Returns 0, or a negative zn_err: then it stays gone, and the call can be made again. */
int zn_live_group_reopen(zn_live_group *g, size_t i, const zn_live_config *config, zn_error *err);

/*
 * Sets *frames to the next frames, at most ZN_LIVE_BATCH, borrowed until the next call. Waits up to
 * wait_ms for the first. Returns how many, 0 when none came, or a negative zn_err: -ZN_ERR_IO with
 * os_errno EINTR when a signal came; nothing is lost.
 */
int zn_live_group_next(zn_live_group *g, const zn_frame **frames, int wait_ms, zn_error *err);
/* Has the pool's threads read the rings from now on; NULL: the caller. */
void zn_live_group_share(zn_live_group *g, zn_pool *pool);

/* Lets no frame enter any ring any more. All that came before can be read ZN_LIVE_LAG_MS later. */
void zn_live_group_stop(zn_live_group *g);
/* Returns true when the i-th interface is gone and all frames that came before are read. */
bool zn_live_group_gone(const zn_live_group *g, size_t i);

/* Returns the number of frames that zn_live_group_next delivered since the last call and that are
 * longer than their interface's MTU allows. */
uint64_t zn_live_group_take_merged(zn_live_group *g);

/* Returns how many interfaces were added. */
size_t zn_live_group_size(const zn_live_group *g);
/* Return for the i-th interface that was added: its counts, its LINKTYPE_*, and the reason why it,
 * or a ring of it, ended (NULL if it did not end). */
zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i);
uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i);
const char *zn_live_group_warning(const zn_live_group *g, size_t i);

#endif
