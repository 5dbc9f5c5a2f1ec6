# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A probe that comes after the others and whose clock stays behind theirs by a constant."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.votes import (
    CLIENT,
    END,
    NAME,
    PEEK,
    Message,
    ShardOracle,
    Vote,
    decide_all,
    decode,
    encode,
)

from zanon_net._core import VoteShard, read_answers, vote_settings

Z, WINDOW, ROTATE = 3, 40, 100
SETTINGS = vote_settings(Z, WINDOW, ROTATE)
INTERVAL, ADMITTED = 10, 25
HIGH = 1 << 60
LATE = 9  # the number of the probe that comes late
NAMES = (NAME, PEEK)

drawn = st.tuples(
    st.integers(1, 8) | st.just(NAME), st.integers(0, 9), st.integers(0, 7), st.integers(1, 3)
)
steps_of = st.lists(st.lists(drawn, max_size=5), min_size=6, max_size=24)


@dataclass
class Run:
    """A counter that decides after each message, as one that waits for no probe it does not know.
    In each round every probe says an interval, which ends `lag` ago for the late one."""

    shard: VoteShard
    messages: dict[tuple[int, int], Message] = field(default_factory=dict)
    answers: dict[tuple[int, int], list[bool]] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)

    def say(self, probe: int, end_ns: int, votes: list[Vote], watermark: int | None = None) -> None:
        sequence = self.sequences[probe] = self.sequences.get(probe, 0) + 1
        mark = max(end_ns, 0) if watermark is None else watermark
        encoded = encode(Message(0, probe, sequence, SETTINGS, mark, votes))[0]
        self.messages[probe, sequence] = decode(encoded)
        assert self.shard.put(encoded)
        before = self.shard.watermark
        for answer in map(read_answers, self.shard.decide()):
            self.answers[answer["probe"], answer["sequence"]] = answer["answers"].tolist()
        assert self.shard.watermark >= before

    def expected(self) -> dict[tuple[int, int], list[bool]]:
        return decide_all(ShardOracle(Z, WINDOW, ROTATE), self.messages.values())


def id_of(kind: int, name: int) -> int:
    """Names and addresses have no hash in common."""
    return name if kind in NAMES else 10 + name


def votes_at(begin_ns: int, steps: list[tuple[int, int, int, int]]) -> list[Vote]:
    return [
        Vote(kind, begin_ns + since, 0 if kind == CLIENT else HIGH | user, id_of(kind, name), HIGH)
        for kind, since, user, name in steps
        if begin_ns + since >= 0
    ]


def played(
    others: list[list[list[tuple[int, int, int, int]]]],
    late: list[list[tuple[int, int, int, int]]],
    lag: int,
    joins: int,
    *,
    ends: bool = True,
) -> Run:
    """joins: the round in which the late probe comes."""
    run = Run(VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_lag_ns=ADMITTED))
    rounds = max(map(len, (late, *others)))
    for number in range(rounds):
        begin = number * INTERVAL
        for probe, steps in enumerate(others):
            some = steps[number] if number < len(steps) else []
            run.say(probe, begin + INTERVAL, votes_at(begin, some))
        if number >= joins:
            some = late[number] if number < len(late) else []
            run.say(LATE, begin + INTERVAL - lag, votes_at(begin - lag, some))
    if ends:
        for probe in [*run.sequences]:
            run.say(probe, 0, [], END)
    return run


@given(
    st.lists(steps_of, min_size=1, max_size=3),
    steps_of,
    st.sampled_from([5, 20, 30, 45, 400]),
    st.integers(1, 9),
)
def test_it_is_answered_and_releases_nothing_that_one_table_would_not(
    others: list[list[list[tuple[int, int, int, int]]]],
    late: list[list[tuple[int, int, int, int]]],
    lag: int,
    joins: int,
) -> None:
    run = played(others, late, lag, joins)
    assert run.answers.keys() == run.messages.keys()
    expected = run.expected()
    for key, message in run.messages.items():
        for vote, yes, should in zip(
            message.votes, run.answers[key], expected.get(key, []), strict=True
        ):
            if vote.kind in NAMES:  # what is a client's is another matter, below
                assert should or not yes


@given(
    st.lists(steps_of, min_size=1, max_size=3), steps_of, st.sampled_from([1, 12, 25]),
    st.integers(1, 6),
)  # fmt: skip
def test_the_others_wait_for_one_that_is_little_behind(
    others: list[list[list[tuple[int, int, int, int]]]],
    late: list[list[tuple[int, int, int, int]]],
    lag: int,
    joins: int,
) -> None:
    """From a window after it came on, decisions on names are those of one table; from two epochs
    after it on, all are."""
    run = played(others, late, lag, joins)
    first = (joins + 1) * INTERVAL
    expected = run.expected()
    for key, message in run.messages.items():
        for vote, yes, should in zip(
            message.votes, run.answers[key], expected.get(key, []), strict=True
        ):
            if vote.t_ns >= first + (WINDOW if vote.kind in NAMES else 2 * ROTATE):
                assert yes == should


@pytest.mark.parametrize(
    ("lag", "is_waited_for", "late", "too_late"),
    [(5, True, 2, 0), (25, True, 4, 0), (30, False, 57, 0), (400, False, 20, 20)],
)
def test_what_becomes_of_its_votes(lag: int, is_waited_for: bool, late: int, too_late: int) -> None:
    """Within the window they count at their true time; beyond, they are suppressed and counted.
    late: those of its intervals whose times are decided already."""
    others, own = [[(NAME, 1, 1, 1)]] * 60, [[(NAME, 2, 2, 1)]] * 60
    run = played([others], own, lag, 3, ends=False)
    assert (LATE in run.shard.probes) == is_waited_for
    stats = run.shard.stats
    assert (stats["late"], stats["table"]["too_late"]) == (late, too_late)
    assert is_waited_for or stats["pending"] == 0


def test_late_votes_count_for_votes_that_come_after_them() -> None:
    """Two users are the other probe's, one the late one's: three share the name."""
    run = Run(VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_lag_ns=ADMITTED))
    run.say(1, 100, votes_at(95, [(NAME, 0, 1, 1), (NAME, 1, 2, 1)]))
    run.say(LATE, 70, votes_at(68, [(NAME, 0, 3, 1)]))
    run.say(1, 106, votes_at(101, [(NAME, 0, 1, 1)]))
    assert run.answers[1, 1] == [False, False]
    assert run.answers[LATE, 1] == [False]
    assert run.answers[1, 2] == [True]


def test_no_address_is_shown_while_a_probe_is_behind() -> None:
    """A client's mark of the late probe may come after the votes for the address."""
    run = Run(VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_lag_ns=ADMITTED))
    for end in range(300, 900, INTERVAL):
        run.say(1, end, votes_at(end - 5, [(4, 0, user, 1) for user in range(Z)]))
        run.say(LATE, end - 60, votes_at(end - 65, [(CLIENT, 0, 0, 1)]))
    shown = [key for key, answers in run.answers.items() if any(answers)]
    assert shown == [(1, 1)]  # before the late one came
