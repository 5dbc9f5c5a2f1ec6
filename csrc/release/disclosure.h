/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a filled record may say beside a withheld name, by the disclosure classes of
 * release/columns.h. Knows no flow and no z-table: who calls says what the case is.
 */
#ifndef ZN_RELEASE_DISCLOSURE_H
#define ZN_RELEASE_DISCLOSURE_H

#include "release/record.h"

/* The case of one record. */
typedef struct zn_disclosure_case {
    bool withheld;         /* a name of the flow is */
    bool coarse;           /* and measurements are not to be exact then */
    bool keep_client_port; /* the operator asked for it, and nothing is withheld */
    bool is_dns;           /* Tstat's type of the flow depends on the name */
    bool dn_hunter;        /* fqdn is what DNS said of the server's address */
    int64_t rotate_ns;     /* length of a key's epoch */
} zn_disclosure_case;

/* Leaves of a filled record what may be said in this case. Of a coarse one r->filled_after_core is
 * 0, and a column stays only where its class says so. */
void zn_disclose(const zn_disclosure_case *c, zn_record *r);

#endif
