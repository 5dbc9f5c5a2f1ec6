# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The promise of all folders of a release, checked as far as captures can show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zanon_net.audit.raw.check import CHECKS, UNPROVEN_MOST, check_files, read_captures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_check import check_rows
from zanon_net.errors import ConfigError, FormatError

RUN, FILTER = "zanon-net", "zanon-net filter"
DAMAGED = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""Errors in reading the settings of a manifest whose values are of other types."""


@dataclass(slots=True)
class Promise:
    """Result of the raw mode for all folders.

    findings: places that break the promise. unproven: places that the audit could not confirm.
    """

    findings: list[Finding] = field(default_factory=list)
    unproven: list[Finding] = field(default_factory=list)
    claims: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """The word of the report: kept or broken."""
        return "broken" if self.findings or self.has_doubts else "kept"

    @property
    def has_doubts(self) -> bool:
        """True if more of the release is unproven than may be."""
        return len(self.unproven) > UNPROVEN_MOST * self.claims


def check_promise(
    folders: Sequence[tuple[Path, Mapping[str, Any]]],
    sources: Sequence[Path],
    *,
    internal: Sequence[str] | None = None,
    never: Sequence[str] = (),
    lists: Sequence[Path] = (),
    key_file: Path | None = None,
    memory: int = 2 << 30,
    workers: int = 1,
    checks: Sequence[str] = CHECKS,
) -> Promise:
    """Checks each folder, with its manifest, against the captures of its run.

    internal, lists, key_file: for folders of `run` only.

    Raises ConfigError for captures of another run and for settings that a folder does not use,
    FormatError for a folder that cannot be checked.
    """
    promise = Promise()
    for folder, manifest in folders:
        try:
            if manifest.get("name") == FILTER:
                if internal is not None or lists:
                    label = "list" if lists else "internal"
                    raise ConfigError(f"{label}: it is for captures; {folder} has rows of filter")
                add_rows(promise, folder, manifest, sources, never, memory, workers)
                continue
            if manifest.get("name") != RUN:
                raise FormatError(f"{folder} has no manifest of run or filter; --raw needs it")
            seen = read_captures(
                manifest,
                sources,
                internal=internal,
                never=never,
                files=lists,
                memory=memory,
                threads=workers,
            )
            result = check_files(folder, manifest, seen, key_file=key_file)
        except ConfigError:
            raise
        except DAMAGED:
            raise FormatError(
                f"the manifest of {folder} is damaged, or of another version"
            ) from None
        except OSError as error:
            raise FormatError(f"{folder}: a file cannot be read: {error.strerror}") from None
        promise.findings += result.violations
        promise.unproven += result.unproven
        promise.claims += result.claims
        promise.left_out += result.left_out
        promise.notes.append(result.note())
    promise.findings = [one for one in promise.findings if one.check in checks]
    promise.unproven = [one for one in promise.unproven if one.check in checks]
    return promise


def add_rows(
    promise: Promise,
    folder: Path,
    manifest: Mapping[str, Any],
    sources: Sequence[Path],
    never: Sequence[str],
    memory: int,
    workers: int,
) -> None:
    """Adds the result of a folder of `filter`."""
    check = check_rows(folder, manifest, sources, never=never, memory=memory, threads=workers)
    unproven = 0
    for finding in check.run():
        (promise.findings if finding.proven else promise.unproven).append(finding)
        unproven += not finding.proven
    promise.claims += check.claims
    promise.left_out += check.left_out
    promise.notes.append(check.note(unproven))
