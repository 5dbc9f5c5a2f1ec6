/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First bytes of a byte stream, in order, for segments that come in any order.
 *
 * A stream is up to ZN_STREAM_MAX bytes from a base that the caller chose. Segments are placed by
 * their offset from it: a TCP sequence number or a QUIC CRYPTO offset, minus the base. A stored
 * byte stays. A segment with another value for it is a conflict and taints the stream permanently,
 * because it is unknown which copy the receiver used. At most ZN_STREAM_RANGES separate ranges are
 * kept. The caller may consume what it has read while the bytes after it stay.
 *
 * Streams live in a pool, which is laid out at start and costs the pages that it touches.
 */
#ifndef ZN_FLOW_REASSEMBLY_H
#define ZN_FLOW_REASSEMBLY_H

#include "util/arena.h"
#include "util/cursor.h"

#define ZN_STREAM_MAX 20480 /* the longest ClientHello looked at, 16 KiB, with its record headers */
#define ZN_STREAM_RANGES 16

typedef enum zn_stream_result {
    ZN_STREAM_GREW,     /* more bytes are contiguous from the base now */
    ZN_STREAM_STORED,   /* stored, behind a hole */
    ZN_STREAM_NOTHING,  /* all its bytes were there */
    ZN_STREAM_CONFLICT, /* the stream is tainted, by this segment or an earlier one */
    ZN_STREAM_OUTSIDE   /* beyond ZN_STREAM_MAX, or too many holes: not stored */
} zn_stream_result;

typedef struct zn_stream_range {
    uint16_t from, to; /* bytes [from, to) are stored */
} zn_stream_range;

typedef struct zn_stream {
    uint32_t link;     /* the slab's, while free */
    uint16_t segments; /* that brought new bytes since zn_stream_consume */
    uint8_t ranges;
    bool conflict;
    zn_stream_range range[ZN_STREAM_RANGES]; /* ascending, disjoint, not touching */
} zn_stream;

typedef struct zn_stream_pool {
    zn_slab streams;
    uint8_t *bytes; /* ZN_STREAM_MAX for each stream */
} zn_stream_pool;

/* Prepares a pool of `cap` streams. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_stream_pool_init(zn_stream_pool *pool, uint32_t cap, zn_error *err);
/* Frees the memory of the pool; a zeroed one is fine. */
void zn_stream_pool_fini(zn_stream_pool *pool);

/* Returns a new empty stream, or 0 when the pool is full. */
uint32_t zn_stream_take(zn_stream_pool *pool);
/* Frees a stream and wipes its bytes, as they hold names. */
void zn_stream_give(zn_stream_pool *pool, uint32_t stream);

/* Stores a segment at `offset` bytes from the base. */
zn_stream_result zn_stream_add(zn_stream_pool *pool, uint32_t stream, uint32_t offset,
                               zn_span segment);
/* Returns the contiguous bytes from the base; they are borrowed until the next add, consume or
 * give. */
zn_span zn_stream_start(const zn_stream_pool *pool, uint32_t stream);
/* Moves the base by `bytes`, at most to the last stored byte, and wipes the bytes before it. */
void zn_stream_consume(zn_stream_pool *pool, uint32_t stream, uint32_t bytes);
/* Returns the offset of the first stored byte; ZN_STREAM_MAX when none is stored. */
uint32_t zn_stream_first(const zn_stream_pool *pool, uint32_t stream);
/* Returns whether bytes are stored behind a hole. */
bool zn_stream_has_hole(const zn_stream_pool *pool, uint32_t stream);
/* Returns how many segments brought new bytes since zn_stream_consume, up to UINT16_MAX. */
uint32_t zn_stream_segments(const zn_stream_pool *pool, uint32_t stream);

#endif
