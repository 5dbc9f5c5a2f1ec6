# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that do not agree on who is a user: a shard counts those that are like its first one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.votes import CLIENT, END, NAME, Message, ShardOracle, Vote, decide_all, decode, encode

from zanon_net import FormatError
from zanon_net._core import VoteShard, read_answers, vote_rules, vote_settings

Z, WINDOW = 3, 40
SETTINGS = vote_settings(Z, WINDOW)
RULES = [
    vote_rules(),
    vote_rules(user_prefix=(24, 56)),
    vote_rules(user_prefix=(32, 64), evidence="any"),
    vote_rules(dns_votes="no", internal=True),
]
HIGH = 1 << 60

drawn = st.tuples(st.integers(1, 10), st.integers(0, 12), st.integers(0, 7), st.integers(1, 3))
intervals = st.lists(st.lists(drawn, max_size=5), min_size=1, max_size=6)
probes_of = st.lists(
    st.tuples(st.sampled_from(RULES) | st.just(RULES[0]), intervals), min_size=1, max_size=5
)


def vote_of(kind: int, t_ns: int, user: int, name: int) -> Vote:
    return Vote(kind, t_ns, 0 if kind == CLIENT else HIGH | user, name, HIGH)


def messages_of(probe: int, rules: int, intervals: list[list[tuple[int, ...]]]) -> list[Message]:
    """The messages of a probe, one an interval of ten."""
    votes = [
        [vote_of(kind, 10 * i + since, user, name) for kind, since, user, name in steps]
        for i, steps in enumerate(intervals)
    ]
    messages = [
        Message(0, probe, i + 1, SETTINGS, 10 * (i + 1), some, rules)
        for i, some in enumerate(votes)
    ]
    return [*messages, Message(0, probe, len(messages) + 1, SETTINGS, END, [], rules)]


@given(probes_of, st.data())
def test_only_probes_like_the_first_are_counted(
    drawn: list[tuple[int, list[list[tuple[int, ...]]]]], data: st.DataObject
) -> None:
    """The answers are those to the probes of the first one's rules alone, over restarts, too."""
    queues = [messages_of(probe, *one) for probe, one in enumerate(drawn)]
    shard, taken, refused = VoteShard(Z, WINDOW), [], 0
    while queues := [queue for queue in queues if queue]:
        message = data.draw(st.sampled_from(queues)).pop(0)
        encoded = encode(message)[0]
        if shard.rules in (None, message.rules):
            assert shard.put(encoded)
            taken.append(decode(encoded))
        else:
            with pytest.raises(FormatError, match="as at the probes counted before"):
                shard.put(encoded)
            refused += 1
        assert shard.rules == taken[0].rules
        if data.draw(st.integers(0, 4)) == 0:
            shard = VoteShard.load(shard.dump())
    found = {(a["probe"], a["sequence"]): a["answers"].tolist() for a in answers_of(shard)}
    expected = decide_all(ShardOracle(Z, WINDOW), taken)
    assert found == {(m.probe, m.sequence): expected.get((m.probe, m.sequence), []) for m in taken}
    assert shard.stats["malformed"] == refused
    other = Message(0, 99, 1, SETTINGS, END, [], next(r for r in RULES if r != shard.rules))
    with pytest.raises(FormatError, match="--"):  # all have ended, and its rules stay
        shard.put(encode(other)[0])


def answers_of(shard: VoteShard) -> list[dict[str, object]]:
    return [read_answers(answer) for answer in shard.decide()]


def test_one_user_whom_probes_cut_differently_counts_once() -> None:
    """Each of two users is seen at both probes, which make two of each: four would be released."""
    shard = VoteShard(Z, WINDOW)
    whole = [Vote(NAME, 5, HIGH | user, 1, HIGH) for user in (1, 2)]
    cut = [Vote(NAME, 6, HIGH | user, 1, HIGH) for user in (3, 4)]
    first = Message(0, 1, 1, SETTINGS, END, whole, vote_rules())
    shard.put(encode(first)[0])
    second = replace(first, probe=2, votes=cut, rules=vote_rules(user_prefix=(24, 56)))
    with pytest.raises(FormatError, match=r"its --user-prefix is 24,56 and not 32,56, as at"):
        shard.put(encode(second)[0])
    assert not any(answer["answers"].any() for answer in answers_of(shard))
    assert list(shard.known_probes) == [1]


def test_the_rules_of_a_message_that_is_not_taken_are_not_the_shards() -> None:
    shard = VoteShard(Z, WINDOW, max_ahead_ns=50)
    early = Message(0, 1, 1, SETTINGS, 500, [], RULES[1])
    with pytest.raises(FormatError, match="set the probe's clock"):
        shard.put(encode(early)[0], now_ns=100)
    with pytest.raises(FormatError, match="another z"):
        shard.put(encode(replace(early, settings=1))[0])
    assert shard.rules is None
    assert shard.put(encode(replace(early, probe=2, watermark_ns=100, rules=RULES[0]))[0])
    assert shard.rules == RULES[0]


def test_rules_can_be_set_before_a_message_comes() -> None:
    shard = VoteShard(Z, WINDOW)
    shard.rules = RULES[3]
    shard.rules = RULES[3]
    assert VoteShard.load(shard.dump()).rules == RULES[3]
    for rules in (RULES[0], 32, 1 << 24):
        with pytest.raises(ValueError, match="rules"):
            shard.rules = rules
    with pytest.raises(FormatError, match="--dns-votes is own and not no, --internal is left out"):
        shard.put(encode(Message(0, 1, 1, SETTINGS, 1, []))[0])
