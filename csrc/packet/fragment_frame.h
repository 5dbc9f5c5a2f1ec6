/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame of an IP fragment, for packet output: each fragment leaves in a frame of its own. The
 * fragment waits for others, or completes the datagram whose packet comes next.
 */
#ifndef ZN_PACKET_FRAGMENT_FRAME_H
#define ZN_PACKET_FRAGMENT_FRAME_H

#include "zanon/zanon.h"

typedef struct zn_fragment_frame {
    int64_t t_ns;
    zn_span ip;         /* IP headers of the fragment */
    uint32_t id;        /* IP identification */
    uint32_t bytes;     /* bytes of the datagram in this fragment */
    uint32_t datagram;  /* zn_datagram.entry */
    uint32_t fragments; /* fragments of the UDP datagram that this fragment completes; 0: none */
    uint32_t before;    /* packets of the group that come before this frame */
    uint16_t offset;    /* offset of these bytes in the datagram */
    uint8_t ttl;
    bool v6;
    bool more;       /* true if more fragments of the datagram follow */
    bool has_layers; /* true if headers around the fragment were noted */
} zn_fragment_frame;

#endif
