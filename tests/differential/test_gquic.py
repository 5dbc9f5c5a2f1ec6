# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Handshakes of Google's QUIC, read by us and by tshark."""

from collections.abc import Callable

from support import gquic_wire as gquic
from support import wire
from support.gquic_wire import Part, hello

from zanon_net import _core

Tshark = Callable[..., list[dict[str, str]]]
FIELDS = {"name": "gquic.tag.sni", "token": "gquic.tag.stk"}
HELLOS = {
    "plain": hello(),
    "padded": hello(b"padded.example.org", pad=800),
    "long": hello(b".".join([b"x" * 60] * 4)),
    "token": hello(b"t.example", gquic.TOKEN),
    "more": hello(b"m.example", b"", (b"PDMD", b"X509"), (b"SMHL", bytes(4))),
    "no-name": hello(None),
}
PINGED = b"\x07"


def test_the_hash_is_fnv_1a() -> None:
    assert gquic.fnv1a(b"foobar") == bytes.fromhex("343e1662793c64bf6f0d3597ba446f18")[::-1][:12]


def test_tshark_reads_the_same_hellos(tshark: Tshark) -> None:
    cases = [
        (name, version, Part(data, version=version, before=before).seal(), data)
        for version in gquic.VERSIONS
        for name, data in HELLOS.items()
        for before in (b"", PINGED)
    ]
    frames = [
        wire.ethernet(wire.ipv4(wire.udp(packet, ports=(40000 + n, 443)), wire.UDP))
        for n, (_, _, packet, _) in enumerate(cases)
    ]
    rows = tshark(frames, wire.LINK_ETHERNET, FIELDS)
    for (name, version, packet, data), row in zip(cases, rows, strict=True):
        state, named, key, parts = _core.parse_gquic(packet)
        assert (state, named, key, parts) == ("done", version, gquic.ID, [(0, data)]), name
        state, host, _, token = _core.parse_gquic_hello(data)
        theirs = (row["name"], row["token"].replace(":", ""))
        assert (host.decode(), token.hex()) == theirs, (name, version)
