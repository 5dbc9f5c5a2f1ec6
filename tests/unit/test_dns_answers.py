# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The addresses in a DNS response: RFC 1035 4.1.3, RFC 3596 2.2."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire

from zanon_net import _core

NAME = wire.dns_name(b"www", b"example", b"org")
POINTER = b"\xc0\x0c"
A, CNAME, AAAA = 1, 5, 28


def answer(kind: int, data: bytes, name: bytes = POINTER, dns_class: int = 1) -> bytes:
    return name + struct.pack(">HHI", kind, dns_class, 60) + wire.vector(2, data)


def address(text: str) -> bytes:
    packed = ipaddress.ip_address(text).packed
    return answer(A if len(packed) == 4 else AAAA, packed)


def response(*answers: bytes, flags: int = 0x8180, counts: tuple[int, int] | None = None) -> bytes:
    questions, n = counts or (1, len(answers))
    rest = b"".join(answers)
    return wire.dns_message(NAME, flags=flags, counts=(questions, n, 0, 0), rest=rest)


def read(message: bytes) -> tuple[str, list[str]]:
    return _core.parse_dns_answers(message)


def test_both_families_in_their_order() -> None:
    message = response(address("192.0.2.1"), address("2001:db8::2"), address("192.0.2.3"))
    assert read(message) == ("done", ["192.0.2.1", "2001:db8::2", "192.0.2.3"])


def test_an_alias_leads_to_addresses_under_other_names() -> None:
    target = wire.dns_name(b"cdn", b"example")
    alias = answer(CNAME, target)
    for name in (target, b"\xc0\x2d", b"\3cdn\xc0\x10"):
        message = response(alias, answer(A, bytes([192, 0, 2, 9]), name))
        assert read(message) == ("done", ["192.0.2.9"])


@pytest.mark.parametrize(
    "other",
    [
        answer(A, bytes(5)),
        answer(AAAA, bytes(4)),
        answer(A, bytes(4), dns_class=3),
        answer(16, b"\4text"),
        answer(CNAME, b""),
    ],
)
def test_other_records_are_passed_over(other: bytes) -> None:
    assert read(response(other, address("192.0.2.1"))) == ("done", ["192.0.2.1"])
    assert read(response(other)) == ("done", [])


@pytest.mark.parametrize("flags", [0x0100, 0x8183, 0x8182, 0x0183])
def test_questions_and_errors_answer_nothing(flags: int) -> None:
    assert read(response(address("192.0.2.1"), flags=flags)) == ("other", [])


def test_the_counts_are_bounds() -> None:
    many = [address(f"192.0.2.{n}") for n in range(1, 41)]
    assert read(response(*many)) == ("done", [f"192.0.2.{n}" for n in range(1, 33)])
    assert read(response(*many, counts=(1, 3)))[1] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert read(response(*many, counts=(1, 41))) == ("malformed", [])
    assert read(response(*many, counts=(17, 1))) == ("other", [])
    assert read(response(*many, counts=(1, 257))) == ("other", [])


@pytest.mark.parametrize("name", [b"\x40abc\0", b"\x80\0"])
def test_reserved_label_types_are_malformed(name: bytes) -> None:
    assert read(response(answer(A, bytes(4), name))) == ("malformed", [])


def test_a_prefix_gives_every_address_or_none() -> None:
    message = response(answer(CNAME, NAME), address("192.0.2.1"), address("2001:db8::2"))
    for prefix in wire.prefixes(message):
        assert read(prefix) == ("malformed", [])
        assert _core.parse_dns_answers(prefix, whole=False) == ("need_more", [])


@given(st.binary(max_size=80))
def test_anything_else_is_survived(data: bytes) -> None:
    state, addresses = read(b"\0\0\x81\x80\0\1\0\4\0\0\0\0" + data)
    assert state in ("done", "malformed")
    assert len(addresses) <= 4
