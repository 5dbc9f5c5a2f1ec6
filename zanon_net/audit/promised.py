# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The promise in the report: checked against the raw data if there is any."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net.audit.release import Release
from zanon_net.audit.result import UNWANTED, Violation
from zanon_net.config.audit_rows import CHECKS
from zanon_net.errors import ConfigError
from zanon_net.output.new_file import PRIVATE, refuse_existing, write_files

TYPE_CHECKING = False  # typing's own, without the time of importing typing
if TYPE_CHECKING:
    from zanon_net.audit.raw.promise import Promise

NOT_CHECKED = "these checks need the raw traffic"


def checked_promise(release: Release, chosen: Mapping[str, Any]) -> "Promise | None":
    """Checks the promise against the raw data; None: no raw data is given."""
    if not chosen["raw"]:
        for name, label in (("details", "details"), ("never", "never"), ("lists", "list")):
            if chosen[name]:
                raise ConfigError(f"{label}: it needs raw, the captures or rows that the run read")
        return None
    from zanon_net.audit.raw.promise import check_promise

    if chosen["details"] is not None:
        refuse_existing(chosen["details"])
    return check_promise(
        [(folder.path, folder.manifest) for folder in release.folders],
        [Path(source) for source in chosen["raw"]],
        internal=chosen["internal"],
        never=chosen["never"],
        lists=[Path(file) for file in chosen["lists"]],
        key_file=None if chosen["key_file"] is None else Path(chosen["key_file"]),
        memory=chosen["memory"],
        workers=chosen["workers"],
        checks=wanted_names(CHECKS, chosen),
    )


def write_details(path: Path, promise: "Promise") -> None:
    """Writes the findings with their names and addresses, for the operator only."""
    lines = []
    for one in [*promise.findings, *promise.unproven]:
        line = {name: getattr(one, name) for name in one.__slots__}
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")
    write_files({path: "".join(lines).encode("ascii")}, {path: PRIVATE})


def promise_parts(
    promise: "Promise | None", release: Release, checks: Sequence[str]
) -> dict[str, Any]:
    """Returns the parts of the report about the promise."""
    if promise is None:
        left_out = [("promise", f"{', '.join(checks)}: {NOT_CHECKED}")]
        notes = list(release.notes)
        return {
            "promise": "not checked",
            "violations": [],
            "left_out": left_out,
            "notes": notes,
        }
    return {
        "promise": promise.state,
        "violations": violations_of(promise),
        "left_out": [
            *promise.left_out,
            *((name, UNWANTED) for name in CHECKS if name not in checks),
        ],
        "notes": [*release.notes, *promise.notes, *doubts_of(promise)],
    }


def doubts_of(promise: "Promise") -> list[str]:
    """Returns a sentence if the promise counts as broken only because of unproven values."""
    if promise.findings or not promise.has_doubts:
        return []
    doubts = (
        "No place breaks the promise for certain. It counts as broken because the audit could not"
        " confirm more than 0.1 % of the shown values."
    )
    return [doubts]


def violations_of(promise: "Promise") -> list[Violation]:
    """Returns the places that break the promise, without names and addresses."""
    broken = [*promise.findings, *(promise.unproven if promise.has_doubts else ())]
    return [
        Violation(
            check=one.check,
            file=one.file,
            row=one.row,
            column=one.column,
            measured=one.measured,
            needed=one.needed,
        )
        for one in broken
    ]


def wanted_names(names: Sequence[str], chosen: Mapping[str, Any]) -> list[str]:
    """Returns the names, of metrics or of checks, that --check and --skip leave."""
    check, skip = chosen["check"], chosen["skip"]
    return [name for name in names if (not check or name in check) and name not in skip]
