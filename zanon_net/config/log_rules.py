# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the filter's settings about logs of other tools; `rules` has the rules of all others."""

from collections.abc import Mapping
from typing import Any

from zanon_net.config import rules
from zanon_net.config.parse import reject
from zanon_net.config.rules import Settings

PRESETS = (
    "zeek-conn",
    "zeek-dns",
    "zeek-ssl",
    "zeek-http",
    "zeek-quic",
    "suricata-eve",
    "nfstream",
    "tstat",
    "dnstap",
    "bind",
    "unbound",
)
"""Presets in the order of csrc/rows/log_presets.c."""

WITHOUT_PRESET = {
    "time": "time",
    "user": "user",
    "attribute": "attribute",
    "passed": (),
    "levels": None,
    "format": "auto",
    "to": "auto",
    "delimiter": ",",
    "quote": None,
    "null": (),
    "header": "",
    "popularity": None,
}
"""Settings that a preset replaces, and their defaults."""
WITH_PRESET = {"evidence": "established", "internal": None, "user_prefix": (32, 56)}
"""Settings that apply only with a preset, and their defaults."""


def check_preset(settings: Settings) -> dict[str, Any]:
    """Checks that no setting contradicts the preset, or needs one."""
    has_preset = settings["preset"] is not None
    for name, usual in (WITHOUT_PRESET if has_preset else WITH_PRESET).items():
        value = settings[name]
        if value == usual or (name == "passed" and not value):
            continue
        label = "pass" if name == "passed" else name
        if has_preset:
            reject(label, f"--preset {settings['preset']} fixes this; leave it out")
        reject(label, "is for logs of other tools; choose one with --preset")
    return {}


def core_preset(settings: Settings) -> int:
    """Returns 1 and the index of the preset; 0: none."""
    return 0 if settings["preset"] is None else 1 + PRESETS.index(settings["preset"])


def core_nulls(settings: Settings) -> list[bytes]:
    """Returns the texts that mean no value as bytes."""
    return [text.encode() for text in settings["null"]]


def shown_evidence(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `evidence`; empty without a preset."""
    return {"evidence": settings["evidence"]} if settings["preset"] else {}


def shown_internal(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `internal`; empty without a preset."""
    return rules.shown_internal(settings) if settings["preset"] else {}


def shown_user_prefix(settings: Settings) -> Mapping[str, Any]:
    """Returns the manifest's entry for `user_prefix`; empty without a preset."""
    return {"user_prefix": list(settings["user_prefix"])} if settings["preset"] else {}
