# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of a run: capture files, folders of them, pipes and standard input, compressed or not.

Several sources are read one after the other, in the order of their first packets' times.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from zanon_net._core import Capture
from zanon_net.config.settings import Config
from zanon_net.errors import CapacityError, CaptureError, ConfigError, FormatError
from zanon_net.pipeline.facts import SourceFacts
from zanon_net.pipeline.interfaces import interfaces_of, no_such
from zanon_net.system.decompress import MAGIC_BYTES, Unpacker, compression_of
from zanon_net.system.log import log
from zanon_net.system.streams import (
    STDIN,
    Source,
    check_sources,
    open_path,
    read_stream,
    refuse_stdout,
    writes_to_file,
)

HEADER_BYTES_MAX = 1 << 12  # more than is read before a file is refused as no capture
HEAD_BYTES = 1 << 11  # bytes in which the first frame of a file is looked for


class OpenSource:
    """A source: its capture while it is open, its facts at any time.

    A file can be closed and opened again; a stream is opened once.
    """

    def __init__(self, path: str | None, config: Config) -> None:
        """path: the path of a file or of a pipe; None for standard input."""
        self.name = "stdin" if path is None else path.rpartition("/")[2]
        self.frames = 0
        self.first_ns: int | None = None
        self._config = config
        self._path = path
        self._stack: ExitStack | None = None
        self._capture: Capture | None = None
        self._unpacker: Unpacker | None = None
        self._facts: SourceFacts | None = None
        found = None if path is None else _stat_of(path)
        self.is_file = found is not None and stat.S_ISREG(found.st_mode)
        self._total = found.st_size if found is not None and self.is_file else 0

    @property
    def is_open(self) -> bool:
        """True if its capture is open."""
        return self._capture is not None

    @property
    def is_unpacked(self) -> bool:
        """True if its capture is being unpacked."""
        return self._unpacker is not None

    @property
    def capture(self) -> Capture:
        """The open capture."""
        if self._capture is None:
            self.open()
            assert self._capture is not None
        return self._capture

    def open(self) -> None:
        """Opens the source and reads its header. Raises ConfigError, CaptureError or
        FormatError."""
        self._capture = self._open_file() if self.is_file else None
        if self._capture is not None:
            return
        stack = ExitStack()
        try:
            self._capture = self._open(stack)
        except BaseException:
            stack.close()
            raise
        self._stack = stack

    def _open_file(self) -> Capture | None:
        """Opens a file that is not compressed; None: it is compressed, or no capture."""
        try:
            return Capture(self._path, filter=self._config.input.filter)
        except (CaptureError, FormatError):
            return None

    def _open(self, stack: ExitStack) -> Capture:
        expression = self._config.input.filter
        self._unpacker = None
        if self._path is None:
            if os.isatty(0):
                raise ConfigError("standard input is a terminal; pipe a capture into it")
            return self._open_stream(stack, 0, "standard input")
        if self._path == self.name and not os.path.lexists(self._path):
            text = f"{self._path} cannot be opened: {no_such(self._path)}"
            raise CaptureError(errno.ENOENT, text)
        path = Path(self._path)
        if not self.is_file and (path.is_dir() or not path.exists()):
            return stack.enter_context(Capture(self._path, filter=expression))
        try:
            fd = open_path(path, is_file=self.is_file)
        except OSError as error:
            text = f"{self._path} cannot be opened: {error.strerror}"
            raise CaptureError(error.errno, text) from None
        if self.is_file and compression_of(_first_bytes(fd, self._path)) is None:
            os.close(fd)
            return stack.enter_context(Capture(self._path, filter=expression))
        stack.callback(os.close, fd)
        return self._open_stream(stack, fd, self._path)

    def _open_stream(self, stack: ExitStack, fd: int, name: str) -> Capture:
        expression, start = self._config.input.filter, _read_start(fd, name)
        if compression_of(start) is None:
            return stack.enter_context(Capture(fd=fd, start=start, name=name, filter=expression))
        raw = os.fdopen(os.dup(fd), "rb", buffering=0)
        unpacker = Unpacker(raw, start, self._config.input.bound)
        stack.callback(unpacker.close)
        try:
            capture = stack.enter_context(
                Capture(fd=unpacker.fd, name=name, filter=expression, unpacked=self.is_file)
            )
        except FormatError:
            if not unpacker.ends_within(HEADER_BYTES_MAX):
                raise
            _refuse_exceeded(name, unpacker)
            if unpacker.problem is None:
                raise
            raise FormatError(f"{name}: {unpacker.problem}") from None
        self._unpacker = unpacker
        return capture

    def check(self) -> None:
        """Raises CapacityError if its capture reached the bound on its unpacked size."""
        if (unpacker := self._ended_unpacker()) is not None:
            _refuse_exceeded(self.name, unpacker)

    def _ended_unpacker(self) -> Unpacker | None:
        """Returns the unpacker if its capture was read to the end of the unpacked data.

        Data after a record that ended the capture is ignored: the unpacker may or may not have
        reached it before it was stopped.
        """
        saw_end = self._capture is not None and self._capture.saw_end
        return self._unpacker if saw_end else None

    def look(self) -> None:
        """Finds the time of the first packet; closes a file that can be opened again."""
        closes = self.is_file and self._config.live.drop_to is None
        if closes and not self.is_open and not self._config.input.filter:
            assert self._path is not None
            self.first_ns = _first_ns(self._path)
        if self.first_ns is None:
            self.first_ns = self.capture.peek_ns()
        if closes:
            self._close()

    def again(self) -> "OpenSource":
        """Returns a second handle of a file, which is not open yet."""
        assert self.is_file
        assert self._path is not None
        return OpenSource(self._path, self._config)

    def close(self) -> None:
        """Closes the source; its facts stay."""
        if self._capture is not None:
            self._facts = self.facts()
            self._close()

    def _close(self) -> None:
        if self._capture is not None:
            self._capture.close()
        if self._stack is not None:
            self._stack.close()
        self._capture = self._stack = None

    def progress(self) -> tuple[int, int]:
        """Returns (bytes of the file read, bytes in all); 0 if unknown."""
        if self._unpacker is not None:
            return self._unpacker.packed_bytes, self._total
        if self._capture is None:
            return (0 if self._facts is None else self._facts.bytes_read), self._total
        return self._capture.bytes_read, self._total

    def facts(self) -> SourceFacts:
        """Returns the facts so far."""
        if self._capture is None:
            if self._facts is None:
                return SourceFacts(self.name, "", None, {}, 0, 0, None)
            return self._facts
        ended = self._ended_unpacker()
        problems = [] if ended is None else [ended.problem]
        problems.append(self._capture.warning)
        return SourceFacts(
            name=self.name,
            format=self._capture.format,
            compression=None if self._unpacker is None else self._unpacker.compression,
            link_types=self._capture.link_types,
            bytes_read=self._capture.bytes_read,
            frames=self.frames,
            warning="; ".join(problem for problem in problems if problem) or None,
        )


def _stat_of(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  (a Path takes longer, once for each capture)
    except (OSError, ValueError):
        return None


def _first_ns(path: str) -> int | None:
    """Returns the time of a file's first frame; None if the first bytes of the file do not contain
    the frame.

    A folder may have many files, and mapping a file takes ten times as long.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            head = os.pread(fd, HEAD_BYTES, 0)
        finally:
            os.close(fd)
        return Capture(data=head).peek_ns()
    except (OSError, CaptureError, FormatError):
        return None


def _refuse_exceeded(name: str, unpacker: Unpacker) -> None:
    if unpacker.exceeded is not None:
        raise CapacityError(f"{name}: {unpacker.exceeded}")


def _first_bytes(fd: int, name: str) -> bytes:
    """Returns the first bytes of a file and keeps its offset. Closes `fd` if they cannot be
    read."""
    try:
        return os.pread(fd, MAGIC_BYTES, 0)
    except OSError as error:
        os.close(fd)
        raise CaptureError(error.errno, f"{name} cannot be read: {error.strerror}") from None


def _read_start(fd: int, name: str) -> bytes:
    """Waits for the first bytes of a stream and returns them."""
    start = b""
    try:
        while len(start) < MAGIC_BYTES and (more := read_stream(fd, MAGIC_BYTES - len(start))):
            start += more
    except OSError as error:
        raise CaptureError(error.errno, f"{name} cannot be read: {error.strerror}") from None
    return start


def open_sources(sources: Sequence[Source], config: Config, stack: ExitStack) -> list[OpenSource]:
    """Opens every source and reads its header; returns them in the order of their first packets.

    Folders are replaced by the captures in them, without those in subfolders; other files are left
    out. `stack` closes all that was opened.

    Raises ConfigError, CaptureError or FormatError.
    """
    check_sources(sources)
    opened: list[OpenSource] = []
    stack.callback(_close_all, opened)
    for source in sources:
        if source != STDIN and Path(source).is_dir():
            _open_folder(Path(source), config, opened)
        else:
            _open_one(source, config, opened, alone=len(sources) == 1)
    if len(opened) > 1:
        for item in opened:
            if item.first_ns is None:
                item.look()
        opened.sort(key=lambda item: (item.first_ns is None, item.first_ns or 0))
    return opened


def _close_all(opened: Sequence[OpenSource]) -> None:
    for item in opened:
        item.close()


def _open_one(source: Source, config: Config, opened: list[OpenSource], *, alone: bool) -> None:
    """Appends a source. It is open, unless it is one of several files, which are not all open at a
    time."""
    if interfaces_of([source]):
        raise CaptureError(f"{source} is a network interface, which only `zanon-net run` reads")
    opened.append(OpenSource(None if source == STDIN else str(Path(source)), config))
    if opened[-1].is_file and not alone:
        opened[-1].look()
    else:
        opened[-1].open()


def _open_folder(folder: Path, config: Config, opened: list[OpenSource]) -> None:
    """Appends the captures in a folder, closed again."""
    prefix, before = str(folder / "_")[:-1], len(opened)
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        names = [entry.name for entry in entries if entry.is_file()]
        nowhere = [  # links, such as links to a missing disk
            folder / entry.name
            for entry in entries
            if entry.is_symlink() and not Path(entry).exists()
        ]
    except OSError as error:
        raise CaptureError(error.errno, f"{folder} cannot be read: {error.strerror}") from None
    for path in nowhere:
        log.warning("%s leads to no file: left out", path.name)
    may_be_stdout = writes_to_file()
    for name in names:
        opened.append(OpenSource(prefix + name, config))
        try:
            opened[-1].look()
        except FormatError:
            opened.pop().close()
            log.info("%s is no capture: left out", name)
            continue
        if may_be_stdout:
            refuse_stdout(prefix + name, name)
    if len(opened) == before:
        raise FormatError(f"{folder} is a folder without a capture in it")
