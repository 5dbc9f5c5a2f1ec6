# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What the fields of a flow mean, and their units."""

from collections.abc import Sequence

Field = tuple[str, str, bool]
"""Name, type and whether it may be missing, as `_core.PacketEngine.fields` has them."""

UNITS = {"ms": "ms", "s": "s", "time": "ns since 1970-01-01 UTC"}

_FLOW = {
    "t_start_ns": "first packet",
    "t_end_ns": "last packet",
    "proto": "IP protocol: 6 TCP, 17 UDP",
    "client": "pseudonym of whoever opened the flow; null for special addresses",
    "server": "the other side: an address that z users share, or a pseudonym",
    "client_port": "0 unless client ports are kept",
    "server_port": "0 where it could give a suppressed name away",
    "name": "the flow's first name, if z users share it",
    "name_source": "where the name was seen: tls, quic, http, dns",
    "name_status": "none, released, suppressed, unconfirmed or invalid",
    "ech": "offered: Encrypted Client Hello, the name is the outer one; none: not, or withheld",
    "epoch": "number of the key that made the pseudonyms; 0: it would tell a time that is withheld",
    "complete": "in Tstat's log_tcp_complete or log_udp_complete; null where a name is withheld",
    "midstream": "joined after its start; null where a name is withheld",
    "early": "closed to make room for others: it may have gone on; null where a name is withheld",
    "first": "first packet",
    "last": "last packet",
    "durat": "last packet less first packet",
    "con_t": "what both sides speak: 1 HTTP, 1024 SMTP, 2048 POP3, 4096 IMAP, 8192 TLS, 32768 SSH",
    "p2p_t": "peer-to-peer protocol; always 0",
    "http_t": "method of the first request: 0 not HTTP, 1 GET, 2 POST, 3 HEAD, ...",
    "p2p_st": "peer-to-peer state; always 0",
    "ed2k_data": "eDonkey data; always 0",
    "ed2k_sig": "eDonkey signalling; always 0",
    "ed2k_c2s": "eDonkey client to server; always 0",
    "ed2k_c2c": "eDonkey client to client; always 0",
    "ed2k_chat": "eDonkey chat; always 0",
    "http_req_cnt": "segments that begin with an HTTP request",
    "http_res_cnt": "segments that begin with an HTTP response",
    "http_res": "status of the first response",
    "s_tls_SCN": "common name of the server's certificate, if z users were shown it",
    "tls_session_stat": "1 session ID, 2 client PSK, 4 early data, 8 server PSK, 16 hello retry",
    "fqdn": "name that DNS gave the server's address; of a DNS query, the name asked for",
    "dns_rslv": "the resolver that said so",
    "req_tm": "when it was asked",
    "res_tm": "when it answered",
    "http_hostname": "the first Host, if z users share it",
    "dns_enc": "whether dns_rslv is a pseudonym",
    "quic_SNI": "server name in the QUIC Initial, if z users share it",
    "quic_UA": "user agent in the QUIC Initial, percent-encoded, if z users share it",
    "quic_c_vers": "QUIC version of the client's packets",
    "quic_s_vers": "QUIC version of the server's packets",
    "quic_zero_rtt": "0-RTT packets of the client",
    "quic_ech": "bytes of the Encrypted Client Hello extension",
}

_SIDE = {
    "pkts": "packets",
    "bytes": "transport payload",
    "pkts_all": "packets",
    "rst_cnt": "segments with RST",
    "ack_cnt": "segments with ACK",
    "ack_cnt_p": "segments with ACK alone",
    "bytes_uniq": "payload without retransmissions",
    "pkts_data": "segments with payload",
    "bytes_all": "payload with retransmissions",
    "pkts_retx": "retransmitted segments",
    "bytes_retx": "retransmitted payload",
    "pkts_ooo": "segments out of sequence",
    "syn_cnt": "segments with SYN",
    "fin_cnt": "segments with FIN",
    "first": "from the start to the first payload",
    "last": "from the start to the last payload",
    "first_ack": "from the start to the first ACK without SYN",
    "isint": "whether the address is internal",
    "iscrypto": "whether the address is a pseudonym",
    "rtt_avg": "mean round-trip time",
    "rtt_min": "least round-trip time",
    "rtt_max": "largest round-trip time",
    "rtt_std": "standard deviation of the round-trip time",
    "rtt_cnt": "round-trip times measured",
    "ttl_min": "least hop limit",
    "ttl_max": "largest hop limit",
    "f1323_opt": "whether the window scale option was sent",
    "tm_opt": "whether the timestamp option was sent",
    "win_scl": "window scale",
    "sack_opt": "whether selective acknowledgements were permitted",
    "sack_cnt": "segments with selective acknowledgements",
    "mss": "maximum segment size option",
    "mss_max": "largest segment",
    "mss_min": "smallest segment with payload",
    "win_max": "largest window",
    "win_min": "smallest window",
    "win_0": "segments with a window of 0",
    "cwin_max": "most bytes in flight",
    "cwin_min": "fewest bytes in flight",
    "cwin_ini": "bytes in flight before the first acknowledgement",
    "pkts_rto": "retransmissions by timeout",
    "pkts_fs": "fast retransmissions",
    "pkts_reor": "reordered segments",
    "pkts_dup": "segments duplicated by the network",
    "pkts_unk": "segments out of sequence for no known reason",
    "pkts_fc": "probes of a closed window",
    "pkts_unrto": "unneeded retransmissions by timeout",
    "pkts_unfs": "unneeded fast retransmissions",
    "syn_retx": "whether a SYN or FIN came again with another number",
    "pkts_push": "messages, ended by PSH or FIN",
    "tls_SNI": "server name in the ClientHello, if z users share it",
    "npnalpn": "protocols offered or chosen: NPN 1, 2, 4, 8; ALPN 16, 32, 64, 128",
    "last_handshakeT": "from the start to the last segment of the TLS handshake",
    "appdataT": "from the start to the first segment of TLS application data",
    "appdataB": "sequence numbers before the application data",
    "TLSvers": "TLS versions in hexadecimal",
    "first_abs": "first datagram",
    "durat": "last datagram less first datagram",
    "type": "Tstat's type: 19 DNS, 22 MPEG-TS, 24 Teredo, 25 SIP, 26 DTLS, 27 QUIC, 28 and 29 RTP",
}


def description(name: str) -> str:
    """What a field holds."""
    if name in _FLOW:
        return _FLOW[name]
    side, _underscore, rest = name.partition("_")
    return f"{'client' if side == 'c' else 'server'}: {_SIDE[rest]}"


def unit(name: str, kind: str) -> str:
    """The unit of a field, "" where it has none."""
    if kind in UNITS:
        return UNITS[kind]
    bytes_of = ("bytes", "mss", "win_m", "cwin", "appdataB", "quic_ech")
    return "bytes" if name.removeprefix("c_").removeprefix("s_").startswith(bytes_of) else ""


def described(fields: Sequence[Field]) -> list[tuple[str, str, bool, dict[str, str]]]:
    """The fields with what they hold and its unit, as texts for Arrow's metadata."""
    return [
        (name, kind, nullable, {"description": description(name), "unit": unit(name, kind)})
        for name, kind, nullable in fields
    ]
