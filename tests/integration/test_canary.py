# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The canary: nothing a run leaves behind holds a client's address or a name it had to withhold.

Searched are all files of the output folder and their paths, stdout, stderr and with them every
message, for every notation an address could be written in. What may be released comes from brute
force over the ground truth, not from the run.
"""

import ipaddress
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import dpkt
import pytest
from support.canary import (
    Address,
    Canaries,
    notations,
    plain,
    spellings,
    zanon_net,
    zanon_net_here,
)
from support.capture_bytes import enhanced, interface, section
from support.demo import Line, Rules, read_truth, released_lines
from support.handshake import browser, shown, telling
from support.packets import HOUR, merged

INTERNAL_SERVERS = ("10.0.0.53", "10.0.0.80", "fd00:0:0:53::53")
FORMATS = ("tstat", "csv", "jsonl", "parquet", "observations")


# ---- the demo -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def truth(demo_truth: Path) -> list[Line]:
    return read_truth(demo_truth)


@pytest.fixture(scope="module")
def addresses(demo_pcap: Path, truth: list[Line]) -> set[Address]:
    """Every address in the capture that is not a public server's."""
    servers = {line["server"] for line in truth} - set(INTERNAL_SERVERS)
    clients = {line["client"] for line in truth}
    with demo_pcap.open("rb") as capture:
        for _time, frame in dpkt.pcap.Reader(capture):
            packet = dpkt.ethernet.Ethernet(frame).data
            if isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
                clients |= {str(ipaddress.ip_address(end)) for end in (packet.src, packet.dst)}
    inside = {ipaddress.ip_address(address) for address in clients - servers}
    assert {ipaddress.ip_address(address) for address in INTERNAL_SERVERS} <= inside
    assert len(inside) > 400
    return inside


def canaries(truth: Sequence[Line], addresses: Iterable[Address], rules: Rules) -> Canaries:
    """The addresses, the names that are not released, and the labels that only those have."""
    released = {line["name"] for line in released_lines(truth, rules)}
    servers = {line["server"] for line in truth}  # public ones, and some requests name them
    withheld = {line["name"] for line in truth} - released - servers
    words = {label for name in released for label in name.split(".")}
    labels = {label for name in withheld for label in name.split(".") if len(label) > 7}
    assert withheld
    return Canaries.of(addresses, withheld | labels - words)


def test_the_scanner_finds_what_is_planted(truth: list[Line], addresses: set[Address]) -> None:
    """A canary that cannot sing is none."""
    net = canaries(truth, addresses, Rules(5, HOUR))
    quiet = b'{"client":"203.0.113.77","name":null,"epoch":476577,"c_pkts":8}\nlog_tcp_complete\n'
    assert not net.found_in(quiet)
    client = ipaddress.ip_address(next(line["client"] for line in truth if "." in line["client"]))
    client6 = ipaddress.ip_address(next(line["client"] for line in truth if ":" in line["client"]))
    for address in (client, client6):
        for text in notations(address):
            for planted in (text, text.upper(), b'"' + text + b'"', b"x=" + text + b":443"):
                assert net.found_in(quiet + planted + b" " + quiet), planted
    for name in ("alice-nas.example", "alice-nas", "target-clinic.example"):
        for text in spellings(name):
            for planted in (text, text.upper(), b"http://" + text + b"/", b"." + text + b"."):
                assert net.found_in(quiet + planted + b" " + quiet), planted
    assert not net.found_in(b"1%s 9 %s1" % (str(client).encode(), str(client).encode()))


@pytest.fixture(scope="module")
def fixed_key(key_file: str) -> list[str]:
    return ["--key-file", key_file]


@pytest.mark.family(9)
@pytest.mark.parametrize("z", [5, 20])
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--json"],
        ["-v"],
        ["--exact", "--keep-client-port"],
        ["--dn-hunter", "--columns", "core,e2e,p2p,options,layer7", "--compress", "gzip"],
        ["--split", "20m", "--split-size", "10k", "--compress", "zstd"],
        ["--for", "internal"],
        ["--for", "public"],
        ["--for", "public", "--exact", "--dn-hunter"],
    ],
)
def test_nothing_escapes(
    z: int,
    more: list[str],
    demo_pcap: Path,
    truth: list[Line],
    addresses: set[Address],
    fixed_key: list[str],
    tmp_path: Path,
) -> None:
    formats = [word for name in FORMATS for word in ("--format", name)]
    left = zanon_net_here(
        tmp_path, "run", demo_pcap, "--z", z, "--out", "out", *formats, *fixed_key, *more
    )
    assert left.code == 0, left.stderr
    assert (left.folder / "out" / "manifest.json").exists()
    everything = left.everything()
    assert len(everything) > 1_000_000
    net = canaries(truth, addresses, Rules(z, HOUR))
    assert not net.found_in(everything)
    for path in (left.folder / "out").rglob("*"):
        assert path.is_dir() or not re.search(rb"[^\x20-\x7e\n]", plain(path))


def test_nothing_escapes_beside_the_names(tmp_path: Path) -> None:
    """Certificates' names and user agents, of few users and of many."""
    talks = [browser(i, telling(b"Common/5 (X11)")) for i in range(8)]
    talks += [shown(i, common_name="common.example") for i in range(8)]
    talks += [
        browser(20, telling(b"RarityBrowser/7 (X11)")),
        shown(20, common_name="rarity.example"),
    ]
    frames = merged(talks)
    blocks = [enhanced("<", frame.t_ns // 1000, frame.data) for frame in frames]
    capture = tmp_path / "beside.pcapng"
    capture.write_bytes(b"".join([section(), interface(), *blocks]))
    formats = [word for name in FORMATS for word in ("--format", name)]
    left = zanon_net(tmp_path / "run", "run", capture, "--z", 5, "--out", "out", *formats)
    assert left.code == 0, left.stderr
    everything = left.everything()
    assert everything.count(b"Common%2F5%20%28X11%29") == everything.count(b"common.example") > 8
    assert not Canaries.of([], ["raritybrowser", "rarity.example", "rarity"]).found_in(everything)


@pytest.mark.parametrize("output", ["csv", "jsonl", "observations"])
def test_nothing_escapes_to_stdout(
    output: str,
    demo_pcap: Path,
    truth: list[Line],
    addresses: set[Address],
    fixed_key: list[str],
    tmp_path: Path,
) -> None:
    left = zanon_net(
        *(tmp_path, "run", "-", "--z", 5, "--out", "-", "--format", output, "--json", *fixed_key),
        stdin=demo_pcap.read_bytes(),
    )
    assert left.code == 0, left.stderr
    assert len(left.stdout) > 10_000
    assert not canaries(truth, addresses, Rules(5, HOUR)).found_in(left.everything())


def test_nothing_escapes_under_keys_nobody_knows(
    demo_pcap: Path, truth: list[Line], addresses: set[Address], tmp_path: Path
) -> None:
    """A pseudonym can be some client's address by chance, but not the same one three times."""
    net = canaries(truth, addresses, Rules(20, HOUR))
    hits = []
    for attempt in ("1", "2", "3"):
        formats = [word for name in FORMATS for word in ("--format", name)]
        left = zanon_net(tmp_path / attempt, "run", demo_pcap, "--out", "out", *formats)
        assert left.code == 0
        hits.append(net.found_in(left.everything()))
    assert not set.intersection(*hits)
    assert not any("name" in hit for found in hits for hit in found)


def test_inspect_prints_no_name_and_no_address(
    demo_pcap: Path, truth: list[Line], addresses: set[Address], tmp_path: Path
) -> None:
    servers = {ipaddress.ip_address(line["server"]) for line in truth}
    net = Canaries.of(addresses | servers, {line["name"] for line in truth})
    for more in ([], ["--json"]):
        left = zanon_net(tmp_path, "inspect", demo_pcap, *more)
        assert left.code == 0, left.stderr
        assert len(left.stdout) > 200
        assert not net.found_in(left.everything())


# ---- when things go wrong -----------------------------------------------------------------------


def cut_in_a_record(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3 + 7]


def absurd_length(data: bytes) -> bytes:
    """The length of a record in the middle is 4 GB."""
    at, records = 24, 0
    while records < 5000:
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        records += 1
    return data[: at + 8] + b"\xff" * 8 + data[at + 16 :]


def of_no_known_link(data: bytes) -> bytes:
    return data[:20] + struct.pack("<I", 9999) + data[24:]


def short_frames(data: bytes) -> bytes:
    """The same capture with a snapshot length of 96 bytes: names cut in the middle."""
    out, at = [data[:24]], 24
    while at < len(data):
        seconds, micros, captured, wire = struct.unpack_from("<4I", data, at)
        kept = min(captured, 96)
        out += [struct.pack("<4I", seconds, micros, kept, wire), data[at + 16 : at + 16 + kept]]
        at += 16 + captured
    return b"".join(out)


DAMAGE = {
    "cut in a record": (cut_in_a_record, 0),
    "a record of 4 GB": (absurd_length, 0),
    "an unknown link type": (of_no_known_link, 0),
    "short frames": (short_frames, 0),
    "no header": (lambda data: data[24:], 1),
    "text": (lambda data: b"10.100.1.2 alice-nas.example\n" * 9, 1),
    "nothing": (lambda data: b"", 1),
    "a cut header": (lambda data: data[:30], 1),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_no_error_tells_what_was_read(
    what: str,
    demo_pcap: Path,
    truth: list[Line],
    addresses: set[Address],
    fixed_key: list[str],
    tmp_path: Path,
) -> None:
    """Damaged input is a part of the demo, so it may release less than the demo and never more."""
    damage, code = DAMAGE[what]
    (tmp_path / "broken").write_bytes(damage(demo_pcap.read_bytes()))
    formats = [word for name in FORMATS for word in ("--format", name)]
    left = zanon_net(
        *(tmp_path / "run", "run", tmp_path / "broken", "--z", 5, "--out", "out", "-v"),
        *(*formats, *fixed_key),
    )
    assert left.code == code, left.stderr
    assert b"Traceback" not in left.stderr
    assert left.stderr
    assert not canaries(truth, addresses, Rules(5, HOUR)).found_in(left.everything())


def test_no_message_about_options_tells_an_address_list(
    demo_pcap: Path, truth: list[Line], addresses: set[Address], tmp_path: Path
) -> None:
    """Files of networks and names are settings, and the manifest is published."""
    never = sorted({line["name"] for line in truth if line["valid"]})[:50]
    (tmp_path / "never").write_text("".join(f"{name}\n" for name in never))
    (tmp_path / "nets").write_text("".join(f"{address}/32\n" for address in INTERNAL_SERVERS[:2]))
    left = zanon_net(
        *(tmp_path / "run", "run", demo_pcap, "--z", 5, "--out", "out", "--json", "-v"),
        *("--never", tmp_path / "never", "--internal", tmp_path / "nets"),
    )
    assert left.code == 0, left.stderr
    rules = Rules(5, HOUR, never=tuple(never), may_vote=lambda line: False)
    inside = [ipaddress.ip_address(address) for address in INTERNAL_SERVERS]
    assert not canaries(truth, inside, rules).found_in(left.everything())
