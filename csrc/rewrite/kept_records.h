/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of TLS application data whose bytes packets keep.
 *
 * Both sides of a stream are followed from record to record. A record is kept if the server chose a
 * suite that encrypts, and, up to TLS 1.2, if its sender has sent a ChangeCipherSpec. Whatever is
 * not in such a record stays zero. After an alert, which ends a connection or its encryption, and
 * after bytes that are no record, nothing more is kept. If the bytes of a record's header never
 * come, the side's later records are not found.
 */
#ifndef ZN_REWRITE_KEPT_RECORDS_H
#define ZN_REWRITE_KEPT_RECORDS_H

#include "proto/tls_suite.h"

#define ZN_RECORD_HEADER 5u

typedef struct zn_kept_side {
    uint32_t next; /* sequence number of the next record */
    uint32_t run;  /* start of the kept records that end at `next`, with has_run */
    uint8_t header[ZN_RECORD_HEADER];
    uint8_t header_bytes; /* bytes of the next record's header that have come */
    bool reads, has_run;
    bool changed; /* a ChangeCipherSpec came */
} zn_kept_side;

typedef struct zn_kept_records {
    zn_kept_side side[2]; /* by tuple index */
    bool begun;           /* the client's hello was read */
    bool encrypts;        /* the suite that the server chose does */
    bool chosen;          /* the ServerHello was read */
    zn_tls_choice choice;
} zn_kept_records;

/* Begins with the client's ClientHello, whose last byte is before sequence number `next`. */
void zn_kept_records_begin(zn_kept_records *k, unsigned client, uint32_t next);

/* Takes a segment and copies its kept bytes to out[payload.n], which is all zeros. client: index of
 * the client's side. Returns false if no byte is kept. */
bool zn_kept_records_take(zn_kept_records *k, unsigned side, unsigned client, uint32_t seq,
                          zn_span payload, uint8_t *out);

#endif
