# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""ICMP messages as anonymized packets have them: made by scapy, read by scapy and tshark with all
checksums on."""

import ipaddress
from collections.abc import Iterator

import pytest
from differential.conftest import Tshark
from scapy.layers.inet import ICMP, IP, TCP, UDP, ICMPerror, IPerror, TCPerror, UDPerror
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPerror6,
    IPv6,
)
from scapy.packet import Packet, Raw
from support import wire

from zanon_net import _core

pytestmark = pytest.mark.source

DATA = Raw(b"canary-in-the-data" * 12)
V4, V6 = ("192.0.2.33", "198.51.100.44"), ("2001:db8:aaaa::33", "2001:db8:bbbb::44")
OUT4, OUT6 = ("10.9.8.7", "240.1.2.3"), ("fd00::9:8:7", "3fff::1:2:3")
ROUTER4, ROUTER6 = "240.5.5.5", "3fff::5:5:5"
CHECKED = {
    "malformed": "_ws.malformed",
    "icmp": "icmp.checksum.status",
    "icmp6": "icmpv6.checksum.status",
    "ip": "ip.checksum.status",
    "udp": "udp.checksum.status",
    "tcp": "tcp.checksum.status",
    "expert": "_ws.expert.message",
    "src": "ip.src",
    "src6": "ipv6.src",
    "type": "icmp.type",
    "type6": "icmpv6.type",
    "ports": "udp.port",
    "tcp_ports": "tcp.port",
    "mtu": "icmp.mtu",
    "mtu6": "icmpv6.mtu",
}


def quotes(v6: bool) -> Iterator[tuple[str, bytes]]:
    """Packets of a client, as routers quote them: whole, or their first bytes."""
    ends = V6 if v6 else V4
    base = IPv6(src=ends[0], dst=ends[1]) if v6 else IP(src=ends[0], dst=ends[1], id=7, flags="DF")
    head = 40 if v6 else 20
    echo = ICMPv6EchoRequest(id=0x1234, seq=7, data=DATA.load) if v6 else ICMP(id=0x1234) / DATA
    for name, packet in (
        ("udp", base / UDP(sport=40123, dport=53) / DATA),
        ("tcp", base / TCP(sport=40123, dport=443, seq=0x01020304, flags="PA") / DATA),
        ("echo", base / echo),
    ):
        data = bytes(packet)
        yield name, data
        yield name, data[: head + 8]


def errors(v6: bool) -> Iterator[Packet]:
    """Headers of errors, without their quote."""
    if v6:
        yield from (
            ICMPv6DestUnreach(code=4),
            ICMPv6PacketTooBig(mtu=1280),
            ICMPv6TimeExceeded(),
            ICMPv6ParamProblem(ptr=40),
        )
    else:
        yield from (
            ICMP(type=3, code=3),
            ICMP(type=3, code=4, nexthopmtu=1400),
            ICMP(type=11, code=0),
            ICMP(type=12, ptr=9),
            ICMP(type=5, code=1, gw=V4[1]),
        )


def packed(address: str) -> bytes:
    """The address as bytes."""
    return ipaddress.ip_address(address).packed


def built(message: bytes, v6: bool) -> bytes:
    """The message as it leaves in a packet from a router to the client."""
    out, router = (OUT6, ROUTER6) if v6 else (OUT4, ROUTER4)
    quote = {"src": packed(out[0]), "dst": packed(out[1]), "hops": 63, "service": 0, "id": 9}
    quote |= {"ports": (1025, 53), "seq": 0xABCD0123, "echo_id": 0x5EED}
    return _core.build_icmp(
        message, v6, src=packed(router), dst=packed(out[0]), gateway=packed(ROUTER4),
        echo_id=0x5EED, quote=quote,
    )  # fmt: skip


def messages(v6: bool) -> Iterator[tuple[str, bytes]]:
    """Messages by what they quote."""
    if v6:
        for echo in (ICMPv6EchoRequest, ICMPv6EchoReply):
            whole = IPv6(src=V6[0], dst=V6[1]) / echo(id=0x1234, seq=9, data=DATA.load)
            yield "", bytes(whole)[40:]
    else:
        for kind in (8, 0, 13, 42):
            yield "", bytes(ICMP(type=kind, id=0x1234, seq=9) / DATA)
    for head in errors(v6):
        for name, quote in quotes(v6):
            yield name, bytes(head / Raw(quote))


def frames(v6: bool) -> list[bytes]:
    """What leaves of all messages, each in a packet that scapy makes."""
    made = []
    for _, message in messages(v6):
        out = Raw(built(message, v6))
        if v6:
            packet = bytes(IPv6(src=ROUTER6, dst=OUT6[0], nh=58) / out)
            made.append(wire.ethernet(packet, wire.ETHERTYPE_IPV6))
        else:
            made.append(wire.ethernet(bytes(IP(src=ROUTER4, dst=OUT4[0], proto=1) / out)))
    return made


@pytest.mark.parametrize("v6", [False, True])
def test_tshark_finds_no_checksum_wrong(tshark: Tshark, v6: bool) -> None:
    rows = tshark(frames(v6), wire.LINK_ETHERNET, CHECKED, every=True)
    for row, (quoted, message) in zip(rows, messages(v6), strict=True):
        assert row["malformed"] == ""
        assert "hecksum" not in row["expert"], row
        assert "ogus" not in row["expert"], row
        for layer in ("icmp", "icmp6", "ip", "udp", "tcp"):
            assert "0" not in row[layer].split(","), (layer, message.hex())  # 0: bad
        expected = (ROUTER6 if v6 else ROUTER4) + ("," + (OUT6 if v6 else OUT4)[0]) * bool(quoted)
        assert row["src6" if v6 else "src"] == expected
        assert row["type6" if v6 else "type"].split(",")[0] == str(message[0])
        assert row["ports" if quoted == "udp" else "tcp_ports"] == {"udp": "1025,53"}.get(
            quoted, "1025,53" if quoted == "tcp" else ""
        )
    assert {row["mtu6" if v6 else "mtu"] for row in rows} == {"", "1280" if v6 else "1400"}


@pytest.mark.parametrize("v6", [False, True])
def test_scapy_reads_what_was_chosen(v6: bool) -> None:
    for quoted, message in messages(v6):
        out = built(message, v6)
        assert len(out) == len(message)
        for canary in (*map(packed, (*V4, *V6)), b"canary", (40123).to_bytes(2, "big")):
            assert canary not in out
        if not quoted:
            continue
        ends = OUT6 if v6 else OUT4
        around = (
            IPv6(src=ROUTER6, dst=OUT6[0], nh=58) if v6 else IP(src=ROUTER4, dst=OUT4[0], proto=1)
        )
        read = (IPv6 if v6 else IP)(bytes(around / Raw(out)))
        quote = read[IPerror6 if v6 else IPerror]
        assert (quote.src, quote.dst) == ends
        assert (quote.hlim if v6 else quote.ttl) == 63
        if quoted == "udp":
            assert (quote[UDPerror].sport, quote[UDPerror].dport) == (1025, 53)
        elif quoted == "tcp":
            # scapy takes 8 bytes of TCP for no TCP header
            assert bytes(quote.payload)[:8] == bytes.fromhex("0401 0035 abcd0123")
            assert TCPerror in quote
        elif not v6:
            assert (quote[ICMPerror].type, quote[ICMPerror].id) == (8, 0x5EED)
