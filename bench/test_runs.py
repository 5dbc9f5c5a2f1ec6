# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs on generated traffic, next to other tools and to the limit of reading.

Each tool runs in a process of its own. zanon_net, NFStream, mercury-python and the walk are
measured inside their processes, without their start. nfpcapd, ndpiReader and the job in Python on
dpkt are measured with their start. Slow tools get the first part of a trace. "flows" has 500,000
live flows. "two workers" counts the CPU time of both.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from measuring import Measure, Size, peer
from traces import BENCH, CLOCK, trace_of
from turns import TOOLS as OWN_TOOLS
from turns import cut, own

OCTETS = 100_000_000
PART = 10  # slow tools get this fraction of a trace
PROFILES = ["isp", "isplong", "modern", "min64", "flows", "storm", "storm1"]
OF_TOOLS = ("isp", "min64", "storm")  # profiles that the other tools read
OURS = {"one worker": (), "core columns": ("core",), "two workers": ("core,layer7", "2")}
LEVELS = {"all levels": "domain,category,as,country", "as,country": "as,country"}
WALKS = {"walk, mapped": "map", "walk, read": "read"}
PROGRAMS = ("nfpcapd", "ndpiReader")
SLOW = ("dpkt", "ndpiReader", "mercury-python", "nfstream")
TOOLS = (*PROGRAMS, "dpkt", "mercury-python", "nfstream")


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the program of walk.c."""
    out = tmp_path_factory.mktemp("walk") / "walk"
    subprocess.run(["cc", "-O2", BENCH / "walk.c", "-o", out], check=True)
    return out


def command_of(who: str, trace: Path, walk: Path, folder: Path) -> tuple[list[str], bool]:
    """Returns a tool's command, and true if the tool reports its own CPU time."""
    dpkt = [str(BENCH / "dpkt_peer.py"), str(trace), "--out", str(folder / "flows")]
    commands = {
        "dpkt": [sys.executable, *dpkt],
        "nfpcapd": ["nfpcapd", "-r", str(trace), "-w", str(folder)],
        "ndpiReader": ["ndpiReader", "-q", "-i", str(trace)],
    }
    if who in commands:
        return commands[who], False
    if who in WALKS:
        return [str(walk), WALKS[who], str(trace)], True
    tool = who.removesuffix("-python")
    return list(own(*(("ours", *OURS[who]) if who in OURS else (tool,)))(trace)), True


def pairs() -> list[object]:
    """Returns each profile with each tool that reads it."""
    found: list[object] = [pytest.param(profile, who) for profile in PROFILES for who in OURS]
    peers = [(profile, who) for profile in PROFILES for who in WALKS]
    peers += [(profile, who) for profile in OF_TOOLS for who in TOOLS]
    return found + [pytest.param(*pair, marks=pytest.mark.peer) for pair in peers]


@pytest.mark.benchmark(timer=CLOCK.now)
@pytest.mark.parametrize(("profile", "who"), pairs())
def test_run(
    profile: str, who: str, size: Size, walk: Path, tmp_path: Path, measure: Measure
) -> None:
    if who in PROGRAMS and not shutil.which(who):
        pytest.skip(f"{who} is not installed")
    octets = size.of(OCTETS)
    trace = trace_of(profile, octets)
    path, packets = trace.path, trace.packets
    if who in SLOW:
        path = tmp_path / "part.pcap"
        packets, _octets = cut(trace.path, path, octets // PART)
    command, reports = command_of(who, path, walk, tmp_path)
    facts = {"MB:": lambda: f"{CLOCK.memory_mb:.0f}"} if who in OURS else {}
    measure(f"runs: {profile}", lambda: CLOCK.spend(command, reports), packets, **facts)
    if who == "one worker":
        names = [sys.executable, str(OWN_TOOLS), "names", str(path)]
        found = json.loads(CLOCK.spend(names).splitlines()[-1])
        assert found["names_sha256"] == trace.names_sha256


@pytest.mark.benchmark(timer=CLOCK.now)
@pytest.mark.parametrize("who", [*LEVELS, peer("levels off")])
def test_levels(who: str, size: Size, measure: Measure) -> None:
    """Runs with labels of names and server addresses, and runs without labels. Reading lists is
    taken off."""
    trace = trace_of("isp", size.of(3 * OCTETS))
    command = own("ours", "core,layer7", "1", LEVELS.get(who, "off"))(trace.path)
    measure("runs: isp, levels", lambda: CLOCK.spend(command, True), trace.packets)


@pytest.mark.benchmark(timer=CLOCK.now)
@pytest.mark.parametrize("who", ["run", "--help", peer("python -c pass")])
def test_start(who: str, tmp_path: Path, measure: Measure) -> None:
    """Starts of the command. `run` reads a capture of one packet."""
    one = tmp_path / "one.pcap"
    cut(trace_of("isp", 1_000_000).path, one, 25)
    commands = {
        "run": ["-m", "zanon_net", "run", str(one), "--out", str(tmp_path / "out")],
        "--help": ["-m", "zanon_net", "--help"],
        "python -c pass": ["-c", "pass"],
    }

    def prepare() -> tuple[list[str]]:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return ([sys.executable, "-P", *commands[who]],)

    measure("runs: start of a command", CLOCK.spend, 1, prepare=prepare)
