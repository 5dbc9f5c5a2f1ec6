/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of TLS application data whose bytes stay in packets.
 *
 * Both sides of a stream are followed from record to record. A record is kept if the server chose a
 * suite that encrypts. Up to TLS 1.2, its sender must also have sent a ChangeCipherSpec. All other
 * bytes stay zeros. Nothing more is kept after an alert, which ends a connection or its encryption,
 * or after bytes that are not a record. If the header of a record never comes, later records of the
 * side are not found.
 */
#ifndef ZN_REWRITE_KEPT_RECORDS_H
#define ZN_REWRITE_KEPT_RECORDS_H

#include "proto/tls_suite.h"

#define ZN_RECORD_HEADER 5u

typedef struct zn_kept_side {
    uint32_t next; /* sequence number of the next record */
    uint32_t run;  /* start of the kept records that end at `next`, with has_run */
    uint8_t header[ZN_RECORD_HEADER];
    uint8_t header_bytes; /* bytes of the next record's header so far */
    bool reads, has_run;
    bool changed; /* a ChangeCipherSpec has come */
} zn_kept_side;

typedef struct zn_kept_records {
    zn_kept_side side[2]; /* by tuple index */
    bool begun;           /* the client's hello was read */
    bool encrypts;        /* the suite that the server chose encrypts */
    bool chosen;          /* the ServerHello was read */
    zn_tls_choice choice;
} zn_kept_records;

/* Begins behind the client's ClientHello, whose last byte is before sequence number `next`. */
void zn_kept_records_begin(zn_kept_records *k, unsigned client, uint32_t next);

/* Takes a segment and copies its kept bytes to out[payload.n], which is all zeros. client is the
 * index of the client's side. Returns false if no byte is kept. */
bool zn_kept_records_take(zn_kept_records *k, unsigned side, unsigned client, uint32_t seq,
                          zn_span payload, uint8_t *out);

#endif
