# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules over the lists of names: checks, entries of the manifest, and values for the core."""

from typing import TYPE_CHECKING, Any

from zanon_net.config import presets, rules
from zanon_net.config.parse import did_you_mean, reject
from zanon_net.config.rules import LEVELS_Z_MAX, Settings

if TYPE_CHECKING:
    from zanon_net.config.name_lists import NameList

ONLY, SKIP = 8, 16
"""Bits of a suffix, as in csrc/include/zanon/zanon.h."""


def check_lists(settings: Settings) -> dict[str, Any]:
    """Checks that no name is in two lists that contradict each other, that the skipped categories
    exist, that the levels have their lists, and that each list is used. Finds the Public Suffix
    List if none is given."""
    if any(settings[name] for name in ("only", "skip")):
        only, skip, categories = _lists(settings, "only", "skip", "categories")
        for suffix in only.places:
            if suffix in skip.places:
                reject("only", f"{only.where(suffix)} is also {skip.where(suffix)} of --skip")
        _check_categories(skip, categories)
    return _check_uses(settings) | _check_level_lists(settings)


def _check_categories(skip: "NameList", categories: "NameList") -> None:
    if skip.categories and not categories:
        reject("skip", f"category:{skip.categories[0]} needs --categories FILE")
    known = set(categories.values.values())
    for category in skip.categories:
        if category not in known:
            hint = did_you_mean(category, known)
            reject("skip", f"no suffix of --categories is in category:{category}{hint}")


def _check_uses(settings: Settings) -> dict[str, Any]:
    """Checks that each list of names or networks is used. Returns what changes: without a domain or
    category, a list that was not given goes."""
    levels, skip, suffixes = settings["levels"], settings["skip"], settings["suffixes"]
    has_categories = "category" in levels or bool(skip and skip.categories)
    if settings["categories"] and not has_categories:
        reject("categories", "are not used; add --levels category or --skip category:NAME")
    if settings["networks"] is not None and not {"as", "country"} & set(levels):
        reject("networks", "are not used; add --levels as or --levels country")
    if suffixes is None or has_categories or "domain" in levels:
        return {}
    if not suffixes.is_default:
        reject("suffixes", "are not used; add --levels domain, or use categories")
    return {"suffixes": None}


def _check_level_lists(settings: Settings) -> dict[str, Any]:
    """Checks the lists that levels need, and z. Returns what changes."""
    levels, networks = settings["levels"], settings["networks"]
    if not levels:
        return {}
    if "category" in levels and not settings["categories"]:
        reject("levels", "category needs --categories FILE")
    for level in ("as", "country"):
        if level in levels and networks is None:
            reject("levels", f"{level} needs --networks FILE")
    if "as" in levels and not networks.has_as:
        reject("networks", "no row has an AS, which --levels as needs")
    if "country" in levels and not networks.has_country:
        reject("networks", "no row has a country, which --levels country needs")
    if rules.z_limit(settings) > LEVELS_Z_MAX:
        reject("levels", f"z and z_max must be at most {LEVELS_Z_MAX:,} with levels")
    if "domain" in levels and settings["suffixes"] is None:
        from zanon_net.config.name_lists import default_suffixes  # late: few runs have levels

        return {"suffixes": default_suffixes()}
    return {}


def check_levels(settings: Settings) -> None:
    """Checks levels against settings of other sections."""
    if not settings["levels"]:
        return
    if settings["count_at"] is not None:
        reject("levels", "a counter of probes decides no labels; leave out --count-at")
    if settings["shards"] > 1:
        reject("levels", "the processes of --shards decide no labels; use --workers")


def check_attributes(settings: Settings) -> None:
    """Checks that attributes are for logs of one process without labels."""
    if not settings["attributes"]:
        return
    if presets.has_packets(settings):
        reject("attributes", "are for logs and not for packets; leave out one of the two")
    if settings["levels"]:
        reject("attributes", "have no labels; leave out attributes, or leave out levels")
    if settings["count_at"] is not None:
        reject("attributes", "a counter of probes counts none of them; leave out --count-at")
    if settings["shards"] > 1:
        reject("attributes", "the processes of --shards count none of them; use --workers")


def _lists(settings: Settings, *names: str) -> "list[NameList]":
    """Returns lists by the names of their settings; an empty list for a setting without one."""
    from zanon_net.config.name_lists import NameList  # late: few runs have lists

    return [settings[name] or NameList() for name in names]


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
    categories = settings["categories"]
    return {"categories": [] if categories is None else categories.shown()}


def shown_levels(settings: Settings) -> dict[str, Any]:
    """Returns the levels, finest first."""
    return {"levels": list(settings["levels"])}


def shown_attributes(settings: Settings) -> dict[str, Any]:
    """Returns the attributes besides names."""
    return {"attributes": list(settings["attributes"])}


def shown_networks(settings: Settings) -> dict[str, Any]:
    """Returns the files of the networks."""
    networks = settings["networks"]
    return {"networks": [] if networks is None else [file.shown() for file in networks.files]}


# ---- values for the core -------------------------------------------------------------------------


def core_suffixes(settings: Settings) -> list[tuple[bytes, int, int]]:
    """Returns all lists as one: suffixes, each with its bits and the number of its category."""
    names = ("only", "skip", "suffixes", "categories")
    if not any(settings[name] for name in names):
        return []
    only, skip, rules, categories = _lists(settings, *names)
    numbers = {name: number for number, name in enumerate(_category_names(categories), start=1)}
    joined = [(suffix, bits, 0) for suffix, bits in rules.values.items()]
    joined += [(suffix, ONLY, 0) for suffix in only.places]
    joined += [(suffix, SKIP, 0) for suffix in skip.places]
    joined += [(suffix, 0, numbers[name]) for suffix, name in categories.values.items()]
    return [(suffix.encode("ascii"), bits, number) for suffix, bits, number in joined]


def core_categories(settings: Settings) -> list[tuple[bytes, bool]]:
    """Returns the names of the categories, each with whether it is skipped."""
    if not settings["categories"]:
        return []
    skip, categories = _lists(settings, "skip", "categories")
    names = _category_names(categories)
    return [(name.encode("ascii"), name in skip.categories) for name in names]


def _category_names(categories: "NameList") -> list[str]:
    return list(dict.fromkeys(categories.values.values()))


def core_network_table(settings: Settings) -> bytes:
    """Returns the rows of the networks as the core has them."""
    return b"" if settings["networks"] is None else bytes(settings["networks"].table)
