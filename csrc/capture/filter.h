/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BPF capture filter (pcap-filter(7)) over frames, compiled by libpcap once for each link type
 * that a capture turns out to hold.
 */
#ifndef ZN_CAPTURE_FILTER_H
#define ZN_CAPTURE_FILTER_H

#include "zanon/zanon.h"

typedef struct zn_filter zn_filter;

/* Checks and keeps the expression; it is compiled for Ethernet at once, so that a wrong one fails
 * here (ZN_ERR_CONFIG). Returns 0 or a negative zn_err. */
int zn_filter_open(zn_filter **out, const char *expression, zn_error *err);
void zn_filter_close(zn_filter *f);
/* True when the frame passes. A link type for which the expression cannot be compiled passes
 * nothing: what was asked for cannot be told apart there. */
bool zn_filter_pass(zn_filter *f, const zn_frame *frame);

#endif
