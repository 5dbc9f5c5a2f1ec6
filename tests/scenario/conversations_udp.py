# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations of DNS, QUIC and DTLS, and of all in IP fragments, named after their cases."""

import random
import struct
from collections.abc import Callable, Iterable, Sequence

from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRROPT
from scapy.layers.inet import IP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
from scapy.packet import Packet
from support import quic_wire as quic
from support import wire
from support.quic_wire import Initial, crypto, dtls_fragment, dtls_hello, dtls_record

from scenario.conversation import Builder, Ends, shows

# ---- DNS over UDP -------------------------------------------------------------------------------


def dns(name: str, *names: tuple[str, str], nameless: bool = False) -> Callable[[Builder], Builder]:
    """A case on port 53."""

    def register(builder: Builder) -> Builder:
        def on_53(e: Ends) -> Iterable[Packet]:
            e.server_port = 53
            return builder(e)

        shows(name, *names, nameless=nameless)(on_53)
        return builder

    return register


def lookup(e: Ends, kind: str = "A", *, ident: int = 7, **more: Packet) -> list[Packet]:
    """A question and its answer, which repeats the name by pointers."""
    question = DNSQR(qname=e.host, qtype=kind)
    asked = DNS(id=ident, rd=1, qd=question, **more)
    answer = DNSRR(rrname=e.host, type="A", rdata="192.0.2.1", ttl=60)
    answered = DNS(id=ident, qr=1, ra=1, qd=question, an=answer)
    return [e.udp(bytes(asked)), e.udp(bytes(answered), side=1)]


for _kind in ("A", "AAAA", "MX", "TXT", "NS", "SOA", "HTTPS"):
    dns(f"dns-{_kind.lower()}")(lambda e, kind=_kind: lookup(e, kind))


@dns("dns-edns")
def _(e: Ends) -> list[Packet]:
    return lookup(e, ar=DNSRROPT(rclass=1232))


@dns("dns-ipv6")
def _(e: Ends) -> list[Packet]:
    e.v6 = True
    return lookup(e)


@dns("dns-mixed-case", ("dns", "mixed.example.org"))
def _(e: Ends) -> list[Packet]:
    e.host = b"MiXeD.exAMPle.org"
    return lookup(e)


@dns("dns-underscores", ("dns", "_dmarc.example.org"))
def _(e: Ends) -> list[Packet]:
    e.host = b"_dmarc.example.org"
    return lookup(e, "TXT")


@dns("dns-several-questions-of-a-port", ("dns", "a.example.org"), ("dns", "b.example.org"))
def _(e: Ends) -> list[Packet]:
    packets = []
    for ident, host in enumerate((b"a.example.org", b"b.example.org", b"a.example.org")):
        e.host = host
        packets += lookup(e, ident=ident)
    return packets


@dns("dns-question-repeated")
def _(e: Ends) -> list[Packet]:
    asked, answered = lookup(e)
    return [asked, asked, answered]


@dns("dns-no-such-name")
def _(e: Ends) -> list[Packet]:
    question = DNSQR(qname=e.host)
    return [
        e.udp(bytes(DNS(id=9, rd=1, qd=question))),
        e.udp(bytes(DNS(id=9, qr=1, rcode=3, qd=question)), side=1),
    ]


# ---- QUIC and DTLS ------------------------------------------------------------------------------


def ids(e: Ends) -> dict[str, bytes]:
    """Connection IDs of the case's own: tshark knows connections by them."""
    return {"dcid": struct.pack(">II", 0xC11E0000, e.number), "scid": struct.pack(">I", e.number)}


def flight(e: Ends, message: bytes, **initial: object) -> list[bytes]:
    return quic.first_flight(message, **ids(e), **initial)


def quic_hello(e: Ends, *extensions: bytes) -> bytes:
    return quic.hello(*extensions, host=e.host)


VERSIONS = {"v1": quic.V1, "v2": quic.V2}
VERSIONS |= {f"draft-{n}": 0xFF000000 + n for n in (27, 28, 29, 30, 31, 32, 33, 34)}
for _version, _number in VERSIONS.items():
    shows(f"quic-{_version}")(
        lambda e, number=_number: [e.udp(data) for data in flight(e, quic_hello(e), version=number)]
    )


@shows("quic-ipv6")
def _(e: Ends) -> list[Packet]:
    e.v6 = True
    return [e.udp(data) for data in flight(e, quic_hello(e))]


@shows("quic-two-initials")
def _(e: Ends) -> list[Packet]:
    return [e.udp(data) for data in flight(e, quic.post_quantum(e.host))]


@shows("quic-three-initials")
def _(e: Ends) -> list[Packet]:
    padding = wire.extension(wire.PADDING, bytes(1400))
    share = wire.extension(
        wire.KEY_SHARE, wire.vector(2, b"\x11\xec" + wire.vector(2, bytes(1216)))
    )
    return [e.udp(data) for data in flight(e, quic_hello(e, share, padding))]


@shows("quic-crypto-in-pieces")
def _(e: Ends) -> list[Packet]:
    hello = quic_hello(e)
    frames = crypto(hello[:40]) + quic.PING + crypto(hello[40:60], 40) + crypto(hello[60:], 60)
    return [e.udp(Initial(frames, size=1200, **ids(e)).seal())]


@shows("quic-crypto-scrambled")
def _(e: Ends) -> list[Packet]:
    hello = quic_hello(e, wire.extension(wire.PADDING, bytes(400)))
    frames = quic.scrambled(hello, random.Random(5), range(30, 500, 70))
    return [e.udp(Initial(frames, size=1200, **ids(e)).seal())]


@shows("quic-padding-ping-ack-first")
def _(e: Ends) -> list[Packet]:
    frames = bytes(50) + quic.PING + quic.ACK + crypto(quic_hello(e))
    return [e.udp(Initial(frames, size=1200, **ids(e)).seal())]


@shows("quic-coalesced-with-0-rtt")
def _(e: Ends) -> list[Packet]:
    initial = Initial(crypto(quic_hello(e)), size=700, **ids(e)).seal()
    own = ids(e)
    return [e.udp(initial + quic.opaque(quic.ZERO_RTT, own["dcid"], own["scid"], 400))]


@shows("quic-token")
def _(e: Ends) -> list[Packet]:
    return [e.udp(data) for data in flight(e, quic_hello(e), token=bytes(range(70)))]


@shows("quic-server-answers")
def _(e: Ends) -> list[Packet]:
    own = ids(e)
    server_id = struct.pack(">II", 0x5E12E200, e.number)
    answer = quic.server_answer(own["scid"], server_id, key_id=own["dcid"])
    first = [e.udp(data) for data in flight(e, quic_hello(e))]
    return [*first, e.udp(answer, side=1), e.udp(quic.short(server_id))]


@shows("quic-initial-retransmitted")
def _(e: Ends) -> list[Packet]:
    first = flight(e, quic_hello(e))[0]
    again = Initial(crypto(quic_hello(e)), number=1, size=1200, **ids(e)).seal()
    return [e.udp(first), e.udp(again)]


@shows("quic-port-unassigned")
def _(e: Ends) -> list[Packet]:
    e.server_port = 31443
    return [e.udp(data) for data in flight(e, quic_hello(e))]


@shows("quic-no-name", nameless=True)
def _(e: Ends) -> list[Packet]:
    return [e.udp(data) for data in flight(e, quic.hello(host=None))]


@shows("dtls-1.2")
def _(e: Ends) -> list[Packet]:
    e.server_port = 5684
    return [e.udp(dtls_record(dtls_fragment(dtls_hello(host=e.host)), version=0xFEFD))]


@shows("dtls-cookie")
def _(e: Ends) -> list[Packet]:
    e.server_port = 5684
    first, second = dtls_hello(host=e.host), dtls_hello(host=e.host, cookie=bytes(range(20)))
    return [
        e.udp(dtls_record(dtls_fragment(first))),
        e.udp(quic.verify_request(bytes(range(20))), side=1),
        e.udp(dtls_record(dtls_fragment(second, message=1), number=1)),
    ]


# ---- IP fragments -------------------------------------------------------------------------------


def fragmented(packet: Packet, size: int, number: int) -> list[Packet]:
    """RFC 791 3.2, RFC 8200 4.5."""
    if IPv6 not in packet:
        packet[IP].id = number
        return list(fragment(packet.__class__(bytes(packet)), size))
    header = IPv6(src=packet.src, dst=packet.dst) / IPv6ExtHdrFragment(id=number)
    return list(fragment6(header / packet[IPv6].payload, size))


def in_fragments(
    packets: Sequence[Packet], size: int = 64, *, turned: bool = False
) -> list[Packet]:
    """Each packet with a payload in fragments."""
    out = []
    for number, packet in enumerate(packets):
        parts = [packet]
        if len(packet) > size + 40:
            parts = fragmented(packet, size if IPv6 not in packet else size + 60, 100 + number)
        out += reversed(parts) if turned else parts
    return out


FRAGMENTED: dict[str, tuple[bool, bool]] = {
    "in-fragments": (False, False),
    "in-fragments-reversed": (False, True),
    "in-ipv6-fragments": (True, False),
    "in-ipv6-fragments-reversed": (True, True),
}
for _name, (_v6, _turned) in FRAGMENTED.items():

    def _tls(e: Ends, v6: bool = _v6, turned: bool = _turned) -> list[Packet]:
        e.v6 = v6
        return in_fragments(e.talk(e.tls()), turned=turned)

    def _dns(e: Ends, v6: bool = _v6, turned: bool = _turned) -> list[Packet]:
        e.v6 = v6
        padding = DNSRROPT(rclass=1232, rdata=struct.pack(">HH", 12, 200) + bytes(200))
        return in_fragments(lookup(e, ar=padding), turned=turned)

    def _quic(e: Ends, v6: bool = _v6, turned: bool = _turned) -> list[Packet]:
        e.v6 = v6
        return in_fragments([e.udp(d) for d in flight(e, quic_hello(e))], 600, turned=turned)

    shows(f"tls-{_name}")(_tls)
    dns(f"dns-{_name}")(_dns)
    shows(f"quic-{_name}")(_quic)


@shows("tls-fragment-twice")
def _(e: Ends) -> list[Packet]:
    parts = in_fragments(e.talk(e.tls()))
    first = next(i for i, part in enumerate(parts) if part[IP].flags == "MF")
    return [*parts[: first + 1], *parts[first:]]


@shows("tls-fragment-lost", nameless=True)
def _(e: Ends) -> list[Packet]:
    parts = in_fragments(e.talk(e.tls()))
    first = next(i for i, part in enumerate(parts) if part[IP].flags == "MF")
    return [*parts[: first + 1], *parts[first + 2 :]]
