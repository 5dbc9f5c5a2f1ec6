# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DNS messages for anonymized packets: csrc/build/build_dns.h."""

import ipaddress
import re
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each

from zanon_net import _core

pytestmark = pytest.mark.source  # a wheel has no builders for tests

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, OPT, HTTPS = 1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 65
PRIVATE = 65280
WWW = wire.dns_name(b"www", b"example", b"org")  # at 12; "example" at 16; the root at 28
CDN = wire.dns_name(b"cdn", b"example", b"net")
TO_WWW, TO_EXAMPLE, TO_ROOT = b"\xc0\x0c", b"\xc0\x10", b"\xc0\x1c"
ANSWERS = 33  # where they start
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def x(n: int) -> bytes:
    """A masked name of n bytes, of at most one label."""
    return wire.vector(1, b"x" * (n - 2)) + b"\0"


def record(owner: bytes, kind: int, data: bytes, dns_class: int = 1, ttl: int = 60) -> bytes:
    return owner + struct.pack(">HHI", kind, dns_class, ttl) + wire.vector(2, data)


def response(
    *answers: bytes,
    name: bytes = WWW,
    authorities: Sequence[bytes] = (),
    more: Sequence[bytes] = (),
    flags: int = 0x8180,
) -> bytes:
    counts = (1, len(answers), len(authorities), len(more))
    rest = b"".join([*answers, *authorities, *more])
    return wire.dns_message(name, flags=flags, counts=counts, rest=rest)


def built(
    message: bytes,
    *,
    name: bool = True,
    shared: Collection[bytes] | None = None,
    addresses: dict[Address, Address] | None = None,
) -> bytes:
    done, out = _core.build_dns(message, name=name, shared=shared, addresses=addresses)
    assert done
    assert len(out) == len(message)
    return bytes(out)


def refused(message: bytes) -> bool:
    done, out = _core.build_dns(message, name=True, shared=Everything())
    assert len(out) == len(message)
    assert done or out == bytes(len(message))
    return not done


class Everything(Collection[bytes]):
    """All names are shared; those that were asked about."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, bytes)
        self.asked.append(name)
        return True

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.asked)

    def __len__(self) -> int:
        return len(self.asked)


# ---- questions ----------------------------------------------------------------------------------


def test_a_question() -> None:
    message = wire.dns_message(WWW)
    assert built(message) == message
    assert built(message, name=False) == wire.dns_message(x(len(WWW)))


def test_case_is_an_identifier() -> None:
    """Resolvers hide 20 bits in it (draft-vixie-dnsext-dns0x20)."""
    message = response(record(wire.dns_name(b"wWw", b"eXAmple", b"ORG"), A, bytes(4)))
    odd = message.replace(b"www", b"WwW").replace(b"example", b"eXaMpLe")
    assert built(odd, shared=Everything()) == message.replace(b"wWw", b"www").replace(
        b"eXAmple", b"example"
    ).replace(b"ORG", b"org")


@pytest.mark.parametrize(
    ("labels", "masked"),
    [
        ([b"a"], b"\1x\0"),
        ([b"a", b"b"], b"\3xxx\0"),
        ([b"a" * 63], b"\x3f" + b"x" * 63 + b"\0"),
        ([b"a" * 62, b"b"], b"\x3e" + b"x" * 62 + b"\1x\0"),
        ([b"a" * 31, b"b" * 32], b"\x3e" + b"x" * 62 + b"\1x\0"),
        ([b"a" * 31, b"b" * 33], b"\x3f" + b"x" * 63 + b"\1x\0"),
        ([b"a" * 63] * 3 + [b"b" * 61], (b"\x3f" + b"x" * 63) * 3 + b"\x3d" + b"x" * 61 + b"\0"),
    ],
)
def test_labels_of_a_masked_name(labels: list[bytes], masked: bytes) -> None:
    message = wire.dns_message(wire.dns_name(*labels))
    assert built(message, name=False) == wire.dns_message(masked)


def test_the_root_stays() -> None:
    message = wire.dns_message(b"\0", kind=NS)
    for name in (False, True):
        assert built(message, name=name) == message


@pytest.mark.parametrize(
    "labels",
    [
        (b"1", b"2", b"0", b"192", b"in-addr", b"arpa"),
        (b"1", b"8", b"IP6", b"arpa"),
        (b"printer", b"local"),
        (b"nas", b"home", b"arpa"),
        (b"192", b"0", b"2", b"1"),
        (b"a b", b"example"),
        (b"a.b", b"example"),
        (b"\xc3\xbc", b"example"),
        (b"-a", b"example"),
    ],
)
def test_names_that_are_never_shown(labels: tuple[bytes, ...]) -> None:
    name = wire.dns_name(*labels)
    asked = Everything()
    message = response(record(TO_WWW, CNAME, name), record(name, A, bytes(4)), name=name)
    expected = response(
        record(TO_WWW, CNAME, x(len(name))), record(x(len(name)), A, bytes(4)), name=x(len(name))
    )
    assert built(message, shared=asked) == expected
    assert asked.asked == []


def test_a_second_question_is_masked() -> None:
    rest = CDN + b"\0\1\0\1" + TO_WWW + b"\0\x1c\0\1"
    message = wire.dns_message(WWW, counts=(3, 0, 0, 0), rest=rest)
    masked = x(len(CDN)) + b"\0\1\0\1" + TO_ROOT + b"\0\x1c\0\1"
    assert built(message, shared=Everything()) == wire.dns_message(
        WWW, counts=(3, 0, 0, 0), rest=masked
    )


# ---- records ------------------------------------------------------------------------------------


def test_owners_of_the_question_follow_its_verdict() -> None:
    message = response(record(TO_WWW, A, bytes(4)), record(WWW, A, bytes(4)))
    assert built(message) == message
    masked = x(len(WWW))
    expected = response(record(TO_WWW, A, bytes(4)), record(masked, A, bytes(4)), name=masked)
    assert built(message, name=False, shared=Everything()) == expected


def test_other_names_follow_theirs() -> None:
    chain = [record(TO_WWW, CNAME, CDN), record(b"\xc0\x2d", A, bytes(4)), record(CDN, A, bytes(4))]
    message = response(*chain)
    assert built(message, shared={b"cdn.example.net"}) == message
    masked = x(len(CDN))
    expected = response(record(TO_WWW, CNAME, masked), chain[1], record(masked, A, bytes(4)))
    assert built(message) == expected
    assert built(message, shared={b"example.net", b"net"}) == expected


def test_a_name_that_joins_one_in_the_clear() -> None:
    message = response(
        record(TO_WWW, CNAME, b"\3CDN" + TO_EXAMPLE), record(b"\xc0\x2d", A, bytes(4))
    )
    expected = message.replace(b"CDN", b"cdn")
    assert built(message, shared={b"cdn.example.org"}) == expected
    assert built(message) == response(
        record(TO_WWW, CNAME, b"\4xxxx\0"), record(b"\xc0\x2d", A, bytes(4))
    )


def test_a_name_that_joins_a_masked_one_is_masked() -> None:
    """Its end is nowhere to be read."""
    message = response(
        record(TO_WWW, CNAME, b"\3cdn" + TO_EXAMPLE), record(TO_EXAMPLE, A, bytes(4))
    )
    expected = response(
        record(TO_WWW, CNAME, b"\4xxxx\0"), record(TO_WWW, A, bytes(4)), name=x(len(WWW))
    )
    asked = Everything()
    assert built(message, name=False, shared=asked) == expected
    assert asked.asked == []


def test_a_pointer_into_a_name_that_is_not_shared() -> None:
    """The domain of a name in the clear: a pointer to it would show it."""
    message = response(record(TO_EXAMPLE, A, bytes(4)), flags=0x8183)
    assert built(message, shared={b"example.org"}) == message
    assert built(message) == response(record(TO_ROOT, A, bytes(4)), flags=0x8183)


def test_pointers_to_pointers() -> None:
    """To the pointer that a name is, and through a masked one to where that leads."""
    second = ANSWERS + 16
    message = response(record(TO_WWW, A, bytes(4)), record(b"\xc0\x21", A, bytes(4)))
    assert second == len(message) - 16
    assert built(message) == message
    expected = response(record(TO_WWW, A, bytes(4)), record(TO_WWW, A, bytes(4)), name=x(len(WWW)))
    assert built(message, name=False) == expected


def test_addresses_are_mapped() -> None:
    real = [ipaddress.ip_address(text) for text in ("192.0.2.1", "2001:db8::1")]
    mapped = [ipaddress.ip_address(text) for text in ("240.0.0.9", "3fff::9")]
    message = response(record(TO_WWW, A, real[0].packed), record(TO_WWW, AAAA, real[1].packed))
    expected = response(record(TO_WWW, A, mapped[0].packed), record(TO_WWW, AAAA, mapped[1].packed))
    zeros = response(record(TO_WWW, A, bytes(4)), record(TO_WWW, AAAA, bytes(16)))
    assert built(message, addresses=dict(zip(real, mapped, strict=True))) == expected
    assert built(message) == zeros
    assert built(message, addresses={}) == zeros
    assert built(message, addresses=dict(zip(real, mapped[::-1], strict=True))) == zeros


@each(
    "kind, data, dns_class",
    [
        (TXT, b"\6secret", 1),
        (PTR, CDN, 1),
        (NS, b"\3ns1" + TO_EXAMPLE, 1),
        (MX, b"\0\1\2mx" + TO_EXAMPLE, 1),
        (SOA, b"\2ns" + TO_EXAMPLE + b"\5admin" + TO_EXAMPLE + bytes(range(20)), 1),
        (SRV, bytes(6) + CDN, 1),
        (HTTPS, b"\0\1\0\0\4\0\4\xc0\0\2\1", 1),
        (A, b"\xc0\0\2", 1),
        (A, b"\xc0\0\2\1\1", 1),
        (A, b"\xc0\0\2\1", 3),
        (AAAA, b"\x20\1\x0d\xb8", 1),
        (CNAME, CDN, 3),
        (50000, b"secret", 1),
        (249, b"secret", 255),
        (TXT, b"", 1),
    ],
)
def test_other_records_have_a_private_type(kind: int, data: bytes, dns_class: int) -> None:
    message = response(record(TO_WWW, kind, data, dns_class), record(TO_WWW, A, bytes(4)))
    expected = response(
        record(TO_WWW, PRIVATE, bytes(len(data)), dns_class), record(TO_WWW, A, bytes(4))
    )
    addresses = {ipaddress.ip_address("192.0.2.1"): ipaddress.ip_address("192.0.2.1")}
    assert built(message, shared=Everything(), addresses=addresses) == expected


def test_a_pointer_into_zeros_leads_to_the_root() -> None:
    """As those of additional records into NS records."""
    ns = record(TO_EXAMPLE, NS, b"\3ns1" + TO_EXAMPLE)
    at = struct.pack(">H", 0xC000 | ANSWERS + 12)
    message = response(
        authorities=[ns], more=[record(at, A, bytes(4)), record(b"\1a" + at, A, b"")]
    )
    more = [record(TO_ROOT, A, bytes(4)), record(b"\2xx\0", PRIVATE, b"")]
    expected = response(authorities=[record(TO_EXAMPLE, PRIVATE, bytes(6))], more=more)
    assert built(message, shared=Everything()) == expected


def option(code: int, data: bytes) -> bytes:
    return struct.pack(">H", code) + wire.vector(2, data)


def test_options() -> None:
    """Client subnet (RFC 7871), cookie (RFC 7873), padding, and codes that are not registered."""
    subnet, cookie = b"\0\1\x18\0\xc0\0\2", b"cookie!!"
    given_options = [
        (8, subnet),
        (10, cookie),
        (12, bytes(9)),
        (65001, b"mac"),
        (4, b"owner"),
        (3, b""),
    ]
    opt = record(b"\0", OPT, b"".join(option(*each) for each in given_options), 1232, 0x8000)
    codes = (8, 10, 12, 0, 0, 3)
    options = (option(c, bytes(len(d))) for c, (_, d) in zip(codes, given_options, strict=True))
    expected = response(more=[record(b"\0", OPT, b"".join(options), 1232, 0x8000)])
    assert built(response(more=[opt])) == expected


def test_bytes_behind_the_last_record_are_zero() -> None:
    message = response(record(TO_WWW, A, bytes(4)))
    assert built(message + b"secret") == message + bytes(6)


# ---- what is refused ----------------------------------------------------------------------------

ALIAS = record(TO_WWW, CNAME, CDN)
REFUSED = {
    "nothing": b"",
    "a header": wire.dns_message(WWW)[:12],
    "no question": struct.pack(">6H", 1, 0x8180, 0, 0, 0, 0),
    "an update": wire.dns_message(WWW, flags=0x2800),
    "a notification": wire.dns_message(WWW, flags=0x2400),
    "a pointer as the first name": wire.dns_message(TO_WWW),
    "a pointer to itself": response(record(b"\xc0\x21", A, bytes(4))),
    "a pointer forward": response(record(b"\xc0\x25", A, bytes(4)), record(CDN, A, bytes(4))),
    "a pointer into the header": response(record(b"\xc0\x00", A, bytes(4))),
    "a pointer into a label": response(record(b"\xc0\x0e", A, bytes(4))),
    "a pointer into a type": response(record(b"\xc0\x1d", A, bytes(4))),
    "a pointer into an address": response(
        ALIAS, record(TO_WWW, A, b"\1a\0\0"), record(b"\xc0\x45", A, bytes(4))
    ),
    "a pointer's second byte": response(record(TO_WWW, A, bytes(4)), record(b"\xc0\x22", A, b"")),
    "a reserved length": response(record(b"\x80" + TO_WWW, A, bytes(4))),
    "an extended label": response(record(b"\x41" + TO_WWW, A, bytes(4))),
    "a name that is too long": response(record(wire.dns_name(*[b"a" * 63] * 4), A, b"")),
    "a joined name that is too long": response(
        record(wire.dns_name(*[b"a" * 63] * 3, b"b" * 50)[:-1] + TO_WWW, A, b"")
    ),
    "more records than are there": wire.dns_message(WWW, flags=0x8180, counts=(1, 1, 0, 0)),
    "an alias shorter than its RDATA": response(record(TO_WWW, CNAME, CDN + b"\0")),
    "an alias longer than its RDATA": response(record(TO_WWW, CNAME, CDN[:-1]) + b"\0"),
    "an option longer than its RDATA": response(more=[record(b"\0", OPT, b"\0\x08\0\4abc")]),
    "half an option": response(more=[record(b"\0", OPT, b"\0\x08\0")]),
}


@each("name", REFUSED)
def test_refused(name: str) -> None:
    assert refused(REFUSED[name])


def test_prefixes_are_refused() -> None:
    for prefix in wire.prefixes(response(ALIAS, record(b"\xc0\x2d", A, bytes(4)))):
        assert refused(prefix)


def test_the_number_of_names_is_bounded() -> None:
    most: int = _core.BUILD_DNS_PARTS_MAX
    records = [record(TO_WWW, TXT, b"a")] * most
    assert not refused(response(*records[1:]))
    assert refused(response(*records))


def test_chains_of_pointers_are_bounded() -> None:
    links = [TO_WWW, *(struct.pack(">H", 0xC000 | ANSWERS + 16 * i) for i in range(60))]
    messages = [response(*(record(link, A, bytes(4)) for link in links[:n])) for n in range(60)]
    assert [refused(message) for message in messages] == [False] * 33 + [True] * 27


# ---- beside plain Python ------------------------------------------------------------------------

Name = tuple[bytes, ...]


@dataclass
class Record:
    owner: Name
    fixed: bytes
    data: bytes | Name
    zeroed: bool


def read_name(message: bytes, at: int) -> tuple[Name, int]:
    """The labels of the name at an offset, and where it ends."""
    labels: list[bytes] = []
    while True:
        length = message[at]
        if length >= 0xC0:
            rest, _ = read_name(message, (length & 0x3F) << 8 | message[at + 1])
            return (*labels, *rest), at + 2
        at += 1 + length
        if length == 0:
            return tuple(labels), at
        labels.append(message[at - length : at])


def read(message: bytes) -> tuple[Name, list[Record]]:
    counts = struct.unpack(">4H", message[4:12])
    question, at = read_name(message, 12)
    at += 4
    records = []
    for _ in range(sum(counts[1:])):
        owner, at = read_name(message, at)
        kind, dns_class, _, n = struct.unpack(">HHIH", message[at : at + 10])
        data = message[at + 10 : at + 10 + n]
        is_name = kind == CNAME and dns_class == 1
        records.append(
            Record(
                owner,
                message[at : at + 10],
                read_name(message, at + 10)[0] if is_name else data,
                not any(data),
            )
        )
        at += 10 + n
    assert at == len(message)
    return question, records


LABEL = st.sampled_from(
    [b"www", b"Example", b"org", b"net", b"a", b"local", b"x-y_z", b"\xff", b"9"]
)
LABELS = st.lists(LABEL, min_size=1, max_size=4).map(tuple)
DATA = st.one_of(
    st.tuples(st.just(CNAME), LABELS),
    st.tuples(st.sampled_from([A, AAAA, TXT, SRV]), st.binary(min_size=4, max_size=16)),
    st.tuples(st.just(A), st.binary(min_size=4, max_size=4)),
)


def compressed(message: bytes, labels: Name, known: dict[Name, int]) -> bytes:
    """The name as servers write it: the longest end that was there before is a pointer."""
    out = b""
    for i in range(len(labels)):
        rest = labels[i:]
        if rest in known:
            return out + struct.pack(">H", 0xC000 | known[rest])
        known[rest] = len(message) + len(out)
        out += wire.vector(1, labels[i])
    return out + b"\0"


def compose(question: Name, records: list[tuple[Name, tuple[int, bytes | Name]]]) -> bytes:
    known: dict[Name, int] = {}
    message = struct.pack(">6H", 7, 0x8180, 1, len(records), 0, 0)
    message += compressed(message, question, known) + b"\0\1\0\1"
    for owner, (kind, data) in records:
        message += compressed(message, owner, known)
        fixed = struct.pack(">HHI", kind, 1, 60)
        if isinstance(data, tuple):
            data = compressed(message + fixed + b"\0\0", data, known)
        message += fixed + wire.vector(2, data)
    return message


def text(labels: Name) -> bytes:
    return b".".join(labels).lower()


def is_x(labels: Name) -> bool:
    return all(set(label) == set(b"x") for label in labels)


def expect_name(real: Name, seen: Name, shown: bool) -> None:
    """What is seen of a name: it, in lower case, where it may be shown and can be; else 'x'."""
    assert is_x(seen) or (shown and seen == tuple(label.lower() for label in real))


@given(
    LABELS,
    st.lists(st.tuples(LABELS, DATA), max_size=6),
    st.booleans(),
    st.sets(LABELS.map(text), max_size=4),
)
def test_beside_plain_python(
    question: Name,
    records: list[tuple[Name, tuple[int, bytes | Name]]],
    name: bool,
    shared: set[bytes],
) -> None:
    message = compose(question, records)
    out = built(message, name=name, shared=shared)
    (_, before), (seen_question, after) = read(message), read(out)

    def may_show(labels: Name) -> bool:
        clear = name if text(labels) == text(question) else text(labels) in shared
        return clear and bool(_core.build_name_allowed(text(labels)))

    assert out[:12] == message[:12]
    assert is_x(seen_question) == (not may_show(question) or is_x(question))
    expect_name(question, seen_question, may_show(question))
    for real, seen in zip(before, after, strict=True):
        expect_name(real.owner, seen.owner, may_show(real.owner))
        assert seen.fixed[2:] == real.fixed[2:]
        kind, seen_kind = (struct.unpack(">H", r.fixed[:2])[0] for r in (real, seen))
        if isinstance(real.data, tuple):
            assert isinstance(seen.data, tuple)
            assert seen_kind == CNAME
            expect_name(real.data, seen.data, may_show(real.data))
        else:
            address = (kind, len(real.data)) in ((A, 4), (AAAA, 16))
            assert seen_kind == (kind if address else PRIVATE)
            assert seen.zeroed


@given(LABELS, st.lists(st.tuples(LABELS, DATA), max_size=6))
def test_all_that_may_be_shown_is(
    question: Name, records: list[tuple[Name, tuple[int, bytes | Name]]]
) -> None:
    """Where each name may be, none is masked, but for those that are never shown and what joins
    them."""
    allowed = [labels for labels, _ in records] + [question]
    allowed += [data for _, (_, data) in records if isinstance(data, tuple)]
    message = compose(question, records)
    if all(_core.build_name_allowed(text(labels)) for labels in allowed):
        _, before = read(message)
        for real, seen in zip(before, read(built(message, shared=Everything()))[1], strict=True):
            assert text(seen.owner) == text(real.owner)
            if isinstance(real.data, tuple):
                assert isinstance(seen.data, tuple)
                assert text(seen.data) == text(real.data)


@given(st.lists(st.sampled_from(b"abyzABYZ01_"), min_size=40, max_size=40))
def test_messages_of_the_same_lengths_look_the_same(letters: list[int]) -> None:
    def message(t: bytes) -> bytes:
        name = wire.dns_name(t[:5], b"q" + t[5:10])
        alias = record(b"\xc0\x0c", CNAME, wire.dns_name(b"r" + t[10:15], t[15:20]))
        address = record(wire.dns_name(b"s" + t[20:26]), A, t[26:30])
        return response(alias, address, record(b"\xc0\x0c", TXT, t[30:]), name=name)

    def out(t: bytes) -> bytes:
        return built(message(t), name=False, addresses={})

    assert out(bytes(letters)) == out(b"a" * 40)


def test_a_changed_byte_leaks_nothing() -> None:
    """Whatever a byte is, nothing that is not to be shown is written."""
    opt = record(b"\0", OPT, option(8, b"SECR") + option(10, b"SECRSECR"), 1232, 0)
    answers = [
        record(TO_WWW, CNAME, wire.dns_name(b"SECR", b"SECR")),
        record(wire.dns_name(b"SECR"), TXT, b"\4SECR"),
        record(TO_WWW, A, b"SECR"),
        record(TO_WWW, SOA, b"\4SECR" + TO_EXAMPLE + b"\4SECR\0" + bytes(20)),
    ]
    name = wire.dns_name(b"SECR", b"example", b"org")
    for _, changed in wire.off_by_one(response(*answers, name=name, more=[opt])):
        _, out = _core.build_dns(changed, name=False, shared=set(), addresses={})
        assert not re.search(rb"[SECR]{2}", out.upper())
