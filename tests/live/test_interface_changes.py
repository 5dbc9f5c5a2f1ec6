# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces that change while `zanon-net run` reads them."""

import itertools
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.engine import feed, make_engine
from support.live import ENVIRONMENT, PATIENCE_S, Live, data_of, datagrams, only
from support.netns import Namespace
from support.packets import Tcp, crowd, hello, visit


def test_interface_goes_down_and_comes_up(net: Namespace, live: Any) -> None:
    run = live("a", "--status", "100ms")
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    for _ in range(3):
        net.ip("link set dev a down")
        run.wait_for("interface a away since ")
        net.ip("link set dev a up")
        run.wait_for_interfaces()
    reported = "interface a is down; the run ends if it is not up within 10 s"
    assert run.said.count(reported) == run.said.count("interface a is back after ") == 1
    until = time.monotonic() + PATIENCE_S
    while net.counter("a", "rx_packets") < 200:  # the far end learns a little later
        net.send("b", datagrams(100))
        assert time.monotonic() < until
    arrived = net.counter("a", "rx_packets")
    run.wait_for(f"packets {arrived:,} ")
    manifest = run.end()
    assert only(manifest)["warning"] is None
    assert only(manifest)["frames"] == arrived
    assert only(manifest)["away"]["count"] == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_interface_is_removed(net: Namespace, live: Any, workers: int) -> None:
    """The others go on with --on-lost wait, and the run goes on without any."""
    net.cable("c", "d")
    run = live("a", "c", "--status", "100ms", "--workers", workers, "--on-lost", "wait")
    net.send("d", datagrams(100))
    run.wait_for("packets 100 ")
    net.ip("link del dev c")
    run.wait_for("status:")
    net.send("b", datagrams(100))
    run.wait_for("packets 200 ")
    net.ip("link del dev a")
    run.wait_for("interface a went away")
    run.wait_for("status:")
    manifest = run.end()
    assert [source["frames"] for source in manifest["sources"]] == [100, 100]
    assert all("disappeared" in source["warning"] for source in manifest["sources"])
    assert not manifest["complete"]


@pytest.mark.parametrize("workers", [1, 4])
def test_what_an_interface_brought_before_it_was_removed(
    net: Namespace, live: Any, workers: int
) -> None:
    """Frames that the system has not handed over yet are read."""
    run = live("a", "--status", "100ms", "--workers", workers)
    raw, frames = net.sender("b"), datagrams(1000)

    def send() -> None:
        with suppress(OSError):
            for n in itertools.count():
                raw.send(frames[n % len(frames)])

    thread = threading.Thread(target=send)
    thread.start()
    run.wait_for_packets(1)
    net.ip("link del dev a")
    thread.join()
    run.process.wait(timeout=PATIENCE_S)
    source = only(run.end(code=1))
    assert "disappeared" in source["warning"]
    assert source["received"] == source["frames"] + source["drops"]["ring"]


def test_a_silent_interface_is_removed(net: Namespace, live: Any) -> None:
    """The run ends as after a signal, which it may also do on a link where nothing passes."""
    net.cable("c", "d")
    for ends_by_itself in (False, True):
        rule = "end" if ends_by_itself else "wait"
        run = live("a", "c", "--status", "100ms", "--on-lost", rule)
        net.ip("link del dev c")
        if ends_by_itself:
            run.process.wait(timeout=PATIENCE_S)
        else:
            run.wait_for("interface c went away")
        manifest = run.end()
        assert not manifest["complete"]
        assert "disappeared" in manifest["sources"][1]["warning"]
        net.cable("c", "d")


def test_the_link_changes(net: Namespace, live: Any) -> None:
    """The cable is pulled and plugged in again; the MTU, the address, the flags change."""
    run = live("a", "--status", "100ms")
    raw = net.sender("b")
    for change in (
        "link set dev b down",
        "link set dev b up",
        "link set dev a mtu 1300",
        "link set dev a address 02:00:00:00:00:77",
        "link set dev a promisc off",
    ):
        net.ip(change)
        run.wait_for("status:")
        for frame in datagrams(20):
            with suppress(OSError):  # the link is down
                raw.send(frame)
    until = time.monotonic() + PATIENCE_S
    while net.counter("a", "rx_packets") < 100:
        net.send("b", datagrams(20))
        assert time.monotonic() < until
    arrived = net.counter("a", "rx_packets")
    run.wait_for(f"packets {arrived:,} ")
    manifest = run.end()
    assert only(manifest)["frames"] == arrived
    assert manifest["complete"]


# Shifts what a process takes for the time of day by the seconds in a file that it maps.
SHIFTED_CLOCK = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);
    if (shift == NULL)
        shift = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED,
                     open(getenv("SHIFT"), O_RDONLY | O_CLOEXEC), 0);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += *shift;
    return rc;
}
"""


@pytest.mark.slow
@pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer must be loaded first")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_clock_is_set(
    net: Namespace, live: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of frames are an hour away from the clock of the run, either way: none is held."""
    shim, shift = tmp_path / "shim.so", tmp_path / "shift"
    (tmp_path / "shim.c").write_text(SHIFTED_CLOCK)
    build = ["cc", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", tmp_path / "shim.c"]
    subprocess.run([*build, "-o", shim], check=True)
    shift.write_bytes(struct.pack("=q", 0))
    monkeypatch.setitem(ENVIRONMENT, "LD_PRELOAD", str(shim))
    monkeypatch.setitem(ENVIRONMENT, "SHIFT", str(shift))
    net.cable("c", "d")
    run = live("a", "c", "--status", "100ms")
    sent = 0
    for hours in (0, -1, 1, 0):
        with shift.open("r+b") as file:
            file.write(struct.pack("=q", hours * 3600))
        for _ in range(3):
            net.send("b", datagrams(30))
            sent += 30
            run.wait_for(f"packets {sent:,} ")
            net.send("d", datagrams(30))
            sent += 30
            run.wait_for(f"packets {sent:,} ")
    manifest = run.end()
    assert [source["frames"] for source in manifest["sources"]] == [sent // 2] * 2
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}
    assert manifest["counters"]["clock"]["clock_rejected"] == 0


@contextmanager
def load(net: Namespace) -> Iterator[threading.Thread]:
    """Inside, visits of 500 users arrive without pause, for a while."""
    frames, stop = data_of(crowd(b"shared.example", 500)), threading.Event()
    raw, until = net.sender("b"), time.monotonic() + PATIENCE_S

    def send() -> None:
        while time.monotonic() < until:
            for frame in frames:
                if stop.is_set():
                    return
                raw.send(frame)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


@pytest.mark.family(2)
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load(net: Namespace, live: Any, number: int, workers: int) -> None:
    formats = ("--format", "jsonl", "--format", "observations")
    run = live("a", *formats, "--status", "100ms", "--workers", workers)
    with load(net) as thread:
        run.wait_for_packets(1001)
        manifest = run.end(number)
        assert thread.is_alive()
    source = only(manifest)
    assert source["frames"] > 1000
    assert source["received"] == source["frames"] + source["drops"]["ring"]
    assert manifest["capture_drops"]["us"] == 0
    assert len(run.lines("flows.jsonl")) == manifest["counters"]["flow"]["records"]
    assert len(run.lines("observations.jsonl")) == manifest["decisions"]["released"] > 0


def test_nobody_listens_any_more(net: Namespace, live: Any) -> None:
    """Whoever read the status lines has gone: the run goes on, and writes what it read."""
    run = live("a", "--format", "jsonl", "--status", "50ms")
    run.wait_for("status:")
    run.process.stderr.close()
    run.process.stderr = None
    time.sleep(0.5)
    net.send("b", data_of(crowd(b"shared.example", 3)))
    time.sleep(0.5)
    assert run.process.poll() is None
    run.process.terminate()
    run.process.wait(PATIENCE_S)
    assert len(run.lines("flows.jsonl")) == 3
    assert (run.out / "manifest.json").exists()


@pytest.mark.parametrize("arguments", [("--workers", 2), ("--filter", "tcp dst port 443")])
def test_what_came_before_the_reading_is_not_counted(
    net: Namespace, live: Any, arguments: tuple[object, ...]
) -> None:
    """Frames arrive while the rings are made, shared and given their filter."""
    with load(net):
        run = live("a", *arguments, "--status", "100ms")
        run.wait_for_packets(1001)
        source = only(run.end())
    assert source["frames"] > 1000
    assert source["received"] == source["frames"] + source["drops"]["ring"]


IMPATIENT = """
import sys
from zanon_net import cli
from zanon_net.pipeline import live
live.DRAIN_MAX_S = -1
sys.exit(cli.main())
"""


def test_what_is_left_in_the_rings_is_counted(
    net: Namespace, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a run that takes no time to read them to their ends."""
    monkeypatch.setattr(Live, "command", (sys.executable, "-c", IMPATIENT, "run"))
    run = live("a", "--format", "jsonl", "--status", "100ms", "--workers", 4)
    with load(net):
        run.wait_for_packets(1001)
        manifest = run.end()
    source = only(manifest)
    assert manifest["counters"]["read"]["frames"] == source["frames"] > 1000
    assert source["received"] == source["frames"] + sum(source["drops"].values())


def test_rotation_under_load(net: Namespace, live: Any) -> None:
    """By a signal and by size: each record and each observation is in one file of one part."""
    formats = ("--format", "jsonl", "--format", "observations")
    run = live("a", *formats, "--split-size", "1M", "--status", "100ms")
    with load(net) as thread:
        for _ in range(5):
            run.wait_for("status:")
            run.process.send_signal(signal.SIGHUP)
        run.wait_for("status:")
        manifest = run.end()
        assert thread.is_alive()
    source, records = only(manifest), manifest["records"]
    assert source["received"] == source["frames"] + source["drops"]["ring"]
    assert manifest["capture_drops"]["us"] == 0
    files = [file["file"] for file in manifest["outputs"]]
    assert sorted(files) == sorted(p.name for p in run.out.iterdir() if p.name != "manifest.json")
    assert len(files) >= 8
    lines = {name: len(run.lines(name)) for name in files}
    assert lines == {file["file"]: file["records"] for file in manifest["outputs"]}
    flows = sum(n for name, n in lines.items() if name.startswith("flows-"))
    assert flows == records["jsonl"]["written"] == records["records"] > 0
    released = sum(n for name, n in lines.items() if name.startswith("observations-"))
    assert released == manifest["decisions"]["released"] > 0


def test_idle_flows_close_on_a_silent_link() -> None:
    """Only a second of silence less than the limit keeps a flow open; the packet clock stays."""
    engine = make_engine(z=1, outputs=("jsonl",))
    first = Tcp().handshake().say(hello(b"a.example"))
    feed(engine, first.frames)
    engine.idle(299 * 10**9)
    assert engine.stats["flows_closed"] == 0
    engine.idle(302 * 10**9)
    assert (engine.stats["flows_closed"], engine.stats["records"]) == (1, 1)
    feed(engine, visit("10.7.0.2", b"b.example", first.t_ns))
    assert engine.stats["clock_late"] == 0
    assert engine.stats["flows_tcp"] == 2
    engine.finish()
    engine.check()
    assert b"a.example" in engine.take("jsonl")
