# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a live flow costs in memory, and how many records a core writes in a second.

Usage: python bench/flows.py [--flows N] [--records N] [--runs N]

Memory: N flows are opened with one segment each and stay open; bytes a flow are those of the flow
table, and those by which the process grew. Records: the same flows are closed at once, and only
putting out their records is timed, in CPU seconds: into the engine's buffers, and for Parquet
through pyarrow into a file in memory. The names, addresses and counters differ from flow to flow.
"""

import argparse
import io
import resource
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from zanon_net import Config
from zanon_net._core import Engine
from zanon_net.schema import Schema

SETS = {"core": "core", "all sets": "core,e2e,p2p,options,layer7"}
START = 1_700_000_000 * 10**9
BATCH = 1 << 15
SYN = 2
ETHERNET = 14


def template() -> np.ndarray:
    """A SYN from 10.0.0.0 to 198.51.100.7:443."""
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 7, 0x4000, 64, 6, 0)
    ip += bytes([10, 0, 0, 0, 198, 51, 100, 7])
    tcp = struct.pack(">HHIIHHHH", 40000, 443, 1000, 0, 5 << 12 | SYN, 8192, 0, 0)
    return np.frombuffer(bytes(12) + b"\x08\x00" + ip + tcp, dtype=np.uint8)


def batches(flows: int) -> Iterator[tuple[bytes, np.ndarray, np.ndarray]]:
    """SYNs of so many clients, BATCH at a time."""
    one = template()
    for first in range(0, flows, BATCH):
        numbers = np.arange(first, min(flows, first + BATCH), dtype=np.uint32)
        frames = np.tile(one, (len(numbers), 1))
        for byte in range(3):
            frames[:, ETHERNET + 15 - byte] = (numbers >> (8 * byte)) & 0xFF
        yield (
            frames.tobytes(),
            START + numbers.astype(np.int64),
            np.full(len(numbers), len(one), dtype=np.uint32),
        )


def engine_for(columns: str, flows: int, outputs: tuple[str, ...]) -> Engine:
    """An engine that holds so many flows and puts out these."""
    config = Config().replace(
        columns=columns, z=1, evidence="any", max_flows=flows, max_tuples=4096, max_attributes=4096
    )
    return Engine(**(config.engine_arguments() | {"outputs": outputs}))


def fill(engine: Engine, flows: int) -> None:
    """Opens the flows."""
    for data, times, lengths in batches(flows):
        engine.feed(data, times, lengths, lengths, 1)
        engine.drain()


def resident() -> int:
    """Bytes of this process in memory."""
    with Path("/proc/self/statm").open(encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def memory(name: str, flows: int) -> None:
    """Prints bytes a live flow."""
    engine = engine_for(SETS[name], flows, ())
    before = resident()
    fill(engine, flows)
    live, used = engine.flow_memory
    grown = resident() - before
    print(f"| {name} | {live:,} | {used / live:.1f} | {grown / live:.1f} | {grown / 2**30:.2f} |")
    engine.close()


def seconds_of(output: str | None, columns: str, flows: int) -> float:
    """CPU seconds to close the flows and put out their records; None: to put out nothing."""
    engine = engine_for(columns, flows, () if output is None else (output,))
    fill(engine, flows)
    schema = Schema(engine.fields, {}) if output == "table" else None
    writer = schema.writer(io.BytesIO()) if schema else None
    waiting: list[object] = []
    began = time.process_time()
    more = True
    while more:
        more = engine.finish()
        parts, table = engine.drain()
        if schema is not None and writer is not None and table:
            waiting.append(schema.batch(table, 0, parts[-1][2]))
            if len(waiting) == 2 or not more:
                writer.write_table(schema.table(waiting), 1 << 17)
                waiting = []
    if writer is not None:
        writer.close()
    seconds = time.process_time() - began
    engine.close()
    return seconds


def main() -> int:
    """Runs the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--flows", type=int, default=1_000_000, help="live flows")
    parser.add_argument("--records", type=int, default=500_000, help="records written")
    parser.add_argument("--runs", type=int, default=3, help="repetitions; the best counts")
    arguments = parser.parse_args()
    print("| columns | live flows | table B a flow | process B a flow | process GiB |")
    print("|---|---:|---:|---:|---:|")
    for name in SETS:
        memory(name, arguments.flows)
    n = arguments.records

    def best(output: str | None) -> float:
        return min(seconds_of(output, "core", n) for _ in range(arguments.runs))

    nothing = best(None)
    print("\n| output, core columns | records a CPU second | without closing the flows |")
    print("|---|---:|---:|")
    for output in ("log_tcp_nocomplete", "csv", "jsonl", "table"):
        whole = best(output)
        name = output.replace("table", "parquet")
        print(f"| {name} | {n / whole:,.0f} | {n / (whole - nothing):,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
