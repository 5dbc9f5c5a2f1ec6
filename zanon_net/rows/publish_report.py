# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report of `zanon-net publish`: a manifest for machines, a summary for people, in counts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zanon_net._core import ROW_FATES, ROW_FAULTS, RowPublisher
from zanon_net._record import dataclass
from zanon_net._text import share, time_range
from zanon_net._version import __version__
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import manifest_of
from zanon_net.rows.report import RowSource, RunReport

K_EQUALS_1 = "k = 1: a row may be alone in its class"
NO_DIVERSITY = "sensitive values need not differ: a class may share a single value"
ENDS = {
    "full": "full",
    "time": "closed by the delay",
    "idle": "closed by --idle",
    "memory": "closed early: --max-memory",
    "clock": "closed by a clock that was wrong",
    "last": "closed by the end",
}
"""Texts for the core's words for the end of a window."""


@dataclass(frozen=True, slots=True)
class PublishTotals:
    """A publisher's counters at the end of its input."""

    rows: Mapping[str, int]
    window: Mapping[str, Any]
    format: str
    time_range_ns: tuple[int, int] | None
    memory_bytes: int

    @classmethod
    def of(cls, publisher: RowPublisher) -> "PublishTotals":
        """Returns the totals of `publisher`."""
        return cls(
            rows=publisher.stats,
            window=publisher.window,
            format=publisher.format,
            time_range_ns=publisher.time_range_ns,
            memory_bytes=publisher.memory_bytes,
        )

    @property
    def unreadable(self) -> int:
        """Rows that could not be read."""
        return sum(self.rows[name] for name in ROW_FAULTS)


def classes_of(
    counts: Mapping[str, Any], quasi: Sequence[str], sensitive: Sequence[str]
) -> dict[str, Any]:
    """Returns a window's counters about the released rows, for manifests."""
    released, groups = counts["released"], counts["groups"]
    mean = 1 / max(groups, 1)
    columns = {}
    for i, name in enumerate(sensitive):
        columns[name] = {
            "distinct_min": counts["distinct_min"][i],
            "distinct_mean": round(counts["distinct_sums"][i] * mean, 6),
            "entropy_min_bits": round(abs(counts["entropy_min"][i]), 6),
            "entropy_mean_bits": round(abs(counts["entropy_sums"][i]) * mean, 6),
            "largest_share": round(counts["share_max"][i], 6),
        }
    losses = [total / max(released, 1) for total in counts["loss_sums"]]
    return {
        "groups": groups,
        "smallest": counts["users_min"],
        "mean_rows": round(released * mean, 6),
        "loss": {name: round(loss, 6) for name, loss in zip(quasi, losses, strict=True)},
        "loss_mean": round(sum(losses) / len(losses), 6),
        "sensitive": columns,
        "swaps": counts["swaps"],
        "merges": counts["merges"],
    }


def delays_of(counts: Mapping[str, Any]) -> dict[str, float]:
    """Returns the delays of the released rows, in seconds."""
    mean = counts["delay_sum"] / max(counts["released"], 1)
    found = {"mean": mean, "p95": counts["delay_p95"], "max": counts["delay_max"]}
    return {name: round(ns / 1e9, 9) for name, ns in found.items()}


def build_publish_manifest(
    settings: Mapping[str, Any],
    totals: PublishTotals,
    sources: Sequence[RowSource],
    *,
    interrupted: bool,
) -> dict[str, Any]:
    """Returns the manifest of a run of `publish`, which does not depend on the duration of the
    run."""
    counts = totals.window
    notes = [K_EQUALS_1] if settings["k"] == 1 else []
    asks = settings["l"] > 1 or settings["max_share"] is not None
    notes += [NO_DIVERSITY] if not asks and settings["l_kind"] == "distinct" else []
    notes += [f"column {column!r} is not protected" for column in settings["passed"]]
    configuration = manifest_of(rows_of("publish"), settings) | {"format": totals.format}
    return {
        "name": "zanon-net publish",
        "version": __version__,
        "complete": not interrupted and not totals.unreadable,
        "interrupted": interrupted,
        "notes": notes,
        "configuration": configuration,
        "time_range": time_range(totals.time_range_ns),
        "sources": [source.to_dict() for source in sources],
        "rows": {
            "read": totals.rows["rows"],
            "unreadable": {name: totals.rows[name] for name in ROW_FAULTS},
            "written": counts["released"],
            "suppressed": counts["suppressed"],
            "waited": counts["waited"],
            "times_without_offset": totals.rows["without_offset"],
        },
        "windows": counts["windows"],
        "windows_by_l": {str(aim): number for aim, number in counts["l_windows"].items()},
        "clock_jumps": counts["clock_jumps"],
        "classes": classes_of(counts, settings["quasi"], settings["sensitive"]),
        "delay_s": delays_of(counts),
    }


@dataclass(frozen=True, slots=True)
class PublishReport(RunReport):
    """The result of `publish_rows`; its manifest is that of build_publish_manifest."""

    totals: PublishTotals

    def _lines(self) -> Iterable[tuple[str, str]]:
        totals, counts = self.totals, self.totals.window
        yield "rows", f"{totals.rows['rows']:,} read, {counts['released']:,} written"
        for name, text in ROW_FAULTS.items():
            if totals.rows[name]:
                yield "unreadable", f"{totals.rows[name]:,}  {text}"
        for name, text in ROW_FATES.items():
            if number := counts["suppressed"][name]:
                yield "suppressed", f"{share(number, counts['rows'])}  {text}"
        for name, number in counts["windows"].items():
            if number:
                yield "windows", f"{number:,}  {ENDS[name]}"
        yield from self._classes()
        yield from self._last_lines()

    def _classes(self) -> Iterable[tuple[str, str]]:
        classes, delay = self.manifest["classes"], self.manifest["delay_s"]
        if not classes["groups"]:
            return
        yield "groups", f"{classes['groups']:,}, the smallest of {classes['smallest']:,} users"
        for name, loss in classes["loss"].items():
            yield "loss", f"{loss:.1%} of {name}"
        for name, column in classes["sensitive"].items():
            text = f"{column['distinct_min']:,} values at least, one has at most "
            yield "diversity", f"{name}: {text}{column['largest_share']:.0%}"
        if classes["swaps"] or classes["merges"]:
            yield "repairs", f"{classes['swaps']:,} swaps, {classes['merges']:,} merges"
        seconds = ", ".join(f"{name} {value:,.3f} s" for name, value in delay.items())
        yield "delay", seconds
