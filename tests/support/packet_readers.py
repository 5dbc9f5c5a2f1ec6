# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Other programs that read packets: the flows that each finds in a capture, and its complaints.

A reader gives the flows of a capture. `compare` runs it over the frames that were given and over
those that left, whose addresses and ports it maps, frame by frame: the flows must be the same.
"""

import contextlib
import ipaddress
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from oracle.layers import ip_of
from oracle.packets import inner

import zanon_net
from support.packet_run import write_pcap
from support.packets import Frame

End = tuple[str, int]
TCP, UDP = 6, 17
CHECKSUMS = ("ip.check_checksum", "tcp.check_checksum", "udp.check_checksum")
TIMEOUT_S = 600


class Flow(NamedTuple):
    """A flow: both ends in order, how many packets and, where a reader has it, bytes."""

    protocol: int
    ends: tuple[End, End]
    packets: int
    octets: int = 0


Flows = Counter[Flow]


def flow_of(protocol: int, one: End, other: End, packets: int, octets: int = 0) -> Flow:
    """A flow whose ends are in order."""
    pair = (end_of(*one), end_of(*other))
    return Flow(protocol, (min(pair), max(pair)), packets, octets)


def end_of(address: str, port: int | str) -> End:
    """An end, its address spelled alike by all readers."""
    return spelled(address), int(port)


def spelled(address: str) -> str:
    """An address in the usual notation, without the zero of each ":0:", as ndpiReader has it."""
    with contextlib.suppress(ValueError):  # several "::" are its own
        address = str(ipaddress.ip_address(address))
    return re.sub(":0(?=:)", ":", address)


def call(*command: str | Path, **more: Any) -> str:
    """Runs a program. Python itself may run under a preloaded sanitizer."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment |= {"TZ": "UTC", "LC_ALL": "C"}
    done = subprocess.run(
        list(map(str, command)),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        **more,
    )
    return done.stdout


# ---- readers ------------------------------------------------------------------------------------


def tshark(capture: Path) -> Flows:
    """The streams that tshark tells apart, with packets and bytes of IP."""
    fields = ("tcp.stream", "udp.stream", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst")
    fields += ("tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport", "tcp.len", "udp.length")
    words = [word for field in fields for word in ("-e", field)]
    text = call("tshark", "-n", "-r", capture, "-T", "fields", "-E", "occurrence=f", *words)
    packets: Counter[tuple[int, str]] = Counter()
    octets: Counter[tuple[int, str]] = Counter()
    ends = {}
    for line in text.splitlines():
        row = dict(zip(fields, line.split("\t"), strict=True))
        protocol = TCP if row["tcp.stream"] else UDP
        stream = row["tcp.stream"] or row["udp.stream"]
        if not stream:
            continue
        key = (protocol, stream)
        packets[key] += 1
        octets[key] += int(row["tcp.len"] or row["udp.length"] or 0)
        ends.setdefault(
            key,
            (
                (row["ip.src"] or row["ipv6.src"], row["tcp.srcport"] or row["udp.srcport"]),
                (row["ip.dst"] or row["ipv6.dst"], row["tcp.dstport"] or row["udp.dstport"]),
            ),
        )
    return Counter(flow_of(k[0], *ends[k], packets[k], octets[k]) for k in packets)


# Its fields are not quoted, and names may hold commas and ends of lines.
NDPI_ROW = re.compile(
    r"^\d+,(?P<protocol>\d+),[\d.]+,[\d.]+,[\d.]+,(?P<source>[^,]+),(?P<from>\d+),"
    r"(?P<target>[^,]+),(?P<to>\d+),[^,]*,[^,]*,.*?,(?P<counts>(?:\d+,){6})-?[\d.]+,[A-Z]",
    re.MULTILINE | re.DOTALL,
)


def ndpi_reader(capture: Path) -> Flows:
    """The flows of ndpiReader, with packets and bytes of payload."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "flows.csv"
        call("ndpiReader", "-q", "-i", capture, "-C", out)
        text = out.read_text("utf-8", "replace")
    found: Flows = Counter()
    for row in NDPI_ROW.finditer(text):
        if int(row["protocol"]) not in (TCP, UDP):
            continue
        sent, _wire, payload, received, _back, payload_back = row["counts"].split(",")[:6]
        ends = (row["source"], int(row["from"])), (row["target"], int(row["to"]))
        packets, octets = int(sent) + int(received), int(payload) + int(payload_back)
        found[flow_of(int(row["protocol"]), *ends, packets, octets)] += 1
    return found


NFSTREAM = """
import json, sys
from nfstream import NFStreamer
for flow in NFStreamer(source=sys.argv[1], n_meters=1, n_dissections=0, accounting_mode=3):
    print(json.dumps([flow.protocol, flow.src_ip, flow.src_port, flow.dst_ip, flow.dst_port,
                      flow.bidirectional_packets, flow.bidirectional_bytes]))
"""


def nfstream(capture: Path, python: str = sys.executable) -> Flows:
    """The flows of NFStream, with packets and bytes of payload."""
    rows = map(json.loads, call(python, "-c", NFSTREAM, capture).splitlines())
    return Counter(
        flow_of(row[0], (row[1], row[2]), (row[3], row[4]), row[5], row[6])
        for row in rows
        if row[0] in (TCP, UDP)
    )


def tstat(capture: Path, program: str = "tstat") -> Flows:
    """The flows of TCP in Tstat's logs, with packets and bytes of payload."""
    found: Flows = Counter()
    with tempfile.TemporaryDirectory() as folder:
        call(program, "-s", folder, capture)
        for path in Path(folder).rglob("log_tcp_*complete"):
            header, *lines = path.read_text("ascii", "replace").splitlines()
            names = [word.rpartition("#")[2].partition(":")[0] for word in header.split(" ")]
            for line in lines:
                row = dict(zip(names, line.split(" "), strict=False))
                found[
                    flow_of(
                        TCP,
                        (row["c_ip"], row["c_port"]),
                        (row["s_ip"], row["s_port"]),
                        int(row["c_pkts_all"]) + int(row["s_pkts_all"]),
                        int(row["c_bytes_all"]) + int(row["s_bytes_all"]),
                    )
                ] += 1
    return found


@dataclass(frozen=True)
class Reader:
    """A program; `missing` says what it lacks, empty if it is there."""

    name: str
    read: Callable[[Path], Flows]
    missing: str = ""


def readers(nfstream_python: str = sys.executable, tstat_program: str = "tstat") -> list[Reader]:
    """All that can be compared flow by flow, there or not."""
    there = find_spec("nfstream") is not None
    if nfstream_python != sys.executable:
        there = Path(nfstream_python).exists()

    def program(name: str, package: str) -> str:
        return "" if shutil.which(name) else f"{name} is not installed ({package})"

    return [
        Reader("tshark", tshark, program("tshark", "tshark")),
        Reader("ndpiReader", ndpi_reader, program("ndpiReader", "libndpi-bin")),
        Reader(
            "nfstream",
            lambda capture: nfstream(capture, nfstream_python),
            "" if there else "nfstream is not installed (pip install nfstream)",
        ),
        Reader(
            "tstat",
            lambda capture: tstat(capture, tstat_program),
            program(tstat_program, "tstat.polito.it"),
        ),
    ]


# ---- what was given, and what left --------------------------------------------------------------


def bare(frame: Frame) -> Frame:
    """A frame without its encapsulations, as those that leave are."""
    packet = inner(frame.data)
    kind = b"\x08\0" if packet[0] >> 4 == 4 else b"\x86\xdd"
    data = bytes(12) + kind + packet
    return replace(frame, data=data, wire=len(data))


def tuple_of(frame: Frame) -> tuple[int, End, End]:
    """Protocol, source and destination of a frame's innermost packet."""
    ip = ip_of(inner(frame.data))
    ports = struct.unpack_from(">HH", ip.rest)
    source, target = (end_of(str(a), port) for a, port in zip(ip.ends, ports, strict=True))
    return ip.protocol, source, target


def paired(given: Sequence[Frame], left: Sequence[Frame]) -> list[tuple[Frame, Frame]]:
    """Each frame of TCP or UDP that left beside the one that it was made of, by their times, which
    differ."""
    by_time = {frame.t_ns: frame for frame in given}
    assert len(by_time) == len(given)
    of_flows = (frame for frame in left if ip_of(inner(frame.data)).protocol in (TCP, UDP))
    return [(by_time[frame.t_ns], frame) for frame in of_flows]


EndMap = Mapping[tuple[int, End, End], tuple[End, End]]


def address_map(pairs: Sequence[tuple[Frame, Frame]]) -> dict[frozenset[Any], frozenset[Any]]:
    """From both ends of each flow to those that left; each maps to one, and no two to the same."""
    ends: dict[frozenset[Any], frozenset[Any]] = {}
    for given, left in pairs:
        protocol, *before = tuple_of(given)
        other, *after = tuple_of(left)
        assert protocol == other
        key = frozenset([protocol, *before])
        assert ends.setdefault(key, frozenset([protocol, *after])) == frozenset([protocol, *after])
    assert len(set(ends.values())) == len(ends)
    return ends


def mapped(flows: Flows, ends: Mapping[frozenset[Any], frozenset[Any]]) -> Counter[Any]:
    """Flows with the ends that left; those that are not in the map keep theirs."""
    out: Counter[Any] = Counter()
    for flow, n in flows.items():
        key = frozenset([flow.protocol, *flow.ends])
        out[(ends.get(key, key), flow.packets, flow.octets)] += n
    return out


@dataclass(frozen=True)
class Compared:
    """The flows of a reader, before and after."""

    given: int
    left: int
    same: int
    differing: list[Any]


def compare(reader: Reader, pairs: Sequence[tuple[Frame, Frame]], folder: Path) -> Compared:
    """Compares the flows that a reader finds in the frames given and in those that left."""
    given = write_pcap(folder / "given.pcap", [bare(one) for one, _left in pairs])
    left = write_pcap(folder / "left.pcap", [left for _one, left in pairs])
    before = mapped(reader.read(given), address_map(pairs))
    after = mapped(reader.read(left), {})
    same = before & after
    return Compared(
        before.total(), after.total(), same.total(), [*(before - after), *(after - before)]
    )


# ---- complaints ---------------------------------------------------------------------------------


def complaints(capture: Path) -> Counter[str]:
    """What tshark finds wrong, with every checksum checked."""
    given = [word for name in CHECKSUMS for word in ("-o", f"{name}:TRUE")]
    fields = ("_ws.malformed", "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status")
    words = [word for field in fields for word in ("-e", field)]
    text = call("tshark", "-n", "-r", capture, *given, "-T", "fields", *words)
    found: Counter[str] = Counter()
    for line in text.splitlines():
        for field, value in zip(fields, line.split("\t"), strict=True):
            if field == "_ws.malformed":
                found["malformed"] += value != ""
            elif "0" in value.split(","):  # bad
                found[f"bad {field.partition('.')[0]} checksum"] += 1
    return +found


def own_flows(capture: Path, out: Path, **settings: Any) -> list[dict[str, Any]]:
    """The lines of our own log of a capture, in which nothing is withheld."""
    zanon_net.run(
        capture,
        out=out,
        z=1,
        evidence="any",
        format="jsonl",
        columns=("core",),
        **settings,
    )
    text = (out / "flows.jsonl").read_text("ascii")
    return [json.loads(line) for line in text.splitlines()]
