# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Contents of a report, from a manifest, the sums over records, and counts of users per name.

All texts come from closed lists of this program. Exceptions are released names, and notes of the
run, in which addresses are replaced.
"""

from collections.abc import Iterator
from typing import Any

from zanon_net._text import iso_time, short
from zanon_net.errors import FormatError
from zanon_net.popularity import Popularity
from zanon_net.report.parts import Contents
from zanon_net.report.records import Sums
from zanon_net.report.sections import sections_of
from zanon_net.report.values import (
    Manifest,
    clean,
    decided_of,
    duration,
    number,
    times_of,
    window_of,
    z_range,
)

TITLE = "Report of an anonymized run"
FOOTER = (
    "This page has released names and counts. It has no address, no pseudonym and no suppressed"
    " name."
)
NOTES_MAX = 20
NOTE_LENGTH = 400


def contents_of(
    manifest: Manifest, sums: Sums | None, reason: str, popularity: Popularity | None
) -> Contents:
    """Returns the contents of a report.

    sums: over the records; None if no records can be counted, for a reason, which is a sentence.
    popularity: None without a file of counts.

    Raises FormatError if the manifest lacks a key or has a wrong type.
    """
    try:
        times = times_of(manifest)
        return Contents(
            title=TITLE,
            period=_period(times),
            is_good=manifest["complete"] is True,
            state=_state(manifest),
            tiles=list(_tiles(manifest)),
            notes=_notes(manifest["notes"]),
            sections=list(sections_of(manifest, times, sums, reason, popularity)),
            version=clean(str(manifest["version"]), 40),
            footer=FOOTER,
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError):
        raise FormatError(
            "the manifest is damaged, or not of a run of this version of zanon-net"
        ) from None


def _period(times: tuple[int, int] | None) -> str:
    if times is None:
        return "no packet"
    first, last = (iso_time(t_ns)[:16].replace("T", " ") for t_ns in times)
    return f"{first} to {last} UTC, {duration(times[1] - times[0])}"


def _state(manifest: Manifest) -> str:
    if manifest["complete"] is True:
        return "Complete: all input was read, and all output was written."
    if manifest["running"]:
        return "Not complete: the run has not ended."
    if manifest["error"] is not None:
        error = clean(str(manifest["error"]), NOTE_LENGTH)
        return f"Not complete, because the run ended early: {error}"
    if manifest["interrupted"]:
        return "Not complete: a signal ended the reading."
    return "Not complete: some input was not read, or some output was lost."


def _tiles(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    read, flows = manifest["counters"]["read"], manifest["counters"]["flow"]
    frames, octets = number(read["frames"]), number(read["bytes_wire"])
    tcp, udp = number(flows["flows_tcp"]), number(flows["flows_udp"])
    released, decided = decided_of(manifest)
    percent = f"{released / decided:.1%}" if decided else "-"
    yield "Names released", percent, f"{released:,} of {decided:,}"
    low, high = z_range(manifest)
    z = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    yield "z", z, f"users that share a name within {window_of(manifest)}"
    yield "Users", f"{number(manifest['users']):,}", "distinct users seen"
    yield "Flows", short(tcp + udp), f"{tcp:,} TCP, {udp:,} UDP"
    yield "Packets", short(frames), f"{short(octets, 'B')} on the wire"
    lost = sum(map(number, manifest["capture_drops"].values()))
    yield "Packets lost", short(lost), "by the capture" if lost else "no loss was counted"


def _notes(notes: Any) -> list[str]:
    cleaned = [clean(str(note), NOTE_LENGTH) for note in notes[:NOTES_MAX]]
    more = len(notes) - len(cleaned)
    return [*cleaned, f"{more:,} further notes are in the manifest."] if more else cleaned
