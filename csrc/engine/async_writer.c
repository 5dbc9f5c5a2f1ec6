/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of records with one maker and one writer. The writer is a job of one task that ends when
 * it finds nothing more. Of a record that waits it is only known that it takes at most
 * RECORD_BYTES: when those could fill the outputs, the writer is waited for.
 */
#include "engine/async_writer.h"

#include "release/record_copy.h"
#include "util/arena.h"

#define RECORDS 64u /* a power of two */
/* In all formats together: of some 200 columns each takes at most 20 digits and, in JSON, its
 * name. */
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
    _Atomic uint32_t put, written; /* records so far; wrap */
    _Atomic size_t bytes, rows;    /* of those that are written, in the outputs */
    record_slot ring[RECORDS];
};

/* Publishes how much the outputs hold; nobody else writes meanwhile. */
static void publish(zn_async_writer *b)
{
    const zn_outputs *o = b->outputs;
    size_t bytes = 0, rows = 0;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        if (!zn_outputs_is_released(i))
            bytes += o->text[i].n;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        if (o->table[i].rows > rows)
            rows = o->table[i].rows;
    ZN_ASSERT(bytes <= atomic_load(&b->bytes) + RECORD_BYTES);
    atomic_store(&b->bytes, bytes);
    atomic_store(&b->rows, rows);
}

static void write_records(void *of, uint32_t task)
{
    zn_async_writer *b = of;
    uint32_t written = atomic_load(&b->written);
    (void)task;
    for (; written != atomic_load(&b->put); atomic_store(&b->written, ++written)) {
        zn_outputs_record(b->outputs, &b->ring[written % RECORDS].record);
        publish(b);
    }
    atomic_store(&b->writing, false);
    zn_async_writer_start(b); /* one may have come in between */
}

int zn_async_writer_open(zn_async_writer **out, zn_pool *pool, zn_outputs *outputs, zn_error *err)
{
    zn_async_writer *b = zn_block_alloc(sizeof *b);
    *out = b;
    if (b == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to write behind");
    b->pool = pool;
    b->outputs = outputs;
    b->job.run = write_records;
    b->job.of = b;
    return 0;
}

void zn_async_writer_close(zn_async_writer *b)
{
    zn_block_free(b, sizeof *b);
}

zn_record *zn_async_writer_next(zn_async_writer *b)
{
    uint32_t put = atomic_load(&b->put);
    while (true) {
        uint32_t ended = zn_pool_ended(b->pool);
        if (put - atomic_load(&b->written) < RECORDS)
            return &b->ring[put % RECORDS].record;
        zn_async_writer_start(b);
        zn_pool_help(b->pool, ended);
    }
}

void zn_async_writer_put(zn_async_writer *b)
{
    uint32_t put = atomic_load(&b->put);
    record_slot *slot = &b->ring[put % RECORDS];
    zn_record_copy(&slot->record, &slot->texts);
    atomic_store(&b->put, put + 1);
}

void zn_async_writer_start(zn_async_writer *b)
{
    while (atomic_load(&b->written) != atomic_load(&b->put) &&
           !atomic_exchange(&b->writing, true)) {
        if (atomic_load(&b->written) != atomic_load(&b->put)) {
            zn_pool_start(b->pool, &b->job, 1, true);
            return;
        }
        atomic_store(&b->writing, false);
    }
}

void zn_async_writer_wait(zn_async_writer *b)
{
    zn_async_writer_start(b);
    zn_pool_finish(b->pool, &b->job);
    ZN_ASSERT(atomic_load(&b->written) == atomic_load(&b->put));
}

void zn_async_writer_begin(zn_async_writer *b)
{
    zn_async_writer_wait(b);
    atomic_store(&b->bytes, SIZE_MAX - RECORD_BYTES);
    publish(b);
}

bool zn_async_writer_full(zn_async_writer *b)
{
    size_t left = atomic_load(&b->put) - atomic_load(&b->written); /* asked first: not too few */
    size_t bytes = atomic_load(&b->bytes) + left * RECORD_BYTES;
    if (bytes + zn_outputs_released_bytes(b->outputs) < ZN_OUTPUTS_BYTES &&
        atomic_load(&b->rows) + left < ZN_OUTPUTS_ROWS)
        return false;
    zn_async_writer_wait(b);
    return zn_outputs_full(b->outputs);
}

size_t zn_async_writer_memory(void)
{
    return sizeof(zn_async_writer);
}
