# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Decisions of a counter: shards of votes, and the effect of commits on them.

Nothing here reads a clock, a file or a connection. Equal commits on an equal state give equal
answers.
"""

import json
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zanon_net._core import VoteShard
from zanon_net.count.attachments import new_store
from zanon_net.count.commits import ALL_PRESENT, GONE, UNCOUNTED, Commit, Entry
from zanon_net.count.frames import ENDED, VotesHeader
from zanon_net.count.settings import CounterSettings
from zanon_net.errors import CapacityError, FormatError, ZanonError

SEQUENCE, WATERMARK, IS_PRESENT = 0, 1, 2  # places in an entry of VoteShard.probe()


@dataclass(slots=True)
class Outcome:
    """Result of a commit. `problems` has the errors of the messages that were not counted, by the
    place of their entry. `rows` has the released rows of the rows that came with votes."""

    answers: list[bytes] = field(default_factory=list)
    problems: dict[int, ZanonError] = field(default_factory=dict)
    rows: bytes = b""


class Counter:
    """Shards of one counter, and counts of its probes.

    The shards alone know the sessions. A session that is forgotten because too many came after it
    may join again as a new session. Its votes are late then, and its users count once.

    `tally` has refused_*, duplicates_resent, uncounted, probes (that ever came) and ended. The
    shards count everything else.
    """

    def __init__(self, settings: CounterSettings) -> None:
        self._settings = settings
        self.offset = 0
        self.tally: Tally[str] = Tally()
        self._shards = [settings.new_shard(number) for number in range(settings.shards)]
        self._rows = new_store(settings)

    # ---- effect of a commit ----------------------------------------------------------------------

    def apply(self, commit: Commit) -> Outcome:
        """Applies a commit."""
        outcome = Outcome()
        touched: dict[int, None] = {}
        for place, entry in enumerate(commit.entries):
            if entry.kind == GONE:
                self.tally["probe_gone"] += self.waits_for(entry.probe)
                touched |= dict.fromkeys(self._forget(entry.probe))
                continue
            if entry.kind == ALL_PRESENT:
                for shard in self._shards:
                    shard.expect_no_more(self._settings.expect_probes)
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
        for number in touched:
            outcome.answers += self._decide(number)
        outcome.rows = self._rows.answered(outcome.answers)
        self.offset = commit.end
        return outcome

    def _put(self, entry: Entry, header: VotesHeader, answers: list[bytes]) -> None:
        """Puts a message. Adds answers if votes had to be decided to make space for it."""
        message, rows = self._rows.split(entry.message)
        marks_only = entry.kind == UNCOUNTED
        self.tally["uncounted"] += marks_only
        shard = self._shards[header.shard]
        before = shard.probe(header.probe)
        try:
            is_new = shard.put(message, marks_only=marks_only)
        except CapacityError:
            answers += self._decide(header.shard)
            is_new = shard.put(message, marks_only=marks_only)
        if is_new and rows is not None and not marks_only:
            self._rows.keep(rows)
        if self.rules is None:
            for other in self._shards:
                other.rules = header.rules
        if before is None:
            self._note_probe(header)
        is_over = header.watermark == ENDED and not header.new_session
        if is_over and (before is None or before[WATERMARK] != ENDED):
            self._note_end(header.probe)

    def _decide(self, shard: int) -> list[bytes]:
        if self._shards[shard].missing(self._settings.expect_probes):
            return []
        return list(self._shards[shard].decide())

    def _forget(self, probe: int) -> list[int]:
        """Decides without a session from now on. Returns the shards that knew it."""
        shards = [n for n, shard in enumerate(self._shards) if shard.probe(probe) is not None]
        for number in shards:
            self._shards[number].forget_probe(probe)
        return shards

    def _note_probe(self, header: VotesHeader) -> None:
        """Counts a session that joined a shard with this message."""
        others = (shard for number, shard in enumerate(self._shards) if number != header.shard)
        if not any(shard.probe(header.probe) for shard in others):
            self.tally["probes"] += 1

    def _note_end(self, probe: int) -> None:
        """Counts a session that ended in a shard, if it has ended in all shards now."""
        known = [shard.probe(probe) for shard in self._shards]
        if all(of_shard is not None and of_shard[WATERMARK] == ENDED for of_shard in known):
            self.tally["ended"] += 1

    # ---- state of the probes ---------------------------------------------------------------------

    def standing(self, header: VotesHeader, after: int = 0) -> int:
        """Returns the standing of a message in its shard, a value of STANDINGS. `after` is the
        sequence of the last message of its session that will be counted before it, or 0."""
        return self._shards[header.shard].standing(
            header.probe, header.sequence, header.settings, header.rules, after=after
        )

    def sequence_of(self, header: VotesHeader) -> int:
        """Sequence of the last counted message of a session in a shard; 0: none was counted."""
        known = self._shards[header.shard].probe(header.probe)
        return 0 if known is None else int(known[SEQUENCE])

    def is_next(self, header: VotesHeader) -> bool:
        """True if no message of the session is missing before this message."""
        return self.sequence_of(header) in (0, header.sequence - 1)

    @property
    def shards(self) -> Sequence[VoteShard]:
        """The shards, for a watch over their probes."""
        return self._shards

    @property
    def rules(self) -> int | None:
        """Value of vote_rules() of all probes, from the first message; None before it."""
        return self._shards[0].rules

    def is_known(self, probe: int) -> bool:
        """Returns true if a shard knows the session."""
        return any(shard.probe(probe) is not None for shard in self._shards)

    def waits_for(self, probe: int) -> bool:
        """Returns true if decisions wait for the votes of a session."""
        return any(
            known is not None and known[IS_PRESENT] and known[WATERMARK] != ENDED
            for known in (shard.probe(probe) for shard in self._shards)
        )

    def watermarks(self) -> dict[int, int]:
        """Returns the smallest watermark of each session that decisions wait for."""
        least: dict[int, int] = {}
        for shard in self._shards:
            for probe, (_sequence, watermark) in shard.probes.items():
                if watermark != ENDED:
                    least[probe] = min(watermark, least.get(probe, watermark))
        return least

    def lags(self) -> dict[int, int]:
        """Returns the largest lag behind the decided time, in nanoseconds, of each session that
        decisions do not wait for."""
        most: dict[int, int] = {}
        for shard in self._shards:
            for probe, lag_ns in shard.lags().items():
                most[probe] = max(lag_ns, most.get(probe, 0))
        return most

    @property
    def watermark(self) -> int:
        """Time before which every vote is decided; ENDED if all votes are."""
        return min(int(shard.watermark) for shard in self._shards)

    @property
    def probes(self) -> int:
        """Number of sessions that ever joined."""
        return self.tally["probes"]

    @property
    def probes_forgotten(self) -> int:
        """Number of sessions that a shard forgot for other sessions, in the shard with most."""
        counts = (shard.membership for shard in self._shards)
        return max(of_shard["joined"] - of_shard["known"] for of_shard in counts)

    @property
    def probes_missing(self) -> int:
        """Number of expected probes that have not joined, in the shard that waits for most."""
        return max(shard.missing(self._settings.expect_probes) for shard in self._shards)

    @property
    def ended(self) -> set[int]:
        """Sessions that have ended in all shards."""
        return set.intersection(
            *(
                {n for n, known in shard.known_probes.items() if known[WATERMARK] == ENDED}
                for shard in self._shards
            )
        )

    @property
    def is_done(self) -> bool:
        """True if all expected probes have ended, and all votes are decided."""
        has_ended = self.tally["ended"] >= max(self._settings.expect_probes, 1)
        return has_ended and self.probes_missing == 0

    def stats(self) -> Mapping[str, int]:
        """Returns the sums of the shards' counts, and the tally."""
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
        """Bytes of memory of all shards, at most."""
        return sum(int(shard.memory_bytes) for shard in self._shards) + self._rows.waiting_bytes

    def releases(self) -> "np.ndarray[Any, np.dtype[np.void]]":
        """Returns the votes released since the last call, as rows of RELEASE."""
        columns = [shard.releases() for shard in self._shards]
        rows = np.empty(sum(len(column[0]) for column in columns), RELEASE)
        for name, arrays in zip(RELEASE.names or (), zip(*columns, strict=True), strict=True):
            rows[name] = np.concatenate(arrays)
        return rows

    # ---- state -----------------------------------------------------------------------------------

    def dump(self) -> dict[str, bytes]:
        """Returns the whole state as parts by name."""
        about = {"tally": dict(self.tally)}
        parts = {f"shard-{number}": shard.dump() for number, shard in enumerate(self._shards)}
        return {"counter": json.dumps(about).encode(), "rows": self._rows.dump(), **parts}

    def load(self, offset: int, parts: Mapping[str, bytes]) -> None:
        """Restores the parts that `dump` returned. Raises FormatError."""
        about = json.loads(parts["counter"])
        self.offset = offset
        self.tally = Tally(about["tally"])
        self._rows.load(parts["rows"])
        self._shards = [
            VoteShard.load(parts[f"shard-{number}"]) for number in range(len(self._shards))
        ]


RELEASE = np.dtype([("t_ns", "<i8"), ("user", "<u8"), ("lo", "<u8"), ("hi", "<u8")])
"""Row of a released vote: time, user and both halves of the attribute."""
