# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures `zanon-net packets` and other tools: speed, data that escapes, and flows that readers
find.

Usage: python bench/packets.py speed [--bytes 500M] [--repeat 5] [--profiles isp] [--scratch DIR]
python bench/packets.py canary
python bench/packets.py closure CORPUS [--packets 10M [--profiles isp]] [--z 3]
python bench/packets.py readers CAPTURE... [--nfstream PYTHON] [--tstat PROGRAM]

`speed` gives packets per CPU-second, user and system, of whole commands that write to a file in
memory. Each tool takes its turn in each round, on a trace that is written again (turns.py
gives the reason). Its time for a capture of one packet is subtracted. Ratios are of medians of CPU
time, or of the least wall times if two workers are measured. They are meaningful only if two
processors have nothing else to do, so the load is printed, too. Two processes with one worker each
are measured for comparison, each with half of the trace on a processor of its own. They share
nothing but the machine, so two workers cannot be faster. If they are less than twice as fast, the
bar of two workers is lowered by the same factor.

`canary` counts the frames of tests/scenario/packet_canary.py that still contain a mark after each
tool. `closure` classifies every address that leaves by its block, over captures and over generated
traffic. `readers` compares the flows that other programs find before and after.

Tools that are not installed are listed.
"""

import argparse
import base64
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from address_closure import PCAP_HEADER_BYTES, RECORD_HEADER_BYTES, closure_in, peers_in  # noqa: E402
from oracle.packet_addresses import Address  # noqa: E402
from scenario import packet_canary  # noqa: E402
from support.packet_output import packets as read_packets  # noqa: E402
from support.packet_readers import (  # noqa: E402
    bare,
    compare,
    complaints,
    paired,
    readers,
)
from support.packet_run import write_pcap  # noqa: E402
from support.packets import Frame  # noqa: E402
from turns import Turn, generate, machine, middle, renew, spend  # noqa: E402

import zanon_net  # noqa: E402
from zanon_net.config.parse import parse_size  # noqa: E402
from zanon_net.errors import FormatError, ZanonError  # noqa: E402

MEMORY = Path("/dev/shm")
CRYPTOPAN_KEY = "0123456789abcdef0123456789abcdef"
Command = Callable[[Path, Path], Sequence[str]]
CUT, ZERO, TWO = "zanon-net, cut", "zanon-net, zeros", "zanon-net, zeros, two workers"
WHOLE_CUT, WHOLE_ZERO = "zanon-net, cut, all flows", "zanon-net, zeros, all flows"
WHOLE_TWO = "zanon-net, zeros, all flows, two workers"
BOTH, WHOLE_BOTH = "zanon-net, zeros, two processes", "zanon-net, zeros, all flows, two processes"
CP, ANON, REWRITE = "cp", "traceanon", "tcprewrite --seed"
LIMITS = {TWO: BOTH, WHOLE_TWO: WHOLE_BOTH}
BARS = (  # (tool, slower tool, required ratio, by wall time)
    (CUT, ANON, 3.0, False),
    (CUT, REWRITE, 5.0, False),
    (WHOLE_CUT, ANON, 3.0, False),
    (WHOLE_CUT, REWRITE, 5.0, False),
    (ZERO, ANON, 1.5, False),
    (ZERO, CP, 0.55, False),
    (WHOLE_ZERO, ANON, 1.5, False),
    (WHOLE_ZERO, CP, 0.55, False),
    (TWO, ZERO, 1.5, True),
    (WHOLE_TWO, WHOLE_ZERO, 1.5, True),
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, the program that it needs, its command from a capture to a file."""

    name: str
    program: str
    command: Command


def ours(*more: str) -> Command:
    """Our command with settings."""
    return lambda source, out: [
        *(sys.executable, "-m", "zanon_net", "packets", str(source), str(out), "-q", *more)
    ]


SPEED = (
    Tool(CP, "cp", lambda source, out: ["cp", str(source), str(out)]),
    Tool(
        "editcap", "editcap", lambda source, out: ["editcap", "-F", "pcap", str(source), str(out)]
    ),
    Tool(
        "editcap -s 96",
        "editcap",
        lambda source, out: ["editcap", "-F", "pcap", "-s", "96", str(source), str(out)],
    ),
    Tool(
        ANON,
        "traceanon",
        lambda source, out: [
            *("traceanon", "-s", "-d", f"--cryptopan={CRYPTOPAN_KEY}"),
            *(f"pcapfile:{source}", f"pcapfile:{out}"),
        ],
    ),
    Tool(
        REWRITE,
        "tcprewrite",
        lambda source, out: [
            "tcprewrite", "--seed=42", f"--infile={source}", f"--outfile={out}",
        ],
    ),
    Tool(CUT, sys.executable, ours("--payload", "cut")),
    Tool(ZERO, sys.executable, ours()),
    Tool(WHOLE_CUT, sys.executable, ours("--payload", "cut", "--exact", "--evidence", "any")),
    Tool(WHOLE_ZERO, sys.executable, ours("--exact", "--evidence", "any")),
    Tool(TWO, sys.executable, ours("--workers", "2")),
    Tool(WHOLE_TWO, sys.executable, ours("--exact", "--evidence", "any", "--workers", "2")),
)  # fmt: skip


TWO_PROCESSES = (
    Tool(BOTH, sys.executable, ours()),
    Tool(WHOLE_BOTH, sys.executable, ours("--exact", "--evidence", "any")),
)


def there(tools: Sequence[Tool]) -> list[Tool]:
    """Returns the tools that are installed; prints which are not."""
    for tool in tools:
        if shutil.which(tool.program) is None:
            print(f"{tool.name}: not installed")
    return [tool for tool in tools if shutil.which(tool.program)]


def clear(folder: Path) -> None:
    """Removes what a tool left: files in a folder that is ours alone."""
    for path in folder.iterdir():
        path.unlink()


# ---- speed --------------------------------------------------------------------------------------


def first_packet(trace: Path, out: Path) -> Path:
    """Writes a capture of the trace's first packet."""
    with trace.open("rb") as file:
        head = file.read(PCAP_HEADER_BYTES + RECORD_HEADER_BYTES)
        out.write_bytes(head + file.read(int.from_bytes(head[32:36], "little")))
    return out


def halves(trace: Path) -> tuple[Path, Path]:
    """Writes the records of each half of a trace; returns their places."""
    with trace.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = PCAP_HEADER_BYTES
        while at < len(data) // 2:
            at += RECORD_HEADER_BYTES + int.from_bytes(data[at + 8 : at + 12], "little")
        parts = (data[PCAP_HEADER_BYTES:at], data[at:])
        paths = trace.with_suffix(".first"), trace.with_suffix(".second")
        for path, part in zip(paths, parts, strict=True):
            path.write_bytes(data[:PCAP_HEADER_BYTES] + part)
    return paths


def spend_both(tool: Tool, captures: Sequence[Path], memory: Path) -> tuple[Turn, int]:
    """Runs a tool on two captures at once, each on a processor of its own, to the end of both.

    Returns their time, and the bytes that they wrote.
    """
    outs = [memory / f"out-{n}.pcap" for n in range(2)]
    began = time.monotonic()
    children = [
        subprocess.Popen(
            tool.command(capture, out),
            stdout=subprocess.DEVNULL,
            preexec_fn=partial(os.sched_setaffinity, 0, {processor}),
        )
        for capture, out, processor in zip(
            captures, outs, sorted(os.sched_getaffinity(0)), strict=False
        )
    ]
    cpu_s = memory_mb = 0.0
    for child in children:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{tool.name} ended with {child.returncode}")
        cpu_s += used.ru_utime + used.ru_stime
        memory_mb += used.ru_maxrss / 1024
    turn = Turn(cpu_s, time.monotonic() - began, memory_mb)
    size = sum(out.stat().st_size for out in outs)
    clear(memory)
    return turn, size


def without_start(turns: Sequence[Turn], starts: Sequence[Turn]) -> Turn:
    """Returns the median CPU time of a tool's turns, and the least wall time, without the start.

    Other programs on the second processor only ever make a turn longer.
    """
    all_of_it = middle(turns)
    cpu_s = all_of_it.cpu_s - middle(starts).cpu_s
    wall_s = min(turn.wall_s for turn in turns) - min(start.wall_s for start in starts)
    return replace(all_of_it, cpu_s=cpu_s, wall_s=wall_s)


def speed_of(profile: str, arguments: argparse.Namespace, scratch: Path, memory: Path) -> bool:
    """Measures all tools on a trace; returns true if each bar was reached."""
    tools = there(SPEED)
    trace, truth = generate(profile, arguments.bytes, scratch)
    packets = int(str(truth["packets"]))
    one = first_packet(trace, scratch / "one.pcap")
    twice = TWO_PROCESSES if len(os.sched_getaffinity(0)) > 1 else ()
    parts = halves(trace)
    turns: dict[str, list[Turn]] = {tool.name: [] for tool in (*tools, *twice)}
    starts: dict[str, list[Turn]] = {tool.name: [] for tool in (*tools, *twice)}
    sizes: dict[str, int] = {}
    for _ in range(arguments.repeat):
        for tool in tools:
            out = memory / "out.pcap"
            starts[tool.name].append(spend(tool.command(one, out))[0])
            clear(memory)
            renew(trace)
            turns[tool.name].append(spend(tool.command(trace, out))[0])
            sizes[tool.name] = out.stat().st_size
            clear(memory)
        for tool in twice:
            starts[tool.name].append(spend_both(tool, (one, one), memory)[0])
            for part in parts:
                renew(part)
            turn, sizes[tool.name] = spend_both(tool, parts, memory)
            turns[tool.name].append(turn)
    print(f"\n### {profile}: {trace.stat().st_size / 1e6:.0f} MB, {packets:,} packets\n")
    print("| tool | M packets/CPU-s | ns | M packets/s of wall | start s | MB out |")
    print("|---|---:|---:|---:|---:|---:|")
    result = {name: without_start(of, starts[name]) for name, of in turns.items()}
    for name, turn in result.items():
        start_s = statistics.median(one.cpu_s for one in starts[name])
        print(
            f"| {name} | {packets / turn.cpu_s / 1e6:.2f} | {turn.cpu_s / packets * 1e9:.0f} "
            f"| {packets / turn.wall_s / 1e6:.2f} | {start_s:.2f} | {sizes[name] / 1e6:.0f} |"
        )
    trace.unlink()
    return print_bars(result)


def print_bars(result: dict[str, Turn]) -> bool:
    """Prints how the bars were met; True if all were."""
    reached = True
    print()
    for tool, peer, bar, by_wall in BARS:
        if tool not in result or peer not in result:
            print(f"{tool} / {peer}: not measured")
            continue
        a, b = result[tool], result[peer]
        ratio = b.wall_s / a.wall_s if by_wall else b.cpu_s / a.cpu_s
        least = bar * share_of_two(result, tool, peer) if by_wall else bar
        met = ratio >= least
        reached &= met
        cpu = f"; {a.cpu_s / b.cpu_s:.2f} times the CPU time" if by_wall else ""
        missed = "" if met else " NOT REACHED"
        print(f"{tool} / {peer}: {ratio:.2f} (to reach: {least:.3g}){missed}{cpu}")
    return reached


def share_of_two(result: dict[str, Turn], tool: str, peer: str) -> float:
    """Prints the speed of two processes instead of two workers; returns their share of the double
    speed."""
    if LIMITS[tool] not in result:
        print(f"{LIMITS[tool]}: not measured, as there is one processor")
        return 1.0
    both = result[LIMITS[tool]]
    limit = result[peer].wall_s / both.wall_s
    print(f"{LIMITS[tool]} / {peer}: {limit:.2f}, the most that two workers could bring here")
    return min(1.0, limit / 2)


def speed(arguments: argparse.Namespace) -> bool:
    """Measures on each profile; returns true if every bar was reached."""
    print(machine())
    print(f"load: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    reached = True
    for profile in arguments.profiles.split(","):
        with (
            tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch,
            tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as memory,
        ):
            reached &= speed_of(profile, arguments, Path(scratch), Path(memory))
    return reached


# ---- canary -------------------------------------------------------------------------------------


def pktanon_profile(source: Path, out: Path) -> Sequence[str]:
    """PktAnon with the profile that it brings along, from a capture to a file."""
    profiles = Path("/usr/share/doc/pktanon/examples/profiles")
    found = [path for path in profiles.rglob("*.xml") if "profile" in path.name]
    chosen = next((path for path in found if path.name == "profile.xml"), next(iter(found), None))
    if chosen is None:
        raise SystemExit("pktanon has no profile in /usr/share/doc/pktanon/examples/profiles")
    return ["pktanon", "-c", str(chosen), str(source), str(out)]


CANARY = (
    *(tool for tool in SPEED if tool.name in (REWRITE, ANON)),
    Tool("pktanon", "pktanon", pktanon_profile),
    Tool("zanon-net", sys.executable, ours("--internal", "10.0.0.0/8,fc00::/7")),
    Tool(
        "zanon-net --exact",
        sys.executable,
        ours("--internal", "10.0.0.0/8,fc00::/7", "--exact", "--evidence", "any"),
    ),
    Tool("zanon-net --z 1", sys.executable, ours("--internal", "10.0.0.0/8,fc00::/7", "--z", "1")),
)
KINDS = ("address", "server", "name", "mac", "secret")


def frames_of(path: Path) -> list[Frame]:
    """Returns the frames of a file, pcap of any kind."""
    data = path.read_bytes()
    return read_packets(data) if data else []


def marks_in(frame: bytes, kind: str) -> bool:
    """Returns true if a frame contains a mark, also in data that QUIC protects."""
    inside = packet_canary.unsealed(frame[42:]) + packet_canary.unsealed(frame[62:])
    return bool(packet_canary.found_in(frame + inside, [kind]))


def canary(_arguments: argparse.Namespace) -> bool:
    """Prints the frames that still contain marks after each tool; returns true if zanon_net leaves
    none."""
    samples = packet_canary.on_ethernet()
    print(f"{len(samples)} frames; still with a mark of each kind, or of any:\n")
    print(f"| tool | frames out | {' | '.join(KINDS)} | any |")
    print("|---|" + "---:|" * (len(KINDS) + 2))
    clean = True
    with tempfile.TemporaryDirectory() as folder:
        source = write_pcap(Path(folder) / "in.pcap", packet_canary.frames(), unit_ns=1000)
        key = Path(folder) / "key"
        key.write_bytes(base64.b64encode(bytes(range(7, 39))) + b"\n")
        key.chmod(0o600)
        for n, tool in enumerate(there(CANARY)):
            out = Path(folder) / f"out-{n}.pcap"
            is_ours = tool.name.startswith("zanon-net")
            more = ["--key-file", str(key)] if is_ours else []
            try:
                spend([*tool.command(source, out), *more])
                frames = frames_of(out)
            except (SystemExit, AssertionError, OSError) as error:
                print(f"| {tool.name} | could not be run: {error} |")
                clean &= not is_ours
                continue
            held = {kind: [marks_in(one.data, kind) for one in frames] for kind in KINDS}
            shown = ("server", "name") if "--z 1" in tool.name else ()
            dirty = [any(of[n] for k, of in held.items() if k not in shown)
                     for n in range(len(frames))]  # fmt: skip
            counts = " | ".join(str(sum(held[kind])) for kind in KINDS)
            print(f"| {tool.name} | {len(frames)} | {counts} | {sum(dirty)} |")
            clean &= not is_ours or not any(dirty)
    return clean


# ---- closure ------------------------------------------------------------------------------------

# Bytes of a packet and its record in a file, by the kind of traffic; and packets in one capture.
SIZES = {"isp": 839, "storm": 320, "min64": 90}
ROUND = 1_000_000


def shared_servers(capture: Path, z: int, folder: Path) -> set[Address]:
    """Returns addresses that z other addresses of the capture exchanged packets with, which may be
    shown.

    They are counted in the output at z = 1, whose servers are real.
    """
    out = folder / "all.pcap"
    settings = {"z": 1, "evidence": "any", "exact": True, "rotate": "3000d", "payload": "cut"}
    zanon_net.packets(capture, out, **settings)
    peers = peers_in(out)
    clear_outputs(folder)
    return {one for one, others in peers.items() if len(others) >= z}


def closure_of(capture: Path, z: int, folder: Path) -> tuple[Counter[str], int, int]:
    """Returns (addresses by place and block, packets, addresses that no rule allows) of a
    capture."""
    released = shared_servers(capture, z, folder)
    places: Counter[str] = Counter()
    frames_out = others = 0
    for more in ({}, {"exact": True, "evidence": "any", "encapsulation": "keep"}):
        out = folder / "out.pcap"
        zanon_net.packets(capture, out, z=z, payload="zero", **more)
        found, frames = closure_in(out, released)
        clear_outputs(folder)
        places += found.places
        frames_out += frames
        others += len(found.others)
        for n, one in found.others[:3]:
            print(f"{capture.name}, frame {n}: {one.place} {one.address}")
    return places, frames_out, others


def captures_in(corpus: Path) -> Iterator[Path]:
    """Yields the captures of the corpus."""
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    yield from (corpus / json.loads(line)["path"] for line in lines)


def closure_command(arguments: argparse.Namespace) -> bool:
    """Prints the blocks of all addresses; returns true if all were allowed."""
    places: Counter[str] = Counter()
    frames = others = captures = refused = 0
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)

        def take(path: Path) -> None:
            nonlocal frames, others, captures, refused
            try:
                found, n, bad = closure_of(path, arguments.z, folder)
            except FormatError:
                refused += 1
                return
            except ZanonError as error:
                print(f"{path.name}: {error}")
                refused += 1
                return
            finally:
                clear_outputs(folder)
            captures += 1
            places.update(found)
            frames, others = frames + n, others + bad

        for path in captures_in(arguments.corpus):
            take(path)
        print(f"{captures} captures ({refused} refused), {frames:,} packets out")
        if arguments.packets:
            most = parse_size("packets", arguments.packets)
            for profile in arguments.profiles.split(","):
                size, before, given = SIZES[profile], frames, 0
                while given < most:
                    octets = min(most - given, ROUND) * size + PCAP_HEADER_BYTES
                    trace, truth = generate(profile, str(octets), folder, seed=1 + given)
                    given += int(str(truth["packets"]))
                    take(trace)
                    clear(folder)
                print(f"{profile}: {given:,} packets, {frames - before:,} packets out in two ways")
    for place, n in sorted(places.items()):
        print(f"{place}: {n:,}")
    print(f"others: {others}")
    return others == 0 and captures > 0


def clear_outputs(folder: Path) -> None:
    """Removes captures that were written, and their manifests."""
    for path in folder.iterdir():
        if path.name.startswith(("out.", "all.")):
            path.unlink()


# ---- readers ------------------------------------------------------------------------------------


def readers_command(arguments: argparse.Namespace) -> bool:
    """Prints the flows that each program finds before and after; returns true if they are equal."""
    same = True
    chosen = readers(arguments.nfstream or sys.executable, arguments.tstat)
    print("| capture | reader | flows given | flows left | the same |")
    print("|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for capture in arguments.captures:
            for payload in ("zero", "cut"):
                out = folder / f"{capture.stem}-{payload}.pcap"
                settings = {"exact": True, "evidence": "any", "payload": payload}
                settings["keep_client_port"] = True  # tshark takes ports for protocols
                zanon_net.packets(capture, out, **settings)
                pairs = paired(frames_of(capture), frames_of(out))
                given = write_pcap(folder / "given.pcap", [bare(one) for one, _left in pairs])
                for reader in chosen:
                    what = f"| {capture.name}, {payload} | {reader.name}"
                    if reader.missing:
                        print(f"{what} | {reader.missing} | | |")
                        continue
                    found = compare(reader, pairs, folder)
                    print(f"{what} | {found.given} | {found.left} | {found.same} |")
                    # ndpiReader and NFStream leave out packets that are cut
                    if payload == "zero" or reader.name in ("tshark", "tstat"):
                        same &= found.given == found.left == found.same
                if shutil.which("tshark"):
                    print(f"tshark's complaints: given {dict(complaints(given))}, "
                          f"left {dict(complaints(out))}")  # fmt: skip
    return same


def main() -> int:
    """Runs a subcommand; returns 1 if a bar was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("speed")
    one.add_argument("--bytes", default="500M", help="size of each trace (500M)")
    one.add_argument("--repeat", type=int, default=5)
    one.add_argument("--profiles", default="isp")
    one.add_argument("--scratch", type=Path, help="a folder for the traces (temporary)")
    one.set_defaults(work=speed)
    one = commands.add_parser("canary")
    one.set_defaults(work=canary)
    one = commands.add_parser("closure")
    one.add_argument("corpus", type=Path, metavar="CORPUS")
    one.add_argument("--packets", help="packets of each kind of generated traffic")
    one.add_argument("--profiles", default=",".join(SIZES), help="the kinds (%(default)s)")
    one.add_argument("--z", type=int, default=3)
    one.set_defaults(work=closure_command)
    one = commands.add_parser("readers")
    one.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE")
    one.add_argument("--nfstream", help="a Python that has NFStream")
    one.add_argument("--tstat", default="tstat", help="Tstat's program")
    one.set_defaults(work=readers_command)
    arguments = parser.parse_args()
    return 0 if arguments.work(arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
