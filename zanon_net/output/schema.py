# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Meaning of a flow's columns, their units and their disclosure classes."""

import functools
import itertools
from collections.abc import Iterable, Sequence

from zanon_net import _core

Field = tuple[str, str, bool]
"""Name, type and whether it may be missing, as `_core.PacketEngine.fields` has them."""


@functools.cache
def columns() -> dict[str, _core.Column]:
    """Returns each column of CSV, JSON Lines and Parquet by its name, from
    csrc/release/columns.h."""
    return {column.name: column for column in _core.columns() if column.type is not None}


def united(tables: Iterable[Sequence[Field]]) -> list[Field]:
    """Returns the fields of several tables as the fields of one table, in the order of a line.

    A field that a table lacks may be missing.
    """
    given = [{field[0]: field for field in fields} for fields in tables]
    names = dict.fromkeys(itertools.chain.from_iterable(given))
    return [
        (name, kind, any(name not in fields or fields[name][2] for fields in given))
        for name in names
        for kind in {fields[name][1] for fields in given if name in fields}
    ]


def described(fields: Sequence[Field]) -> list[tuple[str, str, bool, dict[str, str]]]:
    """Returns the fields with their meaning and unit, as texts for Arrow's metadata."""
    return [
        (name, kind, nullable, {"description": column.description, "unit": column.unit})
        for name, kind, nullable in fields
        for column in (columns()[name],)
    ]
