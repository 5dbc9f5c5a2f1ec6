/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/log_presets.h"

#include "util/cursor.h"

#define TEXT(text) {(const uint8_t *)(text), sizeof(text) - 1}
#define COLUMN(name, role) {TEXT(name), ZN_LOG_##role}
#define ROWS(columns) columns, sizeof(columns) / sizeof((columns)[0])

/* Columns that all logs of connections of Zeek have. Zeek writes id_orig_h if its scope separator
 * is changed. */
#define ZEEK_CONNECTION                                                                            \
    COLUMN("ts", TIME), COLUMN("uid", CORRELATE), COLUMN("id.orig_h", CLIENT),                     \
        COLUMN("id.orig_p", CLIENT_PORT), COLUMN("id.resp_h", SERVER),                             \
        COLUMN("id.resp_p", SERVER_PORT), COLUMN("id_orig_h", CLIENT),                             \
        COLUMN("id_orig_p", CLIENT_PORT), COLUMN("id_resp_h", SERVER),                             \
        COLUMN("id_resp_p", SERVER_PORT)

static const zn_log_column zeek_conn[] = {
    ZEEK_CONNECTION,
    COLUMN("proto", ALWAYS),
    COLUMN("service", DETAIL),
    COLUMN("duration", DETAIL),
    COLUMN("orig_bytes", COUNT),
    COLUMN("resp_bytes", COUNT),
    COLUMN("conn_state", STATE),
    COLUMN("local_orig", ALWAYS),
    COLUMN("local_resp", ALWAYS),
    COLUMN("missed_bytes", DETAIL),
    COLUMN("history", DETAIL),
    COLUMN("orig_pkts", COUNT),
    COLUMN("orig_ip_bytes", COUNT),
    COLUMN("resp_pkts", COUNT),
    COLUMN("resp_ip_bytes", COUNT),
    COLUMN("ip_proto", ALWAYS),
};

static const zn_log_column zeek_dns[] = {
    ZEEK_CONNECTION,           COLUMN("proto", ALWAYS),
    COLUMN("rtt", DETAIL),     COLUMN("query", DNS_NAME),
    COLUMN("qclass", DETAIL),  COLUMN("qclass_name", DETAIL),
    COLUMN("qtype", DETAIL),   COLUMN("qtype_name", DETAIL),
    COLUMN("rcode", ANSWERED), COLUMN("rcode_name", DETAIL),
    COLUMN("AA", DETAIL),      COLUMN("TC", DETAIL),
    COLUMN("RD", DETAIL),      COLUMN("RA", DETAIL),
    COLUMN("Z", DETAIL),       COLUMN("rejected", DETAIL),
    COLUMN("opcode", DETAIL),  COLUMN("opcode_name", DETAIL),
};

static const zn_log_column zeek_ssl[] = {
    ZEEK_CONNECTION,
    COLUMN("version", DETAIL),
    COLUMN("cipher", DETAIL),
    COLUMN("curve", DETAIL),
    COLUMN("server_name", NAME),
    COLUMN("resumed", DETAIL),
    COLUMN("last_alert", DETAIL),
    COLUMN("next_protocol", DETAIL),
    COLUMN("established", ESTABLISHED),
    COLUMN("ssl_history", DETAIL),
    COLUMN("subject", CERTIFICATE),
    COLUMN("issuer", CERTIFICATE),
    COLUMN("sni_matches_cert", DETAIL),
    COLUMN("validation_status", DETAIL),
};

static const zn_log_column zeek_http[] = {
    ZEEK_CONNECTION,
    COLUMN("trans_depth", DETAIL),
    COLUMN("method", DETAIL),
    COLUMN("host", NAME),
    COLUMN("version", DETAIL),
    COLUMN("user_agent", AGENT),
    COLUMN("request_body_len", COUNT),
    COLUMN("response_body_len", COUNT),
    COLUMN("status_code", ANSWERED),
    COLUMN("info_code", DETAIL),
};

static const zn_log_column zeek_quic[] = {
    ZEEK_CONNECTION,
    COLUMN("version", DETAIL),
    COLUMN("server_name", NAME),
    COLUMN("client_protocol", DETAIL),
    COLUMN("history", HANDSHAKE),
};

/* Suricata writes the events of all protocols into one log. An event about QUIC has no sign of the
 * server's answer. */
static const zn_log_column suricata_eve[] = {
    COLUMN("timestamp", TIME),
    COLUMN("flow_id", CORRELATE),
    COLUMN("event_type", EVENT),
    COLUMN("src_ip", CLIENT),
    COLUMN("src_port", CLIENT_PORT),
    COLUMN("dest_ip", SERVER),
    COLUMN("dest_port", SERVER_PORT),
    COLUMN("proto", ALWAYS),
    COLUMN("ip_v", ALWAYS),
    COLUMN("app_proto", DETAIL),
    COLUMN("tls.sni", NAME),
    COLUMN("tls.version", VERSION),
    COLUMN("tls.subject", CERTIFICATE),
    COLUMN("tls.issuerdn", CERTIFICATE),
    COLUMN("tls.session_resumed", DETAIL),
    COLUMN("quic.sni", NAME),
    COLUMN("quic.version", DETAIL),
    COLUMN("http.hostname", NAME),
    COLUMN("http.http_user_agent", AGENT),
    COLUMN("http.http_method", DETAIL),
    COLUMN("http.protocol", DETAIL),
    COLUMN("http.status", ANSWERED),
    COLUMN("http.length", COUNT),
    COLUMN("dns.version", DETAIL),
    COLUMN("dns.type", DETAIL),
    COLUMN("dns.rrname", DNS_NAME),
    COLUMN("dns.rrtype", DETAIL),
    COLUMN("dns.rcode", ANSWERED),
    COLUMN("dns.flags", DETAIL),
    COLUMN("dns.qr", DETAIL),
    COLUMN("dns.aa", DETAIL),
    COLUMN("dns.tc", DETAIL),
    COLUMN("dns.rd", DETAIL),
    COLUMN("dns.ra", DETAIL),
    COLUMN("dns.opcode", DETAIL),
    COLUMN("dns.queries.rrname", DNS_NAME),
    COLUMN("dns.queries.rrtype", DETAIL),
    COLUMN("dns.queries.opcode", DETAIL),
    COLUMN("dns.query.rrname", DNS_NAME),
    COLUMN("dns.query.rrtype", DETAIL),
    COLUMN("dns.query.type", DETAIL),
};

#define NFSTREAM_SIZES(direction)                                                                  \
    COLUMN(direction "_min_ps", DETAIL), COLUMN(direction "_mean_ps", DETAIL),                     \
        COLUMN(direction "_stddev_ps", DETAIL), COLUMN(direction "_max_ps", DETAIL),               \
        COLUMN(direction "_min_piat_ms", DETAIL), COLUMN(direction "_mean_piat_ms", DETAIL),       \
        COLUMN(direction "_stddev_piat_ms", DETAIL), COLUMN(direction "_max_piat_ms", DETAIL),     \
        COLUMN(direction "_syn_packets", DETAIL), COLUMN(direction "_cwr_packets", DETAIL),        \
        COLUMN(direction "_ece_packets", DETAIL), COLUMN(direction "_urg_packets", DETAIL),        \
        COLUMN(direction "_ack_packets", DETAIL), COLUMN(direction "_psh_packets", DETAIL),        \
        COLUMN(direction "_rst_packets", DETAIL), COLUMN(direction "_fin_packets", DETAIL)

static const zn_log_column nfstream[] = {
    COLUMN("src_ip", CLIENT),
    COLUMN("src_port", CLIENT_PORT),
    COLUMN("dst_ip", SERVER),
    COLUMN("dst_port", SERVER_PORT),
    COLUMN("protocol", ALWAYS),
    COLUMN("ip_version", ALWAYS),
    COLUMN("bidirectional_first_seen_ms", TIME),
    COLUMN("bidirectional_last_seen_ms", DETAIL),
    COLUMN("bidirectional_duration_ms", DETAIL),
    COLUMN("bidirectional_packets", COUNT),
    COLUMN("bidirectional_bytes", COUNT),
    COLUMN("src2dst_first_seen_ms", DETAIL),
    COLUMN("src2dst_last_seen_ms", DETAIL),
    COLUMN("src2dst_duration_ms", DETAIL),
    COLUMN("src2dst_packets", COUNT),
    COLUMN("src2dst_bytes", COUNT),
    COLUMN("dst2src_first_seen_ms", DETAIL),
    COLUMN("dst2src_last_seen_ms", DETAIL),
    COLUMN("dst2src_duration_ms", DETAIL),
    COLUMN("dst2src_packets", ANSWERS),
    COLUMN("dst2src_bytes", COUNT),
    NFSTREAM_SIZES("bidirectional"),
    NFSTREAM_SIZES("src2dst"),
    NFSTREAM_SIZES("dst2src"),
    COLUMN("application_name", DETAIL),
    COLUMN("application_category_name", DETAIL),
    COLUMN("application_is_guessed", DETAIL),
    COLUMN("application_confidence", DETAIL),
    COLUMN("requested_server_name", NAME),
    COLUMN("user_agent", AGENT),
};

#define BOTH(column, role) COLUMN("c_" column, role), COLUMN("s_" column, role)

static const zn_log_column tstat[] = {
    COLUMN("c_ip", CLIENT),
    COLUMN("c_port", CLIENT_PORT),
    COLUMN("s_ip", SERVER),
    COLUMN("s_port", SERVER_PORT),
    COLUMN("first", TIME),
    COLUMN("c_first_abs", TIME),
    COLUMN("c_iscrypto", CLIENT_CODED),
    COLUMN("s_iscrypto", SERVER_CODED),
    COLUMN("c_tls_SNI", NAME),
    COLUMN("http_hostname", NAME),
    COLUMN("quic_SNI", NAME),
    COLUMN("s_tls_SCN", CERTIFICATE),
    COLUMN("quic_UA", AGENT),
    COLUMN("c_pkts_all", COUNT),
    COLUMN("s_pkts_all", ANSWERS),
    BOTH("bytes_uniq", COUNT),
    BOTH("pkts_data", COUNT),
    BOTH("bytes_all", COUNT),
    BOTH("isint", ALWAYS),
    BOTH("rst_cnt", DETAIL),
    BOTH("ack_cnt", DETAIL),
    BOTH("ack_cnt_p", DETAIL),
    BOTH("pkts_retx", DETAIL),
    BOTH("bytes_retx", DETAIL),
    BOTH("pkts_ooo", DETAIL),
    BOTH("syn_cnt", DETAIL),
    BOTH("fin_cnt", DETAIL),
    COLUMN("last", DETAIL),
    COLUMN("durat", DETAIL),
    BOTH("first", DETAIL),
    BOTH("last", DETAIL),
    BOTH("first_ack", DETAIL),
    COLUMN("con_t", DETAIL),
    COLUMN("p2p_t", DETAIL),
    COLUMN("http_t", DETAIL),
    BOTH("rtt_avg", DETAIL),
    BOTH("rtt_min", DETAIL),
    BOTH("rtt_max", DETAIL),
    BOTH("rtt_std", DETAIL),
    BOTH("rtt_cnt", DETAIL),
    BOTH("ttl_min", DETAIL),
    BOTH("ttl_max", DETAIL),
    COLUMN("http_req_cnt", DETAIL),
    COLUMN("http_res_cnt", DETAIL),
    COLUMN("http_res", DETAIL),
    BOTH("pkts_push", DETAIL),
    BOTH("npnalpn", DETAIL),
    COLUMN("tls_session_stat", DETAIL),
    BOTH("last_handshakeT", DETAIL),
    BOTH("appdataT", DETAIL),
    BOTH("appdataB", DETAIL),
    BOTH("TLSvers", DETAIL),
    COLUMN("s_first_abs", DETAIL),
    BOTH("durat", DETAIL),
    BOTH("type", DETAIL),
    COLUMN("quic_c_vers", DETAIL),
    COLUMN("quic_s_vers", DETAIL),
    COLUMN("quic_zero_rtt", DETAIL),
    COLUMN("quic_ech", DETAIL),
};

/* Logs of resolvers have no header: the columns are in the order of their forms. */
static const zn_log_column dnstap[] = {
    COLUMN("type", ALWAYS),
    COLUMN("socket_protocol", DETAIL),
    COLUMN("query_address", CLIENT),
    COLUMN("response_address", SERVER),
    COLUMN("response_port", SERVER_PORT),
    COLUMN("time", TIME),
    COLUMN("query_time", DETAIL),
    COLUMN("name", DNS_NAME),
    COLUMN("qtype", DETAIL),
    COLUMN("qclass", DETAIL),
    COLUMN("flags", DETAIL),
    COLUMN("response", ANSWERED),
};

static const zn_log_column bind[] = {
    COLUMN("time", TIME),        COLUMN("category", ALWAYS),
    COLUMN("object", ALWAYS),    COLUMN("client", CLIENT),
    COLUMN("port", CLIENT_PORT), COLUMN("name", DNS_NAME),
    COLUMN("class", DETAIL),     COLUMN("type", DETAIL),
    COLUMN("flags", DETAIL),     COLUMN("flag T or V", ANSWERED),
    COLUMN("server", SERVER),
};

static const zn_log_column unbound[] = {
    COLUMN("time", TIME),     COLUMN("tag", ALWAYS),     COLUMN("reply", ALWAYS),
    COLUMN("client", CLIENT), COLUMN("name", DNS_NAME),  COLUMN("type", DETAIL),
    COLUMN("class", DETAIL),  COLUMN("rcode", ANSWERED), COLUMN("duration", DETAIL),
    COLUMN("cached", DETAIL), COLUMN("size", DETAIL),
};

static const zn_log_preset presets[] = {
    {"zeek-conn", ZN_LOG_ZEEK, TEXT("conn"), ZN_TIME_S, true, ROWS(zeek_conn)},
    {"zeek-dns", ZN_LOG_ZEEK, TEXT("dns"), ZN_TIME_S, false, ROWS(zeek_dns)},
    {"zeek-ssl", ZN_LOG_ZEEK, TEXT("ssl"), ZN_TIME_S, false, ROWS(zeek_ssl)},
    {"zeek-http", ZN_LOG_ZEEK, TEXT("http"), ZN_TIME_S, false, ROWS(zeek_http)},
    {"zeek-quic", ZN_LOG_ZEEK, TEXT("quic"), ZN_TIME_S, false, ROWS(zeek_quic)},
    {"suricata-eve", ZN_LOG_LINES, TEXT(""), ZN_TIME_S, false, ROWS(suricata_eve)},
    {"nfstream", ZN_LOG_CSV, TEXT(""), ZN_TIME_MS, false, ROWS(nfstream)},
    {"tstat", ZN_LOG_TSTAT, TEXT(""), ZN_TIME_MS, false, ROWS(tstat)},
    {"dnstap", ZN_LOG_DNSTAP, TEXT(""), ZN_TIME_NS, false, ROWS(dnstap)},
    {"bind", ZN_LOG_BIND, TEXT(""), ZN_TIME_S, false, ROWS(bind)},
    {"unbound", ZN_LOG_UNBOUND, TEXT(""), ZN_TIME_S, false, ROWS(unbound)},
};

const zn_log_preset *zn_log_presets(size_t *count)
{
    *count = sizeof presets / sizeof presets[0];
    return presets;
}

size_t zn_log_preset_find(const zn_log_preset *preset, zn_span name, size_t hint)
{
    size_t at = hint < preset->count ? hint : 0;
    for (size_t i = 0; i < preset->count; i++, at++) {
        size_t place = at < preset->count ? at : at - preset->count;
        if (zn_span_equal(preset->columns[place].name, name))
            return place;
    }
    return preset->count;
}

bool zn_log_preset_has_evidence(const zn_log_preset *preset)
{
    for (size_t i = 0; i < preset->count; i++)
        if (preset->columns[i].role >= ZN_LOG_ANSWERED && preset->columns[i].role <= ZN_LOG_ANSWERS)
            return true;
    return false;
}

const char *zn_log_role_name(zn_log_role role)
{
    static const char *const names[] = {
#define ZN_LOG_ROLE_NAME(name, text, disclosure) text,
        ZN_LOG_ROLES(ZN_LOG_ROLE_NAME)
#undef ZN_LOG_ROLE_NAME
    };
    return names[role];
}

const char *zn_log_role_disclosure(zn_log_role role)
{
    static const char *const texts[] = {
#define ZN_LOG_ROLE_DISCLOSURE(name, text, disclosure) disclosure,
        ZN_LOG_ROLES(ZN_LOG_ROLE_DISCLOSURE)
#undef ZN_LOG_ROLE_DISCLOSURE
    };
    return texts[role];
}
