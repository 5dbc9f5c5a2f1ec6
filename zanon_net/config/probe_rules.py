# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules of the settings of a probe, for its rows of the schema."""

from typing import Any

from zanon_net.config import presets
from zanon_net.config.parse import format_duration, reject
from zanon_net.config.rules import Settings, follows_stream, rotate_ns

MODES = ("ask", "sealed", "threshold")
THRESHOLD_Z_MAX = 1024
TLS_FILES = ("count_tls_cert", "count_tls_key", "count_tls_ca")


def check_counter(settings: Settings) -> dict[str, Any]:
    """Checks that a probe has a name and a counter, and that tls:// alone has the three TLS
    files."""
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


def reject_counter(count_at: str | None) -> None:
    """Raises ConfigError if a counter is set, for engines that are not connected with a counter."""
    if count_at is not None:
        reject("count_at", "only a whole run uses a counter; leave out count_at and probe")


def check_mode(settings: Settings) -> dict[str, Any]:
    """Checks that a mode has a counter, and that sealed has a reader."""
    mode, reader = settings["count_mode"] or "ask", settings["reader_key"]
    if mode != "ask" and settings["count_at"] is None:
        reject("count_mode", f"is {mode}, which needs a counter; give --count-at, too")
    if mode == "sealed" and reader is None:
        reject("reader_key", "is missing; sealed needs the public key of a reader")
    if mode != "sealed" and reader is not None:
        reject("reader_key", "is for --count-mode sealed; leave it out")
    return {"count_mode": mode}


def check_rotation(settings: Settings) -> dict[str, Any]:
    """Checks that only hashes for a counter have generations."""
    if settings["count_rotate"] is not None and settings["count_at"] is None:
        reject("count_rotate", "is for hashes that a counter gets; give --count-at, too")
    return {}


def check_generations(settings: Settings) -> None:
    """Checks the length of a generation: a vote that counts in two generations never counts in a
    third."""
    window, length = settings["window"], settings["count_rotate"]
    least = window + 2 * rotate_ns(settings)
    if length is not None and length < least:
        reject("count_rotate", f"must be at least {format_duration(least)}, a window and two epochs"
               " (--window, --rotate)")  # fmt: skip


def check_probe(settings: Settings) -> None:
    """Checks that a probe, or a shard, needs no counts, and that its records can wait for an
    answer."""
    shards = settings.get("shards", 1)
    if settings["count_at"] is None and shards == 1:
        return
    name = "count_at" if shards == 1 else "shards"
    if settings["key_file"] is None:
        who = "probes" if shards == 1 else "shards"
        reject(name, f"all {who} need the same key; give it with key_file (--key-file)")
    if settings["z"] == 1:
        reject("z", f"is 1: every name is released, so there is nothing to count; leave out {name}")
    if follows_stream(settings):
        reject("target_p", "needs counts, which a counter discloses to no probe; give a fixed z")
    if settings["popularity"] is not None:
        reject("popularity", "needs counts, which a counter discloses to no probe; leave it out")
    if presets.has_packets(settings):
        reject("format", f"packets cannot wait for a counter; write logs, or leave out {name}")
    if shards > 1:
        check_shards(settings)
    check_rows(settings)
    check_generations(settings)


def check_shards(settings: Settings) -> None:
    """Checks that the shards of a run have no counter besides their own, and that no setting is
    for a run in one process."""
    if settings["count_at"] is not None:
        reject("shards", "the run has a counter of its own; leave out count_at")
    if settings["metrics_file"] is not None:
        reject("metrics_file", "is of a run in one process; give metrics with shards")
    if settings["on_lost"] == "wait":
        reject("on_lost", "wait is for a run in one process; use fail or end with shards")


def check_rows(settings: Settings) -> None:
    """Checks rows that go with their votes: they do not wait for their minute, and z is bounded."""
    if settings["count_mode"] == "ask":
        return
    if settings["order"] == "minute-all":
        reject("count_mode", "is not ask: rows then do not wait for the end of their minute, as"
               " --order minute-all (--for public) promises")  # fmt: skip
    if settings["count_mode"] == "threshold" and settings["z"] > THRESHOLD_Z_MAX:
        reject("z", f"must be at most {THRESHOLD_Z_MAX} with --count-mode threshold")


def core_rows(settings: Settings) -> bool:
    """Returns true if rows go with votes."""
    return bool(settings["count_mode"] != "ask")


def shown_mode(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for the mode; empty without a counter."""
    return {} if settings["count_at"] is None else {"count_mode": settings["count_mode"]}


def shown_epochs(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for overlapping epochs; empty if no shares are made."""
    if settings["count_mode"] != "threshold":
        return {}
    return {"threshold_epochs": settings["threshold_epochs"]}


def shown_rotation(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for the length of a generation; empty if there are no
    generations."""
    length = settings["count_rotate"]
    return {} if length is None else {"count_rotate": format_duration(length)}


def core_probe(settings: Settings) -> str | None:
    """Returns the probe's name; None if the run counts alone."""
    name: str | None = settings["probe"]
    return name
