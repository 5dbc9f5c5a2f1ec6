# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""ICMP messages, read and built; scapy makes them and reads what was built."""

import ipaddress
import struct
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import wire

from zanon_net import _core

pytestmark = pytest.mark.source

V4 = ("192.0.2.33", "198.51.100.44")  # the canaries: in no output
V6 = ("2001:db8:aaaa::33", "2001:db8:bbbb::44")
OUT4 = ("10.9.8.7", "240.1.2.3")
OUT6 = ("fd00::9:8:7", "3fff::1:2:3")
NAME = b"canary-in-the-data"


def packed(address: str) -> bytes:
    """The address as bytes."""
    return ipaddress.ip_address(address).packed


def folded(data: bytes) -> int:
    """The Internet checksum, by RFC 1071's own words: the sum of 16-bit words with end-around
    carry, complemented."""
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def pseudo(ends: tuple[str, str], size: int, protocol: int) -> bytes:
    """The pseudo-header of a checksum."""
    return packed(ends[0]) + packed(ends[1]) + struct.pack(">II", size, protocol)


@dataclass(frozen=True)
class Family:
    """What differs between the two."""

    v6: bool
    ends: tuple[str, str]
    out: tuple[str, str]
    icmp: int  # protocol number
    echo: int  # type of a request

    def quoted(self, transport: bytes, protocol: int, **more: int) -> bytes:
        """A packet of the family."""
        if self.v6:
            return wire.ipv6(transport, protocol, addresses=self.ends, **more)
        return wire.ipv4(transport, protocol, addresses=self.ends, **more)

    def built(self, message: bytes, **choice: object) -> bytes:
        """What leaves of the message."""
        wanted = {
            "src": packed(self.out[1]),
            "dst": packed(self.out[0]),
            "gateway": packed("240.7.7.7"),
            "echo_id": 0x5EED,
            "quote": QUOTE | {"src": packed(self.out[0]), "dst": packed(self.out[1])},
        }
        return _core.build_icmp(message, self.v6, **(wanted | choice))  # type: ignore[arg-type]

    def header(self, length: int, protocol: int, place: int = 0x4000) -> bytes:
        """The quoted packet's header, as it leaves."""
        ends = packed(self.out[0]) + packed(self.out[1])
        if self.v6:
            return struct.pack(">IHBB", 6 << 28 | 0xB9 << 20, length, protocol, 63) + ends
        fields = (0x45, 0xB9, 20 + length, 0x1D1D, place, 63, protocol)
        head = struct.pack(">BBHHHBB", *fields)
        return head + struct.pack(">H", folded(head + ends)) + ends

    def message(self, head: bytes, rest: bytes) -> bytes:
        """A message as it leaves, from its header with a checksum of zeros."""
        data = head + rest
        before = pseudo(self.out[::-1], len(data), 58) if self.v6 else b""
        return data[:2] + struct.pack(">H", folded(before + data)) + data[4:]


QUOTE = {
    "hops": 63, "service": 0xB9, "id": 0x1D1D, "ports": (1025, 9), "seq": 0xABCD0123,
    "echo_id": 0x5EED,
}  # fmt: skip
FOUR = Family(False, V4, OUT4, 1, 8)
SIX = Family(True, V6, OUT6, 58, 128)
FAMILIES = {"v4": FOUR, "v6": SIX}
TCP = wire.tcp(NAME * 9, ports=(40123, 443))
UDP = wire.udp(NAME * 9, ports=(40123, 53))


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    """Both families."""
    return FAMILIES[request.param]


def error(
    family: Family, quote: bytes, *, kind: int | None = None, code: int = 0, word: int = 0
) -> bytes:
    """An error: destination unreachable, or of another kind."""
    if kind is None:
        kind = 1 if family.v6 else 3
    return struct.pack(">BBHI", kind, code, 0xFACE, word) + quote


# ---- reading ------------------------------------------------------------------------------------


def test_echoes_are_read(family: Family) -> None:
    for kind in (family.echo, 129 if family.v6 else 0):
        message = struct.pack(">BBHHH", kind, 0, 0, 77, 78) + NAME
        found = _core.parse_icmp(message, family.v6)
        assert found is not None
        assert (found["kind"], found["type"], found["id"], found["seq"]) == ("echo", kind, 77, 78)


def test_only_listed_types_have_more_than_a_type(family: Family) -> None:
    errors, echoes = ((1, 2, 3, 4), (128, 129)) if family.v6 else ((3, 5, 11, 12), (0, 8))
    for kind in range(256):
        found = _core.parse_icmp(error(family, family.quoted(UDP, 17), kind=kind), family.v6)
        assert found is not None
        expected = "error" if kind in errors else "echo" if kind in echoes else "other"
        assert found["kind"] == expected
        assert (found["quoted"] == "udp") == (expected == "error")


def test_a_quote_is_read(family: Family) -> None:
    echo = struct.pack(">BBHHH", family.echo, 0, 0, 0x1234, 0x5678) + NAME
    for name, transport, protocol, fields in (
        ("tcp", TCP, 6, {"sport": 40123, "dport": 443, "seq": 0x01020304}),
        ("udp", UDP, 17, {"sport": 40123, "dport": 53, "seq": 0}),
        ("echo", echo, family.icmp, {"echo_type": family.echo, "echo_id": 0x1234, "seq": 0x5678}),
        ("ip", bytes(range(30)), 132, {"sport": 0, "seq": 0, "echo_id": 0}),
    ):
        found = _core.parse_icmp(error(family, family.quoted(transport, protocol)), family.v6)
        assert found is not None
        quote = found["quote"]
        assert found["quoted"] == name
        assert (quote["src"], quote["dst"], quote["hops"]) == (*family.ends, 64)
        assert (quote["protocol"], quote["length"]) == (protocol, len(transport))
        assert quote["bytes"] == len(family.quoted(transport, protocol))
        assert {field: quote[field] for field in fields} == fields


def test_mtu_pointer_and_gateway() -> None:
    quote4, quote6 = FOUR.quoted(UDP, 17), SIX.quoted(UDP, 17)
    for family, fields, expected in (
        (FOUR, {"kind": 3, "code": 4, "word": 1400}, {"mtu": 1400, "pointer": 0}),
        (FOUR, {"kind": 3, "code": 3, "word": 1400}, {"mtu": 0}),
        (FOUR, {"kind": 12, "word": 9 << 24}, {"mtu": 0, "pointer": 9}),
        (FOUR, {"kind": 5, "word": 0xC0000209}, {"gateway": "192.0.2.9", "mtu": 0}),
        (SIX, {"kind": 2, "word": 1280}, {"mtu": 1280, "pointer": 0}),
        (SIX, {"kind": 4, "word": 70000}, {"mtu": 0, "pointer": 70000}),
        (SIX, {"kind": 1}, {"mtu": 0, "pointer": 0, "gateway": "::"}),
    ):
        message = error(family, quote6 if family.v6 else quote4, **fields)
        found = _core.parse_icmp(message, family.v6)
        assert found is not None
        assert {name: found[name] for name in expected} == expected
        assert found["quoted"] == "udp"
        out = family.built(message)
        if fields["kind"] == 5:
            assert out[4:8] == packed("240.7.7.7")
            assert family.built(message, gateway=packed("3fff::1"))[4:8] == bytes(4)
            assert family.built(message, gateway=None)[4:8] == bytes(4)
        elif "code" in fields and fields["code"] == 3:
            assert out[4:8] == bytes(4)
        else:
            assert out[4:8] == message[4:8]


def unreadable(family: Family) -> dict[str, bytes]:
    """Quotes that are not plain."""
    plain = family.quoted(UDP, 17)
    if family.v6:
        return {
            "another version": wire.ipv4(UDP, 17),
            "hop-by-hop": family.quoted(wire.ipv6_option_header(17) + UDP, 0),
            "fragment": family.quoted(wire.ipv6_fragment(17) + UDP, 44),
            "authenticated": family.quoted(wire.ah(17) + UDP, 51),
            "too short": family.quoted(UDP, 17, length=7),
            "cut": plain[: 40 + 7],
            "another ICMP": family.quoted(bytes([135]) + bytes(23), 58),
        }
    return {
        "another version": wire.ipv6(UDP, 17),
        "options": wire.ipv4(UDP, 17, addresses=V4, options=bytes(4)),
        "few words": family.quoted(UDP, 17, words=4),
        "later fragment": family.quoted(UDP, 17, place=0x2001),
        "too short": family.quoted(UDP, 17, total=27),
        "cut": plain[: 20 + 7],
        "another ICMP": family.quoted(bytes([13]) + bytes(19), 1),
    }


def test_what_is_not_plain_is_not_read(family: Family) -> None:
    for name, quote in unreadable(family).items():
        message = error(family, quote)
        found = _core.parse_icmp(message, family.v6)
        assert found is not None
        assert (found["kind"], found["quoted"]) == ("error", None), name
        none = "::"
        assert (found["quote"]["src"], found["quote"]["bytes"]) == (none, 0), name
        assert family.built(message) == family.message(message[:2] + bytes(6), bytes(len(quote)))


def test_a_prefix_is_never_more_than_the_whole(family: Family) -> None:
    message = error(family, family.quoted(TCP, 6))
    head = 8 + (40 if family.v6 else 20) + 8
    for size in range(len(message)):
        found = _core.parse_icmp(message[:size], family.v6)
        if size < 4:
            assert found is None
            assert not any(family.built(message[:size]))
            continue
        assert found is not None
        assert found["kind"] == ("other" if size < 8 else "error")
        assert found["quoted"] == (None if size < head else "tcp")


# ---- building -----------------------------------------------------------------------------------


def test_an_echo_is_its_numbers(family: Family) -> None:
    for kind in (family.echo, 129 if family.v6 else 0):
        for data in (b"", b"x", NAME, NAME * 70):
            message = struct.pack(">BBHHH", kind, 0, 0xFACE, 77, 78) + data
            head = struct.pack(">BBHHH", kind, 0, 0, 0x5EED, 78)
            assert family.built(message) == family.message(head, bytes(len(data)))


def test_others_are_their_type(family: Family) -> None:
    for kind in (13, 15, 17, 42, 133, 135, 137, 200):
        for data in (b"", b"x", NAME * 3):
            message = struct.pack(">BBH", kind, 5, 0xFACE) + data
            assert family.built(message) == family.message(bytes([kind, 5, 0, 0]), bytes(len(data)))


def transport_of(family: Family, name: str, length: int, size: int) -> bytes:
    """The first bytes of a quoted packet, as they leave: `size` bytes of `length`."""
    number = {"tcp": 6, "udp": 17, "echo": family.icmp}[name]
    before = pseudo(family.out, length, number)
    if name == "echo":
        data = struct.pack(">BBHHH", family.echo, 0, 0, 0x5EED, 0x5678)
        check = struct.pack(">H", folded((before if family.v6 else b"") + data))
        return data[:2] + check + data[4:]
    if name == "udp":
        data = struct.pack(">HHH", 1025, 9, length)
        return data + struct.pack(">H", folded(before + data) or 0xFFFF)
    data = struct.pack(">HHI", 1025, 9, 0xABCD0123)
    if size < 20:
        return data
    data += bytes(4) + b"\x50" + bytes(3)
    return data + struct.pack(">H", folded(before + data)) + bytes(2)


@pytest.mark.parametrize("name", ["tcp", "udp", "echo"])
def test_a_quote_is_its_listed_fields(family: Family, name: str) -> None:
    echo = struct.pack(">BBHHH", family.echo, 0, 0, 0x1234, 0x5678) + NAME * 9
    whole = {"tcp": TCP, "udp": UDP, "echo": echo}[name]
    number = {"tcp": 6, "udp": 17, "echo": family.icmp}[name]
    header = 40 if family.v6 else 20
    for size in (8, 12, 19, 20, 21, 60, len(whole)):
        quote = family.quoted(whole, number)[: header + size]
        out = family.built(error(family, quote))
        expected = family.header(len(whole), number)
        expected += transport_of(family, name, len(whole), size)
        kind = 1 if family.v6 else 3
        assert out == family.message(bytes([kind, *bytes(7)]), expected.ljust(len(quote), b"\0"))
        assert not any(family.built(error(family, quote), quote=None)[8:])


def test_a_protocol_that_is_not_read_is_its_ip_header(family: Family) -> None:
    quote = family.quoted(NAME, 132)
    out = family.built(error(family, quote))
    assert out[8:] == family.header(len(NAME), 132) + bytes(len(NAME))


def test_extension_objects_and_their_length_are_zeros(family: Family) -> None:
    """RFC 4884: MPLS labels and the interface's name and address (RFC 5837) follow the quote."""
    unit, place = (8, 24) if family.v6 else (4, 16)
    quote = family.quoted(TCP, 6)[:128].ljust(128, b"\0")
    objects = b"\x20\0\xfa\xce" + b"\0\x16\2\x0e" + b"\0\1\0\0" + packed(V4[0]) + NAME
    message = error(family, quote + objects, word=128 // unit << place)
    out = family.built(message)
    assert out[4:8] == bytes(4)
    assert not any(out[8 + (40 if family.v6 else 20) + 20 :])
    assert len(out) == len(message)
    small = error(family, quote, word=16 // unit << place)  # less than the header
    assert not any(family.built(small)[8:])


def test_the_flags_of_fragments_stay() -> None:
    for place in (0, 0x2000, 0x4000, 0x6000):
        for reserved in (0, 0x8000):
            quote = FOUR.quoted(UDP, 17, place=place | reserved)
            header = FOUR.built(error(FOUR, quote))[8:28]
            assert header == FOUR.header(len(UDP), 17, place)


def test_addresses_of_the_other_family_leave_no_quote(family: Family) -> None:
    other = SIX if family is FOUR else FOUR
    message = error(family, family.quoted(UDP, 17))
    wrong = QUOTE | {"src": packed(other.out[0]), "dst": packed(family.out[1])}
    assert not any(family.built(message, quote=wrong)[8:])


def test_a_message_that_was_cut_has_the_checksum_of_the_whole() -> None:
    """The bytes that a caller adds are zeros."""
    message = struct.pack(">BBHHH", 128, 0, 0, 77, 78) + NAME * 10
    whole = SIX.built(message)
    assert SIX.built(message[:50], wire=len(message)) == whole[:50]


@given(st.sampled_from([FOUR, SIX]), st.binary(max_size=200), st.integers(0, 3))
def test_any_bytes_leave_valid_messages(family: Family, data: bytes, start: int) -> None:
    starts = [b"", error(family, b""), error(family, family.quoted(b"", 17)), bytes([family.echo])]
    message = starts[start] + data
    out = family.built(message)
    assert len(out) == len(message)
    if len(message) >= 4:
        before = pseudo(family.out[::-1], len(out), 58) if family.v6 else b""
        assert folded(before + out) == 0
        assert out[:2] == message[:2]
    assert family.built(out) == out


@given(
    st.sampled_from([FOUR, SIX]),
    st.sampled_from([(TCP, 6), (UDP, 17), (NAME * 5, 47)]),
    st.integers(8, 200),
    st.integers(0, 255),
)
@example(SIX, (TCP, 6), 8, 2)
def test_canaries_never_leave(
    family: Family, what: tuple[bytes, int], size: int, kind: int
) -> None:
    quote = family.quoted(*what)[: size + 20] + b"\x20\0\0\0" + packed(family.ends[0]) + NAME
    is_number = family.v6 and kind in (2, 4)  # an MTU or a pointer of 32 bits, which leaves
    word = bytes(4) if is_number else packed(V4[1])
    out = family.built(struct.pack(">BBH", kind, 0, 0) + word + quote)
    for canary in (*map(packed, family.ends), packed(V4[1]), NAME, (40123).to_bytes(2, "big")):
        assert canary not in out
