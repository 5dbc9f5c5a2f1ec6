# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interface of sinks, which take a run's output, and the plan of the files to write."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from zanon_net._core import FILE_NAMES, TableRows
from zanon_net._record import dataclass
from zanon_net.config.formats import PACK_THEMSELVES
from zanon_net.output.disk import DiskFacts, DiskRules
from zanon_net.output.files import SUFFIXES
from zanon_net.output.new_file import PRIVATE

Lines = tuple[bytes | memoryview, int]
"""Whole lines and their number."""
Parts = Sequence[tuple[int | None, Mapping[str, Lines], Mapping[str, int]]]
"""Start of each period in ns (None: the last period continues), its lines, and the end of its
rows."""
Tables = Mapping[str, TableRows]
"""Rows of all periods, by output."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Counts of the packets that were to leave through an interface.

    sent: packets that left. bytes: their bytes.
    full: dropped because the interface's queue was full, or its cable was out.
    oversize: dropped because they were above its MTU.
    error: rejected by the system.
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
        """Returns the counts as text."""
        return (
            f"{self.sent:,} through {self.interface}; dropped {self.full:,} as its queue was full,"
            f" {self.oversize:,} above its MTU, {self.error:,} rejected"
        )

    def warning(self) -> str | None:
        """Returns a line about packets that did not leave; None if all left."""
        if not self.dropped:
            return None
        return f"{self.dropped:,} of {self.total:,} packets did not leave: {self.text()}"

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Sent":
        """Returns the counts in a manifest."""
        names = ("name", "sent", "bytes", "tx_full", "tx_oversize", "tx_error")
        return cls(*(facts[name] for name in names))

    def to_dict(self) -> dict[str, str | int]:
        """Returns the counts for the manifest."""
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

    outputs: the core's names.
    headers: the first line of each text output's files.
    fields: the fields of each table, as `_core.PacketEngine.fields` returns them.
    about: texts for Parquet's metadata.
    views: the name of the view for each output of a view.
    partition: keys of the folders of Parquet files; empty: no such folders.
    split_ns: length of a part in ns, 0: no limit.
    split_bytes: size of a file at which a part ends.
    disk: the rules for the use of the disk.
    mode: permissions of the manifest.
    """

    outputs: tuple[str, ...]
    headers: Mapping[str, bytes] = field(default_factory=dict)
    fields: Mapping[str, Sequence[tuple[str, str, bool]]] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)
    compress: str = "none"
    views: Mapping[str, str] = field(default_factory=dict)
    partition: Sequence[str] = ()
    split_ns: int = 0
    split_bytes: int = 0
    disk: DiskRules = field(default_factory=DiskRules)
    mode: int = PRIVATE

    def file_name(self, output: str, stamp: str = "") -> str:
        """Returns the name of an output's file without its folder."""
        stem, suffix = FILE_NAMES[output]
        if output in self.views:
            stem += f".{self.views[output]}"
        name = stem + stamp + suffix
        return name if output in PACK_THEMSELVES else name + SUFFIXES[self.compress]


class Sink(ABC):
    """Takes drained output of an engine. Ends with `publish`, or with `discard` after any error."""

    @abstractmethod
    def take(self, parts: Parts, tables: Tables) -> None:
        """Appends. Raises OutputError."""

    @abstractmethod
    def finish(self, first_ns: int | None) -> None:
        """Ends writing.

        first_ns: the time of the first packet; None if there was no packet, so that there are no
        files.
        """

    @abstractmethod
    def publish(self, manifest: bytes) -> None:
        """Gives all files their names. Raises OutputError, and then nothing more has appeared."""

    @abstractmethod
    def discard(self) -> None:
        """Removes files that have not appeared; does nothing after `publish`."""

    def rotate(self, first_ns: int, now_ns: int) -> None:  # noqa: B027  (a stream has no parts)
        """Ends the part, and begins another part at now_ns. first_ns: the time of the first
        packet."""

    @property
    def is_large(self) -> bool:
        """True if a file has reached the size at which the plan ends a part."""
        return False

    parts = 0
    """The number of parts that have appeared."""

    def flush(self, *, blocks: bool) -> None:  # noqa: B027  (not every sink has buffers)
        """Hands buffered whole records to the system. Raises OutputError.

        blocks: if true, also the bytes that compressors delay, which makes files a little larger.
        """

    def keep_state(self, manifest: Callable[[], bytes]) -> None:  # noqa: B027  (as above)
        """Keeps the manifest of the run so far at a readable place, if there is a place for it."""

    place: Path | None = None
    """The folder, or the one file, that appears; None if nothing appears."""
    is_file = False
    """True if the place is a file."""

    @property
    def sent(self) -> Sent | None:
        """The packets so far that were to leave through an interface; None if the output is no
        interface."""
        return None

    def tend(self) -> bool:
        """Removes parts that are due, and resumes writing if a full disk has space again.

        It is called regularly while interfaces are read. Returns true if anything has changed.
        """
        return False

    @property
    def disk(self) -> DiskFacts:
        """The state of the output on its disk so far."""
        return DiskFacts()

    @property
    def lost(self) -> Mapping[str, int]:
        """Records that were not written while a disk was full, by output."""
        return {}

    may_async_sink = False
    """True if a thread may write a piece while the next piece is made: files never block."""

    was_cut = False
    """True if the last part was cut to whole records because there was no space."""

    def abandon(self, manifest: Callable[[], bytes], kept_from: int | None = None) -> None:
        """Removes files that have not appeared; leaves a manifest of files that have appeared.

        kept_from: begin of the open part, if it is the first and writing found no space. The whole
        records of the open part are then kept. None: the open part is removed.
        """
        del manifest, kept_from
        self.discard()

    @property
    def files(self) -> list[dict[str, Any]]:
        """{"file", "bytes", "records"} of each file that has appeared, or is about to appear."""
        return []

    @property
    @abstractmethod
    def written(self) -> Mapping[str, int]:
        """Records in those files, by output."""
