# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces: a virtual cable in a namespace, a sender at one end, `zanon-net run` at the other."""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import rich
import wire
from capture_bytes import pcap_header, pcap_record
from engine_help import feed, make_engine
from netns import Namespace
from packet_help import Frame, Tcp, crowd, hello, visit

import zanon_net
from zanon_net import _core

# Processes of their own find the package that this one uses.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "zanon_net", "run")
USUAL = ("--internal", "10.0.0.0/8", "--z", "2")
PATIENCE_S = 60.0
PR_CAPBSET_DROP, CAP_NET_RAW = 24, 13
MAX_DATAGRAMS = 1024  # ZN_DEFRAG_DATAGRAMS
STATUS = re.compile(
    r"status: .*packets ([\d,]+) .*dropped ([\d,]+) by the ring, ([\d,]+) by the interface,"
    r" ([\d,]+) by us"
)


@pytest.fixture
def net() -> Iterator[Namespace]:
    """A namespace with a cable from b to a."""
    if sys.platform != "linux":
        pytest.skip("network namespaces are Linux's")
    try:
        namespace = Namespace()
    except OSError as error:
        reason = f"network namespaces are not permitted here: {error.strerror}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with namespace:
        namespace.cable("a", "b")
        yield namespace


class Live:
    """`zanon-net run` on interfaces, in a process of its own."""

    def __init__(self, net: Namespace, out: Path, *arguments: object) -> None:
        self.out = out
        command = [*COMMAND, "-v", "--out", str(out)]
        with net.inside():
            self.process = subprocess.Popen(
                [*command, *(str(argument) for argument in arguments)],
                env=ENVIRONMENT,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
            )
        self.said = ""
        self.wait_for("reading")

    def wait_for(self, text: str) -> None:
        """Reads what it says until `text` is in what is new."""
        assert self.process.stderr is not None
        new, until = "", time.monotonic() + PATIENCE_S
        while text not in new:
            ready, _, _ = select.select([self.process.stderr], [], [], until - time.monotonic())
            assert ready, f"no {text!r} in {PATIENCE_S} s: {new}"
            piece = os.read(self.process.stderr.fileno(), 4096).decode()
            assert piece, f"it ended without {text!r}: {new}"
            new += piece
        self.said += new

    def end(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """Ends it by a signal; its manifest."""
        self.process.send_signal(number)
        _nothing, said = self.process.communicate(timeout=PATIENCE_S)
        self.said += said.decode()
        assert self.process.returncode == 0, self.said
        assert not list(self.out.rglob("*.partial"))
        manifest: dict[str, Any] = json.loads((self.out / "manifest.json").read_text())
        return manifest

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of a JSONL output."""
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]


@pytest.fixture
def live(net: Namespace, tmp_path: Path) -> Iterator[Any]:
    """Starts a Live; whatever happens, none is left running."""
    started: list[Live] = []

    def start(*arguments: object) -> Live:
        started.append(Live(net, tmp_path / f"out{len(started)}", *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def datagrams(n: int, size: int = 60) -> list[bytes]:
    """n numbered frames that are nothing but datagrams."""
    return [
        wire.ethernet(wire.ipv4(wire.udp(i.to_bytes(4, "big") + bytes(size)), wire.UDP))
        for i in range(n)
    ]


def data_of(frames: Sequence[Frame]) -> list[bytes]:
    return [frame.data for frame in frames]


def only(manifest: dict[str, Any]) -> dict[str, Any]:
    """The only source of a run."""
    (source,) = manifest["sources"]
    assert isinstance(source, dict)
    return source


# ---- what arrives -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_nothing_is_lost_below_the_limit(net: Namespace, live: Any, workers: int) -> None:
    run = live("a", "--status", "200ms", "--workers", workers)
    frames, raw = datagrams(20_000), net.sender("b")
    for at in range(0, len(frames), 1000):
        for frame in frames[at : at + 1000]:
            raw.send(frame)
        time.sleep(0.02)
    run.wait_for("packets 20,000 ")
    manifest = run.end()
    source = only(manifest)
    assert source["frames"] == source["received"] == len(frames)
    assert net.counter("a", "rx_packets") == len(frames)
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}
    assert manifest["counters"]["read"]["packets_udp"] == len(frames)
    assert manifest["complete"]
    assert not manifest["interrupted"]
    assert STATUS.findall(run.said)[-1] == ("20,000", "0", "0", "0")
    assert "0 by the ring, 0 by the interface, 0 by us" in run.said.rpartition("lost packets")[2]


def sorted_lines(out: Path, name: str) -> list[str]:
    return sorted((out / name).read_text().splitlines())


@pytest.mark.parametrize("workers", [1, 2])
def test_live_and_file_agree(
    net: Namespace, live: Any, tmp_path: Path, demo_pcap: Path, key_file: str, workers: int
) -> None:
    """The same packets at the same times, once from the interface and once from a recording.

    With several workers the kernel spreads them over several rings.
    """
    settings = ["--format", "jsonl", "--format", "observations", "--key-file", key_file]
    recorder = net.recorder("a")
    run = live("a", *settings, "--status", "100ms", "--workers", workers)
    with _core.Capture(str(demo_pcap)) as capture:
        frames = [data for _ in range(400) for _, _, _, data in capture.frames(64)]
    assert len(frames) > 15_000
    net.send("b", frames)
    run.wait_for(f"packets {len(frames):,} ")
    manifest = run.end()
    recorded = tmp_path / "recorded.pcap"
    recorded.write_bytes(recorder.pcap())
    done = subprocess.run(
        [*COMMAND, recorded, *settings, *USUAL, "--out", tmp_path / "again"],
        env=ENVIRONMENT,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again = json.loads((tmp_path / "again" / "manifest.json").read_text())
    for name in ("flows.jsonl", "observations.jsonl"):
        assert sorted_lines(run.out, name) == sorted_lines(tmp_path / "again", name)
    assert sorted_lines(run.out, "observations.jsonl")
    for key in ("decisions", "counters", "users", "time_range"):
        assert manifest[key] == again[key]


@pytest.mark.parametrize("workers", [1, 2])
def test_two_directions_on_two_interfaces(net: Namespace, live: Any, workers: int) -> None:
    """A tap: each direction has its interface, and a handshake is still one."""
    net.cable("c", "d")
    run = live("a", "c", "--format", "observations", "--status", "100ms", "--workers", workers)
    ends = {True: net.sender("b"), False: net.sender("d")}
    frames = crowd(b"shared.example", 40)
    for frame in frames:  # the client's address stands first in what it sends
        ends[frame.data[26:28] == bytes([10, 7])].send(frame.data)
    run.wait_for(f"packets {len(frames):,} ")
    manifest = run.end()
    assert [source["name"] for source in manifest["sources"]] == ["a", "c"]
    assert all(source["frames"] > 100 for source in manifest["sources"])
    assert len(run.lines("observations.jsonl")) == 39
    assert manifest["decisions"]["suppressed"]["unconfirmed"] == 0
    assert manifest["counters"]["clock"]["clock_late"] == 0


def test_tagged_frames_and_the_filter(net: Namespace) -> None:
    """The system takes the outermost tag out before it filters: only `vlan` asks for it."""
    plain, tagged = visit("10.7.0.1", b"a.example", 0), Tcp(tags=(0x8100,)).handshake().frames
    double = Tcp(tags=(0x88A8, 0x8100)).handshake().frames
    sent = data_of([*plain, *tagged, *double])
    wanted = {
        "": sent,
        "vlan": data_of([*tagged, *double]),
        "vlan and vlan": data_of(double),
        "tcp port 443": data_of([*plain, *tagged]),
        "not vlan": data_of(plain),
        "vlan and tcp port 443": data_of(tagged),
        "vlan and tcp dst port 443": data_of(tagged[::2]),
    }
    with net.inside():
        opened = {text: _core.Live(["a"], filter=text) for text in wanted}
    net.send("b", sent)
    for text, live in opened.items():
        assert [data for _, _, _, data in frames_of(live)] == wanted[text], text
        live.close()


def frames_of(live: _core.Live) -> list[tuple[int, int, int, bytes]]:
    """What the interfaces deliver until they are silent."""
    found = []
    while batch := live.frames(300):
        found += batch
    return found


def test_times_are_nanoseconds_of_now(net: Namespace) -> None:
    with net.inside():
        live = _core.Live(["a"])
    before = time.time_ns()
    net.send("b", datagrams(200))
    after = time.time_ns()
    times = [t_ns for t_ns, _, _, _ in frames_of(live)]
    assert len(times) == 200
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after
    assert any(t_ns % 1000 for t_ns in times)


def test_any_interface(net: Namespace, live: Any) -> None:
    """Cooked frames of all interfaces: each datagram leaves one and arrives at another."""
    run = live("any", "--status", "100ms")
    net.send("b", datagrams(50))
    run.wait_for("packets 100 ")
    manifest = run.end()
    assert only(manifest)["link_types"] == {"LINUX_SLL": 100}
    assert manifest["counters"]["read"]["packets_udp"] == 100


def test_loopback(net: Namespace, live: Any) -> None:
    """The system counts each frame twice there and hands over one: that is no loss."""
    net.ip("link set dev lo up")
    run = live("lo", "--status", "100ms")
    with net.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(50):
            sender.sendto(b"x", ("127.0.0.1", 9))
    run.wait_for("packets 100 ")  # with the answers that nobody listens
    manifest = run.end()
    assert only(manifest)["frames"] == 100
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}


def test_snaplen_cuts(net: Namespace) -> None:
    with net.inside():
        live = _core.Live(["a"], snaplen=80)
    sent = datagrams(3, size=1000)
    net.send("b", sent)
    assert [(n, data) for _, n, _, data in frames_of(live)] == [(len(f), f[:80]) for f in sent]


def promiscuity(net: Namespace) -> str:
    with net.inside():
        shown = subprocess.run(
            ["ip", "-d", "link", "show", "dev", "a"], capture_output=True, check=True
        )
    return shown.stdout.decode().partition("promiscuity ")[2].split()[0]


def test_promiscuous_mode(net: Namespace) -> None:
    with net.inside():
        quiet = _core.Live(["a"], promiscuous=False)
    assert promiscuity(net) == "0"
    with net.inside():
        curious = _core.Live(["a"])
    assert promiscuity(net) == "1"
    curious.close()
    assert promiscuity(net) == "0"
    quiet.close()


# ---- what is lost -------------------------------------------------------------------------------


def test_forced_loss_is_counted_exactly(net: Namespace) -> None:
    with net.inside():
        live = _core.Live(["a"], ring_bytes=1 << 20)
    sent = datagrams(6000, size=1400)
    net.send("b", sent)
    frames = frames_of(live)
    (facts,) = live.facts()
    assert facts["dropped"] > 1000
    assert facts["received"] == len(sent)
    assert facts["frames"] + facts["dropped"] == len(sent)
    assert [data for _, _, _, data in frames] == sent[: len(frames)]
    live.close()


def test_several_rings_are_one_stream(net: Namespace) -> None:
    """Each frame once, in the order of time; what rings lost is added up."""
    with net.inside():
        live = _core.Live(["a"], rings=4)
        full = _core.Live(["a"], rings=2, ring_bytes=1 << 20, filter="udp")
    sent = data_of(crowd(b"www.example.org", 200))
    net.send("b", sent)
    frames = frames_of(live)
    assert [data for _, _, _, data in frames] == sent
    (facts,) = live.facts()
    assert (facts["frames"], facts["received"], facts["dropped"]) == (len(sent), len(sent), 0)
    assert (facts["name"], facts["warning"]) == ("a", None)
    live.close()
    many = [  # flows of any ring
        wire.ethernet(wire.ipv4(wire.udp(bytes(1400), ports=(1024 + i, 99)), wire.UDP))
        for i in range(6000)
    ]
    net.send("b", many)
    kept = len(frames_of(full))
    (facts,) = full.facts()
    assert facts["dropped"] > 1000
    assert facts["frames"] == kept == len(many) - facts["dropped"]
    full.close()


def test_loss_is_told_everywhere(net: Namespace, live: Any) -> None:
    """The run is stopped while its ring overflows."""
    run = live("a", "--ring", "1M", "--status", "100ms")
    sent = datagrams(4000, size=1400)
    run.process.send_signal(signal.SIGSTOP)
    net.send("b", sent)
    run.process.send_signal(signal.SIGCONT)
    net.send("b", datagrams(10))
    run.wait_for("status:")
    run.wait_for("status:")
    manifest = run.end()
    source, lost = only(manifest), manifest["capture_drops"]["ring"]
    assert lost > 1000
    assert source["frames"] + lost == source["received"] == len(sent) + 10
    assert source["drops"] == manifest["capture_drops"] == {"ring": lost, "interface": 0, "us": 0}
    assert f"{lost:,} by the ring" in run.said.rpartition("lost packets")[2]
    assert STATUS.findall(run.said)[-1][1] == f"{lost:,}"


def test_a_full_table_is_our_loss(net: Namespace, live: Any) -> None:
    """First fragments of more datagrams than are put together at a time: the oldest give way."""
    run = live("a", "--status", "100ms")
    piece = wire.udp(bytes(64))
    places = [f"10.{n >> 8}.{n & 255}.1" for n in range(MAX_DATAGRAMS + 10)]
    net.send(
        "b",
        [
            wire.ethernet(wire.ipv4(piece, wire.UDP, addresses=(a, wire.SERVER), place=0x2000))
            for a in places
        ],
    )
    run.wait_for(f"packets {len(places):,} ")
    assert run.end()["capture_drops"] == {"ring": 0, "interface": 0, "us": 10}


# ---- what may happen meanwhile ------------------------------------------------------------------


def test_interface_goes_down_and_comes_up(net: Namespace, live: Any) -> None:
    run = live("a", "--status", "100ms")
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    for _ in range(3):
        net.ip("link set dev a down")
        run.wait_for("status:")
        net.ip("link set dev a up")
    until = time.monotonic() + PATIENCE_S
    while net.counter("a", "rx_packets") < 200:  # the far end learns a little later
        net.send("b", datagrams(100))
        assert time.monotonic() < until
    arrived = net.counter("a", "rx_packets")
    run.wait_for(f"packets {arrived:,} ")
    manifest = run.end()
    assert only(manifest)["warning"] is None
    assert only(manifest)["frames"] == arrived


@pytest.mark.parametrize("workers", [1, 2])
def test_interface_is_removed(net: Namespace, live: Any, workers: int) -> None:
    """The others go on; with the last one the run ends by itself, whole and with a warning."""
    net.cable("c", "d")
    run = live("a", "c", "--status", "100ms", "--workers", workers)
    net.send("d", datagrams(100))
    run.wait_for("packets 100 ")
    net.ip("link del dev c")
    run.wait_for("status:")
    net.send("b", datagrams(100))
    run.wait_for("packets 200 ")
    net.ip("link del dev a")
    run.process.wait(timeout=PATIENCE_S)
    manifest = run.end()
    assert [source["frames"] for source in manifest["sources"]] == [100, 100]
    assert all("disappeared" in source["warning"] for source in manifest["sources"])
    assert not manifest["complete"]


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
    assert manifest["counters"]["clock"]["clock_refused"] == 0


@contextmanager
def load(net: Namespace) -> Iterator[threading.Thread]:
    """Inside, visits of 500 users arrive without pause, for a while."""
    frames, stop = data_of(crowd(b"shared.example", 500)), threading.Event()
    raw = net.sender("b")

    def send() -> None:
        for _ in range(400):
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


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load(net: Namespace, live: Any, number: int, workers: int) -> None:
    formats = ("--format", "jsonl", "--format", "observations")
    run = live("a", *formats, "--status", "100ms", "--workers", workers)
    with load(net) as thread:
        run.wait_for("status:")
        run.wait_for("status:")
        manifest = run.end(number)
        assert thread.is_alive()
    source = only(manifest)
    assert source["frames"] > 1000
    assert source["received"] == source["frames"] + source["drops"]["ring"]
    assert manifest["capture_drops"]["us"] == 0
    assert len(run.lines("flows.jsonl")) == manifest["counters"]["flow"]["records"]
    assert len(run.lines("observations.jsonl")) == manifest["decisions"]["released"] > 0


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


# ---- what is refused ----------------------------------------------------------------------------


def refused(net: Namespace, *arguments: str, **more: Any) -> tuple[int, str]:
    """Exit code and words of a run that does not come to anything."""
    with net.inside():
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            **more,
        )
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["a"], 2, "say with --internal which addresses are users"),
        (["a", "missing.pcap", "--internal", "any"], 2, "cannot be read beside captures"),
        (["a", "a", "--internal", "any"], 2, "give each interface once"),
        (["a", "any", "--internal", "any"], 2, "any is every interface: give it alone"),
        (["a", "--internal", "any", "--filter", "bogus words"], 2, "the filter is not valid"),
        (["a", "--internal", "any", "--ring", "1K"], 2, "--ring: must be from 1M"),
        (["a", "--internal", "any", "--snaplen", "10"], 2, "--snaplen: must be from 64"),
        (["a", "--internal", "any", "--drop-to", "nobody-at-all"], 2, "there is no user"),
        (["a", "--internal", "any", "--drop-to", "root"], 2, "is root"),
        (["e", "--internal", "any"], 1, "interface e is down; bring it up: ip link set dev e up"),
    ],
)
def test_refused(
    net: Namespace, tmp_path: Path, arguments: list[str], code: int, problem: str
) -> None:
    net.ip("link add name e type veth peer name f")
    got, said = refused(net, *arguments, cwd=tmp_path)
    assert problem in said
    assert got == code
    assert not list(tmp_path.iterdir())


def without_net_raw() -> None:
    """Root without this one capability, from the next program on."""
    assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0) == 0


def test_without_the_capability(net: Namespace, tmp_path: Path) -> None:
    arguments = ["a", "--internal", "any"]
    code, said = refused(net, *arguments, cwd=tmp_path, preexec_fn=without_net_raw)
    assert code == 1
    assert "CAP_NET_RAW is missing" in said
    assert "sudo zanon-net run" in said
    assert f"sudo setcap cap_net_raw=ep {Path(sys.executable).resolve()}" in said
    assert not list(tmp_path.iterdir())


# ---- privileges ---------------------------------------------------------------------------------


def fields(path: Path) -> dict[str, str]:
    """The lines of a file in /proc/PID, by their first word."""
    pairs = (line.partition(":") for line in path.read_text().splitlines())
    return {name: " ".join(value.split()) for name, _colon, value in pairs}


def let_anybody_pass(folder: Path) -> None:
    for parent in (folder, *folder.parents[:-1]):
        if not parent.stat().st_mode & 1:
            parent.chmod(parent.stat().st_mode | 0o11)


def test_privileges_are_dropped(
    net: Namespace, live: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is made for the user; what only root may read is read before, and not missed."""
    sealed, folder = tmp_path / "sealed", tmp_path / "logs"
    for package in (zanon_net, rich):
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        shutil.copytree(source, sealed / source.name)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(sealed))
    folder.mkdir()
    let_anybody_pass(folder)
    sealed.chmod(0o700)
    options = ("--status", "100ms", "--workers", "3")
    run = live("a", "--drop-to", "nobody", "--out", folder / "run", *options)
    run.out = folder / "run"
    process = Path(f"/proc/{run.process.pid}")
    run.wait_for("status:")
    threads = [fields(thread / "status") for thread in (process / "task").iterdir()]
    assert len(threads) >= 3
    for status in threads:  # each has rights of its own
        assert status["Uid"].split() == ["65534"] * 4
        assert (int(status["CapEff"], 16), status["NoNewPrivs"]) == (0, "1")
    status = fields(process / "status")
    assert status["Uid"].split() == ["65534"] * 4
    assert status["Gid"].split() == ["65534"] * 4
    assert "0" not in status["Groups"].split()
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    if "ZANON_SANITIZE" not in os.environ:  # AddressSanitizer locks nothing
        assert int(status["VmLck"].split()[0]) > 0  # the keys
    limits = (process / "limits").read_text()
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert (
        process / "environ"
    ).stat().st_uid == 0  # what /proc shows of a process that must not be dumped
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    manifest = run.end()
    assert only(manifest)["frames"] == 100
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}
    assert {path.stat().st_uid for path in folder.rglob("*")} == {65534}
    assert "lost packets" in run.said


def test_a_folder_that_the_user_may_not_write_to(net: Namespace, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    let_anybody_pass(folder)
    arguments = ["a", "--internal", "any", "--drop-to", "nobody", "--out", str(folder)]
    code, said = refused(net, *arguments)
    assert code == 1
    assert "choose a folder you may write to" in said
    assert list(folder.iterdir()) == []
    assert folder.stat().st_uid == 0


def test_captures_are_opened_before_the_user_changes(net: Namespace, tmp_path: Path) -> None:
    """Several files, of which only root may read any."""
    folder, out = tmp_path / "captures", tmp_path / "logs"
    folder.mkdir()
    for i in range(3):
        frames = data_of(visit(f"10.7.0.{i + 1}", b"a.example", 0))
        records = (pcap_record("<", 1_700_000_000 + i, n, data) for n, data in enumerate(frames))
        (folder / f"{i}.pcap").write_bytes(pcap_header() + b"".join(records))
    let_anybody_pass(tmp_path)
    folder.chmod(0o700)
    command = [*COMMAND, folder, *USUAL, "--drop-to", "nobody", "--out", out]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert [source["warning"] for source in manifest["sources"]] == [None] * 3
    assert manifest["counters"]["flow"]["flows_tcp"] == 3
