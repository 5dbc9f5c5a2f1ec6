/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as zanon-net's own binding uses it: zanon/zanon.h, and beyond it sources that are
 * read, outputs with their marks, windows and counters.
 *
 * With config.workers an engine has threads of its own, made by the first call that has work for
 * them; between two calls they touch nothing, and what a source gave them ahead of its turn is
 * taken by the next zn_engine_run with the same source. zn_engine_feed takes its frames without
 * them. What is put out is the same for any number. After ZN_ERR_IO from zn_engine_run the engine
 * is as it was.
 */
#ifndef ZN_ENGINE_ENGINE_H
#define ZN_ENGINE_ENGINE_H

#include "anonymity/popularity.h"
#include "engine/outputs.h"
#include "engine/profile_stage.h"
#include "engine/source.h"
#include "util/addr.h"
#include "util/pool.h"
#include "util/stats.h"
#include "util/text.h"
#include "zanon/zanon.h"

/* Takes up to max_frames from a source, first those that a call before had read and left, of which
 * it takes all; of a stream, what is there. What is decided together does not depend on how many
 * each call takes: of a file a batch ends when it is full, and with the file. Returns how many
 * frames it was busy with; 0 at the source's end, or a negative zn_err. It returns early where the
 * outputs are full, and with config.popularity where a window has ended (zn_engine_window); what
 * was read already is taken by the next call, which with 0 max_frames takes only that; a call with
 * another source forgets it. */
int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err);

/* Where it is at work now, of what zn_engine_run reads; another thread may ask. */
zn_profile_stage zn_engine_profile_stage(const zn_engine *e);

/* What was put out, to be taken and cleared by the caller. */
zn_outputs *zn_engine_outputs(zn_engine *e);

/*
 * The window that has ended: true when there is one, until zn_engine_run is called again; after
 * zn_engine_finish, the one that the end of input cut. Its counts are of distinct users a name, in
 * no order: as many as window->bins add up to, of which up to `cap` are written; returns how many.
 */
bool zn_engine_window(const zn_engine *e, zn_popularity_window *window);
size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap);

const zn_stats *zn_engine_stats(const zn_engine *e);
/* Bytes of memory that the flow table takes, for *live flows; and what it takes when it is full. */
size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live);
size_t zn_engine_flow_memory_max(const zn_engine *e);
/* Checks every table's invariants; NULL, or what is broken. Slow: for tests. */
const char *zn_engine_check(const zn_engine *e);

#endif
