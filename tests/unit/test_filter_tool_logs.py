# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of Suricata, NFStream and Tstat through `filter --preset`."""

import csv
import io
import json
from typing import Any

import pytest
from support.filter import faults
from support.logs import anonymize, json_rows

from zanon_net.errors import ConfigError, FormatError


def event(number: int, kind: str, client: str, **more: Any) -> bytes:
    row = {
        "timestamp": f"2024-05-14T09:00:0{number}.250000+0200",
        "flow_id": 1234567 + number,
        "event_type": kind,
        "src_ip": client,
        "src_port": 50000,
        "dest_ip": "198.51.100.7",
        "dest_port": 443,
        "proto": "TCP",
    }
    return json.dumps(row | more, separators=(",", ":")).encode() + b"\n"


TLS = {"sni": "a.example", "version": "TLS 1.3", "fingerprint": "aa:bb", "subject": "CN=a"}
EVENTS = [
    ("tls", {"tls": TLS}, ("tls", "sni")),
    ("quic", {"quic": {"sni": "a.example", "version": "1", "ja4": "q13d"}}, ("quic", "sni")),
    ("http", {"http": {"hostname": "a.example", "url": "/s", "status": 200}}, ("http", "hostname")),
    ("dns", {"dns": {"rrname": "a.example", "rcode": "NOERROR", "id": 7}}, ("dns", "rrname")),
]


@pytest.mark.parametrize(("kind", "more", "path"), EVENTS)
def test_events_with_a_name(kind: str, more: dict[str, Any], path: tuple[str, str]) -> None:
    data = event(1, kind, "10.0.0.1", **more) + event(2, "stats", "10.0.0.1", stats={"x": 1})
    data += b'{"timestamp":"2024-05-14T09:00:02+0200","event_type":"stats","stats":{"x":1}}\n'
    data += event(3, kind, "10.0.0.2", **more) + event(4, "flow", "10.0.0.2", flow={"bytes": 1})
    evidence = "any" if kind == "quic" else "established"
    out, row_filter = anonymize(data, "suricata-eve", strict=True, evidence=evidence)
    (row,) = json_rows(out)
    assert row[path[0]][path[1]] == "a.example"
    assert row["timestamp"] == "2024-05-14T09:00:03.250000+0200"
    assert row["dest_ip"] == "198.51.100.7"
    assert row["src_port"] == 0
    assert row["src_ip"] not in ("10.0.0.1", "10.0.0.2")
    assert not {"flow_id", "stats"} & set(row)
    assert not {"fingerprint", "ja4", "url", "id"} & set(row[path[0]])
    assert row_filter.reasons["no_attribute"] == 3
    assert faults(row_filter) == {}


def test_events_of_quic_show_no_answer() -> None:
    data = b"".join(event(i, "quic", f"10.0.0.{i}", **EVENTS[1][1]) for i in (1, 2))
    out, row_filter = anonymize(data, "suricata-eve")
    assert out == ""
    assert row_filter.reasons["unconfirmed"] == 2


def test_names_of_dns_are_counted_apart() -> None:
    data = event(1, "dns", "10.0.0.1", **EVENTS[3][1]) + event(2, "tls", "10.0.0.2", tls=TLS)
    assert anonymize(data, "suricata-eve")[0] == ""


def test_questions_in_arrays() -> None:
    dns = {"rcode": "NOERROR", "queries": [{"rrname": "a.example", "rrtype": "A"}], "answers": [{}]}
    data = event(1, "dns", "10.0.0.1", dns=dns) + event(2, "dns", "10.0.0.2", dns=dns)
    (row,) = json_rows(anonymize(data, "suricata-eve")[0])
    assert row["dns"] == {"rcode": "NOERROR", "queries": [{"rrname": "a.example", "rrtype": "A"}]}
    dns["queries"] = [{"rrname": name} for name in ("a.example", "a.example", "secret.example")]
    data = event(1, "dns", "10.0.0.1", dns=dns) + event(2, "dns", "10.0.0.2", dns=dns)
    out, row_filter = anonymize(data, "suricata-eve")
    assert out == ""
    assert row_filter.reasons["invalid"] == 2


def test_an_event_from_the_server_is_its_clients() -> None:
    http = {"hostname": "a.example", "status": 200}
    back = {"src_ip": "198.51.100.7", "src_port": 80, "dest_port": 50000, "http": http}
    data = b"".join(event(i, "fileinfo", "-", **back, dest_ip=f"10.0.0.{i}") for i in (1, 2))
    (row,) = json_rows(anonymize(data, "suricata-eve")[0])
    assert row["src_ip"] == "198.51.100.7"
    assert row["dest_ip"] != "10.0.0.2"
    assert (row["src_port"], row["dest_port"]) == (80, 0)
    odd = {"src_port": 4000, "dest_port": 5000, "http": http}
    data = event(1, "alert", "10.0.0.1", **odd) + event(2, "alert", "10.0.0.2", **odd)
    out, row_filter = anonymize(data, "suricata-eve")
    assert out == ""
    assert row_filter.reasons["outside"] == 2


def test_a_member_twice_is_refused() -> None:
    data = event(1, "tls", "10.0.0.1", **{"tls.sni": "a.example", "tls": TLS})
    _out, row_filter = anonymize(data, "suricata-eve")
    assert faults(row_filter) == {"twice": 1}


@pytest.mark.parametrize("row", [b"x", b"{", b'{"a":[1,]}', b'{"a":1}{}', b'{"tls":{"sni":}}'])
def test_bad_json_is_counted(row: bytes) -> None:
    _out, row_filter = anonymize(row + b"\n", "suricata-eve")
    assert faults(row_filter) == {"json": 1}


NFSTREAM = (
    "id,src_ip,src_port,src_mac,dst_ip,dst_port,protocol,bidirectional_first_seen_ms,"
    "bidirectional_bytes,dst2src_packets,application_name,requested_server_name,user_agent\n"
)


def flow(number: int, name: str, *, answers: int = 3, agent: str = "") -> str:
    first = 1_700_000_000_000 + 1000 * number
    return (
        f"{number},10.0.0.{number},5000,00:11:22:33:44:55,198.51.100.7,443,6,{first},1500,{answers},"
        f"TLS.Example,{name},{agent}\n"
    )


def test_flows_of_nfstream() -> None:
    agent = '"x, ""y"""'
    data = NFSTREAM + flow(1, "a.example", agent=agent) + flow(2, "a.example", agent=agent)
    data += flow(3, "") + flow(4, "secret.example") + flow(5, "a.example", answers=0)
    out, row_filter = anonymize(data.encode(), "nfstream", strict=True)
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["requested_server_name"] == "a.example"
    assert row["bidirectional_first_seen_ms"] == "1700000002000"
    assert row["user_agent"] == 'x, "y"'
    assert row["dst_ip"] == "198.51.100.7"
    assert (row["src_port"], row["src_mac"], row["id"]) == ("0", "", "")
    assert out.splitlines()[0] == NFSTREAM.strip()
    assert (row_filter.reasons["no_attribute"], row_filter.reasons["unconfirmed"]) == (1, 1)
    out, _row_filter = anonymize(data.encode(), "nfstream", suppressed="blank")
    rare = list(csv.DictReader(io.StringIO(out)))[2]
    assert {key: value for key, value in rare.items() if value} == {
        "src_port": "0",
        "dst_port": "443",
        "protocol": "6",
        "bidirectional_first_seen_ms": "1699999980000",
        "bidirectional_bytes": "4096",
        "dst2src_packets": "4",
    }


TSTAT = "#09#c_ip:1 c_port:2 s_ip:3 s_port:4 s_pkts_all:5 first:6 c_iscrypto:7 s_iscrypto:8"
TSTAT += " x:9 c_tls_SNI:10\n"


def connection(number: int, name: str, server: str = "198.51.100.7") -> str:
    first = 1_700_000_000_000 + 1000 * number
    return f"10.0.0.{number} 5000 {server} 443 9 {first}.500000 0 0 17 {name}\n"


def test_a_log_of_tstat() -> None:
    data = TSTAT + connection(1, "a.example") + connection(2, "a.example")
    data += connection(3, "a.example", "10.9.9.9") + connection(4, "-") + connection(5, "b.example")
    out, _row_filter = anonymize(data.encode(), "tstat", strict=True)
    lines = out.splitlines()
    assert lines[0] == TSTAT.strip()
    assert lines[1].split()[1:] == [
        "0",
        "198.51.100.7",
        "443",
        "9",
        "1700000002000.500000",
        "1",
        "0",
        "0",
        "a.example",
    ]
    assert lines[2].split()[2] != "10.9.9.9"
    assert lines[2].split()[6:] == ["1", "1", "0", "a.example"]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("data", "preset", "error"),
    [
        ("a,b\n", "nfstream", "has no column 'src_ip'"),
        (NFSTREAM.replace("src_port", "src_ip"), "nfstream", "a column twice"),
        ('a,"b\n', "nfstream", "a quote in the header"),
        ("c_ip c_port\n", "tstat", "does not name Tstat's columns"),
        ("#00#c_ip:1 first:2\n", "tstat", "has no column 'c_tls_SNI'"),
    ],
)
def test_headers_that_cannot_be_read(data: str, preset: str, error: str) -> None:
    with pytest.raises((ConfigError, FormatError), match=error):
        anonymize(data.encode(), preset)


def test_two_files_need_one_header() -> None:
    one, other = NFSTREAM + flow(1, "a.example"), "x," + NFSTREAM
    with pytest.raises(FormatError, match="differs from the header of the file before"):
        anonymize([one.encode(), other.encode()], "nfstream")
