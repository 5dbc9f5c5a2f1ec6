# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the settings of a probe, for its rows of the schema."""

from typing import Any

from zanon_net.config import presets
from zanon_net.config.parse import reject
from zanon_net.config.rules import Settings, follows_stream

TLS_FILES = ("count_tls_cert", "count_tls_key", "count_tls_ca")


def check_counter(settings: Settings) -> dict[str, Any]:
    """A probe has a name and a counter; TLS has its three files, and nothing else has any."""
    place = settings["count_at"]
    if (place is None) != (settings["probe"] is None):
        missing, there = ("probe", "count-at") if place else ("count_at", "probe")
        reject(missing, f"is missing; --{there} needs --{missing.replace('_', '-')}, too")
    is_tls = place is not None and place.startswith("tls:")
    for name in TLS_FILES:
        if is_tls and settings[name] is None:
            reject(name, "is missing; tls:// needs the certificate, its key and the authority")
        if not is_tls and settings[name] is not None:
            reject(name, "is for a counter at tls://HOST:PORT; leave it out")
    return {}


def check_probe(settings: Settings) -> None:
    """A probe knows no counts, and what waits for an answer is no packet."""
    if settings["count_at"] is None:
        return
    if settings["key_file"] is None:
        reject("count_at", "all probes need the same key; give it with key_file (--key-file)")
    if settings["z"] == 1:
        reject(
            "z", "is 1: every name is released, so there is nothing to count; leave out count_at"
        )
    if follows_stream(settings):
        reject("target_p", "needs counts, which a counter tells no probe; give a fixed z")
    if settings["popularity"] is not None:
        reject("popularity", "needs counts, which a counter tells no probe; leave it out")
    if presets.has_packets(settings):
        reject("format", "packets cannot wait for a counter; write logs, or leave out count_at")


def core_probe(settings: Settings) -> str | None:
    """The probe's name; None: the run counts by itself."""
    name: str | None = settings["probe"]
    return name
