/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes of a byte stream, in order, whatever order its pieces came in.
 *
 * A stream is up to ZN_STREAM_MAX bytes from a base the caller chose; pieces are placed by their
 * offset from it (a TCP sequence number or a QUIC CRYPTO offset minus the base). Bytes that were
 * received once stay; a piece that says something else about them is a conflict, and taints the
 * stream for good: which copy the receiver believed cannot be known. At most ZN_STREAM_RANGES
 * separate ranges are kept. What was read can be given back while what follows it stays.
 *
 * Streams live in a pool that is laid out at start and costs the pages it touches.
 */
#ifndef ZN_FLOW_REASSEMBLY_H
#define ZN_FLOW_REASSEMBLY_H

#include "util/arena.h"
#include "util/cursor.h"

#define ZN_STREAM_MAX 20480 /* the longest ClientHello looked at, 16 KiB, with its record headers */
#define ZN_STREAM_RANGES 16

typedef enum zn_stream_result {
    ZN_STREAM_GREW,     /* the contiguous head is longer now */
    ZN_STREAM_STORED,   /* kept, behind a hole */
    ZN_STREAM_NOTHING,  /* nothing new in it */
    ZN_STREAM_CONFLICT, /* the stream is tainted, now or since before */
    ZN_STREAM_OUTSIDE   /* beyond the bound, or too many holes: not kept */
} zn_stream_result;

typedef struct zn_stream_range {
    uint16_t from, to; /* bytes [from, to) are there */
} zn_stream_range;

typedef struct zn_stream {
    uint32_t link;     /* the slab's, while free */
    uint16_t segments; /* that brought something new since the head was last consumed */
    uint8_t ranges;
    bool conflict;
    zn_stream_range range[ZN_STREAM_RANGES]; /* ascending, disjoint, not touching */
} zn_stream;

typedef struct zn_stream_pool {
    zn_slab streams;
    uint8_t *bytes; /* ZN_STREAM_MAX for each stream */
} zn_stream_pool;

/* Room for `cap` streams. 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_stream_pool_init(zn_stream_pool *pool, uint32_t cap, zn_error *err);
void zn_stream_pool_fini(zn_stream_pool *pool);

/* A new empty stream, or 0 when the pool is full. */
uint32_t zn_stream_take(zn_stream_pool *pool);
/* Wipes the bytes (they hold names) and frees the stream. */
void zn_stream_give(zn_stream_pool *pool, uint32_t stream);

/* Places `piece` at `offset`. */
zn_stream_result zn_stream_add(zn_stream_pool *pool, uint32_t stream, uint32_t offset,
                               zn_span segment);
/* The contiguous bytes from the base; borrows until the next add or give. */
zn_span zn_stream_start(const zn_stream_pool *pool, uint32_t stream);
/* The base moves by `bytes`, whether they are there or not; those before it are wiped. */
void zn_stream_consume(zn_stream_pool *pool, uint32_t stream, uint32_t bytes);
/* Where the first stored byte lies, from the base; ZN_STREAM_MAX when none is stored. */
uint32_t zn_stream_first(const zn_stream_pool *pool, uint32_t stream);
/* Bytes are stored behind a hole. */
bool zn_stream_has_hole(const zn_stream_pool *pool, uint32_t stream);
/* Pieces that brought something new since the head was last consumed, up to UINT16_MAX. */
uint32_t zn_stream_segments(const zn_stream_pool *pool, uint32_t stream);

#endif
