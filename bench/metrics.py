# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of metrics: CPU time of a run with `--metrics` and `--metrics-file`, and
without.

Usage: python bench/metrics.py TRACE [--repeat 9] [--rounds 60]

Children with and without metrics run in turn, and the medians of their CPU seconds are compared.
Each child is one run that reads TRACE `rounds` times. Metrics are ten times as frequent as usual: a
snapshot a second, and a scrape a second. The CPU time of the scraping client is another process's.
The import of the library, once a run, is not among the seconds. The second line has the cost of a
snapshot and of a scrape, and the share of a processor that they take at one each in ten seconds.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from zanon_net import Config
from zanon_net._core import PacketEngine
from zanon_net.config.listen_address import ListenAddress
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.metrics import Snapshot
from zanon_net.pipeline.metrics_clock import REFRESH_S, MetricsClock
from zanon_net.pipeline.metrics_export import MetricsCollector, MetricsFile, MetricsServer
from zanon_net.pipeline.window_hooks import WindowHooks

CHILD = """
import sys, tempfile, time
from pathlib import Path
import zanon_net.pipeline.metrics_export
from zanon_net import run
from zanon_net.pipeline import metrics_clock
trace, rounds, port = sys.argv[1], int(sys.argv[2]), sys.argv[3]
metrics_clock.REFRESH_S = 1.0
before = time.process_time()
with tempfile.TemporaryDirectory() as folder:
    settings = {}
    if port != "0":
        settings = {"metrics": f"127.0.0.1:{port}", "metrics_file": f"{folder}/zanon.prom"}
    run([trace] * rounds, out=Path(folder) / "out", **settings)
print(time.process_time() - before)
"""


def cpu_s(trace: Path, rounds: int, port: int) -> float:
    """Returns CPU seconds of a child; port: of its metrics, 0 for none."""
    command = [sys.executable, "-c", CHILD, str(trace), str(rounds), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5).read()
            time.sleep(1)
        assert child.stdout is not None
        return float(child.stdout.read())


def free_port() -> int:
    """Returns a port for the children's metrics."""
    server = MetricsServer(ListenAddress("127.0.0.1", 0), CollectorRegistry())
    server.close()
    return server.server_port


def each_s() -> tuple[float, float]:
    """Returns CPU seconds of a snapshot, with its file, and of a scrape."""
    config, collector, registry = Config(), MetricsCollector(), CollectorRegistry()
    registry.register(collector)
    engine, repeat = PacketEngine(**config.engine_arguments()), 500
    with tempfile.TemporaryDirectory() as folder:
        file = MetricsFile(Path(folder) / "zanon.prom", registry)

        def publish(snapshot: Snapshot) -> None:
            collector.take(snapshot)
            file.write()

        clock = MetricsClock(engine, Drops, WindowHooks(config), publish)
        start = time.process_time()
        for _time in range(repeat):
            clock.take(time.monotonic())
        middle = time.process_time()
        for _time in range(repeat):
            generate_latest(registry)
        end = time.process_time()
    engine.close()
    return (middle - start) / repeat, (end - middle) / repeat


def main() -> None:
    """Prints the ratio of the medians, and the cost of a snapshot and of a scrape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    port, seconds = free_port(), {"without": [], "with": []}  # type: ignore[var-annotated]
    for _time in range(options.repeat):
        for kind, listen in (("without", 0), ("with", port)):
            seconds[kind].append(cpu_s(options.trace, options.rounds, listen))
    medians = {kind: statistics.median(all_of) for kind, all_of in seconds.items()}
    print(
        f"CPU s without metrics {medians['without']:.3f}, with {medians['with']:.3f};"
        f" ratio {medians['with'] / medians['without']:.4f}"
    )
    snapshot_s, scrape_s = each_s()
    print(
        f"a snapshot {snapshot_s * 1e3:.2f} ms, a scrape {scrape_s * 1e3:.2f} ms: one each in"
        f" {REFRESH_S:g} s are {(snapshot_s + scrape_s) / REFRESH_S:.4%} of a processor"
    )


if __name__ == "__main__":
    main()
