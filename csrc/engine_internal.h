/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What engine.c, which owns it all, and engine_feed.c, which runs packets through it, share. */
#ifndef ZN_ENGINE_INTERNAL_H
#define ZN_ENGINE_INTERNAL_H

#include "anon/names.h"
#include "base/clock.h"
#include "base/stage.h"
#include "crypto/keys.h"
#include "engine.h"
#include "intake.h"

#define ZN_ENGINE_BATCH 1024
#define ZN_ENGINE_BATCH_VOTES (4 * ZN_ENGINE_BATCH) /* more than real traffic casts */

struct zn_engine {
    zn_stats stats;
    zn_policy policy;
    zn_net *internal;
    zn_clock clock;
    zn_keys *keys;
    zn_flow_table *flows;
    zn_name_book book;
    zn_resolved resolved;
    zn_popularity popularity;
    zn_gate gate;
    zn_names names;
    zn_outputs outputs;
    zn_record record;         /* of the flow that closed last */
    int64_t split_ns, period; /* length and number of the period; -1: none yet */
    uint32_t max_flows;
    uint32_t batched; /* frames of the batch so far */
    bool waiting, ended;
    zn_stage_mark stage;
    zn_intake intake;
    const zn_frame *pending; /* read, and not taken yet */
    size_t pending_count;
    zn_frame frames[ZN_ENGINE_BATCH];
};

/* Takes pending frames, up to the end of a window; all votes of before are decided then. 0, or a
 * negative zn_err. */
int zn_engine_take_pending(zn_engine *e, zn_error *err);
/* Decides and writes what frames of a batch that is not full have left. 0, or a negative zn_err. */
int zn_engine_end_batch(zn_engine *e, zn_error *err);

#endif
