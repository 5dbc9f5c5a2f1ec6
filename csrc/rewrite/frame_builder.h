/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the frames of packets that leave. The rewriter plans the frames in their order, each with
 * its place in the text of its output. A planned frame has everything that is needed to write it.
 * So with several workers any thread can write it, while the rewriter plans further frames.
 *
 * Between zn_frame_builder_put and zn_frame_builder_wait the text must not move. One thread calls
 * these functions.
 */
#ifndef ZN_REWRITE_FRAME_BUILDER_H
#define ZN_REWRITE_FRAME_BUILDER_H

#include "build/build_encapsulation.h"
#include "output/packet_file.h"
#include "util/pool.h"

/* Planned frame. Another processor reads two cache lines of most frames. */
typedef struct zn_planned_frame {
    _Alignas(ZN_CACHE_LINE) zn_build_headers headers; /* without MAC addresses and options */
    int64_t t_ns;
    uint8_t *at; /* start of its record */
    /* Range of its payload that is written already, or empty. The rest is zeros. */
    uint16_t written_from, written_end;
    uint8_t macs; /* zn_packet_macs */
    bool from_inside;
    bool pcapng : 1, cut : 1, has_outer : 1;
    _Alignas(ZN_CACHE_LINE) uint8_t options[ZN_BUILD_OPTIONS_MAX]; /* headers.option_bytes */
    zn_build_encapsulation outer; /* outer headers of the packet, with has_outer */
} zn_planned_frame;
_Static_assert(offsetof(zn_planned_frame, options) == 2 * ZN_CACHE_LINE, "what most frames need");

/* Returns the bytes of all headers of a frame. */
static inline uint32_t zn_planned_frame_headers(const zn_planned_frame *f)
{
    return zn_build_headers_bytes(&f->headers) +
           (f->has_outer ? zn_build_encapsulation_bytes(&f->outer) : 0);
}

/* Returns the head of the record of a frame with this number of header bytes. */
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
    zn_planned_frame frame; /* next frame, if frames are written at once */
    zn_pool *pool;          /* NULL: frames are written at once */
    zn_frame_portion *ring;
    uint32_t current; /* index in the ring of the portion that is being filled */
} zn_frame_builder;

/* Lets the threads of a pool write frames; *b is zero. Without this call, frames are written at
 * once. Returns 0, or -ZN_ERR_CAPACITY with *err filled. */
int zn_frame_builder_init(zn_frame_builder *b, zn_pool *pool, zn_error *err);
void zn_frame_builder_fini(zn_frame_builder *b);
/* Returns the bytes of memory in use. */
size_t zn_frame_builder_memory(const zn_frame_builder *b);

/* Returns the next frame, which the caller fills. With `async`, which needs zn_frame_builder_init,
 * another thread writes it. Waits until a frame is free. */
zn_planned_frame *zn_frame_builder_next(zn_frame_builder *b, bool async);
/* Writes that frame, or queues it with `async`. */
void zn_frame_builder_put(zn_frame_builder *b, bool async);
/* Waits until all frames are written. */
void zn_frame_builder_wait(zn_frame_builder *b);

#endif
