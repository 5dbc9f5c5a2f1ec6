# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A folder for logs, in which files appear whole or not at all.

Files are written as NAME.partial and get their names when all of their content is on the disk.
Tstat's three files are gathered in a folder NAME.out.partial, which gets its name together with
them. Files of a dataset move into its folder, where readers take every file, when they are whole.
Without rotation, files appear at the end, and an error removes all of them. With rotation,
each part of a run appears when it is over, and the manifest, always last, lists the parts. If the
disk is full, the open part appears with the whole records that are on the disk.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from zanon_net._record import dataclass
from zanon_net.config.formats import IN_FOLDER, PACKET_FORMATS, outputs_of
from zanon_net.errors import ConfigError, ZanonError
from zanon_net.output.disk import DiskFacts, DiskRules, Removed
from zanon_net.output.files import PARTIAL, CaptureFile, LogFile, Piece, TextFile
from zanon_net.output.new_file import create_private, refuse_existing
from zanon_net.output.part_files import PartNames, is_gathered
from zanon_net.output.room import Room
from zanon_net.output.schema import united
from zanon_net.output.sink import Parts, Plan, Sink, Tables
from zanon_net.output.state_file import MANIFEST, RESERVED, StateFile, lock
from zanon_net.output.transaction import Transaction
from zanon_net.system.durability import sync_folders
from zanon_net.system.file_errors import NO_ROOM, explained
from zanon_net.system.streams import refuse_stdout

if TYPE_CHECKING:
    from zanon_net.output.parquet import ParquetFile, Schema
    from zanon_net.output.retention import Retention

MANIFEST_BYTES = 1 << 16  # kept free for the manifest, so that it can report a full disk
# cut off the largest file on a full disk, for the headers of the other files
CUT_SPARE_BYTES = 1 << 16
# as CUT_SPARE_BYTES, for the folder of Tstat's logs, which takes a block
FOLDER_SPARE_BYTES = 1 << 14
LISTED_BYTES = 512  # additional bytes for each listed file
CAPTURES = outputs_of(PACKET_FORMATS)


def _partial_folder(final: Path) -> Path:
    """Returns the partial folder in which the files of a folder are gathered before it appears."""
    return final.with_name(final.name + PARTIAL)


def default_folder(now: datetime) -> Path:
    """Returns `./zanon-<UTC start>` for a run that starts now. If another run started in the same
    second, returns the name of the next free second."""
    start = now.astimezone(UTC)
    while os.path.lexists(name := start.strftime("zanon-%Y%m%dT%H%M%SZ")):
        start += timedelta(seconds=1)
    return Path(name)


def reserve(file: FileIO, size: int) -> None:
    """Reserves `size` bytes of disk space for a file, if the file system supports it. Raises
    OSError if there is no space."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise


@dataclass(frozen=True, slots=True)
class _File:
    """A file of an output that is about to appear.

    name: its path in the folder. part: the manifest's key for the part, if there are several.
    """

    output: str
    name: str
    piece: Piece
    part: Mapping[str, int]

    @property
    def folder(self) -> str:
        """The folder in the run's folder; empty: the run's folder."""
        return self.name.rpartition("/")[0]

    @property
    def facts(self) -> dict[str, Any]:
        """The file for the manifest."""
        piece = self.piece
        return {"file": self.name, "bytes": piece.bytes, "records": piece.records, **self.part}


class FolderSink(Sink):
    """A folder that is new or empty. Raises ConfigError or OutputError and then leaves no trace."""

    may_async_sink = True

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.place = self.folder = folder
        self._plan = plan
        self._schemas = _schemas(plan)
        self._open: dict[str, LogFile] = {}
        self._reserved: FileIO | None = None
        self._stamp_ns: int | None = None  # start of the part; None: the time of its first packet
        self._divided = bool(plan.split_ns or plan.split_bytes)
        self._about_to_appear: list[_File] = []
        self._files: list[dict[str, Any]] = []
        # names of all files that have appeared, including removed files
        self._taken: set[str] = set()
        self._number = 1  # of the open part
        self._now_ns = 0  # packet time at which the last part ended
        self._room = Room(plan.disk)
        self._retention = _retention(folder, plan.disk)
        self._written = dict.fromkeys(plan.outputs, 0)
        self._transaction = Transaction()
        self._state = StateFile(folder / MANIFEST, self._transaction, plan.mode)
        try:
            self._enter_folder()
            self._remove_due()  # parts of earlier runs, whose space this run may need to begin
            self._begin()
            self._reserve()
        except BaseException:
            self.discard()
            raise

    def _enter_folder(self) -> None:
        folder = self.folder
        with explained("make", folder):
            try:
                self._transaction.folder(folder)
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

    def _reserve(self) -> None:
        """Reserves disk space for the manifest, if the file system can."""
        path = self._reserve_path
        with explained("write", path), self._transaction.making([path]):
            self._reserved = create_private(path, self._plan.mode)
        lock(self._reserved.fileno())
        self._reserve_for(0)

    @property
    def _reserve_path(self) -> Path:
        return self.folder / RESERVED

    @property
    def _of_manifest(self) -> list[Path]:
        """The files that may become the manifest, and are removed if they do not."""
        return [self._reserve_path, self._state.path]

    def _reserve_for(self, files: int) -> None:
        """Reserves disk space for a manifest that lists `files` files."""
        assert self._reserved is not None
        with explained("write", self.folder / MANIFEST):
            reserve(self._reserved, MANIFEST_BYTES + files * LISTED_BYTES)

    # ---- parts ----

    def _begin(self) -> None:
        """Opens a file for each output."""
        for output in self._plan.outputs:
            path = self.folder / self._plan.file_name(output)
            self._room.do(path, partial(self._open_file, output, path))

    def _open_file(self, output: str, path: Path) -> None:
        with self._transaction.making([path.with_name(path.name + PARTIAL)]):
            self._open[output] = self._new_file(output, path)

    def _new_file(self, output: str, path: Path) -> LogFile:
        compress, room = self._plan.compress, self._room
        if output in self._schemas:
            return self._new_table(output, path)
        is_capture = output in CAPTURES or output in self._plan.views
        kind = CaptureFile if is_capture else TextFile
        return kind(path, self._plan.headers.get(output, b""), compress, room)

    def _new_table(self, output: str, path: Path) -> LogFile:
        from zanon_net.output.parquet import ParquetFile

        schema, compress, room = self._schemas[output], self._plan.compress, self._room
        if not self._plan.partition:
            return ParquetFile(path, schema, compress, gathers=self._divided, room=room)
        from zanon_net.output.partitions import PartitionedFile

        def open_file(path: Path) -> ParquetFile:
            with self._transaction.making([path.with_name(path.name + PARTIAL)]):
                return ParquetFile(path, schema, compress, gathers=False, room=room)

        def make(path: Path) -> ParquetFile:
            return room.do(path, partial(open_file, path))

        return PartitionedFile(path, schema, self._plan.partition, make)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        start = dict.fromkeys(tables, 0)
        for period_ns, texts, ends in parts:
            if period_ns is not None:
                self._begin_period(period_ns)
            for output, (lines, count) in texts.items():
                file = self._open[output]
                assert isinstance(file, TextFile)
                file.write(lines, count)
            for output, end in ends.items():
                if end > start[output]:
                    rows = cast("ParquetFile", self._open[output])
                    rows.write(tables[output], start[output], end)
                start[output] = end

    def _begin_period(self, period_ns: int) -> None:
        if self._stamp_ns is not None:
            self._end_part(period_ns)
            self._begin()
        self._stamp_ns = period_ns

    def rotate(self, first_ns: int, now_ns: int) -> None:
        """See Sink."""
        self._divided = True
        if self._stamp_ns is None:
            self._stamp_ns = first_ns
        self._end_part(now_ns)
        self._stamp_ns = now_ns
        self._begin()

    @property
    def is_large(self) -> bool:
        """See Sink."""
        limit = self._plan.split_bytes
        return limit != 0 and any(file.size >= limit for file in self._open.values())

    def _end_part(self, now_ns: int) -> None:
        """Ends the part at a packet time: its files appear, and old parts are removed."""
        files = len(self._files) + sum(file.files for file in self._open.values())
        self._room.do(self.folder / MANIFEST, partial(self._reserve_for, files))
        self._finish_part()
        self._publish_part()
        self._transaction.keep(but=self._of_manifest)
        sync_folders([self.folder])
        self._part_is_over(now_ns)
        self._remove_due()

    def _part_is_over(self, now_ns: int) -> None:
        """Notes that the open part has appeared."""
        assert self._stamp_ns is not None
        split_ns = self._plan.split_ns
        mark_ns = self._stamp_ns - self._stamp_ns % split_ns + split_ns if split_ns else now_ns
        files = [file for file in self._files if file.get("part") == self._number]
        self._now_ns = min(now_ns, mark_ns)  # a single packet with a wrong time removes nothing
        if self._retention is not None:
            self._retention.add(files, self._now_ns)
        self._number += 1
        self.parts += 1

    def _finish_part(self) -> None:
        assert self._stamp_ns is not None
        for file in self._open.values():
            file.to_disk()
        self._name_part(self._stamp_ns)

    def _name_part(self, stamp_ns: int) -> None:
        """Lists the files of the open part, which are on the disk, as about to appear."""
        names = PartNames(self._plan, stamp_ns, self._taken, divided=self._divided)
        part = {"part": self._number} if self._divided else {}
        self._about_to_appear = [
            _File(output, names.take(output, piece.folder), piece, part)
            for output, file in self._open.items()
            for piece in file.pieces
        ]
        for folder in dict.fromkeys(file.folder for file in self._about_to_appear):
            if is_gathered(folder):
                self._make_folder(_partial_folder(self.folder / folder), is_new=True)

    def _make_folder(self, path: Path, *, is_new: bool = False) -> None:
        """Makes a folder of files that are about to appear, unless it exists.

        is_new: only this run may have made it; a folder of others is an error.
        """
        if not self._transaction.has_folder(path) and (is_new or not path.is_dir()):
            with explained("write", path):
                self._room.do(path, partial(self._transaction.folder, path))

    def _remove_due(self) -> bool:
        """Removes old parts; returns true if a part was removed."""
        if self._retention is None:
            return False
        whole = [file.piece.bytes for file in self._about_to_appear]
        taken = sum(whole or [file.size for file in self._open.values()])
        before = self._retention.removed
        gone = self._retention.remove_due(self._now_ns, taken)
        if gone:
            self._files = [file for file in self._files if file["file"] not in gone]
        return self._retention.removed != before

    def _publish_part(self) -> None:
        for file in self._about_to_appear:
            self._appear(file.piece.partial, file.name)
        self._open.clear()
        self._folders_appear()
        for file in self._about_to_appear:
            self._files.append(file.facts)
            self._taken.add(file.name)
            self._written[file.output] += file.piece.records
        self._about_to_appear = []

    def _appear(self, unfinished: Path, name: str) -> None:
        """Gives a file its name; a file of a folder of Tstat's moves to the partial folder."""
        final = self.folder / name
        folder = name.rpartition("/")[0]
        for outer in reversed([self.folder / folder, *(self.folder / folder).parents]):
            if outer.is_relative_to(self.folder) and not is_gathered(folder):
                self._make_folder(outer)
        with explained("write", final):
            if is_gathered(folder):
                final = _partial_folder(final.parent) / final.name
            self._transaction.rename(unfinished, final)

    def _folders_appear(self) -> None:
        for folder in dict.fromkeys(file.folder for file in self._about_to_appear):
            final = self.folder / folder
            if is_gathered(folder):
                with explained("write", final):
                    self._transaction.rename_folder(_partial_folder(final), final)
            elif folder:
                sync_folders(outer for outer in (final, *final.parents)
                             if outer.is_relative_to(self.folder))  # fmt: skip

    # ---- while the run is active ----

    def flush(self, *, blocks: bool) -> None:
        """See Sink. No prefix of Parquet can be read."""
        for file in self._open.values():
            file.flush(blocks=blocks)

    def keep_state(self, manifest: Callable[[], bytes]) -> None:
        """See Sink."""
        self._state.write(manifest())

    def tend(self) -> bool:
        """See Sink."""
        return self._remove_due()

    # ---- the end ----

    def finish(self, first_ns: int | None) -> None:
        """See Sink."""
        if first_ns is None:
            self._remove_part()
            return
        if self._stamp_ns is None:
            self._stamp_ns = first_ns
        self._finish_part()
        self._remove_due()

    def publish(self, manifest: bytes) -> None:
        """See Sink."""
        self._write_manifest(manifest)
        appeared = self._about_to_appear
        self._publish_part()
        try:
            self._appear_manifest()
        except BaseException:
            self._withdraw(appeared)
            raise
        sync_folders([self.folder])
        self._transaction.keep()

    def _write_manifest(self, manifest: bytes) -> None:
        """Writes the manifest from its start, over an earlier attempt."""
        assert self._reserved is not None
        handle, rest = self._reserved.fileno(), memoryview(manifest)
        with explained("write", self.folder / MANIFEST):
            while rest:
                rest = rest[os.pwrite(handle, rest, len(manifest) - len(rest)) :]
            os.ftruncate(handle, len(manifest))
            os.fsync(handle)

    def _appear_manifest(self) -> None:
        with explained("write", self.folder / MANIFEST):
            if self._reserve_path.exists():  # an earlier attempt may have come this far
                self._state.replace_by(self._reserve_path)
        self._appear(self._state.path, MANIFEST)
        self._close_manifest()

    def _close_manifest(self) -> None:
        if self._reserved is not None:
            with contextlib.suppress(OSError):
                self._reserved.close()

    def _remove_part(self) -> None:
        for file in self._open.values():
            file.remove()
        self._open.clear()
        self._about_to_appear = []

    def _withdraw(self, files: Iterable[_File]) -> None:
        """Removes files from the list, because they will be deleted."""
        for file in files:
            self._files.remove(file.facts)
            self._written[file.output] -= file.piece.records

    def abandon(self, manifest: Callable[[], bytes], kept_from: int | None = None) -> None:
        """See Sink."""
        with contextlib.suppress(OSError, ZanonError, ValueError):
            if kept_from is not None and not self._about_to_appear:
                self.was_cut = self._keep_whole_records(kept_from)
        self._remove_unfinished()
        with contextlib.suppress(OSError, ZanonError, ValueError):
            self._write_manifest(manifest())
            self._appear_manifest()
            self._transaction.keep()
        self.discard()

    def _remove_unfinished(self) -> None:
        """Removes the files of the open part."""
        self._remove_part()
        self._transaction.remove(but=[self.folder, *self._of_manifest])

    def _kept_together(self) -> list[list[str]]:
        """Returns the open outputs in groups that are kept together: Tstat's three logs, and every
        other output alone."""
        tstat = [output for output in self._open if output in IN_FOLDER]
        return [tstat, *([output] for output in self._open if output not in tstat)]

    def _keep_whole_records(self, first_ns: int) -> bool:
        """Cuts the files of the open part to whole records, and gives them their names.

        A file without a record is removed, but Tstat's three logs stay together. Returns true if
        any file is left. Raises OSError or OutputError, and `_remove_unfinished` can then remove
        the remaining files.
        """
        has_folder = not IN_FOLDER.isdisjoint(self._open)
        spare = FOLDER_SPARE_BYTES if has_folder else 0
        if any(file.needs_room for file in self._open.values()):
            spare = CUT_SPARE_BYTES
        by_size = sorted(self._open.items(), key=lambda item: -item[1].on_disk)
        cut: set[str] = set()
        for output, file in by_size:
            size = None
            with contextlib.suppress(OSError, ValueError):  # OSError and ValueError are pyarrow's
                size = file.cut(spare if file is by_size[0][1] else 0)
            if size is not None:
                cut.add(output)
        for outputs in self._kept_together():
            is_whole = cut.issuperset(outputs)
            if not (is_whole and any(self._open[output].records for output in outputs)):
                for output in outputs:
                    self._open.pop(output).remove()
        if not self._open:
            return False
        self._name_part(first_ns if self._stamp_ns is None else self._stamp_ns)
        self._publish_part()
        self._transaction.keep(but=self._of_manifest)
        sync_folders([self.folder])
        return True

    def discard(self) -> None:
        """See Sink."""
        self._remove_part()
        self._close_manifest()
        self._transaction.remove()

    @property
    def files(self) -> list[dict[str, Any]]:
        """See Sink."""
        listed = [*self._files, *(file.facts for file in self._about_to_appear)]
        return sorted(listed, key=lambda file: str(file["file"]))

    @property
    def disk(self) -> DiskFacts:
        """See Sink."""
        retention = self._retention
        removed, earlier = (Removed(), Removed()) if retention is None else retention.removed
        return DiskFacts(removed=removed, earlier=earlier, times_full=self._room.times)

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        about = Counter[str]()
        for file in self._about_to_appear:
            about[file.output] += file.piece.records
        return {output: n + about[output] for output, n in self._written.items()}


def _retention(folder: Path, rules: DiskRules) -> "Retention | None":
    """Returns the object that removes old parts; None if all parts stay."""
    if not rules.removes:
        return None
    from zanon_net.output.retention import Retention  # late: most runs keep all parts

    return Retention(folder, rules)


def _schemas(plan: Plan) -> "dict[str, Schema]":
    """Returns the Arrow schema of each table; their files have the same columns."""
    if not plan.fields:
        return {}
    from zanon_net.output.parquet import Schema  # late: only Parquet needs it

    every = united(plan.fields.values())
    return {table: Schema(fields, plan.about, every) for table, fields in plan.fields.items()}


def check_out(
    out: str | os.PathLike[str] | None,
    sources: Iterable[str | os.PathLike[str]],
    popularity: str | os.PathLike[str] | None,
) -> None:
    """Refuses an `out` that is surely a mistake.

    out, sources: as `run` takes them. popularity: a file that is not for release, or None.

    Raises ConfigError if `out` is empty or is the folder of `popularity`, if the file `popularity`
    exists, or if standard output is one of the sources. Raises OutputError if the folder of
    `popularity` does not exist or the system refuses to look.
    """
    if out == "":
        raise ConfigError("--out names no folder; leave it out for ./zanon-<UTC start>")
    if out == "-":
        for source in sources:
            if source == "-":
                refuse_stdout(0, "standard input")
            else:
                refuse_stdout(source, Path(source).name)
    elif out is not None and popularity is not None:
        _refuse_inside(Path(out), Path(popularity))
    if popularity is not None:
        refuse_existing(popularity)


def _refuse_inside(out: Path, popularity: Path) -> None:
    with explained("write", popularity):  # the working folder may have been removed
        folder, file = Path(os.path.realpath(out)), Path(os.path.realpath(popularity))
    if file.is_relative_to(folder):
        raise ConfigError(
            f"popularity: {popularity} would lie in {out}, the folder of files for release;"
            " choose another place"
        )
