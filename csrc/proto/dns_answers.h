/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses in the answers of a DNS response (RFC 1035 4.1.3, RFC 3596 2.2). */
#ifndef ZN_PROTO_DNS_ANSWERS_H
#define ZN_PROTO_DNS_ANSWERS_H

#include "util/addr.h"
#include "util/cursor.h"

#define ZN_DNS_ADDRESSES 32 /* of one response that are read; resolvers send a handful */

typedef struct zn_dns_addresses {
    size_t n;
    zn_addr at[ZN_DNS_ADDRESSES];
} zn_dns_addresses;

/*
 * Reads the A and AAAA records of class IN in a response's answer section, whatever alias each
 * belongs to: all answer the question. Returns ZN_DONE with *out, ZN_OTHER when the message is no
 * response without error, ZN_NEED_MORE or ZN_MALFORMED; *out then holds nothing.
 */
zn_parse zn_dns_read_addresses(zn_span message, bool whole, zn_dns_addresses *out);

#endif
