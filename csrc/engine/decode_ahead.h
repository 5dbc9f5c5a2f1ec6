/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader ahead of the engine: while an engine works on one portion of a file, other threads read,
 * filter and decode the next portions.
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
    /* result of zn_source_read: 0 is the end of the file, and a negative value comes with `err` */
    int read;
    size_t n, at; /* frames that passed the filter, and number of these that were taken */
    bool begun;   /* true if the engine has begun with the portion */
    zn_error err;
    zn_decoded decoded;
    zn_frame frames[ZN_DECODER_AHEAD];
} zn_portion;

typedef struct zn_decode_ahead zn_decode_ahead;

/* Opens a reader that decodes like *decoder. The pool and the decoder must outlive the reader.
 * Returns 0, or a negative zn_err with *err filled. */
int zn_decode_ahead_open(zn_decode_ahead **out, zn_pool *pool, const zn_packet_decoder *decoder,
                         zn_error *err);
/* Frees a reader; NULL is fine. */
void zn_decode_ahead_close(zn_decode_ahead *a);

/* Begins to read up to max_frames of a mapped capture. Its portions that an earlier call left come
 * first. Portions of another source are dropped. */
void zn_decode_ahead_begin(zn_decode_ahead *a, zn_source *source, int max_frames);
/* Waits for the next portion and returns it, until zn_decode_ahead_used drops it. Returns NULL if
 * no portion is left and no portion will come. */
zn_portion *zn_decode_ahead_next(zn_decode_ahead *a);
/* Drops the portion that zn_decode_ahead_next returned. */
void zn_decode_ahead_used(zn_decode_ahead *a);
/* Stops reading. After the call no thread reads the source. */
void zn_decode_ahead_stop(zn_decode_ahead *a);
/* Returns true if portions of this source are left. */
bool zn_decode_ahead_has(const zn_decode_ahead *a, const zn_source *source);
/* Returns the number of frames of this source that were read and not taken. Called only between
 * zn_decode_ahead_stop and zn_decode_ahead_begin. */
int zn_decode_ahead_left(const zn_decode_ahead *a, const zn_source *source);

/* Returns the bytes of memory of a reader. */
size_t zn_decode_ahead_memory(void);

#endif
