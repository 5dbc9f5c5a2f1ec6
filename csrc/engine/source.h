/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Capture and its filter, with the number of frames by link type. */
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

/* Reads up to `max` frames, and returns the result of zn_capture_next. Keeps in `frames` only the
 * *passed frames that pass the filter. */
int zn_source_read(zn_source *source, zn_frame *frames, int max, size_t *passed, zn_error *err);

#endif
