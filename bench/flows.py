# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of a live flow, and the records that a core writes in a second.

Usage: python bench/flows.py [--flows N] [--records N] [--runs N]

Memory: N flows are opened with one segment each and stay open. Bytes a flow are given for the flow
table, with its index, and for the growth of the process.

Records: flows of several packets (flow_traffic.conversations: three TCP to one UDP, with names)
become idle at once. Only closing them and writing their records is timed, in CPU seconds of the
whole process: texts into the engine's buffers, Parquet through pyarrow into files that keep
nothing. Two more columns have the rate without the cost of closing the flows, and pyarrow's share.
"""

import argparse
import io
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from flow_traffic import conversations, much_later, openings

from zanon_net import Config
from zanon_net._core import OUTPUTS, TABLES, PacketEngine
from zanon_net.output.parquet import ROW_GROUP_ROWS, Schema

SETS = {"core": "core", "all sets": "core,e2e,p2p,options,layer7"}
LOGS = OUTPUTS[:3]
FORMATS = {"tstat": LOGS, "csv": ("csv",), "jsonl": ("jsonl",), "parquet": TABLES}


def engine_for(columns: str, flows: int, outputs: tuple[str, ...]) -> PacketEngine:
    """Returns an engine that holds `flows` flows and writes these outputs."""
    config = Config().replace(
        columns=columns, z=1, evidence="any", max_flows=flows, max_tuples=1 << 17,
        max_attributes=1 << 16,
    )  # fmt: skip
    return PacketEngine(**(config.engine_arguments() | {"outputs": outputs}))


def resident() -> int:
    """Bytes of this process in memory."""
    with Path("/proc/self/statm").open(encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def memory(name: str, flows: int) -> None:
    """Prints the bytes of a live flow."""
    engine = engine_for(SETS[name], flows, ())
    before = resident()
    for batch in openings(flows):
        engine.feed(*batch, 1)
    live, used = engine.flow_memory
    grown = resident() - before
    print(f"| {name} | {live:,} | {used / live:.1f} | {grown / live:.1f} | {grown / 2**30:.2f} |")
    engine.close()


@dataclass(slots=True)
class Cost:
    """CPU seconds in all, and of them in pyarrow; the columns written."""

    seconds: float
    pyarrow: float
    columns: str


class Nowhere(io.RawIOBase):
    """A file that keeps its length and no content."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Returns the length so far."""
        return self._bytes

    def write(self, data: object, /) -> int:
        """Takes the data."""
        size = memoryview(cast(bytes, data)).nbytes
        self._bytes += size
        return size


class Parquet:
    """Parquet files of the rows that an engine drains."""

    def __init__(self, engine: PacketEngine) -> None:
        self.schemas = {table: Schema(engine.fields(table), {}) for table in TABLES}
        self._writers = {
            table: s.writer(cast(BinaryIO, Nowhere())) for table, s in self.schemas.items()
        }
        self.seconds = 0.0

    def take(self, engine: PacketEngine, rows: int) -> None:
        """Writes the rows that are ready, if there are at least `rows`."""
        _parts, tables = engine.drain(rows=rows)
        for table, taken in tables.items():
            began = time.process_time()
            arrow = self.schemas[table].table(taken, 0, len(taken))
            self._writers[table].write_table(arrow, ROW_GROUP_ROWS)
            self.seconds += time.process_time() - began

    def close(self) -> None:
        """Ends the files."""
        for writer in self._writers.values():
            writer.close()


def columns_of(engine: PacketEngine, outputs: tuple[str, ...]) -> str:
    """Returns the number of columns of a record: of TCP and of UDP where they differ."""
    if outputs == LOGS:
        return f"{engine.header(LOGS[0]).count(b':')} and {engine.header(LOGS[2]).count(b':')}"
    if outputs == ("csv",):
        return str(engine.header("csv").count(b",") + 1)
    return " and ".join(str(len(engine.fields(table))) for table in TABLES)


def cost(outputs: tuple[str, ...], columns: str, flows: int) -> Cost:
    """Measures closing the flows and writing their records; without outputs, closing them alone."""
    engine = engine_for(columns, flows, outputs)
    for batch in conversations(flows):
        engine.feed(*batch, 1)
    files = Parquet(engine) if outputs == TABLES else None
    shown = columns_of(engine, outputs)

    def take(rows: int) -> None:
        if files is None:
            engine.drain()
        else:
            files.take(engine, rows)

    began = time.process_time()
    engine.feed(*much_later(), 1)
    while engine.waiting:
        take(ROW_GROUP_ROWS)
        engine.flush()
    while engine.finish():
        take(ROW_GROUP_ROWS)
    take(0)
    if files is not None:
        files.close()
    seconds = time.process_time() - began
    records = engine.stats["records"]
    engine.close()
    if records != flows + 1:
        raise SystemExit(f"{records:,} records of {flows:,} flows")
    return Cost(seconds, files.seconds if files is not None else 0, shown)


def records(name: str, flows: int, runs: int) -> None:
    """Prints records a CPU second in each format: the best of the runs, which take turns."""
    best: dict[str, Cost] = {}
    for _ in range(runs):
        for form, outputs in {"": (), **FORMATS}.items():
            result = cost(outputs, SETS[name], flows)
            if form not in best or result.seconds < best[form].seconds:
                best[form] = result
    nothing = best.pop("").seconds
    for form, result in best.items():
        alone = f"{flows / result.pyarrow:,.0f}" if result.pyarrow else ""
        print(
            f"| {form}, {name} | {result.columns} | {flows / result.seconds:,.0f} "
            f"| {flows / (result.seconds - nothing):,.0f} | {alone} |"
        )


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
    print("\n| format | columns | records a CPU second | without closing flows | pyarrow alone |")
    print("|---|---:|---:|---:|---:|")
    for name in SETS:
        records(name, arguments.records, arguments.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
