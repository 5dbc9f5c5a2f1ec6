# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a stream that can be released independently: rows that are near each other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.config.parse import reject, whole
from zanon_net.errors import ConfigError
from zanon_net.microdata.arrow import as_table, encoded
from zanon_net.microdata.hierarchy import Hierarchy

PARTS_MAX = 1 << 16
CELLS_MAX = 1 << 62  # numbers of combinations
CELLS = 16  # coarse combinations for each part, from which parts are composed

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partition:
    """Parts by a coarse generalization of the quasi-identifiers.

    columns: the quasi-identifiers. hierarchies: their hierarchies. levels: the coarse level of
    each. starts: the first combination of each part, in an order in which near combinations are
    neighbours.
    """

    columns: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, batch: Any) -> npt.NDArray[np.int32]:
        """Returns the part of each row, from 0: the key of a keyed stream. batch: as
        Publisher.feed."""
        table = as_table(batch, self.columns, "the batch")
        cells = _cells(table, self.columns, self.hierarchies, self.levels)
        parts = np.searchsorted(self.starts, cells, "right") - 1
        return np.maximum(parts, 0).astype(np.int32)


def partition_of(
    table: Any, recodings: Mapping[str, Any], *, user: str | None, k: int, parts: int
) -> Partition:
    """Returns at most `parts` parts of about as many rows, each with at least k users of `table`.

    table: rows like the rows of the stream. recodings: the generalization of each quasi-identifier.
    user: the column of a row's user; None: each row is a user of its own. Raises ConfigError if
    even one part has fewer.
    """
    parts = whole("parts", parts, 1, PARTS_MAX)
    names = tuple(recodings)
    hierarchies = []
    for name, recoding in recodings.items():
        if recoding is None:
            reject("quasi", f"{name!r} needs a Hierarchy, or a Round with both ends")
        hierarchies.append(recoding.hierarchy(None))
    rows = as_table(table, names if user is None else (*names, user))
    users = np.arange(rows.num_rows) if user is None else _codes(rows.column(user))
    if len(np.unique(users)) < k:
        raise ConfigError(f"k: the table has fewer than {k} users")
    levels = _levels(rows, names, hierarchies, CELLS * parts)
    cells = _cells(rows, names, hierarchies, levels)
    starts = _starts(cells, users, k, parts)
    return Partition(names, tuple(hierarchies), levels, starts)


def _codes(column: Any) -> Ints:
    codes, words = encoded(column)
    filled = codes.combine_chunks().fill_null(len(words))
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)


def _order(hierarchy: Hierarchy) -> Ints:
    """Returns the place of each node in an order in which siblings are neighbours, from 0 for each
    level."""
    leaves = hierarchy.ancestors[:, : hierarchy.leaves]
    places = np.empty(hierarchy.leaves, np.int64)
    places[np.lexsort(leaves)] = np.arange(hierarchy.leaves)
    of_node = np.full(hierarchy.nodes, hierarchy.leaves, np.int64)
    for level in leaves:
        np.minimum.at(of_node, level, places)
    return of_node


def _cells(table: Any, names: Any, hierarchies: Any, levels: Any) -> Ints:
    """Returns the combination of each row as a number; near combinations have near numbers."""
    cells = np.zeros(table.num_rows, np.int64)
    for name, hierarchy, level in zip(names, hierarchies, levels, strict=True):
        codes = hierarchy.codes(table.column(name))
        nodes = hierarchy.ancestors[level][np.where(codes < 0, hierarchy.nodes - 1, codes)]
        steps = hierarchy.ancestors[level][: hierarchy.leaves]
        known = np.unique(_order(hierarchy)[steps])  # the places that this level has
        cells = cells * (len(known) + 1) + np.searchsorted(known, _order(hierarchy)[nodes])
    return cells


def _levels(rows: Any, names: Any, hierarchies: Any, most: int) -> tuple[int, ...]:
    """Returns the finest levels, found column by column, with at most `most` combinations."""
    levels = [hierarchy.levels - 1 for hierarchy in hierarchies]
    open_columns = list(range(len(levels)))
    while open_columns:
        column = open_columns.pop(0)
        if levels[column] == 0:
            continue
        finer = [level - (i == column) for i, level in enumerate(levels)]
        sizes = [
            len(np.unique(h.ancestors[level])) for h, level in zip(hierarchies, finer, strict=True)
        ]
        if math.prod(size + 1 for size in sizes) >= CELLS_MAX:
            continue
        if len(np.unique(_cells(rows, names, hierarchies, finer))) <= most:
            levels = finer
            open_columns.append(column)
    return tuple(levels)


def _starts(cells: Ints, users: Ints, k: int, parts: int) -> Ints:
    """Returns where parts of neighbouring combinations begin; each part has k users."""
    order = np.argsort(cells, kind="stable")
    bounds = np.flatnonzero(np.diff(cells[order])) + 1
    target = -(-len(cells) // parts)
    starts: list[int] = []
    members: set[int] = set()
    size = 0
    for group in np.split(order, bounds):
        if not starts or (size >= target and len(members) >= k):
            starts.append(int(cells[group[0]]))
            members, size = set(), 0
        members.update(users[group].tolist())
        size += len(group)
    if len(starts) > 1 and len(members) < k:
        starts.pop()
    return np.array(starts, np.int64)
