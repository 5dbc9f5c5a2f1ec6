# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run did: the manifest for machines and the summary for people. Counts only, no names."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zanon_net._core import STAT_ALIASES, STAT_INFO, Engine
from zanon_net._version import __version__
from zanon_net.config.settings import FORMAT_OUTPUTS, Config
from zanon_net.pipeline.link_types import link_type_name

if TYPE_CHECKING:
    from rich.console import Console

NS_PER_S = 1_000_000_000

Z_EQUALS_1 = "z = 1: every name is released, also one that a single user visited"

_NAMES_SEEN_IN = "names seen in "  # how the texts of these counters begin


def iso_time(t_ns: int) -> str:
    """`t_ns` (ns since the epoch) in UTC with nine decimals."""
    moment = datetime.fromtimestamp(t_ns // NS_PER_S, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{t_ns % NS_PER_S:09d}Z"


def time_range(range_ns: tuple[int, int] | None) -> dict[str, Any] | None:
    """First and last time (ns since the epoch) as a manifest has them; None where there is none."""
    if range_ns is None:
        return None
    first_ns, last_ns = range_ns
    return {
        "first": iso_time(first_ns),
        "last": iso_time(last_ns),
        "first_ns": first_ns,
        "last_ns": last_ns,
    }


def time_span(range_ns: tuple[int, int]) -> str:
    """First and last time (ns since the epoch) for people, and the seconds between them."""
    first_ns, last_ns = range_ns
    seconds = (last_ns - first_ns) / NS_PER_S
    return f"{iso_time(first_ns)[:19]}Z to {iso_time(last_ns)[:19]}Z, {seconds:,.1f} s"


def printable(text: str) -> str:
    """`text` without a character that could end the line or steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def share(part: int, whole: int) -> str:
    """`part` of `whole` for people, also in percent where that is something."""
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


def print_rows(console: "Console", rows: Iterable[tuple[str, str]]) -> None:
    """Prints (title, text) as a table of two columns; long texts are folded."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, text in rows:
        table.add_row(Text(title), Text(printable(text)))
    console.print(table)


@dataclass(frozen=True, slots=True)
class Drops:
    """Packets that were there and are in no log.

    ring: the system had no room for them, because we read too slowly.
    interface: lost before the system could hand them to anyone.
    us: no room in a table of ours, or left in the ring at the end.
    """

    ring: int = 0
    interface: int = 0
    us: int = 0

    @classmethod
    def of_counters(cls, counters: Mapping[str, int]) -> "Drops":
        """What an engine with these counters had no room for."""
        return cls(us=counters["drop_flow_table_full"] + counters["drop_fragment_evicted"])

    def plus(self, others: Iterable["Drops"]) -> "Drops":
        """The sum of all."""
        every = [self, *others]
        return Drops(
            sum(drops.ring for drops in every),
            sum(drops.interface for drops in every),
            sum(drops.us for drops in every),
        )

    def text(self) -> str:
        """For people."""
        return f"{self.ring:,} by the ring, {self.interface:,} by the interface, {self.us:,} by us"

    def to_dict(self) -> dict[str, int]:
        """For the manifest."""
        return {"ring": self.ring, "interface": self.interface, "us": self.us}


class Facts(Protocol):
    """What every kind of source can tell about itself at the end."""

    @property
    def name(self) -> str:
        """No more than the last part of a path."""

    @property
    def frames(self) -> int:
        """Frames read."""

    @property
    def warning(self) -> str | None:
        """Why it ended early."""

    def to_dict(self) -> dict[str, Any]:
        """The source as the manifest has it."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What one source turned out to be; `name` is no more than the last part of its path."""

    name: str
    format: str
    compression: str | None
    link_types: Mapping[int, int]
    bytes_read: int
    frames: int
    warning: str | None

    def to_dict(self) -> dict[str, Any]:
        """The source as the manifest has it."""
        return {
            "name": self.name,
            "format": self.format,
            "compression": self.compression,
            "link_types": {
                link_type_name(number): frames for number, frames in sorted(self.link_types.items())
            },
            "bytes": self.bytes_read,
            "frames": self.frames,
            "warning": self.warning,
        }


@dataclass(frozen=True, slots=True)
class Totals:
    """An engine's counters at the end of its input."""

    counters: Mapping[str, int]
    table: Mapping[str, int]
    users: int
    time_range_ns: tuple[int, int] | None
    memory_bytes: int

    @classmethod
    def of(cls, engine: Engine) -> "Totals":
        """The totals of `engine`, which has finished."""
        return cls(
            counters=dict(engine.stats),
            table=dict(engine.table_stats),
            users=engine.users,
            time_range_ns=engine.time_range_ns,
            memory_bytes=engine.memory_bytes,
        )

    def group(self, group: str) -> dict[str, int]:
        """The counters of one group, in their order; renamed ones also by their old names."""
        return {
            either: self.counters[name]
            for name, member_of, _text in STAT_INFO
            if member_of == group
            for either in (name, STAT_ALIASES.get(name, name))
        }

    def lines(self, group: str) -> list[tuple[str, int]]:
        """(text, count) of each counter of a group that is not zero."""
        return [
            (text, self.counters[name.lower()])
            for name, member_of, text in STAT_INFO
            if member_of == group and self.counters[name.lower()]
        ]

    def names(self) -> dict[str, int]:
        """Names seen by source, "TLS" and so on, without what a flow repeated."""
        return {
            text.removeprefix(_NAMES_SEEN_IN): self.counters[name.lower()]
            for name, _group, text in STAT_INFO
            if text.startswith(_NAMES_SEEN_IN)
        }

    @property
    def decided(self) -> int:
        """Names that were released or suppressed, for whatever reason."""
        return self.counters["released"] + sum(self.group("suppressed").values())

    def decisions(self) -> dict[str, Any]:
        """What was decided about names, and how the clock and the table fared."""
        table = ("late", "late_deep", "clock_jumps", "evicted")
        return {
            **self.group("decision"),
            "suppressed": {
                name.removeprefix("suppressed_"): count
                for name, count in self.group("suppressed").items()
            },
            **{name: self.table[name] for name in table},
        }


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended.

    files: {"file", "bytes", "records"} of each that appears. written: records in them, by output.
    error: why the run ended early, None where it did not. drops: packets lost before that.
    """

    files: Sequence[Mapping[str, Any]]
    written: Mapping[str, int]
    interrupted: bool = False
    error: str | None = None
    drops: Drops = Drops()

    def accounts(self, counters: Mapping[str, int]) -> dict[str, Any]:
        """Where the records of closed flows went: of each format, written + left_out + lost."""
        records, midstream = counters["records"], counters["records_midstream"]
        formats: dict[str, tuple[int, int]] = {}
        for name in ("csv", "jsonl", "parquet", "tstat"):
            outputs = [output for output in FORMAT_OUTPUTS[name] if output in self.written]
            if outputs:
                written = sum(self.written[output] for output in outputs)
                formats[name] = (written, midstream if name == "tstat" else 0)
        return {
            "closed": records + counters["flows_external"],
            "withheld": counters["flows_external"],
            "records": records,
            **{
                name: {"written": n, "left_out": left_out, "lost": records - n - left_out}
                for name, (n, left_out) in formats.items()
            },
        }


def build_manifest(
    config: Config, totals: Totals, sources: Iterable[Facts], ending: Ending
) -> dict[str, Any]:
    """The manifest of a run.

    The same input, settings and key file give the same manifest: nothing in it tells how long the
    run took.
    """
    listed = list(sources)
    whole = not ending.interrupted and all(source.warning is None for source in listed)
    groups = dict.fromkeys(group for _name, group, _text in STAT_INFO)
    return {
        "name": "zanon-net",
        "version": __version__,
        "complete": whole and ending.error is None,
        "interrupted": ending.interrupted,
        "error": ending.error,
        "notes": _notes(config, totals.counters),
        "configuration": config.to_dict(),
        "workers": config.limits.workers,
        "time_range": time_range(totals.time_range_ns),
        "sources": [source.to_dict() for source in listed],
        "capture_drops": ending.drops.to_dict(),
        "users": totals.users,
        "decisions": totals.decisions(),
        "counters": {
            group: totals.group(group)
            for group in groups
            if group not in ("decision", "suppressed")
        },
        "records": ending.accounts(totals.counters),
        "outputs": [dict(file) for file in ending.files],
    }


def _notes(config: Config, counters: Mapping[str, int]) -> list[str]:
    notes = [Z_EQUALS_1] if config.anonymity.z_limit == 1 else []
    external, flows = counters["flows_external"], counters["flows_tcp"] + counters["flows_udp"]
    if 2 * external > flows:
        notes.append(f"{external:,} of {flows:,} flows have no internal endpoint: check --internal")
    return notes


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """The manifest as it is written: ASCII, two spaces a level.

    A path that is not UTF-8 has a replacement character where Python has half a surrogate pair, at
    which strict readers of JSON give up.
    """
    text = json.dumps(manifest, ensure_ascii=False).encode("utf-8", "surrogateescape")
    readable = json.loads(text.decode("utf-8", "replace"))
    return (json.dumps(readable, indent=2) + "\n").encode("ascii")


@dataclass(frozen=True, slots=True)
class Report:
    """What `run` did.

    manifest: as written beside the logs; docs/reference/output.md has its keys.
    out: the folder; None for standard output.
    totals: the engine's counters, which the manifest has by group.
    seconds: of wall time from the first batch to the last byte handed to the system.
    """

    manifest: Mapping[str, Any]
    out: Path | None
    totals: Totals
    seconds: float

    @property
    def warnings(self) -> list[str]:
        """A line for each source that ended early."""
        return [
            f"{source['name']}: {source['warning']}"
            for source in self.manifest["sources"]
            if source["warning"] is not None
        ]

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the reading."""
        return bool(self.manifest["interrupted"])

    def speed(self) -> dict[str, float]:
        """Seconds, packets/s, Gbit/s on the wire and bytes of memory touched."""
        seconds = max(self.seconds, 1e-9)
        read = self.totals.counters
        return {
            "seconds": round(self.seconds, 6),
            "packets_per_s": round(read["frames"] / seconds),
            "gbit_per_s": round(read["bytes_wire"] * 8e-9 / seconds, 6),
            "memory_bytes": self.totals.memory_bytes,
        }

    def print_summary(self, console: "Console") -> None:
        """Prints the summary table, in a handful of lines of counts."""
        print_rows(console, self._rows())

    def _rows(self) -> Iterable[tuple[str, str]]:
        totals, counters, speed = self.totals, self.totals.counters, self.speed()
        yield "packets", f"{counters['frames']:,}"
        yield "flows", f"{counters['flows_tcp']:,} TCP, {counters['flows_udp']:,} UDP"
        yield "names seen", ", ".join(f"{n:,} {source}" for source, n in totals.names().items())
        yield "released", share(counters["released"], totals.decided)
        if changes := self.manifest.get("z_changes"):
            low, high = (pick(one["new"] for one in changes) for pick in (min, max))
            yield "z", f"changed {len(changes):,} times, to {low:,} at least and {high:,} at most"
        if beyond := self.manifest.get("z_windows", {}).get("needed_more_than_z_max"):
            yield "z", f"{beyond:,} windows needed more than --z-max"
        for text, count in totals.lines("suppressed"):
            yield "suppressed", f"{count:,}  {text}"
        for text, count in totals.lines("drop"):
            yield "dropped packets", f"{count:,}  {text}"
        for text, count in totals.lines("capacity"):
            yield "limits met", f"{count:,}  {text}"
        lost = Drops(**self.manifest["capture_drops"])
        if lost != Drops() or any(s["format"] == "interface" for s in self.manifest["sources"]):
            yield "lost packets", lost.text()
        yield "users", f"{totals.users:,}"
        if totals.time_range_ns is not None:
            yield "time span", time_span(totals.time_range_ns)
        rates = f"{speed['packets_per_s']:,.0f} packets/s, {speed['gbit_per_s']:.2f} Gbit/s"
        memory = f"{totals.memory_bytes / 2**20:,.0f} MiB"
        yield "speed", f"{rates} on the wire, {self.seconds:.2f} s, {memory}"
        if self.out is not None:
            yield "output", str(self.out)
        for note in self.manifest["notes"]:
            yield "note", note
