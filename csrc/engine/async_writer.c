/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring of records between the thread that fills them and the thread that writes them. The writer is
 * a job of one task that ends when no record is left. An unwritten record takes at most
 * RECORD_BYTES. zn_async_writer_full waits for the writer only if these bytes could fill the
 * outputs.
 */
#include "engine/async_writer.h"

#include "release/record_copy.h"
#include "util/arena.h"

#define RECORDS 64u /* a power of two */
/* Bytes of a record in all formats together: each of some 200 columns takes at most 20 digits and,
 * in JSON, its name. */
#define RECORD_BYTES ((size_t)32 << 10)

typedef struct record_slot {
    zn_record record;
    zn_record_texts texts;
} record_slot;

struct zn_async_writer {
    zn_pool *pool;
    zn_outputs *outputs;
    zn_job job;
    _Atomic bool writing;
    _Atomic uint32_t put, written; /* records put and written so far; they wrap */
    _Atomic size_t bytes, rows;    /* of written records, in the outputs */
    record_slot ring[RECORDS];
};

/* Publishes the fill of the outputs, while no other thread writes to them. */
static void publish(zn_async_writer *w)
{
    const zn_outputs *o = w->outputs;
    size_t bytes = 0, rows = 0;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        if (zn_outputs_is_of_records(i))
            bytes += o->text[i].n;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        if (o->table[i].rows > rows)
            rows = o->table[i].rows;
    ZN_ASSERT(bytes <= atomic_load(&w->bytes) + RECORD_BYTES);
    atomic_store(&w->bytes, bytes);
    atomic_store(&w->rows, rows);
}

static void write_records(void *of, uint32_t task)
{
    zn_async_writer *w = of;
    uint32_t written = atomic_load(&w->written);
    (void)task;
    for (; written != atomic_load(&w->put); atomic_store(&w->written, ++written)) {
        zn_outputs_record(w->outputs, &w->ring[written % RECORDS].record);
        publish(w);
    }
    atomic_store(&w->writing, false);
    zn_async_writer_start(w); /* a record may have come in the meantime */
}

int zn_async_writer_open(zn_async_writer **out, zn_pool *pool, zn_outputs *outputs, zn_error *err)
{
    zn_async_writer *w = zn_block_alloc(sizeof *w);
    *out = w;
    if (w == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a thread that writes");
    w->pool = pool;
    w->outputs = outputs;
    w->job.run = write_records;
    w->job.of = w;
    return 0;
}

void zn_async_writer_close(zn_async_writer *w)
{
    zn_block_free(w, sizeof *w);
}

zn_record *zn_async_writer_next(zn_async_writer *w)
{
    uint32_t put = atomic_load(&w->put);
    while (true) {
        uint32_t ended = zn_pool_ended(w->pool);
        if (put - atomic_load(&w->written) < RECORDS)
            return &w->ring[put % RECORDS].record;
        zn_async_writer_start(w);
        zn_pool_help(w->pool, ended);
    }
}

void zn_async_writer_put(zn_async_writer *w)
{
    uint32_t put = atomic_load(&w->put);
    record_slot *slot = &w->ring[put % RECORDS];
    zn_record_copy(&slot->record, &slot->texts);
    atomic_store(&w->put, put + 1);
}

void zn_async_writer_start(zn_async_writer *w)
{
    while (atomic_load(&w->written) != atomic_load(&w->put) &&
           !atomic_exchange(&w->writing, true)) {
        if (atomic_load(&w->written) != atomic_load(&w->put)) {
            zn_pool_start(w->pool, &w->job, 1, true);
            return;
        }
        atomic_store(&w->writing, false);
    }
}

void zn_async_writer_wait(zn_async_writer *w)
{
    zn_async_writer_start(w);
    zn_pool_finish(w->pool, &w->job);
    ZN_ASSERT(atomic_load(&w->written) == atomic_load(&w->put));
}

void zn_async_writer_begin(zn_async_writer *w)
{
    zn_async_writer_wait(w);
    atomic_store(&w->bytes, SIZE_MAX - RECORD_BYTES);
    publish(w);
}

bool zn_async_writer_full(zn_async_writer *w)
{
    /* read before `bytes`, so that the sum is never too small */
    size_t left = atomic_load(&w->put) - atomic_load(&w->written);
    size_t bytes = atomic_load(&w->bytes) + left * RECORD_BYTES;
    if (bytes + zn_outputs_other_bytes(w->outputs) < ZN_OUTPUTS_BYTES &&
        atomic_load(&w->rows) + left < ZN_OUTPUTS_ROWS)
        return false;
    zn_async_writer_wait(w);
    return zn_outputs_full(w->outputs);
}

size_t zn_async_writer_memory(void)
{
    return sizeof(zn_async_writer);
}
