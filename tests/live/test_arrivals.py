# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces: what arrives and what is lost between a sender and `zanon-net run`."""

import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.live import (
    COMMAND,
    ENVIRONMENT,
    MAX_DATAGRAMS,
    PATIENCE_S,
    STATUS,
    USUAL,
    data_of,
    datagrams,
    only,
)
from support.netns import Namespace, backlog_of_its_own
from support.packets import Tcp, crowd, visit

from zanon_net import _core

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


def test_fragments_are_as_they_came(net: Namespace, live: Any) -> None:
    """The system spreads them over the rings and does not put them together: one that stays alone
    is counted."""
    run = live("a", "--workers", 2, "--status", "100ms")
    fragments = []
    for n in range(20):
        whole, ends = wire.udp(bytes(1600)), (f"10.0.7.{n}", wire.SERVER)
        pieces = {0x2000: whole[:800], 100: whole[800:]}
        if n % 2:
            del pieces[100]
        fragments += [
            wire.ethernet(wire.ipv4(piece, wire.UDP, addresses=ends, place=place))
            for place, piece in pieces.items()
        ]
    net.send("b", fragments)
    run.wait_for(f"packets {len(fragments):,} ")
    counters = run.end()["counters"]
    assert (counters["read"]["fragments"], counters["read"]["datagrams"]) == (30, 10)
    assert counters["drop"]["drop_fragment_incomplete"] == 10


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


@pytest.mark.parametrize("rings", [1, 2])
def test_a_filter_by_direction_takes_the_first_frames_too(net: Namespace, rings: int) -> None:
    """Only the system knows which way a frame goes."""
    sent = datagrams(50)
    for text, wanted in {
        "inbound": sent,
        "not outbound and udp": sent,
        "outbound": [],
        "inbound and tcp": [],
    }.items():
        with net.inside():
            live = _core.Live(["a"], rings=rings, filter=text)
        net.send("b", sent)
        assert [data for _, _, _, data in frames_of(live)] == wanted, text
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


UNHANDLED = (b"\x81\x00\x00\x05\x88\x99", b"\x88\xa8\x00\x05\x81\x00\x00\x06\x08\x00")


@pytest.mark.parametrize("workers", [1, 2])
def test_frames_that_the_system_does_not_handle_are_not_lost(
    net: Namespace, live: Any, workers: int
) -> None:
    """It counts them as dropped behind whoever captures: frames of unknown protocols in VLANs."""
    run = live("a", "--status", "100ms", "--workers", workers)
    frames = [frame[:12] + kind + frame[14:] for frame in datagrams(500) for kind in UNHANDLED]
    net.send("b", frames)
    run.wait_for(f"packets {len(frames):,} ")
    assert net.counter("a", "rx_drop") == len(frames)
    manifest = run.end()
    assert only(manifest)["frames"] == len(frames)
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}
    assert manifest["complete"]


def test_frames_that_do_not_enter_the_cable_are_not_lost(net: Namespace, live: Any) -> None:
    """Their sender is told that they are too long, and may try for ever."""
    net.ip("link set dev a mtu 1000")
    run, raw = live("a", "--status", "100ms"), net.sender("b")
    (long,) = datagrams(1, size=3000)
    for _ in range(200):
        with pytest.raises(OSError, match="No buffer space"):
            raw.send(long)
    net.send("b", datagrams(10))
    run.wait_for("packets 10 ")
    assert net.counter("a", "rx_drop") == 200
    manifest = run.end()
    assert only(manifest)["frames"] == 10
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}


def test_what_a_full_backlog_drops_is_lost_by_the_interface(net: Namespace, live: Any) -> None:
    """Beside what the ring loses and what the system does not handle: every frame is counted once.

    Another processor takes the frames from the backlog, and is kept busy by many who capture.
    """
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a frame has to wait for another processor")
    steer(net, "a")
    taps = [slow_tap(net, "a") for _ in range(60)]
    run = live("a", "--ring", "1M", "--status", "100ms")
    frames, raw, refused = datagrams(10_000, size=400), net.sender("b"), 0
    raw.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
    unhandled = frames[0][:12] + UNHANDLED[0] + frames[0][14:]
    with backlog_of_its_own():
        os.sched_setaffinity(0, {0})
        try:
            run.process.send_signal(signal.SIGSTOP)
            for frame in frames:
                refused += not enters(raw, frame)
        finally:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
    time.sleep(0.3)
    run.process.send_signal(signal.SIGCONT)
    sent = len(frames)
    for _ in range(300):
        sent += 1
        refused += not enters(raw, unhandled)
        time.sleep(0.001)
    run.wait_for_frames(sent)
    manifest = run.end()
    source, lost = only(manifest), manifest["capture_drops"]
    for tap in taps:
        tap.close()
    assert refused > 1000
    assert lost["interface"] == refused
    assert lost["ring"] > 0
    assert source["frames"] + lost["ring"] == source["received"]
    assert sent == source["frames"] + lost["ring"] + lost["interface"]


def enters(raw: socket.socket, frame: bytes) -> bool:
    """Sends a frame; returns false where the system drops it at once."""
    try:
        raw.send(frame)
    except OSError as error:
        if error.errno != errno.ENOBUFS:
            raise
        return False
    return True


def slow_tap(net: Namespace, interface: str) -> socket.socket:
    """Looks at each frame for some microseconds, and takes none."""
    load, refuse = struct.pack("=HBBI", 0x30, 0, 0, 0), struct.pack("=HBBI", 0x06, 0, 0, 0)
    code = ctypes.create_string_buffer(load * 1000 + refuse)
    with net.inside():
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    program = struct.pack("HP", 1001, ctypes.addressof(code))
    tap.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER
    tap.bind((interface, 3))  # ETH_P_ALL
    return tap


def steer(net: Namespace, interface: str) -> None:
    """Has the second processor take the frames of an interface (RPS)."""
    queue = f"/mnt/class/net/{interface}/queues/rx-0/rps_cpus"
    script = f"mount -t sysfs none /mnt && echo 2 > {queue}"
    with net.inside():
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], check=False)
    if done.returncode != 0:
        pytest.skip("the system steers no frames to another processor")


def test_loss_on_the_loopback_interface_is_counted_once(net: Namespace) -> None:
    """Each frame goes out and comes in there; only one of the two is read."""
    net.ip("link set dev lo up")
    with net.inside():
        live = _core.Live(["lo"], ring_bytes=1 << 20)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            receiver.bind(("127.0.0.1", 0))
            for _ in range(3000):
                sender.sendto(bytes(1400), receiver.getsockname())
    frames = frames_of(live)
    (facts,) = live.facts()
    live.close()
    assert facts["dropped"] > 500
    assert facts["received"] == 3000
    assert facts["frames"] == len(frames) == 3000 - facts["dropped"]


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


def test_a_loss_above_the_limit_fails_a_run_that_is_whole(net: Namespace, live: Any) -> None:
    """10,000 packets, of which most are lost at once: more than 5 % of them, and not 99.9 %."""
    failing = live("a", "--ring", "1M", "--fail-on-loss", "5", "--format", "jsonl")
    passing = live("a", "--ring", "1M", "--fail-on-loss", "99.9")
    for run in (failing, passing):
        run.process.send_signal(signal.SIGSTOP)
    net.send("b", datagrams(4000, size=1400))
    for run in (failing, passing):
        run.process.send_signal(signal.SIGCONT)
        run.wait_for("warning: so far ")  # without status lines, too
    manifest, other = failing.end(code=1), passing.end()
    assert "more than 5 % of the packets were lost; the rest is whole" in failing.said
    assert "more than" not in passing.said
    assert len(failing.lines("flows.jsonl")) == manifest["records"]["records"] > 0
    for told in (manifest, other):
        assert not told["complete"]
        assert told["error"] is None
        assert told["capture_drops"]["ring"] > 1000
    assert manifest["configuration"]["live"]["fail_on_loss"] == 5


def test_loss_is_told_everywhere(net: Namespace, live: Any) -> None:
    """The run is stopped while its ring overflows."""
    run = live("a", "--ring", "1M", "--status", "100ms")
    sent = datagrams(4000, size=1400)
    run.process.send_signal(signal.SIGSTOP)
    net.send("b", sent)
    run.process.send_signal(signal.SIGCONT)
    net.send("b", datagrams(10))
    run.wait_for("warning: so far ")
    run.wait_for("status:")
    manifest = run.end()
    source, lost = only(manifest), manifest["capture_drops"]["ring"]
    assert lost > 1000
    assert source["frames"] + lost == source["received"] == len(sent) + 10
    assert source["drops"] == manifest["capture_drops"] == {"ring": lost, "interface": 0, "us": 0}
    assert f"{lost:,} by the ring" in run.said.rpartition("lost packets")[2]
    assert STATUS.findall(run.said)[-1][1] == f"{lost:,}"
    note, hint = manifest["notes"]
    assert hint == "this traffic has 1 user; no name can reach z = 2"
    share = 100 * lost / (len(sent) + 10)
    assert note == (
        f"{lost:,} of {len(sent) + 10:,} packets were lost ({share:.1f} %): {lost:,} by the ring,"
        " 0 by the interface, 0 by us; give --ring more memory, or use --workers"
    )
    assert not manifest["complete"]
    assert run.said.count(f"warning: {note}") == 1
    assert run.said.count("warning: so far ") == 1  # in 10 s


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
