/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A client's TCP bytes in their order, message by message to the analyzers of the table. */
#ifndef ZN_ANALYZER_TCP_STREAM_H
#define ZN_ANALYZER_TCP_STREAM_H

#include "analyzer/analyzer.h"

#define ZN_SEARCH_TRIES 15 /* segments of an unrecognised flow whose start is looked at */

/* Takes a segment of the flow; one without payload is ignored. */
void zn_tcp_stream_segment(const zn_packet_context *s);
/* Returns whether the last sequence number of the client shows that it sent bytes from `seq` on. */
bool zn_tcp_stream_sent_from(const zn_flow *f, uint32_t seq);
/* Reads a message that never became whole, when the flow closed, and takes note of missing bytes at
 * the end. s->p has no payload, and the time of the client's last bytes. */
void zn_tcp_stream_closed(const zn_packet_context *s);

#endif
