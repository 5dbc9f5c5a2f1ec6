# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report and manifest of a run of several shards: the sums of their reports."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net._text import time_range
from zanon_net.config.settings import Config
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.hints import hints
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.status import Status
from zanon_net.pipeline.totals import Totals

FOLDER = "shard-{}"
"""Name of the folder of a shard in the folder of the run."""


_RATES = (
    "packets",
    "packets_per_s",
    "bits_per_s",
    "flows",
    "flows_open",
    "observations",
    "released",
    "decided",
    "memory_bytes",
)


def packed_status(status: Status) -> dict[str, Any]:
    """Returns a status as plain values, for another process."""
    values = {name: getattr(status, name) for name in ("time_ns", "seconds", *_RATES)}
    return {**values, "drops": status.drops.to_dict(), "away": dict(status.away)}


def merged_status(shards: Sequence[Mapping[str, Any]]) -> Status:
    """Returns the status of the run from the last packed status of each shard."""
    return Status(
        time_ns=max(shard["time_ns"] for shard in shards),
        seconds=max(shard["seconds"] for shard in shards),
        drops=Drops().plus(Drops(**shard["drops"]) for shard in shards),
        away=dict(item for shard in shards for item in shard["away"].items()),
        **{name: sum(shard[name] for shard in shards) for name in _RATES},
    )


def packed(report: Report) -> dict[str, Any]:
    """Returns a report as plain values, for another process."""
    totals = {name: getattr(report.totals, name) for name in Totals.__slots__}
    return {"manifest": dict(report.manifest), "totals": totals, "seconds": report.seconds}


def merged(reports: Sequence[Mapping[str, Any]], out: Path, config: Config) -> Report:
    """Returns the report of the run from the packed reports of its shards, in their order."""
    manifests = [report["manifest"] for report in reports]
    totals = _totals([report["totals"] for report in reports])
    manifest = _manifest(manifests, totals)
    if manifest["error"] is None and not manifest["interrupted"]:
        manifest["notes"] += hints(config, totals, manifest["sources"])
    return Report(
        manifest=manifest,
        out=out,
        totals=totals,
        seconds=max(report["seconds"] for report in reports),
    )


def _totals(parts: Sequence[Mapping[str, Any]]) -> Totals:
    """Returns the sums of the counters. A user of two shards counts in both."""
    values = {name: _sum([part[name] for part in parts]) for name in ("counters", "table", "users")}
    values["memory_bytes"] = sum(part["memory_bytes"] for part in parts)
    ranges = [part["time_range_ns"] for part in parts if part["time_range_ns"] is not None]
    if ranges:
        values["time_range_ns"] = (min(first for first, _ in ranges), max(end for _, end in ranges))
    return Totals(**{**parts[0], **values})


def _manifest(parts: Sequence[Mapping[str, Any]], totals: Totals) -> dict[str, Any]:
    """Returns the manifest of the run, with common values from the manifest of the first
    shard."""
    return {
        **parts[0],
        "complete": all(part["complete"] for part in parts),
        "interrupted": any(part["interrupted"] for part in parts),
        "error": next((part["error"] for part in parts if part["error"] is not None), None),
        "notes": [
            f"{FOLDER.format(shard)}: {note}"
            for shard, part in enumerate(parts)
            for note in part["notes"]
        ],
        "time_range": time_range(totals.time_range_ns),
        "sources": [
            {**source, "shard": shard}
            for shard, part in enumerate(parts)
            for source in part["sources"]
        ],
        **{key: _sum([part[key] for part in parts]) for key in _SUMS},
        "outputs": [
            {**file, "file": f"{FOLDER.format(shard)}/{file['file']}"}
            for shard, part in enumerate(parts)
            for file in part["outputs"]
        ],
    }


_SUMS = (
    "capture_drops",
    "users",
    "decisions",
    "counters",
    "records",
    "removed",
    "full_disk",
)
"""Keys of a manifest whose numbers are added up."""


def _sum(values: Sequence[Any]) -> Any:
    """Returns the sum of numbers, or of the numbers in mappings by their keys. Other values are as
    the first mapping has them."""
    first = values[0]
    if isinstance(first, Mapping):
        keys: dict[str, None] = {key: None for value in values for key in value}
        return {key: _sum([value[key] for value in values if key in value]) for key in keys}
    return sum(values) if type(first) is int else first
