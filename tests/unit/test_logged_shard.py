# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A shard of the counter that is made again of its snapshot and the entries since."""

import random
from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from support.vote_stream import SECOND, VoteStream, releases

from zanon_net._core import VoteWriter, read_answers, vote_rules
from zanon_net.count.frames import framed, messages_in, read_refusal, votes_header
from zanon_net.errors import FormatError
from zanon_net.flink import logged_shard
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.logged_shard import LoggedShard, probe_gone

STREAM = VoteStream(observations=4000, shards=1, probes=3, z=3, interval_ns=20 * SECOND)
MESSAGES = [(probe, framed(message)) for probe, message in STREAM.messages()]
SETTINGS = CountSettings(
    votes="", answers="", z=3, window_ns=STREAM.window_ns, rotate_ns=STREAM.window_ns,
    shards=1, expect_probes=3,
)  # fmt: skip


class Keeper:
    """The state of a key as Flink keeps it."""

    def __init__(self) -> None:
        self.snapshot: bytes | None = None
        self.log: list[bytes] = []
        self.snapshots = 0
        self.shard = LoggedShard(SETTINGS, 0)

    def take(self, entry: bytes) -> list[bytes]:
        answers = list(self.shard.take(entry))
        self.log.append(entry)
        if self.shard.is_snapshot_due:
            self.snapshot, self.log = self.shard.snapshot()
            self.snapshots += 1
        return answers

    def restart(self) -> None:
        self.shard = LoggedShard.restore(SETTINGS, 0, self.snapshot, self.log)


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_shard, "LOG_BYTES_MIN", 3000)


def side_by_side(seed: int) -> list[bytes]:
    """The messages as readers of several files give them: those of a probe may change places."""
    chance = random.Random(seed)
    queues = {probe: [m for p, m in MESSAGES if p == probe] for probe, _m in MESSAGES}
    order = [message for _probe, message in MESSAGES]
    chance.shuffle(order)
    order.sort(key=lambda message: int.from_bytes(message[20:28], "little") // 4)
    assert order != [m for key in sorted(queues) for m in queues[key]]
    return order


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("pause", [0, 1, 7])
@pytest.mark.parametrize("seed", range(3))
def test_the_answers_are_those_of_one_table(seed: int, pause: int) -> None:
    keeper, answers = Keeper(), Counter()
    for number, message in enumerate(side_by_side(seed), start=1):
        answers.update(keeper.take(message))
        if pause and number % pause == 0:
            keeper.restart()
    assert answers == STREAM.expected()
    assert keeper.snapshots > 3


@pytest.mark.usefixtures("short_logs")
def test_generations_of_hashes_release_what_one_releases() -> None:
    """The hashes change in the midst of the stream."""
    length = 3 * STREAM.window_ns
    stream = replace(STREAM, begin_ns=length - 800 * SECOND, count_rotate_ns=length)
    settings = replace(SETTINGS, count_rotate_ns=length)
    shard, answers, log = LoggedShard(settings, 0), Counter(), []
    for number, (_probe, message) in enumerate(stream.messages()):
        answers.update(shard.take(framed(message)))
        log.append(framed(message))
        if number % 7 == 0:
            shard = LoggedShard.restore(settings, 0, None, log)
    assert answers == stream.expected()
    one = replace(stream, count_rotate_ns=None)
    assert releases(answers) == releases(one.expected()) > 100


@pytest.mark.usefixtures("short_logs")
def test_messages_together_are_as_one_by_one() -> None:
    keeper, answers = Keeper(), Counter()
    for _probe, group in groupby(MESSAGES[:-3], key=lambda each: each[0]):
        answers.update(keeper.take(b"".join(message for _probe, message in group)))
    for first in (MESSAGES[-3:], MESSAGES[-3:]):
        answers.update(keeper.take(b"".join(message for _probe, message in first)))
        keeper.restart()
    assert answers == STREAM.expected()


def test_snapshots_wait_for_the_probes_that_are_read_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the job reads files of many messages, a probe is ahead while another's is read."""
    monkeypatch.setattr(logged_shard, "LOG_BYTES_MIN", 20_000)
    shard, waiting, waiting_at_snapshots = LoggedShard(SETTINGS, 0), [], []
    probes = sorted({probe for probe, _message in MESSAGES})
    of = {probe: [m for p, m in MESSAGES if p == probe] for probe in probes}
    for first in range(0, len(MESSAGES) // len(probes), 10):
        for probe in probes:
            list(shard.take(b"".join(of[probe][first : first + 10])))
            waiting.append(shard.waiting)
            if shard.is_snapshot_due:
                waiting_at_snapshots.append(shard.waiting)
                shard.snapshot()
    assert len(waiting_at_snapshots) > 2
    assert max(waiting_at_snapshots) < max(waiting) / 4


@pytest.mark.usefixtures("short_logs")
def test_a_message_twice_is_one() -> None:
    keeper, answers = Keeper(), Counter()
    for _probe, message in MESSAGES:
        answers.update(keeper.take(message))
        answers.update(keeper.take(message))
    assert answers == STREAM.expected()


def test_nothing_is_decided_before_all_have_come() -> None:
    keeper = Keeper()
    of_two = [m for probe, m in MESSAGES if probe != MESSAGES[-1][0]]
    assert [answer for message in of_two for answer in keeper.take(message)] == []


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("restarts", [False, True])
def test_others_go_on_without_a_probe_that_is_gone(restarts: bool) -> None:
    keeper, gone = Keeper(), MESSAGES[-1][0]
    half = len(MESSAGES) // 2
    answers = [a for _p, message in MESSAGES[:half] for a in keeper.take(message)]
    rest = [message for probe, message in MESSAGES[half:] if probe != gone]
    waited = [answer for message in rest for answer in keeper.take(message)]
    if restarts:
        keeper.restart()
    answers += [*waited, *keeper.take(probe_gone(gone))]
    if restarts:
        keeper.restart()
        assert list(keeper.shard.take(rest[-1])) == []
    of_probes = Counter(int.from_bytes(answer[8:16], "little") for answer in answers)
    probes = [probe for probe, _message in MESSAGES[:half]]
    sent = Counter(probes + [int.from_bytes(message[12:20], "little") for message in rest])
    assert of_probes == sent


@pytest.mark.parametrize("missing", [0, 30])
def test_a_probe_with_a_gap_is_given_up(missing: int) -> None:
    """One that was not known before begins behind it; nothing of another counts from there on."""
    keeper, probe = Keeper(), MESSAGES[missing][0]
    rest = [message for number, (_probe, message) in enumerate(MESSAGES) if number != missing]
    answers = [answer for message in rest for answer in keeper.take(message)]
    assert probe in keeper.shard.probes
    assert len(answers) < 40
    answers += keeper.take(probe_gone(probe))
    behind = sum(p == probe for p, _m in MESSAGES[missing:]) if missing else 1
    assert len(answers) == len(MESSAGES) - behind
    assert keeper.take(rest[-1]) == []
    assert keeper.shard.probes == set()


def other_rules(message: bytes) -> bytes:
    """The frame of a message of a probe with another --user-prefix, without its votes."""
    header = votes_header(message[4:])
    rules = vote_rules(user_prefix=(24, 56))
    writer = VoteWriter(
        header.probe, header.shard, header.settings, rules=rules, sequence=header.sequence
    )
    return framed(bytes(writer.finish(header.watermark)))


@pytest.mark.parametrize("restarts", [False, True])
def test_a_probe_of_other_rules_is_refused_and_ends_nothing(restarts: bool) -> None:
    """It is told once, is no probe that was expected, and the others go on."""
    odd = MESSAGES[2][0]
    keeper = Keeper()
    keeper.shard._settings = CountSettings(**{**SETTINGS.__dict__, "expect_probes": 2})
    answers, refused = [], []
    for number, (probe, message) in enumerate(MESSAGES):
        answers += keeper.take(other_rules(message) if probe == odd else message)
        refused += keeper.shard.take_refused()
        if restarts and number == len(MESSAGES) // 2:
            keeper.restart()
            assert keeper.shard.take_refused() == []
    assert [one.header.probe for one in refused] == [odd]
    assert len(answers) == sum(probe != odd for probe, _message in MESSAGES)
    answer, refusal = messages_in(refused[0].frames)
    assert read_answers(answer)["answers"].tolist() == []
    assert read_answers(answer)["probe"] == odd
    assert read_refusal(refusal).text.startswith("its --user-prefix is 24,56 and not 32,56")
    assert odd not in keeper.shard.probes


def test_a_snapshot_keeps_the_rules() -> None:
    """A probe that was refused before is refused again, by whatever comes of it; so is one whose
    first messages are missing, and that was there before there were rules."""
    keeper, odd = Keeper(), MESSAGES[2][0]
    for probe, message in MESSAGES[:40]:
        keeper.take(other_rules(message) if probe == odd else message)
    keeper.snapshot, keeper.log = keeper.shard.snapshot()
    keeper.restart()
    for _probe, message in (one for one in MESSAGES[40:] if one[0] == odd):
        keeper.take(other_rules(message))
    assert [one.header.probe for one in keeper.shard.take_refused()] == [odd]
    keeper = Keeper()
    second = [message for probe, message in MESSAGES if probe == odd][1]
    for entry in (other_rules(second), MESSAGES[0][1], probe_gone(odd)):
        keeper.take(entry)
    assert [one.header.probe for one in keeper.shard.take_refused()] == [odd]
    assert keeper.shard.probes == {MESSAGES[0][0]}


def test_a_probe_that_comes_late_and_lags_is_late_and_holds_up_nobody() -> None:
    late = MESSAGES[-1][0]
    keeper = Keeper()
    keeper.shard._settings = CountSettings(**{**SETTINGS.__dict__, "expect_probes": 2})
    queues = [[m for p, m in MESSAGES if (p == late) == is_late] for is_late in (False, True)]
    answers = []
    for number, message in enumerate(queues[0][:-2]):
        answers += keeper.take(message)
        if number >= 20 and number % 2:  # ten intervals of 20 s later than it should
            answers += keeper.take(queues[1][(number - 20) // 2])
    behind = keeper.shard.lags()
    assert list(behind) == [late]
    assert 100 * SECOND < behind[late] < 400 * SECOND
    assert late not in keeper.shard.probes
    assert Counter(answers[-10:]).total() == 10


def test_a_probe_that_was_gone_comes_back() -> None:
    keeper, answers = Keeper(), []
    half = len(MESSAGES) // 2
    for number, (probe, message) in enumerate(MESSAGES):
        answers += keeper.take(message)
        if number == half:
            answers += keeper.take(probe_gone(probe))
    assert len(answers) == len(MESSAGES)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s[:4] + b"\x01" + s[5:], "version 1, and only 4 is known"),
        (lambda s: b"else" + s[4:], "no snapshot"),
        (lambda s: s[:3], "no snapshot"),
        (lambda s: s[:-20], "damaged|cut|snapshot"),
        (lambda s: s[:40] + bytes([s[40] ^ 1]) + s[41:], "damaged|cut|snapshot"),
    ],
)
def test_other_state_is_refused(change, problem: str) -> None:
    keeper = Keeper()
    for _probe, message in MESSAGES[:60]:
        keeper.take(message)
    snapshot, log = keeper.shard.snapshot()
    with pytest.raises(FormatError, match=problem):
        LoggedShard.restore(SETTINGS, 0, change(snapshot), log)


def test_state_of_other_settings_is_refused() -> None:
    snapshot, _log = Keeper().shard.snapshot()
    others = CountSettings(**{**SETTINGS.__dict__, "z": 4})
    with pytest.raises(FormatError, match="another z, window or rotation"):
        LoggedShard.restore(others, 0, snapshot, [])


def test_a_log_of_something_else_is_refused() -> None:
    with pytest.raises(FormatError):
        LoggedShard.restore(SETTINGS, 0, None, [b"ZNVQ" + bytes(8)])
    with pytest.raises(FormatError):
        LoggedShard.restore(SETTINGS, 0, None, [b"ZNVG"])


def test_a_probe_whose_messages_wait_for_one_that_is_missing_is_stuck() -> None:
    shard = LoggedShard(SETTINGS, 0)
    probe = MESSAGES[0][0]
    own = [message for p, message in MESSAGES if p == probe]
    list(shard.take(own[0]))
    assert not shard.is_stuck(probe)
    list(shard.take(own[2]))
    assert shard.is_stuck(probe)
    list(shard.take(own[1]))
    assert not shard.is_stuck(probe)


def test_a_number_that_takes_the_place_of_another_is_no_other_probe() -> None:
    """Nothing is decided before the one that is still to come."""
    shard = LoggedShard(CountSettings(**{**SETTINGS.__dict__, "expect_probes": 2}), 0)
    writers = [
        VoteWriter(number, 0, STREAM.settings, new_session=number == 2, marks_missing=number == 2)
        for number in (1, 2, 3)
    ]
    for writer, answers in zip(writers, (0, 0, 3), strict=True):
        assert len(list(shard.take(framed(bytes(writer.finish(1000)))))) == answers
