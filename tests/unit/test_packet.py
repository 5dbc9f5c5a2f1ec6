# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frame to packet: IPv4 and IPv6, fragments, TCP and UDP; of the link layer what is most common.

Every link type and tunnel: tests/differential/test_encapsulations.py.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.decode import DATA, FRAME, FRAME6, FRAME_UDP, OPTIONS, RAW, drop, link_types, packet
from support.examples import each
from support.wire import (
    CLIENT,
    CLIENT6,
    ETHERTYPE_IPV6,
    SERVER,
    SERVER6,
    ethernet,
    ipv4,
    ipv6,
    tcp,
    udp,
)

from zanon_net import _core

pytestmark = pytest.mark.source


def test_tcp_over_ipv4() -> None:
    assert packet(FRAME) == {
        "src": CLIENT,
        "dst": SERVER,
        "sport": 40000,
        "dport": 443,
        "proto": 6,
        "ttl": 64,
        "flags": 0x18,
        "seq": 0x01020304,
        "ack": 0x05060708,
        "window": 0x2000,
        "payload": DATA,
        "payload_len": len(DATA),
        "fragment": 0,
    }


def test_udp_over_ipv4() -> None:
    assert packet(FRAME_UDP) == packet(FRAME) | {
        "proto": 17,
        "dport": 53,
        "flags": 0,
        "seq": 0,
        "ack": 0,
        "window": 0,
    }


def test_ipv6() -> None:
    assert packet(FRAME6) == packet(FRAME) | {"src": CLIENT6, "dst": SERVER6}


# ---- link layer ---------------------------------------------------------------------------------

V4, V6 = ipv4(tcp(DATA)), ipv6(tcp(DATA))
SLL = struct.pack(">HHH8s", 0, 1, 6, bytes(8))


@pytest.mark.parametrize(
    ("link", "header"),
    [
        (12, b""),
        (14, b""),
        (101, b""),
        (228, b""),
        (229, b""),
        (113, SLL + b"\x08\x00"),
        (113, SLL + b"\x81\x00\x00\x07\x08\x00"),
        (0, b"\2\0\0\0"),
        (0, b"\0\0\0\2"),
        (108, b"\0\0\0\2"),
    ],
)
def test_link_types_ipv4(link: int, header: bytes) -> None:
    assert packet(header + V4, link) == packet(FRAME)


@each(
    "link, header",
    [(12, b""), (101, b""), (113, SLL + b"\x86\xdd")]
    + [(0, struct.pack(order + "I", af)) for order in "<>" for af in (10, 24, 28, 30)]
    + [(108, struct.pack(">I", af)) for af in (24, 28, 30)],
)
def test_link_types_ipv6(link: int, header: bytes) -> None:
    assert packet(header + V6, link) == packet(FRAME6)


@pytest.mark.parametrize("link", [2, 3, 99, 147, 283, 286, 65535, 0xFFFFFFFF])
def test_other_link_types(link: int) -> None:
    assert drop(FRAME, link) == "drop_link_type"


@pytest.mark.parametrize(
    "tpids", [(0x8100,), (0x88A8,), (0x9100,), (0x88A8, 0x8100), (0x8100,) * 2]
)
def test_vlan_tags(tpids: tuple[int, ...]) -> None:
    assert packet(ethernet(V4, tags=tpids)) == packet(FRAME)
    assert packet(ethernet(V6, ETHERTYPE_IPV6, tpids)) == packet(FRAME6)
    assert drop(ethernet(b"", 0x0806, tpids)) == "drop_not_ip"


@each("count", range(3, 15))
def test_many_vlan_tags(count: int) -> None:
    assert packet(ethernet(V4, tags=(0x88A8, *[0x8100] * (count - 1)))) == packet(FRAME)


@pytest.mark.parametrize("organization", [0, 0x0000F8])
def test_ieee_802_3(organization: int) -> None:
    assert packet(wire.llc_snap(V4, organization=organization)) == packet(FRAME)
    assert packet(wire.llc_snap(V6, ETHERTYPE_IPV6)) == packet(FRAME6)
    assert packet(wire.MACS + wire.vector(2, b"\x06\x06\x03" + V4)) == packet(FRAME)
    assert packet(wire.MACS + b"\x81\0\0\7" + wire.llc_snap(V4)[12:]) == packet(FRAME)


@pytest.mark.parametrize(
    "frame",
    [
        ethernet(bytes(28), 0x0806),
        ethernet(V4, 0x8847),
        ethernet(V4, 0x05DD),
        wire.llc_snap(V4, organization=0x00000C),
        wire.MACS + wire.vector(2, b"\x42\x42\x03" + bytes(35)),
        wire.MACS + wire.vector(2, b"\xff\xff" + bytes(40)),
    ],
    ids=["ARP", "MPLS", "no EtherType", "other SNAP", "STP", "IPX"],
)
def test_not_ip(frame: bytes) -> None:
    assert drop(frame) == "drop_not_ip"


@pytest.mark.parametrize("family", [0, 1, 7, 23, 0x0800, 0x02000002])
def test_other_address_families(family: int) -> None:
    assert drop(struct.pack(">I", family) + V4, 0) == "drop_not_ip"


def test_cut_link_headers() -> None:
    for header in (FRAME[:14], ethernet(b"", tags=(0x8100, 0x8100)), wire.llc_snap(b"")):
        for cut in wire.prefixes(header):
            assert drop(cut) == "drop_link_truncated"
    for cut in wire.prefixes(SLL + b"\x08\x00"):
        assert drop(cut, 113) == "drop_link_truncated"
    assert drop(b"\2\0\0", 0) == "drop_link_truncated"


# ---- IPv4 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", range(1, 11))
def test_ip_options(words: int) -> None:
    frame = ethernet(ipv4(tcp(DATA), options=b"\x94\x04\0\0" * words))
    assert packet(frame) == packet(FRAME)
    service = b"\x45"  # first byte of a header without options
    assert packet(frame[:15] + service + frame[16:]) == packet(FRAME)


@pytest.mark.parametrize("padding", [b"\0", bytes(6), b"\x16\3\1" * 20])
def test_trailing_padding_is_not_payload(padding: bytes) -> None:
    assert packet(FRAME + padding) == packet(FRAME)
    assert packet(FRAME6 + padding) == packet(FRAME6)
    assert packet(ethernet(ipv4(tcp())) + padding)["payload_len"] == 0


def test_a_total_length_of_zero_reaches_to_the_end_of_the_frame() -> None:
    frame = ethernet(ipv4(tcp(DATA), total=0))
    assert packet(frame) == packet(FRAME)
    assert packet(frame, missing=9)["payload_len"] == len(DATA) + 9
    frame = ethernet(ipv6(tcp(DATA), length=0), ETHERTYPE_IPV6)
    assert packet(frame) == packet(FRAME6)
    assert packet(frame, missing=9)["payload_len"] == len(DATA) + 9


def test_a_cut_payload() -> None:
    for kept in range(len(DATA)):
        cut = len(DATA) - kept
        for frame in (FRAME, FRAME_UDP, FRAME6):
            found = packet(frame[:-cut], missing=cut)
            assert found == packet(frame) | {"payload": DATA[:kept]}


def test_a_payload_cut_by_a_lying_frame_is_not_whole() -> None:
    found = packet(ethernet(ipv4(tcp(DATA), total=1500)))
    assert (found["payload"], found["payload_len"]) == (DATA, 1460)


@pytest.mark.parametrize("zero", ["10.0.0.1", "10.0.1.0", "10.0.0.0", "0.0.0.1", "1.0.0.0"])
def test_zero_octets_are_part_of_the_address(zero: str) -> None:
    assert packet(ethernet(ipv4(tcp(), addresses=(zero, SERVER))))["src"] == zero
    assert packet(ethernet(ipv4(tcp(), addresses=(SERVER, zero))))["dst"] == zero


@pytest.mark.parametrize(
    "datagram",
    [
        b"\x55" + V4[1:],
        b"\x05" + V4[1:],
        ipv4(tcp(DATA), words=4),
        ipv4(tcp(DATA), words=0),
        ipv4(tcp(DATA), total=19),
        ipv4(b"", words=6),
        ipv4(tcp(DATA), words=15, total=56),
    ],
    ids=["version 5", "version 0", "IHL 4", "IHL 0", "total 19", "IHL past the end", "IHL > total"],
)
def test_malformed_ip(datagram: bytes) -> None:
    assert drop(datagram, RAW) == "drop_ip_malformed"
    assert drop(ethernet(datagram)) == "drop_ip_malformed"


def test_cut_ip_headers() -> None:
    for datagram in (ipv4(b"", options=bytes(8)), V6[:40], ipv6(wire.ipv6_option_header(6), 0)):
        for cut in wire.prefixes(datagram):
            assert drop(cut, RAW, missing=100) == "drop_ip_truncated"
            assert drop(cut, RAW) == "drop_ip_malformed"


@pytest.mark.parametrize("protocol", [1, 2, 58, 59, 89, 132, 255])
def test_other_protocols(protocol: int) -> None:
    assert drop(ipv4(V4, protocol), RAW) == "drop_not_tcp_udp"
    assert drop(ipv6(V4, protocol), RAW) == "drop_not_tcp_udp"


@pytest.mark.parametrize("kind", [0, 43, 44, 60])
def test_ipv6_extension_headers_mean_nothing_in_ipv4(kind: int) -> None:
    assert drop(ipv4(wire.ipv6_option_header(6) + tcp(DATA), kind), RAW) == "drop_not_tcp_udp"


def test_authentication_header() -> None:
    assert packet(ipv4(wire.ah(6) + tcp(DATA), 51), RAW) == packet(FRAME)
    assert packet(ipv6(wire.ah(6, 16) + tcp(DATA), 51), RAW) == packet(FRAME6)
    assert packet(ipv4(wire.ah(4) + V4, 51), RAW) == packet(FRAME)
    assert drop(ipv4(wire.ah(50) + V4, 51), RAW) == "drop_encrypted"
    for length in (0, 255):  # RFC 4302 2.2: words minus two
        broken = wire.ah(6)[:1] + bytes([length]) + wire.ah(6)[2:]
        assert drop(ipv4(broken + tcp(DATA), 51), RAW).startswith("drop_")


# ---- IPv6 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "headers"),
    [
        (0, OPTIONS(6)),
        (0, OPTIONS(6, 3)),
        (43, OPTIONS(6, 2)),
        (60, OPTIONS(6)),
        (51, wire.ah(6)),
        (44, wire.ipv6_fragment(6)),
        (
            0,
            OPTIONS(60)
            + OPTIONS(43)
            + OPTIONS(44, 2)
            + wire.ipv6_fragment(51)
            + wire.ah(60)
            + OPTIONS(6),
        ),
        (60, OPTIONS(60) * 7 + OPTIONS(6)),
    ],
)
def test_extension_headers(first: int, headers: bytes) -> None:
    frame = ethernet(ipv6(headers + tcp(DATA), first), ETHERTYPE_IPV6)
    assert packet(frame) == packet(FRAME6)
    assert packet(frame + bytes(9)) == packet(FRAME6)
    assert packet(frame[:-4], missing=4) == packet(FRAME6) | {"payload": DATA[:-4]}


@pytest.mark.parametrize(
    ("first", "headers", "length"),
    [
        (60, OPTIONS(60) * 8 + OPTIONS(6), None),
        (0, OPTIONS(6, 255)[:40], None),
        (0, OPTIONS(6, 1), 8),
        (51, wire.ah(6, 40)[:-8], None),
    ],
    ids=["nine headers", "past the frame", "past the packet", "AH past the frame"],
)
def test_malformed_extension_headers(first: int, headers: bytes, length: int | None) -> None:
    assert drop(ipv6(headers, first, length=length), RAW) == "drop_ip_malformed"


# ---- TCP and UDP --------------------------------------------------------------------------------


@pytest.mark.parametrize("words", range(1, 11))
def test_tcp_options(words: int) -> None:
    frame = ethernet(ipv4(tcp(DATA, options=b"\1\1\1\1" * words)))
    assert packet(frame) == packet(FRAME)
    cut = len(DATA) + 2
    assert packet(frame[:-cut], missing=cut) == packet(FRAME) | {"payload": b""}


@pytest.mark.parametrize("offset", [0, 4, 10, 15])
def test_a_wrong_data_offset(offset: int) -> None:
    assert drop(ipv4(tcp(DATA, offset=offset)), RAW) == "drop_transport_malformed"


@pytest.mark.parametrize("length", [1, 7, 9 + len(DATA), 65535])
def test_a_wrong_udp_length(length: int) -> None:
    datagram = ipv4(udp(DATA, length=length), wire.UDP)
    assert drop(datagram, RAW) == "drop_transport_malformed"
    assert drop(datagram[:-3], RAW, missing=3) == "drop_transport_malformed"


def test_udp_shorter_than_its_packet() -> None:
    found = packet(ipv4(udp(DATA, length=8 + 4), wire.UDP), RAW)
    assert (found["payload"], found["payload_len"]) == (DATA[:4], 4)


def test_a_udp_length_of_zero_reaches_to_the_end_of_the_packet() -> None:
    found = packet(ethernet(ipv4(udp(DATA, length=0), wire.UDP)) + bytes(5))
    assert (found["payload"], found["payload_len"]) == (DATA, len(DATA))


def test_cut_transport_headers() -> None:
    for datagram, size in ((ipv4(tcp()), 20), (ipv4(udp(), wire.UDP), 8), (ipv6(tcp()), 20)):
        start = len(datagram) - size
        for kept in range(start, len(datagram)):
            assert drop(datagram[:kept], RAW, missing=9) == "drop_transport_truncated"
            assert drop(datagram[:kept], RAW) == "drop_transport_malformed"


def test_an_ip_packet_too_short_for_its_transport() -> None:
    for size in range(20):
        assert drop(ipv4(tcp()[:size]) + bytes(30), RAW) == "drop_transport_malformed"
    for size in range(1, 8):
        datagram = ipv6(udp()[:size], wire.UDP) + bytes(30)
        assert drop(datagram, RAW) == "drop_transport_malformed"


# ---- all of it ----------------------------------------------------------------------------------

FRAMES = [FRAME, FRAME_UDP, FRAME6, ethernet(V4, tags=(0x88A8, 0x8100)), wire.llc_snap(V4)]
FRAMES += [ethernet(ipv6(OPTIONS(60) + OPTIONS(6, 2) + tcp(DATA), 0), ETHERTYPE_IPV6)]


@given(
    st.binary(max_size=200),
    st.deferred(lambda: st.sampled_from(link_types())),
    st.integers(0, 3000),
)
def test_any_bytes_end_in_a_packet_or_a_counter(data: bytes, link: int, missing: int) -> None:
    for start in (b"", b"\x45\0", b"\x60\0\0\0", FRAME[:14] + b"\x45", FRAME6[:14] + b"\x60"):
        found = _core.decode_packet(start + data, link, len(start + data) + missing)
        if isinstance(found, dict):
            payload = found.get("payload", found.get("bytes"))
            assert len(payload) <= found.get("payload_len", len(payload))
            assert payload in start + data
        else:
            assert found.startswith("drop_")


@pytest.mark.parametrize("frame", FRAMES)
def test_a_cut_frame_gives_the_same_packet_or_none(frame: bytes) -> None:
    whole = packet(frame)
    for cut in wire.prefixes(frame):
        found = _core.decode_packet(cut, wire.LINK_ETHERNET, len(frame))
        if isinstance(found, dict):
            assert whole["payload"].startswith(found["payload"])
            assert found | whole | {"payload": b""} == found | {"payload": b""}
        else:
            assert found.endswith("_truncated")


@pytest.mark.parametrize("frame", FRAMES)
def test_a_byte_off_by_one_stays_inside_the_frame(frame: bytes) -> None:
    for _, changed in wire.off_by_one(frame):
        found = _core.decode_packet(changed, wire.LINK_ETHERNET)
        if isinstance(found, dict):
            assert found.get("payload", found.get("bytes")) in changed
