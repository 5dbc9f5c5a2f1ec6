# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the filter's settings about generalization; `rules` has the rules of all others.

`levels` has steps of whole rows (`chain`, or a file), or the levels of an attribute that is a name
or an address, as `run` has them.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zanon_net.config import list_rules
from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import LEVELS as LEVELS_OF_RUN
from zanon_net.config.rules import Settings, attributes
from zanon_net.config.types import PATH, Type, any_of

COLUMNS_MAX = 16  # as ZN_LADDER_COLUMNS_MAX
Z_MAX = 1000  # as ZN_LEVELS_Z_MAX
CHAIN = "chain"
NO_LEVELS = "must be chain, a file of steps, or levels of names or addresses"
ONLY_WITH = {"hierarchy": (), "hierarchy_delimiter": ";", "unknown": "error"}
"""Settings that apply only with `levels`, and their defaults."""


OF_NAMES, OF_ADDRESSES = LEVELS_OF_RUN[:2], LEVELS_OF_RUN[2:]


def _levels(name: str, value: object) -> str | tuple[str, ...]:
    """Reads `chain`, the name of a file, or levels of names or of addresses."""
    if isinstance(value, list | tuple) or _are_levels_of_run(value):
        levels: tuple[str, ...] = any_of(LEVELS_OF_RUN, "").read(name, value)
        if set(levels) & set(OF_NAMES) and set(levels) & set(OF_ADDRESSES):
            reject(
                name,
                "domain and category are of names, as and country of addresses; an attribute is one"
                " of the two",
            )
        return levels or reject(name, NO_LEVELS)
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        reject(name, NO_LEVELS)
    text = str(os.fspath(value))
    if text == "all":
        reject(name, "not all combinations can be tried; take chain, or a file of steps")
    return text


def _are_levels_of_run(value: object) -> bool:
    return isinstance(value, str) and set(value.split(",")) <= set(LEVELS_OF_RUN)


def _levels_in_folder(value: str, folder: Path) -> str:
    return value if value == CHAIN or _are_levels_of_run(value) else str(folder / value)


LEVELS = Type(
    read=_levels, annotation=f"{PATH} | Sequence[str]", metavar="chain|FILE|LEVELS",
    range="chain, a file, domain,category, or as,country", anchored=_levels_in_folder,
)  # fmt: skip


def has_steps(settings: Settings) -> bool:
    """Returns true if whole rows are generalized in steps."""
    return settings["levels"] is not None and not levels_of_attribute(settings)


def levels_of_attribute(settings: Settings) -> tuple[str, ...]:
    """Returns the levels of an attribute that is a name or an address; none for other rows."""
    return settings["levels"] if isinstance(settings["levels"], tuple) else ()


def check_labels(settings: Settings) -> dict[str, Any]:
    """Checks the lists of names and networks, and that one attribute has labels."""
    levels = levels_of_attribute(settings)
    if levels and len(attributes(settings)) > 1:
        reject("levels", f"{','.join(levels)} is for one attribute; several need chain, or a file")
    for name in ("only", "skip"):
        if settings[name] and not set(levels) & set(OF_NAMES):
            reject(name, "is for --levels domain and --levels category")
    return list_rules.check_lists({**settings, "levels": levels, "z_max": None, "target_k": None})


def check_ladder(settings: Settings) -> dict[str, Any]:
    """Checks that each attribute has a hierarchy if it is generalized, and no other column has."""
    if settings["levels"] is not None and settings["popularity"] is not None:
        reject("popularity", "counts users of one attribute, and not with --levels")
    if not has_steps(settings):
        for name, usual in ONLY_WITH.items():
            if settings[name] != usual:
                reject(name, "is for rows that leave generalized; add --levels chain")
        return {}
    if settings["never"]:
        reject("never", "is for one attribute, and not with the steps of --levels")
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
    if levels is None:
        return {}
    return {"levels": Path(levels).name if has_steps(settings) else list(levels)}


def shown_hierarchy(settings: Settings) -> Mapping[str, Any]:
    """Returns the names of the hierarchies' files, without their folders."""
    files = {column: Path(path).name for column, path in settings["hierarchy"]}
    return {"hierarchy": files} if has_steps(settings) else {}


def shown_unknown(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `unknown`; empty if rows are not generalized."""
    return {"unknown": settings["unknown"]} if has_steps(settings) else {}


def shown_with_labels(
    show: Callable[[Settings], Mapping[str, Any]],
) -> Callable[[Settings], Mapping[str, Any]]:
    """Returns a function that returns a list's entry for the manifest; empty without labels."""
    return lambda settings: show(settings) if levels_of_attribute(settings) else {}
