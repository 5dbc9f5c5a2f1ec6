# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The question of a DNS message: RFC 1035 4.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each
from support.wire import HOST, dns_message, dns_name

from zanon_net import _core

NAME = dns_name(b"www", b"example", b"org")
OPT = bytes.fromhex("0000291000000000000000")
ANSWER = bytes.fromhex("c00c00010001000000100004c0000201")
SOA = bytes.fromhex("c00c0006000100000000000400000000")

MESSAGES = {
    "query": dns_message(NAME),
    "AAAA": dns_message(NAME, kind=28),
    "HTTPS": dns_message(NAME, kind=65),
    "EDNS": dns_message(NAME, counts=(1, 0, 0, 1), rest=OPT),
    "checking disabled, authentic data": dns_message(NAME, flags=0x0130),
    "IXFR": dns_message(NAME, kind=251, counts=(1, 0, 1, 0), rest=SOA),
    "chaos": dns_message(NAME, kind=16, dns_class=3),
    "update": dns_message(NAME, flags=0x2800, kind=6, counts=(1, 2, 3, 0)),
    "notify": dns_message(NAME, flags=0x2000, kind=6, counts=(1, 1, 0, 0), rest=SOA),
    "response": dns_message(NAME, flags=0x8180, counts=(1, 1, 0, 0), rest=ANSWER),
    "no such name": dns_message(NAME, flags=0x8183),
    "two questions": dns_message(NAME, counts=(2, 0, 0, 0), rest=b"\xc0\x0c\0\x1c\0\1"),
    "trailing bytes": dns_message(NAME, rest=b"xyz"),
}


QUESTION_END = 12 + len(NAME) + 4


@each("name", MESSAGES)
def test_question(name: str) -> None:
    message = MESSAGES[name]
    response = name in ("response", "no such name")
    kind = int.from_bytes(message[12 + len(NAME) :][:2], "big")
    for whole in (True, False):
        expected = ("done", HOST, response, 0xABCD, kind)
        assert _core.parse_dns(message, whole=whole) == expected


@each("message", MESSAGES.values())
def test_a_prefix_gives_the_whole_name_or_none(message: bytes) -> None:
    for prefix in wire.prefixes(message):
        complete = len(prefix) >= QUESTION_END
        for whole in (True, False):
            state, name, *rest = _core.parse_dns(prefix, whole=whole)
            assert name == (HOST if complete else b"")
            short = "need_more" if not whole else "malformed" if len(prefix) >= 12 else "other"
            assert state == ("done" if complete else short)
            assert complete or rest == [False, 0, 0]


@each("place", [12, 16, 24, 28])
@each("step", [1, -1])
@each("whole", [True, False])
def test_a_label_length_off_by_one_is_not_taken_for_the_name(
    place: int, step: int, whole: bool
) -> None:
    message = bytearray(MESSAGES["query"])
    message[place] = (message[place] + step) & 0xFF
    state, name, *_ = _core.parse_dns(bytes(message), whole=whole)
    assert state != "done"
    assert name == b""


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([], b""),
        ([b"org"], b"org"),
        ([b"WwW", b"Example", b"ORG"], b"WwW.Example.ORG"),
        ([b"a" * 63, b"org"], b"a" * 63 + b".org"),
        ([b"a" * 63] * 3 + [b"b" * 61], b".".join([b"a" * 63] * 3 + [b"b" * 61])),
        ([b"x"] * 127, b".".join([b"x"] * 127)),
        ([b"_sip", b"_tcp", b"x"], b"_sip._tcp.x"),
    ],
    ids=["root", "one label", "case", "63 bytes", "253 bytes", "127 labels", "underscores"],
)
def test_names(labels: list[bytes], text: bytes) -> None:
    assert _core.parse_dns(dns_message(dns_name(*labels)))[:2] == ("done", text)


@pytest.mark.parametrize(
    "name",
    [
        dns_name(*[b"a" * 63] * 3, b"b" * 62),
        dns_name(*[b"x"] * 128),
        b"\x40" + b"a" * 64 + b"\0",
        b"\x80ab\0",
        b"\xc0\x0c",
        b"\xc0\x00",
        b"\xc0\xff",
        b"\3www\xc0\x0c",
        b"\3www\xc0\x10",
        b"\3www\xc0\x02",
    ],
    ids=[
        "254 bytes",
        "128 labels",
        "label of 64",
        "reserved type",
        "pointer to itself",
        "pointer to the header",
        "pointer forward",
        "pointer to the start",
        "pointer to the pointer",
        "pointer into the header",
    ],
)
def test_malformed_names(name: bytes) -> None:
    for whole in (True, False):
        message = dns_message(name, rest=bytes(300))
        assert _core.parse_dns(message, whole=whole) == ("malformed", b"", False, 0, 0)


QUESTION = NAME + b"\0\1\0\1"


def test_the_first_question_that_is_spelled_out_counts() -> None:
    """A pointer in the first one could only point forward."""
    for pointers in (b"\xc0\x12\0\1\0\1", b"\3www\xc0\x16\0\1\0\1", b"\xc0\x0c\0\1\0\1" * 3):
        count = pointers.count(b"\xc0") + 1
        message = dns_message(b"", counts=(count, 0, 0, 0))[:12] + pointers + QUESTION
        assert _core.parse_dns(message)[:2] == ("done", b"www.example.org")
        for n in range(12, len(message)):
            assert _core.parse_dns(message[:n], whole=False)[1] == b""
        only = dns_message(b"", counts=(count - 1, 0, 0, 0))[:12] + pointers + QUESTION
        assert _core.parse_dns(only)[0] == "malformed"


@pytest.mark.parametrize("flags", [0x0140, 0x0170, 0x0103, 0x014F, 0x81C3])
@pytest.mark.parametrize("more", [0, 1])
def test_what_servers_ignore_in_a_query_is_ignored(flags: int, more: int) -> None:
    message = dns_message(NAME, flags=flags, counts=(1, 0, 0, more), rest=bytes(11 * more))
    response = flags >= 0x8000
    assert _core.parse_dns(message)[:3] == ("done", b"www.example.org", response)


RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4"
EDNS = b"\0\0\x29\x10\0\0\0\0\0\0\0"


@each("counts", [(1, 1, 0, 0), (1, 0, 2, 0), (1, 2, 1, 1), (1, 16, 0, 0)])
def test_records_behind_a_question_do_not_hide_it(counts: tuple[int, int, int, int]) -> None:
    """If they are as many as the counts say, and nothing follows them."""
    rest = RECORD * sum(counts[1:])
    flushing = rest.replace(b"\0\1\0\1", b"\0\1\x80\1")
    edns = rest.removesuffix(RECORD) + EDNS
    for more in (rest, flushing, edns):
        message = dns_message(NAME, counts=counts, rest=more)
        assert _core.parse_dns(message)[:2] == ("done", b"www.example.org")
        cut = _core.parse_dns(message[:-3], whole=False)
        assert cut[:2] == ("done", b"www.example.org")
        for damaged in (message[:-1], message + b"\0", dns_message(NAME, counts=counts)):
            assert _core.parse_dns(damaged)[0] == "other"
    other = rest[:-14] + b"\0\1\0\x4d" + rest[-10:]  # no class has this number
    assert _core.parse_dns(dns_message(NAME, counts=counts, rest=other))[0] == "other"


@each(
    "message",
    [
        b"",
        b"\xab\xcd\1\0\0\1",
        dns_message(NAME, counts=(0, 0, 0, 0)),
        dns_message(NAME, counts=(17, 0, 0, 0)),
        dns_message(NAME, counts=(1, 1, 0, 0)),
        dns_message(NAME, counts=(1, 0, 2, 0)),
        dns_message(NAME, flags=0x0103, counts=(2, 0, 0, 0), rest=QUESTION),
        dns_message(NAME, flags=0x0103, counts=(1, 0, 1, 0)),
        dns_message(NAME, flags=0x0140, counts=(1, 0, 0, 2)),
        dns_message(NAME, flags=0x2840),
        dns_message(NAME, flags=0x1900),
        dns_message(NAME, flags=0x3100),
        dns_message(NAME, flags=0x7900),
        dns_message(NAME, dns_class=0),
        dns_message(NAME, dns_class=77),
        dns_message(NAME, dns_class=0x8001),
    ],
)
def test_other_datagrams(message: bytes) -> None:
    assert _core.parse_dns(message) == ("other", b"", False, 0, 0)


@given(st.binary(min_size=12, max_size=300))
def test_any_bytes_end_in_a_state(data: bytes) -> None:
    for message in (data, MESSAGES["query"][:12] + data):
        for whole in (True, False):
            state, name, *_ = _core.parse_dns(message, whole=whole)
            assert len(name) <= (253 if state == "done" else 0)


@given(st.lists(st.binary(min_size=1, max_size=63), max_size=4), st.integers(0, 300))
def test_any_labels(labels: list[bytes], cut: int) -> None:
    message = dns_message(dns_name(*labels))
    name = b".".join(labels)
    odd = any(byte == 0x2E or not 0x20 < byte < 0x7F for label in labels for byte in label)
    state = "malformed" if odd or len(name) > 253 else "done"
    expected = name if state == "done" else b""
    assert _core.parse_dns(message)[:2] == (state, expected)
    assert _core.parse_dns(message[:cut], whole=False)[1] in (expected, b"")
