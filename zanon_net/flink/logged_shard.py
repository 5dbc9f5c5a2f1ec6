# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A shard of the counter with its snapshot and the log of entries since.

Nothing here knows Flink. Entries are taken one by one, and the same entries on the same snapshot
give the same shard: a restart reads the snapshot and takes the entries of the log.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zanon_net._core import (
    STANDINGS,
    VOTE_ENTRIES,
    VoteShard,
    read_entry,
    vote_rules_difference,
    write_answers,
    write_entry,
)
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

SNAPSHOT_VERSION = 4
PROBES_MAX = 4096
"""Sessions that a shard knows. For a further session it forgets a session that has ended or has
been gone longest. A message of a forgotten session is taken as a new session's: its votes are late,
and each of its users counts once."""
EARLY_BYTES_MAX = 1 << 27
"""Bytes of messages that wait for their turn in a shard, at most. Beyond it, the session with most
of these bytes is abandoned."""
LOG_BYTES_MIN = 1 << 16
LOG_PART = 3
"""A log is about a third of a snapshot: a checkpoint holds little more than the live tuples, and a
vote pays for the snapshot of two or three tuples."""
LOG_PARTS_MAX = 2
"""Factor by which the log may exceed that length while votes wait."""
WAITING_BYTES = 34
"""Bytes of a vote that waits for other probes in a snapshot, twice its bytes in the log."""

_SNAPSHOT = struct.Struct("<4sB3x")
_SEQUENCE = 0  # place in an entry of VoteShard.probe()
_SNAPSHOT_MAGIC = b"ZNVF"
_ENTRY_MAGIC = b"ZNV"  # the begin of all entries that are no frames
ALL_PRESENT = write_entry(VOTE_ENTRIES["all_present"])
"""Entry of a log: all expected probes are present, whatever sessions theirs replace."""

_DUPLICATE, _REFUSED, _ABANDONED = (
    STANDINGS[name] for name in ("duplicate", "refused", "abandoned")
)
_OTHER_SETTINGS, _OTHER_RULES = STANDINGS["other_settings"], STANDINGS["other_rules"]


def probe_gone(probe: int) -> bytes:
    """Returns the entry of a log after which the shard no longer waits for this session."""
    return write_entry(VOTE_ENTRIES["gone"], session=probe)


class Refused(NamedTuple):
    """Refused session, of which no message counts from now on, and the reason."""

    header: VotesHeader
    reason: str

    @property
    def frames(self) -> bytes:
        """Frames for the probe: an empty answer to its message, and the refusal with its reason.

        The answer comes first, because a refusal at the start of an element ends the job.
        """
        h = self.header
        answer = write_answers(h.shard, h.probe, h.sequence, h.settings, [])
        return framed(answer) + framed(write_refusal(Refusal(self.reason, is_final=True)))


class LoggedShard:
    """Shard with a log. It begins empty.

    An entry is messages of votes in frames, `probe_gone` or ALL_PRESENT. Messages of a probe may
    come in any order, because files are read in parallel. An early message waits for its turn.
    Nothing is decided before expect_probes probes have joined, because the votes of a later probe
    would be late. A probe with another key or other rules than the first probe is refused.

    Each start of a probe is a new session. The memory for sessions is bounded by PROBES_MAX and
    EARLY_BYTES_MAX. A refused or abandoned session that is forgotten is refused or abandoned again.
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
        self._early = EarlyMessages()
        self._untold: list[Refused] = []
        self._over_limit: list[int] = []
        self._log_bytes = 0
        self._log_bytes_max = LOG_BYTES_MIN
        self._snapshot_watermark = self._shard.watermark

    @classmethod
    def restore(
        cls, settings: CountSettings, number: int, snapshot: bytes | None, log: Iterable[bytes]
    ) -> "LoggedShard":
        """Restores the shard that wrote the snapshot and then took the entries of the log.

        Raises FormatError for a damaged snapshot, or a snapshot of another version.
        """
        logged = cls(settings, number)
        if snapshot is not None:
            logged._load(snapshot)
        for entry in log:
            for _answer in logged.take(entry):  # it was sent before the restart
                pass
        logged.take_refused()
        logged.take_over_limit()
        return logged

    @property
    def has_begun(self) -> bool:
        """True since none of the expected probes was missing."""
        return self._shard.has_begun

    @property
    def probes(self) -> set[int]:
        """Sessions that decisions wait for, and sessions whose messages wait."""
        waited_for = self._shard.probes.items()
        return {*(p for p, (_last, mark) in waited_for if mark != ENDED), *self._early}

    @property
    def early_probes(self) -> list[int]:
        """Sessions whose messages wait for their turn."""
        return list(self._early)

    @property
    def shard(self) -> VoteShard:
        """The shard, for a watch over its probes."""
        return self._shard

    @property
    def tuples(self) -> int:
        """Number of pairs of attribute and user in the table."""
        return int(self._shard.stats["table"]["tuples"])

    @property
    def waiting(self) -> int:
        """Number of votes and messages that wait for other probes."""
        return int(self._shard.stats["pending"])

    def take(self, entry: bytes) -> Iterator[bytes]:
        """Takes an entry. Yields the messages of answers that it completes. Raises FormatError."""
        self._log_bytes += len(entry)
        if entry[: len(_ENTRY_MAGIC)] == _ENTRY_MAGIC:
            self._take_entry(entry)
        else:
            for message in messages_in(entry):
                self._take_message(message)
        yield from self._decide()
        while self._early.bytes > EARLY_BYTES_MAX or len(self._early) > PROBES_MAX:
            self._abandon_largest()
            yield from self._decide()

    def take_refused(self) -> list[Refused]:
        """Returns the sessions that were refused since the last call."""
        untold, self._untold = self._untold, []
        return untold

    def take_over_limit(self) -> list[int]:
        """Returns the sessions that were abandoned since the last call to free early messages."""
        over_limit, self._over_limit = self._over_limit, []
        return over_limit

    def lags(self) -> dict[int, int]:
        """Returns the nanoseconds by which each session that is not present is behind the decided
        time."""
        return self._shard.lags()

    def is_stuck(self, probe: int) -> bool:
        """Returns true if the messages of a session wait for a missing message."""
        return probe in self._early and self._early.get(probe, self._following(probe)) is None

    def _following(self, probe: int) -> int:
        """Returns the sequence of a session's next message."""
        known = self._shard.probe(probe)
        return 1 if known is None else int(known[_SEQUENCE]) + 1

    def _standing(self, header: VotesHeader) -> int:
        return self._shard.standing(header.probe, header.sequence, header.settings, header.rules)

    def _take_message(self, message: bytes) -> None:
        header = votes_header(message)
        standing = self._standing(header)
        if standing == _OTHER_RULES:
            self._refuse(header)
        elif standing == _ABANDONED:
            if self._shard.probe(header.probe) is not None:
                self._shard.forget_probe(header.probe)  # its marks of clients are missing, too
        elif standing == _OTHER_SETTINGS:
            self._shard.put(message)  # raises, because no message of such a probe can count
        elif standing not in (_REFUSED, _DUPLICATE):
            self._take_in_turn(header, message)

    def _take_in_turn(self, header: VotesHeader, message: bytes) -> None:
        """Takes a message whose turn it is, and the messages that waited for it, or keeps it."""
        following = self._following(header.probe)
        if header.sequence == following and self._put(message):
            self._early.remove(header.probe, following)
            self._put_early(header.probe, following + 1)
        else:
            self._early.add(header.probe, header.sequence, message)

    def _put(self, message: bytes) -> bool:
        """Puts a message whose turn it is; false if there is no space for it."""
        try:
            self._shard.put(message)
        except CapacityError:
            return False
        return True

    def _put_early(self, probe: int, following: int) -> None:
        """Puts the early messages of a session from a sequence on, while there is space."""
        while (message := self._early.get(probe, following)) is not None:
            header = votes_header(message)
            if self._standing(header) == _OTHER_RULES:  # it came before the first of another probe
                self._refuse(header)
                return
            if not self._put(message):
                return
            self._early.remove(probe, following)
            following += 1

    def _refuse(self, header: VotesHeader) -> None:
        """Refuses the session of a message whose probe has another key or other rules."""
        self._shard.refuse(header.probe)
        self._early.drop(header.probe)
        reason = vote_rules_difference(header.rules, self._shard.rules or 0)
        self._untold.append(Refused(header, reason))

    def _decide(self) -> Iterator[bytes]:
        """Decides, and again if there is space for early messages then. Decides nothing before all
        expected probes have joined."""
        has_begun = self._shard.begin(self._settings.expect_probes)
        answers = self._shard.decide() if has_begun else []
        while answers:
            yield from answers
            for probe in sorted(self._early):
                self._put_early(probe, self._following(probe))
            answers = self._shard.decide() if self._early else []

    def _take_entry(self, entry: bytes) -> None:
        kind, _message, probe = read_entry(entry)
        if kind == VOTE_ENTRIES["gone"]:
            self._forget(probe)
        elif kind == VOTE_ENTRIES["all_present"]:
            self._shard.expect_no_more(self._settings.expect_probes)
        else:
            raise FormatError("this is no entry of a shard's log")

    def _forget(self, probe: int) -> None:
        """Continues without a session, or begins a session in the middle of its sequence. Messages
        behind a gap do not count, so the probe's votes are suppressed until it starts again."""
        if probe in self._shard.probes:
            self._shard.forget_probe(probe)
        first = self._early.first_of(probe)
        if first is not None and self._shard.probe(probe) is None:
            self._put_early(probe, first)
        elif first is not None:
            self._early.drop(probe)
            self._shard.abandon(probe)

    def _abandon_largest(self) -> None:
        """Frees the early messages of the session with most bytes, as if it had been silent."""
        probe, before = self._early.largest(), self._early.bytes
        self._forget(probe)
        if self._early.bytes == before:  # there is no space for a new session either
            self._early.drop(probe)
        self._over_limit.append(probe)

    # ---- state ----------------------------------------------------------------------------------

    @property
    def is_snapshot_due(self) -> bool:
        """True if the log is long, compared to the snapshot or the window. While the files of one
        probe are ahead of another probe's, a snapshot is put off."""
        if self._shard.watermark - self._snapshot_watermark >= self._settings.window_ns:
            return True
        if self._log_bytes < self._log_bytes_max:
            return False
        return (
            self.waiting * WAITING_BYTES <= self._log_bytes_max // LOG_PART
            or self._log_bytes >= self._log_bytes_max * LOG_PARTS_MAX
        )

    def snapshot(self) -> tuple[bytes, list[bytes]]:
        """Returns (snapshot, log), which replace the previous snapshot and log."""
        self._snapshot_watermark = self._shard.watermark
        log = [framed(message) for message in self._early.messages()]
        self._log_bytes = sum(map(len, log))
        head = _SNAPSHOT.pack(_SNAPSHOT_MAGIC, SNAPSHOT_VERSION)
        dump = self._shard.dump()
        room = max(LOG_BYTES_MIN, self._log_bytes, len(dump) // LOG_PART)
        self._log_bytes_max = self._log_bytes + room
        return head + dump, log

    def _load(self, snapshot: bytes) -> None:
        if len(snapshot) < _SNAPSHOT.size or snapshot[:4] != _SNAPSHOT_MAGIC:
            raise FormatError("the state holds no snapshot of a shard")
        _magic, version = _SNAPSHOT.unpack_from(snapshot)
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
