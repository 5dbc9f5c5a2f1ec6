/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead: while an engine is at work on one portion of a file, another thread reads, filters
 * and decodes the next ones.
 *
 * Portions come in their order, and what an engine makes of them is what it would have made of the
 * same frames read by itself. Only a capture that stays is read ahead (zn_capture_is_mapped). One
 * thread calls.
 */
#ifndef ZN_ENGINE_DECODE_AHEAD_H
#define ZN_ENGINE_DECODE_AHEAD_H

#include "engine/packet_decoder.h"
#include "engine/source.h"
#include "util/pool.h"

#define ZN_DECODE_AHEAD_PORTIONS 16 /* read and not used up */

/* Frames of a file, decoded. */
typedef struct zn_portion {
    int read;     /* as zn_source_read returned it: 0: the end of the file; negative: *err */
    size_t n, at; /* frames that passed the filter, and how many of them were taken */
    bool begun;   /* the portion was looked at */
    zn_error err;
    zn_decoded decoded;
    zn_frame frames[ZN_DECODER_AHEAD];
} zn_portion;

typedef struct zn_decode_ahead zn_decode_ahead;

/* 0, or a negative zn_err. pool and intake must outlive it. */
int zn_decode_ahead_open(zn_decode_ahead **out, zn_pool *pool, const zn_packet_decoder *decoder,
                         zn_error *err);
/* NULL is fine. */
void zn_decode_ahead_close(zn_decode_ahead *a);

/* Begins to read up to max_frames of a capture that stays; portions of before, if any are left,
 * come first. */
void zn_decode_ahead_begin(zn_decode_ahead *a, zn_source *source, int max_frames);
/* Waits for the next portion, which stays the next one until zn_decode_ahead_used; NULL when there
 * is none and none to come. */
zn_portion *zn_decode_ahead_next(zn_decode_ahead *a);
/* The next portion, for which zn_decode_ahead_next waited, is used up. */
void zn_decode_ahead_used(zn_decode_ahead *a);
/* Nobody reads the source any more when this returns. */
void zn_decode_ahead_stop(zn_decode_ahead *a);
/* There are portions left of this source. */
bool zn_decode_ahead_has(const zn_decode_ahead *a, const zn_source *source);
/* How many of its frames were read and not taken. Nobody reads meanwhile. */
int zn_decode_ahead_left(const zn_decode_ahead *a, const zn_source *source);

size_t zn_decode_ahead_memory(void);

#endif
