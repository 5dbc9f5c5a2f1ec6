# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What takes a run's output: the interface, and standard output."""

import errno
import io
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from zanon_net._core import TABLES
from zanon_net.errors import ConfigError, ZanonError
from zanon_net.output.files import SUFFIXES, compressor, explained
from zanon_net.output.schema import Column

_STEMS = {"jsonl": "flows", "csv": "flows", "tcp_table": "tcp", "udp_table": "udp"}
_SUFFIXES = {"jsonl": ".jsonl", "observations": ".jsonl", "csv": ".csv"} | dict.fromkeys(
    TABLES, ".parquet"
)

Lines = tuple[bytes | memoryview, int]
"""Whole lines, and how many they are."""
Parts = Sequence[tuple[int | None, Mapping[str, Lines], Mapping[str, int]]]
"""Of each period: its start in ns (None: the last one goes on), its lines, where its rows end."""
Tables = Mapping[str, Sequence[Column]]
"""The rows of all those periods, by output."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written, and how.

    outputs: the core's names. headers: the first line of each text output's files. fields: of each
    table, as `_core.Engine.fields` has them. about: texts for Parquet's metadata.
    split_ns: length of a part, 0: no limit. split_bytes: size of a file at which a part ends.
    """

    outputs: tuple[str, ...]
    headers: Mapping[str, bytes] = field(default_factory=dict)
    fields: Mapping[str, Sequence[tuple[str, str, bool]]] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)
    compress: str = "none"
    split_ns: int = 0
    split_bytes: int = 0

    def file_name(self, output: str, stamp: str = "") -> str:
        """The name of an output's file without its folder."""
        name = _STEMS.get(output, output) + stamp + _SUFFIXES.get(output, "")
        return name if output in TABLES else name + SUFFIXES[self.compress]


class Sink(ABC):
    """Takes what an engine drained. Ends with `publish`, or with `discard` after any error."""

    @abstractmethod
    def take(self, parts: Parts, tables: Tables) -> None:
        """Appends. Raises OutputError."""

    @abstractmethod
    def settle(self, first_ns: int | None) -> None:
        """Ends writing.

        first_ns: the time of the first packet; None: there was none, so there are no files.
        """

    @abstractmethod
    def publish(self, manifest: bytes) -> None:
        """Makes everything appear. Raises OutputError, with nothing more having appeared."""

    @abstractmethod
    def discard(self) -> None:
        """Removes what has not appeared; does nothing after `publish`."""

    def rotate(self, first_ns: int, now_ns: int) -> None:  # noqa: B027  (a stream has no parts)
        """Ends the part, and begins another at now_ns; first_ns: the time of the first packet."""

    @property
    def is_large(self) -> bool:
        """Whether a file has reached the size at which the plan ends a part."""
        return False

    def abandon(self, manifest: Callable[[], bytes]) -> None:
        """Removes what has not appeared, and leaves a manifest of what has, made after that."""
        del manifest
        self.discard()

    @property
    def files(self) -> list[dict[str, Any]]:
        """What has appeared, or is about to: {"file", "bytes", "records"} of each."""
        return []

    @property
    @abstractmethod
    def written(self) -> Mapping[str, int]:
        """Records in those files, by output."""


class ClosedStdout(io.StringIO):
    """In the place of a standard output that was closed: Python would drop what is printed."""

    def write(self, _text: str, /) -> int:
        """Raises ZanonError."""
        raise ZanonError("standard output is closed")


def refuse_stdout(file: int | str | os.PathLike[str], name: str) -> None:
    """Raises ConfigError, with `name`, where `file` is a regular one to which standard output goes.

    A file that grows by what is read of it would be read for ever.
    """
    try:
        output = os.fstat(sys.stdout.fileno())
        found = os.fstat(file) if isinstance(file, int) else Path(file).stat()
    except (AttributeError, OSError, ValueError):  # closed, or no file
        return
    if stat.S_ISREG(output.st_mode) and os.path.samestat(output, found):
        raise ConfigError(f"{name} is also where standard output goes; choose another file")


class StdoutSink(Sink):
    """One output to standard output. A reader that went away raises BrokenPipeError."""

    def __init__(self, plan: Plan) -> None:
        stream = getattr(sys.stdout, "buffer", None)
        if stream is None:
            raise ZanonError("standard output is closed")
        self._stream: BinaryIO = stream
        (self._output,) = plan.outputs
        self._compressor = compressor(plan.compress)
        self._records = 0
        self._put(plan.headers.get(self._output, b""))

    def _put(self, data: bytes | memoryview) -> None:
        self._write(self._compressor.compress(data))
        with explained("write", "standard output"):
            self._stream.flush()  # a reader behind a pipe sees a batch when it is decided

    def _write(self, data: bytes | memoryview) -> None:
        """All of it: without a buffer (PYTHONUNBUFFERED) a signal or a full disk cuts a write."""
        rest = memoryview(data)
        with explained("write", "standard output"):
            while rest:
                written = self._stream.write(rest)
                if not written:
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                rest = rest[written:]

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            if self._output in texts:
                lines, count = texts[self._output]
                self._put(lines)
                self._records += count

    def settle(self, first_ns: int | None) -> None:
        """See Sink; standard output is no file of a folder."""
        self._write(self._compressor.flush())

    def publish(self, manifest: bytes) -> None:
        """See Sink; the manifest has no place among the data."""
        with explained("write", "standard output"):
            self._stream.flush()

    def discard(self) -> None:
        """See Sink; what was written is gone."""

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return {self._output: self._records}
