# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The number of distinct users of a name at a time, by an interval sweep in SQL.

An exposure counts for its user until the user's next exposure of the name, or to the end of the
window. The running sum of begins and ends is the count. No table of users takes part in it.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from zanon_net.errors import ConfigError

Numbers = NDArray[np.int64]
Indices = NDArray[np.uint32]

ROW_BYTES = 22  # an observation, its count, and its part
SWEPT_BYTES = 512  # an observation while its part is swept, with what allocators keep
ENGINE_BYTES = 32 << 20  # the least that DuckDB gets
BATCH_ROWS = 1 << 16
NO_PART = (1 << 16) - 1
NOBODY = (1 << 32) - 1  # the user of a row that only asks for the count

# The first rows of a part have no slot: they are exposures before it that its counts need.
SWEEP = """
WITH spans AS (
    SELECT slot, name, t, lag(t) OVER w AS before, lead(t) OVER w AS after
    FROM rows WHERE who <> {nobody} WINDOW w AS (PARTITION BY name, who ORDER BY t)
), events AS (
    SELECT slot, name, t, (before IS NULL OR before < t - {window})::INTEGER AS step FROM spans
    UNION ALL
    SELECT NULL, name, t + {window} + 1, -1 FROM spans
    WHERE after IS NULL OR after > t + {window}
    UNION ALL
    SELECT slot, name, t, 0 FROM rows WHERE who = {nobody}
), counts AS (
    SELECT slot, sum(step) OVER (PARTITION BY name ORDER BY t RANGE UNBOUNDED PRECEDING) AS users
    FROM events
)
SELECT slot, users::UINTEGER AS users FROM counts WHERE slot IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Observations:
    """Exposures, a column each: when, whose, and of which name. Names and users are numbers that
    the caller gave them. A row of NOBODY exposes nothing, and gets the count."""

    t_ns: Numbers
    users: Indices
    names: Indices

    def __len__(self) -> int:
        return len(self.t_ns)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are swept together; the first `earlier` of them get no count."""

    rows: Numbers
    earlier: int = 0


def connect(memory: int, threads: int) -> duckdb.DuckDBPyConnection:
    """A database that holds data in memory only, and that no statement can open to files."""
    config = {"threads": str(threads), "memory_limit": f"{memory}B", "temp_directory": ""}
    database = duckdb.connect(":memory:", config=dict(config))
    database.execute("SET enable_external_access = false")
    database.execute("SET preserve_insertion_order = false")
    database.execute("SET lock_configuration = true")
    return database


def count_users(
    observations: Observations, window_ns: int, *, memory: int = 2 << 30, threads: int = 1
) -> Indices:
    """Returns the number of distinct users that exposed each row's name in [t - window, t].

    Rows with the same time count, too.
    """
    counts = np.zeros(len(observations), np.uint32)
    room = max(memory - ROW_BYTES * len(observations), 0)
    with connect(max(room, ENGINE_BYTES), threads) as database:
        try:
            for part in parts_of(observations, window_ns, room // SWEPT_BYTES):
                sweep(database, observations, part, window_ns, counts)
        except RuntimeError as error:  # DuckDB raises it when a signal comes
            if "interrupted" not in str(error):
                raise
            raise KeyboardInterrupt from None
    return counts


def parts_of(observations: Observations, window_ns: int, most: int) -> Iterator[Part]:
    """All rows in parts of at most `most` rows: whole names that fit, and the other names in
    stretches of time. A keyed hash chooses which names go together."""
    if not len(observations):
        return
    sizes = sizes_of(observations.names)
    large = sizes > most
    order = np.argsort(mixed(np.arange(len(sizes), dtype=np.uint64)), kind="stable")
    part_of = np.zeros(len(sizes), np.uint16)
    part_of[order] = filled(np.where(large, 0, sizes)[order], most)
    part_of_row = part_of[observations.names]
    if large.any():
        part_of_row[large[observations.names]] = NO_PART
    for part in range(int(part_of.max()) + 1):
        rows = np.flatnonzero(part_of_row == part)
        if len(rows):
            yield Part(rows)
    for name in np.flatnonzero(large):
        yield from stretches(
            observations, np.flatnonzero(observations.names == name), window_ns, most
        )


def sizes_of(names: Indices) -> Numbers:
    """The number of rows of each name, in pieces, because NumPy widens what it counts."""
    sizes = np.zeros(int(names.max()) + 1, np.int64)
    for start in range(0, len(names), BATCH_ROWS):
        found = np.bincount(names[start : start + BATCH_ROWS])
        sizes[: len(found)] += found
    return sizes


def stretches(
    observations: Observations, rows: Numbers, window_ns: int, most: int
) -> Iterator[Part]:
    """The rows of a name by time. Each stretch begins with the exposures of a window before it."""
    rows = rows[np.argsort(observations.t_ns[rows], kind="stable")]
    times = observations.t_ns[rows]
    start = 0
    while start < len(rows):
        first = int(np.searchsorted(times, times[start] - window_ns))
        end = min(first + most, len(rows))
        if end < len(rows):
            end = int(np.searchsorted(times, times[end]))
        if end <= start:
            need = (len(rows) * SWEPT_BYTES >> 20) + 1
            raise ConfigError(
                "the users of one name in one window do not fit into --memory: raise it by"
                f" {need} MB"
            )
        yield Part(rows[first:end], start - first)
        start = end


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A keyed hash of each number: products with random odd factors."""
    for _ in range(2):
        numbers = numbers * np.uint64(secrets.randbits(64) | 1)
        numbers ^= numbers >> np.uint64(32)
    return numbers


def filled(sizes: Numbers, most: int) -> NDArray[np.uint16]:
    """The part of each name, if parts are filled in this order up to `most` rows."""
    parts, part, inside = np.zeros(len(sizes), np.uint16), 0, 0
    for at, size in enumerate(sizes.tolist()):
        if inside + size > most:
            part, inside = part + 1, 0
        parts[at], inside = part, inside + size
    return parts


def sweep(
    database: duckdb.DuckDBPyConnection,
    observations: Observations,
    part: Part,
    window_ns: int,
    counts: Indices,
) -> None:
    """Counts the users of one part's rows."""
    rows = part.rows
    counted = np.arange(len(rows)) < part.earlier
    table = pa.table(
        {
            "slot": pa.array(rows.astype(np.uint32), mask=counted if part.earlier else None),
            "name": observations.names[rows],
            "who": observations.users[rows],
            "t": observations.t_ns[rows],
        }
    )
    database.register("rows", table)
    query = SWEEP.format(window=int(window_ns), nobody=NOBODY)
    for batch in database.sql(query).to_arrow_reader(BATCH_ROWS):
        counts[batch.column(0).to_numpy()] = batch.column(1).to_numpy()
    database.unregister("rows")
