/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the TCP options of an anonymized segment: maximum segment size (RFC 9293 3.2), window
 * scale and timestamps (RFC 7323), SACK permitted and SACK blocks (RFC 2018). No-operation options
 * replace all other options, such as cookies of Fast Open, addresses of Multipath TCP, and digests.
 * They also replace an option that does not fit, and all options behind it.
 */
#ifndef ZN_BUILD_BUILD_TCP_OPTIONS_H
#define ZN_BUILD_BUILD_TCP_OPTIONS_H

#include "util/cursor.h"

typedef struct zn_build_tcp_options {
    uint32_t seq_shift; /* added to SACK blocks: shift of the sequence numbers of the other side */
    bool timestamps;    /* true if timestamps are shown */
    uint32_t own_shift, echo_shift; /* added to the sender's own and to the echoed timestamp */
} zn_build_tcp_options;

/* Writes options.n bytes to `out`. Returns false if all of them are no-operation options. */
bool zn_build_tcp_options_put(zn_span options, const zn_build_tcp_options *how, uint8_t *out);

/* Changes a SACK block. edge has its first sequence number and the sequence number behind its last.
 * Returns false if no-operation options replace the block. */
typedef bool (*zn_build_sack_map)(const void *context, uint32_t edge[2]);

/* Changes the SACK blocks in n bytes of options that zn_build_tcp_options_put wrote. */
void zn_build_tcp_options_map_sack(uint8_t *options, size_t n, zn_build_sack_map map,
                                   const void *context);

#endif
