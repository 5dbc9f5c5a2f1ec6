# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules over the lists of names: checks, entries of the manifest, and values for the core."""

from typing import Any

from zanon_net.config.name_lists import ONLY, SKIP, NameList
from zanon_net.config.parse import did_you_mean, reject
from zanon_net.config.rules import Settings

NOTHING = NameList()


def check_lists(settings: Settings) -> dict[str, Any]:
    """Checks that no name is in two lists that contradict each other, and that the skipped
    categories exist."""
    only, skip = _lists(settings, "only", "skip")
    for suffix in only.places:
        if suffix in skip.places:
            reject("only", f"{only.where(suffix)} is also {skip.where(suffix)} of --skip")
    if not skip.categories:
        return {}
    if not settings["categories"]:
        reject("skip", f"category:{skip.categories[0]} needs --categories FILE")
    known = set(settings["categories"].values.values())
    for category in skip.categories:
        if category not in known:
            hint = did_you_mean(category, known)
            reject("skip", f"no suffix of --categories is in category:{category}{hint}")
    return {}


def _lists(settings: Settings, *names: str) -> list[NameList]:
    """Returns lists by the names of their settings; an empty list for a setting without one."""
    return [settings[name] or NOTHING for name in names]


# ---- entries of the manifest ---------------------------------------------------------------------


def shown_only(settings: Settings) -> dict[str, Any]:
    """Returns the files of the names that may vote, and their number. A name is in no manifest."""
    only = settings["only"]
    shown = None if only is None else {"suffixes": len(only.places), "files": only.shown()}
    return {"only": shown}


def shown_skip(settings: Settings) -> dict[str, Any]:
    """Returns the files of the names that may not vote, their number, and the categories."""
    skip = settings["skip"]
    if not skip:
        return {"skip": None}
    shown = {"suffixes": len(skip.places), "categories": list(skip.categories)}
    return {"skip": shown | {"files": skip.shown()}}


def shown_suffixes(settings: Settings) -> dict[str, Any]:
    """Returns the file of the Public Suffix List."""
    suffixes = settings["suffixes"]
    return {"suffixes": None if suffixes is None else suffixes.shown()[0]}


def shown_categories(settings: Settings) -> dict[str, Any]:
    """Returns the files of the categories."""
    return {"categories": settings["categories"].shown()}


# ---- values for the core -------------------------------------------------------------------------


def core_suffixes(settings: Settings) -> list[tuple[bytes, int, int]]:
    """Returns all lists as one: suffixes, each with its bits and the number of its category."""
    only, skip, rules, categories = _lists(settings, "only", "skip", "suffixes", "categories")
    numbers = {name: number for number, name in enumerate(_category_names(categories), start=1)}
    joined = [(suffix, bits, 0) for suffix, bits in rules.values.items()]
    joined += [(suffix, ONLY, 0) for suffix in only.places]
    joined += [(suffix, SKIP, 0) for suffix in skip.places]
    joined += [(suffix, 0, numbers[name]) for suffix, name in categories.values.items()]
    return [(suffix.encode("ascii"), bits, number) for suffix, bits, number in joined]


def core_categories(settings: Settings) -> list[tuple[bytes, bool]]:
    """Returns the names of the categories, each with whether it is skipped."""
    skip, categories = _lists(settings, "skip", "categories")
    names = _category_names(categories)
    return [(name.encode("ascii"), name in skip.categories) for name in names]


def _category_names(categories: NameList) -> list[str]:
    return list(dict.fromkeys(categories.values.values()))
