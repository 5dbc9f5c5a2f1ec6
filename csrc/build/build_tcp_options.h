/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the TCP options of an anonymized segment: maximum segment size (RFC 9293 3.2), window
 * scale and timestamps (RFC 7323), SACK permitted and SACK blocks (RFC 2018). No-operation options
 * stand in place of all others, such as cookies of Fast Open, addresses of Multipath TCP, and
 * digests; also of an option that does not fit, and of what follows it.
 */
#ifndef ZN_BUILD_BUILD_TCP_OPTIONS_H
#define ZN_BUILD_BUILD_TCP_OPTIONS_H

#include "util/cursor.h"

typedef struct zn_build_tcp_options {
    uint32_t seq_shift; /* added to SACK blocks: of the numbers that the other side sends */
    bool timestamps;    /* shown, with these added to the sender's own and to the echoed one */
    uint32_t own_shift, echo_shift;
} zn_build_tcp_options;

/* Writes options.n bytes to `out`. Returns false when they are all no-operation. */
bool zn_build_tcp_options_put(zn_span options, const zn_build_tcp_options *how, uint8_t *out);

/* Changes a SACK block, of which `edge` has the first number and the one behind the last. Returns
 * false where no-operation options take its place. */
typedef bool (*zn_build_sack_map)(const void *context, uint32_t edge[2]);

/* Changes the SACK blocks of n bytes of options that zn_build_tcp_options_put wrote. */
void zn_build_tcp_options_map_sack(uint8_t *options, size_t n, zn_build_sack_map map,
                                   const void *context);

#endif
