/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/disclosure.h"

#include "util/clock.h"

#define COARSE_TIME_NS (60 * ZN_NS_PER_S)

/* The smallest ceil(2^(k/2)), k >= 0, that is at least x; 0 stays 0. */
static uint64_t round_up_sqrt2(uint64_t x)
{
    const uint64_t sqrt_half_2_64 = UINT64_C(13043817825332782212); /* floor(2^63.5) */
    unsigned bits;
    uint64_t half;
    if (x <= 1)
        return x;
    bits = 64 - (unsigned)__builtin_clzll(x - 1); /* 2^(bits-1) < x <= 2^bits */
    if (bits == 64)
        return UINT64_MAX;
    half = (sqrt_half_2_64 >> (64 - bits)) + 1; /* ceil(2^(bits - 1/2)), an irrational number */
    return x <= half ? half : UINT64_C(1) << bits;
}

static int64_t floor_to_minute(int64_t t_ns)
{
    return t_ns - t_ns % COARSE_TIME_NS;
}

/* The coarse rule for a value of its type. */
#define COARSE(value) _Generic((value), int64_t: floor_to_minute, uint64_t: round_up_sqrt2)(value)

/* ---- COMPUTED: what may be said of a value; of the result, the same ------------------------ */

/* The port links a client's flows. */
static uint16_t disclosed_client_port(const zn_disclosure_case *c, uint16_t port)
{
    return c->keep_client_port ? port : 0;
}

/* So many servers share some ports that those say no more than the protocol. */
static uint16_t disclosed_server_port(const zn_disclosure_case *c, uint16_t port)
{
    bool common = port == 53 || port == 80 || port == 443 || port == 853;
    return !c->withheld || common ? port : 0;
}

static uint8_t disclosed_udp_type(const zn_disclosure_case *c, uint8_t type)
{
    return c->withheld && c->is_dns ? ZN_UDP_DNS : type;
}

/* Without DN-Hunter it is the flow's own name, empty unless that is released. */
static zn_span disclosed_fqdn(const zn_disclosure_case *c, zn_span fqdn)
{
    return c->withheld && c->dn_hunter ? (zn_span){NULL, 0} : fqdn;
}

/* An epoch that begins within a minute says when in that minute the flow began. */
static int64_t disclosed_epoch(const zn_disclosure_case *c, int64_t epoch)
{
    return c->coarse && c->rotate_ns % COARSE_TIME_NS != 0 ? 0 : epoch;
}

/* ---- what a class means in each case: a rule, and the name behind COMPUTED ----------------- */

#define APPLY(...) APPLY_RULE(__VA_ARGS__)
#define APPLY_RULE(rule, what, member) rule(what, member)

#define COARSE_ALWAYS KEEP,
#define COARSE_ROUNDED ROUND,
#define COARSE_EXACT BLANK,
#define COARSE_RELEASED BLANK,
#define COARSE_OWN KEEP,
#define COARSE_COMPUTED(what) COMPUTE, what

#define WITHHELD_ALWAYS STAY,
#define WITHHELD_ROUNDED STAY,
#define WITHHELD_EXACT STAY,
#define WITHHELD_RELEASED WIPE,
#define WITHHELD_OWN STAY,
#define WITHHELD_COMPUTED(what) REPLACE, what

#define NAMED_ALWAYS STAY,
#define NAMED_ROUNDED STAY,
#define NAMED_EXACT STAY,
#define NAMED_RELEASED STAY,
#define NAMED_OWN STAY,
#define NAMED_COMPUTED(what) REPLACE, what

/* Rules of what is made of *r in place. */
#define STAY(what, member)
#define WIPE(what, member) memset(&r->member, 0, sizeof r->member);
#define REPLACE(what, member) r->member = disclosed_##what(c, r->member);

/* Rules of a coarse record: `kept` takes what *r has of a member that is filled for coarse records,
 * and gives it back when *r was wiped. */
#define IS_CORE(member)                                                                            \
    (offsetof(zn_record, member) < offsetof(zn_record, client) ||                                  \
     (offsetof(zn_record, member) - offsetof(zn_record, client)) % sizeof(zn_record_side) <        \
         ZN_RECORD_CORE)
#define TAKE(member) _Static_assert(IS_CORE(member), "kept of a coarse record: is it filled?");
#define BLANK(what, member)
#define KEEP(what, member) TAKE(member) memcpy(&kept.member, &r->member, sizeof r->member);
#define ROUND(what, member) TAKE(member) kept.member = COARSE(r->member);
#define COMPUTE(what, member) TAKE(member) kept.member = disclosed_##what(c, r->member);
#define GIVE_BACK(rule, what, member) rule##_BACK(member)
#define BLANK_BACK(member)
#define KEEP_BACK(member) memcpy(&r->member, &kept.member, sizeof r->member);
#define ROUND_BACK(member) KEEP_BACK(member)
#define COMPUTE_BACK(member) KEEP_BACK(member)
#define APPLY_BACK(...) GIVE_BACK(__VA_ARGS__)

static void keep_coarse(const zn_disclosure_case *c, zn_record *r)
{
    static const zn_record blank; /* copied, as a compiler's memset of these sizes is slower */
    zn_record kept;
    ZN_ASSERT(r->filled_after_core == 0);
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY(COARSE_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
    kept.complete = r->complete; /* where it is written says both */
    kept.midstream = r->midstream;
    memcpy(r, &blank, offsetof(zn_record, client));
    memcpy(&r->client, &blank.client, ZN_RECORD_CORE);
    memcpy(&r->server, &blank.server, ZN_RECORD_CORE);
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY_BACK(COARSE_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
    r->complete = kept.complete;
    r->midstream = kept.midstream;
}

static void keep_exact(const zn_disclosure_case *c, zn_record *r)
{
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY(WITHHELD_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
}

static void keep_all(const zn_disclosure_case *c, zn_record *r)
{
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY(NAMED_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
}

void zn_disclose(const zn_disclosure_case *c, zn_record *r)
{
    if (c->coarse)
        keep_coarse(c, r);
    else if (c->withheld)
        keep_exact(c, r);
    else
        keep_all(c, r);
}
