# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes of which a counter takes no messages, though they come: what they tell of clients is not
known, so that no server's address is released as long as they speak."""

from collections.abc import Callable, Iterator

import pytest
from support.count_desk import HOUR, Desk
from support.counting import SECOND, START, hashed

from zanon_net._core import VOTE_KINDS, VoteWriter, read_answers, vote_settings
from zanon_net.count.frames import ENDED, framed
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.logged_shard import LoggedShard, probe_gone

ADDR, CLIENT = VOTE_KINDS["addr"], VOTE_KINDS["client"]
EPOCHS = 5
BEGIN = START // HOUR * HOUR
NUMBER = vote_settings(2, HOUR, HOUR)
UNHEARD, ASKER = 1, 2


def message(probe: int, sequence: int, t_s: float, *votes: tuple[int, float, int]) -> bytes:
    """votes: (kind, second, user), for one address; t_s: the watermark."""
    writer = VoteWriter(probe, 0, NUMBER, sequence=sequence)
    for kind, second, user in votes:
        t_ns = BEGIN + int(second * SECOND)
        writer.add(kind, t_ns, 0 if kind == CLIENT else hashed(user), hashed(-1), hashed(-2))
    return bytes(writer.finish(BEGIN + int(t_s * SECOND)))


def conversation(first: int) -> Iterator[tuple[int, bytes]]:
    """In each epoch the one probe tells of a client, and two users at the other use its address.
    first: the number of the first message of the one."""
    yield ASKER, message(ASKER, 1, 1)
    for epoch in range(EPOCHS):
        t_s = epoch * HOUR / SECOND + 20
        yield UNHEARD, message(UNHEARD, first + 2 * epoch, t_s + 5, (CLIENT, t_s, 0))
        users = ((ADDR, t_s + 10, 5), (ADDR, t_s + 11, 6))
        yield ASKER, message(ASKER, 2 * epoch + 2, t_s + 30, *users)
        yield UNHEARD, message(UNHEARD, first + 2 * epoch + 1, t_s + 40)
        yield ASKER, message(ASKER, 2 * epoch + 3, t_s + 40)


def released(answers: list[bytes]) -> list[bool]:
    read = [read_answers(answer) for answer in answers]
    return [bool(bit) for one in read if one["probe"] == ASKER for bit in one["answers"]]


def by_a_counter(first: int) -> list[bool]:
    desk = Desk(max_skew_ns=EPOCHS * HOUR)
    desk.put(message(UNHEARD, 1, 1))
    desk.wait(31)  # the timeout of a probe
    for _probe, one in conversation(first):
        desk.put(one)
    return released(desk.transport.answers)


def by_a_flink_shard(first: int) -> list[bool]:
    shard = LoggedShard(
        CountSettings(votes="", answers="", z=2, window_ns=HOUR, rotate_ns=HOUR, shards=1), 0
    )
    log, answers = [framed(message(UNHEARD, 1, 1))], []
    for probe, one in conversation(first):
        log.append(framed(one))
        if probe == UNHEARD:
            log.append(probe_gone(UNHEARD))
    for entry in log:
        answers += list(shard.take(entry))
        if shard.is_snapshot_due:
            shard.snapshot()
    return released(answers)


@pytest.mark.parametrize("counted", [by_a_counter, by_a_flink_shard])
def test_behind_a_gap(counted: Callable[[int], list[bool]]) -> None:
    assert len(counted(3)) == 2 * EPOCHS
    assert not any(counted(3))


def test_ahead_of_the_counters_clock() -> None:
    """It is gone after a while, and all that it sends is refused."""
    desk = Desk(max_skew_ns=HOUR, probe_timeout_s=400.0)
    desk.put(message(UNHEARD, 1, 1), message(ASKER, 1, 1))
    later = BEGIN + 100 * HOUR
    for epoch in range(EPOCHS):
        t_s = epoch * HOUR / SECOND + 20
        for second in range(0, 3600, 300):
            desk.now_s = t_s + second
            wrong = VoteWriter(UNHEARD, 0, NUMBER, sequence=2)
            wrong.add(CLIENT, later, 0, hashed(-1), hashed(-2))
            desk.put(bytes(wrong.finish(later)))
            place = epoch * 12 + second // 300 + 2
            users = ((ADDR, desk.now_s - 2, 5), (ADDR, desk.now_s - 1, 6)) if second else ()
            desk.put(message(ASKER, place, desk.now_s, *users))
    assert desk.count("refused_future") == 12 * EPOCHS
    assert desk.count("probe_gone") == 1  # not each time that it is gone anew
    answers = released(desk.transport.answers)
    assert len(answers) > 20 * EPOCHS - 10
    assert not any(answers)


def test_a_probe_that_ended_is_not_gone() -> None:
    desk = Desk()
    desk.put(message(UNHEARD, 1, 1), message(ASKER, 1, 1))
    last = VoteWriter(UNHEARD, 0, NUMBER, sequence=2)
    desk.put(bytes(last.finish(ENDED)))
    desk.put(message(UNHEARD, 9, 1))
    desk.put(message(ASKER, 2, 30, (ADDR, 10, 5), (ADDR, 11, 6)), message(ASKER, 3, 40))
    assert released(desk.transport.answers) == [False, True]
    assert desk.count("probe_gone") == 0
