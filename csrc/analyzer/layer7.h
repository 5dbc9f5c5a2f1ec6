/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the LAYER7 columns of a TCP flow need besides its names: requests and responses, the course
 * of a TLS handshake, and the name in the server's certificate, which is a vote of the flow's user
 * in a namespace of its own. For flow tables that were asked for ZN_SET_LAYER7; others cost a look.
 */
#ifndef ZN_ANALYZER_LAYER7_H
#define ZN_ANALYZER_LAYER7_H

#include "analyzer/names.h"
#include "analyzer/watch_need.h"

/* zn_layer7_state.state */
enum {
    ZN_LAYER7_CLIENT_READ = 1,
    ZN_LAYER7_SERVER_FOUND = 2,
    ZN_LAYER7_CERTIFICATE_DONE = 4,
    ZN_LAYER7_CERTIFICATE_VOTED = 8 /* its name waits for nothing any more */
};

/* Looks at one packet of a flow, after analyzer/service and analyzer/names did. */
void zn_layer7_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p);
/* What is still needed of a TCP flow. */
void zn_layer7_need(const zn_names *names, const zn_flow *f, zn_watch_need *need);
/* The first bytes of a client, which hold a whole ClientHello. `details`: of it, where they are
 * known. */
void zn_layer7_client_hello(zn_names *names, const zn_flow *f, zn_span bytes,
                            const zn_tls_details *details);
/* The flow is closed: what waits for evidence is suppressed. */
void zn_layer7_closed(zn_names *names, const zn_flow *f);
/* The flow's record is written: frees what it held. */
void zn_layer7_forget(zn_names *names, const zn_flow *f);

#endif
