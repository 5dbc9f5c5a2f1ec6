# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Commits: the steps of a counter between two looks at its input, as its journal keeps them.

Equal commits on an equal state give equal decisions and equal files.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zanon_net._core import VOTE_ENTRIES, read_entry, write_entry
from zanon_net.count.frames import VotesHeader, votes_header
from zanon_net.errors import FormatError

COUNTED, UNCOUNTED = VOTE_ENTRIES["counted"], VOTE_ENTRIES["uncounted"]
GONE, ALL_PRESENT = VOTE_ENTRIES["gone"], VOTE_ENTRIES["all_present"]


class Entry(NamedTuple):
    """Step of a counter: a message that counts, a message of which the marks of clients count
    alone, a session that is gone, or that all expected probes are present.

    `probe` is the session that is gone. `read` is the message's header, if it was read already.
    """

    kind: int
    message: bytes = b""
    probe: int = 0
    read: VotesHeader | None = None

    @property
    def header(self) -> VotesHeader:
        """Header of the message. Raises FormatError for a message without a header."""
        return self.read or votes_header(self.message)


@dataclass(frozen=True, slots=True)
class Commit:
    """Entries that are counted together.

    `first` is the offset of the first entry among all entries ever committed. `positions` are the
    positions up to which the broker's log was read.
    """

    first: int
    entries: Sequence[Entry]
    positions: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Offset behind the last entry."""
        return self.first + len(self.entries)

    @property
    def name(self) -> str:
        """Name of the commit's files: the offsets that it covers."""
        return f"{self.first:020d}-{self.end - 1:020d}"

    def to_bytes(self) -> bytes:
        """Returns the commit as a record of the journal."""
        entries = [write_entry(entry.kind, entry.message, entry.probe) for entry in self.entries]
        lengths = [len(entry) for entry in entries]
        about = {"first": self.first, "positions": dict(self.positions), "lengths": lengths}
        header = json.dumps(about, separators=(",", ":")).encode()
        return b"".join((len(header).to_bytes(4, "little"), header, *entries))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Commit":
        """Reads a record of the journal. Raises FormatError."""
        at = 4 + int.from_bytes(data[:4], "little")
        try:
            about = json.loads(data[4:at])
            entries = []
            for length in about["lengths"]:
                entries.append(Entry(*read_entry(data[at : at + length])))
                at += length
            if at != len(data):
                raise ValueError
            return cls(about["first"], entries, about["positions"])
        except (FormatError, KeyError, TypeError, ValueError):
            raise FormatError("the journal holds no commit where one should be") from None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a counter at one offset, before it is sealed.

    `offset` is the offset of the next entry, `about` has small values, and `parts` large parts.
    """

    offset: int
    about: Mapping[str, Any]
    parts: Mapping[str, bytes]
