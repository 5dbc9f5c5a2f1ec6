# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Views: further outputs of a run's packets, each of which shows no more than the run's own.

A setting contains a view as it is written, NAME:KEY=VALUE,...; `packet_views` parses the text and
checks it against the other settings.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config import presets
from zanon_net.config.parse import UNITS_NS, flag, reject, shown, whole

VIEWS_MAX = 3
Z_MAX = 2**31
CHOICES = {
    "payload": ("cut", "zero", "keep-encrypted"),
    "server_address": ("withheld",),
    "fingerprint": ("drop",),
    "timestamps": ("ns", "us", "ms"),
    "exact": ("no",),
}
"""Settings that a view may change, in addition to z, and their values. By default a view has the
run's."""
KEYS = ("z", *(name.replace("_", "-") for name in CHOICES))
_NAME = r"[a-z0-9-]{1,32}"

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PacketView:
    """A view with all of its settings.

    name: part of the names of its files. The other fields have the meaning of the settings of these
    names.
    """

    name: str
    z: int
    payload: str
    server_address: str
    fingerprint: str
    timestamps: str
    exact: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns the view's settings for the manifest, which has the view by its name."""
        return {
            "z": self.z,
            "payload": self.payload,
            "server_address": self.server_address,
            "fingerprint": self.fingerprint,
            "timestamps": self.timestamps,
            "exact": self.exact,
        }


def read_views(name: str, value: object) -> tuple[str, ...]:
    """Checks the texts of views: each can be parsed, and all names differ."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        reject(name, f"must be texts such as strict:z=50,payload=cut, not {shown(value)}")
    if len(texts) > VIEWS_MAX:
        reject(name, f"there may be {VIEWS_MAX}, not {len(texts)}")
    for view, count in Counter(_parts(name, text)[0] for text in texts).items():
        if count > 1:
            reject(name, f"two views are named {view}")
    return tuple(texts)


def _parts(setting: str, text: str) -> tuple[str, dict[str, str]]:
    """Returns the name of the view, and its values by the settings' names."""
    name, _colon, rest = text.partition(":")
    if not re.fullmatch(_NAME, name):
        reject(
            setting,
            f"{shown(name)} is not a name of a view: 1 to 32 of small letters, digits and -",
        )
    if not rest:
        reject(setting, f"{name} changes nothing; write what it shows less, such as {name}:z=50")
    said: dict[str, str] = {}
    for part in rest.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in KEYS or not equals:
            reject(setting, f"{name}: {shown(part)} is not one of {', '.join(KEYS)} with a value")
        field = key.replace("-", "_")
        if field in said:
            reject(setting, f"{name}: {key} is there twice")
        said[field] = value
    return name, said


def packet_views(settings: Settings) -> tuple[PacketView, ...]:
    """Returns the views of a run. Raises ConfigError if a view would show more than the run's
    packets."""
    texts = settings["view"]
    if texts and not presets.has_packets(settings):
        reject("view", "is for packets; give --format pcap or pcapng")
    return tuple(_view(settings, text) for text in texts)


def _view(settings: Settings, text: str) -> PacketView:
    name, said = _parts("view", text)
    where = f"view: {name}"
    z = whole(f"{where}: z", _number(said.get("z", settings["z"])), settings["z"], Z_MAX)
    choices = {
        field: _chosen(settings, where, field, said[field]) if field in said else settings[field]
        for field in CHOICES
    }
    return PacketView(name, z, **choices)


def _number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else text


def _chosen(settings: Settings, where: str, field: str, value: str) -> Any:
    """Returns the view's value of a setting. Raises ConfigError if it shows more than the run's."""
    key, usual = field.replace("_", "-"), settings[field]
    as_run = ("yes" if usual else "no") if field == "exact" else usual
    if value != as_run and value not in CHOICES[field]:
        reject(where, f"{key}={value} is not for a view; write {' or '.join(CHOICES[field])}")
    if value != as_run and _strength(field, value) < _strength(field, as_run):
        reject(where, f"{key}={value} would show more than the run, which has {as_run}")
    if field == "server_address" and value != as_run and as_run != "tested":
        reject(where, f"{key}={value} is for a run with server-address tested, not {as_run}")
    return flag(where, value) if field == "exact" else value


def _strength(field: str, value: str) -> int:
    """Returns the strength of a view's value of a setting: a greater strength shows less."""
    if field == "timestamps":
        return UNITS_NS[value]
    if field == "exact":
        return int(value == "no")
    return presets.PACKETS[field].strength(value)
