# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frame to packet: fragments of IPv4 and IPv6."""

import pytest
from support import wire
from support.decode import DATA, FRAME, FRAME6, FRAME_UDP, OPTIONS, RAW, drop, fragment, packet
from support.wire import CLIENT, CLIENT6, SERVER, SERVER6, ipv4, ipv6, tcp, udp

pytestmark = pytest.mark.source

MORE = 0x2000


def test_a_fragment_of_ipv4() -> None:
    """RFC 791 3.1: the offset counts units of eight bytes."""
    assert fragment(ipv4(DATA, wire.UDP, place=185)) == {
        "src": CLIENT,
        "dst": SERVER,
        "id": 7,
        "offset": 1480,
        "more": False,
        "protocol": 17,
        "bytes": DATA,
    }
    first = fragment(ipv4(tcp() + bytes(4), place=MORE, options=bytes(8)))
    assert (first["offset"], first["more"], first["bytes"]) == (0, True, tcp() + bytes(4))


def test_a_fragment_of_ipv6() -> None:
    """RFC 8200 4.5; what the first header says of the payload counts, the rest may differ."""
    found = fragment(ipv6(wire.ipv6_fragment(6, 185) + DATA, 44))
    assert found == fragment(ipv4(DATA, place=185)) | {
        "src": CLIENT6,
        "dst": SERVER6,
        "id": 99,
    }
    options = OPTIONS(44) + wire.ipv6_fragment(60, more=True) + OPTIONS(6) + tcp()[:8]
    first = fragment(ipv6(options, 60))
    assert (first["protocol"], first["more"]) == (60, True)
    assert first["bytes"] == OPTIONS(6) + tcp()[:8]


def test_padding_is_no_part_of_a_fragment() -> None:
    assert fragment(ipv4(DATA, place=185) + bytes(9))["bytes"] == DATA
    assert fragment(ipv6(wire.ipv6_fragment(6, 185) + DATA, 44) + bytes(9))["bytes"] == DATA


def test_a_cut_first_fragment_is_read_as_far_as_it_goes() -> None:
    eights = [tcp(DATA) + b"\0", udp(DATA) + bytes(5), OPTIONS(6) + tcp(DATA) + b"\0"]
    for datagram, whole in (
        (ipv4(eights[0], place=MORE), FRAME),
        (ipv4(eights[1], wire.UDP, place=MORE), FRAME_UDP),
        (ipv6(wire.ipv6_fragment(6, more=True) + eights[0], 44), FRAME6),
        (ipv6(wire.ipv6_fragment(60, more=True) + eights[2], 44), FRAME6),
    ):
        found = packet(datagram[:-9], RAW, missing=9)
        assert found.pop("fragment") == 1
        assert DATA.startswith(found.pop("payload"))
        assert found.pop("payload_len") >= len(DATA)
        assert found.items() <= packet(whole).items()


@pytest.mark.parametrize(
    "datagram",
    [
        ipv4(bytes(40), place=MORE | 185),
        ipv4(tcp(DATA), place=1),
        ipv4(tcp()[:16], place=MORE),
        ipv4(tcp(options=bytes(40))[:24], place=MORE),
        ipv4(udp(), wire.UDP, place=MORE),
        ipv6(wire.ipv6_fragment(6, 185) + DATA, 44),
        ipv6(wire.ipv6_fragment(60, 3) + b"\xff" * 8, 44),
        ipv6(wire.ipv6_fragment(44, more=True) + wire.ipv6_fragment(6, 3) + bytes(16), 44),
    ],
)
def test_other_cut_fragments_are_of_no_use(datagram: bytes) -> None:
    assert drop(datagram[:-1], RAW, missing=1) == "drop_ip_fragment"


@pytest.mark.parametrize(
    "datagram",
    [
        ipv4(DATA, place=MORE),
        ipv4(b"", place=MORE),
        ipv4(b"", place=7),
        ipv4(bytes(16), place=0x1FFF),
        ipv6(wire.ipv6_fragment(6, more=True) + DATA, 44),
        ipv6(wire.ipv6_fragment(6, 7), 44),
        ipv6(wire.ipv6_fragment(6, 0x1FFF) + bytes(8), 44),
        ipv6(wire.ipv6_fragment(6, 7)[:6], 44),
    ],
    ids=[
        "IPv4 not of eight bytes",
        "IPv4 empty first",
        "IPv4 empty last",
        "IPv4 past 64 KiB",
        "IPv6 not of eight bytes",
        "IPv6 empty",
        "IPv6 past 64 KiB",
        "IPv6 header cut",
    ],
)
def test_malformed_fragments(datagram: bytes) -> None:
    assert drop(datagram, RAW) == "drop_ip_malformed"


def test_an_atomic_fragment_is_a_packet() -> None:
    """RFC 6946."""
    assert packet(ipv6(wire.ipv6_fragment(6) + tcp(DATA), 44), RAW) == packet(FRAME6)
    assert packet(ipv4(tcp(DATA), place=0x4000), RAW) == packet(FRAME)
