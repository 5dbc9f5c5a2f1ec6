/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of the columns of flow logs. A row has the name of a column, its member of zn_record, its
 * print form and its disclosure class. release/disclosure.c reads the classes, and output/columns.c
 * reads everything else. release/record.h includes the table so that both folders see it. Headers,
 * writers, the Arrow schema, zanon_net/output/schema.py and docs/reference/columns.md are made from
 * this table.
 *
 *     X(name, kind, type, unit, missing, member, disclosure, description)
 *
 * name         name of the column in every format
 * kind         rule by which the member becomes the value, ZN_COLUMN_* below
 * type         type of the values in Arrow, ZN_FIELD_* of output/columns.h. TSTAT_ONLY: only the
 *              logs of Tstat have the column, because other formats have the value under another
 *              name
 * unit         "" for a plain number or a text
 * missing      text of Tstat's logs for a missing value; NULL: the value is never missing. Other
 *              formats leave a missing value empty (null)
 * member       member of zn_record; a column is blank if its member is zero
 * disclosure   ALWAYS         in every record
 *              ROUNDED        rounded in a coarse record: times down to the minute, or all times to
 *                             the minute of closing; numbers up to a power of the policy's base
 *              EXACT          blank in a coarse record
 *              CLIENT         blank in a coarse record whose client is not disclosed
 *              RELEASED       blank with any withheld name, also if measurements are exact
 *              OWN            filled only if the value itself was released
 *              COMPUTED(what) computed by disclosed_<what> of release/disclosure.c
 *              A row without one of these does not compile.
 *
 * Each group is a macro. Logs have the columns in the order of this file. `c` and `side` are c and
 * client, or s and server.
 */
#ifndef ZN_RELEASE_COLUMNS_H
#define ZN_RELEASE_COLUMNS_H

#include "util/attributes.h"

/* Rule by which a member becomes a value. The rule also says how times and counts are made coarse
 * (release/disclosure.c). */
typedef enum zn_column_kind {
    ZN_COLUMN_NUMBER,        /* count: uint64_t */
    ZN_COLUMN_CODE,          /* code: a whole number of 1, 2, 4 or 8 bytes */
    ZN_COLUMN_NS,            /* int64_t ns since the Unix epoch, printed as it is */
    ZN_COLUMN_TIME,          /* the same, printed as ms */
    ZN_COLUMN_WHEN,          /* the same as TIME; 0: never */
    ZN_COLUMN_MS,            /* of TCP: a duration in int64_t ns, printed as ms */
    ZN_COLUMN_DURATION_MS,   /* the record's last_ns less its first_ns */
    ZN_COLUMN_SIDE_START,    /* of UDP and a side: first_data_ns as a time, printed as ms */
    ZN_COLUMN_SIDE_DURATION, /* the same: last_data_ns less first_data_ns, printed as seconds */
    ZN_COLUMN_ADDRESS,
    ZN_COLUMN_PSEUDONYM, /* zn_disclosure: whether the address is a pseudonym */
    ZN_COLUMN_FLAG,      /* zn_flag */
    ZN_COLUMN_NAME_SOURCE,
    ZN_COLUMN_NAME_STATUS,
    ZN_COLUMN_NAME_LEVEL,
    ZN_COLUMN_SERVER_LEVEL,
    ZN_COLUMN_SERVER_LABEL, /* text of the record's server_label */
    ZN_COLUMN_ECH,
    ZN_COLUMN_TEXT,     /* zn_span */
    ZN_COLUMN_DIGITS,   /* the same, a few digits */
    ZN_COLUMN_NAME_TLS, /* the same, if the record's name came by TLS */
    ZN_COLUMN_NAME_HTTP,
    ZN_COLUMN_NAME_QUIC,
    ZN_COLUMN_VERSIONS,     /* of a side: TLS versions in hexadecimal */
    ZN_COLUMN_QUIC_VERSION, /* 0x and eight hexadecimal digits; 0: none */
    ZN_COLUMN_UDP_TYPE,     /* of a side */
    ZN_COLUMN_UNMEASURED    /* always 0 */
} zn_column_kind;

#define ZN_UNIT_TIME "ns since 1970-01-01 UTC"

/* The columns of every flow, in all formats but Tstat's: first in CSV, JSON Lines and Parquet.
 * Behind them come Tstat's columns. */
#define ZN_COLUMNS_FLOW(X)                                                                         \
    X("t_start_ns", NS, TIME, ZN_UNIT_TIME, NULL, first_ns, ROUNDED, "first packet")               \
    X("t_end_ns", NS, TIME, ZN_UNIT_TIME, NULL, last_ns, ROUNDED, "last packet")                   \
    X("proto", CODE, U8, "", NULL, proto, ALWAYS, "IP protocol: 6 TCP, 17 UDP")                    \
    X("client", ADDRESS, TEXT, "", "", client.addr, CLIENT,                                        \
      "pseudonym of whoever opened the flow; null for special addresses, or where withheld")       \
    X("server", ADDRESS, TEXT, "", "", server.addr, RELEASED,                                      \
      "the other side: an address that z users share, or a pseudonym")                             \
    X("client_port", CODE, U16, "", NULL, client.port, COMPUTED(client_port),                      \
      "0 unless client ports are kept")                                                            \
    X("server_port", CODE, U16, "", NULL, server.port, COMPUTED(server_port),                      \
      "0 where it could give a suppressed name away")                                              \
    X("name", TEXT, TEXT, "", "", name, OWN, "the flow's first name, if z users share it")         \
    X("name_source", NAME_SOURCE, TEXT, "", "", source, ALWAYS,                                    \
      "where the name was seen: tls, quic, http, dns")                                             \
    X("name_status", NAME_STATUS, TEXT, "", NULL, status, ALWAYS,                                  \
      "none, released, suppressed, unconfirmed, invalid or generalized")                           \
    X("ech", ECH, TEXT, "", NULL, ech, EXACT,                                                      \
      "offered: Encrypted Client Hello, the name is the outer one; none: not, or withheld")        \
    X("epoch", CODE, I64, "", NULL, epoch, COMPUTED(epoch),                                        \
      "number of the key that made the pseudonyms; 0: it would tell a time that is withheld")      \
    X("c_pkts", NUMBER, U64, "", NULL, client.packets, ROUNDED, "client: packets")                 \
    X("s_pkts", NUMBER, U64, "", NULL, server.packets, ROUNDED, "server: packets")                 \
    X("c_bytes", NUMBER, U64, "bytes", NULL, client.bytes_all, ROUNDED,                            \
      "client: transport payload")                                                                 \
    X("s_bytes", NUMBER, U64, "bytes", NULL, server.bytes_all, ROUNDED,                            \
      "server: transport payload")                                                                 \
    X("complete", FLAG, BOOL, "", "", is_complete, EXACT,                                          \
      "in Tstat's log_tcp_complete or log_udp_complete; null where a name is withheld")            \
    X("midstream", FLAG, BOOL, "", "", is_midstream, EXACT,                                        \
      "joined after its start; null where a name is withheld")                                     \
    X("early", FLAG, BOOL, "", "", is_early, EXACT,                                                \
      "closed to make room for others: it may have gone on; null where a name is withheld")

#define ZN_COLUMNS_TCP_SIDE(X, c, side)                                                            \
    X(#c "_pkts_all", NUMBER, U32, "", NULL, side.packets, ROUNDED, #side ": packets")             \
    X(#c "_rst_cnt", NUMBER, U32, "", NULL, side.rst, EXACT, #side ": segments with RST")          \
    X(#c "_ack_cnt", NUMBER, U32, "", NULL, side.acks, EXACT, #side ": segments with ACK")         \
    X(#c "_ack_cnt_p", NUMBER, U32, "", NULL, side.acks_pure, EXACT,                               \
      #side ": segments with ACK alone")                                                           \
    X(#c "_bytes_uniq", NUMBER, U64, "bytes", NULL, side.bytes_unique, ROUNDED,                    \
      #side ": payload without retransmissions")                                                   \
    X(#c "_pkts_data", NUMBER, U32, "", NULL, side.packets_data, ROUNDED,                          \
      #side ": segments with payload")                                                             \
    X(#c "_bytes_all", NUMBER, U64, "bytes", NULL, side.bytes_all, ROUNDED,                        \
      #side ": payload with retransmissions")                                                      \
    X(#c "_pkts_retx", NUMBER, U32, "", NULL, side.packets_retransmitted, EXACT,                   \
      #side ": retransmitted segments")                                                            \
    X(#c "_bytes_retx", NUMBER, U64, "bytes", NULL, side.bytes_retransmitted, EXACT,               \
      #side ": retransmitted payload")                                                             \
    X(#c "_pkts_ooo", NUMBER, U32, "", NULL, side.packets_out_of_order, EXACT,                     \
      #side ": segments out of sequence")                                                          \
    X(#c "_syn_cnt", NUMBER, U32, "", NULL, side.syn, EXACT, #side ": segments with SYN")          \
    X(#c "_fin_cnt", NUMBER, U32, "", NULL, side.fin, EXACT, #side ": segments with FIN")

#define ZN_COLUMNS_TCP(X)                                                                          \
    X("c_ip", ADDRESS, TSTAT_ONLY, "", "-", client.addr, CLIENT,                                   \
      "client: pseudonym of whoever opened the flow")                                              \
    X("c_port", CODE, TSTAT_ONLY, "", NULL, client.port, COMPUTED(client_port),                    \
      "client: 0 unless client ports are kept")                                                    \
    ZN_COLUMNS_TCP_SIDE(X, c, client)                                                              \
    X("s_ip", ADDRESS, TSTAT_ONLY, "", "-", server.addr, RELEASED,                                 \
      "server: the other side: an address that z users share, or a pseudonym")                     \
    X("s_port", CODE, TSTAT_ONLY, "", NULL, server.port, COMPUTED(server_port),                    \
      "server: 0 where it could give a suppressed name away")                                      \
    ZN_COLUMNS_TCP_SIDE(X, s, server)                                                              \
    X("first", TIME, TIME, ZN_UNIT_TIME, NULL, first_ns, ROUNDED, "first packet")                  \
    X("last", TIME, TIME, ZN_UNIT_TIME, NULL, last_ns, ROUNDED, "last packet")                     \
    X("durat", DURATION_MS, MS, "ms", NULL, last_ns, ROUNDED, "last packet less first packet")     \
    X("c_first", MS, MS, "ms", NULL, client.first_data_ns, EXACT,                                  \
      "client: from the start to the first payload")                                               \
    X("s_first", MS, MS, "ms", NULL, server.first_data_ns, EXACT,                                  \
      "server: from the start to the first payload")                                               \
    X("c_last", MS, MS, "ms", NULL, client.last_data_ns, EXACT,                                    \
      "client: from the start to the last payload")                                                \
    X("s_last", MS, MS, "ms", NULL, server.last_data_ns, EXACT,                                    \
      "server: from the start to the last payload")                                                \
    X("c_first_ack", MS, MS, "ms", NULL, client.first_ack_ns, EXACT,                               \
      "client: from the start to the first ACK without SYN")                                       \
    X("s_first_ack", MS, MS, "ms", NULL, server.first_ack_ns, EXACT,                               \
      "server: from the start to the first ACK without SYN")                                       \
    X("c_isint", CODE, BOOL, "", NULL, client.internal, ALWAYS,                                    \
      "client: whether the address is internal")                                                   \
    X("s_isint", CODE, BOOL, "", NULL, server.internal, ALWAYS,                                    \
      "server: whether the address is internal")                                                   \
    X("c_iscrypto", PSEUDONYM, BOOL, "", NULL, client.disclosure, CLIENT,                          \
      "client: whether the address is a pseudonym")                                                \
    X("s_iscrypto", PSEUDONYM, BOOL, "", NULL, server.disclosure, RELEASED,                        \
      "server: whether the address is a pseudonym")                                                \
    X("con_t", CODE, U32, "", NULL, connection_type, EXACT,                                        \
      "what both sides speak: 1 HTTP, 1024 SMTP, 2048 POP3, 4096 IMAP, 8192 TLS, 32768 SSH")       \
    X("p2p_t", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS, "peer-to-peer protocol; always 0")   \
    X("http_t", CODE, U16, "", NULL, http_method, EXACT,                                           \
      "method of the first request: 0 not HTTP, 1 GET, 2 POST, 3 HEAD, ...")

#define ZN_COLUMNS_E2E_SIDE(X, c, side)                                                            \
    X(#c "_rtt_avg", MS, MS, "ms", NULL, side.rtt_mean_ns, EXACT, #side ": mean round-trip time")  \
    X(#c "_rtt_min", MS, MS, "ms", NULL, side.rtt_min_ns, EXACT, #side ": least round-trip time")  \
    X(#c "_rtt_max", MS, MS, "ms", NULL, side.rtt_max_ns, EXACT,                                   \
      #side ": largest round-trip time")                                                           \
    X(#c "_rtt_std", MS, MS, "ms", NULL, side.rtt_deviation_ns, EXACT,                             \
      #side ": standard deviation of the round-trip time")                                         \
    X(#c "_rtt_cnt", NUMBER, U32, "", NULL, side.rtt_count, EXACT,                                 \
      #side ": round-trip times measured")                                                         \
    X(#c "_ttl_min", NUMBER, U32, "", NULL, side.ttl_min, EXACT, #side ": least hop limit")        \
    X(#c "_ttl_max", NUMBER, U32, "", NULL, side.ttl_max, EXACT, #side ": largest hop limit")

#define ZN_COLUMNS_E2E(X)                                                                          \
    ZN_COLUMNS_E2E_SIDE(X, c, client)                                                              \
    ZN_COLUMNS_E2E_SIDE(X, s, server)

#define ZN_COLUMNS_P2P(X)                                                                          \
    X("p2p_st", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS, "peer-to-peer state; always 0")     \
    X("ed2k_data", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS, "eDonkey data; always 0")        \
    X("ed2k_sig", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS, "eDonkey signalling; always 0")   \
    X("ed2k_c2s", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS,                                   \
      "eDonkey client to server; always 0")                                                        \
    X("ed2k_c2c", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS,                                   \
      "eDonkey client to client; always 0")                                                        \
    X("ed2k_chat", UNMEASURED, U32, "", NULL, unmeasured, ALWAYS, "eDonkey chat; always 0")

#define ZN_COLUMNS_OPTIONS_SIDE(X, c, side)                                                        \
    X(#c "_f1323_opt", NUMBER, U32, "", NULL, side.scale_seen, EXACT,                              \
      #side ": whether the window scale option was sent")                                          \
    X(#c "_tm_opt", NUMBER, U32, "", NULL, side.timestamps, EXACT,                                 \
      #side ": whether the timestamp option was sent")                                             \
    X(#c "_win_scl", NUMBER, U32, "", NULL, side.scale, EXACT, #side ": window scale")             \
    X(#c "_sack_opt", NUMBER, U32, "", NULL, side.sack_permitted, EXACT,                           \
      #side ": whether selective acknowledgements were permitted")                                 \
    X(#c "_sack_cnt", NUMBER, U32, "", NULL, side.sacks, EXACT,                                    \
      #side ": segments with selective acknowledgements")                                          \
    X(#c "_mss", NUMBER, U32, "bytes", NULL, side.mss, EXACT,                                      \
      #side ": maximum segment size option")                                                       \
    X(#c "_mss_max", NUMBER, U32, "bytes", NULL, side.segment_max, EXACT,                          \
      #side ": largest segment")                                                                   \
    X(#c "_mss_min", NUMBER, U32, "bytes", NULL, side.segment_min, EXACT,                          \
      #side ": smallest segment with payload")                                                     \
    X(#c "_win_max", NUMBER, U32, "bytes", NULL, side.window_max, EXACT, #side ": largest window") \
    X(#c "_win_min", NUMBER, U32, "bytes", NULL, side.window_min, EXACT,                           \
      #side ": smallest window")                                                                   \
    X(#c "_win_0", NUMBER, U32, "", NULL, side.window_zero, EXACT,                                 \
      #side ": segments with a window of 0")                                                       \
    X(#c "_cwin_max", NUMBER, U32, "bytes", NULL, side.flight_max, EXACT,                          \
      #side ": most bytes in flight")                                                              \
    X(#c "_cwin_min", NUMBER, U32, "bytes", NULL, side.flight_min, EXACT,                          \
      #side ": fewest bytes in flight")                                                            \
    X(#c "_cwin_ini", NUMBER, U32, "bytes", NULL, side.flight_first, EXACT,                        \
      #side ": bytes in flight before the first acknowledgement")                                  \
    X(#c "_pkts_rto", NUMBER, U32, "", NULL, side.anomalies[0], EXACT,                             \
      #side ": retransmissions by timeout")                                                        \
    X(#c "_pkts_fs", NUMBER, U32, "", NULL, side.anomalies[1], EXACT,                              \
      #side ": fast retransmissions")                                                              \
    X(#c "_pkts_reor", NUMBER, U32, "", NULL, side.anomalies[2], EXACT,                            \
      #side ": reordered segments")                                                                \
    X(#c "_pkts_dup", NUMBER, U32, "", NULL, side.anomalies[3], EXACT,                             \
      #side ": segments duplicated by the network")                                                \
    X(#c "_pkts_unk", NUMBER, U32, "", NULL, side.anomalies[4], EXACT,                             \
      #side ": segments out of sequence for no known reason")                                      \
    X(#c "_pkts_fc", NUMBER, U32, "", NULL, side.anomalies[5], EXACT,                              \
      #side ": probes of a closed window")                                                         \
    X(#c "_pkts_unrto", NUMBER, U32, "", NULL, side.anomalies[6], EXACT,                           \
      #side ": unneeded retransmissions by timeout")                                               \
    X(#c "_pkts_unfs", NUMBER, U32, "", NULL, side.anomalies[7], EXACT,                            \
      #side ": unneeded fast retransmissions")                                                     \
    X(#c "_syn_retx", NUMBER, U32, "", NULL, side.flags_moved, EXACT,                              \
      #side ": whether a SYN or FIN came again with another number")

#define ZN_COLUMNS_OPTIONS(X)                                                                      \
    ZN_COLUMNS_OPTIONS_SIDE(X, c, client)                                                          \
    ZN_COLUMNS_OPTIONS_SIDE(X, s, server)

#define ZN_COLUMNS_LAYER7(X)                                                                       \
    X("http_req_cnt", NUMBER, U32, "", NULL, http_requests, EXACT,                                 \
      "segments that begin with an HTTP request")                                                  \
    X("http_res_cnt", NUMBER, U32, "", NULL, http_responses, EXACT,                                \
      "segments that begin with an HTTP response")                                                 \
    X("http_res", DIGITS, TEXT, "", "---", http_status, EXACT, "status of the first response")     \
    X("c_pkts_push", NUMBER, U32, "", NULL, client.messages, EXACT,                                \
      "client: messages, ended by PSH or FIN")                                                     \
    X("s_pkts_push", NUMBER, U32, "", NULL, server.messages, EXACT,                                \
      "server: messages, ended by PSH or FIN")                                                     \
    X("c_tls_SNI", NAME_TLS, TEXT, "", "-", name, OWN,                                             \
      "client: server name in the ClientHello, if z users share it")                               \
    X("s_tls_SCN", TEXT, TEXT, "", "-", certificate, RELEASED,                                     \
      "common name of the server's certificate, if z users were shown it")                         \
    X("c_npnalpn", CODE, U32, "", NULL, client.protocols, EXACT,                                   \
      "client: protocols offered or chosen: NPN 1, 2, 4, 8; ALPN 16, 32, 64, 128")                 \
    X("s_npnalpn", CODE, U32, "", NULL, server.protocols, EXACT,                                   \
      "server: protocols offered or chosen: NPN 1, 2, 4, 8; ALPN 16, 32, 64, 128")                 \
    X("tls_session_stat", CODE, U32, "", NULL, tls_session, EXACT,                                 \
      "1 session ID, 2 client PSK, 4 early data, 8 server PSK, 16 hello retry")                    \
    X("c_last_handshakeT", MS, MS, "ms", NULL, client.last_handshake_ns, EXACT,                    \
      "client: from the start to the last segment of the TLS handshake")                           \
    X("s_last_handshakeT", MS, MS, "ms", NULL, server.last_handshake_ns, EXACT,                    \
      "server: from the start to the last segment of the TLS handshake")                           \
    X("c_appdataT", MS, MS, "ms", NULL, client.appdata_ns, EXACT,                                  \
      "client: from the start to the first segment of TLS application data")                       \
    X("s_appdataT", MS, MS, "ms", NULL, server.appdata_ns, EXACT,                                  \
      "server: from the start to the first segment of TLS application data")                       \
    X("c_appdataB", NUMBER, U32, "bytes", NULL, client.appdata_bytes, EXACT,                       \
      "client: sequence numbers before the application data")                                      \
    X("s_appdataB", NUMBER, U32, "bytes", NULL, server.appdata_bytes, EXACT,                       \
      "server: sequence numbers before the application data")                                      \
    X("fqdn", TEXT, TEXT, "", "-", fqdn, COMPUTED(fqdn),                                           \
      "name that DNS gave the server's address; of a DNS query, the name asked for")               \
    X("dns_rslv", ADDRESS, TEXT, "", "-", resolver, RELEASED, "the resolver that said so")         \
    X("req_tm", WHEN, TIME, ZN_UNIT_TIME, "0.0", resolver_query_ns, RELEASED, "when it was asked") \
    X("res_tm", WHEN, TIME, ZN_UNIT_TIME, "0.0", resolver_answer_ns, RELEASED, "when it answered") \
    X("http_hostname", NAME_HTTP, TEXT, "", "-", name, OWN, "the first Host, if z users share it") \
    X("c_TLSvers", VERSIONS, TEXT, "", "-", client.tls_version, EXACT,                             \
      "client: TLS versions in hexadecimal")                                                       \
    X("s_TLSvers", VERSIONS, TEXT, "", "-", server.tls_version, EXACT,                             \
      "server: TLS versions in hexadecimal")                                                       \
    X("dns_enc", PSEUDONYM, BOOL, "", NULL, resolver_disclosure, RELEASED,                         \
      "whether dns_rslv is a pseudonym")

#define ZN_COLUMNS_UDP_SIDE(X, c, side)                                                            \
    X(#c "_first_abs", SIDE_START, TIME, ZN_UNIT_TIME, "0.000000", side.first_data_ns, EXACT,      \
      #side ": first datagram")                                                                    \
    X(#c "_durat", SIDE_DURATION, SECONDS, "s", NULL, side.last_data_ns, EXACT,                    \
      #side ": last datagram less first datagram")                                                 \
    X(#c "_bytes_all", NUMBER, U64, "bytes", NULL, side.bytes_all, ROUNDED,                        \
      #side ": payload with retransmissions")                                                      \
    X(#c "_pkts_all", NUMBER, U32, "", NULL, side.packets, ROUNDED, #side ": packets")             \
    X(#c "_isint", CODE, BOOL, "", NULL, side.internal, ALWAYS,                                    \
      #side ": whether the address is internal")

#define ZN_COLUMNS_UDP(X)                                                                          \
    X("c_ip", ADDRESS, TSTAT_ONLY, "", "-", client.addr, CLIENT,                                   \
      "client: pseudonym of whoever opened the flow")                                              \
    X("c_port", CODE, TSTAT_ONLY, "", NULL, client.port, COMPUTED(client_port),                    \
      "client: 0 unless client ports are kept")                                                    \
    ZN_COLUMNS_UDP_SIDE(X, c, client)                                                              \
    X("c_iscrypto", PSEUDONYM, BOOL, "", NULL, client.disclosure, CLIENT,                          \
      "client: whether the address is a pseudonym")                                                \
    X("c_type", UDP_TYPE, U8, "", NULL, client.udp_type, COMPUTED(udp_type),                       \
      "client: Tstat's type: 19 DNS, 22 MPEG-TS, 24 Teredo, 25 SIP, 26 DTLS, 27 QUIC, 28 and 29 "  \
      "RTP")                                                                                       \
    X("s_ip", ADDRESS, TSTAT_ONLY, "", "-", server.addr, RELEASED,                                 \
      "server: the other side: an address that z users share, or a pseudonym")                     \
    X("s_port", CODE, TSTAT_ONLY, "", NULL, server.port, COMPUTED(server_port),                    \
      "server: 0 where it could give a suppressed name away")                                      \
    ZN_COLUMNS_UDP_SIDE(X, s, server)                                                              \
    X("s_iscrypto", PSEUDONYM, BOOL, "", NULL, server.disclosure, RELEASED,                        \
      "server: whether the address is a pseudonym")                                                \
    X("s_type", UDP_TYPE, U8, "", NULL, server.udp_type, COMPUTED(udp_type),                       \
      "server: Tstat's type: 19 DNS, 22 MPEG-TS, 24 Teredo, 25 SIP, 26 DTLS, 27 QUIC, 28 and 29 "  \
      "RTP")                                                                                       \
    X("fqdn", TEXT, TEXT, "", "-", fqdn, COMPUTED(fqdn),                                           \
      "name that DNS gave the server's address; of a DNS query, the name asked for")               \
    X("quic_SNI", NAME_QUIC, TEXT, "", "-", name, OWN,                                             \
      "server name in the QUIC Initial, if z users share it")                                      \
    X("quic_UA", TEXT, TEXT, "", "-", user_agent, RELEASED,                                        \
      "user agent in the QUIC Initial, percent-encoded, if z users share it")                      \
    X("quic_c_vers", QUIC_VERSION, TEXT, "", "-", client.quic_version, EXACT,                      \
      "QUIC version of the client's packets")                                                      \
    X("quic_s_vers", QUIC_VERSION, TEXT, "", "-", server.quic_version, EXACT,                      \
      "QUIC version of the server's packets")                                                      \
    X("quic_zero_rtt", NUMBER, U32, "", NULL, quic_zero_rtt, EXACT, "0-RTT packets of the client") \
    X("quic_ech", NUMBER, U32, "bytes", NULL, quic_ech_bytes, EXACT,                               \
      "bytes of the Encrypted Client Hello extension")

/* Columns of a run with levels of generalization. */
#define ZN_COLUMNS_LEVELS(X)                                                                       \
    X("name_level", NAME_LEVEL, TEXT, "", "-", name_level, OWN,                                    \
      "level of the name that is shown: name, domain or category")                                 \
    X("server_label", SERVER_LABEL, TEXT, "", "-", server_label, RELEASED,                         \
      "AS or country of the server's address, if at least z users are behind this label")          \
    X("server_level", SERVER_LEVEL, TEXT, "", "-", server_level, RELEASED,                         \
      "level of the server that is shown: address, as or country")

/* Columns of a run with attributes beside names. */
#define ZN_ATTRIBUTE_COLUMN(X, ID, word, column, message, reader, description)                     \
    X(column, TEXT, TEXT, "", "-", attribute[ZN_ATTRIBUTE_##ID], RELEASED, description)
#define ZN_COLUMNS_ATTRIBUTES(X) ZN_ATTRIBUTES(ZN_ATTRIBUTE_COLUMN, X)

/* Y(group, columns): each group, in the order of a line. */
#define ZN_COLUMN_GROUPS(Y)                                                                        \
    Y(FLOW, ZN_COLUMNS_FLOW)                                                                       \
    Y(TCP, ZN_COLUMNS_TCP)                                                                         \
    Y(E2E, ZN_COLUMNS_E2E)                                                                         \
    Y(P2P, ZN_COLUMNS_P2P)                                                                         \
    Y(OPTIONS, ZN_COLUMNS_OPTIONS)                                                                 \
    Y(LAYER7, ZN_COLUMNS_LAYER7)                                                                   \
    Y(UDP, ZN_COLUMNS_UDP)                                                                         \
    Y(LEVELS, ZN_COLUMNS_LEVELS)                                                                   \
    Y(ATTRIBUTES, ZN_COLUMNS_ATTRIBUTES)

/* Every row, some members more than once. */
#define ZN_COLUMNS(X)                                                                              \
    ZN_COLUMNS_FLOW(X)                                                                             \
    ZN_COLUMNS_TCP(X)                                                                              \
    ZN_COLUMNS_E2E(X)                                                                              \
    ZN_COLUMNS_P2P(X)                                                                              \
    ZN_COLUMNS_OPTIONS(X)                                                                          \
    ZN_COLUMNS_LAYER7(X)                                                                           \
    ZN_COLUMNS_UDP(X)                                                                              \
    ZN_COLUMNS_LEVELS(X)                                                                           \
    ZN_COLUMNS_ATTRIBUTES(X)

#endif
