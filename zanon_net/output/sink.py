# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The interface of sinks, which take a run's output, and the plan of the files to write."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zanon_net._core import FILE_NAMES, TABLES, TableRows
from zanon_net.output.disk import DiskFacts, DiskRules
from zanon_net.output.files import SUFFIXES
from zanon_net.output.private_file import PRIVATE

Lines = tuple[bytes | memoryview, int]
"""Whole lines, and how many they are."""
Parts = Sequence[tuple[int | None, Mapping[str, Lines], Mapping[str, int]]]
"""Each period's start in ns (None: the last one goes on), its lines, and where its rows end."""
Tables = Mapping[str, TableRows]
"""The rows of all those periods, by output."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Counts of the packets that were to leave through an interface.

    sent: those that left, and bytes, theirs. full: the interface's queue was full, or its cable was
    out. oversize: they were above its MTU. error: the system rejected them.
    """

    interface: str
    sent: int = 0
    bytes: int = 0
    full: int = 0
    oversize: int = 0
    error: int = 0

    @property
    def dropped(self) -> int:
        """Packets that did not leave."""
        return self.full + self.oversize + self.error

    @property
    def total(self) -> int:
        """All packets that were to leave."""
        return self.sent + self.dropped

    def text(self) -> str:
        """For people."""
        return (
            f"{self.sent:,} through {self.interface}; dropped {self.full:,} as its queue was full,"
            f" {self.oversize:,} above its MTU, {self.error:,} rejected"
        )

    def warning(self) -> str | None:
        """A line about packets that did not leave; None where all did."""
        if not self.dropped:
            return None
        return f"{self.dropped:,} of {self.total:,} packets did not leave: {self.text()}"

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Sent":
        """The counts that a manifest has."""
        names = ("name", "sent", "bytes", "tx_full", "tx_oversize", "tx_error")
        return cls(*(facts[name] for name in names))

    def to_dict(self) -> dict[str, str | int]:
        """For the manifest."""
        return {
            "name": self.interface,
            "sent": self.sent,
            "bytes": self.bytes,
            "tx_full": self.full,
            "tx_oversize": self.oversize,
            "tx_error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The files to write.

    outputs: the core's names. headers: the first line of each text output's files. fields: those of
    each table, as `_core.PacketEngine.fields` returns them. about: texts for Parquet's metadata.
    views: the name of the view that an output of one is. split_ns: length of a part, 0: no limit.
    split_bytes: size of a file at which a part ends. disk: the rules of what stays on the disk.
    mode: of the manifest's file.
    """

    outputs: tuple[str, ...]
    headers: Mapping[str, bytes] = field(default_factory=dict)
    fields: Mapping[str, Sequence[tuple[str, str, bool]]] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)
    compress: str = "none"
    views: Mapping[str, str] = field(default_factory=dict)
    split_ns: int = 0
    split_bytes: int = 0
    disk: DiskRules = field(default_factory=DiskRules)
    mode: int = PRIVATE

    def file_name(self, output: str, stamp: str = "") -> str:
        """The name of an output's file without its folder."""
        stem, suffix = FILE_NAMES[output]
        if output in self.views:
            stem += f".{self.views[output]}"
        name = stem + stamp + suffix
        return name if output in TABLES else name + SUFFIXES[self.compress]


class Sink(ABC):
    """Takes drained output of an engine. Ends with `publish`, or with `discard` after any error."""

    @abstractmethod
    def take(self, parts: Parts, tables: Tables) -> None:
        """Appends. Raises OutputError."""

    @abstractmethod
    def finish(self, first_ns: int | None) -> None:
        """Ends writing.

        first_ns: the time of the first packet; None: there was none, so there are no files.
        """

    @abstractmethod
    def publish(self, manifest: bytes) -> None:
        """Gives all files their names. Raises OutputError, and then nothing more has appeared."""

    @abstractmethod
    def discard(self) -> None:
        """Removes what has not appeared; does nothing after `publish`."""

    def rotate(self, first_ns: int, now_ns: int) -> None:  # noqa: B027  (a stream has no parts)
        """Ends the part, and begins another at now_ns; first_ns: the time of the first packet."""

    @property
    def is_large(self) -> bool:
        """Whether a file has reached the size at which the plan ends a part."""
        return False

    parts = 0
    """How many parts have appeared."""

    def flush(self, *, blocks: bool) -> None:  # noqa: B027  (not every sink has buffers)
        """Hands the system what waits in buffers, all of it whole records. Raises OutputError.

        blocks: also what compressors hold back, which makes files a little larger.
        """

    def keep_state(self, manifest: Callable[[], bytes]) -> None:  # noqa: B027  (as above)
        """Keeps the manifest of the run so far where it can be read, if there is a place for it."""

    place: Path | None = None
    """The folder, or the one file, that appears; None: there is none."""
    is_file = False
    """Whether that is a file."""

    @property
    def sent(self) -> Sent | None:
        """The packets so far that were to leave through an interface; None where none are."""
        return None

    def tend(self) -> bool:
        """Removes parts that are due, and begins anew where a full disk has space again.

        To be called at times while interfaces are read. Returns whether anything has changed.
        """
        return False

    @property
    def disk(self) -> DiskFacts:
        """What became of the output on its disk so far."""
        return DiskFacts()

    @property
    def lost(self) -> Mapping[str, int]:
        """Records that were not written while a disk was full, by output."""
        return {}

    may_async_sink = False
    """Whether a thread may have it take a piece while the next is made: files never block."""

    was_cut = False
    """Whether the last part was cut to whole records, because there was no room for more."""

    def abandon(self, manifest: Callable[[], bytes], kept_from: int | None = None) -> None:
        """Removes files that have not appeared; leaves a manifest of those that have.

        kept_from: there was no room to write on. The whole records of the open part are kept,
        which, if it is the first, began at this time. None: that part is removed.
        """
        del manifest, kept_from
        self.discard()

    @property
    def files(self) -> list[dict[str, Any]]:
        """{"file", "bytes", "records"} of each file that has appeared, or is about to."""
        return []

    @property
    @abstractmethod
    def written(self) -> Mapping[str, int]:
        """Records in those files, by output."""
