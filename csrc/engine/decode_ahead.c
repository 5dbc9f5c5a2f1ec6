/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of portions between one reader and one user. The reader is a job of one task that reads
 * one portion and starts itself again while the ring has room; when it had none,
 * zn_decode_ahead_used starts the reader once a quarter of the ring is used up. Decoding a portion
 * is a job of its own, which any idle thread runs: also the user's, while it waits.
 */
#include "engine/decode_ahead.h"

#include "util/arena.h"

typedef struct place {
    zn_job decoding;
    const zn_packet_decoder *decoder;
    zn_portion portion;
} place;

struct zn_decode_ahead {
    zn_pool *pool;
    zn_source *source;
    /* zn_capture_number of the source; another capture may get the same address */
    uint64_t capture;
    zn_job reader;
    int left; /* frames that are still to be read; only the reader changes the number */
    _Atomic bool reading, ended;
    _Atomic uint32_t filled, used; /* portions filled and used so far; they wrap */
    place ring[ZN_DECODE_AHEAD_PORTIONS];
};

_Static_assert((ZN_DECODE_AHEAD_PORTIONS & (ZN_DECODE_AHEAD_PORTIONS - 1)) == 0, "counters wrap");

/* Returns true if the ring has room for another portion and the source has not ended. */
static bool may_read(const zn_decode_ahead *a)
{
    return !atomic_load(&a->ended) &&
           atomic_load(&a->filled) - atomic_load(&a->used) < ZN_DECODE_AHEAD_PORTIONS;
}

static void read_portion(zn_decode_ahead *a)
{
    uint32_t filled = atomic_load(&a->filled);
    place *to = &a->ring[filled % ZN_DECODE_AHEAD_PORTIONS];
    zn_portion *p = &to->portion;
    int want = a->left < ZN_DECODER_AHEAD ? a->left : ZN_DECODER_AHEAD;
    p->at = 0;
    p->begun = false;
    p->read = zn_source_read(a->source, p->frames, want, &p->n, &p->err);
    zn_pool_start(a->pool, &to->decoding, 1, false);
    a->left -= p->read > 0 ? p->read : 0;
    if (p->read <= 0 || a->left == 0)
        atomic_store(&a->ended, true);
    atomic_store(&a->filled, filled + 1);
}

static void run_decoder(void *of, uint32_t task)
{
    place *at = of;
    (void)task;
    zn_packet_decoder_decode(at->decoder, at->portion.frames, at->portion.n, &at->portion.decoded);
}

/* Starts the reader unless it runs or has nothing to do. The reader and its user call this. */
static void start_reader(zn_decode_ahead *a)
{
    while (may_read(a) && !atomic_exchange(&a->reading, true)) {
        if (may_read(a)) {
            zn_pool_start(a->pool, &a->reader, 1, false);
            return;
        }
        atomic_store(&a->reading, false);
    }
}

static void run_reader(void *of, uint32_t task)
{
    zn_decode_ahead *a = of;
    (void)task;
    read_portion(a);
    atomic_store(&a->reading, false);
    start_reader(a);
}

int zn_decode_ahead_open(zn_decode_ahead **out, zn_pool *pool, const zn_packet_decoder *decoder,
                         zn_error *err)
{
    zn_decode_ahead *a = zn_block_alloc(sizeof *a);
    *out = a;
    if (a == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory to read ahead");
    a->pool = pool;
    a->reader.run = run_reader;
    a->reader.of = a;
    for (unsigned i = 0; i < ZN_DECODE_AHEAD_PORTIONS; i++) {
        a->ring[i].decoder = decoder;
        a->ring[i].decoding.run = run_decoder;
        a->ring[i].decoding.of = &a->ring[i];
    }
    a->ended = true;
    return 0;
}

void zn_decode_ahead_close(zn_decode_ahead *a)
{
    zn_block_free(a, sizeof *a);
}

/* Returns true if the portions in the ring were read from this source. */
static bool is_of(const zn_decode_ahead *a, const zn_source *source)
{
    return a->source == source && a->capture == zn_capture_number(source->capture);
}

void zn_decode_ahead_begin(zn_decode_ahead *a, zn_source *source, int max_frames)
{
    if (!is_of(a, source))
        atomic_store(&a->used, atomic_load(&a->filled));
    a->source = source;
    a->capture = zn_capture_number(source->capture);
    a->left = max_frames;
    atomic_store(&a->ended, max_frames <= 0);
    start_reader(a);
}

zn_portion *zn_decode_ahead_next(zn_decode_ahead *a)
{
    uint32_t used = atomic_load(&a->used);
    while (true) {
        uint32_t ended = zn_pool_ended(a->pool);
        /* read before `filled`, which is final afterwards */
        bool last = atomic_load(&a->ended) && zn_job_ended(&a->reader);
        bool read = atomic_load(&a->filled) != used;
        place *next = &a->ring[used % ZN_DECODE_AHEAD_PORTIONS];
        if (read && zn_job_ended(&next->decoding))
            return &next->portion;
        if (!read && last)
            return NULL;
        zn_pool_help(a->pool, ended);
    }
}

void zn_decode_ahead_used(zn_decode_ahead *a)
{
    uint32_t used = atomic_fetch_add(&a->used, 1) + 1;
    /* Not after each portion, because waking a thread costs more than reading a portion. */
    if (atomic_load(&a->filled) - used <= ZN_DECODE_AHEAD_PORTIONS * 3 / 4)
        start_reader(a);
}

void zn_decode_ahead_stop(zn_decode_ahead *a)
{
    atomic_store(&a->ended, true);
    zn_pool_finish(a->pool, &a->reader);
    for (unsigned i = 0; i < ZN_DECODE_AHEAD_PORTIONS; i++)
        zn_pool_finish(a->pool, &a->ring[i].decoding);
}

bool zn_decode_ahead_has(const zn_decode_ahead *a, const zn_source *source)
{
    return is_of(a, source) && atomic_load(&a->filled) != atomic_load(&a->used);
}

int zn_decode_ahead_left(const zn_decode_ahead *a, const zn_source *source)
{
    uint32_t filled = atomic_load(&a->filled);
    int left = 0;
    if (!is_of(a, source))
        return 0;
    for (uint32_t i = atomic_load(&a->used); i != filled; i++) {
        const zn_portion *p = &a->ring[i % ZN_DECODE_AHEAD_PORTIONS].portion;
        left += p->begun ? (int)(p->n - p->at) : p->read > 0 ? p->read : 0;
    }
    return left;
}

size_t zn_decode_ahead_memory(void)
{
    return sizeof(zn_decode_ahead);
}
