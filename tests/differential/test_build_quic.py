# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC datagrams as anonymized packets have them, opened by tshark; and those of real captures,
which are the same bytes where nothing in them is edited."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from differential.conftest import Tshark
from oracle.quic import Long, opened, said_by, split, varint
from support import quic_wire as quic
from support import wire
from support.quic_wire import SCID, SERVER_ID, V1, V2, Initial, crypto

from zanon_net import _core
from zanon_net.errors import FormatError

pytestmark = pytest.mark.source

HOST, EDITED = b"canary.example.org", b"xxxxxxxxxx.invalid"
FIELDS = {
    "name": "tls.handshake.extensions_server_name",
    "frames": "quic.frame_type",
    "failed": "quic.decryption_failed",
    "malformed": "_ws.malformed",
    "expert": "_ws.expert.message",
}
VERSIONS = (V1, V2, *(0xFF000000 + n for n in range(23, 35)))


def cases(host: bytes) -> Iterator[bytes]:
    """Client Initials that name this host, each of a connection of its own."""
    hello = quic.hello(host=host)
    padded = quic.hello(wire.extension(wire.PADDING, bytes(500)), host=host)
    ids = (struct.pack(">II", 0xC11E0000, n) for n in range(100))
    for version in VERSIONS:
        yield Initial(crypto(hello), version, next(ids), size=1200).seal()
    for size in (1, 2, 3, 4):
        yield Initial(crypto(hello), dcid=next(ids), number=5, number_bytes=size, size=1200).seal()
    for frames in (
        quic.PING + quic.ACK + crypto(hello),
        bytes(300) + crypto(hello),
        crypto(padded[200:], 200) + quic.PING + crypto(padded[:200]),
        crypto(padded[90:400], 90) + crypto(padded[:90]) + crypto(padded[400:], 400),
    ):
        yield Initial(frames, dcid=next(ids), size=1200).seal()
    behind = next(ids)
    yield Initial(crypto(hello), dcid=behind).seal() + quic.opaque(quic.ZERO_RTT, behind, SCID, 900)


def streams() -> Iterator[bytes]:
    """The edited hello of each case."""
    plain = quic.hello(host=EDITED)
    padded = quic.hello(wire.extension(wire.PADDING, bytes(500)), host=EDITED)
    for n in range(len(list(cases(HOST)))):
        yield padded if len(VERSIONS) + 6 <= n <= len(VERSIONS) + 7 else plain


def frame(payload: bytes, n: int, *, server: bool = False) -> bytes:
    """A datagram between the n-th client and the server."""
    ends, ports = (f"10.7.{n >> 8}.{n & 255}", "192.0.2.7"), (40000, 443)
    if server:
        ends, ports = ends[::-1], ports[::-1]
    return wire.ethernet(wire.ipv4(wire.udp(payload, ports=ports), wire.UDP, addresses=ends))


def test_tshark_opens_each_and_sees_the_edited_name(tshark: Tshark) -> None:
    built = [
        _core.build_quic(datagram, crypto=stream)
        for datagram, stream in zip(cases(HOST), streams(), strict=True)
    ]
    assert {resealed for _, resealed in built} == {1}
    before = tshark([frame(d, n) for n, d in enumerate(cases(HOST))], wire.LINK_ETHERNET, FIELDS)
    after = tshark([frame(d, n) for n, (d, _) in enumerate(built)], wire.LINK_ETHERNET, FIELDS)
    for old, new in zip(before, after, strict=True):
        assert old["name"] == HOST.decode()
        assert new == old | {"name": EDITED.decode()}


def test_tshark_takes_a_conversation_as_it_took_it_before(tshark: Tshark) -> None:
    """With both sides' Initials sealed again, no packet fails that did not before. A datagram
    behind a Retry has its token of zeros, and the Retry a tag that is right."""
    dcid = b"\x11" * 8
    hello, edited = quic.hello(host=HOST), quic.hello(host=EDITED)
    after_retry = {"dcid": SERVER_ID, "key_id": SERVER_ID, "token": b"token", "number": 1}
    said = [
        (Initial(crypto(hello), dcid=dcid, size=1200).seal(), dcid, False),
        (quic.retry(SCID, SERVER_ID, key_id=dcid), dcid, True),
        (Initial(crypto(hello), size=1200, **after_retry).seal(), SERVER_ID, False),  # type: ignore[arg-type]
        (quic.server_answer(key_id=SERVER_ID), SERVER_ID, True),
        (
            Initial(quic.ACK, dcid=SERVER_ID, number=2).seal()
            + quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID),
            SERVER_ID,
            False,
        ),
    ]
    built = [
        _core.build_quic(d, crypto=b"" if server else edited, key_id=key_id, server=server)[0]
        for d, key_id, server in said
    ]
    fields = {"failed": "quic.decryption_failed", "malformed": "_ws.malformed"}
    fields |= {"type": "quic.long.packet_type", "tag": "quic.retry_integrity_tag"}
    fields |= {"expert": "_ws.expert.message"}
    rows = [
        tshark(
            [frame(d, 1, server=s) for d, (_, _, s) in zip(datagrams, said, strict=True)],
            wire.LINK_ETHERNET,
            fields,
            every=True,
        )
        for datagrams in ([d for d, _, _ in said], built)
    ]
    for old, new in zip(*rows, strict=True):
        assert old["malformed"] == new["malformed"] == ""
        assert (old["type"], old["failed"]) == (new["type"], new["failed"])
        assert "verification failure" not in new["expert"]
    assert any(row["tag"] for row in rows[1])


# ---- real captures ------------------------------------------------------------------------------


def datagrams(path: Path) -> Iterator[tuple[tuple[object, object], bytes]]:
    """(sender and receiver, payload) of the capture's whole UDP datagrams."""
    with _core.Capture(str(path)) as capture:
        while frames := capture.frames(1000):
            for _, wire_bytes, link, data in frames:
                packet = _core.decode_packet(data, link, wire_bytes)
                if isinstance(packet, str) or packet.get("proto") != wire.UDP:
                    continue
                ends = (packet["src"], packet["sport"]), (packet["dst"], packet["dport"])
                if len(packet["payload"]) == packet["payload_len"]:
                    yield ends, packet["payload"]


def initials_of(datagram: bytes) -> list[Long]:
    """The Initials of a version that is read; none where it is not QUIC."""
    try:
        packets, _ = split(datagram)
    except IndexError:
        return []
    return [p for p in packets if p.kind == quic.INITIAL and p.version in quic.VERSIONS]


@dataclass
class Seen:
    """What was opened of all captures."""

    keys: dict[object, list[bytes]] = field(default_factory=dict)
    same: int = 0
    with_token: int = 0
    with_reason: int = 0

    def open(self, ends: tuple[object, object], first: Long) -> tuple[bytes, bool] | None:
        """(the ID that makes the keys, whether the server sent it)."""
        for server, flow in ((False, ends), (True, ends[::-1])):
            for key_id in [*self.keys.get(flow, []), *([] if server else [first.dcid])]:
                if opened(first, key_id, server) is not None:
                    if not server:
                        self.keys.setdefault(flow, []).append(key_id)
                    return key_id, server
        return None

    def take(self, ends: tuple[object, object], datagram: bytes) -> None:
        """Builds a datagram with the stream that it has."""
        before = initials_of(datagram)
        found = self.open(ends, before[0]) if before else None
        if found is None:
            return
        key_id, server = found
        stream = bytearray()
        for packet in before:
            for offset, data in said_by(opened(packet, key_id, server) or b""):
                stream.extend(bytes(max(0, offset + len(data) - len(stream))))
                stream[offset : offset + len(data)] = data
        out, resealed = _core.build_quic(
            datagram, crypto=bytes(stream), key_id=key_id, server=server
        )
        after = initials_of(out)
        assert len(after) == len(before)
        opens = [opened(packet, key_id, server) is not None for packet in before]
        assert resealed == sum(opens)
        for old, new, did in zip(before, after, opens, strict=True):
            if did:
                self.compare(old, new, key_id, server)

    def compare(self, old: Long, new: Long, key_id: bytes, server: bool) -> None:
        """Only a token and a reason may have changed."""
        plain, now = opened(old, key_id, server), opened(new, key_id, server)
        assert plain is not None
        assert now is not None
        token, at = varint(old.data, 7 + len(old.dcid) + len(old.scid))
        self.with_token += token > 0
        self.with_reason += now != plain
        if now != plain:
            assert b"\x1c" in plain
            assert {b for a, b in zip(plain, now, strict=True) if a != b} == {0}
        elif token:
            assert new.data[at : at + token] == bytes(token)
        else:
            self.same += 1
            assert new.data == old.data


def test_real_initials_have_the_same_bytes(corpus: Path) -> None:
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    paths = [json.loads(line)["path"] for line in lines]
    seen = Seen()
    for path in sorted(path for path in paths if "quic" in path.lower()):
        seen.keys.clear()
        try:
            for ends, datagram in datagrams(corpus / path):
                seen.take(ends, datagram)
        except FormatError:
            continue
    assert seen.same >= 30
    assert seen.with_token >= 10
