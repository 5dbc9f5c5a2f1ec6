# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net packets --to`: from a cable, or a capture, through another cable to a monitor."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import ENVIRONMENT, PATIENCE_S, USUAL, Live
from support.netns import Namespace, Receiver, backlog_of_its_own
from support.packets import crowd

import zanon_net
from zanon_net import CaptureError, ConfigError, _core

COMMAND = (sys.executable, "-m", "zanon_net", "packets")


class Packets(Live):
    """`zanon-net packets` from interface a through c, whose other end is d."""

    command = COMMAND
    stdout = subprocess.PIPE

    def usual(self) -> list[str]:
        """See Live."""
        return ["a", "--to", "c", "-v", "--json"]

    def end(self, number: int = signal.SIGTERM, code: int = 0) -> dict[str, Any]:
        """See Live."""
        self.process.send_signal(number)
        return self.ended(code)

    def ended(self, code: int) -> dict[str, Any]:
        """Waits for its end; returns its manifest, if it has one."""
        written, said = self.process.communicate(timeout=PATIENCE_S)
        self.said += said.decode()
        assert self.process.returncode == code, self.said
        manifest: dict[str, Any] = json.loads(written or b"{}")
        return manifest


@pytest.fixture
def monitor(net: Namespace) -> Iterator[Receiver]:
    """What listens at d."""
    net.cable("d", "c")
    receiver = Receiver(net, "d")
    yield receiver
    receiver.close()


@pytest.fixture
def packets(net: Namespace, monitor: Receiver, tmp_path: Path) -> Iterator[Any]:
    """Starts a Packets; whatever happens, none is left running."""
    started: list[Packets] = []

    def start(*arguments: object) -> Packets:
        started.append(Packets(net, tmp_path, *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def into_file(source: Path, out: Path, *settings: object) -> list[bytes]:
    """The frames of `zanon-net packets` from a capture to a file."""
    command = [*COMMAND, source, out, *settings, *USUAL, "-q"]
    subprocess.run(command, env=ENVIRONMENT, check=True, timeout=PATIENCE_S)
    with _core.Capture(str(out)) as capture:
        return [data for batch in iter(lambda: capture.frames(4096), []) for *_, data in batch]


def demo_frames(demo_pcap: Path) -> list[bytes]:
    with _core.Capture(str(demo_pcap)) as capture:
        return [data for batch in iter(lambda: capture.frames(4096), []) for *_, data in batch]


@pytest.mark.parametrize("hold", ["0", "50ms"])
def test_interface_and_file_agree(
    net: Namespace,
    packets: Any,
    monitor: Receiver,
    tmp_path: Path,
    demo_pcap: Path,
    key_file: str,
    hold: str,
) -> None:
    """The same packets at the same times, once live and once from a recording: the same bytes."""
    settings = ("--key-file", key_file, "--hold", hold)
    with backlog_of_its_own():
        recorder = net.recorder("a")
        run = packets(*settings, "--status", "100ms")
        frames = demo_frames(demo_pcap)
        net.send("b", frames)
        run.wait_for(f"packets {len(frames):,} ")
        manifest = run.end()
    left = monitor.frames()
    recorded = tmp_path / "recorded.pcap"
    recorded.write_bytes(recorder.pcap())
    assert len(left) > 1000
    assert left == into_file(recorded, tmp_path / "file.pcap", *settings)
    facts = manifest["packets"]
    assert facts["interface"] == {
        "name": "c",
        "sent": len(left),
        "bytes": sum(map(len, left)),
        "tx_full": 0,
        "tx_oversize": 0,
        "tx_error": 0,
    }
    assert facts["passed"] + facts["masked"] == len(left)
    assert facts["frames"] == len(frames)
    assert manifest["complete"], manifest["notes"]
    assert "through c; dropped 0 as its queue was full" in run.said


def test_packets_leave_a_link_that_fell_silent(
    net: Namespace, packets: Any, monitor: Receiver
) -> None:
    """Those that are held do not wait for others."""
    run = packets("--hold", "300ms", "--status", "100ms")
    frames = [frame.data for frame in crowd(b"shared.example", 5)]
    net.send("b", frames)
    run.wait_for(f"packets {len(frames):,} ")
    left, until = list[bytes](), time.monotonic() + 10
    while len(left) < 20 and time.monotonic() < until:
        time.sleep(0.1)
        left += monitor.frames()
    assert len(left) >= 20
    manifest = run.end()
    assert manifest["packets"]["interface"]["sent"] == len(left) + len(monitor.frames())


@pytest.mark.parametrize(
    ("change", "problem"),
    [("set dev c down", "interface c went down"), ("delete dev c", "interface c is gone")],
)
def test_an_interface_that_ends_ends_the_run(
    net: Namespace, packets: Any, change: str, problem: str
) -> None:
    run = packets("--hold", "0", "--status", "100ms")
    frames = [frame.data for frame in crowd(b"shared.example", 5)]
    net.send("b", frames[:30])
    run.wait_for("packets 30 ")
    net.ip(f"link {change}")
    net.send("b", frames[30:])
    run.ended(1)
    assert run.said.count(problem) == 1


def test_privileges_are_dropped_with_the_interface_open(
    net: Namespace, packets: Any, monitor: Receiver
) -> None:
    run = packets("--drop-to", "nobody", "--hold", "0", "--status", "100ms")
    status = Path(f"/proc/{run.process.pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    assert "Uid:\t65534\t65534\t65534\t65534" in status
    frames = [frame.data for frame in crowd(b"shared.example", 5)]
    net.send("b", frames)
    run.wait_for(f"packets {len(frames):,} ")
    manifest = run.end()
    assert manifest["packets"]["interface"]["sent"] == len(monitor.frames()) > 0


def command(net: Namespace, *arguments: object) -> "subprocess.CompletedProcess[bytes]":
    with net.inside():
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )


def test_a_capture_is_sent(
    net: Namespace, monitor: Receiver, demo_pcap: Path, tmp_path: Path, key_file: str
) -> None:
    settings = ("--key-file", key_file)
    done = command(net, demo_pcap, "--to", "c", *settings, *USUAL)
    left = monitor.frames()
    assert left == into_file(demo_pcap, tmp_path / "out.pcap", *settings)
    assert done.returncode == 0
    assert f"{len(left):,} through c" in " ".join(done.stderr.decode().split())
    assert done.stdout == b""


def test_a_dry_run_sends_nothing(net: Namespace, monitor: Receiver, demo_pcap: Path) -> None:
    """And says what would be wrong."""
    net.ip("address add 192.0.2.1/24 dev c")
    done = command(net, demo_pcap, "--to", "c", *USUAL, "--dry-run", "--json")
    assert monitor.frames() == []
    manifest = json.loads(done.stdout)
    assert manifest["packets"]["passed"] > 1000
    assert "interface" not in manifest["packets"]
    assert b"warning: interface c has an IP address" in done.stderr


def test_what_did_not_leave_is_a_warning(
    net: Namespace, monitor: Receiver, demo_pcap: Path
) -> None:
    net.ip("link set dev d down")
    done = command(net, demo_pcap, "--to", "c", *USUAL, "--json")
    manifest = json.loads(done.stdout)
    facts, left = manifest["packets"]["interface"], manifest["packets"]["passed"]
    assert (facts["sent"], facts["tx_full"]) == (0, left)
    assert not manifest["complete"]
    (note,) = (note for note in manifest["notes"] if "did not leave" in note)
    assert f"warning: {note}" in done.stderr.decode()


@pytest.mark.parametrize(
    ("source", "to", "settings", "problem"),
    [
        ("a", "a", {}, "--to: packets are read from a; send them through"),
        ("a", "b", {}, "--to: what leaves through b arrives at a"),
        ("a", "other-of-a", {}, "--to: packets are read from a; send them through"),
        ("other-of-a", "b", {}, "--to: what leaves through b arrives at a"),
        ("any", "c", {}, "--to: any reads from every interface, also from c"),
        ("a", "any", {}, "--to: packets leave through one interface"),
        ("DEMO", "c", {"internal": None}, "--to: say with --internal which addresses are users"),
        ("DEMO", "c", {"payload": "cut"}, "payload: cut packets are no packets"),
        ("DEMO", "c", {"format": "pcap"}, "format: is for files"),
        ("DEMO", "c", {"out": "x.pcap"}, "name a file to write, or with --to an interface"),
        ("DEMO", None, {}, "name a file to write, or with --to an interface"),
        ("DEMO", "lo", {}, "interface lo is not Ethernet"),
        ("DEMO", "nowhere", {}, "--to: there is no interface 'nowhere'"),
        ("DEMO", "e", {}, "interface e is down; bring it up: ip link set"),
        ("DEMO", "", {}, "--to: there is no interface"),
    ],
)
def test_refused(
    net: Namespace,
    monitor: Receiver,
    demo_pcap: Path,
    source: str,
    to: str | None,
    settings: dict[str, Any],
    problem: str,
) -> None:
    net.ip("link add name e type veth peer name f")
    net.ip("link property add dev a altname other-of-a")
    source = str(demo_pcap) if source == "DEMO" else source
    is_missing = "there is no" in problem or "is down" in problem
    with net.inside(), pytest.raises(CaptureError if is_missing else ConfigError, match=problem):
        zanon_net.packets(source, to=to, **{"internal": "10.0.0.0/8"} | settings)
    assert monitor.frames() == []


def test_refused_in_a_line(net: Namespace, demo_pcap: Path) -> None:
    done = command(net, demo_pcap, "--to", "b", *USUAL, "--payload", "cut")
    problem = "cut packets are no packets for an interface; use zero with --to"
    assert done.stderr.decode() == f"zanon-net: --payload: {problem}\n"
    assert done.returncode == 2
    assert done.stdout == b""


def test_without_the_capability(net: Namespace, monitor: Receiver, demo_pcap: Path) -> None:
    with net.inside():
        done = subprocess.run(
            ["setpriv", "--bounding-set", "-net_raw", *COMMAND, demo_pcap, "--to", "c", *USUAL],
            env=ENVIRONMENT,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 1
    assert b"the capability CAP_NET_RAW is missing" in done.stderr
    assert monitor.frames() == []
