# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the content of captures: the whole packet path runs and writes nothing."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from zanon_net._core import PacketEngine
from zanon_net._record import dataclass
from zanon_net._text import NS_PER_S, iso_time, table, time_range
from zanon_net.config.parse import format_duration
from zanon_net.config.settings import Config
from zanon_net.pipeline.diagnostics import diagnose
from zanon_net.pipeline.facts import SourceFacts
from zanon_net.pipeline.link_types import link_type_name
from zanon_net.pipeline.reader import Progress, Reader, open_all
from zanon_net.pipeline.totals import Totals
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import Source

Row = tuple[str, str, str]
"""A title, a count and a text, each of which may be empty."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The captures' facts. `config` has the settings with which their names were measured."""

    facts: Sequence[SourceFacts]
    totals: Totals
    config: Config
    interrupted: bool

    def to_dict(self) -> dict[str, Any]:
        """Returns all facts, for `--json`."""
        totals = self.totals
        return {
            "sources": [facts.to_dict() for facts in self.facts],
            "interrupted": self.interrupted,
            "time_range": time_range(totals.time_range_ns),
            "users": totals.users,
            "read": totals.group("read"),
            "encapsulation": totals.group("encapsulation"),
            "drop": totals.group("drop"),
            "flow": totals.group("flow"),
            "status": totals.group("status"),
            "name": totals.group("name"),
            "z": self.config.anonymity.z,
            "window_ns": self.config.anonymity.window_ns,
            "decisions": totals.decisions(),
            "dns": totals.group("dns"),
            "hints": [asdict(hint) for hint in diagnose(totals.counters)],
        }

    def table(self, width: int = 80, *, each: bool = False) -> str:
        """Returns the facts as a table for people, `width` columns wide.

        each: with several sources, the facts about each source follow the facts about all sources.
        """
        advice = [("hint", f"{hint.count:,}", hint.text) for hint in diagnose(self.totals.counters)]
        rows = [*self._about_sources(), *self._about_names(), *advice]
        if each and len(self.facts) > 1:
            for facts in self.facts:
                rows += [("source", "", facts.name), *_about_files([facts])]
        return table(rows, width, right=(1,))

    def _about_sources(self) -> list[Row]:
        totals, rows = self.totals, []
        if len(self.facts) > 1:
            rows += [("sources", f"{len(self.facts):,}", "")]
        rows += _about_files(self.facts)
        if totals.time_range_ns is not None:
            first_ns, last_ns = totals.time_range_ns
            rows += [
                ("first packet", "", iso_time(first_ns)),
                ("last packet", "", iso_time(last_ns)),
            ]
            rows += [("time span", f"{(last_ns - first_ns) / NS_PER_S:,.3f}", "s")]
        rows += _counts("read", totals.lines("read"))
        rows += _counts("inside", totals.lines("encapsulation"), totals.counters["frames"])
        return rows + _counts("dropped", totals.lines("drop"), totals.counters["frames"])

    def _about_names(self) -> list[Row]:
        totals, anonymity = self.totals, self.config.anonymity
        window = format_duration(anonymity.window_ns)
        decided = totals.decided
        statuses = totals.lines("status")
        rows = _counts("flows", totals.lines("flow"))
        rows += _counts("name status", statuses, sum(count for _text, count in statuses))
        rows += [("users", f"{totals.users:,}", "")]
        rows += _counts("names", totals.lines("name"))
        rows += [("measured with", "", f"z = {anonymity.z}, window {window}")]
        rows += _counts("released", [("names", totals.counters["released"])], decided)
        rows += _counts("in DNS", totals.lines("dns"))
        return rows + _counts("suppressed", totals.lines("suppressed"), decided)


def _about_files(files: Sequence[SourceFacts]) -> list[Row]:
    """Returns the facts about files, summed over several files."""
    link_types: Counter[int] = Counter()
    for facts in files:
        link_types.update(facts.link_types)
    rows = [("format", "", form) for form in dict.fromkeys(map(_format, files))]
    rows += [("bytes", f"{sum(facts.bytes_read for facts in files):,}", "")]
    rows += [
        ("cut short", "", facts.warning if len(files) == 1 else f"{facts.name}: {facts.warning}")
        for facts in files
        if facts.warning is not None
    ]
    return rows + [
        ("link type", f"{frames:,}", f"frames of {link_type_name(number)}")
        for number, frames in sorted(link_types.items())
    ]


def _format(facts: SourceFacts) -> str:
    packed = "" if facts.compression is None else f", compressed with {facts.compression}"
    return facts.format + packed


def _counts(title: str, lines: list[tuple[str, int]], whole: int = 0) -> list[Row]:
    return [
        (title, f"{count:,}", text + (f" ({count / whole:.1%})" if whole else ""))
        for text, count in lines
    ]


def inspect(
    source: Source | Iterable[Source],
    config: Config | None = None,
    *,
    progress: Progress | None = None,
    interruption: Interruption | None = None,
) -> Inspection:
    """Reads captures to their ends and counts.

    source: a capture's path, a folder of captures, "-" for standard input, or several of them.
    config, progress, interruption: as `run` takes them.

    Raises ConfigError, CaptureError, FormatError or CapacityError.
    """
    config = config or Config()
    interruption = interruption or Interruption()
    without: Mapping[str, Any] = {"outputs": (), "popularity": False}
    arguments: Mapping[str, Any] = {**config.engine_arguments(), **without}
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    with ExitStack() as stack:
        opened = open_all(sources, config, interruption, stack)
        engine = PacketEngine(**arguments)
        stack.callback(engine.close)
        for _batch in Reader(engine, opened, progress, interruption).batches():
            pass
        facts = [item.facts() for item in opened]
        engine.finish()
        return Inspection(facts, Totals.of(engine), config, interruption.requested)
