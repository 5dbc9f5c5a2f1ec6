# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net bench`: its figures are there and add up. Nothing here depends on the speed."""

import json
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpkt
import pytest
from support.cli import COMMAND, ENVIRONMENT
from support.engine import feed, make_engine
from support.packets import visit
from support.paths import ROOT
from support.waiting import running, wait_until

from zanon_net import _core, run
from zanon_net.bench import measure as measuring
from zanon_net.bench.machine import cpu_model, describe_machine
from zanon_net.bench.measure import Measured, measure, peak_memory, sampling
from zanon_net.bench.trace import Scale, generate
from zanon_net.bench.trace_flows import PROFILES
from zanon_net.bench.traffic import TRAFFIC, USUAL_TRAFFIC
from zanon_net.cli import main
from zanon_net.errors import ZanonError

Captured = pytest.CaptureFixture[str]
STAGES = ["read", "decode", "flows", "names", "crypto", "z", "write"]


def test_the_kinds_of_traffic() -> None:
    assert list(TRAFFIC) == list(PROFILES)
    assert list(_core.STAGES) == STAGES


@pytest.mark.source
def test_the_page_has_a_row_for_each_kind() -> None:
    page = (ROOT / "docs/reference/bench.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(TRAFFIC)


@pytest.mark.slow
def test_every_kind_in_json(capsys: Captured) -> None:
    assert main(["bench", "--bytes", "1M", "--repeat", "1", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["repeat"] == 1
    assert found["machine"]["processor"] == cpu_model()
    assert [result["traffic"] for result in found["results"]] == list(USUAL_TRAFFIC)
    for result in found["results"]:
        assert result["names"] == result["names_sent"] > 0
        stages, whole = result["stages"], result["whole"]
        assert list(stages) == STAGES
        assert sum(stage["share"] for stage in stages.values()) == pytest.approx(1, abs=0.001)
        total = sum(stage["ns_per_packet"] for stage in stages.values())
        assert total == pytest.approx(whole["ns_per_packet"], rel=0.001)
        assert whole["ns_per_packet"] == pytest.approx(1e9 / whole["packets_per_s"], rel=0.01)
        assert whole["gbit_per_s"] * 1e9 == pytest.approx(
            whole["packets_per_s"] * result["bytes"] * 8 / result["packets"], rel=0.01
        )
        assert whole["peak_memory_bytes"] > 1 << 20
        assert result["samples"] > 0


@pytest.mark.slow
def test_tables(capsys: Captured) -> None:
    assert main(["bench", "--traffic", "min64", "--bytes", "1M", "--repeat", "1"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert cpu_model() in lines[0]
    assert lines[2] == f"min64: {TRAFFIC['min64']}"
    assert [line.split()[0] for line in lines[5:]] == [*STAGES, "whole"]
    assert all(len(line.split()) == 5 for line in lines[5:-1])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--bytes", "1K"], "--bytes: must be at least 1M"),
        (["--bytes", "many"], "--bytes: must be a number of bytes"),
        (["--traffic", "other"], "'other' is not one of"),
        (["--repeat", "0"], "0 is not in the range"),
    ],
)
def test_refused(arguments: list[str], problem: str, capsys: Captured) -> None:
    assert main(["bench", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert problem in said.err
    assert said.err.count("\n") == 1


@pytest.mark.family(3)
@pytest.mark.slow
@pytest.mark.usefixtures("hangups_end")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("begun", ["*/isp.pcap", "*/*/whole0"])
def test_nothing_is_left_after_a_signal(number: int, begun: str, tmp_path: Path) -> None:
    """Neither the capture nor, where it comes while that is measured, the logs."""
    words = [*COMMAND, "bench", "--traffic", "isp", "--bytes", "8M", "--repeat", "100"]
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    silent = subprocess.DEVNULL
    with running(words, env=environment, stdout=silent, stderr=silent) as process:
        wait_until(lambda: any(tmp_path.glob(begun)))
        process.send_signal(number)
        assert process.wait(30) == 1
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_measured(tmp_path: Path) -> None:
    with pytest.raises(ZanonError, match=r"missing\.pcap could not be measured: .*No such file"):
        measure(tmp_path / "missing.pcap", 1)


@pytest.mark.parametrize("kind", sorted(PROFILES))
def test_the_truth_of_generated_traffic(kind: str, tmp_path: Path) -> None:
    """Against a run, whose names come from the bytes; a seed makes the same bytes again."""
    scale = Scale(octets=400_000, homes=50, names=100, seconds=5)
    truth = generate(tmp_path / "a.pcap", kind, scale)
    report = run(tmp_path / "a.pcap", out=tmp_path / "out")
    counters = report.totals.counters
    assert counters["frames"] == truth["packets"]
    assert counters["flows_tcp"] + counters["flows_udp"] == truth["flows"]
    assert report.totals.users == truth["users"]
    names = {source: n for source, n in report.totals.names().items() if n}
    assert {source.lower(): n for source, n in names.items()} == truth["name_flows"]
    assert (tmp_path / "a.pcap").stat().st_size == truth["file_bytes"]
    assert generate(tmp_path / "b.pcap", kind, scale) == truth
    assert (tmp_path / "b.pcap").read_bytes() == (tmp_path / "a.pcap").read_bytes()


def test_generated_tls_is_records_to_its_end(tmp_path: Path) -> None:
    generate(tmp_path / "a.pcap", "isp", Scale(octets=2_000_000, names=100))
    said: dict[tuple[bytes, int, bytes, int], bytes] = defaultdict(bytes)
    with (tmp_path / "a.pcap").open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            segment = ip.data
            if isinstance(segment, dpkt.tcp.TCP) and 443 in (segment.sport, segment.dport):
                said[ip.src, segment.sport, ip.dst, segment.dport] += segment.data
    assert len(said) > 50
    for stream in said.values():
        at, kinds = 0, []
        while at < len(stream):
            kind, major, _, length = struct.unpack_from(">BBBH", stream, at)
            assert (kind in (20, 22, 23), major) == (True, 3)
            kinds.append(kind)
            at += 5 + length
        assert at == len(stream)
        assert kinds[0] == 22
    assert max(map(len, said.values())) > 20_000


def test_modern_traffic(tmp_path: Path) -> None:
    """Hellos take two segments or two Initials, frames have a tag, half of the homes have IPv6."""
    truth = generate(tmp_path / "a.pcap", "modern", Scale(octets=4_000_000, homes=200))
    hellos: Counter[tuple[bytes, int, bytes]] = Counter()
    initials: Counter[tuple[bytes, int, bytes]] = Counter()
    with (tmp_path / "a.pcap").open("rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            ethernet = dpkt.ethernet.Ethernet(frame)
            assert [tag.id for tag in ethernet.vlan_tags] == [100]
            ip, l4 = ethernet.data, ethernet.data.data
            if l4.dport == 443 and isinstance(l4, dpkt.udp.UDP):
                initials[ip.src, l4.sport, ip.dst] += l4.data[0] & 0xF0 == 0xC0
            elif l4.dport == 443 and l4.data[:1] == b"\x16":
                hellos[ip.src, l4.sport, ip.dst] = 5 + int.from_bytes(l4.data[3:5], "big")
    assert len(initials) == truth["name_flows"]["quic"]
    assert set(initials.values()) == {2}
    assert len(hellos) == truth["name_flows"]["tls"]
    assert all(1750 < size < 1850 for size in hellos.values())
    assert 0.3 < len(initials) / truth["flows"] < 0.5
    clients = {address for address, _, _ in [*hellos, *initials]}
    assert 0.4 < sum(len(address) == 16 for address in clients) / len(clients) < 0.6


def test_a_storm_of_single_packets(tmp_path: Path) -> None:
    truth = generate(tmp_path / "a.pcap", "storm1", Scale(octets=400_000, homes=50, names=100))
    assert truth["packets"] == truth["flows"]
    assert truth["distinct_names"] > 0.85 * truth["flows"]


def test_flows_with_more_data(tmp_path: Path) -> None:
    """Fewer flows, each with more packets; the names that they show stay the truth."""
    usual, longer = (
        generate(tmp_path / f"{data}.pcap", "isp", Scale(octets=4_000_000, names=100, data=data))
        for data in (1, 4)
    )
    assert longer["packets"] / longer["flows"] > 2 * usual["packets"] / usual["flows"]
    report = run(tmp_path / "4.pcap", out=tmp_path / "out")
    names = {source.lower(): n for source, n in report.totals.names().items() if n}
    assert names == longer["name_flows"]


def test_an_engine_says_what_it_is_at() -> None:
    engine = make_engine(z=1)
    assert _core.STAGES[engine.stage] == "read"
    feed(engine, visit("10.7.0.1", b"a.example", 0))
    assert _core.STAGES[engine.stage] == "write"
    engine.close()
    with pytest.raises(ValueError, match="closed"):
        engine.stage  # noqa: B018  (the property raises)


def test_sampling_counts_and_ends() -> None:
    counts: Counter[int] = Counter()
    engine: Any = SimpleNamespace(stage=3)
    with sampling(engine, counts):
        wait_until(lambda: counts[3] >= 3)
    before = counts.total()
    assert counts.keys() == {3}
    assert counts.total() == before


def test_rates_of_a_share() -> None:
    shares = dict.fromkeys(STAGES, 1 / len(STAGES))
    one = Measured(2_000_000, 1_000_000_000, 10, 10, 0.5, 0.6, 1, 100, shares)
    assert one.rates() == {"ns_per_packet": 250.0, "packets_per_s": 4_000_000, "gbit_per_s": 16.0}
    assert one.rates(0.25)["packets_per_s"] == 16_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_the_machine_where_nothing_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    most = peak_memory()
    assert most > 1 << 20
    monkeypatch.setattr(measuring, "PROCESS_STATUS", tmp_path / "missing")
    assert peak_memory() >= most * 0.9
    monkeypatch.setattr("zanon_net.bench.machine.CPU_INFO", tmp_path / "missing")
    assert describe_machine()["processor"]


def test_a_full_disk_is_told_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        assert main(["bench", "--traffic", "min64", "--bytes", "1M"]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"zanon-net: cannot write {tmp_path}/")
    assert "min64.pcap: File too large; the limit on file sizes is reached" in line
    assert not list(tmp_path.iterdir())
