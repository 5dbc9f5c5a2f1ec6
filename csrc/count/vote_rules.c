/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_rules.h"

#include <stdarg.h>
#include <stdio.h>

#define V6_AT 8
#define EVIDENCE_AT 16
#define DNS_AT 17
#define INTERNAL_AT 19
#define UNUSED (UINT64_C(0xf) << 20)
#define KEY_CHECK_AT (8 * ZN_VOTE_RULES_BYTES)

uint64_t zn_vote_rules_pack(const zn_vote_rules *rules)
{
    return rules->user_v4_bits | (uint64_t)rules->user_v6_bits << V6_AT |
           (uint64_t)rules->any_evidence << EVIDENCE_AT | (uint64_t)rules->dns_votes << DNS_AT |
           (uint64_t)rules->internal_is_set << INTERNAL_AT | rules->key_check << KEY_CHECK_AT;
}

bool zn_vote_rules_unpack(zn_vote_rules *out, uint64_t packed)
{
    out->user_v4_bits = packed & 0xff;
    out->user_v6_bits = packed >> V6_AT & 0xff;
    out->any_evidence = packed >> EVIDENCE_AT & 1;
    out->dns_votes = packed >> DNS_AT & 3;
    out->internal_is_set = packed >> INTERNAL_AT & 1;
    out->key_check = packed >> KEY_CHECK_AT;
    return out->user_v4_bits >= 1 && out->user_v4_bits <= 32 && out->user_v6_bits >= 1 &&
           out->user_v6_bits <= 128 && out->dns_votes <= ZN_VOTE_RULES_DNS_MAX &&
           (packed & UNUSED) == 0;
}

static const char *evidence_name(const zn_vote_rules *rules)
{
    return rules->any_evidence ? "any" : "established";
}

static const char *dns_name(const zn_vote_rules *rules)
{
    static const char *const names[ZN_VOTE_RULES_DNS_MAX + 1] = {"own", "all", "no"};
    return names[rules->dns_votes];
}

static const char *internal_name(const zn_vote_rules *rules)
{
    return rules->internal_is_set ? "given" : "left out";
}

/* A text that grows in a buffer of ZN_VOTE_RULES_TEXT bytes. */
typedef struct explanation {
    char *text;
    size_t n;
} explanation;

__attribute__((format(printf, 2, 3))) static void add(explanation *e, const char *format, ...)
{
    va_list arguments;
    int more;
    va_start(arguments, format);
    more = vsnprintf(e->text + e->n, ZN_VOTE_RULES_TEXT - e->n, format, arguments);
    va_end(arguments);
    ZN_ASSERT(more >= 0 && e->n + (size_t)more < ZN_VOTE_RULES_TEXT);
    e->n += (size_t)more;
}

void zn_vote_rules_explain(uint64_t probes, uint64_t counted, char *text)
{
    zn_vote_rules its, others;
    explanation e = {text, 0};
    add(&e, "its ");
    if (!zn_vote_rules_unpack(&its, probes) || !zn_vote_rules_unpack(&others, counted)) {
        add(&e, "settings are of no kind that is known");
        return;
    }
    if (its.user_v4_bits != others.user_v4_bits || its.user_v6_bits != others.user_v6_bits)
        add(&e, "--user-prefix is %u,%u and not %u,%u, ", its.user_v4_bits, its.user_v6_bits,
            others.user_v4_bits, others.user_v6_bits);
    if (its.any_evidence != others.any_evidence)
        add(&e, "--evidence is %s and not %s, ", evidence_name(&its), evidence_name(&others));
    if (its.dns_votes != others.dns_votes)
        add(&e, "--dns-votes is %s and not %s, ", dns_name(&its), dns_name(&others));
    if (its.internal_is_set != others.internal_is_set)
        add(&e, "--internal is %s and not %s, ", internal_name(&its), internal_name(&others));
    if (its.key_check != others.key_check)
        add(&e, "--key-file holds another key and not theirs, ");
    add(&e, "as at the probes counted before: give all the same");
}
