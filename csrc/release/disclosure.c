/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/disclosure.h"

#include "release/record_copy.h"
#include "util/protocol.h"

#define LEAST_SHORTENED 100 /* counts below say all their digits */

/* ---- times and counts ----------------------------------------------------------------------- */

/* The smallest power of the coarse records' base, as an integer rounded up, that is at least x; 0
 * stays 0. */
static uint64_t coarse_count(const zn_policy *policy, uint64_t x)
{
    static const unsigned bits_of_base[] = {
        [ZN_COARSE_STEPS_SQRT2] = 1, [ZN_COARSE_STEPS_4] = 2, [ZN_COARSE_STEPS_16] = 4};
    unsigned base = bits_of_base[policy->coarse_steps], bits;
    if (x <= 1)
        return x;
    bits = 64 - (unsigned)__builtin_clzll(x - 1); /* 2^(bits-1) < x <= 2^bits */
    bits = (bits + base - 1) / base * base;
    if (bits == 64)
        return UINT64_MAX;
    if (policy->coarse_steps == ZN_COARSE_STEPS_SQRT2) {
        uint64_t half = zn_coarse_half_power(bits);
        return x <= half ? half : UINT64_C(1) << bits;
    }
    return UINT64_C(1) << bits;
}

static int64_t coarse_time(const zn_policy *policy, int64_t t_ns)
{
    (void)policy;
    return zn_policy_time(t_ns, ZN_COARSE_TIME_NS);
}

/* The coarse rule for a value of its type. */
#define COARSE(value)                                                                              \
    _Generic((value), int64_t: coarse_time, uint64_t: coarse_count)(c->policy, value)

/* A count, of which only two digits are disclosed. */
static uint64_t two_digits(uint64_t x)
{
    uint64_t unit = 1;
    while (x / unit >= LEAST_SHORTENED)
        unit *= 10;
    return x - x % unit;
}

/* ---- COMPUTED: what may be said of a value; of the result, the same ------------------------ */

/* Returns whether nothing may tell whose flow it is. */
static bool hides_client(const zn_disclosure_case *c)
{
    return c->coarse && c->policy->coarse_client == ZN_COARSE_CLIENT_NONE;
}

/* The port links a client's flows. */
static uint16_t disclosed_client_port(const zn_disclosure_case *c, uint16_t port)
{
    return c->keep_client_port ? port : 0;
}

static uint16_t disclosed_server_port(const zn_disclosure_case *c, uint16_t port)
{
    return !c->withheld || zn_port_is_common(port) ? port : 0;
}

static uint8_t disclosed_udp_type(const zn_disclosure_case *c, uint8_t type)
{
    return c->withheld && c->is_dns ? ZN_UDP_DNS : type;
}

/* Without DN-Hunter it is the flow's own name, empty unless that is released. */
static zn_span disclosed_fqdn(const zn_disclosure_case *c, zn_span fqdn)
{
    return c->withheld && c->policy->roles->dn_hunter ? (zn_span){NULL, 0} : fqdn;
}

/* An epoch that begins within a minute says when in that minute the flow began. */
static int64_t disclosed_epoch(const zn_disclosure_case *c, int64_t epoch)
{
    int64_t step_ns = c->coarse ? ZN_COARSE_TIME_NS : c->policy->times_ns;
    bool shows_time = step_ns != 0 && c->policy->roles->rotate_ns % step_ns != 0;
    return shows_time || hides_client(c) ? 0 : epoch;
}

/* ---- what a class means in each case: a rule, and the name behind COMPUTED ----------------- */

#define APPLY(...) APPLY_RULE(__VA_ARGS__)
#define APPLY_RULE(rule, what, member) rule(what, member)

#define COARSE_ALWAYS KEEP,
#define COARSE_ROUNDED ROUND,
#define COARSE_EXACT BLANK,
#define COARSE_CLIENT HIDE,
#define COARSE_RELEASED BLANK,
#define COARSE_OWN KEEP,
#define COARSE_COMPUTED(what) COMPUTE, what

#define WITHHELD_ALWAYS STAY,
#define WITHHELD_ROUNDED STAY,
#define WITHHELD_EXACT STAY,
#define WITHHELD_CLIENT STAY,
#define WITHHELD_RELEASED WIPE,
#define WITHHELD_OWN STAY,
#define WITHHELD_COMPUTED(what) REPLACE, what

#define ANYBODYS_ALWAYS STAY,
#define ANYBODYS_ROUNDED STAY,
#define ANYBODYS_EXACT STAY,
#define ANYBODYS_CLIENT WIPE,
#define ANYBODYS_RELEASED STAY,
#define ANYBODYS_OWN STAY,
#define ANYBODYS_COMPUTED(what) STAY,

#define NAMED_ALWAYS STAY,
#define NAMED_ROUNDED STAY,
#define NAMED_EXACT STAY,
#define NAMED_CLIENT STAY,
#define NAMED_RELEASED STAY,
#define NAMED_OWN STAY,
#define NAMED_COMPUTED(what) REPLACE, what

/* Changes that are made to *r in place. */
#define STAY(what, member)
#define WIPE(what, member) memset(&r->member, 0, sizeof r->member);
#define REPLACE(what, member) r->member = disclosed_##what(c, r->member);

/* Rules of a coarse record: `kept` takes what *r has of a member that is filled for coarse records,
 * and gives it back when *r was wiped. */
#define IS_CORE(member)                                                                            \
    (offsetof(zn_record, member) < offsetof(zn_record, client) ||                                  \
     (offsetof(zn_record, member) - offsetof(zn_record, client)) % sizeof(zn_record_side) <        \
         ZN_RECORD_CORE)
#define IS_PACKED(member, form, name, packed)                                                      \
    || offsetof(zn_record, packed) == offsetof(zn_record, member)
#define TAKE(member)                                                                               \
    _Static_assert(IS_CORE(member), "kept of a coarse record: is it filled?");                     \
    _Static_assert(false ZN_COARSE_MEMBERS(IS_PACKED, member), "kept of a coarse record");
#define BLANK(what, member)
#define KEEP(what, member) TAKE(member) memcpy(&kept.member, &r->member, sizeof r->member);
#define HIDE(what, member)                                                                         \
    KEEP(what, member)                                                                             \
    if (hides_client(c))                                                                           \
        memset(&kept.member, 0, sizeof kept.member);
#define ROUND(what, member) TAKE(member) kept.member = COARSE(r->member);
#define COMPUTE(what, member) TAKE(member) kept.member = disclosed_##what(c, r->member);
#define GIVE_BACK(rule, what, member) rule##_BACK(member)
#define BLANK_BACK(member)
#define KEEP_BACK(member) memcpy(&r->member, &kept.member, sizeof r->member);
#define HIDE_BACK(member) KEEP_BACK(member)
#define ROUND_BACK(member) KEEP_BACK(member)
#define COMPUTE_BACK(member) KEEP_BACK(member)
#define APPLY_BACK(...) GIVE_BACK(__VA_ARGS__)

static void keep_coarse(const zn_disclosure_case *c, zn_record *r)
{
    static const zn_record blank; /* copied, as a compiler's memset of these sizes is slower */
    zn_record kept;
    ZN_ASSERT(r->filled_after_core == 0);
    if (c->policy->coarse_end == ZN_COARSE_END_NONE)
        r->first_ns = r->last_ns = r->closed_ns;
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY(COARSE_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
    kept.complete = r->complete; /* where it is written says both */
    kept.midstream = r->midstream;
    kept.closed_ns = r->closed_ns;
    memcpy(r, &blank, offsetof(zn_record, client));
    memcpy(&r->client, &blank.client, ZN_RECORD_CORE);
    memcpy(&r->server, &blank.server, ZN_RECORD_CORE);
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY_BACK(COARSE_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
    r->complete = kept.complete;
    r->midstream = kept.midstream;
    r->closed_ns = kept.closed_ns;
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

/* ---- what a kind means where times or counts are not exact ---------------------------------- */

typedef struct member_place {
    zn_column_kind kind;
    uint32_t offset; /* in a record */
} member_place;

static const member_place members[] = {
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    {ZN_COLUMN_##kind, offsetof(zn_record, member)},
    ZN_COLUMNS(COLUMN)
#undef COLUMN
};

#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    _Static_assert(ZN_COLUMN_##kind != ZN_COLUMN_NUMBER ||                                         \
                       sizeof((const zn_record *)NULL)->member == sizeof(uint64_t),                \
                   "what is no count is a CODE");
ZN_COLUMNS(COLUMN)
#undef COLUMN

/* Rounds a time since first_ns down so that it is the difference of two times that are. */
static int64_t since_floored(int64_t since_ns, int64_t first_ns, int64_t step_ns)
{
    return zn_policy_time(first_ns + since_ns, step_ns) - zn_policy_time(first_ns, step_ns);
}

/* Makes times and counts of a record that is not coarse as exact as the policy has them. */
static void shorten(const zn_policy *policy, zn_record *r)
{
    int64_t step_ns = policy->times_ns, first_ns = r->first_ns;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        void *at = (char *)r + members[i].offset;
        int64_t *ns = at;
        uint64_t *number = at;
        switch (members[i].kind) {
        case ZN_COLUMN_NS:
        case ZN_COLUMN_TIME:
        case ZN_COLUMN_WHEN:
        case ZN_COLUMN_DURATION_MS:
            *ns = zn_policy_time(*ns, step_ns);
            break;
        case ZN_COLUMN_SIDE_START:
        case ZN_COLUMN_SIDE_DURATION: /* columns of UDP alone, as the next are TCP's */
            if (r->proto == ZN_PROTO_UDP)
                *ns = since_floored(*ns, first_ns, step_ns);
            break;
        case ZN_COLUMN_MS:
            if (r->proto == ZN_PROTO_TCP && step_ns != 0)
                *ns = 0;
            break;
        case ZN_COLUMN_NUMBER:
            if (policy->digits != 0)
                *number = two_digits(*number);
            break;
        case ZN_COLUMN_CODE:
        case ZN_COLUMN_ADDRESS:
        case ZN_COLUMN_PSEUDONYM:
        case ZN_COLUMN_FLAG:
        case ZN_COLUMN_NAME_SOURCE:
        case ZN_COLUMN_NAME_STATUS:
        case ZN_COLUMN_NAME_LEVEL:
        case ZN_COLUMN_SERVER_LEVEL:
        case ZN_COLUMN_SERVER_LABEL:
        case ZN_COLUMN_ECH:
        case ZN_COLUMN_TEXT:
        case ZN_COLUMN_DIGITS:
        case ZN_COLUMN_NAME_TLS:
        case ZN_COLUMN_NAME_HTTP:
        case ZN_COLUMN_NAME_QUIC:
        case ZN_COLUMN_VERSIONS:
        case ZN_COLUMN_QUIC_VERSION:
        case ZN_COLUMN_UDP_TYPE:
        case ZN_COLUMN_UNMEASURED:
            break;
        }
    }
}

void zn_disclose(const zn_disclosure_case *c, zn_record *r)
{
    if (c->coarse) {
        keep_coarse(c, r);
        return;
    }
    if (c->withheld)
        keep_exact(c, r);
    else
        keep_all(c, r);
    if (c->policy->times_ns != 0 || c->policy->digits != 0)
        shorten(c->policy, r);
}

void zn_record_hide_client(zn_record *r)
{
#define COLUMN(name, kind, type, unit, missing, member, disclosure, description)                   \
    APPLY(ANYBODYS_##disclosure, member)
    ZN_COLUMNS(COLUMN)
#undef COLUMN
    r->client.port = 0;
    r->epoch = 0;
}

void zn_release_hide_client(zn_release *r)
{
    r->client = (zn_addr){{0}};
    r->client_disclosure = ZN_DISCLOSURE_NONE;
}
