/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several interfaces as one stream of frames in the order of their times.
 *
 * The two directions of a link often arrive on two interfaces, and a handshake read out of order
 * proves nothing. The kernel hands over a frame up to ZN_LIVE_BLOCK_MS late, so frames of one
 * interface wait until the others have delivered, or were found empty, past their time. One
 * interface alone waits for nothing; a clock that was set costs ZN_LIVE_HOLD_MS once.
 */
#ifndef ZN_CAPTURE_LIVE_GROUP_H
#define ZN_CAPTURE_LIVE_GROUP_H

#include "capture/live.h"
#include "util/pool.h"

#define ZN_LIVE_MAX 16  /* interfaces in a group */
#define ZN_LIVE_RINGS 8 /* of each */
#define ZN_LIVE_LAG_MS                                                                             \
    (2 * ZN_LIVE_BLOCK_MS)  /* an empty ring shows that nothing older is to come */
#define ZN_LIVE_HOLD_MS 200 /* longest that any frame waits for another's */

typedef struct zn_live_group zn_live_group;

int zn_live_group_open(zn_live_group **out, zn_error *err);
void zn_live_group_close(zn_live_group *g);
/* Opens one more interface, before the first zn_live_group_next, with so many rings (1 ..
 * ZN_LIVE_RINGS), over which the kernel spreads its frames, each of config->ring_bytes. 0 or a
 * negative zn_err. */
int zn_live_group_add(zn_live_group *g, const zn_live_config *config, unsigned rings,
                      zn_error *err);

/*
 * The next frames, at most ZN_LIVE_BATCH, into *frames, which borrows until the next call; waits up
 * to wait_ms for the first. Returns their number, 0 when none came, or a negative zn_err:
 * -ZN_ERR_IO with os_errno EINTR when a signal came, and nothing is lost.
 */
int zn_live_group_next(zn_live_group *g, const zn_frame **frames, int wait_ms, zn_error *err);
/* Rings are read by the pool's threads from now on; NULL: by the caller. */
void zn_live_group_share(zn_live_group *g, zn_pool *pool);

/* No frame enters any ring any more. What is in them is whole ZN_LIVE_LAG_MS later. */
void zn_live_group_stop(zn_live_group *g);
/* Every interface is gone, and what they delivered is read. */
bool zn_live_group_ended(const zn_live_group *g);

size_t zn_live_group_size(const zn_live_group *g);
/* Of the i-th interface that was added: its counters, its LINKTYPE_*, and why it, or one of its
 * rings, ended, or NULL. */
zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i);
uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i);
const char *zn_live_group_warning(const zn_live_group *g, size_t i);

#endif
