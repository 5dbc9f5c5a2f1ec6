/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine for zanon-net's own binding: beyond zanon/zanon.h it reads sources, and gives out
 * marks in outputs, windows and counters.
 *
 * With config.workers an engine has threads of its own, made by the first call that has work for
 * them. Between two calls they touch nothing; frames that they read ahead are taken by the next
 * zn_engine_run with the same source. zn_engine_feed does not use them. The output is the same for
 * any number of workers. After ZN_ERR_IO from zn_engine_run the engine may go on.
 */
#ifndef ZN_ENGINE_ENGINE_H
#define ZN_ENGINE_ENGINE_H

#include "anonymity/popularity.h"
#include "engine/profile_stage.h"
#include "engine/source.h"
#include "output/outputs.h"
#include "util/addr.h"
#include "util/pool.h"
#include "util/stats.h"
#include "util/text.h"
#include "zanon/zanon.h"

/* Takes up to max_frames from a source: first those that a call before had read and left, all of
 * them; of a stream, the frames that are there. Frames are decided in batches that do not depend on
 * how many each call takes: a batch of a file ends when it is full, and at the end of the file.
 * 
 * Returns how many frames it was busy with, 0 at the source's end, or a negative zn_err. Returns
 * early when the outputs are full and, with config.popularity, when a window has ended
 * (zn_engine_window). Frames that were read by then are taken by the next call, which with a
 * max_frames of 0 takes only those; a call with another source drops them. */
int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err);

/* Returns the stage that zn_engine_run is at. Another thread may call this. */
zn_profile_stage zn_engine_profile_stage(const zn_engine *e);

/* Returns the outputs, which the caller takes and clears. */
zn_outputs *zn_engine_outputs(zn_engine *e);

/* Has one of the engine's own threads run a job of one task while the caller goes on; one such job
 * at a time, until whose end zn_engine_close waits. Needs several workers.
 * Returns 0, or a negative zn_err with *err filled. */
int zn_engine_start_aside(zn_engine *e, zn_job *job, zn_error *err);

/*
 * zn_engine_window returns true when a window has ended, and sets *window, until zn_engine_run is
 * called again; after zn_engine_finish, the window that the end of input cut.
 * zn_engine_window_counts writes its numbers of distinct users, one for each name in no order, at
 * most `cap` of them, and returns how many it wrote; there are as many as window->bins add up to.
 */
bool zn_engine_window(const zn_engine *e, zn_popularity_window *window);
size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap);

/* Appends the blocks that addresses of packets lie in to *out, as zn_packet_keys_blocks does;
 * nothing where no packets are wanted. */
void zn_engine_packet_blocks(const zn_engine *e, zn_text *out);
/* Returns the most bytes that packets took while they waited. */
size_t zn_engine_hold_bytes_max(const zn_engine *e);

/*
 * Replaces the suffixes whose names are never released, for names that are read from now on, and
 * for names out of DNS that records would show. Suffixes are normalised, such as "example.com", and
 * copied. Returns 0, or a negative zn_err: the list is then as before, and the engine may go on.
 */
int zn_engine_set_never(zn_engine *e, const zn_span *never, size_t count, zn_error *err);

/* Returns the counters of the run so far. */
const zn_stats *zn_engine_stats(const zn_engine *e);
/* Returns those of what leaves in config.views[view]; all other counters are zero. */
const zn_stats *zn_engine_view_stats(const zn_engine *e, unsigned view);
/* Returns the bytes of memory of the flow table, for *live flows; and those of a full table. */
size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live);
size_t zn_engine_flow_memory_max(const zn_engine *e);
/* Returns the bytes of memory that the z-table takes now. */
size_t zn_engine_table_memory(const zn_engine *e);
/* Checks every table's invariants. Returns NULL, or a text that says what is broken. Slow: for
 * tests. */
const char *zn_engine_check(const zn_engine *e);

/*
 * Of an engine whose config names a probe: a counter of all probes decides its votes. The program
 * takes messages to it, each after its length in four bytes, and brings answers; zn_engine_flush
 * then does what they decide. zn_engine_finish returns 0 also while answers are missing.
 */
/* Returns the number of this run of the probe, and sets *settings, as messages have them. */
uint64_t zn_engine_count_probe(const zn_engine *e, uint64_t *settings);
/* Sets the counter's number of shards, before the first frame: without it every answer is no.
 * Returns 0, or a negative zn_err. */
int zn_engine_count_begin(zn_engine *e, unsigned shards, zn_error *err);
/* Makes messages although none are due: the counter can decide all that was asked, and knows that
 * the probe is there. Returns 0, or a negative zn_err. */
int zn_engine_count_cut(zn_engine *e, zn_error *err);
/* Sets for how many ns of packet time answers are waited for, in place of config.count_hold_ns. */
void zn_engine_count_hold(zn_engine *e, int64_t hold_ns);
/* Returns the messages that are ready, until zn_engine_count_sent. */
zn_span zn_engine_count_messages(const zn_engine *e);
void zn_engine_count_sent(zn_engine *e);
/* Takes an answer message. Returns 0, or -ZN_ERR_FORMAT. */
int zn_engine_count_answer(zn_engine *e, zn_span message, zn_error *err);
/* Returns whether answers are missing for longer than config.count_hold_ns of packet time, or for
 * so much that the program should wait for them before it feeds more. */
bool zn_engine_asks_too_much(const zn_engine *e);
/* Returns how many steps, such as votes and records, wait. */
uint64_t zn_engine_count_waiting(const zn_engine *e);
/* With `muted`, votes are given up before they are sent, while the counter is away for long; of
 * clients it is told all the same. */
void zn_engine_count_mute(zn_engine *e, bool muted);
/* Gives up what waits and every message that has no answer, and goes on under another number, which
 * zn_engine_count_probe then returns; after the last messages there is none. Returns 0, or a
 * negative zn_err. */
int zn_engine_count_abandon(zn_engine *e, zn_error *err);
/* Suppresses what was asked more than config.count_hold_ns of packet time ago and is not answered
 * yet, or, where that leaves too much or with `all`, everything. Returns 1 when the outputs are to
 * be taken, 0, or a negative zn_err. */
int zn_engine_give_up(zn_engine *e, bool all, zn_error *err);

#define ZN_PSEUDONYM_ID_BYTES 8

/* The settings that keys depend on beside z, window and the length of an epoch, as a line of text
 * that lies in the engine's memory: engine/engine_keys.c. */
zn_span zn_engine_key_scope(const zn_engine *e);
/* Internal networks that are too long for pseudonyms to keep. */
uint32_t zn_engine_networks_left_out(const zn_engine *e);
/* Fills id with bytes that two engines share if their pseudonyms are the same; false where there is
 * no key file. */
bool zn_engine_pseudonym_id(zn_engine *e, uint8_t id[ZN_PSEUDONYM_ID_BYTES]);

#endif
