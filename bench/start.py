# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The CPU time of a command before it does anything, and of a run over a folder of small captures.

Usage: python bench/start.py [--repeat 20] [--captures 1000] [--frames 1000]

Each line is the median CPU time, user and system, of --repeat processes. `python -c pass` runs in
turn with the commands, because the time differs between machines and from minute to minute. The
command is the one next to this Python. Modules are compiled before anything is measured.

The folder has --captures files of --frames frames each, taken from generated traffic. The run over
the folder is compared with a run over one capture that has the same frames.
"""

import argparse
import compileall
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import zanon_net
from zanon_net.bench.trace import Scale, generate

COMMAND = Path(sys.executable).with_name("zanon-net")
HEADER = struct.Struct("<IHHiIII")  # of a pcap file: magic number, version, zone, ..., link type
EMPTY = HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
RECORD_BYTES = 16
FRAME_BYTES = 1000  # more than a generated frame has on average


def cpu_s(command: Sequence[str | Path]) -> float:
    """Returns the CPU seconds of a process. Ends the program if the process fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command}: {said.decode()}")
    return usage.ru_utime + usage.ru_stime


def medians(commands: Sequence[Sequence[str | Path]], repeat: int, out: Path) -> list[float]:
    """Returns the median CPU seconds of each command. Each process finds no folder `out`."""
    seconds: list[list[float]] = [[] for _command in commands]
    for _ in range(repeat):
        for command, measured in zip(commands, seconds, strict=True):
            shutil.rmtree(out, ignore_errors=True)
            measured.append(cpu_s(command))
    return [statistics.median(measured) for measured in seconds]


def divide(trace: Path, folder: Path, captures: int, frames: int) -> Path:
    """Writes the first frames of a trace into files of a folder; returns one file with them all."""
    data = trace.read_bytes()
    header, at = data[: HEADER.size], HEADER.size
    folder.mkdir()
    merged = folder.with_suffix(".pcap")
    start = at
    for number in range(captures):
        begin = at
        for _ in range(frames):
            (captured,) = struct.unpack_from("<I", data, at + 8)
            at += RECORD_BYTES + captured
        (folder / f"{number:05}.pcap").write_bytes(header + data[begin:at])
    merged.write_bytes(header + data[start:at])
    return merged


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--captures", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=1000)
    options = parser.parse_args()
    compileall.compile_dir(Path(zanon_net.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as scratch:
        empty, trace, folder = (Path(scratch, name) for name in ("empty.pcap", "trace", "small"))
        out = Path(scratch, "out")
        empty.write_bytes(EMPTY)
        commands: list[list[str | Path]] = [
            [sys.executable, "-c", "pass"],
            [COMMAND, "--help"],
            [COMMAND, "run", empty, "--out", out],
            [COMMAND, "inspect", empty],
            [COMMAND, "packets", empty, out / "a.pcap", "--dry-run"],
        ]
        names = ["python -c pass", "--help", "run EMPTY", "inspect EMPTY", "packets EMPTY"]
        for name, seconds in zip(names, medians(commands, options.repeat, out), strict=True):
            print(f"{name:<16} {seconds:.4f} s")
        generate(trace, "isp", Scale(octets=options.captures * options.frames * FRAME_BYTES))
        merged = divide(trace, folder, options.captures, options.frames)
        commands = [[COMMAND, "run", source, "--out", out] for source in (folder, merged)]
        small, whole = medians(commands, max(3, options.repeat // 4), out)
        print(f"run FOLDER       {small:.4f} s, {options.captures:,} captures")
        print(f"run MERGED       {whole:.4f} s, the same frames; ratio {small / whole:.2f}")


if __name__ == "__main__":
    main()
