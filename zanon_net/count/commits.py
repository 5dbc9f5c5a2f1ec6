# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Commits: what a counter does between two looks at its input, in the form its journal keeps.

Whoever does the same commits again, from the same state, decides the same and writes the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from zanon_net.count.frames import VotesHeader, votes_header
from zanon_net.errors import FormatError

COUNTED, UNCOUNTED, GONE, ALL_PRESENT = "counted", "uncounted", "gone", "all present"


class Entry(NamedTuple):
    """A step: a message that is counted; one whose votes are not; a probe that is gone; or that as
    many probes as are expected are there, whatever their numbers took the place of.

    read: the message's header, where it was read already.
    """

    kind: str
    message: bytes = b""
    probe: int = 0
    read: VotesHeader | None = None

    @property
    def header(self) -> VotesHeader:
        """The message's header. Raises FormatError where it has none."""
        return self.read or votes_header(self.message)


@dataclass(frozen=True, slots=True)
class Commit:
    """first: the offset of its first entry, of all that were ever committed. positions: how far the
    log behind them was read."""

    first: int
    entries: Sequence[Entry]
    positions: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset behind its last entry."""
        return self.first + len(self.entries)

    @property
    def name(self) -> str:
        """The offsets it covers."""
        return f"{self.first:020d}-{self.end - 1:020d}"

    def to_bytes(self) -> bytes:
        """For the journal."""
        steps = [[entry.kind, len(entry.message), entry.probe] for entry in self.entries]
        about = {"first": self.first, "positions": dict(self.positions), "entries": steps}
        header = json.dumps(about, separators=(",", ":")).encode()
        messages = (entry.message for entry in self.entries)
        return b"".join((len(header).to_bytes(4, "little"), header, *messages))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Commit":
        """Out of the journal. Raises FormatError."""
        at = 4 + int.from_bytes(data[:4], "little")
        try:
            about = json.loads(data[4:at])
            entries = []
            for kind, length, probe in about["entries"]:
                entries.append(Entry(kind, data[at : at + length], probe))
                at += length
            if at != len(data):
                raise ValueError
            return cls(about["first"], entries, about["positions"])
        except (KeyError, TypeError, ValueError):
            raise FormatError("the journal holds no commit where one should be") from None
