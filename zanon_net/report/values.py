# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Values of a manifest, and their texts. No text has an address."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zanon_net._text import NS_PER_S, iso_time, printable

Manifest = Mapping[str, Any]
_ADDRESS = re.compile(r"[0-9A-Fa-f.:]{3,}")


def number(value: object) -> int:
    """Returns a count of a manifest. Raises ValueError for another value."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError("no count")
    return value


def clean(text: str, length: int) -> str:
    """Returns a text that a terminal can print, without addresses, cut at `length` characters."""
    text = _ADDRESS.sub(_hidden, printable(" ".join(text.split())))
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _hidden(match: "re.Match[str]") -> str:
    word = match[0]
    for trimmed in (word, word.rstrip(".:")):
        if is_address(trimmed):
            return "(address)" + word[len(trimmed) :]
    return word


def is_address(text: str) -> bool:
    """Returns true if a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def times_of(manifest: Manifest) -> tuple[int, int] | None:
    """Returns the times of the first and last packet, ns since the Unix epoch."""
    if manifest["time_range"] is None:
        return None
    first, last = (number(manifest["time_range"][f"{end}_ns"]) for end in ("first", "last"))
    return first, max(first, last)


def decided_of(manifest: Manifest) -> tuple[int, int]:
    """Returns the names that were released, and all names that were decided."""
    decisions = manifest["decisions"]
    released = number(decisions["released"])
    generalized = number(decisions.get("generalized", 0))
    return released, released + generalized + sum(map(number, decisions["suppressed"].values()))


def z_range(manifest: Manifest) -> tuple[int, int]:
    """Returns the lowest and the highest z of the run."""
    values = [
        number(manifest["configuration"]["anonymity"]["z"]),
        *(number(change["new"]) for change in manifest.get("z_changes", ())),
    ]
    return min(values), max(values)


def window_of(manifest: Manifest) -> str:
    """Returns the time for which an exposure counts, as the setting has it."""
    return clean(str(manifest["configuration"]["anonymity"]["window"]), 20)


def duration(ns: int) -> str:
    """Returns a length of time with one or two units."""
    seconds = ns / NS_PER_S
    for unit, of_it in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= of_it:
            n = round(seconds / of_it, 1)
            return f"{n:,g} {unit}" if n == 1 else f"{n:,.4g} {unit}s"
    return f"{round(seconds, 1):g} s"


def clock(starts: Sequence[int]) -> Callable[[int], str]:
    """Returns a function that formats times, as short as the times in a list permit."""
    texts = [iso_time(start) for start in starts]
    if texts[0][:10] == texts[-1][:10]:
        return lambda t_ns: iso_time(t_ns)[11:16]
    if all(text[11:16] == "00:00" for text in texts):
        return lambda t_ns: iso_time(t_ns)[:10]
    return lambda t_ns: iso_time(t_ns)[5:16].replace("T", " ")
