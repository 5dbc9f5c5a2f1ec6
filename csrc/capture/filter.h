/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BPF capture filter (pcap-filter(7)) for frames. libpcap compiles it once for each link type
 * that a capture holds.
 */
#ifndef ZN_CAPTURE_FILTER_H
#define ZN_CAPTURE_FILTER_H

#include "zanon/zanon.h"

typedef struct zn_filter zn_filter;

/* Opens a filter with a copy of the expression, which is compiled for Ethernet at once, so that a
 * wrong one fails here (ZN_ERR_CONFIG). Returns 0, or with *out NULL a negative zn_err. */
int zn_filter_open(zn_filter **out, const char *expression, zn_error *err);
/* Frees the filter. NULL is fine. */
void zn_filter_close(zn_filter *f);
/* Returns true when the frame passes. No frame passes of a link type for which the expression
 * cannot be compiled, because what it asks for does not exist there. */
bool zn_filter_pass(zn_filter *f, const zn_frame *frame);

#endif
