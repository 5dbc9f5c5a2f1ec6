/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by engine.c, which owns it all, engine_run.c, engine_feed.c, engine_settle.c and
 * engine_live.c. */
#ifndef ZN_ENGINE_ENGINE_INTERNAL_H
#define ZN_ENGINE_ENGINE_INTERNAL_H

#include "analyzer/analyzers.h"
#include "crypto/keys.h"
#include "engine/async_writer.h"
#include "engine/decode_ahead.h"
#include "engine/engine.h"
#include "engine/packet_decoder.h"
#include "engine/profile_stage.h"
#include "release/gate.h"
#include "util/clock.h"

#define ZN_ENGINE_BATCH 1024
#define ZN_ENGINE_BATCH_VOTES (4 * ZN_ENGINE_BATCH) /* more than real traffic casts */

struct zn_engine {
    zn_stats stats;
    zn_roles roles;
    zn_policy policy;
    zn_net *internal;
    zn_clock clock;
    zn_keys *keys;
    zn_flow_table *flows;
    zn_name_store name_store;
    zn_dn_hunter dn_hunter;
    zn_popularity popularity;
    zn_votes votes;
    zn_gate gate;
    zn_names names;
    zn_outputs outputs;
    zn_record record;         /* of the flow that closed last */
    int64_t split_ns, period; /* length and number of the period; -1: none yet */
    uint32_t max_flows;
    uint32_t batched; /* frames of the batch so far */
    bool waiting, ended;
    zn_profile_stage_mark profile;
    zn_packet_decoder decoder;
    zn_pool *pool;                 /* NULL: one worker */
    zn_decode_ahead *decode_ahead; /* the same */
    zn_async_writer *writer;       /* the same */
    bool writes_async;
    const zn_frame *pending; /* read, and not taken yet */
    size_t pending_count;
    uint64_t pending_of; /* number of the capture that they lie in; 0: interfaces */
    int interrupted;     /* frames that a call took before its capture paused */
    zn_frame frames[ZN_ENGINE_BATCH];
};

/* Takes n frames. Groups and batches are counted in frames, whatever portions they come in: what is
 * put out does not depend on them. With `d` they were decoded before, and are those from `at` on.
 * 0, or a negative zn_err. */
int zn_engine_take_frames(zn_engine *e, const zn_frame *frames, zn_decoded *d, size_t at, size_t n,
                          zn_error *err);
/* Ends a batch: what its packets left to be done is done. `all`: also records for which the outputs
 * have no room. 0, or a negative zn_err. */
int zn_engine_flush_batch(zn_engine *e, bool all, zn_error *err);
/* engine_settle.c. Decides the votes cast so far and writes what may be written; `all`, and
 * returns, as zn_engine_flush_batch. */
int zn_engine_flush_votes(zn_engine *e, bool all, zn_error *err);
/* What zn_outputs_full says once all records are written. */
bool zn_engine_outputs_full(zn_engine *e);
/* From now on, and until zn_engine_write_all, records are written by others, where there are
 * any. */
void zn_engine_write_async(zn_engine *e);
/* All records are written when this returns. `rc` is how it went so far: 0 or more becomes a
 * negative zn_err where memory for them was out. */
int zn_engine_write_all(zn_engine *e, int rc, zn_error *err);
/* Takes pending frames, up to the end of the batch or a window; all votes of before are decided
 * then. 0, or a negative zn_err. */
int zn_engine_take_pending(zn_engine *e, zn_error *err);
/* Decides and writes what frames of a batch that is not full have left. 0, or a negative zn_err. */
int zn_engine_end_batch(zn_engine *e, zn_error *err);

#endif
