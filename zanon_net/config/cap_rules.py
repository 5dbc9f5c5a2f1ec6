# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the caps against invented users, for their rows of the schema."""

import re
from typing import Any

from zanon_net.config.parse import format_duration, reject, shown
from zanon_net.config.rules import COUNT_MAX, Settings

CAPS = ("max_per_prefix", "max_names_per_user", "min_user_age")
WINDOW_MAX_NS = 1830 * 24 * 3600 * 10**9  # the caps keep users for two windows
_PER_PREFIX = "([0-9]{1,3}),([0-9]{1,3})=([0-9]{1,10})"  # few runs need it compiled


def read_per_prefix(name: str, value: object) -> str:
    """Reads two prefix lengths and a number of users: "24,48=4"."""
    match = re.fullmatch(_PER_PREFIX, value.replace(" ", "")) if isinstance(value, str) else None
    if match is None:
        reject(name, f"must be two prefix lengths and a number of users, such as 24,48=4,"
               f" not {shown(value)}")  # fmt: skip
    v4, v6, users = map(int, match.groups())
    if not (1 <= v4 <= 32 and 1 <= v6 <= 128):
        reject(name, "the prefix lengths must be 1 to 32 (IPv4) and 1 to 128 (IPv6)")
    if not 1 <= users <= COUNT_MAX:
        reject(name, f"the number of users must be 1 to {COUNT_MAX}")
    return f"{v4},{v6}={users}"


def per_prefix(settings: Settings) -> tuple[int, int, int]:
    """Returns both prefix lengths and the number of users; zeros without the cap."""
    text = settings["max_per_prefix"]
    if text is None:
        return 0, 0, 0
    v4, v6, users = map(int, re.split("[,=]", text))
    return v4, v6, users


def check_caps(settings: Settings) -> None:
    """Checks that caps have votes to refuse, and that one process counts all votes."""
    chosen = [name for name in CAPS if settings[name] is not None]
    if not chosen:
        return
    first = chosen[0]
    if settings["z"] == 1:
        reject(first, "z is 1: every name is released; leave it out, or give a larger z (--z)")
    if settings["count_at"] is not None:
        reject(first, "a counter of probes has no caps; leave it out, or leave out count_at")
    if settings["shards"] > 1:
        reject(first, "the counter of shards has no caps; leave it out, or leave out shards")
    if settings["window"] > WINDOW_MAX_NS:
        reject("window", f"must be at most {format_duration(WINDOW_MAX_NS)} with {first}")
    v4, v6, _users = per_prefix(settings)
    most_v4, most_v6 = settings["user_prefix"]
    if v4 > most_v4 or v6 > most_v6:
        reject("max_per_prefix", f"its networks are smaller than users; the lengths must be at most"
               f" {most_v4},{most_v6} (--user-prefix)")  # fmt: skip


def shown_age(settings: Settings) -> dict[str, Any]:
    """Returns the age from which a user counts as text."""
    age = settings["min_user_age"]
    return {"min_user_age": None if age is None else format_duration(age)}


def forged_users(settings: Settings) -> dict[str, Any]:
    """Returns the number of invented users that release a name which one real user exposes, and
    the demands of the caps on these users.

    `name` is the number of users, and `label` the number for a label of --levels. `networks` is the
    smallest number of networks that they come from, and `prefixes` has the lengths of these
    networks. `names` is the largest number of names that they release in a window. `age` is the
    time for which each user must be known.
    """
    v4, v6, most = per_prefix(settings)
    needed = settings["z"] - 1
    facts: dict[str, Any] = {"name": needed}
    if settings["levels"]:
        facts["label"] = needed
    if needed and most:
        facts |= {"networks": -(-needed // most), "prefixes": [v4, v6]}
    if needed and settings["max_names_per_user"] is not None:
        facts["names"] = settings["max_names_per_user"]
    if needed and settings["min_user_age"] is not None:
        facts["age"] = format_duration(settings["min_user_age"])
    return facts


def forged_users_text(facts: dict[str, Any]) -> str:
    """Returns the facts of `forged_users` for people."""
    what = "a name, or a label," if "label" in facts else "a name"
    parts = [f"{facts['name']:,} release {what} that one real user exposes"]
    if "networks" in facts:
        v4, v6 = facts["prefixes"]
        parts.append(f"from {facts['networks']:,} networks (/{v4}, /{v6})")
    if "names" in facts:
        parts.append(f"for {facts['names']:,} names in a window")
    if "age" in facts:
        parts.append(f"{facts['age']} after they were first seen")
    return ", ".join(parts)
