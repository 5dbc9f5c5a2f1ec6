/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of a flow's QUIC packets for Tstat's QUIC columns: versions, 0-RTT packets, the length of
 * an Encrypted Client Hello, and the user agent, which is a vote of the flow's user in a namespace
 * of its own.
 */
#ifndef ZN_ANALYZER_QUIC_ANALYZER_H
#define ZN_ANALYZER_QUIC_ANALYZER_H

#include "analyzer/names.h"

typedef struct zn_quic_facts {
    /* version in the last long header of client and server; 0 if no long header came */
    uint32_t version[2];
    uint32_t agent;     /* zn_name_store entry of the user agent, 0: none */
    uint16_t zero_rtt;  /* packets, up to UINT16_MAX */
    uint16_t ech_bytes; /* of the extension's data */
    bool both_ways;     /* the server answered in the client's version */
} zn_quic_facts;

/* Returns the facts of a closed flow whose record is not written yet; NULL if the flow is not
 * QUIC. */
const zn_quic_facts *zn_quic_facts_of(const zn_names *names, const zn_flow *f);

#endif
