# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.
"""Fields of the settings of `filter`, with types for type checkers."""

import os
from collections.abc import Mapping, Sequence

from zanon_net._record import dataclass
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View

FILTER = {row.name: row for row in rows_of("filter")}
"""The settings by their names."""


@dataclass(frozen=True, slots=True)
class FilterFields(View):
    """Fields of the settings of `filter filter`."""

    rows = rows_of("filter", "filter")

    z: int = FILTER["z"].default
    window: int | str = FILTER["window"].default
    never: str | os.PathLike[str] | Sequence[str] = FILTER["never"].default
    suppressed: str = FILTER["suppressed"].default
    time: str = FILTER["time"].default
    user: str = FILTER["user"].default
    attribute: str = FILTER["attribute"].default
    passed: Sequence[str] = FILTER["passed"].default
    preset: str | None = FILTER["preset"].default
    evidence: str = FILTER["evidence"].default
    internal: str | Sequence[str] | None = FILTER["internal"].default
    user_prefix: str | Sequence[int] = FILTER["user_prefix"].default
    levels: str | os.PathLike[str] | Sequence[str] | None = FILTER["levels"].default
    hierarchy: Mapping[str, str] | Sequence[str] = FILTER["hierarchy"].default
    hierarchy_delimiter: str = FILTER["hierarchy_delimiter"].default
    unknown: str = FILTER["unknown"].default
    only: str | os.PathLike[str] | Sequence[str] | None = FILTER["only"].default
    skip: str | Sequence[str] | None = FILTER["skip"].default
    categories: str | Sequence[str] | None = FILTER["categories"].default
    suffixes: str | os.PathLike[str] | None = FILTER["suffixes"].default
    networks: str | Sequence[str] | None = FILTER["networks"].default
    no_user: bool = FILTER["no_user"].default
    rotate: int | str | None = FILTER["rotate"].default
    key_file: str | os.PathLike[str] | None = FILTER["key_file"].default
    format: str = FILTER["format"].default
    to: str = FILTER["to"].default
    time_unit: str = FILTER["time_unit"].default
    delimiter: str = FILTER["delimiter"].default
    quote: str | None = FILTER["quote"].default
    null: Sequence[str] = FILTER["null"].default
    header: str = FILTER["header"].default
    strict: bool = FILTER["strict"].default
    mode: str = FILTER["mode"].default
    popularity: str | os.PathLike[str] | None = FILTER["popularity"].default
    max_tuples: int = FILTER["max_tuples"].default
    max_attributes: int = FILTER["max_attributes"].default
