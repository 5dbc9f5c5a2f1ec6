/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/columns.h"

#define SIDE(member) offsetof(zn_record_side, member)
#define TOTAL(member) offsetof(zn_record, member)
#define OF_SIDE(letter, text, kind, member)                                                        \
    {#letter "_" text, ZN_COLUMN_##kind, (#letter)[0], SIDE(member), NULL}
#define OF_FLOW(text, kind, member) {text, ZN_COLUMN_##kind, 0, TOTAL(member), NULL}
#define COUNT(letter, text, member) OF_SIDE(letter, text, COUNT, member)
#define BYTES(letter, text, member) OF_SIDE(letter, text, BYTES, member)
#define MS(letter, text, member) OF_SIDE(letter, text, MS, member)
#define ZERO(text) {text, ZN_COLUMN_NO_COUNT, 0, 0, NULL}
/* Text, or an address; "-" where there is none. */
#define TEXT(text, kind, member) {text, ZN_COLUMN_##kind, 0, TOTAL(member), "-"}
#define TEXT_OF(letter, text, kind, member)                                                        \
    {#letter "_" text, ZN_COLUMN_##kind, (#letter)[0], SIDE(member), "-"}

#define TCP_SIDE(c)                                                                                \
    TEXT_OF(c, "ip", ADDRESS, addr), OF_SIDE(c, "port", PORT, port),                               \
        COUNT(c, "pkts_all", packets), COUNT(c, "rst_cnt", rst), COUNT(c, "ack_cnt", acks),        \
        COUNT(c, "ack_cnt_p", acks_pure), BYTES(c, "bytes_uniq", bytes_unique),                    \
        COUNT(c, "pkts_data", packets_data), BYTES(c, "bytes_all", bytes_all),                     \
        COUNT(c, "pkts_retx", packets_retransmitted), BYTES(c, "bytes_retx", bytes_retransmitted), \
        COUNT(c, "pkts_ooo", packets_out_of_order), COUNT(c, "syn_cnt", syn),                      \
        COUNT(c, "fin_cnt", fin)

#define E2E_SIDE(c)                                                                                \
    MS(c, "rtt_avg", rtt_mean_ns), MS(c, "rtt_min", rtt_min_ns), MS(c, "rtt_max", rtt_max_ns),     \
        MS(c, "rtt_std", rtt_deviation_ns), COUNT(c, "rtt_cnt", rtt_count),                        \
        COUNT(c, "ttl_min", ttl_min), COUNT(c, "ttl_max", ttl_max)

#define OPTIONS_SIDE(c)                                                                            \
    COUNT(c, "f1323_opt", scale_seen), COUNT(c, "tm_opt", timestamps), COUNT(c, "win_scl", scale), \
        COUNT(c, "sack_opt", sack_permitted), COUNT(c, "sack_cnt", sacks), COUNT(c, "mss", mss),   \
        COUNT(c, "mss_max", segment_max), COUNT(c, "mss_min", segment_min),                        \
        COUNT(c, "win_max", window_max), COUNT(c, "win_min", window_min),                          \
        COUNT(c, "win_0", window_zero), COUNT(c, "cwin_max", flight_max),                          \
        COUNT(c, "cwin_min", flight_min), COUNT(c, "cwin_ini", flight_first),                      \
        COUNT(c, "pkts_rto", anomalies[0]), COUNT(c, "pkts_fs", anomalies[1]),                     \
        COUNT(c, "pkts_reor", anomalies[2]), COUNT(c, "pkts_dup", anomalies[3]),                   \
        COUNT(c, "pkts_unk", anomalies[4]), COUNT(c, "pkts_fc", anomalies[5]),                     \
        COUNT(c, "pkts_unrto", anomalies[6]), COUNT(c, "pkts_unfs", anomalies[7]),                 \
        COUNT(c, "syn_retx", flags_moved)

#define UDP_SIDE(c)                                                                                \
    TEXT_OF(c, "ip", ADDRESS, addr), OF_SIDE(c, "port", PORT, port),                               \
        {#c "_first_abs", ZN_COLUMN_SIDE_START_MS, (#c)[0], SIDE(first_data_ns), "0.000000"},      \
        OF_SIDE(c, "durat", SIDE_DURATION_S, last_data_ns), BYTES(c, "bytes_all", bytes_all),      \
        COUNT(c, "pkts_all", packets), OF_SIDE(c, "isint", INTERNAL, internal),                    \
        OF_SIDE(c, "iscrypto", ENCRYPTED, disclosure), OF_SIDE(c, "type", UDP_TYPE, udp_type)

static const zn_column core[] = {
    TCP_SIDE(c),
    TCP_SIDE(s),
    OF_FLOW("first", START_MS, first_ns),
    OF_FLOW("last", END_MS, last_ns),
    OF_FLOW("durat", DURATION_MS, last_ns),
    MS(c, "first", first_data_ns),
    MS(s, "first", first_data_ns),
    MS(c, "last", last_data_ns),
    MS(s, "last", last_data_ns),
    MS(c, "first_ack", first_ack_ns),
    MS(s, "first_ack", first_ack_ns),
    OF_SIDE(c, "isint", INTERNAL, internal),
    OF_SIDE(s, "isint", INTERNAL, internal),
    OF_SIDE(c, "iscrypto", ENCRYPTED, disclosure),
    OF_SIDE(s, "iscrypto", ENCRYPTED, disclosure),
    OF_FLOW("con_t", CONNECTION, connection_type),
    ZERO("p2p_t"),
    OF_FLOW("http_t", METHOD, http_method),
};

static const zn_column e2e[] = {E2E_SIDE(c), E2E_SIDE(s)};

static const zn_column p2p[] = {
    ZERO("p2p_st"),   ZERO("ed2k_data"), ZERO("ed2k_sig"),
    ZERO("ed2k_c2s"), ZERO("ed2k_c2c"),  ZERO("ed2k_chat"),
};

static const zn_column options[] = {OPTIONS_SIDE(c), OPTIONS_SIDE(s)};

static const zn_column layer7[] = {
    OF_FLOW("http_req_cnt", TOTAL, http_requests),
    OF_FLOW("http_res_cnt", TOTAL, http_responses),
    {"http_res", ZN_COLUMN_STATUS, 0, TOTAL(http_status), "---"},
    COUNT(c, "pkts_push", messages),
    COUNT(s, "pkts_push", messages),
    TEXT("c_tls_SNI", NAME_TLS, name),
    TEXT("s_tls_SCN", TEXT, certificate),
    COUNT(c, "npnalpn", protocols),
    COUNT(s, "npnalpn", protocols),
    OF_FLOW("tls_session_stat", TOTAL, tls_session),
    MS(c, "last_handshakeT", last_handshake_ns),
    MS(s, "last_handshakeT", last_handshake_ns),
    MS(c, "appdataT", appdata_ns),
    MS(s, "appdataT", appdata_ns),
    COUNT(c, "appdataB", appdata_bytes),
    COUNT(s, "appdataB", appdata_bytes),
    TEXT("fqdn", TEXT, fqdn),
    TEXT("dns_rslv", RESOLVER, resolver),
    {"req_tm", ZN_COLUMN_WHEN, 0, TOTAL(resolver_query_ns), "0.0"},
    {"res_tm", ZN_COLUMN_WHEN, 0, TOTAL(resolver_answer_ns), "0.0"},
    TEXT("http_hostname", NAME_HTTP, name),
    TEXT_OF(c, "TLSvers", VERSIONS, tls_version),
    TEXT_OF(s, "TLSvers", VERSIONS, tls_version),
    OF_FLOW("dns_enc", RESOLVER_ENCRYPTED, resolver_disclosure),
};

static const zn_column udp[] = {
    UDP_SIDE(c),
    UDP_SIDE(s),
    TEXT("fqdn", TEXT, fqdn),
    TEXT("quic_SNI", NAME_QUIC, name),
    TEXT("quic_UA", TEXT, user_agent),
    {"quic_c_vers", ZN_COLUMN_QUIC_VERSION, 'c', SIDE(quic_version), "-"},
    {"quic_s_vers", ZN_COLUMN_QUIC_VERSION, 's', SIDE(quic_version), "-"},
    OF_FLOW("quic_zero_rtt", TOTAL, quic_zero_rtt),
    OF_FLOW("quic_ech", TOTAL, quic_ech_bytes),
};

static void append(zn_log_columns *out, const zn_column *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out->at[out->n++] = &table[i];
}

#define APPEND(out, table) append((out), (table), sizeof(table) / sizeof((table)[0]))

_Static_assert(sizeof(core) + sizeof(e2e) + sizeof(p2p) + sizeof(options) + sizeof(layer7) <=
                   ZN_COLUMNS_MAX * sizeof(zn_column),
               "every set finds room");

void zn_log_columns_tcp(zn_log_columns *out, unsigned sets)
{
    out->n = 0;
    APPEND(out, core);
    if ((sets & ZN_SET_E2E) != 0)
        APPEND(out, e2e);
    if ((sets & ZN_SET_P2P) != 0)
        APPEND(out, p2p);
    if ((sets & ZN_SET_OPTIONS) != 0)
        APPEND(out, options);
    if ((sets & ZN_SET_LAYER7) != 0)
        APPEND(out, layer7);
}

void zn_log_columns_udp(zn_log_columns *out)
{
    out->n = 0;
    APPEND(out, udp);
}
