# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names of Google's QUIC (Q043, Q046, Q050): read whole, and counted with the server's token."""

import dataclasses
import json
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import gquic_wire as gquic
from support.engine import Outcome, run
from support.gquic_wire import Part, hello, rejection
from support.packet_run import write_pcap
from support.packets import CLIENT, SECOND, SERVER, START, Frame, Udp, merged, user

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw.check import check_files, read_captures

HOST = b"a.example"
FIRST, SECOND_HELLO = hello(HOST, pad=400), hello(HOST, gquic.TOKEN, pad=400)
each_version = pytest.mark.parametrize("version", gquic.VERSIONS)


def talk(i: int, *packets: tuple[int, bytes], port: int = 443) -> list[Frame]:
    made = Udp(user(i), ports=(40000, port), t_ns=START + i * SECOND)
    for side, payload in packets:
        made.send(payload, side)
    return made.frames


def connection(version: int, first: bytes = FIRST, second: bytes = SECOND_HELLO) -> list[Any]:
    """A connection in which the server asks for its token."""
    part = Part(first, version=version)
    return [
        (CLIENT, part.seal()),
        (SERVER, Part(rejection(), version=version, server=True).seal()),
        (CLIENT, Part(second, len(first), version, number=2).seal()),
    ]


def outcome(packets: Sequence[tuple[int, bytes]], users: int = 3, **settings: Any) -> Outcome:
    frames = merged(talk(i, *packets) for i in range(users))
    return run(frames, **({"z": 2} | settings))


def names(packets: Sequence[tuple[int, bytes]], **settings: Any) -> list[str | None]:
    return [flow["name"] for flow in outcome(packets, **settings).flows]


def one(data: bytes, **part: Any) -> list[str | None]:
    """The names of flows with one packet, for which no evidence is asked."""
    return names([(CLIENT, Part(data, **part).seal())], established=False)


SHOWN, HIDDEN = [None, "a.example", "a.example"], [None] * 3


@each_version
def test_a_repeated_token_is_evidence(version: int) -> None:
    assert names(connection(version)) == SHOWN
    made = outcome(connection(version))
    assert {o["name_source"] for o in made.observations} == {"quic"}
    assert [flow["name_status"] for flow in made.flows] == ["suppressed", "released", "released"]


def unproven(version: int) -> dict[str, list[tuple[int, bytes]]]:
    first, answer, second = connection(version)
    server = Part(rejection(), version=version, server=True).seal()
    known = Part(SECOND_HELLO, version=version).seal()
    return {
        "no answer": [first],
        "no second hello": [first, answer],
        "another token": connection(version, second=hello(HOST, bytes(56), pad=400)),
        "no token": connection(version, second=FIRST),
        "a token from before": [(CLIENT, known), answer, second],
        "a short token": [
            first,
            (SERVER, Part(rejection(b"short"), version=version, server=True).seal()),
            (CLIENT, Part(hello(HOST, b"short"), len(FIRST), version, number=2).seal()),
        ],
        "an echo": [first, (SERVER, first[1]), second],
        "an echo of an answer": [first, (CLIENT, server), answer, second],
        "an answer before the hello": [answer, first, second],
        "an answer behind the second hello": [first, second, answer],
        "an answer to another ID": [
            first,
            (SERVER, Part(rejection(), version=version, server=True, id=bytes(8)).seal()),
            second,
        ],
        "a damaged answer": [first, (SERVER, answer[1][:-1] + b"\1"), second],
    }


@each_version
def test_nothing_else_is_evidence(version: int) -> None:
    for what, packets in unproven(version).items():
        assert names(packets) == HIDDEN, what
    if version == gquic.Q050:  # an answer may have the ID in both places
        first, _, second = connection(version)
        both = Part(rejection(), version=version, server=True, both=True).seal()
        assert names([first, (CLIENT, both), (SERVER, both), second]) == HIDDEN


@each_version
def test_without_evidence_a_name_counts_at_once(version: int) -> None:
    assert one(FIRST, version=version) == SHOWN
    assert one(hello(None), version=version) == HIDDEN


@each_version
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0, 1), (0, 0, 2, 1)])
def test_a_hello_in_several_packets(version: int, order: tuple[int, ...]) -> None:
    message = hello(HOST, pad=2000)
    cuts = [0, 900, 1500, len(message)]
    parts = [
        (CLIENT, Part(message[cuts[n] : cuts[n + 1]], cuts[n], version, number=n + 1).seal())
        for n in range(3)
    ]
    settings: dict[str, Any] = {"established": False}
    assert names([parts[n] for n in order], **settings) == SHOWN
    assert names([parts[n] for n in order[:2]], **settings) == HIDDEN
    other = (CLIENT, Part(b"x" * 600, 900, version, number=9).seal())
    assert outcome([parts[0], other, *parts[1:]], **settings).observations == []


@each_version
def test_a_changed_packet_is_not_read(version: int) -> None:
    sealed = Part(FIRST, version=version).seal()
    dice = random.Random(version)
    for at in [*range(9, 40), *dice.choices(range(40, len(sealed)), k=30)]:
        damaged = bytearray(sealed)
        damaged[at] ^= 1 << dice.randrange(8)
        made = outcome([(CLIENT, bytes(damaged))], 2, z=1, established=False)
        assert made.observations == []
        assert HOST not in made.everything()
        assert {flow["name_status"] for flow in made.flows} == {"suppressed"}


@each_version
def test_a_cut_packet_is_not_read(version: int) -> None:
    frames = merged(
        [frame.cut(500) for frame in talk(i, (CLIENT, Part(FIRST, version=version).seal()))]
        for i in range(3)
    )
    made = run(frames, z=2, established=False)
    assert made.observations == []
    assert {flow["name_status"] for flow in made.flows} == {"suppressed"}


def with_table(*ends: int, tags: Sequence[bytes] = (b"SNI\0", b"STK\0", b"VER\0")) -> bytes:
    table = b"".join(tag + struct.pack("<I", end) for tag, end in zip(tags, ends, strict=False))
    return b"CHLO" + struct.pack("<HH", len(ends), 0) + table + b"a.example0123"


@each_version
def test_tables_that_do_not_rise_are_invalid(version: int) -> None:
    assert one(with_table(9, 9, 13), version=version) == SHOWN
    for message in (
        with_table(9, 8, 13),
        with_table(9, 13, 12),
        with_table(9, 2**31, 2**31),
        with_table(9, 13, tags=(b"VER\0", b"SNI\0")),
        with_table(9, 9, tags=(b"SNI\0", b"SNI\0")),
        b"CHLO" + struct.pack("<HH", 200, 0) + bytes(900),
        b"SHLO" + with_table(9)[4:],
    ):
        made = outcome([(CLIENT, Part(message, version=version).seal())], established=False)
        assert made.observations == []
        assert {flow["name_status"] for flow in made.flows} == {"invalid"}


@each_version
@pytest.mark.parametrize("host", [b"a_b..example", b"h\xe9.example", b"x" * 300, b"a b", b"\0"])
def test_bad_hosts_are_invalid(version: int, host: bytes) -> None:
    made = outcome([(CLIENT, Part(hello(host), version=version).seal())], z=1, established=False)
    assert made.observations == []
    assert made.stats["suppressed_invalid"] == 3


@each_version
def test_two_hosts_contradict_each_other(version: int) -> None:
    packets = connection(version, second=hello(b"b.example", gquic.TOKEN, pad=400))
    assert outcome(packets).observations == []
    assert set(names(packets)) == {None}


@each_version
def test_another_connection_may_hide_a_name(version: int) -> None:
    other = (CLIENT, Part(hello(b"b.example"), version=version, id=bytes(8)).seal())
    made = outcome([*connection(version), other])
    assert b"b.example" not in made.everything()
    assert [flow["c_bytes"] for flow in made.flows] == [4096] * 3  # a coarse count


ACK = b"\x65" + b"\0\5" + b"\0\x10" + b"\1" + b"\0\3" + b"\2" + b"\0\1" + b"\1" + b"\1" + bytes(4)
OTHERS = [
    b"\x07",
    ACK,
    b"\x04" + bytes(12),
    b"\x05" + bytes(4),
    b"\x01" + bytes(16),
    b"\xa0\x05\0\4data",  # another stream
]


@each_version
def test_other_frames_are_passed_over(version: int) -> None:
    for before in OTHERS:
        assert one(FIRST, version=version, before=before) == SHOWN, before
    for before in (b"\x09", b"\x06" * 9 if version != gquic.Q043 else b"\x10", b"\xa0\1\xff\xff"):
        made = outcome(
            [(CLIENT, Part(FIRST, version=version, before=before).seal())], established=False
        )
        assert made.observations == [], before
    if version == gquic.Q043:
        assert one(FIRST, version=version, before=b"\x06\1") == SHOWN  # STOP_WAITING


def test_a_foreign_version_stays_unread() -> None:
    for version in (b"Q039", b"Q099", b"T051"):
        sealed = Part(FIRST).seal().replace(b"Q043", version)
        made = outcome([(CLIENT, sealed)], established=False)
        assert made.observations == []
        assert {flow["name_status"] for flow in made.flows} == {"suppressed"}


def test_random_bytes_behind_a_version_change_nothing() -> None:
    dice = random.Random(7)
    for _ in range(60):
        start = dice.choice([b"\x09" + gquic.ID + b"Q043", b"\xc3Q046\x50", b"\xc3Q050\x08"])
        payload = start + dice.randbytes(1200)
        assert outcome([(CLIENT, payload)], 1, z=1, established=False).observations == []


def test_equal_names_of_all_versions_count_together() -> None:
    frames = merged(talk(i, *connection(version)) for i, version in enumerate(gquic.VERSIONS))
    assert [o["name"] for o in run(frames, z=3).observations] == ["a.example"]
    again = dataclasses.replace(Part(FIRST), version=gquic.Q046).seal()
    assert outcome([(CLIENT, again)], 3, z=3).observations == []


@pytest.mark.usefixtures("needs_tshark")
def test_the_raw_audit_finds_each_name(tmp_path: Path) -> None:
    made = [connection(version) for version in gquic.VERSIONS]
    frames = merged(talk(i, *made[i % 3]) for i in range(9))
    rare = talk(10, *connection(gquic.Q043, hello(b"rare.example", pad=400)))
    capture = write_pcap(tmp_path / "in.pcap", [*frames, *rare])
    config = Config(z=3, format="csv,observations")
    zanon_net.run([capture], config, out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    result = check_files(tmp_path / "out", manifest, read_captures(manifest, [capture]))
    assert result.violations == []
    assert manifest["decisions"]["released"] == 7
