/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing behind: what an engine's records say is settled where they are made, and another thread
 * turns them into text and rows, in their order, while the engine goes on.
 *
 * Between zn_behind_put and zn_behind_wait nobody else may touch what a record is written to.
 * Whether the outputs are full is answered as if every record were written by then. One thread
 * calls.
 */
#ifndef ZN_BEHIND_H
#define ZN_BEHIND_H

#include "util/pool.h"
#include "release/record.h"
#include "engine/outputs.h"

typedef struct zn_behind zn_behind;

/* 0, or a negative zn_err. pool and outputs must outlive it. */
int zn_behind_open(zn_behind **out, zn_pool *pool, zn_outputs *outputs, zn_error *err);
/* NULL is fine; nothing is left to be written. */
void zn_behind_close(zn_behind *b);

/* The outputs are as they are now: the caller has taken what there was. Before anything else. */
void zn_behind_begin(zn_behind *b);
/* The place of the next record, to be filled; waits until there is one. */
zn_record *zn_behind_next(zn_behind *b);
/* That record is to be written. What it borrows is copied. */
void zn_behind_put(zn_behind *b);
/* Has somebody write what is there. */
void zn_behind_start(zn_behind *b);
/* Everything is written when this returns. */
void zn_behind_wait(zn_behind *b);
/* zn_outputs_full, once everything is written; waits only where that is not clear without. */
bool zn_behind_full(zn_behind *b);

size_t zn_behind_memory(void);

#endif
