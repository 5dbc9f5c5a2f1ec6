# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of a release from its files alone: opens, measures, judges."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from zanon_net._text import time_range
from zanon_net.audit import inference, information, linking, singling
from zanon_net.audit.advice import advice_of
from zanon_net.audit.categories import load_categories, read_categories
from zanon_net.audit.database import Database
from zanon_net.audit.packet_release import are_captures, audit_packets
from zanon_net.audit.promised import checked_promise, promise_parts, wanted_names, write_details
from zanon_net.audit.records import UNREAD, load
from zanon_net.audit.release import Given, Release, open_release, refuse_ephemeral
from zanon_net.audit.result import UNWANTED, Metric, Report
from zanon_net.audit.subject import FEWEST, Measure, Subject
from zanon_net.audit.tables import audit_table
from zanon_net.audit.thresholds import ROWS, absent, unknown
from zanon_net.config.audit_rows import CHECKS
from zanon_net.config.parse import format_size
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import read_settings
from zanon_net.errors import ConfigError, FormatError

MEASURES: dict[Measure, tuple[str, ...]] = {
    singling.equal_sets: ("k", "prosecutor", "marketer"),
    singling.unicity: ("unicity",),
    singling.reid: ("reid",),
    singling.operator: ("operator",),
    linking.link: ("link", "k_windows"),
    linking.bits: ("bits",),
    linking.compose: ("compose",),
    inference.suppressed: ("suppressed",),
    inference.disclosure: ("disclosure",),
    inference.sensitive: ("sensitive",),
    inference.order: ("order",),
    information.entropy: ("entropy",),
}
"""The functions that measure, each with the names of its metrics."""
WITHOUT_PSEUDONYMS = ("compose", "suppressed", "order")
"""Metrics that need no pseudonym."""
LEAST_MEMORY = 192 << 20
"""Memory of the audit's modules and of an empty database."""
WORD = re.compile(r"[a-z][a-z0-9_:,-]{0,31}")
"""Texts of a manifest that may be in a report."""

TYPE_CHECKING = False  # typing's own, without the time of importing typing
if TYPE_CHECKING:
    from zanon_net.audit.undo import Addresses

Logs = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def audit(logs: Logs, *, purpose: str | None = None, **settings: Any) -> Report:
    """Measures what an attacker can still do with a release, and checks its promise.

    logs: one or more output folders of `run` or `filter`, which are one release; or captures of
        anonymized packets, with raw; or a table, with quasi.
    purpose: recipient: internal, partner or public. None: as the manifest states.
    settings: as the options of `zanon-net audit`: sensitive, raw, key_file, never, lists, details,
        z, window, rotate, internal, check, skip, quasi, sensitive_columns, memory and workers.

    Raises UnopenedError, FormatError and ConfigError for logs and settings that cannot be audited,
    CapacityError if the memory does not suffice, MissingExtraError without DuckDB or SciPy.
    """
    rows = rows_of("audit")
    written = {row.name: row.default for row in rows} | settings | {"purpose": purpose}
    chosen = read_settings(rows, written)
    if chosen["memory"] < LEAST_MEMORY:
        raise ConfigError(f"memory: must be at least {format_size(LEAST_MEMORY)}")
    given = Given(
        z=chosen["z"],
        window_ns=chosen["window"],
        rotate_ns=chosen["rotate"],
        internal=chosen["internal"],
    )
    if are_captures(listed(logs)):
        return audit_packets(listed(logs), chosen)
    if chosen["quasi"]:
        return _audit_table(listed(logs), chosen)
    if chosen["sensitive_columns"]:
        raise ConfigError("sensitive_columns: is for a table; give quasi, too")
    if not wanted_names([*ROWS, *CHECKS], chosen):
        raise ConfigError("check: --check and --skip leave nothing to audit")
    path = chosen["sensitive"]
    categories = None if path is None else read_categories(Path(path))
    release = open_release(listed(logs), given)
    if chosen["key_file"] is not None:
        refuse_ephemeral(release)
    promise = checked_promise(release, chosen)
    promised = promise_parts(promise, release, wanted_names(CHECKS, chosen))
    try:
        report = _report(release, chosen, categories, promised)
    except FormatError:
        if promise is None or not promise.findings:
            raise
        empty = [replace(folder, files=[], others=[]) for folder in release.folders]
        promised["left_out"].append(("risks", "a file of the release is damaged"))
        report = _report(replace(release, folders=empty), chosen, categories, promised)
    if promise is not None and chosen["details"] is not None:
        write_details(Path(chosen["details"]), promise)
    return report


def _report(
    release: Release,
    chosen: Mapping[str, Any],
    categories: dict[str, str] | None,
    promised: Mapping[str, Any],
) -> Report:
    """Measures the risks, and returns them with the state of the promise."""
    wanted = wanted_names(list(ROWS), chosen)
    addresses = _addresses(release, chosen) if "link" in wanted else None
    recipient = chosen["purpose"] or release.purpose
    unwanted = [(name, UNWANTED) for name in ROWS if name not in wanted]
    with _opened(chosen["memory"], chosen["workers"]) as database:
        kinds = {folder.pseudonyms for folder in release.folders}
        load(
            database,
            release,
            with_names=categories is not None,
            with_clients=addresses is not None or ("bits" in wanted and "crypto-pan" in kinds),
        )
        if categories is not None:
            load_categories(database, categories)
        subject = Subject(
            database,
            release,
            recipient,
            has_categories=categories is not None,
            addresses=addresses,
        )
        metrics = _measured(subject, wanted)
        return Report(
            purpose=recipient,
            promise=promised["promise"],
            facts=_facts(subject),
            metrics=metrics,
            violations=promised["violations"],
            advice=advice_of(subject, metrics),
            left_out=[*promised["left_out"], *unwanted],
            notes=promised["notes"],
        )


def _addresses(release: Release, chosen: Mapping[str, Any]) -> "Addresses | None":
    """Returns the addresses behind the pseudonyms if there is a key file."""
    if chosen["key_file"] is None:
        return None
    from zanon_net.audit.undo import addresses_of

    return addresses_of(release, Path(chosen["key_file"]))


def _audit_table(paths: Sequence[Path], chosen: Mapping[str, Any]) -> Report:
    if len(paths) != 1:
        raise ConfigError("quasi: is for one table; give one file")
    of_logs = (
        *("sensitive", "z", "window", "rotate", "internal", "check", "skip"),
        *("raw", "key_file", "never", "details"),
    )
    for name in of_logs:
        if chosen[name] not in (None, ()):
            raise ConfigError(f"{name}: is for logs, not for a table; leave it out")
    return audit_table(
        paths[0],
        quasi=chosen["quasi"],
        sensitive=chosen["sensitive_columns"],
        purpose=chosen["purpose"],
        memory=chosen["memory"],
        workers=chosen["workers"],
    )


def listed(logs: Logs) -> list[Path]:
    """Returns the paths of logs."""
    paths = [logs] if isinstance(logs, str | os.PathLike) else logs
    return [Path(path) for path in paths]


@contextmanager
def _opened(memory_bytes: int, threads: int) -> Iterator[Database]:
    database = Database(memory_bytes, threads)
    try:
        yield database
    finally:
        database.close()


def _measured(subject: Subject, wanted: Sequence[str]) -> list[Metric]:
    found: dict[str, Metric] = {}
    for measure, names in MEASURES.items():
        if any(name in wanted for name in names):
            measured = _refused(subject, names) or measure(subject)
            found |= {metric.name: metric for metric in measured}
    return [found[name] for name in wanted]


def _refused(subject: Subject, names: Sequence[str]) -> list[Metric]:
    """Returns the metrics as unknown if the log has too few pseudonyms for a figure."""
    if all(name in WITHOUT_PSEUDONYMS for name in names):
        return []
    if subject.pseudonyms == 0:
        return [absent(name, "no record names a client") for name in names]
    if subject.pseudonyms < FEWEST:
        return [
            unknown(name, subject.purpose, f"too few pseudonyms for a risk figure, under {FEWEST}")
            for name in names
        ]
    return []


def _facts(subject: Subject) -> dict[str, Any]:
    """Returns what is in the release, in counts and settings."""
    release, database = subject.release, subject.database
    count, coarse, unread, named, first, last = database.rows(
        "SELECT count(*), count(*) FILTER (coarse), count(*) FILTER (status = ?), count(name),"
        " min(start_us), max(end_us) FROM records",
        [UNREAD],
    )[0]
    names = database.value("SELECT count(DISTINCT name) FROM records")
    keys: dict[str, Callable[[Any], Any]] = {
        "evidence": lambda folder: folder.setting("anonymity", "evidence"),
        "key_mode": lambda folder: (
            folder.setting("addresses", "key_mode") or folder.setting("key_mode")
        ),
        "pseudonym_kind": lambda folder: folder.pseudonyms,
        "made_for": lambda folder: folder.setting("output", "for"),
        "exact": lambda folder: bool(folder.setting("anonymity", "exact")),
        "weaker_than_preset": lambda folder: (folder.manifest.get("weaker_than") or {}).get(
            "options"
        ),
    }
    states = {
        name: [_word(state(folder)) for folder in release.folders] for name, state in keys.items()
    }
    return {
        "folders": len(release.folders),
        "files": sum(len(folder.files) for folder in release.folders),
        "formats": sorted({file.form for folder in release.folders for file in folder.files}),
        "time_range": None if not count else time_range((int(first) * 1000, int(last) * 1000)),
        "records": int(count),
        "records_with_a_name": int(named),
        "coarse_records": int(coarse),
        "unread_records": int(unread),
        "names": int(names),
        "attributes": sorted(_attributes(release)),
        "pseudonyms": subject.pseudonyms,
        "epochs": subject.epochs,
        "z": release.z,
        "window_ns": release.window_ns,
        "rotate_ns": release.rotate_ns,
        **{name: _one(values) for name, values in states.items()},
    }


def _attributes(release: Release) -> set[str]:
    """Returns the attributes besides names that manifests state."""
    stated = [folder.attributes for folder in release.folders if folder.manifest]
    return {word for words in stated for word in words if WORD.fullmatch(word)}


def _word(value: Any) -> Any:
    """Returns a word of a manifest, or a list of words; None for other texts, which may be data."""
    if isinstance(value, list):
        return [_word(one) for one in value]
    is_safe = isinstance(value, bool) or (isinstance(value, str) and WORD.fullmatch(value))
    return value if is_safe else None


def _one(values: Sequence[Any]) -> Any:
    """Returns the value that all folders share, else the list of values."""
    return values[0] if all(value == values[0] for value in values) else list(values)
