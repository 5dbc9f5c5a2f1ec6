# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Other programs read anonymized packets, and find the same flows as in what was given."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.netns import Namespace
from support.packet_output import packets
from support.packet_readers import (
    Reader,
    call,
    compare,
    complaints,
    own_flows,
    paired,
    readers,
)
from support.packet_run import anonymized, write_pcap
from support.packets import Frame
from support.shared import made_once

import zanon_net

Pairs = list[tuple[Frame, Frame]]
# All that have a flow. tshark takes ports for protocols, so each client keeps its own.
DISCARD = 9  # stands for an uncommon port of a server whose name is withheld
ALL = {"exact": True, "evidence": "any", "payload": "zero", "keep_client_port": True}
MEASURES = ("c_pkts_all", "s_pkts_all", "c_bytes_all", "s_bytes_all", "c_pkts_data", "s_pkts_data")
MEASURES += ("c_syn_cnt", "s_syn_cnt", "c_fin_cnt", "s_fin_cnt", "c_ack_cnt", "s_ack_cnt")
MEASURES += ("c_bytes_uniq", "s_bytes_uniq", "c_pkts_retx", "s_pkts_retx", "c_rst_cnt", "s_rst_cnt")


def given_frames(capture: Path) -> list[Frame]:
    return packets(capture.read_bytes())


@pytest.fixture(scope="module")
def left_pcap(demo_pcap: Path, key_file: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packets of the demo that have a flow."""

    def make(folder: Path) -> None:
        zanon_net.packets(demo_pcap, folder / "left.pcap", key_file=key_file, **ALL)

    return made_once(tmp_path_factory, "anonymized-demo", make) / "left.pcap"


@pytest.fixture(scope="module")
def pairs(demo_pcap: Path, left_pcap: Path) -> Pairs:
    left = packets(left_pcap.read_bytes())
    assert len(left) > 10_000
    return paired(given_frames(demo_pcap), left)


def need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed ({package})")


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.name)
def test_readers_find_the_same_flows(reader: Reader, pairs: Pairs, tmp_path: Path) -> None:
    if reader.missing:
        pytest.skip(reader.missing)
    result = compare(reader, pairs, tmp_path)
    # nDPI leaves out a lone segment to the port that stands for hidden ones.
    assert all((c, s) == (1, 0) and hides_port(ends) for ends, c, s in result.differing)
    assert len(result.differing) < 3
    assert result.same > 100


def hides_port(ends: frozenset[Any]) -> bool:
    """Whether an end of a flow has the port that stands for a hidden one."""
    return any(end[1] == DISCARD for end in ends if isinstance(end, tuple))


def test_our_own_log_says_the_same(demo_pcap: Path, left_pcap: Path, tmp_path: Path) -> None:
    """The log of what left has each flow of the log of what was given, with the same measures, and
    the same port of the server where a withheld name does not hide it."""

    def told(lines: list[dict[str, object]]) -> list[tuple[object, ...]]:
        columns = ("t_start_ns", "t_end_ns", "proto", *MEASURES, "server_port")
        return sorted(tuple(line.get(name) for name in columns) for line in lines)

    given = told(own_flows(demo_pcap, tmp_path / "given"))
    left = told(own_flows(left_pcap, tmp_path / "left", internal="any"))
    assert len(given) > 1000
    assert [one[:-1] for one in left] == [one[:-1] for one in given]
    ports = [(one[-1], other[-1]) for one, other in zip(given, left, strict=True)]
    assert all(shown in (real, DISCARD) for real, shown in ports)
    assert sum(real != shown for real, shown in ports) < len(ports) // 10


def test_tshark_complains_where_it_must(demo_pcap: Path, tmp_path: Path) -> None:
    """Of bytes that differ from those that were summed, and of a message that ends early."""
    need("tshark", "tshark")
    frame = next(
        f for f in given_frames(demo_pcap) if f.data[12:14] == b"\x08\0" and f.data[23] == 17
    )
    data = bytearray(frame.data)
    data[22] ^= 1
    data[34] ^= 1
    found = complaints(write_pcap(tmp_path / "bad.pcap", [Frame(0, bytes(data), len(data))]))
    assert {"bad ip checksum", "bad udp checksum"} <= found.keys()
    dns = frame.data[:42] + frame.data[42:54] + b"\x3f"
    total = (len(dns) - 14).to_bytes(2)
    dns = dns[:16] + total + dns[18:38] + (len(dns) - 34).to_bytes(2) + dns[40:]
    assert complaints(write_pcap(tmp_path / "cut.pcap", [Frame(0, dns, len(dns))]))["malformed"]


@pytest.mark.parametrize("payload", ["zero", "cut"])
def test_tshark_has_no_complaint(payload: str, demo_pcap: Path, tmp_path: Path) -> None:
    """Of a capture whose checksums are wrong as well: those that leave are computed anew."""
    need("tshark", "tshark")
    frames = anonymized(demo_pcap, **(ALL | {"payload": payload}))
    path = write_pcap(tmp_path / "left.pcap", frames)
    assert complaints(path) == {}
    assert len(frames) > 10_000


@pytest.mark.parametrize("name", ["left.pcap", "left.pcapng"])
def test_libpcap_and_wireshark_read_the_files(name: str, demo_pcap: Path, tmp_path: Path) -> None:
    need("capinfos", "wireshark-common")
    need("tcpdump", "tcpdump")
    out = tmp_path / name
    zanon_net.packets(demo_pcap, out, **ALL)
    frames = packets(out.read_bytes())
    about = call("capinfos", "-M", "-T", "-r", "-c", "-d", out).split()
    octets = sum(frame.wire for frame in frames)
    assert [str(len(frames)), str(octets)] == about[-2:]
    lines = call("tcpdump", "-n", "-r", out).splitlines()
    assert sum(" IP" in line[:20] for line in lines) == len(frames)  # some print several lines
    assert not [line for line in lines if "[|" in line or "truncated" in line]


def test_tcpreplay_sends_them(left_pcap: Path) -> None:
    need("tcpreplay", "tcpreplay")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    try:
        net = Namespace()
    except OSError as error:
        pytest.skip(f"no network namespace: {error}")
    with net:
        net.cable("a", "b")
        with net.inside():
            said = call("tcpreplay", "-q", "-t", "-i", "b", "--limit", "5000", left_pcap)
        assert "Failed packets:            0" in said
        assert net.counter("a", "rx_packets") >= 5000
