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
from zanon_net.flink.early_messages import EarlyMessages
from zanon_net.flink.last_numbers import LastNumbers

SNAPSHOT_VERSION = 3
PROBES_MAX = 4096
"""Probes that a shard knows: one more, and it forgets one that has ended or is gone longest. A
message of that is taken as a new probe's: its votes are late, and each of its users counts once."""
EARLY_BYTES_MAX = 1 << 27
"""What waits for its turn, in a shard, of PROBES_MAX probes; beyond it, the probe with most of it
is given up."""
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

_SNAPSHOT = struct.Struct("<4sBB2xII")
_NUMBER = struct.Struct("<Q")
_SEQUENCE = 0  # in what a shard says of a probe
_SNAPSHOT_MAGIC = b"ZNVF"
_GONE = struct.Struct("<4sQ")
_GONE_MAGIC = b"ZNVG"
ALL_PRESENT = b"ZNVP"
"""The entry that says: as many probes as are expected are there, whatever their numbers took the
place of."""


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

    An entry is messages of votes in frames, `probe_gone` or ALL_PRESENT. Messages of a probe may
    come in any order, as files are read side by side; what is early waits for its turn. Nothing is
    decided before expect_probes probes have been there: who begins later than the others would else
    be late. A probe of another key than the first one, or that counts users otherwise, is refused.

    Each start of a probe is a new number, so what is kept of numbers is bounded: by PROBES_MAX, by
    EARLY_BYTES_MAX, and by the length of LastNumbers for those of which nothing counts. Who is
    forgotten there is refused, or given up, again.
    """

    def __init__(self, settings: CountSettings, number: int) -> None:
        self._settings = settings
        self._shard = VoteShard(
            settings.z,
            settings.window_ns,
            rotate_ns=settings.rotate_ns,
            count_rotate_ns=settings.count_rotate_ns,
            shard=number,
            max_probes=PROBES_MAX,
            max_lag_ns=MAX_LAG_NS,
        )
        self._has_begun = False
        self._came = 0  # probes before it has begun, each once, whatever its numbers
        self._early = EarlyMessages()
        self._refused, self._given_up = LastNumbers(), LastNumbers()
        self._untold: list[Refused] = []
        self._over_limit: list[int] = []
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
        logged.take_over_limit()
        return logged

    @property
    def has_begun(self) -> bool:
        """Whether as many probes as are expected have come."""
        return self._has_begun

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
            self._take_gone(entry)
        elif entry == ALL_PRESENT:
            self._has_begun = True
        else:
            for message in messages_in(entry):
                self._take_message(message)
        yield from self._decide()
        while self._early.bytes > EARLY_BYTES_MAX or len(self._early) > PROBES_MAX:
            self._give_up_largest()
            yield from self._decide()

    def take_refused(self) -> list[Refused]:
        """The probes that are refused since the last call."""
        untold, self._untold = self._untold, []
        return untold

    def take_over_limit(self) -> list[int]:
        """The probes that were given up since the last call, for too much waited for its turn."""
        over_limit, self._over_limit = self._over_limit, []
        return over_limit

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
        return probe in self._early and self._early.get(probe, self._following(probe)) is None

    def _following(self, probe: int) -> int:
        """The number of the message of a probe whose turn it is."""
        if probe in self._given_up:
            return NEVER
        known = self._shard.probe(probe)
        return 1 if known is None else int(known[_SEQUENCE]) + 1

    def _take_message(self, message: bytes) -> None:
        header = votes_header(message)
        if header.probe in self._refused or self._refuses(header):
            return
        if header.probe in self._given_up:
            if self._shard.probe(header.probe) is not None:
                self._shard.forget_probe(header.probe)  # what it tells of clients is missing, too
            return
        following = self._following(header.probe)
        if header.sequence == following and self._put(header, message):
            self._early.remove(header.probe, following)
            self._put_early(header.probe, following + 1)
        elif header.sequence >= following:
            self._early.add(header.probe, header.sequence, message)

    def _put(self, header: VotesHeader, message: bytes) -> bool:
        """Has the core take a message whose turn it is; false where there is no room for it."""
        is_renewed = header.renewed and header.sequence == 1
        is_new = not (self._has_begun or is_renewed) and self._shard.probe(header.probe) is None
        try:
            self._shard.put(message)
        except CapacityError:
            return False
        self._came += is_new
        return True

    def _put_early(self, probe: int, following: int) -> None:
        """Puts the messages of a probe from that number on, as far as there is room."""
        while (message := self._early.get(probe, following)) is not None:
            header = votes_header(message)
            if self._refuses(header):  # it came before the first of another probe
                return
            if not self._put(header, message):
                return
            self._early.remove(probe, following)
            following += 1

    def _refuses(self, header: VotesHeader) -> bool:
        """Whether the probe of a message has another key, or counts users otherwise."""
        rules = self._shard.rules
        if rules in (None, header.rules):
            return False
        self._refused.add(header.probe)
        self._early.drop(header.probe)
        self._untold.append(Refused(header, vote_rules_difference(header.rules, rules)))
        return True

    def _decide(self) -> Iterator[bytes]:
        """Decides, and again when there is room for what has waited; nothing before all probes
        that are expected have come."""
        self._has_begun = self._has_begun or self._came >= self._settings.expect_probes
        answers = self._shard.decide() if self._has_begun else []
        while answers:
            yield from answers
            for probe in sorted(self._early):
                self._put_early(probe, self._following(probe))
            answers = self._shard.decide() if self._early else []

    def _take_gone(self, entry: bytes) -> None:
        if len(entry) != _GONE.size:
            raise FormatError("this is no entry of a shard's log")
        _magic, probe = _GONE.unpack(entry)
        self._forget(probe)

    def _forget(self, probe: int) -> None:
        """Goes on without a probe; or begins one in the midst of its sequence. Behind a gap nothing
        of a probe counts any more: until it starts again, what it asks is suppressed."""
        if probe in self._shard.probes:
            self._shard.forget_probe(probe)
        first = self._early.first_of(probe)
        if first is not None and self._shard.probe(probe) is None:
            self._put_early(probe, first)
        elif first is not None:
            self._early.drop(probe)
            self._given_up.add(probe)

    def _give_up_largest(self) -> None:
        """Frees what waits of the probe of which most does, as if it had been silent too long."""
        probe, before = self._early.largest(), self._early.bytes
        self._forget(probe)
        if self._early.bytes == before:  # there is no room for one that is not known either
            self._early.drop(probe)
        self._over_limit.append(probe)

    # ---- state ----------------------------------------------------------------------------------

    @property
    def is_snapshot_due(self) -> bool:
        """Whether the log has become long, beside the snapshot or the window. Where files of a
        probe are read before those of another, it is better made when all have been."""
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
        log = [framed(message) for message in self._early.messages()]
        self._log_bytes = sum(map(len, log))
        head = _SNAPSHOT.pack(
            _SNAPSHOT_MAGIC, SNAPSHOT_VERSION, self._has_begun, self._came, len(self._given_up)
        ) + b"".join(map(_NUMBER.pack, self._given_up))
        dump = self._shard.dump()
        room = max(LOG_BYTES_MIN, self._log_bytes, len(dump) // LOG_PART)
        self._log_bytes_max = self._log_bytes + room
        return head + dump, log

    def _load(self, snapshot: bytes) -> None:
        if len(snapshot) < _SNAPSHOT.size or snapshot[:4] != _SNAPSHOT_MAGIC:
            raise FormatError("the state holds no snapshot of a shard")
        _magic, version, has_begun, self._came, given_up = _SNAPSHOT.unpack_from(snapshot)
        if version != SNAPSHOT_VERSION:
            raise FormatError(
                f"the state is of version {version}, and only {SNAPSHOT_VERSION} is known:"
                " start the job without the savepoint, or with the zanon-net that wrote it"
            )
        numbers_end = _SNAPSHOT.size + given_up * _NUMBER.size
        shard = VoteShard.load(snapshot[numbers_end:])
        if shard.settings != self._shard.settings:
            raise FormatError(
                "the state was made with another z, window or rotation: start the job without it"
            )
        self._shard, self._has_begun = shard, bool(has_begun)
        for (probe,) in _NUMBER.iter_unpack(snapshot[_SNAPSHOT.size : numbers_end]):
            self._given_up.add(probe)
        self._snapshot_watermark = self._shard.watermark
        self._log_bytes_max = max(LOG_BYTES_MIN, len(snapshot) // LOG_PART)
