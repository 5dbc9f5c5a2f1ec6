# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `zanon-net filter`, checked when they are made.

The dataclass gives the rows of the schema types for type checkers. A wrong value raises
`ConfigError` with a text that starts with the field's name.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config import rules
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View, core_arguments, describe, manifest_of

FILTER = {row.name: row for row in rows_of("filter")}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig(View):
    """The settings of a run of the filter."""

    rows = rows_of("filter")

    z: int = FILTER["z"].default
    window: int | str = FILTER["window"].default
    suppressed: str = FILTER["suppressed"].default
    time: str = FILTER["time"].default
    user: str = FILTER["user"].default
    attribute: str = FILTER["attribute"].default
    passed: Sequence[str] = FILTER["passed"].default
    generalize: bool = FILTER["generalize"].default
    hierarchy: Mapping[str, str] | Sequence[str] = FILTER["hierarchy"].default
    hierarchy_delimiter: str = FILTER["hierarchy_delimiter"].default
    steps: str = FILTER["steps"].default
    unknown: str = FILTER["unknown"].default
    no_user: bool = FILTER["no_user"].default
    rotate: int | str | None = FILTER["rotate"].default
    key_file: str | os.PathLike[str] | None = FILTER["key_file"].default
    format: str = FILTER["format"].default
    to: str = FILTER["to"].default
    time_unit: str = FILTER["time_unit"].default
    delimiter: str = FILTER["delimiter"].default
    quote: str | None = FILTER["quote"].default
    header: str = FILTER["header"].default
    strict: bool = FILTER["strict"].default
    mode: str = FILTER["mode"].default
    popularity: str | os.PathLike[str] | None = FILTER["popularity"].default
    max_tuples: int = FILTER["max_tuples"].default
    max_attributes: int = FILTER["max_attributes"].default

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)

    @property
    def file_mode(self) -> int:
        """The mode of the file of `popularity`."""
        return int(self.mode, 8)

    @property
    def rotate_ns(self) -> int:
        """The length of an epoch in nanoseconds."""
        return rules.rotate_ns(self.settings())

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of attributes."""
        return tuple(rules.attributes(self.settings()))

    @property
    def hierarchies(self) -> dict[str, str]:
        """The hierarchy file of each attribute, in the order of attributes."""
        files = dict(self.settings()["hierarchy"])
        return {column: files[column] for column in self.attributes if column in files}

    def row_filter_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of `_core.RowFilter`."""
        return core_arguments(self.rows, self.settings())

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings as the manifest has them, without the key and its path."""
        return manifest_of(self.rows, self.settings())


describe(FilterConfig)
