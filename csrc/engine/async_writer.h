/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of records on another thread. The engine fills a record, and the other thread turns the
 * record into text and rows while the engine continues. Records are written in their order.
 *
 * Between zn_async_writer_put and zn_async_writer_wait only the writer may touch the outputs.
 * zn_async_writer_full answers as if every record were written. One thread calls these functions.
 */
#ifndef ZN_ENGINE_ASYNC_WRITER_H
#define ZN_ENGINE_ASYNC_WRITER_H

#include "output/outputs.h"
#include "release/record.h"
#include "util/pool.h"

typedef struct zn_async_writer zn_async_writer;

/* Opens a writer to *outputs; pool and outputs must outlive it. Returns 0, or a negative zn_err
 * with *err filled. */
int zn_async_writer_open(zn_async_writer **out, zn_pool *pool, zn_outputs *outputs, zn_error *err);
/* Frees the writer, which has written every record. NULL is fine. */
void zn_async_writer_close(zn_async_writer *w);

/* Notes the fill of the outputs, after the caller has emptied them. Called before the other
 * functions. */
void zn_async_writer_begin(zn_async_writer *w);
/* Returns the memory of the next record, for the caller to fill. Waits until a record is free. */
zn_record *zn_async_writer_next(zn_async_writer *w);
/* Queues the record and copies the bytes that it borrows. */
void zn_async_writer_put(zn_async_writer *w);
/* Starts a thread that writes the queued records. */
void zn_async_writer_start(zn_async_writer *w);
/* Waits until every record is written. */
void zn_async_writer_wait(zn_async_writer *w);
/* Returns the result that zn_outputs_full will have when every record is written. Waits for the
 * records only if the result depends on their length. */
bool zn_async_writer_full(zn_async_writer *w);

/* Returns the bytes of memory of a writer. */
size_t zn_async_writer_memory(void);

#endif
