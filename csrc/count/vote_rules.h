/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of a probe: how it tells users apart, which votes count, and which key hashes users and
 * names. All probes of a counter must have equal rules. Otherwise one user could count as several,
 * or a client at one probe would be unknown at the other probes. Each vote message has the rules in
 * 64 bits:
 *
 *     0 to 7 bits of an IPv4 user, 1 .. 32    8 to 15 bits of an IPv6 user, 1 .. 128
 *     16 votes need no evidence    17 to 18 a zn_dns_votes    19 internal networks are given
 *     24 to 63 check value of the key
 */
#ifndef ZN_COUNT_VOTE_RULES_H
#define ZN_COUNT_VOTE_RULES_H

#include "util/base.h"

#define ZN_VOTE_RULES_BYTES 3     /* bytes of the options */
#define ZN_VOTE_KEY_CHECK_BYTES 5 /* bytes of the check value, above the options */
#define ZN_VOTE_KEY_CHECK_MASK ((UINT64_C(1) << 8 * ZN_VOTE_KEY_CHECK_BYTES) - 1)
#define ZN_VOTE_RULES_NONE 0 /* no valid rules */
#define ZN_VOTE_RULES_TEXT 256
#define ZN_VOTE_RULES_DNS_MAX 2

typedef struct zn_vote_rules {
    uint8_t user_v4_bits, user_v6_bits;
    bool any_evidence;
    uint8_t dns_votes; /* a zn_dns_votes */
    bool internal_is_set;
    uint64_t key_check; /* hash that identifies the key, within ZN_VOTE_KEY_CHECK_MASK */
} zn_vote_rules;

uint64_t zn_vote_rules_pack(const zn_vote_rules *rules);
/* Reads packed rules; false if they are invalid. */
bool zn_vote_rules_unpack(zn_vote_rules *out, uint64_t packed);
/* Writes into `text`, of ZN_VOTE_RULES_TEXT bytes, the options in which a probe's rules differ from
 * the rules of the counted probes: "its --user-prefix is ...". */
void zn_vote_rules_explain(uint64_t probes, uint64_t counted, char *text);

#endif
