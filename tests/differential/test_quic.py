# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC Initials and DTLS hellos, read by us and by tshark."""

import dataclasses
import random
import struct
from collections.abc import Callable, Sequence

from support import quic_wire as quic
from support import wire
from support.quic_wire import (
    DCID,
    SCID,
    V1,
    V2,
    Initial,
    crypto,
    dtls_fragment,
    dtls_hello,
    dtls_record,
)

from zanon_net import _core, parse

Tshark = Callable[..., list[dict[str, str]]]
FIELDS = {
    "name": "tls.handshake.extensions_server_name",
    "version": "quic.version",
    "dcid": "quic.dcid",
    "scid": "quic.scid",
}
HELLO = quic.hello(host=b"a.example.org")
PADDED = quic.hello(wire.extension(wire.PADDING, bytes(500)), host=b"padded.example.org")

INITIALS = {
    f"version-{version:08x}": Initial(crypto(HELLO), version)
    for version in (V1, V2, *(0xFF000000 + n for n in range(23, 35)))
}
INITIALS |= {
    f"number-of-{n}": Initial(crypto(HELLO), number=5, number_bytes=n) for n in (1, 2, 3, 4)
}
INITIALS |= {
    "token": Initial(crypto(HELLO), token=bytes(range(90))),
    "no-source-id": Initial(crypto(HELLO), scid=b""),
    "ping-and-ack": Initial(quic.PING + quic.ACK + crypto(HELLO)),
    "ack-ecn": Initial(quic.ACK_ECN + crypto(HELLO)),
    "padding-first": Initial(bytes(300) + crypto(HELLO)),
    "two-pieces": Initial(crypto(HELLO[:40]) + crypto(HELLO[40:], 40)),
    "out-of-order": Initial(crypto(HELLO[40:], 40) + crypto(HELLO[:40])),
    "scrambled": Initial(quic.scrambled(PADDED, random.Random(3), range(30, 600, 60))),
    "zero-rtt-behind": Initial(crypto(HELLO)),
    "handshake-behind": Initial(crypto(HELLO)),
    "noise-behind": Initial(crypto(HELLO)),
    "no-name": Initial(crypto(quic.hello(host=None))),
    "ech": Initial(crypto(quic.hello(wire.extension(wire.ECH, bytes(40))))),
    "long-name": Initial(crypto(quic.hello(host=b".".join([b"x" * 60] * 4)))),
}
BEHIND = {"zero-rtt-behind": quic.ZERO_RTT, "handshake-behind": quic.HANDSHAKE}


def sealed(case: str, number: int) -> bytes:
    """The case's datagram. tshark knows connections by their IDs: each case has its own."""
    dcid = struct.pack(">II", 0xC11E0000, number)
    initial = dataclasses.replace(INITIALS[case], dcid=dcid)
    if case in BEHIND:
        return initial.seal() + quic.opaque(BEHIND[case], dcid, SCID, 900)
    noise = bytes(30) if case == "noise-behind" else b""
    return dataclasses.replace(initial, size=1200).seal() + noise


DATAGRAMS = {case: sealed(case, number) for number, case in enumerate(INITIALS)}


def frames(payloads: Sequence[bytes], port: int) -> list[bytes]:
    """One datagram each, from a port of its own."""
    return [
        wire.ethernet(wire.ipv4(wire.udp(payload, ports=(40000 + n, port)), wire.UDP))
        for n, payload in enumerate(payloads)
    ]


def test_tshark_reads_the_same_initials(tshark: Tshark) -> None:
    rows = tshark(frames(list(DATAGRAMS.values()), 443), wire.LINK_ETHERNET, FIELDS)
    for (case, datagram), row in zip(DATAGRAMS.items(), rows, strict=True):
        ours = parse.quic_initial(datagram)
        theirs = (row["name"], int(row["version"], 16), row["dcid"], row["scid"])
        assert (ours.raw.decode(), ours.version, ours.dcid.hex(), ours.scid.hex()) == theirs, case


def test_tshark_tells_the_same_packets_apart(tshark: Tshark) -> None:
    """The kinds of long headers, in the numbering of each version."""
    packets = {
        (kind, version): head
        for version in (V1, V2)
        for kind, head in (
            ("initial", Initial(crypto(HELLO), version, size=1200).seal()),
            ("0-rtt", quic.opaque(quic.ZERO_RTT, DCID, SCID, 60, version)),
            ("handshake", quic.opaque(quic.HANDSHAKE, DCID, SCID, 60, version)),
            ("retry", quic.retry(DCID, SCID, version=version)),
        )
    }
    fields = {"v1": "quic.long.packet_type", "v2": "quic.long.packet_type_v2"}
    rows = tshark(frames(list(packets.values()), 443), wire.LINK_ETHERNET, fields)
    names = ["initial", "0-rtt", "handshake", "retry"]
    for ((kind, version), packet), row in zip(packets.items(), rows, strict=True):
        ((ours, *_),) = _core.parse_quic_packets(packet)[1]
        theirs = names[int(row["v1"]) if version == V1 else (int(row["v2"]) - 1) % 4]
        assert (ours, theirs) == (kind, kind)


COAPS = 5684  # a port on which tshark looks for DTLS
BODY = dtls_hello(host=b"d.example.org")
DTLS = {
    "1.2": dtls_record(dtls_fragment(BODY), version=0xFEFD),
    "1.0": dtls_record(dtls_fragment(dtls_hello(host=b"old.example.org", version=0xFEFF))),
    "cookie": dtls_record(dtls_fragment(dtls_hello(cookie=bytes(32)), message=1), number=1),
    "1.3": dtls_record(
        dtls_fragment(dtls_hello(wire.extension(wire.SUPPORTED_VERSIONS, b"\2\xfe\xfc")))
    ),
    "no-name": dtls_record(dtls_fragment(dtls_hello(host=None))),
    "alert-first": dtls_record(b"\1\0", kind=21) + dtls_record(dtls_fragment(BODY)),
}


def test_tshark_reads_the_same_dtls_hellos(tshark: Tshark) -> None:
    fields = {"name": "dtls.handshake.extensions_server_name", "cookie": "dtls.handshake.cookie"}
    rows = tshark(frames(list(DTLS.values()), COAPS), wire.LINK_ETHERNET, fields)
    for (case, datagram), row in zip(DTLS.items(), rows, strict=True):
        state, ((_, _, length, _, body),) = _core.parse_dtls(datagram)
        assert (state, length) == ("done", len(body))
        ours = _core.parse_dtls_hello(body)
        assert (ours[1].decode(), ours[3].hex()) == (row["name"], row["cookie"]), case
