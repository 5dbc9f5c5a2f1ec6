/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and observations as rows of fixed size, for programs that embed the engine. A row holds
 * what a line of the JSON logs holds; what is withheld is zero. The fields are described by one
 * table, from which Python makes its NumPy types.
 */
#ifndef ZN_OUTPUT_EVENT_LOG_H
#define ZN_OUTPUT_EVENT_LOG_H

#include "output/format.h"

#define ZN_EVENT_NAME_MAX 253 /* a hostname without its final dot */

/* One released observation. */
typedef struct zn_event_observation {
    int64_t t_ns;                 /* ns since the Unix epoch */
    uint8_t client[16];           /* pseudonym; IPv4 as ::ffff:a.b.c.d, network order */
    uint8_t client_shown;         /* zn_disclosure */
    uint8_t name_source;          /* zn_name_source */
    char name[ZN_EVENT_NAME_MAX]; /* padded with zeros */
} zn_event_observation;

/* One flow. */
typedef struct zn_event_record {
    int64_t t_start_ns, t_end_ns; /* ns since the Unix epoch */
    int64_t epoch;
    uint64_t c_pkts, s_pkts;   /* packets of the client and of the server */
    uint64_t c_bytes, s_bytes; /* L4 payload */
    uint8_t client[16], server[16];
    uint16_t client_port, server_port;
    uint8_t client_shown, server_shown; /* zn_disclosure */
    uint8_t proto;                      /* 6 or 17 */
    uint8_t complete;                   /* TCP: opened and closed by its handshakes */
    uint8_t ech;                        /* 1: offered */
    uint8_t name_status;                /* zn_name_status */
    uint8_t name_source;                /* zn_name_source */
    char name[ZN_EVENT_NAME_MAX];       /* padded with zeros; empty unless released */
} zn_event_record;

/* A field of a row: its name, its NumPy format such as "i8" or "S253", its offset in bytes. */
typedef struct zn_event_field {
    const char *name, *format;
    size_t offset;
} zn_event_field;

/* The fields of one kind of row; *count of them, in a row of *row_bytes. */
const zn_event_field *zn_event_record_fields(size_t *count, size_t *row_bytes);
const zn_event_field *zn_event_observation_fields(size_t *count, size_t *row_bytes);

#endif
