/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the LAYER7 columns of a TCP flow besides its names: requests and responses, the course
 * of a TLS handshake, and the name in the server's certificate, which is a vote of the flow's user
 * in a namespace of its own. Only flow tables with ZN_SET_LAYER7 have them; with others each call
 * costs one test.
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
    ZN_LAYER7_CERTIFICATE_VOTED = 8 /* its name does not wait for evidence any more */
};

/* Looks at one packet of a flow, after analyzer/service and analyzer/names did. */
void zn_layer7_packet(zn_names *names, uint32_t flow, zn_flow *f, const zn_packet *p);
/* Adds the packets of a TCP flow that are still needed to *need. */
void zn_layer7_need(const zn_names *names, const zn_flow *f, zn_watch_need *need);
/* Notes the ClientHello in the first bytes of a client. `details`: of that hello, where they are
 * known; else NULL. */
void zn_layer7_client_hello(zn_names *names, const zn_flow *f, zn_span bytes,
                            const zn_tls_details *details);
/* Suppresses the certificate's name of a closed flow, if it still waits for evidence. */
void zn_layer7_closed(zn_names *names, const zn_flow *f);
/* Frees what is kept of a flow whose record is written. */
void zn_layer7_forget(zn_names *names, const zn_flow *f);

#endif
