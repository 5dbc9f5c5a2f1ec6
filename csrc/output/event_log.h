/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and observations as rows of fixed size, for programs that embed the engine. A row has the
 * values of a line of the JSON logs; suppressed values are zero. Python makes its NumPy types from
 * the layouts here.
 */
#ifndef ZN_OUTPUT_EVENT_LOG_H
#define ZN_OUTPUT_EVENT_LOG_H

#include "output/columns.h"
#include "output/format.h"

#define ZN_EVENT_NAME_MAX 253 /* a hostname without its final dot */
#define ZN_EVENT_FIELDS_MAX 32

/* One released observation. */
typedef struct zn_event_observation {
    int64_t t_ns;                 /* ns since the Unix epoch */
    uint8_t client[16];           /* pseudonym; IPv4 as ::ffff:a.b.c.d, network order */
    uint8_t client_shown;         /* zn_disclosure */
    uint8_t name_source;          /* zn_name_source */
    uint8_t name_level;           /* zn_name_level */
    uint8_t namespace;            /* zn_space */
    char name[ZN_EVENT_NAME_MAX]; /* padded with zeros */
} zn_event_observation;

/* A field of a row. */
typedef struct zn_event_field {
    const char *name, *format; /* NumPy's format, such as "i8" or "S253" */
    size_t offset, size;       /* in bytes */
    const zn_column *column;   /* the value, in the row of a record */
} zn_event_field;

typedef struct zn_event_row {
    zn_event_field field[ZN_EVENT_FIELDS_MAX];
    size_t count, bytes;
} zn_event_row;

/* Lay out the row of one flow, from columns of release/columns.h, and zn_event_observation. */
void zn_event_record_row(zn_event_row *out);
void zn_event_observation_row(zn_event_row *out);

#endif
