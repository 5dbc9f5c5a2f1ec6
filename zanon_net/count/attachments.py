# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Stores of the rows that come with votes in the modes `sealed` and `threshold`.

A store takes the rows off messages before a shard counts the messages. It keeps the rows until
their message is answered, and returns the rows that the answer releases.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping

from zanon_net._core import VOTE_ROWS, ThresholdShard, VoteRows, read_answers
from zanon_net.count.sealed_frames import SUFFIX, Place, SealedRow, frame_of, is_observation
from zanon_net.count.settings import CounterSettings
from zanon_net.errors import FormatError

_LENGTH = struct.Struct("<I")
Key = tuple[int, int, int]
"""Probe, shard and sequence of a message."""


def plain_message(message: bytes) -> bytes:
    """Returns a message of votes without its rows. Raises FormatError for damaged rows."""
    return VoteRows(message).plain() if VoteRows.are_in(message) else message


class RowStore:
    """Store of mode *ask*, in which no rows come; base of the stores of the other modes.

    flag: flag of the messages whose rows are for this mode.
    """

    mode, suffix = "ask", ""
    flag: int | None = None

    def __init__(self) -> None:
        self._waiting: dict[Key, VoteRows] = {}
        self.rows_released = self.rows_refused = 0

    def split(self, message: bytes) -> tuple[bytes, VoteRows | None]:
        """Returns the message without rows, and its rows.

        Raises FormatError for a damaged message, or a message with rows of another mode.
        """
        if not VoteRows.are_in(message):
            return message, None
        rows = VoteRows(message)
        if rows.flag != self.flag:
            raise FormatError(f"its --count-mode is not the counter's --mode, {self.mode}")
        return rows.plain(), rows

    def keep(self, rows: VoteRows) -> None:
        """Keeps the rows of a message that a shard took."""
        self._waiting[rows.key] = rows

    def answered(self, answers: Iterable[bytes]) -> bytes:
        """Returns the rows that these answer messages release, for the file of a commit."""
        decided = []
        for answer in answers if self._waiting else ():
            header = read_answers(answer)
            key = (header["probe"], header["shard"], header["sequence"])
            if (rows := self._waiting.pop(key, None)) is not None:
                decided.append((rows, answer))
        return b"".join(self._released(decided))

    @property
    def waiting_bytes(self) -> int:
        """Memory of the messages that wait for their answers."""
        return sum(len(rows.message) for rows in self._waiting.values())

    @property
    def stats(self) -> Mapping[str, int]:
        """Counters by name."""
        return {}

    def _released(self, decided: list[tuple[VoteRows, bytes]]) -> Iterator[bytes]:
        """Yields the released rows of messages with their answers."""
        del decided
        return iter(())

    def dump(self) -> bytes:
        """Returns the whole state. Besides sealed rows it holds data that a shard's dump has."""
        return b"".join(_framed(rows.message) for rows in self._waiting.values())

    def load(self, dump: bytes) -> None:
        """Restores the state that `dump` returned. Raises FormatError."""
        self._waiting = {rows.key: rows for rows in map(VoteRows, _frames(dump))}


class SealedStore(RowStore):
    """Store of mode *sealed*: releases rows as they came, for their reader."""

    mode, suffix = "sealed", SUFFIX
    flag = VOTE_ROWS["sealed"]

    @property
    def stats(self) -> Mapping[str, int]:
        """See RowStore."""
        return {"sealed_rows_released": self.rows_released}

    def _released(self, decided: list[tuple[VoteRows, bytes]]) -> Iterator[bytes]:
        for rows, answer in decided:
            attachments, prefix = rows.attachments(), rows.prefix
            for index in read_answers(answer)["answers"].nonzero()[0]:
                if attachments[index]:
                    self.rows_released += 1
                    place = Place(*rows.key, int(index))
                    yield frame_of(SealedRow(place, prefix, attachments[index]))


class ShareStore(RowStore):
    """Store of mode *threshold*: opens the rows of released votes once it has z users' shares."""

    mode, suffix = "threshold", ".jsonl"
    flag = VOTE_ROWS["shares"]

    def __init__(self, *, z: int, window_ns: int, epochs: int) -> None:
        super().__init__()
        self._shard = ThresholdShard(z=z, window_ns=window_ns, epochs=epochs)

    @property
    def stats(self) -> Mapping[str, int]:
        """See RowStore."""
        opened = {f"threshold_{name}": count for name, count in self._shard.stats.items()}
        return {**opened, "threshold_rows_refused": self.rows_refused}

    def _released(self, decided: list[tuple[VoteRows, bytes]]) -> Iterator[bytes]:
        for row in self._shard.take(decided):
            if is_observation(row):
                self.rows_released += 1
                yield row + b"\n"
            else:
                self.rows_refused += 1

    def dump(self) -> bytes:
        """See RowStore. Includes the shares of all open epochs."""
        return _framed(self._shard.dump()) + super().dump()

    def load(self, dump: bytes) -> None:
        """See RowStore."""
        frames = _frames(dump)
        self._shard.load(next(frames, b""))
        self._waiting = {rows.key: rows for rows in map(VoteRows, frames)}


def new_store(settings: CounterSettings) -> RowStore:
    """Returns an empty store for the counter's mode."""
    if settings.mode == "sealed":
        return SealedStore()
    if settings.mode == "threshold":
        return ShareStore(
            z=settings.z, window_ns=settings.window_ns, epochs=settings.threshold_epochs
        )
    return RowStore()


def _framed(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _frames(data: bytes) -> Iterator[bytes]:
    """Yields the framed parts. Raises FormatError if the last part is cut."""
    at = 0
    while at < len(data):
        start = at + _LENGTH.size
        at = start + (_LENGTH.unpack(data[at:start])[0] if start <= len(data) else 0)
        if at > len(data) or start > len(data):
            raise FormatError("the snapshot of rows that wait is cut")
        yield data[start:at]
