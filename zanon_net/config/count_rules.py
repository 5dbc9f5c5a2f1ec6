# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the settings of `count`."""

from collections.abc import Mapping
from typing import Any

from zanon_net.config.parse import as_int, reject

Settings = Mapping[str, Any]
TLS = ("tls_cert", "tls_key", "tls_ca")


def power_of_two(name: str, value: object) -> int:
    """A number of shards."""
    number = as_int(value)
    if number is None or not 1 <= number <= 256 or number & (number - 1):
        reject(name, "must be a power of two from 1 to 256")
    return number


def check_tls(settings: Settings) -> dict[str, Any]:
    """A certificate, its key and an authority come together."""
    missing = [name for name in TLS if settings[name] is None]
    if 0 < len(missing) < len(TLS):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        reject(missing[0], f"mutual TLS needs all three files; give {options}, too")
    return {}


def check_state(settings: Settings) -> dict[str, Any]:
    """State is sealed, always."""
    if settings["state"] is not None and settings["state_key_file"] is None:
        reject("state_key_file", "state is sealed; make a key with 'zanon-net key new' and give it")
    if settings["state"] is None and settings["state_key_file"] is not None:
        reject("state", "is what the key seals; give its folder, or leave out --state-key-file")
    return {}


def check_until_done(settings: Settings) -> dict[str, Any]:
    """The end of all has to be known."""
    if settings["until_done"] and not settings["expect_probes"]:
        reject("until_done", "needs the number of probes that will end; give --expect-probes, too")
    return {}
