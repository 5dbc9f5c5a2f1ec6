/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine for zanon-net's own binding. In addition to zanon/zanon.h it reads sources and returns
 * marks in outputs, windows and counters.
 *
 * With config.workers an engine has threads, made by the first call that has work for them. Between
 * two calls the threads touch nothing. The next zn_engine_run with the same source takes the frames
 * that they read ahead. zn_engine_feed does not use them. The output does not depend on the number
 * of workers. After ZN_ERR_IO from zn_engine_run the engine may continue.
 */
#ifndef ZN_ENGINE_ENGINE_H
#define ZN_ENGINE_ENGINE_H

#include "analyzer/attributes.h"
#include "anonymity/popularity.h"
#include "engine/profile_stage.h"
#include "engine/source.h"
#include "output/outputs.h"
#include "release/gate_levels.h"
#include "util/addr.h"
#include "util/pool.h"
#include "util/stats.h"
#include "util/text.h"
#include "zanon/zanon.h"

/* Takes up to max_frames from a source: first all frames that an earlier call has read and left; of
 * a stream, the available frames. Frames are decided in batches that do not depend on the number of
 * frames per call: a batch of a file ends when it is full, and at the end of the file.
 *
 * Returns the number of frames taken or read, 0 at the source's end, or a negative zn_err. Returns
 * early when the outputs are full and, with config.popularity, when a window has ended
 * (zn_engine_window). Frames that were read by then are taken by the next call, which with a
 * max_frames of 0 takes only those; a call with another source drops them. */
int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err);
/* Returns true if zn_engine_run has taken every frame of the source and ended the last batch, so
 * that another call with the source would return 0. */
bool zn_engine_is_over(const zn_engine *e, const zn_source *source);

/* Returns the current stage of zn_engine_run. Another thread may call this. */
zn_profile_stage zn_engine_profile_stage(const zn_engine *e);

/* Returns the outputs, which the caller takes and clears. */
zn_outputs *zn_engine_outputs(zn_engine *e);

/* Runs a job of one task on a thread of the engine, next to the caller. One job runs at a time, and
 * zn_engine_close waits for its end. Needs several workers. Returns 0, or a negative zn_err with
 * *err filled. */
int zn_engine_start_aside(zn_engine *e, zn_job *job, zn_error *err);

/*
 * zn_engine_window returns true if a window has ended, and sets *window, until the next
 * zn_engine_run. After zn_engine_finish, *window is the window that the end of input cut.
 * zn_engine_window_counts writes the numbers of distinct users of its names, in no order, at most
 * `cap` numbers. It returns the number written. The bins of the window add up to the number of
 * names. zn_engine_window_levels sums the window by level; it returns false without levels, or if
 * exposures are missing.
 */
bool zn_engine_window(const zn_engine *e, zn_popularity_window *window);
size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap);
bool zn_engine_window_levels(zn_engine *e, zn_level_shares *out);

/* Appends the blocks in which addresses of packets lie, as zn_packet_keys_blocks does. Appends
 * nothing if no packets are wanted. */
void zn_engine_packet_blocks(const zn_engine *e, zn_text *out);
/* Returns the most bytes that the delay lines have taken. */
size_t zn_engine_hold_bytes_max(const zn_engine *e);

/*
 * Replaces the suffixes whose names are never released, for names that are read from now on and for
 * names from DNS in records. Suffixes are normalised, such as "example.com", and copied. Returns 0,
 * or a negative zn_err: the list is then unchanged, and the engine may continue.
 */
int zn_engine_set_never(zn_engine *e, const zn_span *never, size_t count, zn_error *err);

/* Counts of the levels of generalization. */
typedef struct zn_level_report {
    uint32_t count; /* levels above level 0 */
    zn_level_stats level[ZN_LABEL_LEVELS_MAX + 1];
    uint64_t paused;             /* exposures suppressed while labels were off */
    uint64_t lacked_capacity;    /* exposures suppressed because a vote table was full */
    uint32_t smallest, median;   /* users behind the published labels; 0: no label */
    uint64_t ignored_categories; /* suffixes with a category that are below their own domain */
} zn_level_report;

/* Sets the counts of the levels. Returns false in an engine without levels. */
bool zn_engine_levels(const zn_engine *e, zn_level_report *out);

/* Sets the counts of an attribute (zn_attribute). Returns false if it is not wanted. */
bool zn_engine_attributes(const zn_engine *e, unsigned attribute, zn_attribute_counts *out);
/* Sets the counts of an attribute in the window that ended, as zn_engine_window does. Returns false
 * if no window has ended or the attribute is not wanted. */
bool zn_engine_attribute_window(const zn_engine *e, unsigned attribute,
                                zn_popularity_window *window);

/* Returns the counters of the run so far. */
const zn_stats *zn_engine_stats(const zn_engine *e);
/* Returns the counters of packets that leave in config.views[view]; all other counters are zero. */
const zn_stats *zn_engine_view_stats(const zn_engine *e, unsigned view);
/* Return the bytes of memory of the flow table, for *live flows, and of a full flow table. */
size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live);
size_t zn_engine_flow_memory_max(const zn_engine *e);
/* Returns the bytes of memory that the z-table takes now. */
size_t zn_engine_table_memory(const zn_engine *e);
/* Checks the invariants of every table. Returns NULL, or a text about the broken invariant. Slow,
 * for tests. */
const char *zn_engine_check(const zn_engine *e);

/*
 * Functions of an engine whose config names a probe. The remote counter of all probes decides its
 * votes. The program takes messages to the counter, each after its length in four bytes, and brings
 * answers. zn_engine_flush then does the answered steps. zn_engine_finish returns 0 also while
 * answers are missing.
 */
/* Returns the session of the probe, and sets *settings to their digest, as messages have them. */
uint64_t zn_engine_count_probe(const zn_engine *e, uint64_t *settings);
/* Sets the counter's number of shards, before the first frame. Without this call every answer is
 * no. Returns 0, or a negative zn_err. */
int zn_engine_count_begin(zn_engine *e, unsigned shards, zn_error *err);
/* Makes messages before they are due, so that the counter can decide all queries and knows that the
 * probe is there. Returns 0, or a negative zn_err. */
int zn_engine_count_cut(zn_engine *e, zn_error *err);
/* Sets the ns of packet time for which steps wait for answers, instead of config.count_hold_ns. */
void zn_engine_count_hold(zn_engine *e, int64_t hold_ns);
/* Returns the messages that are ready, valid until zn_engine_count_sent. */
zn_span zn_engine_count_messages(const zn_engine *e);
void zn_engine_count_sent(zn_engine *e);
/* Takes an answer message. Returns 0, or -ZN_ERR_FORMAT. */
int zn_engine_count_answer(zn_engine *e, zn_span message, zn_error *err);
/* Returns true if the program should bring answers before it feeds more: answers are missing for
 * longer than config.count_hold_ns of packet time, or too many steps wait. */
bool zn_engine_must_wait(const zn_engine *e);
/* Returns the number of steps, such as votes and records, in the queue. */
uint64_t zn_engine_count_waiting(const zn_engine *e);
/* With `muted`, votes are abandoned before they are sent, because the counter is away for long.
 * Clients are still reported. */
void zn_engine_count_mute(zn_engine *e, bool muted);
/* Abandons all steps that wait and all messages without an answer, and begins a new session, which
 * zn_engine_count_probe then returns. After the last messages no session begins. Returns 0, or a
 * negative zn_err. */
int zn_engine_count_abandon(zn_engine *e, zn_error *err);
/* Suppresses the queries that are unanswered for more than config.count_hold_ns of packet time.
 * With `all`, or if too many steps still wait, suppresses all queries. Returns 1 if the program has
 * to take the outputs, 0, or a negative zn_err. */
int zn_engine_suppress_waiting(zn_engine *e, bool all, zn_error *err);

#define ZN_PSEUDONYM_ID_BYTES 8

/* Returns the settings on which keys depend, other than z, window and the length of an epoch, as a
 * line of text in the engine's memory (engine/engine_keys.c). */
zn_span zn_engine_key_scope(const zn_engine *e);
/* Returns the number of internal networks that are too long for pseudonyms to keep. */
uint32_t zn_engine_networks_left_out(const zn_engine *e);
/* Fills id with bytes that two engines share if their pseudonyms are equal. Returns false without a
 * key file. */
bool zn_engine_pseudonym_id(zn_engine *e, uint8_t id[ZN_PSEUDONYM_ID_BYTES]);

#endif
