/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing behind: what an engine's records say is settled where they are made, and another thread
 * turns them into text and rows, in their order, while the engine goes on.
 *
 * Between zn_async_writer_put and zn_async_writer_wait nobody else may touch what a record is
 * written to. Whether the outputs are full is answered as if every record were written by then. One
 * thread calls.
 */
#ifndef ZN_ENGINE_ASYNC_WRITER_H
#define ZN_ENGINE_ASYNC_WRITER_H

#include "engine/outputs.h"
#include "release/record.h"
#include "util/pool.h"

typedef struct zn_async_writer zn_async_writer;

/* 0, or a negative zn_err. pool and outputs must outlive it. */
int zn_async_writer_open(zn_async_writer **out, zn_pool *pool, zn_outputs *outputs, zn_error *err);
/* NULL is fine; nothing is left to be written. */
void zn_async_writer_close(zn_async_writer *b);

/* The outputs are as they are now: the caller has taken what there was. Before anything else. */
void zn_async_writer_begin(zn_async_writer *b);
/* The place of the next record, to be filled; waits until there is one. */
zn_record *zn_async_writer_next(zn_async_writer *b);
/* That record is to be written. What it borrows is copied. */
void zn_async_writer_put(zn_async_writer *b);
/* Has somebody write what is there. */
void zn_async_writer_start(zn_async_writer *b);
/* Everything is written when this returns. */
void zn_async_writer_wait(zn_async_writer *b);
/* zn_outputs_full, once everything is written; waits only where that is not clear without. */
bool zn_async_writer_full(zn_async_writer *b);

size_t zn_async_writer_memory(void);

#endif
