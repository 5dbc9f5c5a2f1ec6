/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A capture, its filter (or NULL), and how many frames of which link type it held. */
#ifndef ZN_ENGINE_SOURCE_H
#define ZN_ENGINE_SOURCE_H

#include "capture/capture.h"
#include "capture/filter.h"

#define ZN_SOURCE_LINKS 16

typedef struct zn_source {
    zn_capture *capture;
    zn_filter *filter;
    uint32_t link_type[ZN_SOURCE_LINKS];
    uint64_t link_frames[ZN_SOURCE_LINKS];
    uint32_t links;
} zn_source;

/* Reads as zn_capture_next does, and returns what that returns; leaves the frames that pass the
 * filter, *passed of them. */
int zn_source_read(zn_source *source, zn_frame *frames, int max, size_t *passed, zn_error *err);

#endif
