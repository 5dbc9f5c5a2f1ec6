/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question of a DNS message (RFC 1035 4.1). Only the first question whose name is spelled out
 * counts: no implementation sends a second one. `more` says whether one is there.
 */
#ifndef ZN_PROTO_DNS_H
#define ZN_PROTO_DNS_H

#include "util/addr.h"
#include "util/cursor.h"

/* Questions of a message: clients send one, some probes send several, thousands are no DNS. */
#define ZN_DNS_QUESTIONS_MAX 16u
#define ZN_DNS_NAME_MAX                                                                            \
    253 /* as text: 255 bytes on the wire (RFC 1035 2.3.4); longer is malformed */

typedef struct zn_dns_question {
    uint16_t id;
    bool response; /* QR */
    uint8_t opcode;
    uint16_t type, class;
    uint8_t name_bytes;            /* 0: the root */
    uint8_t name[ZN_DNS_NAME_MAX]; /* labels joined by dots, case as sent, no final dot */
    bool more;     /* other questions follow, about other names, which are not read */
    bool name_odd; /* a label holds a dot or a byte outside 0x21-0x7e: it has no text form */
    uint16_t end;  /* offset of the first byte after the question in the message */
} zn_dns_question;

/*
 * Parses a DNS message's header and first question into *out (copied, nothing borrowed). Returns
 * ZN_DONE, ZN_NEED_MORE (whole is false and bytes are missing), ZN_MALFORMED, or ZN_OTHER when the
 * header cannot be a query's or response's (no question, an unassigned opcode), the class is
 * unassigned, or a query with answers is no row of the records that it counts; *out is then all
 * zero. A compression pointer in the first
 * name could only point forward (RFC 1035 4.1.4 lets it point to earlier bytes only, which are the
 * header). Such a question is skipped, and a message that has no other question is malformed.
 */
zn_parse zn_dns_question_parse(zn_span message, bool whole, zn_dns_question *out);

/*
 * Parses the message at the start of a TCP stream's bytes, which comes after its length (RFC 1035
 * 4.2.2), as zn_dns_question_parse does. *used is the length of both, which may exceed the bytes;
 * it is 0 if the length is not all there. Returns ZN_NEED_MORE if the end of the question is
 * missing, and ZN_OTHER if the length is too small for a message.
 */
zn_parse zn_dns_tcp_question_parse(zn_span bytes, zn_dns_question *out, size_t *used);

/* ---- the addresses in the answers of a response (RFC 1035 4.1.3, RFC 3596 2.2) --------------- */

#define ZN_DNS_ADDRESSES 32 /* read of one response; resolvers send a handful */

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
