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
    """Reads a number of shards."""
    number = as_int(value)
    if number is None or not 1 <= number <= 256 or number & (number - 1):
        reject(name, "must be a power of two from 1 to 256")
    return number


def check_tls(settings: Settings) -> dict[str, Any]:
    """Checks that a certificate, its key and an authority are given together."""
    missing = [name for name in TLS if settings[name] is None]
    if 0 < len(missing) < len(TLS):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        reject(missing[0], f"mutual TLS needs all three files; give {options}, too")
    return {}


def check_rotation(settings: Settings) -> dict[str, Any]:
    """Checks that a generation of hash keys lasts long enough."""
    check_generations(settings)
    return {}


def check_state(settings: Settings) -> dict[str, Any]:
    """Checks that the state has a key: state is always sealed."""
    if settings["state"] is not None and settings["state_key_file"] is None:
        reject("state_key_file", "state is sealed; make a key with 'zanon-net key new' and give it")
    if settings["state"] is None and settings["state_key_file"] is not None:
        reject("state", "is missing; give the folder, or leave out --state-key-file")
    return {}


def check_until_done(settings: Settings) -> dict[str, Any]:
    """Checks that --until-done knows how many probes have to end."""
    if settings["until_done"] and not settings["expect_probes"]:
        reject("until_done", "needs the number of probes that will end; give --expect-probes, too")
    return {}


def check_mode(settings: Settings) -> dict[str, Any]:
    """Checks that each mode other than `ask` has its folder, and no mode has another mode's
    folder."""
    folders = {"sealed": "sealed_out", "threshold": "observations_out"}
    for mode, name in folders.items():
        if settings["mode"] == mode and settings[name] is None:
            reject(name, f"is missing; --mode {mode} needs a folder for its rows")
        if settings["mode"] != mode and settings[name] is not None:
            reject(name, f"is for --mode {mode}; leave it out, or choose that mode")
    if settings["mode"] == "threshold" and settings["z"] > THRESHOLD_Z_MAX:
        reject("z", f"must be at most {THRESHOLD_Z_MAX} with --mode threshold")
    return {}
