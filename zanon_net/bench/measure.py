# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures a run over one capture, as a whole and by stage, in a process of its own.

The whole is `run`, measured by the clock of the process. A second run shows the distribution of the
time: its engine notes its stage, and a thread samples the stage about a thousand times a second. A
stage's share of the samples is its share of the time.

`python -m zanon_net.bench.measure TRACE REPEAT` prints a Measured as JSON.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zanon_net._core import STAGES, PacketEngine
from zanon_net.config.settings import Config
from zanon_net.errors import ZanonError
from zanon_net.output.choice import open_sink
from zanon_net.pipeline.observers import Observers
from zanon_net.pipeline.reader import Reader, open_all
from zanon_net.pipeline.runner import plan_of, run, run_reader
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.signals import Interruption

SAMPLE_S = 50e-6
SAMPLES_MIN = 5000  # with this number, a share of 10 % is exact to about half a percent
SAMPLED_RUNS_MAX = 20
PROCESS_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Measured:
    """A run over a capture: seconds are the median of the repeats, memory is the largest.

    octets: bytes of the frames on the wire. shares: each stage's share of the time, by its name;
    they add up to 1.
    """

    packets: int
    octets: int
    flows: int
    names: int
    cpu_s: float
    wall_s: float
    memory_bytes: int
    samples: int
    shares: dict[str, float]

    def rates(self, share: float = 1.0) -> dict[str, float]:
        """Returns ns a packet, packets and Gbit a CPU-second of a stage that takes `share` of the
        time."""
        seconds = max(self.cpu_s * share, 1e-12)
        return {
            "ns_per_packet": round(seconds * 1e9 / self.packets, 2),
            "packets_per_s": round(self.packets / seconds),
            "gbit_per_s": round(self.octets * 8e-9 / seconds, 3),
        }


def peak_memory() -> int:
    """Returns the largest resident size of this process so far, in bytes."""
    try:
        for line in PROCESS_STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


@contextmanager
def sampling(engine: PacketEngine, counts: Counter[int]) -> Iterator[None]:
    """Samples the engine's stage in a thread while the block runs, and counts each stage."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            counts[engine.stage] += 1
            time.sleep(SAMPLE_S)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield
    finally:
        over.set()
        asker.join()


def sampled_run(trace: Path, out: Path, counts: Counter[int]) -> None:
    """Runs once and counts samples of the stages. Raises what `run` raises."""
    config, interruption = Config(), Interruption()
    with ExitStack() as stack:
        opened = open_all([trace], config, interruption, stack)
        engine = PacketEngine(**config.engine_arguments())
        stack.callback(engine.close)
        sink = open_sink(out, config.output.format, plan_of(engine, config))
        stack.callback(sink.discard)
        with sampling(engine, counts):
            reader = Reader(engine, opened, None, interruption)
            run_reader(reader, engine, sink, WindowHooks(config), Observers(config.live))


def measure_here(trace: Path, repeat: int) -> Measured:
    """Measures in this process. Raises what `run` raises.

    The output lies next to the trace: the caller, who ends this process, removes both.
    """
    cpu, wall = [], []
    with tempfile.TemporaryDirectory(dir=trace.parent) as scratch:
        for i in range(repeat):
            before = time.process_time()
            report = run(trace, out=Path(scratch, f"whole{i}"))
            cpu.append(time.process_time() - before)
            wall.append(report.seconds)
        memory = peak_memory()
        counts: Counter[int] = Counter()
        for i in range(SAMPLED_RUNS_MAX):
            sampled_run(trace, Path(scratch, f"sampled{i}"), counts)
            if counts.total() >= SAMPLES_MIN:
                break
    totals = report.totals
    return Measured(
        packets=totals.counters["frames"],
        octets=totals.counters["bytes_wire"],
        flows=totals.counters["flows_tcp"] + totals.counters["flows_udp"],
        names=sum(totals.names().values()),
        cpu_s=statistics.median(cpu),
        wall_s=statistics.median(wall),
        memory_bytes=memory,
        samples=counts.total(),
        shares={name: counts[i] / counts.total() for i, name in enumerate(STAGES)},
    )


def measure(trace: Path, repeat: int) -> Measured:
    """Measures in a new process, which finds modules as this process does. Raises ZanonError if
    that fails."""
    command = [sys.executable, "-m", __name__, str(trace), str(repeat)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ZanonError(f"{trace.name} could not be measured: {last}")
    fields: dict[str, Any] = json.loads(done.stdout)
    return Measured(**fields)


def main(arguments: Sequence[str]) -> int:
    """Runs the measuring process, whose standard output is the result as JSON."""
    trace, repeat = arguments
    json.dump(asdict(measure_here(Path(trace), int(repeat))), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
