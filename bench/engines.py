# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Engines full of flows, for bench/test_flows.py, test_order.py and test_records.py."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from flow_traffic import Batch, much_later
from measuring import known

from zanon_net import Config
from zanon_net._core import OUTPUTS, TABLES, PacketEngine, TableRows
from zanon_net.output.parquet import ROW_GROUP_ROWS, Schema

SETS = {"core": "core", "all sets": "core,e2e,p2p,options,layer7"}
LOGS = OUTPUTS[:3]
FORMATS = {"tstat": LOGS, "csv": ("csv",), "jsonl": ("jsonl",), "parquet": TABLES}


def engine_for(
    columns: str, flows: int, outputs: Sequence[str], order: str = "closing", z: int = 1
) -> PacketEngine:
    """Returns an engine with room for `flows` flows that writes these outputs."""
    config = Config().replace(
        columns=columns, z=z, evidence="any", max_flows=max(flows, 1024), max_tuples=1 << 17,
        max_attributes=1 << 16, **known(order=order),
    )  # fmt: skip
    return PacketEngine(**(config.engine_arguments() | {"outputs": tuple(outputs)}))


def full_engine(engine: PacketEngine, batches: Sequence[Batch]) -> PacketEngine:
    """Returns the engine after it read the batches."""
    for batch in batches:
        engine.feed(*batch, 1)
    return engine


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


class ParquetFiles:
    """Parquet files, kept nowhere, of the rows that an engine drains."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Schema, Any]] = {}

    def write(self, engine: PacketEngine, table: str, rows: TableRows) -> Any:
        """Writes the rows of a table; returns them as a table of Arrow."""
        if table not in self._files:
            schema = Schema(engine.fields(table), {})
            self._files[table] = schema, schema.writer(cast(BinaryIO, Nowhere()))
        schema, writer = self._files[table]
        arrow = schema.table(rows, 0, len(rows))
        writer.write_table(arrow, ROW_GROUP_ROWS)
        return arrow

    def close(self) -> None:
        """Ends the files."""
        for _schema, writer in self._files.values():
            writer.close()


@dataclass(slots=True)
class Written:
    """Output of an engine, kept for peers that write the same."""

    texts: dict[str, bytes] = field(default_factory=dict)
    tables: list[Any] = field(default_factory=list)


def close_flows(engine: PacketEngine, kept: Written | None = None) -> None:
    """Closes all flows and writes their records. The output is added to `kept`."""
    files = ParquetFiles()

    def take(rows: int) -> None:
        parts, tables = engine.drain(rows=rows)
        arrows = [files.write(engine, table, taken) for table, taken in tables.items()]
        if kept is not None:
            kept.tables.extend(arrows)
            for _start, texts, _rows in parts:
                for output, (text, _lines) in texts.items():
                    kept.texts[output] = kept.texts.get(output, b"") + bytes(text)

    engine.feed(*much_later(), 1)
    while engine.waiting:
        take(ROW_GROUP_ROWS)
        engine.flush()
    while engine.finish():
        take(ROW_GROUP_ROWS)
    take(0)
    files.close()
    engine.close()
