# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules over several settings of `publish`, as in `rules`, and its own type."""

import re
from typing import Any

from zanon_net.config.parse import format_duration, reject, shown
from zanon_net.config.rules import Settings
from zanon_net.config.types import Type

COLUMNS_MAX = 32  # as ZN_ROW_COLUMNS_MAX
KINDS = ("distinct", "entropy", "recursive")
UNKNOWN = ("error", "suppress", "top")
WAYS = ("up", "down")
"""Values in the order of the core's enumeration."""

_ADAPT = re.compile(r"([0-9]{1,9})(?::(up|down))?")
_KIND = re.compile(r"distinct|entropy|recursive:([0-9]{1,9}(?:\.[0-9]{1,9})?)")


def _adapt_l(name: str, value: object) -> str:
    match = _ADAPT.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None or int(match[1]) < 1:
        reject(name, "must be a largest l, and up or down: 5, 5:up, 5:down")
    return match[0]


ADAPT_L = Type(read=_adapt_l, range="a largest l, with up or down", metavar="MAX[:up|down]")


# ---- checks -------------------------------------------------------------------------------------


def _column_roles(settings: Settings) -> list[tuple[str, str]]:
    roles = [("time", settings["time"])]
    roles += [("user", settings["user"])] if settings["user"] is not None else []
    for role, name in (("quasi", "quasi"), ("sensitive", "sensitive"), ("pass", "passed")):
        roles += [(role, column) for column in settings[name]]
    return roles


def check_columns(settings: Settings) -> dict[str, Any]:
    """Checks that each column has one role."""
    taken: set[str] = set()
    for role, column in _column_roles(settings):
        if column in taken:
            reject(role, f"{shown(column)} is named already; each column has one role")
        taken.add(column)
    if len(taken) > COLUMNS_MAX:
        reject("quasi", f"at most {COLUMNS_MAX} columns can be read")
    return {}


def check_quasi(settings: Settings) -> dict[str, Any]:
    """Checks that each quasi-identifier can be generalized before any row is read."""
    quasi = settings["quasi"]
    if not quasi:
        reject("quasi", "name the columns by which a person could be found, such as city,age")
    for name in ("hierarchy", "round", "clip"):
        for column, _value in settings[name]:
            if column not in quasi:
                reject(name, f"{shown(column)} is not a column of --quasi")
    for column in quasi:
        _check_generalization(settings, column)
    return {}


def _check_generalization(settings: Settings, column: str) -> None:
    with_file, rounded, clipped = (
        column in dict(settings[name]) for name in ("hierarchy", "round", "clip")
    )
    if with_file and (rounded or clipped):
        reject("hierarchy", f"{shown(column)} has --round or --clip, too; give one")
    if rounded != clipped:
        lacks = "--clip" if rounded else "--round"
        reject("round" if rounded else "clip", f"{shown(column)} needs {lacks}, too")
    if not with_file and not rounded:
        reject("quasi", f"{shown(column)} needs --hierarchy, or --round and --clip")


def check_window(settings: Settings) -> dict[str, Any]:
    """Checks that a window has room for the rows that a class needs."""
    for name, what in (("k", "users"), ("l", "values")):
        if settings[name] > settings["rows"]:
            reject(name, f"{settings[name]} {what} do not fit into --rows {settings['rows']}")
    return {}


def check_user(settings: Settings) -> dict[str, Any]:
    """Checks that settings about users come with the users' column."""
    if settings["user"] is None:
        if settings["once"] is not None:
            reject("once", "is about users; name their column with --user")
        if settings["pseudonym"] != "none":
            reject("pseudonym", "is about users; name their column with --user")
    return {}


def check_once(settings: Settings) -> dict[str, Any]:
    """Checks that `once` comes with `delay`, which bounds the time of a user's further rows."""
    if settings["once"] is not None and settings["delay"] is None:
        reject("once", "needs --delay, which says how late a row may come")
    return {}


def check_diversity(settings: Settings) -> dict[str, Any]:
    """Checks that settings about sensitive values come with the columns of the values."""
    match = _KIND.fullmatch(settings["l_kind"])
    if match is None or (match[1] is not None and float(match[1]) == 0):
        reject("l_kind", "must be distinct, entropy or recursive:C with a number C above 0")
    if settings["max_share"] == 0:
        reject("max_share", "must be above 0")
    if settings["sensitive"]:
        return {}
    asked = {
        "l": settings["l"] > 1,
        "l_kind": settings["l_kind"] != "distinct",
        "max_share": settings["max_share"] is not None,
        "adapt_l": settings["adapt_l"] is not None,
    }
    for name, is_asked in asked.items():
        if is_asked:
            reject(name, "is about sensitive values; name their columns with --sensitive")
    return {}


def check_adapt(settings: Settings) -> dict[str, Any]:
    """Checks that an l that follows the stream begins at the guaranteed l."""
    if settings["adapt_l"] is None:
        return {}
    most = int(settings["adapt_l"].partition(":")[0])
    if not settings["l"] <= most <= settings["rows"]:
        reject("adapt_l", f"must be from l, {settings['l']}, to --rows, {settings['rows']}")
    if settings["buffer"] == "sliding":
        reject("adapt_l", "is for --buffer tumbling: a sliding one repairs nothing")
    return {}


# ---- entries of the manifest ---------------------------------------------------------------------


def _duration(name: str, ns: int | None) -> dict[str, Any]:
    return {name: None if ns is None else format_duration(ns)}


def shown_delay(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for `delay` as text."""
    return _duration("delay", settings["delay"])


def shown_once(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for `once` as text."""
    return _duration("once", settings["once"])


def shown_idle(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for `idle` as text."""
    return _duration("idle", settings["idle"])


# ---- values for the core that differ from the setting's value ------------------------------------


def core_columns(settings: Settings) -> list[bytes]:
    """Returns all columns that are read, in the core's order."""
    return [column.encode() for _role, column in _column_roles(settings)]


def core_with_user(settings: Settings) -> bool:
    """Returns true if rows have users."""
    return settings["user"] is not None


def core_sensitive_count(settings: Settings) -> int:
    """Returns the number of sensitive columns."""
    return len(settings["sensitive"])


def core_l_kind(settings: Settings) -> tuple[int, float]:
    """Returns the number of the kind, and c of recursive diversity."""
    kind, _colon, c = settings["l_kind"].partition(":")
    return KINDS.index(kind), float(c or 1)


def core_max_share(settings: Settings) -> float:
    """Returns the largest share of a sensitive value; 1: no bound."""
    return 1.0 if settings["max_share"] is None else float(settings["max_share"])


def core_unknown(settings: Settings) -> int:
    """Returns the number of the word in the core's enumeration."""
    return UNKNOWN.index(settings["unknown"])


def core_delay(settings: Settings) -> int:
    """Returns the delay in nanoseconds; 0: no bound."""
    return settings["delay"] or 0


def core_once(settings: Settings) -> int:
    """Returns `once` in nanoseconds; 0: off."""
    return settings["once"] or 0


def core_sliding(settings: Settings) -> bool:
    """Returns true if the buffer slides."""
    return bool(settings["buffer"] == "sliding")


def core_adapt(settings: Settings) -> tuple[int, int]:
    """Returns the largest l (0: off) and the number of the direction."""
    most, _colon, way = (settings["adapt_l"] or "0").partition(":")
    return int(most), WAYS.index(way or "up")


def core_pseudonyms(settings: Settings) -> bool:
    """Returns true if the user's column has pseudonyms."""
    return bool(settings["pseudonym"] == "release")
