# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The decisions of a counter: shards of votes, and what commits do to them.

Nothing here looks at a clock, a file or a connection: the same commits on the same state give the
same answers.
"""

import json
from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zanon_net._core import VOTE_KINDS, VoteShard, VoteWriter, read_votes
from zanon_net.count.attachments import new_store
from zanon_net.count.commits import GONE, UNCOUNTED, Commit, Entry
from zanon_net.count.frames import ENDED, VotesHeader, votes_header
from zanon_net.count.settings import CounterSettings
from zanon_net.errors import CapacityError, FormatError, ZanonError

CLIENT_KIND = VOTE_KINDS["client"]


@dataclass(slots=True)
class Outcome:
    """What a commit came to. problems: why messages were not counted, by their entries' places.
    rows: what the answers release of the rows that came with votes."""

    answers: list[bytes] = field(default_factory=list)
    problems: dict[int, ZanonError] = field(default_factory=dict)
    rows: bytes = b""


class Counter:
    """All shards of one counter, and what is known of its probes.

    tally: refused_*, duplicates_resent, uncounted and ended; the shards count the rest.
    """

    def __init__(self, settings: CounterSettings) -> None:
        self._settings = settings
        self.offset = 0
        self.tally: Tally[str] = Tally()
        self._shards = [settings.new_shard(number) for number in range(settings.shards)]
        self._sequences: list[dict[int, int]] = [{} for _shard in self._shards]
        self._ended: dict[int, set[int]] = {}
        self._rows = new_store(settings)

    # ---- what a commit does ----------------------------------------------------------------------

    def apply(self, commit: Commit) -> Outcome:
        """Does a commit."""
        outcome = Outcome()
        touched: dict[int, None] = {}
        last: list[VotesHeader] = []
        for place, entry in enumerate(commit.entries):
            if entry.kind == GONE:
                touched |= dict.fromkeys(self._forget(entry.probe))
                self.tally["probe_gone"] += 1
                continue
            header = votes_header(entry.message)
            try:
                self._put(entry, header, outcome.answers)
            except (FormatError, CapacityError) as error:
                self.tally["refused_by_shard"] += 1
                outcome.problems[place] = error
                continue
            touched[header.shard] = None
            if header.watermark == ENDED:
                last.append(header)
        for shard in touched:
            outcome.answers += self._decide(shard)
        outcome.rows = self._rows.answered(outcome.answers)
        for header in last:
            self._end(header)
        self.offset = commit.end
        return outcome

    def _put(self, entry: Entry, header: VotesHeader, answers: list[bytes]) -> None:
        """Puts a message; adds answers where others had to be decided to make space for it."""
        message, rows = self._rows.split(entry.message)
        if entry.kind == UNCOUNTED:
            message, rows = _marks_only(message), None
            self.tally["uncounted"] += 1
        try:
            is_new = self._shards[header.shard].put(message)
        except CapacityError:
            answers += self._decide(header.shard)
            is_new = self._shards[header.shard].put(message)
        if is_new and rows is not None:
            self._rows.keep(rows)
        self._sequences[header.shard][header.probe] = header.sequence

    def _decide(self, shard: int) -> list[bytes]:
        if len(self._sequences[shard]) < self._settings.expect_probes:
            return []
        return list(self._shards[shard].decide())

    def _forget(self, probe: int) -> list[int]:
        """Decides without a probe from now on; returns the shards that had it."""
        shards = [n for n, shard in enumerate(self._shards) if probe in shard.known_probes]
        for number in shards:
            self._shards[number].forget_probe(probe)
        return shards

    def _end(self, header: VotesHeader) -> None:
        ended = self._ended.setdefault(header.probe, set())
        if header.shard in ended:
            return
        ended.add(header.shard)
        if len(ended) == len(self._shards):
            self.tally["ended"] += 1

    # ---- what is known ---------------------------------------------------------------------------

    def sequence_of(self, header: VotesHeader) -> int | None:
        """The last message that was counted of a probe in a shard; None: none was."""
        return self._sequences[header.shard].get(header.probe)

    def is_next(self, header: VotesHeader) -> bool:
        """Whether no message of the probe is missing before this one."""
        return self.sequence_of(header) in (None, header.sequence - 1)

    def waits_for(self, probe: int) -> bool:
        """Whether decisions wait for the votes of a probe."""
        return probe in self.watermarks()

    def watermarks(self) -> dict[int, int]:
        """The least watermark of each probe that decisions wait for, over its shards."""
        least: dict[int, int] = {}
        for shard in self._shards:
            for probe, (_sequence, watermark) in shard.probes.items():
                if watermark != ENDED:
                    least[probe] = min(watermark, least.get(probe, watermark))
        return least

    @property
    def watermark(self) -> int:
        """Before this time everything is decided; ENDED: all of it is."""
        return min(int(shard.watermark) for shard in self._shards)

    @property
    def probes(self) -> int:
        """How many probes ever came."""
        return len(set().union(*self._sequences))

    @property
    def probes_missing(self) -> int:
        """How many of the expected probes have not come, in the shard that waits for most."""
        fewest = min(map(len, self._sequences))
        return max(self._settings.expect_probes - fewest, 0)

    @property
    def ended(self) -> set[int]:
        """The probes that have ended in all shards."""
        whole = len(self._shards)
        return {probe for probe, shards in self._ended.items() if len(shards) == whole}

    @property
    def is_done(self) -> bool:
        """Whether all probes that are expected have ended."""
        return self.tally["ended"] >= max(self._settings.expect_probes, 1)

    def stats(self) -> Mapping[str, int]:
        """The counts of all shards together, and the tally."""
        total: Tally[str] = Tally()
        for shard in self._shards:
            counts = dict(shard.stats)
            table = counts.pop("table")
            total.update(counts)
            total.update({f"table_{name}": count for name, count in table.items()})
        return {**total, **self.tally, **self._rows.stats}

    @property
    def memory_bytes(self) -> int:
        """Memory of all shards, at most."""
        return sum(int(shard.memory_bytes) for shard in self._shards) + self._rows.waiting_bytes

    def releases(self) -> "np.ndarray[Any, np.dtype[np.void]]":
        """What was released since the last call: time, user and both halves of the attribute."""
        columns = [shard.releases() for shard in self._shards]
        rows = np.empty(sum(len(column[0]) for column in columns), RELEASE)
        for name, arrays in zip(RELEASE.names or (), zip(*columns, strict=True), strict=True):
            rows[name] = np.concatenate(arrays)
        return rows

    # ---- state -----------------------------------------------------------------------------------

    def dump(self) -> dict[str, bytes]:
        """All of it, by names."""
        about = {
            "tally": dict(self.tally),
            "sequences": [list(known.items()) for known in self._sequences],
            "ended": [[probe, sorted(shards)] for probe, shards in self._ended.items()],
        }
        parts = {f"shard-{number}": shard.dump() for number, shard in enumerate(self._shards)}
        return {"counter": json.dumps(about).encode(), "rows": self._rows.dump(), **parts}

    def load(self, offset: int, parts: Mapping[str, bytes]) -> None:
        """Takes up what `dump` gave. Raises FormatError."""
        about = json.loads(parts["counter"])
        self.offset = offset
        self.tally = Tally(about["tally"])
        self._sequences = [dict(known) for known in about["sequences"]]
        self._ended = {probe: set(shards) for probe, shards in about["ended"]}
        self._rows.load(parts["rows"])
        self._shards = [
            VoteShard.load(parts[f"shard-{number}"]) for number in range(len(self._shards))
        ]


RELEASE = np.dtype([("t_ns", "<i8"), ("user", "<u8"), ("lo", "<u8"), ("hi", "<u8")])
"""A row of what was released."""


def _marks_only(message: bytes) -> bytes:
    """The same message with no votes: its number, its watermark and its clients count. A client
    that was left out here could be shown as a server by another probe."""
    votes = read_votes(message)
    marks = votes["kind"] == CLIENT_KIND
    writer = VoteWriter(
        votes["probe"],
        votes["shard"],
        votes["settings"],
        sequence=votes["sequence"],
        max_votes=max(1, int(marks.sum())),
    )
    columns = (votes[name][marks] for name in ("t_ns", "user", "lo", "hi"))
    writer.add_columns(CLIENT_KIND, *columns)
    return bytes(writer.finish(votes["watermark_ns"]))
