/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of zn_decide_remote, the decider of a probe. Votes, records, minutes and periods become
 * steps of a queue (release/remote_counter.h). A step is done when the remote counter has answered
 * its query.
 *
 * Flows whose records wait stay in the flow table. zn_engine_must_wait returns true if the
 * program should bring answers, or stop waiting for them, before it feeds more packets.
 */
#ifndef ZN_ENGINE_DECIDE_REMOTE_H
#define ZN_ENGINE_DECIDE_REMOTE_H

#include "crypto/count_generations.h"
#include "engine/remote_clock.h"
#include "release/remote_counter.h"
#include "zanon/zanon.h"

#define ZN_PROBE_NAME_MAX 256     /* bytes */
#define ZN_REMOTE_VOTES_MAX 1024u /* votes that may wait until a jump of the clock is confirmed */

/* State of zn_decide_remote. All zero if the engine is no probe. */
typedef struct zn_remote {
    zn_remote_counter counter;
    zn_count_generations *generations;
    zn_remote_clock clock;
    int64_t wait_ns;      /* packet time for which a step waits for its answer */
    int64_t minute_ended; /* minutes before it have a step in the queue */
    char probe_name[ZN_PROBE_NAME_MAX + 1];
} zn_remote;

/* Sets the decider of an engine whose keys, votes and gate are open: zn_decide_remote if the config
 * names a probe, otherwise zn_decide_local. Returns 0, or a negative zn_err with *err filled. */
int zn_engine_open_decider(zn_engine *e, const zn_engine_config *config, zn_error *err);
void zn_engine_close_decider(zn_engine *e);

#endif
