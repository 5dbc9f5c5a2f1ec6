# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report of a run, for the program that started it and for people: counts, no names."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from zanon_net._record import dataclass
from zanon_net._text import share, table, time_span
from zanon_net.config.cap_rules import forged_users_text
from zanon_net.output.sink import Sent
from zanon_net.pipeline import packet_fates
from zanon_net.pipeline.doubts import Doubts
from zanon_net.pipeline.facts import INTERFACE, Drops, Loss
from zanon_net.pipeline.totals import Totals

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from zanon_net.output.read_logs import Log, Names


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `run` and of `packets`.

    manifest: as written next to the logs; docs/reference/output.md has its keys.
    out: the folder, or the file of packets; None for standard output.
    totals: the engine's counters, which the manifest has by group.
    seconds: wall time from the first batch to the last byte passed to the system.
    is_file: true if `out` is a file.
    """

    manifest: Mapping[str, Any]
    out: Path | None
    totals: Totals
    seconds: float
    is_file: bool = False

    @property
    def warnings(self) -> list[str]:
        """A line for each source that ended early."""
        return [
            f"interface {source['name']} {source['warning']}"
            if source["format"] == INTERFACE
            else f"{source['name']}: {source['warning']}"
            for source in self.manifest["sources"]
            if source["warning"] is not None
        ]

    @property
    def failure(self) -> str | None:
        """The reason why the reading ended too early, because an interface was lost; else None.

        All packets that had been read are written.
        """
        return None if self.manifest["error"] is None else str(self.manifest["error"])

    @property
    def loss(self) -> Loss | None:
        """The packets that interfaces lost; None if no packet was lost."""
        return Loss.of(self.manifest["sources"], Drops(**self.manifest["capture_drops"]))

    @property
    def doubts(self) -> list[str]:
        """A line about missing answers of a counter, and a line about steps of the clock."""
        return Doubts.of(self.totals.counters, self.totals.table).texts()

    @property
    def sent(self) -> Sent | None:
        """The packets that were to leave through an interface; None if the output is no
        interface."""
        facts = self.manifest.get("packets", {}).get("interface")
        return None if facts is None else Sent.of(facts)

    @property
    def counters(self) -> Mapping[str, int]:
        """Every counter of the run by its name; docs/reference/output.md has their meaning."""
        return self.totals.counters

    @property
    def files(self) -> list[Path]:
        """The paths of the files that were written, sorted; empty for standard output."""
        if self.out is None:
            return []
        folder = self.out.parent if self.is_file else self.out
        return [folder / str(file["file"]) for file in self.manifest["outputs"]]

    @overload
    def read(
        self,
        log: "Log | None" = None,
        *,
        into: Literal["pandas"] = "pandas",
        names: "Names | None" = None,
    ) -> "pandas.DataFrame": ...
    @overload
    def read(
        self, log: "Log | None" = None, *, into: Literal["polars"], names: "Names | None" = None
    ) -> "polars.DataFrame": ...
    @overload
    def read(
        self, log: "Log | None" = None, *, into: Literal["arrow"], names: "Names | None" = None
    ) -> "pyarrow.Table": ...
    def read(
        self, log: str | None = None, *, into: str = "pandas", names: str | None = None
    ) -> Any:
        """Reads the files that were written as a table, with the arguments of `read_log`.

        Raises ConfigError if the run wrote no logs into a folder.
        """
        from zanon_net.output.read_logs import read_files, read_log  # late: few programs read

        if self.out is not None and not self.is_file and not self.files:
            return read_log(self.out, log, into=into, names=names)  # type: ignore[call-overload]
        return read_files(self.files, log, into=into, names=names)

    def _repr_html_(self) -> str:
        """Returns the report of the run for notebooks; docs/reference/output.md describes it."""
        from zanon_net.report.run_report import html_of  # late: few programs show it

        return html_of(self.manifest, None if self.is_file else self.out)

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the reading."""
        return bool(self.manifest["interrupted"])

    def speed(self) -> dict[str, float]:
        """Returns seconds, packets/s, Gbit/s on the wire and bytes of memory touched."""
        seconds = max(self.seconds, 1e-9)
        read = self.totals.counters
        return {
            "seconds": round(self.seconds, 6),
            "packets_per_s": round(read["frames"] / seconds),
            "gbit_per_s": round(read["bytes_wire"] * 8e-9 / seconds, 6),
            "memory_bytes": self.totals.memory_bytes,
        }

    def summary(self, width: int = 80) -> str:
        """Returns the summary table for people, `width` columns wide: a handful of lines of
        counts."""
        return table(self._rows(), width)

    def _published(self) -> Iterable[tuple[str, str]]:
        counters, decided = self.totals.counters, self.totals.decided
        yield "released", share(counters["released"], decided)
        if self.manifest.get("levels") is not None:
            yield "generalized", share(counters["generalized"], decided)
        if counters["dns_observations"]:
            yield "released in DNS", share(counters["dns_released"], counters["dns_observations"])

    def _rows(self) -> Iterable[tuple[str, str]]:
        totals, counters, speed = self.totals, self.totals.counters, self.speed()
        yield "packets", f"{counters['frames']:,}"
        if "packets" in self.manifest:
            left = counters["packets_passed"] + counters["packets_masked"]
            yield "left anonymized", share(left, counters["frames"])
            for name, view in self.manifest["packets"]["views"].items():
                yield f"view {name}", share(view["passed"] + view["masked"], counters["frames"])
            if counters["packets_masked"]:
                coarse = self.manifest["configuration"]["packets"]["suppressed"] == "coarse"
                how = (
                    "coarse, of flows with a withheld name"
                    if coarse
                    else "with a withheld name masked"
                )
                yield "masked", f"{counters['packets_masked']:,}  {how}"
        yield "flows", f"{counters['flows_tcp']:,} TCP, {counters['flows_udp']:,} UDP"
        yield "names seen", ", ".join(f"{n:,} {source}" for source, n in totals.names().items())
        if counters["names_repeated"]:
            yield "repeated", f"{counters['names_repeated']:,}  by the same flow, decided once"
        yield from self._published()
        if changes := self.manifest.get("z_changes"):
            low, high = (pick(one["new"] for one in changes) for pick in (min, max))
            yield "z", f"changed {len(changes):,} times, to {low:,} at least and {high:,} at most"
        if above_max := self.manifest.get("z_windows", {}).get("needed_more_than_z_max"):
            yield "z", f"{above_max:,} windows needed more than --z-max"
        for text, count in totals.lines("suppressed"):
            yield "suppressed", f"{count:,}  {text}"
        for text, count in totals.lines("drop"):
            yield "dropped packets", f"{count:,}  {text}"
        if "packets" in self.manifest:
            for text, count in packet_fates.dropped_lines(counters):
                yield "dropped packets", f"{count:,}  {text}"
        for text, count in totals.lines("capacity"):
            yield "limits met", f"{count:,}  {text}"
        lost = Drops(**self.manifest["capture_drops"])
        if lost != Drops() or any(s["format"] == INTERFACE for s in self.manifest["sources"]):
            yield "lost packets", lost.text()
        if self.sent is not None:
            yield "left", self.sent.text()
        yield "users", f"{totals.users:,}"
        if totals.time_range_ns is not None:
            yield "time span", time_span(totals.time_range_ns)
        rates = f"{speed['packets_per_s']:,.0f} packets/s, {speed['gbit_per_s']:.2f} Gbit/s"
        memory = f"{totals.memory_bytes / 2**20:,.0f} MiB"
        yield "speed", f"{rates} on the wire, {self.seconds:.2f} s, {memory}"
        if self.out is not None:
            yield "output", str(self.out)
        if (removed := self.manifest["removed"])["parts"]:
            yield "removed", f"{removed['parts']:,} old parts of {removed['bytes']:,} bytes"
        if (forged := self.manifest["forged_users"])["name"]:
            yield "forged users", forged_users_text(forged)
        weaker = self.manifest["weaker_than"]
        if weaker["options"]:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in weaker["options"])
            yield "weaker", f"than --for {weaker['preset']}: {options}"
        for note in self.manifest["notes"]:
            yield "note", note
