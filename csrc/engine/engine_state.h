/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Struct of an engine, for the files of this folder. engine.c opens it. engine_run.c and
 * engine_live.c take frames from a source. packet_loop.c takes the frames through the flows.
 * rebase.c follows a clock that is set anew. decide_remote.c and decide_local.c decide the votes.
 * flush.c ends a batch, and records.c writes the records. Each file calls only files that are named
 * after it; the decider is called through its interface.
 */
#ifndef ZN_ENGINE_ENGINE_STATE_H
#define ZN_ENGINE_ENGINE_STATE_H

#include "analyzer/analyzers.h"
#include "crypto/keys.h"
#include "engine/async_writer.h"
#include "engine/decide_remote.h"
#include "engine/decider.h"
#include "engine/decode_ahead.h"
#include "engine/engine.h"
#include "engine/minute_queue.h"
#include "engine/packet_decoder.h"
#include "engine/profile_stage.h"
#include "release/gate.h"
#include "rewrite/rewriter.h"
#include "util/clock.h"

#define ZN_ENGINE_BATCH 1024
/* most votes of a batch; more than real traffic casts */
#define ZN_ENGINE_BATCH_VOTES (4 * ZN_ENGINE_BATCH)
/* most ends of flows that a batch opens */
#define ZN_ENGINE_BATCH_ENDS (2 * ZN_ENGINE_BATCH)

/* Addresses whose pseudonyms are made together, all with the key of one epoch. */
typedef struct zn_pseudonym_batch {
    int64_t epoch;
    size_t n;
    zn_addr real[ZN_ENGINE_BATCH_ENDS], pseudonym[ZN_ENGINE_BATCH_ENDS];
    uint32_t flow[ZN_ENGINE_BATCH_ENDS];
    uint8_t end[ZN_ENGINE_BATCH_ENDS];
} zn_pseudonym_batch;

/* Key of the order in which the records of a minute leave. */
typedef struct zn_order_key {
    zn_hash_key key;
    int64_t epoch;
    bool known;
} zn_order_key;

/* Queues of records and observations that wait for the end of their minute. */
typedef struct zn_order_queues {
    zn_order order;
    zn_order_key key;
    zn_minute_queue records, releases;
} zn_order_queues;

/* Ends of the minute and of the period, in packet time. */
typedef struct zn_boundaries {
    int64_t split_ns;                    /* length of a period; 0: no periods */
    int64_t period;                      /* number of the current period; -1: none yet */
    int64_t calm_from_ns, calm_until_ns; /* between them neither a minute nor a period ends */
} zn_boundaries;

/* Frames that were read and not taken yet. */
typedef struct zn_pending_frames {
    const zn_frame *frames;
    size_t count;
    uint64_t capture; /* zn_capture_number of their capture; 0: interfaces */
    int interrupted;  /* frames that the last call took before its capture paused */
    zn_frame buffer[ZN_ENGINE_BATCH];
} zn_pending_frames;

struct zn_engine {
    zn_stats stats;
    zn_roles roles;
    zn_policy policy;
    zn_net *internal;
    zn_clock clock;
    zn_addr_plan plan;
    zn_text key_scope; /* text of the settings that keys depend on */
    zn_keys *keys;
    zn_pseudonym_batch unmapped;
    zn_flow_table *flows;
    zn_name_store name_store;
    zn_dn_hunter dn_hunter;
    zn_popularity popularity;
    zn_votes votes;
    zn_gate gate;
    const zn_decider *decider;
    zn_remote remote; /* state of zn_decide_remote */
    zn_names names;
    zn_outputs outputs;
    zn_record record; /* record of the flow that closed last, if no thread writes records */
    zn_boundaries boundaries;
    zn_order_queues queues;
    zn_rewriter *rewriter; /* packet output; NULL if no packets are wanted */
    uint32_t taken;        /* flow of the last packet; 0: no flow */
    uint32_t max_flows;
    uint32_t batched; /* frames in the batch so far */
    bool waiting, ended;
    zn_profile_stage_mark profile;
    zn_packet_decoder decoder;
    zn_pool *pool;                 /* NULL with one worker */
    zn_decode_ahead *decode_ahead; /* NULL with one worker */
    zn_async_writer *writer;       /* NULL with one worker */
    bool writes_async;
    zn_pending_frames pending;
};

/* Opens the keys of the engine, whose roles are set. Returns 0 or a negative zn_err with *err
 * filled. */
int zn_engine_open_keys(zn_engine *e, const zn_engine_config *config, zn_error *err);

/* Queues ends of a flow that has just opened, to be mapped to their pseudonyms. `ends`: a bit for
 * each queued end. `real`: the addresses of both ends. Sets the epoch of the flow. Returns 0 or a
 * negative zn_err with *err filled. */
int zn_engine_map_later(zn_engine *e, uint32_t flow, unsigned ends, const zn_addr real[2],
                        zn_error *err);
/* Maps the queued addresses and sets the pseudonyms in their flows, before a record of the flows is
 * written. Returns 0 or a negative zn_err with *err filled. */
int zn_engine_make_pseudonyms(zn_engine *e, zn_error *err);

/* Sets *rank, the place of a record or observation of flow f at t_ns in the queue of its minute.
 * The rank is a PRF of both ends and the time. Returns 0 or a negative zn_err with *err filled. */
int zn_engine_rank(zn_engine *e, int64_t minute, const zn_flow *f, int64_t t_ns, uint64_t *rank,
                   zn_error *err);

#endif
