/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* DNS over HTTPS in clear: the question in a request of HTTP is a name of DNS. */
#ifndef ZN_ANALYZER_DOH_H
#define ZN_ANALYZER_DOH_H

#include "analyzer/names.h"

/* Takes the DNS message in the body of a request. whole: all of it is there. */
void zn_doh_body(const zn_packet_context *s, zn_span message, bool whole);
/* Takes the DNS message in the target of a request, if there is one. */
void zn_doh_target(const zn_packet_context *s, zn_span target);
/* Notes that the body of a request, which has a DNS message, was not read. */
void zn_doh_lost(const zn_packet_context *s);

#endif
