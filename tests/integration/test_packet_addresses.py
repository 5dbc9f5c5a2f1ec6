# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Address closure: each address that leaves is a pseudonym, a group's, or shared by z users.

Which servers z users share is counted in the frames that were given, by other addresses that they
exchanged packets with: more than those who proved to be users, so an upper bound.
"""

import ipaddress
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from oracle.packet_addresses import Address, answers, block_of, closure, held
from scenario import packet_canary
from support import wire
from support.examples import EVERY_CASE, each
from support.packet_output import packets
from support.packet_run import write_pcap
from support.packets import SECOND, SERVER_ADDRESS, START, Frame, Tcp, crowd, dns, merged

import zanon_net
from zanon_net.bench.trace import Scale, generate
from zanon_net.errors import FormatError

KINDS = (
    {},
    {"exact": True, "evidence": "any", "encapsulation": "keep"},
    {"suppressed": "coarse"},
)
EVERY = (
    2 if EVERY_CASE else 12
)  # of the corpus, one capture of so many; the largest are left to bench/packets.py
MOST_BYTES = 100_000


def frame_of(packet: bytes, kind: int = 0x0800) -> bytes:
    return wire.ethernet(packet, kind)


def test_the_reader_finds_every_address() -> None:
    """What says nothing about an address that it should see is no proof."""
    quote = wire.ipv4(bytes(8), wire.UDP, addresses=("192.0.2.1", "192.0.2.2"))
    error = frame_of(wire.ipv4(b"\3\1" + bytes(6) + quote, 1, addresses=("10.0.0.1", "10.0.0.2")))
    assert [str(one.address) for one in held(error)] == [
        *("10.0.0.1", "10.0.0.2", "192.0.2.1", "192.0.2.2")
    ]
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\x63"
    answer = dns(b"a.example", response=True, answers=[record])
    assert [str(one) for one in answers(answer)] == ["192.0.2.99"]
    datagram = wire.udp(answer, ports=(53, 4000))
    found = closure([frame_of(wire.ipv4(datagram, wire.UDP)), error])
    assert {str(one.address) for _n, one in found.others} == {
        *("192.0.2.1", "192.0.2.2", "192.0.2.7", "192.0.2.99")
    }
    with pytest.raises(ValueError, match="options"):
        list(held(frame_of(wire.ipv4(datagram, wire.UDP, options=b"\1\1\1\1"))))
    with pytest.raises(ValueError, match="EtherType"):
        list(held(frame_of(datagram, 0x0806)))


@each(
    "text, block",
    [
        ("10.255.1.1", "client"),
        ("172.32.0.1", None),
        ("100.127.0.1", "client"),
        ("255.255.255.255", "special"),
        ("255.255.255.254", "outside client"),
        ("247.1.2.3", "pair"),
        ("239.9.9.9", "group"),
        ("225.9.9.9", None),
        ("224.0.0.200", "special"),
        ("224.0.1.1", "special"),
        ("224.0.1.38", None),
        ("224.0.2.1", None),
        ("3fff:7ff::1", "pair"),
        ("3fff:800::1", "outside client"),
        ("3fff:1000::1", None),
        ("fd00::1", "client"),
        ("ff02::1", "special"),
        ("ff02::1:3", "special"),
        ("ff02::1:ff00:1", None),
        ("ff05::1", None),
        ("ff0e:1::1", "group"),
        ("fe80::1", None),
        ("0.0.0.0", None),
        ("127.0.0.1", None),
    ],
)
def test_blocks(text: str, block: str | None) -> None:
    assert block_of(ipaddress.ip_address(text)) == block


def shared(frames: Sequence[Frame], z: int) -> set[Address]:
    """Addresses that exchanged packets with z others."""
    peers: dict[Address, set[Address]] = defaultdict(set)
    for frame in frames:
        source, target = (one.address for one in list(held(frame.data))[:2])
        peers[source].add(target)
        peers[target].add(source)
    return {one for one, others in peers.items() if len(others) >= z}


def left_of(capture: Path, folder: Path, **settings: Any) -> list[Frame]:
    out = folder / "out.pcap"
    zanon_net.packets(capture, out, **settings)
    frames = packets(out.read_bytes())
    for path in folder.glob("out.*"):
        path.unlink()
    return frames


def check(capture: Path, folder: Path, z: int, key_file: str) -> int:
    """Looks at all addresses of what leaves; the number of packets. What leaves at z = 1 has the
    servers' real addresses, and a pseudonym for each client."""
    everything = left_of(capture, folder, z=1, key_file=key_file, **KINDS[1] | {"rotate": "3000d"})
    released = shared(everything, z)
    packets_out = 0
    for more in KINDS:
        frames = left_of(capture, folder, z=z, key_file=key_file, **more)
        found = closure((frame.data for frame in frames), released)
        assert found.others == [], capture.name
        packets_out += len(frames)
    return packets_out


@pytest.mark.parametrize("z", [2, 20])
def test_demo(demo_pcap: Path, key_file: str, tmp_path: Path, z: int) -> None:
    assert check(demo_pcap, tmp_path, z, key_file) > 15_000


def test_canary(key_file: str, tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "in.pcap", packet_canary.frames())
    assert check(capture, tmp_path, 5, key_file) >= 40


def test_a_shared_server_is_shown_and_another_is_not(key_file: str, tmp_path: Path) -> None:
    """The closure is not empty: z users release an address, z - 1 do not."""
    few = "198.51.100.8"
    frames = merged([crowd(b"a.example", 6), crowd(b"a.example", 4, first=100, server=few)])
    late = Tcp("10.7.0.200", SERVER_ADDRESS, t_ns=START + 5 * SECOND).handshake().close().frames
    capture = write_pcap(tmp_path / "in.pcap", merged([frames, late]))
    found = [
        {str(one.address) for frame in left_of(capture, tmp_path, z=5, key_file=key_file, **more)
         for one in held(frame.data)}
        for more in KINDS
    ]  # fmt: skip
    assert SERVER_ADDRESS in found[0]
    assert few not in set().union(*found)


def captures(corpus: Path) -> Iterator[Path]:
    """Some of the captures, of every folder."""
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    paths = (corpus / path for path in sorted(json.loads(line)["path"] for line in lines))
    small = [path for path in paths if path.stat().st_size < MOST_BYTES]
    yield from small[::EVERY]


def test_real_captures(corpus: Path, key_file: str, tmp_path: Path) -> None:
    read = packets_out = 0
    for capture in captures(corpus):
        try:
            packets_out += check(capture, tmp_path, 3, key_file)
            read += 1
        except FormatError:
            continue
    assert read > 50
    assert packets_out > 1000


@pytest.mark.parametrize("profile", ["isp", "storm"])
def test_generated_traffic(profile: str, key_file: str, tmp_path: Path) -> None:
    capture = tmp_path / "in.pcap"
    generate(capture, profile, Scale(octets=3_000_000, homes=300, names=200))
    assert check(capture, tmp_path, 3, key_file) > 2000
