# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the filter's settings about generalization; `rules` has the rules of all others."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import LEVELS as LEVELS_OF_RUN
from zanon_net.config.rules import Settings, attributes
from zanon_net.config.types import PATH, Type

COLUMNS_MAX = 16  # as ZN_LADDER_COLUMNS_MAX
Z_MAX = 1000  # as ZN_LEVELS_Z_MAX
CHAIN = "chain"
ONLY_WITH = {"hierarchy": (), "hierarchy_delimiter": ";", "unknown": "error"}
"""Settings that apply only with `levels`, and their defaults."""


def _levels(name: str, value: object) -> str:
    """Reads `chain` or the name of a file."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        reject(name, "must be chain, or a file of steps")
    text = str(os.fspath(value))
    if text == "all":
        reject(name, "not all combinations can be tried; take chain, or a file of steps")
    if set(text.split(",")) <= set(LEVELS_OF_RUN):
        reject(name, f"{text} is for run and packets; take chain, or a file of steps")
    return text


def _levels_in_folder(value: str, folder: Path) -> str:
    return value if value == CHAIN else str(folder / value)


LEVELS = Type(
    read=_levels, annotation=PATH, range="chain, or a file", metavar="chain|FILE",
    anchored=_levels_in_folder,
)  # fmt: skip


def check_ladder(settings: Settings) -> dict[str, Any]:
    """Checks that each attribute has a hierarchy if it is generalized, and no other column has."""
    if settings["levels"] is None:
        for name, usual in ONLY_WITH.items():
            if settings[name] != usual:
                reject(name, "is for rows that leave generalized; add --levels chain")
        return {}
    if settings["popularity"] is not None:
        reject("popularity", "counts users of one attribute, and not with --levels")
    if settings["z"] > Z_MAX:
        reject("z", f"must be 1 to {Z_MAX:,} with --levels")
    columns, files = attributes(settings), dict(settings["hierarchy"])
    if len(columns) > COLUMNS_MAX:
        reject("attribute", f"at most {COLUMNS_MAX} columns can be generalized")
    for column in columns:
        if column not in files:
            reject(
                "hierarchy",
                f"{shown(column)} has no hierarchy; each attribute needs COL=FILE, which"
                " 'zanon-net table hierarchy' writes (--intervals for numbers)",
            )
    for column in files:
        if column not in columns:
            reject("hierarchy", f"{shown(column)} is not one of the attributes")
    return {}


def shown_levels(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `levels`, a file without its folder; empty if rows are not
    generalized."""
    levels = settings["levels"]
    return {} if levels is None else {"levels": Path(levels).name}


def shown_hierarchy(settings: Settings) -> Mapping[str, Any]:
    """Returns the names of the hierarchies' files, without their folders."""
    files = {column: Path(path).name for column, path in settings["hierarchy"]}
    return {"hierarchy": files} if settings["levels"] else {}


def shown_unknown(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `unknown`; empty if rows are not generalized."""
    return {"unknown": settings["unknown"]} if settings["levels"] else {}
