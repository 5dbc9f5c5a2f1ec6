# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the settings of a probe, for its rows of the schema."""

from typing import Any

from zanon_net.config import presets
from zanon_net.config.parse import format_duration, reject
from zanon_net.config.rules import Settings, follows_stream, rotate_ns

MODES = ("ask", "sealed", "threshold")
THRESHOLD_Z_MAX = 1024
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


def check_mode(settings: Settings) -> dict[str, Any]:
    """A mode needs a counter, and sealed a reader."""
    mode, reader = settings["count_mode"] or "ask", settings["reader_key"]
    if mode != "ask" and settings["count_at"] is None:
        reject("count_mode", f"is {mode}, which needs a counter; give --count-at, too")
    if mode == "sealed" and reader is None:
        reject("reader_key", "is missing; sealed needs the public key of a reader")
    if mode != "sealed" and reader is not None:
        reject("reader_key", "is for --count-mode sealed; leave it out")
    return {"count_mode": mode}


def check_rotation(settings: Settings) -> dict[str, Any]:
    """Only what goes to a counter has generations."""
    if settings["count_rotate"] is not None and settings["count_at"] is None:
        reject("count_rotate", "is for hashes that a counter gets; give --count-at, too")
    return {}


def check_generations(settings: Settings) -> None:
    """A generation is so long that what counts in two of them never counts in a third."""
    window, length = settings["window"], settings["count_rotate"]
    least = window + 2 * rotate_ns(settings)
    if length is not None and length < least:
        reject("count_rotate", f"must be at least {format_duration(least)}, a window and two epochs"
               " (--window, --rotate)")  # fmt: skip


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
    check_rows(settings)
    check_generations(settings)


def check_rows(settings: Settings) -> None:
    """Rows go with their votes, and wait for no minute to end; shares are at most so many."""
    if settings["count_mode"] == "ask":
        return
    if settings["order"] == "minute-all":
        reject("count_mode", "is not ask: rows then do not wait for the end of their minute, as"
               " --order minute-all (--for public) promises")  # fmt: skip
    if settings["count_mode"] == "threshold" and settings["z"] > THRESHOLD_Z_MAX:
        reject("z", f"must be at most {THRESHOLD_Z_MAX} with --count-mode threshold")


def core_rows(settings: Settings) -> bool:
    """Whether rows go with votes."""
    return bool(settings["count_mode"] != "ask")


def shown_mode(settings: Settings) -> dict[str, Any]:
    """The mode, of a probe."""
    return {} if settings["count_at"] is None else {"count_mode": settings["count_mode"]}


def shown_epochs(settings: Settings) -> dict[str, Any]:
    """How many epochs overlap, where shares are made."""
    if settings["count_mode"] != "threshold":
        return {}
    return {"threshold_epochs": settings["threshold_epochs"]}


def shown_rotation(settings: Settings) -> dict[str, Any]:
    """The length of a generation, where there are some."""
    length = settings["count_rotate"]
    return {} if length is None else {"count_rotate": format_duration(length)}


def core_probe(settings: Settings) -> str | None:
    """The probe's name; None: the run counts by itself."""
    name: str | None = settings["probe"]
    return name
