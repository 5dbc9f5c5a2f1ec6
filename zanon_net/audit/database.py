# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DuckDB, closed: no spill to disk, no extensions, bounded memory, and errors without data."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.config.parse import format_size
from zanon_net.errors import CapacityError, FormatError, MissingExtraError

try:
    import duckdb
except ImportError:
    raise MissingExtraError(
        "the audit needs DuckDB and SciPy; install them with: pip install 'zanon-net[audit]'"
    ) from None

OTHER_BYTES = 400 << 20
"""Memory for NumPy and Python next to DuckDB's."""
LEAST_BYTES = 64 << 20

Arrays = dict[str, npt.NDArray[Any]]


class Database:
    """Connection to an in-memory database.

    memory_bytes: bound of the process; DuckDB gets what NumPy and Python leave.
    """

    def __init__(self, memory_bytes: int, threads: int) -> None:
        self._memory = memory_bytes
        limit = max(memory_bytes - OTHER_BYTES, memory_bytes // 2, LEAST_BYTES)
        self._duckdb = duckdb.connect(
            ":memory:",
            config={
                "temp_directory": "",
                "memory_limit": f"{limit // 1000} KB",
                "threads": threads,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
            },
        )

    def close(self) -> None:
        """Frees the memory."""
        self._duckdb.close()

    def lock(self) -> None:
        """Refuses files, networks and other settings from here on."""
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def run(self, sql: str, values: Sequence[object] = (), *, file: Path | None = None) -> None:
        """Executes a statement.

        file: the file that the statement reads, for errors. Raises FormatError, CapacityError.
        """
        with self._explained(file):
            self._duckdb.execute(sql, list(values))

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a small result."""
        with self._explained():
            return list(self._duckdb.execute(sql, list(values)).fetchall())

    def value(self, sql: str, values: Sequence[object] = ()) -> Any:
        """Returns the first value of the first row."""
        return self.rows(sql, values)[0][0]

    def arrays(self, sql: str, values: Sequence[object] = ()) -> Arrays:
        """Returns the columns of a result as arrays."""
        with self._explained():
            columns = self._duckdb.execute(sql, list(values)).fetchnumpy()
        return {name: np.ma.getdata(column) for name, column in columns.items()}

    def columns_of(self, source: str, file: Path) -> list[str]:
        """Returns the names of the columns of a file."""
        with self._explained(file):
            found = self._duckdb.execute(f"DESCRIBE FROM {source}").fetchall()
        return [str(name) for name, *_rest in found]

    def append(self, table: str, columns: Mapping[str, Any]) -> None:
        """Appends rows to a table. columns: lists or arrays, in the order of the table's."""
        import pyarrow  # late: few audits append rows

        self._duckdb.register("appended", pyarrow.table(dict(columns)))
        self.run(f"INSERT INTO {table} FROM appended")
        self._duckdb.unregister("appended")

    @contextmanager
    def _explained(self, file: Path | None = None) -> Iterator[None]:
        """Turns errors of DuckDB into errors of the audit. file: the file that is read, or None."""
        try:
            yield
        except duckdb.OutOfMemoryException:
            raise CapacityError(
                f"the audit needs more than {format_size(self._memory)} of memory; give --memory"
            ) from None
        except duckdb.Error:  # its text quotes values of the file
            if file is None:
                raise
            raise FormatError(f"{file}: it cannot be read; is it whole?") from None
        except RuntimeError as error:  # DuckDB raises it when a signal comes
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None
