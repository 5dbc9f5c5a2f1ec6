/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads ahead: while an engine works on one portion of a file, other threads read, filter and
 * decode the next ones.
 *
 * Portions come in their order, and the engine writes the same as if it read the frames itself.
 * Only mapped captures are read ahead (zn_capture_is_mapped). One thread calls these functions.
 */
#ifndef ZN_ENGINE_DECODE_AHEAD_H
#define ZN_ENGINE_DECODE_AHEAD_H

#include "engine/packet_decoder.h"
#include "engine/source.h"
#include "util/pool.h"

#define ZN_DECODE_AHEAD_PORTIONS 16 /* portions that are read and not used up, at most */

/* Frames of a file, decoded. */
typedef struct zn_portion {
    /* what zn_source_read returned; 0: the end of the file; negative: `err` says why */
    int read;
    size_t n, at; /* frames that passed the filter; how many of them were taken */
    bool begun;   /* the engine has begun with it */
    zn_error err;
    zn_decoded decoded;
    zn_frame frames[ZN_DECODER_AHEAD];
} zn_portion;

typedef struct zn_decode_ahead zn_decode_ahead;

/* Opens one that decodes as *decoder does; pool and decoder must outlive it. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_decode_ahead_open(zn_decode_ahead **out, zn_pool *pool, const zn_packet_decoder *decoder,
                         zn_error *err);
/* Frees it. NULL is fine. */
void zn_decode_ahead_close(zn_decode_ahead *a);

/* Begins to read up to max_frames of a mapped capture. Portions left of it from the call before
 * come first; those of another source are dropped. */
void zn_decode_ahead_begin(zn_decode_ahead *a, zn_source *source, int max_frames);
/* Waits for the next portion and returns it, the same one until zn_decode_ahead_used; NULL when
 * none is left and none will come. */
zn_portion *zn_decode_ahead_next(zn_decode_ahead *a);
/* Drops the portion that zn_decode_ahead_next returned. */
void zn_decode_ahead_used(zn_decode_ahead *a);
/* Stops reading: when this returns, no thread reads the source. */
void zn_decode_ahead_stop(zn_decode_ahead *a);
/* Returns whether portions of this source are left. */
bool zn_decode_ahead_has(const zn_decode_ahead *a, const zn_source *source);
/* Returns how many frames of this source were read and not taken. Only between zn_decode_ahead_stop
 * and zn_decode_ahead_begin. */
int zn_decode_ahead_left(const zn_decode_ahead *a, const zn_source *source);

/* Returns the bytes of memory that it takes. */
size_t zn_decode_ahead_memory(void);

#endif
