/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages (RFC 1035) for anonymized packets: see build/build.h.
 *
 * Written of a query, or of the response to one:
 *   - the header: id, flags, counts; type and class of each question; of each record type, class,
 *     TTL and RDLENGTH;
 *   - names, in lower case: the first question's and those equal to it when the choice says so;
 *     other owners' and those that CNAME records lead to when `shared` says so; and only names that
 *     build/build_name.h allows. Other questions' never;
 *   - addresses of A and AAAA records (class IN; RFC 3596), as `map` gives them;
 *   - of OPT (RFC 6891) the lengths of the options, and the codes of registered ones;
 *   - instead of the type of any other record, TYPE65280 (private use, RFC 6895 3.1), so that no
 *     reader looks for a form in its RDATA, which stays zero.
 *
 * Of a masked name the bytes are as many: labels of 'x' and the root. A compression pointer
 * (RFC 1035 4.1.4) to it, or into it, leads to its start. A masked name that is nothing but a
 * pointer to something else leads to the root after the first question. A name whose pointer leads
 * to a masked one is masked. Bytes after the last record stay zero.
 */
#ifndef ZN_BUILD_BUILD_DNS_H
#define ZN_BUILD_BUILD_DNS_H

#include "build/build.h"
#include "util/addr.h"

/* Questions and records of one message: a longer one is not built. */
#define ZN_BUILD_DNS_PARTS_MAX 512u

/* What may be shown of a message. */
typedef struct zn_build_dns_choice {
    bool name; /* the first question's name */
    /* Returns whether another name may be shown. Lower case, without a final dot. NULL: none. */
    bool (*shared)(void *context, zn_span name);
    /* Fills *out, which is unset, with what stands for an address. Left unset, or of the other
     * family, it is written as zeros. NULL: all are. */
    void (*map)(void *context, const zn_addr *real, zn_addr *out);
    void *context; /* of both */
} zn_build_dns_choice;

/*
 * Builds a message, without the length that TCP puts before it, into out[message.n], which is zero.
 * Returns false, with all zeros, when the message is not whole, is no query or response to one that
 * zn_dns_question_parse takes, has a pointer to anything but an earlier name or RDATA that is not
 * built, or has more than ZN_BUILD_DNS_PARTS_MAX questions and records.
 */
bool zn_build_dns(zn_span message, const zn_build_dns_choice *choice, uint8_t *out);

#endif
