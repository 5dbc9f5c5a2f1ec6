# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the filter's settings about generalization, as `rules` has those about the rest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import Settings, attributes

COLUMNS_MAX = 16  # as ZN_LADDER_COLUMNS_MAX
ONLY_WITH = {"hierarchy": (), "hierarchy_delimiter": ";", "steps": "all", "unknown": "error"}
"""Settings that mean nothing without `generalize`, as they usually are."""


def check_ladder(settings: Settings) -> dict[str, Any]:
    """Each attribute that is generalized has a hierarchy, and nothing else has."""
    if not settings["generalize"]:
        for name, usual in ONLY_WITH.items():
            if settings[name] != usual:
                reject(name, "is for rows that leave generalized; add --generalize")
        return {}
    if settings["popularity"] is not None:
        reject("popularity", "counts users of one attribute, and not with --generalize")
    columns, files = attributes(settings), dict(settings["hierarchy"])
    if len(columns) > COLUMNS_MAX:
        reject("attribute", f"at most {COLUMNS_MAX} columns can be generalized")
    for column in columns:
        if column not in files:
            reject("hierarchy", f"{shown(column)} has none; each attribute needs its COL=FILE")
    for column in files:
        if column not in columns:
            reject("hierarchy", f"{shown(column)} is not one of the attributes")
    return {}


def shown_generalize(settings: Settings) -> Mapping[str, Any]:
    """Whether rows are generalized, where they are."""
    return {"generalize": True} if settings["generalize"] else {}


def shown_hierarchy(settings: Settings) -> Mapping[str, Any]:
    """The names of the hierarchies' files, without their folders."""
    files = {column: Path(path).name for column, path in settings["hierarchy"]}
    return {"hierarchy": files} if settings["generalize"] else {}


def shown_steps(settings: Settings) -> Mapping[str, Any]:
    """Which steps are asked for."""
    return {"steps": settings["steps"]} if settings["generalize"] else {}


def shown_unknown(settings: Settings) -> Mapping[str, Any]:
    """What becomes of unknown values."""
    return {"unknown": settings["unknown"]} if settings["generalize"] else {}
