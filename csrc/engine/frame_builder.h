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
#ifndef ZN_ENGINE_FRAME_BUILDER_H
#define ZN_ENGINE_FRAME_BUILDER_H

#include "output/packet_file.h"
#include "proto/build_encapsulation.h"
#include "util/pool.h"

/* A frame to write. */
typedef struct zn_planned_frame {
    zn_build_headers headers; /* its MAC addresses and options are the next two */
    uint8_t mac[2][ZN_BUILD_MAC_BYTES];
    uint8_t options[ZN_BUILD_OPTIONS_MAX];
    zn_build_encapsulation outer; /* the headers around the packet, none or more */
    zn_packet_file_frame record;
    uint8_t *at; /* where its record begins */
    bool pcapng;
    bool has_payload; /* it stands there already; false: it is zeros, or cut off */
} zn_planned_frame;

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
