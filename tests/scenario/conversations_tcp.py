# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations of TLS over TCP, named after the case that each tries."""

from scapy.layers.inet import TCP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.packet import Packet
from support import wire

from scenario.conversation import Ends, placed, shows, split

PADDING = wire.extension(wire.PADDING, bytes(400))
SHARES = wire.extension(wire.KEY_SHARE, wire.vector(2, b"\x11\xec" + wire.vector(2, bytes(1216))))
ECH_OUTER = wire.extension(wire.ECH, b"\0\0\1\0\1\7" + wire.vector(2, bytes(32)) * 2)
CHANGE_CIPHER = wire.record(b"\1", kind=20)


@shows("tls-one-segment")
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls())


@shows("tls-ipv6")
def _(e: Ends) -> list[Packet]:
    e.v6 = True
    return e.talk(e.tls())


@shows("tls-two-segments")
def _(e: Ends) -> list[Packet]:
    return e.talk(*split(e.tls(), 70))


@shows("tls-cut-in-the-name")
def _(e: Ends) -> list[Packet]:
    hello = e.tls()
    return e.talk(*split(hello, hello.index(e.host) + 3))


@shows("tls-cut-in-the-record-header")
def _(e: Ends) -> list[Packet]:
    return e.talk(*split(e.tls(), 3))


@shows("tls-cut-in-the-handshake-header")
def _(e: Ends) -> list[Packet]:
    return e.talk(*split(e.tls(), 7))


@shows("tls-six-byte-segments")
def _(e: Ends) -> list[Packet]:
    hello = e.tls()
    return e.talk(*split(hello, *range(6, len(hello), 6)))


@shows("tls-last-byte-alone")
def _(e: Ends) -> list[Packet]:
    hello = e.tls()
    return e.talk(*split(hello, len(hello) - 1))


@shows("tls-segments-reversed")
def _(e: Ends) -> list[Packet]:
    return e.at(*reversed(placed(e.tls(PADDING), 100, 300)))


@shows("tls-segments-out-of-order")
def _(e: Ends) -> list[Packet]:
    first, second, third, fourth = placed(e.tls(PADDING), 100, 200, 300)
    return e.at(first, third, second, fourth)


@shows("tls-first-segment-retransmitted")
def _(e: Ends) -> list[Packet]:
    first, second = placed(e.tls(), 60)
    return e.at(first, first, second)


@shows("tls-hello-retransmitted")
def _(e: Ends) -> list[Packet]:
    return e.at((0, e.tls()), (0, e.tls()))


@shows("tls-retransmitted-in-other-segments")
def _(e: Ends) -> list[Packet]:
    hello = e.tls(PADDING)
    return e.at((0, hello[:200]), (100, hello[100:350]), (300, hello[300:]))


@shows("tls-segment-lost-and-sent-again")
def _(e: Ends) -> list[Packet]:
    hello = e.tls(PADDING)
    return e.at((200, hello[200:]), (0, hello[:100]), (100, hello[100:200]))


@shows("tls-keepalive-before")
def _(e: Ends) -> list[Packet]:
    return e.at((-1, b"\0"), (0, e.tls()))


@shows("tls-sequence-numbers-wrap")
def _(e: Ends) -> list[Packet]:
    e.sent[0] = 2**32 - 50
    return e.talk(*split(e.tls(), 60))


@shows("tls-in-the-syn")
def _(e: Ends) -> list[Packet]:
    """RFC 7413: data with a SYN."""
    opening = e.tcp("S", e.tls())
    return [opening, e.tcp("SA", side=1), e.tcp("A"), *e.close()]


@shows("tls-with-the-fin")
def _(e: Ends) -> list[Packet]:
    return [*e.handshake(), e.tcp("FPA", e.tls()), e.tcp("FA", side=1), e.tcp("A")]


@shows("tls-then-reset")
def _(e: Ends) -> list[Packet]:
    return [*e.handshake(), e.tcp("PA", e.tls()), e.tcp("R", side=1)]


@shows("tls-two-syns")
def _(e: Ends) -> list[Packet]:
    return [e.ip() / TCP(**e.ports(), seq=1000, flags="S"), *e.talk(e.tls())]


@shows("tls-tcp-options")
def _(e: Ends) -> list[Packet]:
    packets = e.talk(e.tls())
    for packet in packets:
        packet[TCP].options = [("NOP", None), ("NOP", None), ("Timestamp", (7, 9))]
    return packets


@shows("tls-without-syn")
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls())[3:]


@shows("tls-without-the-server")
def _(e: Ends) -> list[Packet]:
    return [packet for packet in e.talk(e.tls()) if packet[TCP].dport == 443]


@shows("tls-two-records")
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.records(e.hello(), [50, 1000]))


@shows("tls-many-records")
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.records(e.hello(), [9]))


@shows("tls-a-record-a-segment")
def _(e: Ends) -> list[Packet]:
    hello = e.hello()
    return e.talk(*(wire.record(part) for part in split(hello, 40, 80)))


@shows("tls-records-across-segments")
def _(e: Ends) -> list[Packet]:
    records = wire.records(e.hello(), [30])
    return e.talk(*split(records, *range(17, len(records), 17)))


@shows("tls-more-behind-the-hello")
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls() + CHANGE_CIPHER + wire.record(bytes(60), kind=23))


@shows("tls-record-version-1.2")
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.record(e.hello(), 0x0303))


@shows("tls-1.0")
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.record(e.hello(version=0x0301), 0x0301))


@shows("tls-hello-retry")
def _(e: Ends) -> list[Packet]:
    """RFC 8446 4.1.4: the client says hello a second time; that is one vote."""
    retry = wire.record(b"\2" + wire.vector(3, b"\3\3" + bytes(38)), 0x0303)
    packets = [*e.handshake(), e.tcp("PA", e.tls()), e.tcp("PA", retry, side=1)]
    return [*packets, e.tcp("PA", CHANGE_CIPHER + e.tls(SHARES)), *e.close()]


@shows("tls-ech-outer-name")
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls(ECH_OUTER))


@shows("tls-grease-around-the-name")
def _(e: Ends) -> list[Packet]:
    grease = wire.extension(wire.GREASE)
    return e.talk(wire.record(wire.client_hello(grease, wire.server_name(e.host), grease)))


@shows("tls-post-quantum")
def _(e: Ends) -> list[Packet]:
    hello = wire.record(wire.client_hello(SHARES, wire.server_name(e.host)))
    return e.talk(*split(hello, 1200))


@shows("tls-long-hello")
def _(e: Ends) -> list[Packet]:
    big = wire.extension(wire.PADDING, bytes(9000))
    hello = wire.record(wire.client_hello(big, wire.server_name(e.host)))
    return e.talk(*split(hello, *range(1400, len(hello), 1400)))


@shows("tls-session-ticket")
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls(wire.extension(35, bytes(190))))


@shows("tls-name-with-underscore", ("tls", "_x.tls.example.org"))
def _(e: Ends) -> list[Packet]:
    e.host = b"_x.tls.example.org"
    return e.talk(e.tls())


@shows("tls-name-in-capitals", ("tls", "capitals.example.org"))
def _(e: Ends) -> list[Packet]:
    e.host = b"CAPITALS.Example.ORG"
    return e.talk(e.tls())


@shows("tls-longest-name", ("tls", ".".join(["x" * 60] * 4)))
def _(e: Ends) -> list[Packet]:
    e.host = b".".join([b"x" * 60] * 4)
    return e.talk(e.tls())


@shows("tls-port-8443")
def _(e: Ends) -> list[Packet]:
    e.server_port = 8443
    return e.talk(e.tls())


@shows("tls-port-993")
def _(e: Ends) -> list[Packet]:
    e.server_port = 993
    return e.talk(e.tls())


@shows("tls-port-unassigned")
def _(e: Ends) -> list[Packet]:
    e.server_port = 31234
    return e.talk(e.tls())


@shows("tls-hop-by-hop-options")
def _(e: Ends) -> list[Packet]:
    e.v6 = True
    packets = e.talk(e.tls())
    return [
        p[IPv6].__class__(src=p.src, dst=p.dst) / IPv6ExtHdrHopByHop() / p[TCP] for p in packets
    ]


@shows("tls-no-name", nameless=True)
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.record(wire.client_hello(wire.extension(0x17))))


@shows("tls-no-extensions", nameless=True)
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.record(wire.client_hello()))


@shows("tls-server-hello-only", nameless=True)
def _(e: Ends) -> list[Packet]:
    hello = wire.record(b"\2" + wire.vector(3, b"\3\3" + bytes(38)), 0x0303)
    return [*e.handshake(), e.tcp("PA", hello, side=1), *e.close()]


@shows("tls-alert-only", nameless=True)
def _(e: Ends) -> list[Packet]:
    return e.talk(wire.record(b"\2\x28", kind=21))


@shows("tls-handshake-without-data", nameless=True)
def _(e: Ends) -> list[Packet]:
    return [*e.handshake(), *e.close()]


@shows("tls-hello-that-never-ends", nameless=True)
def _(e: Ends) -> list[Packet]:
    return e.talk(e.tls(PADDING)[:200])
