# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parquet in folders day=YYYY-MM-DD/hour=HH, by the time of a flow's first packet in UTC.

Readers know such folders as hive partitions. A record of a flow with a suppressed name has the time
that the record shows, so a folder discloses no more than the record.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from zanon_net._core import TableRows
from zanon_net.output.files import PARTIAL, LogFile, Piece
from zanon_net.output.parquet import ParquetFile, RowGroups, Schema

OPEN_MAX = 16
"""Files of an output that are open at a time. If another file is needed, the file with the oldest
last write ends."""
STEPS_NS = {"day": 86_400 * 10**9, "hour": 3_600 * 10**9}
_FORMS = {"day": "day=%Y-%m-%d", "hour": "hour=%H"}


def partition_folder(keys: Sequence[str], t_ns: int) -> str:
    """Returns the folder of a record. keys: as the option has them. t_ns: its time, UTC."""
    time = datetime.fromtimestamp(t_ns // 10**9, UTC)
    return "/".join(time.strftime(_FORMS[key]) for key in keys)


class PartitionedFile(LogFile):
    """Rows of an output, in a file for each folder.

    path: the path that the output's file would have without partitions.
    keys: ("day",) or ("day", "hour"). make: makes an open file for a path.

    Rows are divided by ROW_GROUP_ROWS, so that the files do not depend on the number of workers.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        keys: Sequence[str],
        make: Callable[[Path], ParquetFile],
    ) -> None:
        self.path, self.records = path, 0
        self._schema, self._keys, self._make = schema, keys, make
        self._groups = RowGroups(schema)
        self._open: dict[str, ParquetFile] = {}  # by folder; the last written is the last
        self._ended: list[Piece] = []
        self._opened = 0

    @property
    def partial(self) -> Path:
        """The next path of an unfinished file."""
        name = f"{self.path.stem}-{self._opened + 1}{self.path.suffix}"
        return self.path.with_name(name + PARTIAL)

    @property
    def size(self) -> int:
        """Bytes of all files so far."""
        return sum(piece.bytes for piece in self._ended) + sum(
            file.size for file in self._open.values()
        )

    @property
    def on_disk(self) -> int:
        """See LogFile."""
        return sum(piece.bytes for piece in self._ended) + sum(
            file.on_disk for file in self._open.values()
        )

    @property
    def pieces(self) -> Sequence[Piece]:
        """The files, in the order of their folders."""
        return sorted(self._ended, key=lambda piece: piece.folder)

    @property
    def files(self) -> int:
        """See LogFile."""
        return len(self._ended) + len(self._open)

    def write(self, table: TableRows, start: int, end: int) -> None:
        """Appends rows start to end of the table. Raises OutputError."""
        self.records += end - start
        for group in self._groups.add(self._schema.table(table, start, end)):
            self._write_group(group)

    def _write_group(self, group: Any) -> None:
        for folder, rows in self._divided(group):
            file = self._open.pop(folder, None)
            if file is None:
                if len(self._open) >= OPEN_MAX:
                    self._end_file(next(iter(self._open)))
                file = self._make(self.partial.with_suffix(""))
                self._opened += 1
            self._open[folder] = file
            file.write_group(rows)

    def _divided(self, group: Any) -> Iterator[tuple[str, Any]]:
        """Yields the rows of each folder, in the order of time."""
        compute = importlib.import_module("pyarrow.compute")
        times = group["t_start_ns"].cast("int64")
        steps = compute.divide(times, STEPS_NS[self._keys[-1]])
        for step in sorted(compute.unique(steps).to_pylist()):
            rows = group.filter(compute.equal(steps, step))
            folder = partition_folder(self._keys, step * STEPS_NS[self._keys[-1]])
            yield folder, self._schema.joined([rows])

    def _end_file(self, folder: str) -> None:
        file = self._open[folder]
        file.to_disk()
        del self._open[folder]
        self._ended += (
            Piece(piece.partial, piece.bytes, piece.records, folder) for piece in file.pieces
        )

    def to_disk(self) -> int:
        """See LogFile."""
        for group in self._groups.rest():
            self._write_group(group)
        for folder in list(self._open):
            self._end_file(folder)
        return self.size

    def _end(self) -> None:
        """Each file ends itself."""

    def cut(self, spare: int) -> int | None:
        """See LogFile. The files that ended are whole, and of each open file its row groups."""
        del spare
        for folder, file in list(self._open.items()):
            del self._open[folder]
            size = None
            with suppress(OSError, ValueError):  # both are pyarrow's
                size = file.cut(0)
            if size is None:
                file.remove()
            else:
                self._ended.append(Piece(file.partial, size, file.records, folder))
        self.records = sum(piece.records for piece in self._ended)
        return self.size if self._ended else None

    def remove(self) -> None:
        """See LogFile."""
        for file in self._open.values():
            file.remove()
        for piece in self._ended:
            with suppress(OSError):
                piece.partial.unlink()
        self._open.clear()
        self._ended.clear()
