/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One captured frame, as every source delivers it. `data` borrows the source's memory and is valid
 * until the next batch is asked for.
 */
#ifndef ZN_CAPTURE_FRAME_H
#define ZN_CAPTURE_FRAME_H

#include "util/base.h"

#define ZN_FRAME_MAX ((uint32_t)256 << 10) /* longest frame accepted; libpcap's own bound */

typedef struct zn_frame {
    const uint8_t *data;
    int64_t t_ns;       /* ns since the Unix epoch; negative: none, or none that can be held */
    uint32_t captured;  /* bytes at data */
    uint32_t wire;      /* bytes on the wire, >= captured */
    uint32_t link_type; /* LINKTYPE_* of the pcap registry */
} zn_frame;

#endif
