/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blanks what a filled record may not disclose beside a withheld name, by the disclosure classes of
 * release/columns.h, and shortens times and counts by its kinds. Knows no flow and no z-table: the
 * caller describes the case.
 */
#ifndef ZN_RELEASE_DISCLOSURE_H
#define ZN_RELEASE_DISCLOSURE_H

#include "release/policy.h"
#include "release/record.h"

#define ZN_COARSE_TIME_NS (60 * ZN_NS_PER_S) /* times of coarse records are multiples of it */

/* The case of one record. */
typedef struct zn_disclosure_case {
    const zn_policy *policy;
    bool withheld;         /* a name of the flow is withheld */
    bool coarse;           /* one is, and measurements must not be exact then */
    bool keep_client_port; /* the operator asked for it, and nothing is withheld */
    bool is_dns;           /* Tstat's type of the flow depends on the name */
} zn_disclosure_case;

/* Returns 2^(bits - 1/2), rounded up; bits: 1 .. 63. With 64 it is the largest coarse count. */
static inline uint64_t zn_coarse_half_power(unsigned bits)
{
    const uint64_t sqrt_half_2_64 = UINT64_C(13043817825332782212); /* floor(2^63.5) */
    return bits >= 64 ? UINT64_MAX : (sqrt_half_2_64 >> (64 - bits)) + 1;
}

/* Blanks in a filled record what may not be disclosed in this case. A record that becomes coarse
 * has r->filled_after_core 0, and keeps a column only where its class says so. In any other one,
 * times and counts are no more exact than the policy has them. */
void zn_disclose(const zn_disclosure_case *c, zn_record *r);

/* Blank in a record, and in a released observation, what tells whose it is. */
void zn_record_hide_client(zn_record *r);
void zn_release_hide_client(zn_release *r);

#endif
