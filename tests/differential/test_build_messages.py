# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP heads and DNS messages built for anonymized packets, read by dpkt, scapy and tshark."""

import ipaddress
import re
import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import dpkt
import pytest
from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRROPT, DNSRRSOA, EDNS0TLV
from support import wire
from support.capture_bytes import read_all

from zanon_net import _core
from zanon_net.errors import FormatError

pytestmark = pytest.mark.source  # a wheel has no builders for tests

Tshark = Callable[..., list[dict[str, str]]]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PRIVATE = 65280
FIELDS = {"malformed": "_ws.malformed", "name": "dns.qry.name", "host": "http.host"}
FIELDS |= {"uri": "http.request.uri", "length": "http.content_length_header"}
FIELDS |= {"code": "http.response.code", "a": "dns.a", "cname": "dns.cname"}


class All(Collection[bytes]):
    """All names are shared."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[bytes]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Turned(dict[Address, Address]):
    """All addresses with the bits of their last byte turned."""

    def get(self, key: Address, default: object = None) -> Address:  # type: ignore[override]
        return type(key)(int(key) ^ 0xFF)


def dns(message: bytes, *, show: bool) -> bytes | None:
    shared = All() if show else None
    done, out = _core.build_dns(message, name=show, shared=shared, addresses=Turned())
    return bytes(out) if done else None


def frame(payload: bytes, port: int, protocol: int, reply: bool = False) -> bytes:
    ports = (port, 40000) if reply else (40000, port)
    transport = wire.tcp if protocol == wire.TCP else wire.udp
    return wire.ethernet(wire.ipv4(transport(payload, ports=ports), protocol))


# ---- DNS ----------------------------------------------------------------------------------------

QUESTION = DNSQR(qname=b"www.Example.org")
OWNER = b"www.example.org"


def answer(*records: DNSRR, **more: object) -> bytes:
    """scapy compresses names as servers do."""
    return bytes(DNS(id=7, qr=1, qd=QUESTION, an=list(records), **more).compress())


def rr(kind: str, data: object, name: bytes = OWNER) -> DNSRR:
    return DNSRR(rrname=name, type=kind, rdata=data, ttl=60)


ALIASES = [rr("CNAME", b"cdn.example.net"), rr("A", "192.0.2.1", b"cdn.example.net")]
SOA = DNSRRSOA(rrname=b"example.org", mname=b"ns1.example.org", rname=b"admin.example.org")
OPTIONS = [EDNS0TLV(optcode=code, optdata=b"secret!!") for code in range(1, 20)]
MESSAGES = {
    "query": bytes(DNS(id=7, rd=1, qd=QUESTION, ar=DNSRROPT(rclass=1232))),
    "address": answer(rr("A", "192.0.2.1"), rr("AAAA", "2001:db8::1")),
    "aliases": answer(*ALIASES),
    "no such name": answer(rcode=3, ns=SOA),
    "texts": answer(rr("TXT", [b"secret"]), rr("NS", b"ns1.example.org")),
    "reverse": bytes(
        DNS(
            id=7,
            qr=1,
            qd=DNSQR(qname=b"1.2.0.192.in-addr.arpa", qtype="PTR"),
            an=rr("PTR", b"me.example.org", b"1.2.0.192.in-addr.arpa"),
        )
    ),
}
MESSAGES |= {
    f"option {option.optcode} of {n}": bytes(
        DNS(
            id=7,
            rd=1,
            qd=QUESTION,
            ar=DNSRROPT(
                rdata=[EDNS0TLV(optcode=option.optcode, optdata=b"\0\1\x18\0secret123456"[:n])]
            ),
        )
    )
    for option in OPTIONS
    for n in (0, 1, 2, 4, 7, 8, 12, 16)
}


OF_OTHER_TYPES = ("no such name", "texts", "reverse")  # dpkt reads none that it does not know


@pytest.mark.parametrize("show", [False, True])
def test_dpkt_reads_what_is_built(show: bool) -> None:
    for name, message in MESSAGES.items():
        if name in OF_OTHER_TYPES:
            continue
        out = dns(message, show=show)
        assert out is not None, name
        before, after = dpkt.dns.DNS(message), dpkt.dns.DNS(out)
        assert (before.id, before.op, before.qd[0].type) == (after.id, after.op, after.qd[0].type)
        assert (before.qd[0].name.lower() == after.qd[0].name) == show
        for real, seen in zip(before.an + before.ar, after.an + after.ar, strict=True):
            assert (seen.type, seen.ttl) == (real.type, real.ttl)
            if real.type == dpkt.dns.DNS_A:
                assert seen.ip == real.ip[:3] + bytes([real.ip[3] ^ 0xFF])
            elif real.type == dpkt.dns.DNS_CNAME:
                assert (seen.cname == real.cname) == show


def test_scapy_reads_other_types_as_private_ones() -> None:
    for name in OF_OTHER_TYPES:
        for show in (False, True):
            out = dns(MESSAGES[name], show=show)
            assert out is not None
            seen = DNS(out)
            for record in [*seen.an, *seen.ns]:
                assert (record.type, set(record.rdata) - {0}) == (PRIVATE, set())


def test_scapy_reads_what_is_built() -> None:
    out = dns(MESSAGES["aliases"], show=True)
    assert out is not None
    seen = DNS(out)
    assert [(r.rrname, r.type, r.rdata) for r in seen.an] == [
        (b"www.example.org.", 5, b"cdn.example.net."),
        (b"cdn.example.net.", 1, "192.0.2.254"),
    ]


def test_no_secret_is_built() -> None:
    for name, message in MESSAGES.items():
        for show in (False, True):
            out = dns(message, show=show) or b""
            assert not re.search(rb"secret|admin|ns1|arpa|\xc0\x00\x02\x01|Example", out), name
            assert show or not re.search(rb"www|cdn|example|org|net", out), name


def test_tshark_reads_what_is_built(tshark: Tshark) -> None:
    shown = {name: dns(message, show=True) or b"" for name, message in MESSAGES.items()}
    hidden = {name: dns(message, show=False) or b"" for name, message in MESSAGES.items()}
    rows = [
        dict(zip(MESSAGES, row, strict=True))
        for row in (
            tshark([frame(m, 53, wire.UDP, bool(m[2] & 0x80)) for m in group.values()], 1, FIELDS)
            for group in (MESSAGES, shown, hidden)
        )
    ]
    for name in MESSAGES:
        before, after, masked = (group[name] for group in rows)
        assert bool(before["malformed"]) >= bool(after["malformed"]), name
        assert bool(before["malformed"]) >= bool(masked["malformed"]), name
        if name != "reverse":
            assert after["name"] == "www.example.org"
        assert re.fullmatch(r"x+", masked["name"]), name
        assert after["cname"] == before["cname"]
    assert rows[1]["aliases"]["a"] == "192.0.2.254"


# ---- HTTP ---------------------------------------------------------------------------------------

HEADS = {
    "get": b"GET /secret?secret=1 HTTP/1.1\r\nHost: www.Example.org\r\nCookie: secret\r\n\r\n",
    "post": b"POST / HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 6\r\n"
    b"X-Forwarded-For: 192.0.2.1\r\n\r\nsecret",
    "absolute": b"GET http://www.example.org/secret HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost: www.example.org\r\nA: b\r\n secret\r\n\r\n",
    "secret method": b"OPTIONS * HTTP/1.0\r\nHost: www.example.org\r\nsecret: secret\r\n\r\n",
}
REPLIES = {
    "ok": b"HTTP/1.1 200 OK\r\nSet-Cookie: secret\r\nContent-Length: 6\r\n\r\nsecret",
    "gone": b"HTTP/1.1 404 secret\r\nServer: secret\r\nContent-Length: 0\r\n\r\n",
}


def request(head: bytes, *, show: bool) -> bytes:
    done, out = _core.build_http_request(head, name=show)
    assert done
    return bytes(out)


def response(data: bytes) -> bytes:
    done, out = _core.build_http_response(data)
    assert done
    return bytes(out)


def test_dpkt_reads_what_is_built_of_heads() -> None:
    for head in HEADS.values():
        before, after = dpkt.http.Request(head), dpkt.http.Request(request(head, show=True))
        assert (after.method, after.version) == (before.method, before.version)
        assert after.headers["host"] == "www.example.org"
        assert len(after.uri) == len(before.uri)
        hidden = dpkt.http.Request(request(head, show=False))
        assert hidden.headers["host"] == "xxxxxxx.invalid"
    for data in REPLIES.values():
        reply = dpkt.http.Response(response(data))
        assert reply.status == data.split()[1].decode()
        assert reply.headers["content-length"] == dpkt.http.Response(data).headers["content-length"]


def test_no_secret_is_built_of_heads() -> None:
    for head in HEADS.values():
        for show in (False, True):
            out = request(head, show=show)
            assert len(out) == len(head)
            assert not re.search(
                rb"(?i)secret|192\.0\.2|Example\.org", out.replace(b"www.example.org", b"")
            )
            assert show == (b"www.example.org" in out)
    assert not any(b"secret" in response(data) for data in REPLIES.values())


def test_tshark_reads_what_is_built_of_heads(tshark: Tshark) -> None:
    built = [request(head, show=True) for head in HEADS.values()]
    built += [request(head, show=False) for head in HEADS.values()]
    rows = tshark([frame(head, 80, wire.TCP) for head in built], 1, FIELDS)
    assert [row["host"] for row in rows] == ["www.example.org"] * 5 + ["xxxxxxx.invalid"] * 5
    assert not any(row["malformed"] for row in rows)
    assert rows[0]["uri"] == "/" + "x" * 15
    assert rows[1]["length"] == "6"
    replies = [frame(response(data), 80, wire.TCP, reply=True) for data in REPLIES.values()]
    rows = tshark(replies, 1, FIELDS)
    assert [(row["code"], row["malformed"]) for row in rows] == [("200", ""), ("404", "")]


# ---- real captures ------------------------------------------------------------------------------


def payloads(corpus: Path) -> Iterator[tuple[int, bool, bytes]]:
    """(protocol, from port 53 or 80?, payload) of whole DNS messages and of HTTP heads."""
    for path in sorted(p for p in corpus.rglob("*") if re.search(r"dns|http", p.name)):
        if path.suffix not in (".pcap", ".pcapng", ".cap") or path.stat().st_size > 1 << 20:
            continue
        try:
            with _core.Capture(str(path)) as capture:
                frames, _ = read_all(capture)
        except FormatError:
            continue
        for _, length, link, data in frames[:2000]:
            packet = _core.decode_packet(data, link, length)
            if isinstance(packet, dict) and "sport" in packet and packet["payload"]:
                whole = len(packet["payload"]) == packet["payload_len"]
                if (
                    packet["proto"] == wire.UDP
                    and whole
                    and 53 in (packet["sport"], packet["dport"])
                ):
                    yield wire.UDP, packet["sport"] == 53, packet["payload"]
                elif packet["proto"] == wire.TCP and b"HTTP/1" in packet["payload"]:
                    yield wire.TCP, packet["payload"].startswith(b"HTTP/1"), packet["payload"]


@pytest.fixture(scope="module")
def real(corpus: Path) -> list[tuple[int, bool, bytes]]:
    found = list(dict.fromkeys(payloads(corpus)))
    assert len(found) > 300
    return found


def build(protocol: int, reply: bool, data: bytes, show: bool) -> bytes | None:
    if protocol == wire.UDP:
        return dns(data, show=show)
    if reply:
        done, out = _core.build_http_response(data)
    else:
        done, out = _core.build_http_request(data, name=show)
    return bytes(out) if done else None


@pytest.mark.parametrize("show", [False, True])
def test_real_captures(real: list[tuple[int, bool, bytes]], tshark: Tshark, show: bool) -> None:
    pairs = [(*each, build(*each, show)) for each in real]
    done = [(p, reply, data, out) for p, reply, data, out in pairs if out is not None]
    assert all(len(data) == len(out) for _, _, data, out in done)
    for protocol, wanted in ((wire.UDP, 0.9), (wire.TCP, 0.8)):
        share = [out is not None for p, _, _, out in pairs if p == protocol]
        assert sum(share) >= wanted * len(share), (protocol, sum(share), len(share))
    ports = {wire.UDP: 53, wire.TCP: 80}
    before = tshark([frame(data, ports[p], p, reply) for p, reply, data, _ in done], 1, FIELDS)
    after = tshark([frame(out, ports[p], p, reply) for p, reply, _, out in done], 1, FIELDS)
    for (_, _, data, _), old, new in zip(done, before, after, strict=True):
        assert bool(new["malformed"]) <= bool(old["malformed"]), data
        assert new["code"] == old["code"]
        if show and _core.build_name_allowed(old["name"].encode()):
            assert new["name"] == old["name"].lower()
        if not show and old["name"] not in ("", "<Root>"):
            assert re.fullmatch(r"[x.]+", new["name"]), (old["name"], new["name"])


def test_words_of_real_messages_are_not_built(real: list[tuple[int, bool, bytes]]) -> None:
    """Masked, no three letters of a message are in what stands for it."""
    kept = {
        b"CONNECT",
        b"OPTIONS",
        b"GET",
        b"HEAD",
        b"POST",
        b"HTTP",
        b"close",
        b"keep",
        b"alive",
        b"chunked",
        b"upgrade",
    }
    fields = re.compile(rb"(?im)^[A-Za-z-]+ *:")
    for protocol, reply, data in real:
        out = build(protocol, reply, data, show=False) or b""
        text = fields.sub(b"", out)
        if protocol == wire.TCP and reply:
            text = text.partition(b"\n")[2]  # the status has a phrase
        words = set(re.findall(rb"[A-Za-z]{3,}", text)) - kept
        assert all(re.fullmatch(rb"x+|invalid", word) for word in words), words
        if protocol == wire.UDP and out:
            assert struct.unpack(">H", out[:2]) == struct.unpack(">H", data[:2])
