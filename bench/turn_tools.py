# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One tool's turn of turns.py, in a process of its own: prints its cost as JSON.

Usage: python bench/turn_tools.py TOOL TRACE [COLUMNS [WORKERS [LEVELS]]]

TOOL: `ours` (zanon_net.run, without the start of Python), `names` (z = 1: the names that it finds,
in the form of gen_trace.py), `nfstream`, `mercury`. With LEVELS, which may be `off`, the CPU time
is the least of several runs. The time of a run over a capture without packets is taken
off, because a run with levels reads lists.
"""

import hashlib
import json
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

COUNTRIES = ("IT", "FR", "DE", "US", "GB", "ES", "PL", "CH")
TURNS = 7  # runs with LEVELS, each after a run over a capture without packets
EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)  # a capture without packets


def cpu_seconds() -> float:
    """Returns CPU seconds of this process, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb() -> float:
    """Returns the peak memory of this process. getrusage would include the process that forked."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Returns the result of `work`, with its CPU and wall seconds, and the peak memory."""
    cpu, wall = cpu_seconds(), time.monotonic()
    result = work()
    cpu, wall = cpu_seconds() - cpu, time.monotonic() - wall
    return result | {"cpu_s": cpu, "wall_s": wall, "memory_mb": peak_mb()}


def write_networks(path: Path) -> None:
    """Writes a table of networks that gives an AS and a country to each /12 of IPv4."""
    rows = (
        f"{first}.{second}.0.0/12\t{64500 + (16 * first + second // 16) % 400}\t{country}\n"
        for first in range(1, 224)
        for second, country in zip(range(0, 256, 16), COUNTRIES * 2, strict=True)
    )
    path.write_text("".join(rows), encoding="ascii")


def ours(
    trace: str, columns: str = "core,layer7", workers: str = "1", levels: str = ""
) -> dict[str, Any]:
    """Runs the whole job with the defaults, written to a folder in memory if there is one.

    A run over a capture without packets comes first, because a run imports what it needs.
    """
    from zanon_net import Config, run

    config = Config().replace(columns=columns, workers=int(workers))
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        if levels not in ("", "off"):
            networks = Path(scratch, "networks.tsv")
            write_networks(networks)
            categories = ("included",) if "category" in levels else ()
            config = config.replace(levels=levels, categories=categories, networks=(str(networks),))
        empty = Path(scratch, "empty.pcap")
        empty.write_bytes(EMPTY)
        run(empty, config, out=f"{scratch}/nothing")

        def work(path: Path = Path(trace), out: str = "out") -> dict[str, Any]:
            manifest = run(path, config, out=f"{scratch}/{out}").manifest
            read = manifest["counters"]["read"]
            return {"packets": read["frames"], "octets": read["bytes_captured"]}

        if not levels:
            return timed(work)
        starts, results = [], []
        for turn in range(TURNS):
            starts.append(timed(partial(work, empty, f"start-{turn}"))["cpu_s"])
            results.append(timed(partial(work, out=f"out-{turn}")))
        result = min(results, key=itemgetter("cpu_s"))
        result["cpu_s"] -= min(starts)
        return result


def names(trace: str) -> dict[str, Any]:
    """Returns the digest of the names of a run that releases them all."""
    from zanon_net import Config, run

    config = Config().replace(z=1, evidence="any", format="observations")
    seen: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        run(trace, config, out=f"{scratch}/out")
        with Path(scratch, "out", "observations.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                release = json.loads(line)
                seen[release["name_source"], release["name"]] += 1
    text = "\n".join(sorted(f"{source},{name},{n}" for (source, name), n in seen.items()))
    return {
        "names_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "names": sum(seen.values()),
    }


def nfstream(trace: str) -> dict[str, Any]:
    """NFStream with nDPI, one meter, which is a process of its own."""
    from nfstream import NFStreamer  # type: ignore[import-not-found]

    def work() -> dict[str, Any]:
        named = packets = octets = 0
        for flow in NFStreamer(source=trace, n_meters=1, statistical_analysis=False):
            named += flow.requested_server_name != ""
            packets += flow.bidirectional_packets
            octets += flow.bidirectional_bytes
        return {"packets": packets, "octets": octets, "names": named}

    return timed(work)


def mercury(trace: str) -> dict[str, Any]:
    """mercury-python on each frame, from a walk of the trace in Python that is not timed."""
    from mercury import Mercury  # type: ignore[import-not-found]

    data, at, frames = Path(trace).read_bytes(), 24, []
    while at + 16 <= len(data):
        captured = int.from_bytes(data[at + 8 : at + 12], "little")
        frames.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    reader = Mercury()

    def work() -> dict[str, Any]:
        named = sum(b"server_name" in str(reader.get_mercury_json(x)).encode() for x in frames)
        return {"packets": len(frames), "octets": sum(map(len, frames)), "names": named}

    return timed(work)


def main() -> int:
    """Takes one tool's turn."""
    tool, trace, *more = sys.argv[1:]
    work: dict[str, Callable[..., dict[str, Any]]] = {
        "ours": ours,
        "names": names,
        "nfstream": nfstream,
        "mercury": mercury,
    }
    print(json.dumps(work[tool](trace, *more)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
