/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tstat_log.h"

#include "base/packet.h"

/* Bits of the header's #NN#. */
enum { SET_LAYER7 = 2 };

/* How a column's value is found and printed. */
typedef enum column_kind {
    ADDRESS,  /* of a side */
    PORT,     /* of a side */
    COUNT,    /* uint64_t of a side at `offset` */
    SIDE_MS,  /* int64_t ns of a side at `offset`, as ms since the flow's start */
    START_MS, /* the record's first_ns, ms since the epoch */
    END_MS,
    DURATION_MS,
    INTERNAL,   /* of a side, 0 or 1 */
    ENCRYPTED,  /* of a side, 0 or 1 */
    CONNECTION, /* con_t */
    METHOD,     /* http_t */
    NAME_TLS,
    NAME_HTTP,
    NAME_DNS,
    NAME_QUIC,
    SIDE_START_MS,   /* UDP: first datagram of a side, ms since the epoch */
    SIDE_DURATION_S, /* UDP */
    UDP_TYPE,
    FIXED /* `missing`, always */
} column_kind;

typedef struct column {
    const char *name;
    column_kind kind;
    char side; /* 'c', 's' or 0 */
    size_t offset;
    const char *missing;
} column;

#define FIELD(member) offsetof(zn_record_side, member)

#define TCP_SIDE(c)                                                                                \
    {#c "_ip", ADDRESS, (#c)[0], 0, NULL}, {#c "_port", PORT, (#c)[0], 0, NULL},                   \
        {#c "_pkts_all", COUNT, (#c)[0], FIELD(packets), NULL},                                    \
        {#c "_rst_cnt", COUNT, (#c)[0], FIELD(rst), NULL},                                         \
        {#c "_ack_cnt", COUNT, (#c)[0], FIELD(acks), NULL},                                        \
        {#c "_ack_cnt_p", COUNT, (#c)[0], FIELD(acks_pure), NULL},                                 \
        {#c "_bytes_uniq", COUNT, (#c)[0], FIELD(bytes_unique), NULL},                             \
        {#c "_pkts_data", COUNT, (#c)[0], FIELD(packets_data), NULL},                              \
        {#c "_bytes_all", COUNT, (#c)[0], FIELD(bytes_all), NULL},                                 \
        {#c "_pkts_retx", COUNT, (#c)[0], FIELD(packets_retransmitted), NULL},                     \
        {#c "_bytes_retx", COUNT, (#c)[0], FIELD(bytes_retransmitted), NULL},                      \
        {#c "_pkts_ooo", COUNT, (#c)[0], FIELD(packets_out_of_order), NULL},                       \
        {#c "_syn_cnt", COUNT, (#c)[0], FIELD(syn), NULL},                                         \
    {                                                                                              \
        #c "_fin_cnt", COUNT, (#c)[0], FIELD(fin), NULL                                            \
    }

#define UDP_SIDE(c)                                                                                \
    {#c "_ip", ADDRESS, (#c)[0], 0, NULL}, {#c "_port", PORT, (#c)[0], 0, NULL},                   \
        {#c "_first_abs", SIDE_START_MS, (#c)[0], 0, NULL},                                        \
        {#c "_durat", SIDE_DURATION_S, (#c)[0], 0, NULL},                                          \
        {#c "_bytes_all", COUNT, (#c)[0], FIELD(bytes_all), NULL},                                 \
        {#c "_pkts_all", COUNT, (#c)[0], FIELD(packets), NULL},                                    \
        {#c "_isint", INTERNAL, (#c)[0], 0, NULL}, {#c "_iscrypto", ENCRYPTED, (#c)[0], 0, NULL},  \
    {                                                                                              \
        #c "_type", UDP_TYPE, (#c)[0], 0, NULL                                                     \
    }

#define MISSING(name, text) {name, FIXED, 0, 0, text}

static const column tcp_core[] = {
    TCP_SIDE(c),
    TCP_SIDE(s),
    {"first", START_MS, 0, 0, NULL},
    {"last", END_MS, 0, 0, NULL},
    {"durat", DURATION_MS, 0, 0, NULL},
    {"c_first", SIDE_MS, 'c', FIELD(first_data_ns), NULL},
    {"s_first", SIDE_MS, 's', FIELD(first_data_ns), NULL},
    {"c_last", SIDE_MS, 'c', FIELD(last_data_ns), NULL},
    {"s_last", SIDE_MS, 's', FIELD(last_data_ns), NULL},
    {"c_first_ack", SIDE_MS, 'c', FIELD(first_ack_ns), NULL},
    {"s_first_ack", SIDE_MS, 's', FIELD(first_ack_ns), NULL},
    {"c_isint", INTERNAL, 'c', 0, NULL},
    {"s_isint", INTERNAL, 's', 0, NULL},
    {"c_iscrypto", ENCRYPTED, 'c', 0, NULL},
    {"s_iscrypto", ENCRYPTED, 's', 0, NULL},
    {"con_t", CONNECTION, 0, 0, NULL},
    MISSING("p2p_t", "0"),
    {"http_t", METHOD, 0, 0, NULL},
};

static const column tcp_layer7[] = {
    MISSING("http_req_cnt", "0"),
    MISSING("http_res_cnt", "0"),
    MISSING("http_res", "---"),
    MISSING("c_pkts_push", "0"),
    MISSING("s_pkts_push", "0"),
    {"c_tls_SNI", NAME_TLS, 0, 0, NULL},
    MISSING("s_tls_SCN", "-"),
    MISSING("c_npnalpn", "0"),
    MISSING("s_npnalpn", "0"),
    MISSING("tls_session_stat", "0"),
    MISSING("c_last_handshakeT", "0.000000"),
    MISSING("s_last_handshakeT", "0.000000"),
    MISSING("c_appdataT", "0.000000"),
    MISSING("s_appdataT", "0.000000"),
    MISSING("c_appdataB", "0"),
    MISSING("s_appdataB", "0"),
    MISSING("fqdn", "-"),
    MISSING("dns_rslv", "-"),
    MISSING("req_tm", "0.0"),
    MISSING("res_tm", "0.0"),
    {"http_hostname", NAME_HTTP, 0, 0, NULL},
    MISSING("c_TLSvers", "-"),
    MISSING("s_TLSvers", "-"),
    MISSING("dns_enc", "0"),
};

static const column udp[] = {
    UDP_SIDE(c),
    UDP_SIDE(s),
    {"fqdn", NAME_DNS, 0, 0, NULL},
    {"quic_SNI", NAME_QUIC, 0, 0, NULL},
    MISSING("quic_UA", "-"),
    MISSING("quic_c_vers", "-"),
    MISSING("quic_s_vers", "-"),
    MISSING("quic_zero_rtt", "0"),
    MISSING("quic_ech", "0"),
};

#define COLUMNS(table) (sizeof(table) / sizeof((table)[0]))

static void put_literal(zn_text *out, const char *text)
{
    zn_text_bytes(out, text, strnlen(text, 64));
}

static void put_ms(zn_text *out, int64_t ns)
{
    zn_text_fixed(out, ns, 6);
}

static void put_address(zn_text *out, const zn_record_side *side)
{
    char *at;
    if (side->shown == ZN_SHOWN_NOT) {
        zn_text_char(out, '-');
        return;
    }
    at = zn_text_reserve(out, ZN_ADDR_TEXT_MAX);
    if (at != NULL)
        out->n += zn_addr_text(&side->addr, at);
}

static void put_name(zn_text *out, const zn_record *r, zn_name_source source)
{
    if (r->source == source && r->name.n != 0)
        zn_text_span(out, r->name);
    else
        zn_text_char(out, '-');
}

static uint64_t count_at(const zn_record_side *side, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)side + offset, sizeof value);
    return value;
}

static void put_side(zn_text *out, const column *c, const zn_record *r)
{
    const zn_record_side *side = c->side == 'c' ? &r->client : &r->server;
    switch (c->kind) {
    case ADDRESS:
        put_address(out, side);
        break;
    case PORT:
        zn_text_u64(out, side->port);
        break;
    case COUNT:
        zn_text_u64(out, count_at(side, c->offset));
        break;
    case SIDE_MS:
        put_ms(out, (int64_t)count_at(side, c->offset));
        break;
    case INTERNAL:
        zn_text_u64(out, side->internal);
        break;
    case ENCRYPTED:
        zn_text_u64(out, side->shown == ZN_SHOWN_PSEUDONYM);
        break;
    case SIDE_START_MS:
        put_ms(out, side->started ? r->first_ns + side->first_data_ns : 0);
        break;
    case SIDE_DURATION_S: /* nanoseconds to microseconds: Tstat's six decimals of a second */
        zn_text_fixed(out, (side->last_data_ns - side->first_data_ns) / 1000, 6);
        break;
    case UDP_TYPE:
        zn_text_u64(out, side->started ? r->udp_type : ZN_UDP_OTHER);
        break;
    default:
        break;
    }
}

static void put_column(zn_text *out, const column *c, const zn_record *r)
{
    switch (c->kind) {
    case START_MS:
        put_ms(out, r->first_ns);
        break;
    case END_MS:
        put_ms(out, r->last_ns);
        break;
    case DURATION_MS:
        put_ms(out, r->last_ns - r->first_ns);
        break;
    case CONNECTION:
        zn_text_u64(out, r->connection_type);
        break;
    case METHOD:
        zn_text_u64(out, r->http_method);
        break;
    case NAME_TLS:
        put_name(out, r, ZN_SOURCE_TLS);
        break;
    case NAME_HTTP:
        put_name(out, r, ZN_SOURCE_HTTP);
        break;
    case NAME_DNS:
        put_name(out, r, ZN_SOURCE_DNS);
        break;
    case NAME_QUIC:
        put_name(out, r, ZN_SOURCE_QUIC);
        break;
    case FIXED:
        put_literal(out, c->missing);
        break;
    default:
        put_side(out, c, r);
        break;
    }
}

zn_tstat_log zn_tstat_log_of(const zn_record *r)
{
    if (r->proto == ZN_PROTO_UDP)
        return ZN_TSTAT_UDP_COMPLETE;
    if (r->midstream)
        return ZN_TSTAT_NONE;
    return r->complete ? ZN_TSTAT_TCP_COMPLETE : ZN_TSTAT_TCP_NOCOMPLETE;
}

static void put_names(zn_text *out, const column *table, size_t n, size_t *number)
{
    for (size_t i = 0; i < n; i++) {
        if (*number != 0)
            zn_text_char(out, ' ');
        put_literal(out, table[i].name);
        zn_text_char(out, ':');
        zn_text_u64(out, ++*number);
    }
}

void zn_tstat_header(zn_text *out, zn_tstat_log log, bool layer7)
{
    size_t number = 0;
    zn_text_char(out, '#');
    if (log == ZN_TSTAT_UDP_COMPLETE) {
        put_names(out, udp, COLUMNS(udp), &number);
    } else {
        zn_text_char(out, '0');
        zn_text_u64(out, layer7 ? SET_LAYER7 : 0);
        zn_text_char(out, '#');
        put_names(out, tcp_core, COLUMNS(tcp_core), &number);
        if (layer7 && log == ZN_TSTAT_TCP_COMPLETE)
            put_names(out, tcp_layer7, COLUMNS(tcp_layer7), &number);
    }
    zn_text_char(out, '\n');
}

static void put_values(zn_text *out, const column *table, size_t n, const zn_record *r)
{
    for (size_t i = 0; i < n; i++) {
        put_column(out, &table[i], r);
        zn_text_char(out, ' ');
    }
}

void zn_tstat_line(zn_text *out, zn_tstat_log log, bool layer7, const zn_record *r)
{
    if (log == ZN_TSTAT_UDP_COMPLETE) {
        put_values(out, udp, COLUMNS(udp), r);
    } else {
        put_values(out, tcp_core, COLUMNS(tcp_core), r);
        if (layer7 && log == ZN_TSTAT_TCP_COMPLETE)
            put_values(out, tcp_layer7, COLUMNS(tcp_layer7), r);
    }
    if (out->n != 0)
        out->bytes[out->n - 1] = '\n'; /* in place of the last separator */
}

/* Columns whose JSON value is a string. */
static bool is_text(const column *c)
{
    bool dash = c->kind == FIXED && c->missing[0] == '-';
    return dash || (c->kind >= NAME_TLS && c->kind <= NAME_QUIC);
}

static void put_members(zn_text *out, const column *table, size_t n, const zn_record *r)
{
    for (size_t i = 0; i < n; i++) {
        if (table[i].kind == ADDRESS || table[i].kind == PORT)
            continue;
        zn_text_literal(out, ",\"");
        put_literal(out, table[i].name);
        zn_text_literal(out, "\":");
        if (is_text(&table[i]))
            zn_text_char(out, '"');
        put_column(out, &table[i], r);
        if (is_text(&table[i]))
            zn_text_char(out, '"');
    }
}

void zn_tstat_json_members(zn_text *out, bool layer7, const zn_record *r)
{
    put_members(out, tcp_core, COLUMNS(tcp_core), r);
    if (layer7)
        put_members(out, tcp_layer7, COLUMNS(tcp_layer7), r);
}
