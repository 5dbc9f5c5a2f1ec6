# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A shard of the counter, and what makes it again: a snapshot, and the messages since.

Nothing here knows Flink. Entries are taken one by one and their order decides everything, so the
same entries again give the same shard: a restart reads the snapshot and takes what came after it.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zanon_net._core import VoteShard, vote_rules_difference, write_answers
from zanon_net.count.frames import (
    ENDED,
    Refusal,
    VotesHeader,
    framed,
    messages_in,
    votes_header,
    write_refusal,
)
from zanon_net.count.lateness import MAX_LAG_NS
from zanon_net.errors import CapacityError, FormatError
from zanon_net.flink.count_settings import CountSettings

SNAPSHOT_VERSION = 2
NEVER = 1 << 64
"""The number of a message that does not come."""
LOG_BYTES_MIN = 1 << 16
LOG_PART = 3
"""A log is about a third of a snapshot: a checkpoint holds little more than is alive, and a vote
pays for the snapshot of two or three tuples."""
LOG_PARTS_MAX = 2
"""So often the log may have that length, while votes wait."""
WAITING_BYTES = 34
"""A vote that waits for other probes, in a snapshot: twice what it takes in the log."""

_SNAPSHOT = struct.Struct("<4sBB2x")
_SNAPSHOT_MAGIC = b"ZNVF"
_GONE = struct.Struct("<4sQ")
_GONE_MAGIC = b"ZNVG"


def probe_gone(probe: int) -> bytes:
    """The entry that says: the shard waits for this probe no longer."""
    return _GONE.pack(_GONE_MAGIC, probe)


class Refused(NamedTuple):
    """A probe none of whose messages counts from now on, and why."""

    header: VotesHeader
    reason: str

    @property
    def frames(self) -> bytes:
        """What tells the probe: no votes of its message are counted, and the reason.

        The answer comes first: a refusal at the begin of an element ends the job.
        """
        h = self.header
        answer = write_answers(h.shard, h.probe, h.sequence, h.settings, [])
        return framed(answer) + framed(write_refusal(Refusal(self.reason, is_final=True)))


class LoggedShard:
    """A shard that begins empty.

    An entry is messages of votes in frames, or `probe_gone`. Messages of a probe may come in any
    order, as files are read side by side; what is early waits for its turn. Nothing is decided
    before expect_probes probes have been there: who begins later than the others would else be
    late. A probe that counts users otherwise than the first one is refused.
    """

    def __init__(self, settings: CountSettings, number: int) -> None:
        self._settings = settings
        self._shard = VoteShard(
            settings.z,
            settings.window_ns,
            rotate_ns=settings.rotate_ns,
            count_rotate_ns=settings.count_rotate_ns,
            shard=number,
            max_lag_ns=MAX_LAG_NS,
        )
        self._has_begun = False
        self._next: dict[int, int] = {}
        self._early: dict[int, dict[int, bytes]] = {}
        self._refused: set[int] = set()
        self._untold: list[Refused] = []
        self._renewed: set[int] = set()
        self._log_bytes = 0
        self._log_bytes_max = LOG_BYTES_MIN
        self._snapshot_watermark = self._shard.watermark

    @classmethod
    def restore(
        cls, settings: CountSettings, number: int, snapshot: bytes | None, log: Iterable[bytes]
    ) -> "LoggedShard":
        """The shard that wrote the snapshot and then took the entries of the log.

        Raises FormatError for a snapshot of another version, or a damaged one.
        """
        logged = cls(settings, number)
        if snapshot is not None:
            logged._load(snapshot)
        for entry in log:
            for _answer in logged.take(entry):  # it left before the restart
                pass
        logged.take_refused()
        return logged

    @property
    def probes(self) -> set[int]:
        """The probes that are waited for, and those whose messages wait."""
        waited_for = self._shard.probes.items()
        return {*(p for p, (_last, mark) in waited_for if mark != ENDED), *self._early}

    @property
    def tuples(self) -> int:
        """Pairs of attribute and user that the table holds."""
        return int(self._shard.stats["table"]["tuples"])

    @property
    def waiting(self) -> int:
        """Votes that wait for other probes, each message counted as one more."""
        return int(self._shard.stats["pending"])

    def take(self, entry: bytes) -> Iterator[bytes]:
        """Takes an entry; yields the messages of answers that it completes. Raises FormatError."""
        self._log_bytes += len(entry)
        if entry[: len(_GONE_MAGIC)] == _GONE_MAGIC:
            self._forget(entry)
        else:
            for message in messages_in(entry):
                self._take_message(message)
        self._has_begun = self._has_begun or self._came >= self._settings.expect_probes
        if self._has_begun:
            yield from self._decide()

    def take_refused(self) -> list[Refused]:
        """The probes that are refused since the last call."""
        untold, self._untold = self._untold, []
        return untold

    def lags(self) -> dict[int, int]:
        """By how many nanoseconds each probe is behind what is decided that is not waited for."""
        decided = self._shard.watermark
        return {
            probe: decided - mark
            for probe, (_last, mark, is_present) in self._shard.known_probes.items()
            if not is_present and mark < decided < ENDED
        }

    def is_stuck(self, probe: int) -> bool:
        """Whether the messages of a probe wait for one that is missing."""
        early = self._early.get(probe, {})
        return bool(early) and self._next.get(probe, 1) not in early

    @property
    def _came(self) -> int:
        """Probes that have come, each once, whatever its numbers."""
        return len(self._next) - len(self._renewed)

    def _take_message(self, message: bytes) -> None:
        header = votes_header(message)
        if header.probe in self._refused or self._refuses(message):
            return
        if header.sequence >= self._next.get(header.probe, 1):
            self._early.setdefault(header.probe, {})[header.sequence] = message
            self._put_early(header.probe)

    def _put_early(self, probe: int) -> None:
        """Puts the messages of a probe whose turn it is, as far as there is room."""
        early = self._early.get(probe, {})
        following = self._next.get(probe, 1)
        while following in early:
            if self._refuses(early[following]):  # it came before the first of another probe
                return
            try:
                self._shard.put(early[following])
            except CapacityError:
                break
            if following == 1 and votes_header(early[1]).renewed:
                self._renewed.add(probe)
            del early[following]
            following += 1
            self._next[probe] = following
        if not early:
            self._early.pop(probe, None)

    def _refuses(self, message: bytes) -> bool:
        """Whether the probe of a message counts users otherwise than those before it."""
        header, rules = votes_header(message), self._shard.rules
        if rules in (None, header.rules):
            return False
        self._refused.add(header.probe)
        self._early.pop(header.probe, None)
        self._untold.append(Refused(header, vote_rules_difference(header.rules, rules)))
        return True

    def _decide(self) -> Iterator[bytes]:
        """Decides, and again when there is room for what has waited."""
        answers = self._shard.decide()
        while answers:
            yield from answers
            for probe in sorted(self._early):
                self._put_early(probe)
            answers = self._shard.decide() if self._early else []

    def _forget(self, entry: bytes) -> None:
        """Goes on without a probe; or begins one in the midst of its sequence. Behind a gap nothing
        of a probe counts any more: until it starts again, what it asks is suppressed."""
        if len(entry) != _GONE.size:
            raise FormatError("this is no entry of a shard's log")
        _magic, probe = _GONE.unpack(entry)
        if probe in self._shard.probes:
            self._shard.forget_probe(probe)
        early = self._early.get(probe)
        if early and probe not in self._next:
            self._next[probe] = min(early)
            self._put_early(probe)
        elif early:
            del self._early[probe]
            self._next[probe] = NEVER

    # ---- state ----------------------------------------------------------------------------------

    @property
    def is_snapshot_due(self) -> bool:
        """Whether the log has become long, beside the snapshot or the window. Where files of a
        probe are read before those of another, it is better made when all have been."""
        if self._renewed and not self._has_begun:  # the log alone says who took whose place
            return False
        if self._shard.watermark - self._snapshot_watermark >= self._settings.window_ns:
            return True
        if self._log_bytes < self._log_bytes_max:
            return False
        return (
            self.waiting * WAITING_BYTES <= self._log_bytes_max // LOG_PART
            or self._log_bytes >= self._log_bytes_max * LOG_PARTS_MAX
        )

    def snapshot(self) -> tuple[bytes, list[bytes]]:
        """(snapshot, log): what is to be kept instead of all that was kept before."""
        self._snapshot_watermark = self._shard.watermark
        log = [framed(message) for early in self._early.values() for message in early.values()]
        self._log_bytes = sum(map(len, log))
        head = _SNAPSHOT.pack(_SNAPSHOT_MAGIC, SNAPSHOT_VERSION, self._has_begun)
        dump = self._shard.dump()
        self._log_bytes_max = max(LOG_BYTES_MIN, self._log_bytes + len(dump) // LOG_PART)
        return head + dump, log

    def _load(self, snapshot: bytes) -> None:
        if len(snapshot) < _SNAPSHOT.size or snapshot[:4] != _SNAPSHOT_MAGIC:
            raise FormatError("the state holds no snapshot of a shard")
        _magic, version, self._has_begun = _SNAPSHOT.unpack_from(snapshot)
        if version != SNAPSHOT_VERSION:
            raise FormatError(
                f"the state is of version {version}, and only {SNAPSHOT_VERSION} is known:"
                " start the job without the savepoint, or with the zanon-net that wrote it"
            )
        shard = VoteShard.load(snapshot[_SNAPSHOT.size :])
        if shard.settings != self._shard.settings:
            raise FormatError(
                "the state was made with another z, window or rotation: start the job without it"
            )
        self._shard = shard
        self._snapshot_watermark = self._shard.watermark
        self._log_bytes_max = max(LOG_BYTES_MIN, len(snapshot) // LOG_PART)
        self._next = {
            probe: last + 1 for probe, (last, _mark, _waits) in self._shard.known_probes.items()
        }
