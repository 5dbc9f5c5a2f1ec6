/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the frames of packets that leave. The engine says in their order what each is, and where
 * in the text of its output its record stands; nothing else is needed to write it. So with several
 * workers any thread writes it, while the engine goes on.
 *
 * Between zn_frame_builder_put and zn_frame_builder_wait the text must not move. One thread calls
 * these functions.
 */
#ifndef ZN_REWRITE_FRAME_BUILDER_H
#define ZN_REWRITE_FRAME_BUILDER_H

#include "build/build_encapsulation.h"
#include "output/packet_file.h"
#include "util/pool.h"

/* A frame to write. Most are handed to another processor as two cache lines. */
typedef struct zn_planned_frame {
    _Alignas(ZN_CACHE_LINE) zn_build_headers headers; /* without MAC addresses and options */
    int64_t t_ns;
    uint8_t *at; /* where its record begins */
    /* The part of its payload that stands there already, empty: none. The rest is zeros. */
    uint16_t written_from, written_end;
    uint8_t macs; /* zn_packet_macs */
    bool from_inside;
    bool pcapng : 1, cut : 1, has_outer : 1;
    _Alignas(ZN_CACHE_LINE) uint8_t options[ZN_BUILD_OPTIONS_MAX]; /* headers.option_bytes */
    zn_build_encapsulation outer; /* with has_outer: the headers around the packet */
} zn_planned_frame;
_Static_assert(offsetof(zn_planned_frame, options) == 2 * ZN_CACHE_LINE, "what most frames need");

/* Bytes of all headers of a frame. */
static inline uint32_t zn_planned_frame_headers(const zn_planned_frame *f)
{
    return zn_build_headers_bytes(&f->headers) +
           (f->has_outer ? zn_build_encapsulation_bytes(&f->outer) : 0);
}

/* Returns what the record of a frame with so many bytes of headers says. */
static inline zn_packet_file_frame zn_planned_frame_record(const zn_planned_frame *f,
                                                           uint32_t headers)
{
    uint32_t bytes = headers + f->headers.payload_bytes;
    uint32_t wire = bytes < ZN_BUILD_FRAME_MIN ? ZN_BUILD_FRAME_MIN : bytes;
    return (zn_packet_file_frame){
        .t_ns = f->t_ns, .captured = f->cut ? headers : wire, .wire = wire};
}

typedef struct zn_frame_portion zn_frame_portion;

typedef struct zn_frame_builder {
    zn_planned_frame frame; /* the next one, where it is written at once */
    zn_pool *pool;          /* NULL: each is, as the next one */
    zn_frame_portion *ring;
    uint32_t current; /* place in the ring of the portion that is being filled */
} zn_frame_builder;

/* Has the threads of a pool write frames; *b is zero. Without this call, frames are written at
 * once. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_frame_builder_init(zn_frame_builder *b, zn_pool *pool, zn_error *err);
void zn_frame_builder_fini(zn_frame_builder *b);
/* Returns the bytes of memory in use. */
size_t zn_frame_builder_memory(const zn_frame_builder *b);

/* Returns the place of the next frame, for the caller to fill; with `async` for another thread to
 * write, which needs zn_frame_builder_init. Waits until one is free. */
zn_planned_frame *zn_frame_builder_next(zn_frame_builder *b, bool async);
/* Has that frame written. */
void zn_frame_builder_put(zn_frame_builder *b, bool async);
/* Waits until all frames are written. */
void zn_frame_builder_wait(zn_frame_builder *b);

#endif
