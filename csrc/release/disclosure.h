/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blanks what a filled record may not disclose beside a withheld name, by the disclosure classes of
 * release/columns.h. Knows no flow and no z-table: the caller describes the case.
 */
#ifndef ZN_RELEASE_DISCLOSURE_H
#define ZN_RELEASE_DISCLOSURE_H

#include "release/record.h"

/* The case of one record. */
typedef struct zn_disclosure_case {
    bool withheld;         /* a name of the flow is withheld */
    bool coarse;           /* one is, and measurements must not be exact then */
    bool keep_client_port; /* the operator asked for it, and nothing is withheld */
    bool is_dns;           /* Tstat's type of the flow depends on the name */
    bool dn_hunter;        /* fqdn is what DNS said of the server's address */
    int64_t rotate_ns;     /* length of a key's epoch */
} zn_disclosure_case;

/* Blanks in a filled record what may not be disclosed in this case. A record that becomes coarse
 * has r->filled_after_core 0, and keeps a column only where its class says so. */
void zn_disclose(const zn_disclosure_case *c, zn_record *r);

#endif
