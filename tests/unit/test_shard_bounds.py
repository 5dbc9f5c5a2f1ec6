# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a shard of the Flink job remembers is bounded, and forgetting decides nothing."""

import random
from collections.abc import Callable, Iterator

import pytest
from support.counting import NAME, SECOND, START, hashed

from zanon_net._core import VoteWriter, read_answers, vote_rules, vote_settings
from zanon_net.count.frames import ENDED, framed
from zanon_net.flink import early_messages, last_numbers, logged_shard
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.early_messages import EarlyMessages
from zanon_net.flink.last_numbers import LastNumbers
from zanon_net.flink.logged_shard import ALL_PRESENT, LoggedShard, probe_gone
from zanon_net.flink.probe_watch import ProbeWatch

WINDOW = 600 * SECOND
NUMBER = vote_settings(2, WINDOW, WINDOW)
KNOWN = 4096  # probes, and numbers of which nothing counts
FEW = 16
OTHER_RULES = vote_rules(user_prefix=(24, 56))


def settings(expect_probes: int = 0) -> CountSettings:
    return CountSettings(
        votes="", answers="", z=2, window_ns=WINDOW, rotate_ns=WINDOW, shards=1,
        expect_probes=expect_probes,
    )  # fmt: skip


def message(
    probe: int,
    sequence: int,
    watermark_s: float = ENDED,
    votes: tuple[tuple[float, int, int], ...] = (),
    **more: object,
) -> bytes:
    """A frame; votes: (second, user, name)."""
    writer = VoteWriter(probe, 0, NUMBER, sequence=sequence, max_votes=64, **more)
    for second, who, name in votes:
        t_ns = START + int(second * SECOND)
        writer.add(NAME, t_ns, hashed(who), hashed(-2 * name - 1), hashed(-2 * name - 2))
    mark = ENDED if watermark_s == ENDED else START + int(watermark_s * SECOND)
    return framed(bytes(writer.finish(mark)))


def bits(answers: list[bytes]) -> list[bool]:
    return [bool(bit) for answer in answers for bit in read_answers(answer)["answers"]]


def take(shard: LoggedShard, *entries: bytes) -> list[bytes]:
    return [answer for entry in entries for answer in shard.take(entry)]


def sizes(shard: LoggedShard) -> dict[str, int]:
    """Of all that may grow."""
    held = {name: len(part) for name, part in vars(shard).items() if hasattr(part, "__len__")}
    snapshot, log = shard.snapshot()
    return {**held, **shard._shard.membership, "joined": 0, "log": len(log), "all": len(snapshot)}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few probes are known, and few of which nothing counts."""
    monkeypatch.setattr(logged_shard, "PROBES_MAX", FEW)
    monkeypatch.setattr(last_numbers, "NUMBERS_MAX", FEW)


def ends(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 1, second)
    yield message(probe, 2)


def is_killed(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 1, second)
    yield probe_gone(probe)


def loses_a_message(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 1, second)
    yield message(probe, 3, second + 1)
    yield probe_gone(probe)


def begins_in_the_midst(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 5, second)
    yield probe_gone(probe)
    yield message(probe, 6)


def is_of_other_rules(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 1, second, rules=OTHER_RULES)


def waits_for_its_first(probe: int, second: int) -> Iterator[bytes]:
    yield message(probe, 2, second)


Start = Callable[[int, int], Iterator[bytes]]
STARTS = [ends, is_killed, loses_a_message, begins_in_the_midst, is_of_other_rules]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("start", "bytes_max"),
    [*((start, 1 << 27) for start in STARTS), *((waits_for_its_first, n) for n in (3000, 1 << 27))],
)
def test_starts_of_probes_leave_nothing(
    start: Start, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged_shard, "EARLY_BYTES_MAX", bytes_max)
    shard, seen = LoggedShard(settings(), 0), []
    take(shard, message(1, 1, 0))
    for second in range(1, 800):
        take(shard, *start(second + 100, second), message(1, second + 1, second))
        shard.take_refused()
        shard.take_over_limit()
        if second % 200 == 199:
            seen.append(sizes(shard))
            assert shard._early.bytes <= min(bytes_max, FEW * 400)
    assert all(again == seen[1] for again in seen[2:])
    assert seen[-1]["known"] <= FEW
    assert max(seen[-1][name] for name in ("refused", "abandoned")) <= FEW


def test_thousands_of_starts_leave_what_the_core_knows() -> None:
    shard = LoggedShard(settings(), 0)
    for probe in range(KNOWN + 1000):
        take(shard, message(probe, 1))
    assert len(shard._shard.known_probes) == KNOWN
    assert shard.probes == set()


def life(seed: int) -> Iterator[bytes]:
    """Entries of up to five probes at once, of hundreds that come and go in every way: they end,
    are killed, and send on for a while after they have lost a message."""
    chance = random.Random(seed)
    sequence_of: dict[int, int] = {}
    lost: set[int] = set()
    newest = 0
    for second in range(400):
        while len(sequence_of) < 5:
            newest += 1
            sequence_of[newest] = 0
        entries, gone = [], []
        for probe in list(sequence_of):
            votes = tuple(
                (second + chance.random(), chance.randrange(9), chance.randrange(15))
                for _ in range(chance.randrange(3))
            )
            sequence_of[probe] += 1
            fate = chance.random()
            if fate < 0.03:
                lost.add(probe)
                continue
            mark = ENDED if fate > 0.9 else second + 1
            new_session = sequence_of[probe] == 1 and probe % 3 == 0
            entries.append(message(probe, sequence_of[probe], mark, votes, new_session=new_session))
            if mark == ENDED or fate > 0.85:
                del sequence_of[probe]
            if fate > 0.85 and (mark != ENDED or probe in lost):
                gone += [probe_gone(probe)] * 2  # the first may begin it in the midst
        chance.shuffle(entries)
        yield from entries + gone


@pytest.mark.parametrize("seed", range(5))
def test_decisions_are_the_same_with_and_without_forgetting(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the one that forgets is made again of its state now and then."""
    chance = random.Random(seed)
    keeps_all = LoggedShard(settings(3), 0)
    monkeypatch.setattr(logged_shard, "PROBES_MAX", FEW)
    monkeypatch.setattr(last_numbers, "NUMBERS_MAX", FEW)
    forgets = LoggedShard(settings(3), 0)
    snapshot, log, released = None, [], 0
    for entry in life(seed):
        answers = take(forgets, entry)
        assert answers == take(keeps_all, entry)
        released += sum(bits(answers))
        log.append(entry)
        if chance.random() < 0.05:
            snapshot, log = forgets.snapshot()
        if chance.random() < 0.1:
            forgets = LoggedShard.restore(settings(3), 0, snapshot, log)
    assert len(keeps_all._shard.known_probes) > 100
    assert len(forgets._shard.known_probes) == FEW
    assert released > 800


@pytest.mark.usefixtures("few")
def test_what_a_forgotten_probe_sent_counts_no_user_twice() -> None:
    """z is 2: its one user, again, is one user still."""
    shard = LoggedShard(settings(), 0)
    first = message(2, 1, ENDED, ((1, 10, 7),))
    take(shard, message(1, 1, 0.5), first)
    for probe in range(100, 100 + 2 * FEW):
        take(shard, message(probe, 1))
    answers = take(shard, first, message(1, 2, 3, ((2, 10, 7),)))
    assert bits(answers) == [False, False, False]
    assert bits(take(shard, message(1, 3, 4, ((3, 20, 7),)))) == [True]


@pytest.mark.usefixtures("few")
def test_a_probe_whose_refusal_is_forgotten_is_refused_again() -> None:
    shard = LoggedShard(settings(), 0)
    take(shard, message(1, 1, 1))
    odd = [message(probe, 1, 1, ((0, 5, 5),), rules=OTHER_RULES) for probe in range(2, 3 + FEW)]
    assert take(shard, *odd, odd[-1]) == []
    assert [one.header.probe for one in shard.take_refused()] == list(range(2, 3 + FEW))
    assert take(shard, odd[0]) == []
    assert [one.header.probe for one in shard.take_refused()] == [2]


@pytest.mark.usefixtures("few")
def test_probes_are_counted_though_they_are_forgotten_and_the_shard_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is decided before the third, whatever the numbers of the first; snapshots are made
    all the same."""
    monkeypatch.setattr(logged_shard, "LOG_BYTES_MIN", 50)
    monkeypatch.setattr(logged_shard, "LOG_PART", 1000)
    monkeypatch.setattr(logged_shard, "WAITING_BYTES", 0)
    shard, snapshots = LoggedShard(settings(3), 0), 0
    take(shard, message(1, 1))
    for probe in range(100, 100 + 2 * FEW):
        assert take(shard, message(probe, 1, new_session=True, marks_missing=True)) == []
        snapshots += shard.is_snapshot_due
        shard = LoggedShard.restore(settings(3), 0, *shard.snapshot())
    assert snapshots > 10
    assert take(shard, message(2, 1)) == []
    shard = LoggedShard.restore(settings(3), 0, *shard.snapshot())
    assert len(take(shard, message(3, 1))) == 3 + 2 * FEW


# ---- messages that wait --------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [1, 2])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_probe_of_which_too_much_waits_is_gone(
    missing: int, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its first is missing it begins in the midst; else nothing of it counts any more."""
    monkeypatch.setattr(logged_shard, "EARLY_BYTES_MAX", 20_000)
    shard, over_limit, answers = LoggedShard(settings(2), 0), [], []
    for sequence in range(1, 200):
        votes = ((sequence - 0.5, 1, 1),)
        for probe in (1, 2):
            if (probe, sequence) != (1, missing):
                answers += take(shard, message(probe, sequence, sequence, votes))
        over_limit += shard.take_over_limit()
        assert shard._early.bytes <= 20_000
        if restarts:
            shard = LoggedShard.restore(settings(2), 0, *shard.snapshot())
    assert over_limit == [1]
    of_first = [read_answers(answer)["probe"] for answer in answers].count(1)
    assert of_first == (198 if missing == 1 else 1)
    assert len(answers) - of_first == 199
    assert shard.probes == ({1, 2} if missing == 1 else {2})


def test_what_waits_for_room_is_dropped_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logged_shard, "PROBES_MAX", 2)
    monkeypatch.setattr(logged_shard, "EARLY_BYTES_MAX", 10_000)
    shard = LoggedShard(settings(), 0)
    take(shard, message(1, 1, 1), message(2, 1, 1))
    for sequence in range(1, 100):
        take(shard, message(3, sequence, sequence))
        assert shard._early.bytes <= 10_000
    assert set(shard.take_over_limit()) == {3}
    assert len(take(shard, message(1, 2, 5), message(2, 2, 5))) == 2


def test_what_waits_for_room_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_shard, "PROBES_MAX", 2)
    shard = LoggedShard(settings(5), 0)
    take(shard, message(1, 1, 1), message(2, 1, 1), message(3, 1, 1))
    assert list(shard._early) == [3]
    take(shard, message(1, 2), message(3, 1, 1))
    assert list(shard._early) == []
    assert 3 in shard.probes


def test_early_messages_know_how_much_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_messages, "MESSAGE_OVERHEAD", 100)
    early = EarlyMessages()
    assert early.first_of(1) is None
    early.add(1, 5, b"abcd")
    early.add(1, 5, b"ab")
    early.add(2, 3, b"abc")
    early.add(1, 4, b"")
    assert (early.bytes, early.largest(), early.first_of(1), list(early)) == (305, 1, 4, [1, 2])
    assert (early.get(1, 5), early.get(1, 6), early.get(3, 1)) == (b"ab", None, None)
    early.remove(1, 4)
    early.remove(1, 4)
    assert (early.bytes, early.largest()) == (205, 2)
    early.remove(1, 5)
    assert 1 not in early
    assert list(early.messages()) == [b"abc"]
    early.drop(2)
    early.drop(2)
    assert (early.bytes, len(early)) == (0, 0)


def test_the_last_numbers_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_numbers, "NUMBERS_MAX", 3)
    last = LastNumbers()
    for number in (1, 2, 3, 1, 4):
        last.add(number)
    assert list(last) == [2, 3, 4]
    assert 1 not in last
    assert len(last) == 3


# ---- clocks --------------------------------------------------------------------------------------


class Clock:
    now_s = 0.0

    def __call__(self) -> int:
        return int(self.now_s * SECOND)


@pytest.mark.usefixtures("few")
def test_a_watch_forgets_the_probes_that_the_shard_forgot() -> None:
    shard, clock = LoggedShard(settings(), 0), Clock()
    watch = ProbeWatch(shard, 30 * SECOND, clock)
    take(shard, message(1, 1, 0))
    for second in range(1, 1000):
        clock.now_s = second
        kind = STARTS[second % len(STARTS)]
        for entry in (*kind(second + 100, second), message(1, second + 1, second)):
            take(shard, entry)
            if entry[:4] != b"ZNVG":
                watch.hear(int.from_bytes(entry[12:20], "little"))
        if second % 15 == 0:
            for probe in watch.silent():
                take(shard, probe_gone(probe))
            watch.late()
            assert len(watch) <= FEW + 1
    assert shard.probes == {1}


def test_a_silent_probe_is_gone_once_in_its_time() -> None:
    shard, clock = LoggedShard(settings(), 0), Clock()
    watch = ProbeWatch(shard, 30 * SECOND, clock)
    take(shard, message(1, 1, 1), message(2, 1, 1), message(2, 3, 1))
    for probe in (1, 2):
        watch.hear(probe)
    for second in range(0, 30, 5):
        clock.now_s = second
        watch.hear(1)
        watch.hear(2)  # waits for a message that is missing: this is no sign
        assert watch.silent() == []
    clock.now_s = 30
    assert watch.silent() == [2]
    take(shard, probe_gone(2))
    clock.now_s = 70
    assert watch.silent() == [1]


def test_a_probe_that_stays_behind_is_late_if_it_sends() -> None:
    shard, clock = LoggedShard(settings(), 0), Clock()
    watch = ProbeWatch(shard, 30 * SECOND, clock)
    take(shard, message(1, 1, 100))
    late = []
    for second in range(1, 90, 10):
        clock.now_s = second
        if second < 40:
            take(shard, message(2, second // 10 + 1, 0))
            watch.hear(2)
        assert watch.silent() in ([], [1])
        late.append(list(watch.late()))
    assert late == [[], [2], [2], [2], [2], [2], [], [], []]
    assert watch.lags == {}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_number_whose_former_one_nobody_heard_of_begins_by_and_by(restarts: bool) -> None:
    """A job that begins without state cannot tell whose place a number took, until it is clear that
    nobody else comes."""
    now, timeout = [0], 10
    shard = LoggedShard(settings(expect_probes=1), 0)
    watch = ProbeWatch(shard, timeout, lambda: now[0])
    log = [message(1, 1, 1, ((0, 10, 1), (0.5, 11, 1)), new_session=True)]
    assert take(shard, log[0]) == []
    for step in range(1, 4):
        watch.hear(1)
        assert not watch.speakers
        log.append(message(1, step + 1, step + 1))
        assert take(shard, log[-1]) == []
        now[0] += 5
    watch.hear(1)
    assert watch.speakers == {1}
    if restarts:
        shard = LoggedShard.restore(settings(expect_probes=1), 0, None, log)
    assert not shard.has_begun
    assert bits(take(shard, ALL_PRESENT)) == [False, True]
    again = LoggedShard.restore(settings(expect_probes=1), 0, *shard.snapshot())
    assert again.has_begun
    watch.hear(2)
    assert not watch.speakers


def test_a_long_log_of_what_waits_is_not_written_anew_for_each_message() -> None:
    shard, snapshots = LoggedShard(settings(), 0), 0
    take(shard, message(1, 1, 1))
    for sequence in range(3, 803):  # the second is missing
        votes = tuple((1 + n / 100, n, 1) for n in range(60))
        take(shard, message(1, sequence, 2, votes))
        if shard.is_snapshot_due:
            shard.snapshot()
            snapshots += 1
    assert 0 < snapshots < 10
