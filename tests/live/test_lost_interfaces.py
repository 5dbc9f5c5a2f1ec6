# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces that go away and come back: what `--on-lost` makes of a run."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import (
    COMMAND,
    ENVIRONMENT,
    PATIENCE_S,
    USUAL,
    Live,
    data_of,
    datagrams,
    only,
    thread_statuses,
)
from support.metrics import HURRIED, SERVING, samples, scrape, until
from support.netns import Namespace
from support.packets import Tcp, crowd, hello
from support.waiting import wait_until

import zanon_net
from zanon_net import CaptureError
from zanon_net._text import readable

WAITING = ("--on-lost", "wait", "--status", "100ms")
CAP_NET_RAW = 1 << 13


def run_again(net: Namespace, run: Live) -> None:
    """Removes a, and puts another one in its place, which the run then reads."""
    net.ip("link del dev a")
    run.wait_for("interface a away since ")
    net.cable("a", "b")
    run.wait_for_interfaces()


# ---- fail and end -------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "code"), [((), 1), (("--on-lost", "end"), 0)])
def test_a_loss_ends_the_run(
    net: Namespace, live: Any, arguments: tuple[str, ...], code: int
) -> None:
    """Whole, with one line that says which of the interfaces is lost."""
    net.cable("c", "d")
    run = live("a", "c", "--format", "jsonl", "--status", "100ms", *arguments)
    net.send("b", data_of(crowd(b"shared.example", 3)))
    net.send("d", datagrams(50))
    run.wait_for_packets(len(crowd(b"shared.example", 3)) + 50)
    net.ip("link del dev c")
    run.process.wait(timeout=PATIENCE_S)
    manifest = run.end(code=code)
    problem = "interface c went away: The interface disappeared"
    assert run.said.count("went away") == run.said.count(problem) == 1
    assert manifest["error"] == (problem if code else None)
    assert not manifest["complete"]
    assert [source["warning"] is None for source in manifest["sources"]] == [True, False]
    assert manifest["sources"][1]["frames"] == 50
    assert len(run.lines("flows.jsonl")) == manifest["records"]["records"] >= 3
    assert manifest["records"]["jsonl"]["lost"] == 0


QUICKLY_LOST = """
import sys
from zanon_net import cli
from zanon_net.pipeline import interface_watch
interface_watch.DOWN_S = 0.5
sys.exit(cli.main())
"""


@pytest.mark.parametrize(("rule", "code"), [("fail", 1), ("end", 0)])
def test_an_interface_that_stays_down_is_lost(
    net: Namespace, live: Any, monkeypatch: pytest.MonkeyPatch, rule: str, code: int
) -> None:
    monkeypatch.setattr(Live, "command", (sys.executable, "-c", QUICKLY_LOST, "run"))
    run = live("a", "--on-lost", rule)
    net.ip("link set dev a down")
    run.process.wait(timeout=PATIENCE_S)
    manifest = run.end(code=code)
    assert "interface a went away: it has been down for 0.5 s" in run.said
    assert not manifest["complete"]
    assert only(manifest)["away"]["count"] == 1
    assert only(manifest)["away"]["seconds"] >= 0.5


def test_flows_end_with_an_error(net: Namespace, caplog: pytest.LogCaptureFixture) -> None:
    """There is no report that could say why no more of them come."""
    caplog.set_level("INFO", "zanon_net")

    def remove() -> None:
        wait_until(lambda: "listening on a" in caplog.text)
        net.ip("link del dev a")

    removal = threading.Thread(target=remove)
    removal.start()
    with net.inside(), pytest.raises(CaptureError, match="interface a went away"):
        list(zanon_net.flows("a", internal="10.0.0.0/8"))
    removal.join()


# ---- wait ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_waits_for_its_interface(net: Namespace, live: Any, workers: int) -> None:
    """The filter is the same; what the interface of that time brought is in the counts."""
    run = live("a", *WAITING, "--workers", workers, "--filter", "udp", "--format", "jsonl")
    visits = data_of(crowd(b"shared.example", 3))
    for sent in (100, 200, 300):
        net.send("b", [*datagrams(100), *visits])
        run.wait_for(f"packets {sent} ")
        if sent < 300:
            run_again(net, run)
    manifest = run.end()
    source = only(manifest)
    assert source["frames"] == source["received"] == source["link_types"]["ETHERNET"] == 300
    assert manifest["counters"]["read"]["frames"] == 300
    assert source["warning"] is None
    assert source["away"]["count"] == 2
    assert 0 < source["away"]["seconds"] < PATIENCE_S
    assert not manifest["complete"]
    assert manifest["error"] is None
    assert any(note.startswith("interface a was away 2 times") for note in manifest["notes"])
    assert " interface a was away 2 times" in " ".join(run.said.split())


def test_the_others_go_on(net: Namespace, live: Any) -> None:
    net.cable("c", "d")
    run = live("a", "c", *WAITING)
    net.ip("link del dev a")
    run.wait_for("interface a went away: The interface disappeared; the run waits for it")
    net.send("d", datagrams(100))
    run.wait_for("packets 100 ")
    net.cable("a", "b")
    run.wait_for("interface a is back after ")
    net.send("d", datagrams(50))
    net.send("b", datagrams(50))
    run.wait_for("packets 200 ")
    manifest = run.end()
    assert [source["frames"] for source in manifest["sources"]] == [50, 150]
    assert [source["away"]["count"] for source in manifest["sources"]] == [1, 0]


def test_what_passed_before_it_was_opened_again_is_lost(net: Namespace, live: Any) -> None:
    """The run sleeps while that happens: all that was sent is either read or counted as lost."""
    run = live("a", *WAITING)
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    run.process.send_signal(signal.SIGSTOP)
    net.ip("link del dev a")
    net.cable("a", "b")
    net.send("b", datagrams(30))
    run.process.send_signal(signal.SIGCONT)
    run.wait_for("interface a is back after ")
    net.send("b", datagrams(50))
    run.wait_for("packets 150 ")
    manifest = run.end()
    assert only(manifest)["frames"] == 150
    assert only(manifest)["drops"] == {"ring": 0, "interface": 30, "us": 0}


def test_the_same_output_as_of_a_recording(
    net: Namespace, live: Any, tmp_path: Path, key_file: str
) -> None:
    """Also of the flow that is open while the interface is away."""
    settings = ("--format", "jsonl", "--format", "observations", "--key-file", key_file)
    flow = Tcp()
    flow.handshake().say(hello(b"shared.example"))
    begun = len(flow.frames)
    flow.say(b"more").close()
    frames = data_of([*flow.frames[:begun], *crowd(b"shared.example", 3), *flow.frames[begun:]])
    half = len(frames) // 2
    run = live("a", *WAITING, *settings)
    recorders = []
    for part in (frames[:half], frames[half:]):
        recorders.append(net.recorder("a"))
        net.send("b", part)
        run.wait_for_packets(half if part == frames[:half] else len(frames))
        if len(recorders) == 1:
            recording = recorders[0].pcap()
            run_again(net, run)
    recording += recorders[1].pcap()[24:]
    assert run.end()["counters"]["read"]["frames"] == len(frames)
    (tmp_path / "recorded.pcap").write_bytes(recording)
    command = [*COMMAND, tmp_path / "recorded.pcap", *settings, *USUAL, "--out", tmp_path / "again"]
    subprocess.run(command, env=ENVIRONMENT, check=True, timeout=PATIENCE_S, capture_output=True)
    for name in ("flows.jsonl", "observations.jsonl"):
        assert (run.out / name).read_bytes() == (tmp_path / "again" / name).read_bytes() != b""


def test_a_run_without_interfaces_is_alive(net: Namespace, live: Any) -> None:
    """Its status says what is missing, and what was released can be read."""
    run = live("a", *WAITING, "--format", "observations", "--flush", "100ms")
    net.send("b", data_of(crowd(b"shared.example", 3)))
    run.wait_for("names released 66.7%")
    net.ip("link del dev a")
    run.wait_for("interface a away since 20")
    observations = run.out / "observations.jsonl.partial"
    end = time.monotonic() + PATIENCE_S
    while observations.read_bytes().count(b"\n") < 2:
        run.wait_for("status:")
        assert time.monotonic() < end
    cpu = sum(int(n) for n in stat_of(run.process.pid)[13:15])
    run.wait_for("status:")
    time.sleep(1)
    assert sum(int(n) for n in stat_of(run.process.pid)[13:15]) - cpu < 60  # of 100 ticks
    run.end()


def stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().split()


IN_A_HURRY = """
import sys, time, types
from zanon_net import cli
from zanon_net.pipeline import live
live.time = types.SimpleNamespace(monotonic=lambda: 300 * time.monotonic())
sys.exit(cli.main())
"""


def test_flows_end_while_the_interface_is_away(
    net: Namespace, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that is 300 times as fast: five minutes are a second."""
    monkeypatch.setattr(Live, "command", (sys.executable, "-c", IN_A_HURRY, "run"))
    run = live("a", *WAITING)
    net.send("b", data_of(Tcp().handshake().say(hello(b"a.example")).frames))
    net.ip("link del dev a")
    run.wait_for("flows 1 (0 open)")
    assert "interface a went away" in run.said
    run.end()


def test_an_interface_that_comes_back_down(net: Namespace, live: Any) -> None:
    """It is read once it is up."""
    run = live("a", *WAITING)
    net.ip("link del dev a")
    run.wait_for("interface a went away")
    net.ip("link add name a type veth peer name b")
    run.wait_for("interface a away since")
    assert "is back" not in run.said
    for end in "ab":
        net.ip(f"link set dev {end} mtu 9000 arp off up")
    run.wait_for("interface a is back after ")
    net.send("b", datagrams(10))
    run.wait_for("packets 10 ")
    assert only(run.end())["away"]["count"] == 1


def test_json_status(net: Namespace, live: Any) -> None:
    run = live("a", *WAITING, "--status-format", "json")
    run.wait_for('"interfaces_away": {}')
    net.ip("link set dev a down")
    run.wait_for("interface a is down; the run waits for it")
    run.wait_for('"interfaces_away": {"a": "20')
    net.ip("link set dev a up")
    run.wait_for("interface a is back after ")
    run.end()


# ---- privileges ---------------------------------------------------------------------------------


def capabilities(run: Live) -> set[tuple[int, ...]]:
    """(ambient, effective, inheritable, permitted) of every thread."""
    found = set()
    for status in thread_statuses(run):
        assert re.search(r"^Uid:\s+65534\s", status, re.MULTILINE)
        sets = dict(re.findall(r"^Cap(\w+):\s+(\w+)$", status, re.MULTILINE))
        del sets["Bnd"]  # the bounding set grants nothing
        found.add(tuple(int(sets[name], 16) for name in sorted(sets)))
    return found


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that every user may pass through, with a copy of the package."""
    assert zanon_net.__file__ is not None
    source = Path(zanon_net.__file__).parent
    shutil.copytree(source, tmp_path / "package" / source.name)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o11)
    return tmp_path


@pytest.mark.parametrize("workers", [1, 3])
def test_another_user_opens_it_again(
    net: Namespace,
    live: Any,
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    """With nothing but CAP_NET_RAW, which is in force only while an interface is opened."""
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(open_folder / "package"))
    (open_folder / "logs").mkdir()
    out = open_folder / "logs" / "run"
    options = ("--drop-to", "nobody", "--workers", workers, "--out", out)
    run = live("a", *WAITING, *options)
    run.out = out
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    only_at_hand = {(0, 0, 0, CAP_NET_RAW)}
    assert capabilities(run) <= only_at_hand | {(0, 0, 0, 0)}
    run_again(net, run)
    net.send("b", datagrams(100))
    run.wait_for("packets 200 ")
    assert capabilities(run) <= only_at_hand | {(0, 0, 0, 0)}
    assert only(run.end())["frames"] == 200


def test_rights_that_cannot_be_kept(net: Namespace, tmp_path: Path) -> None:
    before = ("setpriv", "--securebits", "+keep_caps_locked")
    options = ("--on-lost", "wait", "--drop-to", "nobody", "--out", tmp_path / "out")
    with net.inside():
        done = subprocess.run(
            [*before, *COMMAND, "a", *options, *USUAL],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    said = done.stderr.decode()
    assert (done.returncode, said.count("\n")) == (2, 1)
    assert said.startswith("zanon-net: --on-lost: wait opens interfaces again")
    assert not list(tmp_path.iterdir())


# ---- metrics, packets ---------------------------------------------------------------------------


@pytest.fixture
def hurried(net: Namespace, tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Starts a run on a whose metrics are renewed four times a second."""
    net.ip("link set lo up")
    started: list[Live] = []

    class Hurried(Live):
        command = (*HURRIED, "run")

    def start(*arguments: object) -> Live:
        started.append(Hurried(net, tmp_path / f"out{len(started)}", *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def test_metrics_say_what_is_away(net: Namespace, hurried: Callable[..., Live]) -> None:
    net.cable("c", "d")
    run = hurried("a", "c", "--metrics", "127.0.0.1:0", "--on-lost", "wait")
    found = SERVING.search(run.said)
    assert found is not None, run.said

    def up() -> list[float]:
        with net.inside():
            told = samples(scrape(int(found[1])))
        return [told["zanon_interface_up", name] for name in "ac"]

    assert up() == [1, 1]
    net.ip("link del dev a")
    until(lambda: up() == [0, 1])
    net.cable("a", "b")
    until(lambda: up() == [1, 1])
    run.end()


def test_a_name_that_is_not_utf_8(net: Namespace, hurried: Callable[..., Live]) -> None:
    """Ends no run: metrics and statuses have a readable one."""
    name = os.fsdecode(b"\xffa")
    net.cable(name, "d")
    run = hurried(name, "--metrics", "127.0.0.1:0", *WAITING)
    net.ip(f"link set dev {name} down")
    run.wait_for(f"interface {readable(name)} away since 20")
    found = SERVING.search(run.said)
    assert found is not None
    with net.inside():
        until(lambda: samples(scrape(int(found[1])))["zanon_interface_up", readable(name)] == 0)
    assert run.end()["sources"][0]["name"] == readable(name)


def test_packets_wait_too(net: Namespace, tmp_path: Path) -> None:
    class Packets(Live):
        command = (sys.executable, "-m", "zanon_net", "packets")

        def usual(self) -> list[str]:
            """See Live."""
            return ["a", str(self.out / "shared.pcap"), "-v"]

    run = Packets(net, tmp_path, *WAITING, *USUAL)
    net.send("b", datagrams(10))
    run.wait_for("packets 10 ")
    run_again(net, run)
    net.send("b", datagrams(10))
    run.wait_for("packets 20 ")
    run.process.send_signal(signal.SIGTERM)
    run.process.communicate(timeout=PATIENCE_S)
    assert run.process.returncode == 0
    manifest = json.loads((tmp_path / "shared.pcap.manifest.json").read_text())
    assert manifest["counters"]["read"]["frames"] == 20
    assert only(manifest)["away"]["count"] == 1


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "packets"])
@pytest.mark.parametrize("rule", ["wait", "end", "sometimes"])
def test_captures_cannot_be_lost(demo_pcap: Path, tmp_path: Path, command: str, rule: str) -> None:
    out = ["--out", tmp_path / "out"] if command == "run" else [tmp_path / "out.pcap"]
    done = subprocess.run(
        [sys.executable, "-m", "zanon_net", command, demo_pcap, *out, "--on-lost", rule],
        env=ENVIRONMENT,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, said.count("\n")) == (2, 1), said
    assert "--on-lost" in said
    assert not list(tmp_path.iterdir())
