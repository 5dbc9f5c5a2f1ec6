# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Where logs go: a folder in which files appear whole or not at all, or standard output.

A folder's files are written as NAME.partial and get their names when everything is on the disk, the
manifest last. An error takes them away again: nothing of a failed run stands under a final name.
"""

import contextlib
import errno
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from zanon_net.config import FORMAT_OUTPUTS
from zanon_net.errors import ConfigError, ZanonError

MANIFEST = "manifest.json"
PARTIAL = ".partial"
BUFFER_BYTES = 1 << 20

_FILE_NAMES = {"jsonl": "flows.jsonl", "observations": "observations.jsonl"}
_ADVICE = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "the disk quota is used up: free some space and run again",
    errno.EFBIG: "the limit on file sizes is reached: raise it with ulimit -f and run again",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.EROFS: "choose a folder you may write to",
    errno.ENOENT: "make the folder it is to lie in first",
}


def tstat_folder(first_ns: int) -> str:
    """The name of Tstat's folder for a first packet at `first_ns`, in UTC."""
    return datetime.fromtimestamp(first_ns // 1_000_000_000, UTC).strftime("%Y_%m_%d_%H_%M.out")


def default_folder(now: datetime) -> Path:
    """`./zanon-<UTC start>` for a run that starts now."""
    return Path(now.astimezone(UTC).strftime("zanon-%Y%m%dT%H%M%SZ"))


class Sink(ABC):
    """Takes the outputs' bytes. Ends with `publish`, or with `discard` after any error."""

    @abstractmethod
    def write(self, output: str, data: bytes) -> None:
        """Appends whole lines. Raises ZanonError."""

    @abstractmethod
    def settle(self, first_ns: int | None) -> dict[str, int]:
        """Ends writing; returns the bytes of each file, by its name in the folder.

        first_ns: the time of the first packet; None: there was none, so there are no files.
        """

    @abstractmethod
    def publish(self, manifest: bytes) -> None:
        """Makes everything appear. Raises ZanonError, with nothing having appeared."""

    @abstractmethod
    def discard(self) -> None:
        """Removes what was written; does nothing after `publish`."""


class StdoutSink(Sink):
    """One output to standard output. A reader that went away raises BrokenPipeError."""

    def __init__(self) -> None:
        stream = getattr(sys.stdout, "buffer", None)
        if stream is None:
            raise ZanonError("standard output is closed")
        self._stream: BinaryIO = stream

    def write(self, output: str, data: bytes) -> None:
        """See Sink."""
        with explained("write", "standard output"):
            self._stream.write(data)
            self._stream.flush()  # a reader behind a pipe sees a batch when it is decided

    def settle(self, first_ns: int | None) -> dict[str, int]:
        """See Sink; standard output is no file of a folder."""
        return {}

    def publish(self, manifest: bytes) -> None:
        """See Sink; the manifest has no place among the data."""
        with explained("write", "standard output"):
            self._stream.flush()

    def discard(self) -> None:
        """See Sink; what was written is gone."""


class FolderSink(Sink):
    """A folder that is new or empty. Raises ConfigError or ZanonError, having left no trace."""

    def __init__(self, folder: Path, outputs: Sequence[str]) -> None:
        self.folder = folder
        self._outputs = tuple(outputs)
        self._writers: dict[str, BinaryIO] = {}
        self._written = dict.fromkeys(outputs, 0)
        self._names: dict[str, str] = {}
        self._own_folders: list[Path] = []
        self._own_files: list[Path] = []
        try:
            self._enter_folder()
            for output in self._outputs:
                self._writers[output] = self._create(_file_name(output))
        except BaseException:
            self.discard()
            raise

    def _enter_folder(self) -> None:
        folder = self.folder
        with explained("make", folder):
            try:
                folder.mkdir()
                self._own_folders.append(folder)
                return
            except FileExistsError:
                if not folder.is_dir():
                    raise ConfigError(f"{folder} exists and is not a folder") from None
        with explained("read", folder):
            if any(folder.iterdir()):
                raise ConfigError(
                    f"{folder} is not empty, and nothing is ever overwritten; "
                    "choose another folder or empty it"
                )

    def _create(self, name: str) -> BinaryIO:
        path = self.folder / (name + PARTIAL)
        with explained("write", path):
            writer = path.open("xb", buffering=BUFFER_BYTES)
            self._own_files.append(path)
            return writer

    def write(self, output: str, data: bytes) -> None:
        """See Sink."""
        with explained("write", self.folder / _file_name(output)):
            self._writers[output].write(data)
        self._written[output] += len(data)

    def settle(self, first_ns: int | None) -> dict[str, int]:
        """See Sink."""
        for output, writer in self._writers.items():
            with explained("write", self.folder / _file_name(output)):
                _to_disk(writer)
        self._writers.clear()
        if first_ns is None:
            with explained("tidy", self.folder):
                while self._own_files:
                    self._own_files[-1].unlink()
                    self._own_files.pop()
            return {}
        self._names = {output: _final_name(output, first_ns) for output in self._outputs}
        return {name: self._written[output] for output, name in self._names.items()}

    def publish(self, manifest: bytes) -> None:
        """See Sink."""
        with explained("write", self.folder / MANIFEST):
            writer = self._create(MANIFEST)
            self._writers[MANIFEST] = writer
            writer.write(manifest)
            _to_disk(writer)
            self._writers.clear()
        for output, name in self._names.items():
            self._appear(_file_name(output), name)
        self._appear(MANIFEST, MANIFEST)
        _sync_folders([self.folder, *self._own_folders])
        self._own_files.clear()
        self._own_folders.clear()

    def _appear(self, name: str, final_name: str) -> None:
        partial, final = self.folder / (name + PARTIAL), self.folder / final_name
        with explained("write", final):
            if final.parent not in (self.folder, *self._own_folders):
                final.parent.mkdir()
                self._own_folders.append(final.parent)
            if final.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            partial.rename(final)
        self._own_files.remove(partial)
        self._own_files.append(final)

    def discard(self) -> None:
        """See Sink."""
        for writer in self._writers.values():
            with contextlib.suppress(OSError):
                writer.close()
        for path in self._own_files:
            with contextlib.suppress(OSError):
                path.unlink()
        for folder in reversed(self._own_folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        self._writers.clear()
        self._own_files.clear()
        self._own_folders.clear()


def open_sink(out: str | os.PathLike[str] | None, formats: Iterable[str]) -> Sink:
    """The sink for `out`: a folder, "-" for standard output, None for the default folder.

    Raises ConfigError, or ZanonError when the system refuses.
    """
    chosen = tuple(formats)
    outputs = [output for name in chosen for output in FORMAT_OUTPUTS[name]]
    if out != "-":
        folder = default_folder(datetime.now(UTC)) if out is None else Path(out)
        return FolderSink(folder, outputs)
    if "tstat" in chosen:
        raise ConfigError(
            "tstat logs are three files and need a folder; "
            "with --out - choose --format jsonl or --format observations"
        )
    if len(chosen) != 1:
        raise ConfigError("--out - takes one format; choose jsonl or observations, or a folder")
    return StdoutSink()


@contextlib.contextmanager
def explained(action: str, path: object) -> Iterator[None]:
    """Turns an OSError into a ZanonError that says what failed, where, and what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0)
        text = f"cannot {action} {path}: {error.strerror}"
        raise ZanonError(f"{text}; {advice}" if advice else text) from error


def _file_name(output: str) -> str:
    return _FILE_NAMES.get(output, output)


def _final_name(output: str, first_ns: int) -> str:
    name = _file_name(output)
    return f"{tstat_folder(first_ns)}/{name}" if output in FORMAT_OUTPUTS["tstat"] else name


def _to_disk(writer: BinaryIO) -> None:
    writer.flush()
    os.fsync(writer.fileno())
    writer.close()


def _sync_folders(folders: Iterable[Path]) -> None:
    """Best effort: the names are there already, and not every file system can."""
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
