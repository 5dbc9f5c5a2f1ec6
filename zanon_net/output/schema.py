# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Meaning of a flow's columns, their units and their disclosure classes."""

import functools
from collections.abc import Sequence

from zanon_net import _core

Field = tuple[str, str, bool]
"""Name, type and whether it may be missing, as `_core.PacketEngine.fields` has them."""


@functools.cache
def columns() -> dict[str, _core.Column]:
    """Returns each column of CSV, JSON Lines and Parquet by its name, from
    csrc/release/columns.h."""
    return {column.name: column for column in _core.columns() if column.type is not None}


def described(fields: Sequence[Field]) -> list[tuple[str, str, bool, dict[str, str]]]:
    """Returns the fields with their meaning and unit, as texts for Arrow's metadata."""
    return [
        (name, kind, nullable, {"description": column.description, "unit": column.unit})
        for name, kind, nullable in fields
        for column in (columns()[name],)
    ]
