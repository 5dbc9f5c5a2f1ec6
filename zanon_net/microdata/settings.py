# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a plan from the settings of a command: `config/table_rows.py` has their rows."""

from collections.abc import Mapping
from typing import Any

from zanon_net.config.parse import reject, shown
from zanon_net.errors import ConfigError
from zanon_net.microdata.guess import Guess
from zanon_net.microdata.hierarchy import Dates, Hierarchy, Round, read_number, read_range
from zanon_net.microdata.plan import Plan


def plan_of(settings: Mapping[str, Any]) -> Plan:
    """Returns the plan of a command's settings; fields without a setting have their defaults.

    Raises ConfigError with a text that begins with the setting's name, FormatError for a hierarchy
    that cannot be read.
    """
    quasi = dict.fromkeys(settings["quasi"])
    for name, pairs in (("hierarchy", settings["hierarchy"]), ("round", settings["round"])):
        for column, _value in pairs:
            if column not in quasi:
                reject(name, f"{shown(column)} is not among the quasi-identifiers")
            if name == "round" and column in dict(settings["hierarchy"]):
                reject(name, f"{shown(column)} has a hierarchy already")
    quasi |= {
        column: Hierarchy.read(path, delimiter=settings["hierarchy_delimiter"])
        for column, path in settings["hierarchy"]
    }
    quasi |= _rounds(settings)
    quasi |= _dates(settings, quasi)
    own = {"sensitive", "user", "k", "l", "l_kind", "max_share", "t", "passed", "unknown"}
    return Plan(quasi=quasi, **{name: settings[name] for name in own & settings.keys()})


def _dates(settings: Mapping[str, Any], quasi: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the generalization of dates. A value without a column is for columns without any."""
    found: dict[str, Any] = {}
    for column, text in settings.get("dates", ()):
        try:
            parts = Dates(tuple(part.strip() for part in text.split(",")))
        except ConfigError as error:
            reject("dates", str(error).partition(": ")[2])
        if not column:
            bare = [name for name, recoding in quasi.items() if recoding is None]
            found = {name: Guess(parts.parts) for name in bare} | found
        elif column not in quasi:
            reject("dates", f"{shown(column)} is not among the quasi-identifiers")
        elif quasi[column] is not None:
            reject("dates", f"{shown(column)} has a hierarchy or ranges already")
        else:
            found[column] = parts
    return found


def _rounds(settings: Mapping[str, Any]) -> dict[str, Any]:
    widths, ends = dict(settings["round"]), dict(settings["clip"])
    for column in ends:
        if column not in widths:
            reject("clip", f"{shown(column)} has no --round; give its width as well")
    found = {}
    for column, width in widths.items():
        low, high = read_range("clip", ends[column]) if column in ends else (None, None)
        number = read_number("round", width)
        try:
            found[column] = Round(number, low, high)
        except ConfigError as error:
            problem = str(error).partition(": ")[2]
            reject("round" if str(error).startswith("width") else "clip", problem)
    return found
