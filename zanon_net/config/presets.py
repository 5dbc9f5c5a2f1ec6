# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Presets of `--for`, one table: what output discloses if it stays inside, goes to partners, or
goes to the public.

A setting of the table that is not set is None until `effective` gives it the preset's value. A
value that is set wins, and `weaker` names it if it discloses more. z is not part of a preset.
"""

from collections.abc import Callable, Mapping
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config.formats import PACKET_FORMATS
from zanon_net.config.parse import UNITS_NS, format_duration

PURPOSES = ("internal", "partner", "public")
PURPOSE = "partner"
"""The default of `--for`."""
MINUTE_ALL = "minute-all"
"""The value of `order` with which no time is finer than a minute."""

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preset:
    """The value of a setting for each purpose, as it is read: a row of the table.

    strength: returns the strength of a value; a smaller strength discloses more.
    """

    internal: Any
    partner: Any
    public: Any
    strength: Callable[[Any], int]

    def value(self, purpose: str) -> Any:
        """Returns the value for a purpose."""
        return {"internal": self.internal, "partner": self.partner, "public": self.public}[purpose]


def _in_order(*words: str) -> Callable[[Any], int]:
    """Returns the strength of words, given weakest first; a colon and the text after it are
    ignored."""
    return lambda value: words.index(value.partition(":")[0])


def _by_length(value: str | int) -> int:
    """Returns the strength of the length to which times are rounded."""
    return value if isinstance(value, int) else 0


def _if_false(value: bool) -> int:
    """Returns the strength of a switch that discloses more when it is on."""
    return int(not value)


PRESETS = {
    "pseudonyms": Preset(
        "networks", "networks", "random", _in_order("crypto-pan", "networks", "random")
    ),
    "dns_votes": Preset("own", "own", "no", _in_order("all", "own", "no")),
    "exact": Preset(False, False, False, _if_false),
    "coarse_end": Preset("floored", "none", "none", _in_order("floored", "none")),
    "coarse_steps": Preset("sqrt2", "4", "16", _in_order("sqrt2", "4", "16")),
    "coarse_client": Preset("pseudonym", "none", "none", _in_order("pseudonym", "none")),
    "order": Preset("minute", "minute", MINUTE_ALL, _in_order("closing", "minute", MINUTE_ALL)),
    "times": Preset("exact", "exact", UNITS_NS["m"], _by_length),
    "sizes": Preset("exact", "exact", "2", _in_order("exact", "2")),
}
"""Rows about records, by the settings' names."""

PACKETS = {
    "payload": Preset("zero", "zero", "zero", _in_order("keep-encrypted", "zero", "cut")),
    "packet_addresses": Preset("blocks", "blocks", "blocks", _in_order("wide", "blocks")),
    "server_address": Preset(
        "tested", "tested", "tested", _in_order("linkable", "tested", "withheld")
    ),
    "tcp_timestamps": Preset("drop", "drop", "drop", _in_order("keep", "offset", "drop")),
    "ttl": Preset("class", "class", "class", _in_order("keep", "class")),
    "encapsulation": Preset("strip", "strip", "strip", _in_order("keep", "strip")),
    "fingerprint": Preset("tested", "tested", "tested", _in_order("keep", "tested", "drop")),
    "suppressed": Preset("drop", "drop", "drop", _in_order("coarse", "drop")),
}
"""Rows about packets: the defaults of settings that a run without packets does not use."""


def has_packets(settings: Settings) -> bool:
    """Returns true if a format of the output is a format of packets."""
    return any(name in PACKET_FORMATS for name in settings["format"])


def effective(settings: Settings) -> dict[str, Any]:
    """Returns the settings; values that are not set are taken from the preset."""
    purpose = settings["purpose"]
    found = {
        name: PRESETS[name].value(purpose) if name in PRESETS and value is None else value
        for name, value in settings.items()
    }
    if found["order"] == MINUTE_ALL:
        found["times"] = max(_by_length(found["times"]), UNITS_NS["m"])
    return found


def weaker(settings: Settings) -> list[str]:
    """Returns the names of the settings that disclose more than the preset does."""
    found, purpose = effective(settings), settings["purpose"]
    presets = PRESETS | (PACKETS if has_packets(settings) else {})
    return [
        name
        for name, preset in presets.items()
        if preset.strength(found[name]) < preset.strength(preset.value(purpose))
    ]


def written(value: str | int) -> str:
    """Returns a value as people write it."""
    return value if isinstance(value, str) else format_duration(value)


def usual(name: str) -> str:
    """Returns the default of a setting for people: the values for each purpose."""
    preset = PRESETS[name]
    usually = preset.value(PURPOSE)
    others = [
        f"{written(preset.value(purpose))} for {purpose}"
        for purpose in PURPOSES
        if preset.value(purpose) != usually
    ]
    return "; ".join([written(usually), *others])
