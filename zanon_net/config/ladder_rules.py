# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the filter's settings about generalization; `rules` has the rules of all others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import Settings, attributes

COLUMNS_MAX = 16  # as ZN_LADDER_COLUMNS_MAX
ONLY_WITH = {"hierarchy": (), "hierarchy_delimiter": ";", "steps": "all", "unknown": "error"}
"""Settings that apply only with `generalize`, and their defaults."""


def check_ladder(settings: Settings) -> dict[str, Any]:
    """Checks that each attribute has a hierarchy if it is generalized, and no other column has."""
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
            reject(
                "hierarchy",
                f"{shown(column)} has no hierarchy; each attribute needs COL=FILE, which"
                " 'zanon-net table hierarchy' writes (--intervals for numbers)",
            )
    for column in files:
        if column not in columns:
            reject("hierarchy", f"{shown(column)} is not one of the attributes")
    return {}


def shown_generalize(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `generalize`; empty if rows are not generalized."""
    return {"generalize": True} if settings["generalize"] else {}


def shown_hierarchy(settings: Settings) -> Mapping[str, Any]:
    """Returns the names of the hierarchies' files, without their folders."""
    files = {column: Path(path).name for column, path in settings["hierarchy"]}
    return {"hierarchy": files} if settings["generalize"] else {}


def shown_steps(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `steps`; empty if rows are not generalized."""
    return {"steps": settings["steps"]} if settings["generalize"] else {}


def shown_unknown(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `unknown`; empty if rows are not generalized."""
    return {"unknown": settings["unknown"]} if settings["generalize"] else {}
