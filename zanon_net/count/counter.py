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
from zanon_net.count.commits import ALL_PRESENT, GONE, UNCOUNTED, Commit, Entry
from zanon_net.count.frames import ENDED, VotesHeader
from zanon_net.count.settings import CounterSettings
from zanon_net.errors import CapacityError, FormatError, ZanonError

CLIENT_KIND = VOTE_KINDS["client"]
SEQUENCE, WATERMARK, IS_PRESENT = 0, 1, 2  # in what a shard says of a probe


@dataclass(slots=True)
class Outcome:
    """What a commit came to. problems: why messages were not counted, by their entries' places.
    rows: what the answers release of the rows that came with votes."""

    answers: list[bytes] = field(default_factory=list)
    problems: dict[int, ZanonError] = field(default_factory=dict)
    rows: bytes = b""


class Counter:
    """All shards of one counter, and what is known of its probes.

    Which probes there are, the shards know alone. One that is forgotten because too many came after
    it may come again, as a new one: its votes are late then, and its users the same.

    tally: refused_*, duplicates_resent, uncounted, probes (that ever came) and ended; the shards
    count the rest.
    """

    def __init__(self, settings: CounterSettings) -> None:
        self._settings = settings
        self.offset = 0
        self.tally: Tally[str] = Tally()
        self._shards = [settings.new_shard(number) for number in range(settings.shards)]
        self._came = [0] * len(self._shards)  # numbers of probes, to each shard,
        self._renewed = [0] * len(self._shards)  # and those of them that took the place of another
        self._rows = new_store(settings)

    # ---- what a commit does ----------------------------------------------------------------------

    def apply(self, commit: Commit) -> Outcome:
        """Does a commit."""
        outcome = Outcome()
        touched: dict[int, None] = {}
        for place, entry in enumerate(commit.entries):
            if entry.kind == GONE:
                self.tally["probe_gone"] += self.waits_for(entry.probe)
                touched |= dict.fromkeys(self._forget(entry.probe))
                continue
            if entry.kind == ALL_PRESENT:
                self._expect_no_more()
                touched |= dict.fromkeys(range(len(self._shards)))
                continue
            header = entry.header
            try:
                self._put(entry, header, outcome.answers)
            except (FormatError, CapacityError) as error:
                is_alike = self.rules in (None, header.rules)
                self.tally["refused_by_shard" if is_alike else "refused_settings"] += 1
                outcome.problems[place] = error
                continue
            touched[header.shard] = None
        for shard in touched:
            outcome.answers += self._decide(shard)
        outcome.rows = self._rows.answered(outcome.answers)
        self.offset = commit.end
        return outcome

    def _put(self, entry: Entry, header: VotesHeader, answers: list[bytes]) -> None:
        """Puts a message; adds answers where others had to be decided to make space for it."""
        message, rows = self._rows.split(entry.message)
        if entry.kind == UNCOUNTED:
            message, rows = _marks_only(message), None
            self.tally["uncounted"] += 1
        shard = self._shards[header.shard]
        before = shard.probe(header.probe)
        try:
            is_new = shard.put(message)
        except CapacityError:
            answers += self._decide(header.shard)
            is_new = shard.put(message)
        if is_new and rows is not None:
            self._rows.keep(rows)
        if self.rules is None:
            for other in self._shards:
                other.rules = header.rules
        if before is None:
            self._note_probe(header)
        is_over = header.watermark == ENDED and not header.renewed
        if is_over and (before is None or before[WATERMARK] != ENDED):
            self._note_end(header.probe)

    def _decide(self, shard: int) -> list[bytes]:
        if self._came[shard] - self._renewed[shard] < self._settings.expect_probes:
            return []
        return list(self._shards[shard].decide())

    def _forget(self, probe: int) -> list[int]:
        """Decides without a probe from now on; returns the shards that had it."""
        shards = [n for n, shard in enumerate(self._shards) if shard.probe(probe) is not None]
        for number in shards:
            self._shards[number].forget_probe(probe)
        return shards

    def _expect_no_more(self) -> None:
        """Takes no more numbers for those of other probes than leave as many as are expected."""
        for shard, came in enumerate(self._came):
            others = max(came - self._settings.expect_probes, 0)
            self._renewed[shard] = min(self._renewed[shard], others)

    def _note_probe(self, header: VotesHeader) -> None:
        """Counts a probe that a shard did not know before this message."""
        self._came[header.shard] += 1
        self._renewed[header.shard] += header.renewed and header.sequence == 1
        others = (shard for number, shard in enumerate(self._shards) if number != header.shard)
        if not any(shard.probe(header.probe) for shard in others):
            self.tally["probes"] += 1

    def _note_end(self, probe: int) -> None:
        """Counts a probe that has just ended in a shard, if it was the last one."""
        known = [shard.probe(probe) for shard in self._shards]
        if all(of_shard is not None and of_shard[WATERMARK] == ENDED for of_shard in known):
            self.tally["ended"] += 1

    # ---- what is known ---------------------------------------------------------------------------

    def sequence_of(self, header: VotesHeader) -> int | None:
        """The last message that was counted of a probe in a shard; None: none was."""
        known = self._shards[header.shard].probe(header.probe)
        return None if known is None else int(known[SEQUENCE])

    def is_next(self, header: VotesHeader) -> bool:
        """Whether no message of the probe is missing before this one."""
        return self.sequence_of(header) in (None, header.sequence - 1)

    @property
    def rules(self) -> int | None:
        """vote_rules() of all its probes, as the first message has them; None: none was counted."""
        return self._shards[0].rules

    def is_known(self, probe: int) -> bool:
        """Whether a message of a probe was counted, and it is not forgotten."""
        return any(shard.probe(probe) is not None for shard in self._shards)

    def waits_for(self, probe: int) -> bool:
        """Whether decisions wait for the votes of a probe."""
        return any(
            known is not None and known[IS_PRESENT] and known[WATERMARK] != ENDED
            for known in (shard.probe(probe) for shard in self._shards)
        )

    def watermarks(self) -> dict[int, int]:
        """The least watermark of each probe that decisions wait for, over its shards."""
        least: dict[int, int] = {}
        for shard in self._shards:
            for probe, (_sequence, watermark) in shard.probes.items():
                if watermark != ENDED:
                    least[probe] = min(watermark, least.get(probe, watermark))
        return least

    def lags(self) -> dict[int, int]:
        """By how many nanoseconds a probe is behind what is decided, at most, over its shards: of
        those that decisions do not wait for."""
        most: dict[int, int] = {}
        for shard in self._shards:
            decided = shard.watermark
            for probe, (_sequence, watermark, is_present) in shard.known_probes.items():
                if not is_present and watermark < decided < ENDED:
                    most[probe] = max(decided - watermark, most.get(probe, 0))
        return most

    @property
    def watermark(self) -> int:
        """Before this time everything is decided; ENDED: all of it is."""
        return min(int(shard.watermark) for shard in self._shards)

    @property
    def probes(self) -> int:
        """How many probes ever came."""
        return self.tally["probes"]

    @property
    def probes_forgotten(self) -> int:
        """How often a shard forgot a probe for another one, in the shard that did most."""
        known = (len(shard.known_probes) for shard in self._shards)
        return max(map(int.__sub__, self._came, known))

    @property
    def probes_missing(self) -> int:
        """How many of the expected probes have not come, in the shard that waits for most."""
        came = map(int.__sub__, self._came, self._renewed)
        return max(self._settings.expect_probes - min(came), 0)

    @property
    def ended(self) -> set[int]:
        """The probes that have ended in all shards."""
        return set.intersection(
            *(
                {n for n, known in shard.known_probes.items() if known[WATERMARK] == ENDED}
                for shard in self._shards
            )
        )

    @property
    def is_done(self) -> bool:
        """Whether all probes that are expected have ended, and all votes are decided."""
        has_ended = self.tally["ended"] >= max(self._settings.expect_probes, 1)
        return has_ended and self.probes_missing == 0

    def stats(self) -> Mapping[str, int]:
        """The counts of all shards together, and the tally."""
        total: Tally[str] = Tally()
        for shard in self._shards:
            counts = dict(shard.stats)
            table = counts.pop("table")
            total.update(counts)
            total.update({f"table_{name}": count for name, count in table.items()})
        total["probes_forgotten"] = self.probes_forgotten
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
        about = {"tally": dict(self.tally), "came": self._came, "renewed": self._renewed}
        parts = {f"shard-{number}": shard.dump() for number, shard in enumerate(self._shards)}
        return {"counter": json.dumps(about).encode(), "rows": self._rows.dump(), **parts}

    def load(self, offset: int, parts: Mapping[str, bytes]) -> None:
        """Takes up what `dump` gave. Raises FormatError."""
        about = json.loads(parts["counter"])
        self.offset = offset
        self.tally = Tally(about["tally"])
        self._came, self._renewed = list(about["came"]), list(about["renewed"])
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
        rules=votes["rules"],
        renewed=votes["renewed"],
        marks_missing=votes["marks_missing"],
        sequence=votes["sequence"],
        max_votes=max(1, int(marks.sum())),
    )
    columns = (votes[name][marks] for name in ("t_ns", "user", "lo", "hi"))
    writer.add_columns(CLIENT_KIND, *columns)
    return bytes(writer.finish(votes["watermark_ns"]))
