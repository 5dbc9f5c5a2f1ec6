# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the settings of `count`."""

from collections.abc import Mapping
from typing import Any

from zanon_net.config.parse import as_int, reject
from zanon_net.config.probe_rules import THRESHOLD_Z_MAX, check_generations

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


def check_rotation(settings: Settings) -> dict[str, Any]:
    """Generations are long enough."""
    check_generations(settings)
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


def check_mode(settings: Settings) -> dict[str, Any]:
    """Each mode beyond `ask` has its folder, and no other one."""
    folders = {"sealed": "sealed_out", "threshold": "observations_out"}
    for mode, name in folders.items():
        if settings["mode"] == mode and settings[name] is None:
            reject(name, f"is missing; --mode {mode} needs a folder for what is released")
        if settings["mode"] != mode and settings[name] is not None:
            reject(name, f"is for --mode {mode}; leave it out, or give that")
    if settings["mode"] == "threshold" and settings["z"] > THRESHOLD_Z_MAX:
        reject("z", f"must be at most {THRESHOLD_Z_MAX} with --mode threshold")
    return {}
