/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of logs that wait for the decision of their batch; of release/log_*.c only. */
#ifndef ZN_RELEASE_LOG_PENDING_H
#define ZN_RELEASE_LOG_PENDING_H

#include "analyzer/hostname.h"
#include "release/log_gate.h"

#define ZN_LOG_NAMES_MAX 2 /* of a row; a row with more is suppressed */
#define ZN_LOG_TEXTS_MAX 3 /* user agents and certificates of a row; more are not written */
#define ZN_LOG_ITEMS_MAX (ZN_LOG_NAMES_MAX + ZN_LOG_TEXTS_MAX)

/* Namespaces of hashes. */
typedef enum zn_log_domain {
    ZN_LOG_IN_NAMES = 'n',
    ZN_LOG_IN_DNS = 'd',
    ZN_LOG_IN_AGENTS = 'g',
    ZN_LOG_IN_CERTIFICATES = 'c',
    ZN_LOG_IN_SERVERS = 's',
    ZN_LOG_IN_DNS_SERVERS = 'r' /* of rows about questions of DNS */
} zn_log_domain;

/* A value that is released if z users share it. */
typedef struct zn_log_item {
    zn_log_cell *cell;
    zn_span text;   /* that is hashed, and written if the value is released */
    uint8_t domain; /* zn_log_domain */
    uint8_t reason; /* zn_log_reason: RELEASED until another reason is found */
} zn_log_item;

/* An address of a row. */
typedef struct zn_log_end {
    bool known;    /* the row has the address */
    bool special;  /* the address of no single host */
    bool internal; /* the address of an internal network */
    bool linked;   /* a pseudonym replaces the address */
    zn_addr address;
    char text[ZN_ADDR_TEXT_MAX]; /* the pseudonym */
    size_t n;
} zn_log_end;

typedef struct zn_log_pending {
    zn_log_row row;
    int64_t t_ns;
    size_t names, items; /* number of name, and of item */
    uint16_t client_port, server_port;
    bool events;           /* the row names the kind of its event */
    bool directed;         /* the first address is the client's for certain */
    bool answered;         /* evidence */
    bool dns;              /* the name comes from a question of DNS */
    bool more_names;       /* than there is space for */
    uint8_t reason;        /* zn_log_reason of the row */
    uint8_t server_reason; /* of the server's address */
    bool exact;            /* the row is written with details */
    zn_log_end client, server;
    zn_log_item item[ZN_LOG_ITEMS_MAX]; /* names first */
    zn_hostname name[ZN_LOG_NAMES_MAX];
    char time_text[48]; /* coarse time */
    size_t time_n;
} zn_log_pending;

/* Settings with which rows are read. */
typedef struct zn_log_rules {
    zn_time_unit unit;
    bool release_all; /* z is 1 */
    bool established, has_evidence, server_decides;
    const zn_net *internal;
    size_t internal_count;
    bool internal_is_set;
    zn_never_list never;
} zn_log_rules;

/* Begins a row. Its arrays are not cleared, because they have counts. */
static inline void zn_log_pending_begin(zn_log_pending *p, const zn_log_row *row)
{
    memset(p, 0, offsetof(zn_log_pending, client));
    memset(&p->client, 0, offsetof(zn_log_end, text));
    memset(&p->server, 0, offsetof(zn_log_end, text));
    p->row = *row;
}

/* Reads the roles of the row that was begun. */
zn_row_fault zn_log_pending_read(const zn_log_rules *rules, zn_log_pending *p);
/* Leaves in the cells of p->row what may be written, by p->exact and the reasons of the values. */
void zn_log_pending_disclose(zn_log_pending *p, zn_time_unit unit);

#endif
