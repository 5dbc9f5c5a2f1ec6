/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A client's TCP bytes in their order, message by message to the analyzers of the table. */
#ifndef ZN_ANALYZER_TCP_STREAM_H
#define ZN_ANALYZER_TCP_STREAM_H

#include "analyzer/analyzer.h"

#define ZN_SEARCH_TRIES 15 /* segments of an unrecognised flow whose start is looked at */

/* A segment with payload. */
void zn_tcp_stream_segment(const zn_packet_context *s);
/* The flow closed: reads a message that never became whole. s->p has the time of the client's last
 * bytes, and none. */
void zn_tcp_stream_closed(const zn_packet_context *s);

#endif
