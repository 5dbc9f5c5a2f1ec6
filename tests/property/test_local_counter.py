# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shards of one run and their counter, over rings in memory."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engine import LOGS, run
from support.packets import MINUTE, SECOND, START, Frame, Udp, merged, user, visit
from support.probes import Portions, counted, lines, portions
from support.ring_probes import RingProbes

from zanon_net._core import (
    LocalCounter,
    VoteRing,
    VoteRings,
    VoteShard,
    VoteWriter,
    read_answers,
    vote_settings,
)
from zanon_net.errors import CapacityError, FormatError

SETTINGS = {"z": 3, "window_ns": MINUTE, "rotate_ns": MINUTE // 2}
LONGEST = (1 << 23) - 4


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    return path


def traffic(probes: int, seed: int) -> Portions:
    """Visits of 20 users to 12 servers. The flows of a user are at several probes.

    Each probe has a packet in each epoch. A probe without packets for more than two epochs
    withholds the servers of its flows, which one run over all packets does not.
    """
    chance = random.Random(seed)
    talks: list[tuple[int, list[Frame]]] = []
    for _ in range(60):
        where = min(int(chance.paretovariate(0.8)), 11)
        t_ns, server = START + chance.randrange(200 * SECOND), f"198.51.100.{where}"
        flow = visit(user(chance.randrange(20)), b"h%d.example" % where, t_ns, server)
        talks.append((chance.randrange(probes), flow))
    for n in range(probes):
        for t_ns in range(START, START + 220 * SECOND, 20 * SECOND):
            beat = Udp(f"10.7.251.{n}", f"198.51.100.{200 + n}", (9, 9), t_ns).send(b"beat")
            talks.append((n, beat.frames))
    return portions(talks, probes)


@given(
    seed=st.integers(0, 1 << 32),
    probes=st.integers(1, 4),
    batch=st.sampled_from([1, 16, 256]),
    leases=st.booleans(),
)
def test_shards_write_what_one_run_writes(
    key_file: Path, seed: int, probes: int, batch: int, leases: bool
) -> None:
    core: dict[str, Any] = SETTINGS | {"key_file": str(key_file), "count_leases": leases}
    parts = traffic(probes, seed)
    one = run(merged(parts), **core)
    outcomes, _probes = counted(parts, core, batch=batch, seed=seed, make=RingProbes)
    for output in LOGS:
        assert lines(outcomes, output) == lines([one], output), output
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.stats)
    assert counts["questions_unanswered"] == 0
    assert counts["released"] == one.stats["released"]


def shard() -> VoteShard:
    return VoteShard(2, MINUTE, max_pending=64)


def message(probe: int, sequence: int, t_ns: int, votes: int = 1) -> bytes:
    writer = VoteWriter(probe, 0, vote_settings(2, MINUTE), sequence=sequence)
    for n in range(votes):
        writer.add(1, t_ns, probe << 32 | n, 7, n)
    return writer.finish(t_ns + SECOND)


@given(st.lists(st.integers(1, 40), max_size=12), st.integers(0, 1 << 32))
def test_answers_come_in_the_order_of_the_messages(sizes: list[int], seed: int) -> None:
    chance = random.Random(seed)
    rings = VoteRings(1)
    end, other = VoteRing(rings, 0), LocalCounter(shard(), rings)
    for sequence, votes in enumerate(sizes, 1):
        assert end.put(message(1, sequence, sequence * SECOND, votes))
        if chance.random() < 0.5:
            other.step(1)
    answers = []
    more = True
    while more:
        more, _answered = other.step(1)
    while (answer := end.take()) is not None:
        answers.append(read_answers(answer)["sequence"])
    assert answers == list(range(1, len(sizes) + 1))


def test_a_full_ring_takes_nothing_until_the_counter_reads() -> None:
    rings = VoteRings(2)
    ends = [VoteRing(rings, n) for n in range(2)]
    counter = LocalCounter(shard(), rings)
    put = 0
    while ends[0].put(message(1, put + 1, (put + 1) * SECOND, 32)):
        put += 1
    assert put > 1000
    assert not ends[0].put(message(1, put + 1, (put + 1) * SECOND, 32))
    counter.step(2)
    assert counter.has_sent(0)
    assert not counter.has_sent(1)
    assert ends[0].put(message(1, put + 1, (put + 1) * SECOND, 32))


def test_messages_without_space_in_the_shard_wait_for_the_other_probe() -> None:
    """Nothing is lost, although the first probe is far ahead."""
    rings = VoteRings(2)
    ends = [VoteRing(rings, n) for n in range(2)]
    counter = LocalCounter(shard(), rings)
    assert ends[1].put(message(2, 1, SECOND, 1))
    for sequence in range(1, 21):
        assert ends[0].put(message(1, sequence, sequence * SECOND, 32))
    counter.step(2)
    for sequence in range(2, 21):
        assert ends[1].put(message(2, sequence, sequence * SECOND, 32))
    more, answers = True, ([], [])
    while more:
        more, _answered = counter.step(2)
        for place, end in zip(answers, ends, strict=True):
            while (answer := end.take()) is not None:
                place.append(read_answers(answer)["sequence"])
    assert answers[0] == answers[1] == list(range(1, 21))


def test_a_foreign_message_ends_the_run() -> None:
    rings = VoteRings(1)
    end, counter = VoteRing(rings, 0), LocalCounter(shard(), rings)
    assert end.put(b"no message")
    with pytest.raises(FormatError):
        counter.step(1)


@pytest.mark.parametrize("size", [0, LONGEST + 1])
def test_a_message_that_no_ring_can_contain(size: int) -> None:
    with pytest.raises(ValueError, match="empty or too long"):
        VoteRing(VoteRings(1), 0).put(bytes(size))


def test_more_votes_than_may_wait_end_the_run() -> None:
    rings = VoteRings(2)
    ends = [VoteRing(rings, n) for n in range(2)]
    counter = LocalCounter(shard(), rings)
    for sequence in range(1, 4):
        assert ends[0].put(message(1, sequence, sequence * SECOND, 32))
    more = True
    while more:
        more, _answered = counter.step(2)
    assert ends[1].put(message(2, 1, SECOND, 32))
    with pytest.raises(CapacityError):
        counter.step(2)
