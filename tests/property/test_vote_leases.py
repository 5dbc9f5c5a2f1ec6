# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Leases: probes that release what their own users suffice for, and a counter that knows, decide as
brute force over the union of what all saw."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.votes import (
    END,
    LEASE,
    LEASE_UNIT_NS,
    NAME,
    ONLY,
    PEEK,
    Message,
    ShardOracle,
    Vote,
    decide_all,
    decode,
    encode,
)
from oracle.ztable import ZOracle

from zanon_net import ConfigError
from zanon_net._core import OwnVotes, VoteShard, read_answers, vote_settings

TICK = LEASE_UNIT_NS  # so short a lease is the shortest
Z, WINDOW = 2, 30 * TICK + 7
SETTINGS = vote_settings(Z, WINDOW)
HIGH = 1 << 60  # so that no hash's upper bits are 0

# An interval of ten ticks at one probe: peek or vote, time in it and a little after, user, name.
step = st.tuples(st.sampled_from([NAME] * 5 + [PEEK]), st.integers(0, 10), st.integers(0, 5),
                 st.integers(1, 2))  # fmt: skip
probes_of = st.lists(st.lists(st.lists(step, max_size=8), min_size=1, max_size=14), min_size=1,
                     max_size=3)  # fmt: skip

Step = tuple[int, int, int, int]


@dataclass
class Probe:
    """A probe: what it asked and sent, and what was decided for it."""

    number: int
    max_leases: int = 100
    sequence: int = 0
    votes: list[tuple[tuple[int, int, int, int], Vote]] = field(default_factory=list)
    decided: dict[int, bool] = field(default_factory=dict)
    asked: dict[int, list[int | Vote]] = field(default_factory=dict)
    sent: int = 0

    def __post_init__(self) -> None:
        self.own = OwnVotes(Z, WINDOW, max_leases=self.max_leases)

    def message(self, votes: Sequence[Vote], watermark_ns: int) -> bytes:
        """The message after some votes."""
        self.sequence += 1
        content: list[tuple[int | Vote, Vote]] = []
        for i, vote in enumerate(votes):
            n = len(self.votes)
            self.votes.append(((vote.t_ns, self.number, self.sequence, i), vote))
            released = (
                self.own.shares(vote.lo, vote.hi, vote.t_ns)
                if vote.kind == PEEK
                else self.own.observe(vote.t_ns, vote.user, vote.lo, vote.hi)
            )
            if released:
                self.decided[n] = True
            else:
                content.append((n, vote))
            content += self.told()
        self.own.advance(watermark_ns)
        content += self.told()
        self.sent += len(content)
        data, order = encode(
            Message(0, self.number, self.sequence, SETTINGS, watermark_ns, [v for _, v in content])
        )
        self.asked[self.sequence] = [content[i][0] for i in order]
        return data

    def told(self) -> list[tuple[int | Vote, Vote]]:
        """What it sends without a question."""
        columns = [column.tolist() for column in self.own.take_sent()]
        votes = [Vote(*row) for row in zip(*columns, strict=True)]
        assert all(vote.kind in (LEASE, ONLY) for vote in votes)
        return [(vote, vote) for vote in votes]

    def take(self, sequence: int, answers: Sequence[bool]) -> None:
        """The answers to a message."""
        for what, yes in zip(self.asked.pop(sequence), answers, strict=True):
            if isinstance(what, int):
                assert what not in self.decided
                self.decided[what] = yes
            elif what.kind == LEASE and not yes:
                self.own.refused(what.lo)


def votes_of(steps: Sequence[Step], interval: int) -> list[Vote]:
    """The votes of an interval; peeks are between votes."""
    return [
        Vote(kind, TICK * (10 * interval + since) + (kind == PEEK), HIGH | user, name, HIGH)
        for kind, since, user, name in steps
    ]


def expected(probes: Sequence[Probe]) -> list[dict[int, bool]]:
    """What brute force decides, in the order of decisions."""
    oracle = ZOracle(Z, WINDOW)
    answers: list[dict[int, bool]] = [{} for _ in probes]
    entries = [
        (place, n, vote, answers[p])
        for p, probe in enumerate(probes)
        for n, (place, vote) in enumerate(probe.votes)
    ]
    for _, n, vote, found in sorted(entries, key=lambda entry: entry[0]):
        if vote.kind == PEEK:
            found[n] = oracle.users(vote.t_ns, vote.lo) >= Z
        else:
            found[n] = oracle.observe(vote.t_ns, vote.user, vote.lo)
    return answers


def play(
    drawn: Sequence[Sequence[Sequence[Step]]], data: st.DataObject, probes: Sequence[Probe],
    shard: VoteShard,
) -> VoteShard:  # fmt: skip
    """Has the probes send, and the counter decide, in turns that are drawn."""
    for probe in probes:
        shard.put(probe.message([], 0))
    left = [list(enumerate(intervals)) for intervals in drawn]
    while any(left):
        p = data.draw(st.sampled_from([p for p, rest in enumerate(left) if rest]))
        interval, steps = left[p].pop(0)
        watermark = TICK * 10 * (interval + 1) if left[p] else END
        shard.put(probes[p].message(votes_of(steps, interval), watermark))
        match data.draw(st.integers(0, 5)):
            case 0:
                answer(shard, probes)
                shard = VoteShard.load(shard.dump())
            case 1 | 2 | 3:
                answer(shard, probes)
    answer(shard, probes)
    assert all(not probe.asked for probe in probes)
    shard.check()
    return shard


def answer(shard: VoteShard, probes: Sequence[Probe]) -> None:
    """Decides, and brings the answers to the probes."""
    for message in shard.decide():
        found = read_answers(message)
        probes[found["probe"]].take(found["sequence"], found["answers"].tolist())


@given(probes_of, st.integers(1, 3), st.data())
def test_no_decision_differs(
    drawn: list[list[list[Step]]], max_leases: int, data: st.DataObject
) -> None:
    """With votes out of order, restarts of the counter, and few leases at once, too."""
    probes = [Probe(p, max_leases) for p in range(len(drawn))]
    shard = play(drawn, data, probes, VoteShard(Z, WINDOW))
    assert [probe.decided for probe in probes] == expected(probes)
    assert shard.stats["leases_refused"] == 0 == shard.stats["late"]


@given(probes_of, st.data())
def test_refused_leases_release_nothing_else(
    drawn: list[list[list[Step]]], data: st.DataObject
) -> None:
    probes = [Probe(p) for p in range(len(drawn))]
    play(drawn, data, probes, VoteShard(Z, WINDOW, max_leases=1))
    for probe, right in zip(probes, expected(probes), strict=True):
        assert probe.decided.keys() == right.keys()
        assert all(right[n] for n, released in probe.decided.items() if released)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([NAME, PEEK, LEASE, LEASE, ONLY]),
                st.integers(0, 12),
                st.integers(0, 40),
                st.integers(1, 2),
            ),
            max_size=6,
        ),
        min_size=1,
        max_size=10,
    ),
    st.data(),
)
def test_a_counter_believes_any_lease(drawn: list[list[Step]], data: st.DataObject) -> None:
    """The shard against the oracle, with leases that are true and that are not."""
    shard, messages, answers = VoteShard(Z, WINDOW), [], {}
    for i, steps in enumerate(drawn):
        votes = [
            Vote(kind, TICK * (10 * i + at), n if kind == LEASE else HIGH | n, name, HIGH)
            for kind, at, n, name in steps
        ]
        watermark = 10 * TICK * (i + 1) if i + 1 < len(drawn) else END
        message = decode(encode(Message(0, 1, i + 1, SETTINGS, watermark, votes))[0])
        messages.append(message)
        shard.put(encode(message)[0])
        if data.draw(st.booleans()):
            for found in map(read_answers, shard.decide()):
                answers[1, found["sequence"]] = found["answers"].tolist()
            shard = VoteShard.load(shard.dump())
    for found in map(read_answers, shard.decide()):
        answers[1, found["sequence"]] = found["answers"].tolist()
    right = decide_all(ShardOracle(Z, WINDOW), messages)
    assert answers == {(1, m.sequence): right.get((1, m.sequence), []) for m in messages}


# ---- one by one ---------------------------------------------------------------------------------


def lease(t_ns: int, units: int, name: int = 1) -> Vote:
    return Vote(LEASE, t_ns, units & 0xFFFFFFFF | units >> 32 << 56, name, HIGH)


def asked(shard: VoteShard, sequence: int, watermark_ns: int, votes: Sequence[Vote]) -> list[bool]:
    """The answers to a message, in the order of its votes here."""
    settings = shard.settings
    data, order = encode(Message(0, 9, sequence, settings, watermark_ns, votes))
    shard.put(data)
    bits = read_answers(shard.decide()[0])["answers"].tolist()
    return [yes for _, yes in sorted(zip(order, bits, strict=True))]


def test_a_lease_lasts_from_its_start_to_its_end() -> None:
    shard = VoteShard(Z, WINDOW)
    times = [99, 100, 101, 120, 121]
    votes = [Vote(NAME, t * TICK, HIGH, 1, HIGH) for t in times]
    peeks = [Vote(PEEK, t * TICK + 1, 0, 1, HIGH) for t in times]
    others = [Vote(NAME, 110 * TICK, HIGH, 2, HIGH)]
    assert asked(shard, 1, 50 * TICK, []) == []
    answers = asked(shard, 2, 130 * TICK, [lease(100 * TICK, 20), *votes, *peeks, *others])
    assert answers[0]
    assert answers[1:6] == [False, False, True, True, False]  # the first at its start is before it
    assert answers[6:11] == [False, True, True, False, False]
    assert not answers[11]
    assert shard.stats["leases"] == 1
    assert shard.stats["leases_now"] == 0


def test_a_lease_that_reaches_too_far_is_refused() -> None:
    shard = VoteShard(Z, WINDOW)
    assert asked(shard, 1, 5, [lease(0, WINDOW // TICK + 1), lease(0, 1 << 39, 2)]) == [False] * 2
    assert asked(shard, 2, 10, [lease(5, WINDOW // TICK)]) == [True]
    assert shard.stats["leases_refused"] == 2
    assert shard.stats["leases_now"] == 1


def test_leases_end_at_the_cap_of_the_counter_and_of_z() -> None:
    shard = VoteShard(Z, WINDOW, max_leases=1)
    assert asked(shard, 1, TICK, [lease(0, 2), lease(0, 2, 2)]) == [True, False]
    assert asked(shard, 2, 4 * TICK, [lease(3 * TICK, 2, 2)]) == [True]
    many = VoteShard(65, WINDOW)
    assert asked(many, 1, TICK, [lease(0, 2)]) == [False]
    with pytest.raises(ConfigError, match="must be 1 to 64"):
        OwnVotes(65, WINDOW)


def test_what_a_probe_sends() -> None:
    """A lease at the z-th user, its renewal, then those users that nobody was told of."""
    own = OwnVotes(Z, 30 * TICK)

    def sent() -> list[tuple[int, ...]]:
        kind, t_ns, user, _lo, _hi = (column.tolist() for column in own.take_sent())
        return list(zip(kind, t_ns, user, strict=True))

    assert not own.observe(0, HIGH | 1, 7, HIGH)
    assert own.observe(10 * TICK, HIGH | 2, 7, HIGH)
    assert sent() == [(LEASE, 10 * TICK, 20)]
    assert own.observe(15 * TICK, HIGH | 3, 7, HIGH)
    assert own.shares(7, HIGH, 29 * TICK)
    assert not own.shares(8, HIGH, 29 * TICK)
    own.advance(30 * TICK)
    assert sent() == []
    assert own.observe(31 * TICK, HIGH | 4, 7, HIGH)
    assert sent() == [(LEASE, 30 * TICK, 10)]
    own.advance(45 * TICK)
    assert sent() == [(LEASE, 40 * TICK, 5)]
    own.advance(50 * TICK)
    assert sent() == [(ONLY, 31 * TICK, HIGH | 4)]
    own.advance(END)
    assert sent() == []


def test_after_a_refusal_a_probe_sends_its_votes() -> None:
    own = OwnVotes(Z, WINDOW)
    for user in range(3):
        own.observe(TICK * user, user, 7, HIGH)
    own.refused(7 | 1 << 63)
    own.refused(8)
    assert own.observe(TICK * 5, 5, 7, HIGH)
    kind, t_ns, _user, _lo, _hi = (column.tolist() for column in own.take_sent())
    assert kind == [LEASE, ONLY, ONLY, ONLY]
    assert sorted(t_ns[1:]) == [TICK, 2 * TICK, 5 * TICK]
