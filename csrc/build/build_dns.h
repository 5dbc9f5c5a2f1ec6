/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages (RFC 1035) for anonymized packets (see build/build.h).
 *
 * A query, or the response to a query, has these fields:
 *   - id, flags and counts of the header; type and class of each question; type, class, TTL and
 *     RDLENGTH of each record;
 *   - names in lower case, if build/build_name.h allows them: the name of the first question and
 *     equal names if the choice shows them; names of other owners and targets of CNAME records if
 *     `shared` returns true. Names of other questions are always masked;
 *   - addresses of A and AAAA records (class IN; RFC 3596) after `map`;
 *   - OPT (RFC 6891): lengths of the options, and codes of registered options;
 *   - TYPE65280 (private use, RFC 6895 3.1) in place of the type of any other record, so that no
 *     reader parses its RDATA, which stays zero.
 *
 * A masked name keeps its length and consists of labels of 'x' and the root. A compression pointer
 * (RFC 1035 4.1.4) into a masked name leads to its start. A masked name that is only a pointer to
 * something else leads to the root after the first question. A name whose pointer leads to a masked
 * name is masked. Bytes after the last record stay zero.
 */
#ifndef ZN_BUILD_BUILD_DNS_H
#define ZN_BUILD_BUILD_DNS_H

#include "build/build.h"
#include "util/addr.h"

/* Most questions and records of one message; a longer message is not built. */
#define ZN_BUILD_DNS_PARTS_MAX 512u

/* Parts of a message that may be shown. */
typedef struct zn_build_dns_choice {
    bool name; /* the name of the first question is shown */
    /* Returns true if another name, in lower case and without a final dot, may be shown. NULL: no
     * other name is shown. */
    bool (*shared)(void *context, zn_span name);
    /* Fills *out, which is unset, with the replacement of an address. Zeros are written if *out
     * stays unset or has another IP version, and for all addresses if this is NULL. */
    void (*map)(void *context, const zn_addr *real, zn_addr *out);
    void *context; /* argument of both functions */
} zn_build_dns_choice;

/*
 * Builds a message, without the length that TCP puts before it, into out[message.n], which is zero.
 * Returns false, with all zeros, if the message is not whole, if zn_dns_question_parse does not
 * take it, or if it has more than ZN_BUILD_DNS_PARTS_MAX questions and records. A pointer must lead
 * to an earlier name or to RDATA that is not built.
 */
bool zn_build_dns(zn_span message, const zn_build_dns_choice *choice, uint8_t *out);

#endif
