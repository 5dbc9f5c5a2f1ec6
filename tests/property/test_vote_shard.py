# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The counter of many probes against brute force over the union of what they saw."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.votes import (
    CLIENT,
    DNS_ADDR,
    END,
    NAME,
    Message,
    ShardOracle,
    Vote,
    attribute_of,
    decide_all,
    decode,
    encode,
)

from zanon_net import CapacityError, ConfigError, FormatError
from zanon_net._core import VoteShard, read_answers, vote_settings

Z, WINDOW, ROTATE = 3, 40, 100
SETTINGS = vote_settings(Z, WINDOW, ROTATE)
HIGH = 1 << 60  # so that no hash's upper bits are 0

# One interval of one probe: when its first vote is cast, and its votes as steps from there.
drawn = st.tuples(
    st.integers(1, 8) | st.just(NAME), st.integers(0, 12), st.integers(0, 7), st.integers(1, 3)
)
intervals = st.lists(st.lists(drawn, max_size=6), min_size=1, max_size=12)
probes_of = st.lists(intervals, min_size=1, max_size=4)


def messages_of(
    probe: int, intervals: Iterable[list[tuple[int, int, int, int]]], settings: int = SETTINGS
) -> list[Message]:
    """The messages of a probe, one an interval of ten; votes may lie a little in the next one."""
    messages = []
    for i, steps in enumerate(intervals):
        votes = [
            Vote(kind, 10 * i + since, 0 if kind == CLIENT else HIGH | user, name, HIGH)
            for kind, since, user, name in steps
        ]
        messages.append(decode(encode(Message(0, probe, i + 1, settings, 10 * (i + 1), votes))[0]))
    return [*messages, Message(0, probe, len(messages) + 1, settings, END, [])]


@dataclass
class Counter:
    """A shard, what was put, and what it answered."""

    shard: VoteShard

    def __post_init__(self) -> None:
        self.messages: dict[tuple[int, int], Message] = {}
        self.answers: dict[tuple[int, int], list[bool]] = {}
        self.released: list[tuple[int, ...]] = []

    def put(self, message: Message) -> None:
        data = encode(message)[0]
        assert self.shard.put(data)
        assert not self.shard.put(data)
        self.messages[message.probe, message.sequence] = decode(data)

    def decide(self, before_ns: int | None = None) -> None:
        for answer in self.shard.decide(before_ns):
            a = read_answers(answer)
            key = (a["probe"], a["sequence"])
            assert key not in self.answers
            assert len(a["answers"]) == len(self.messages[key].votes)
            self.answers[key] = a["answers"].tolist()
        columns = (column.tolist() for column in self.shard.releases())
        self.released += zip(*columns, strict=True)

    def restore(self) -> None:
        self.shard = VoteShard.load(self.shard.dump())
        self.shard.check()

    def released_votes(self) -> list[tuple[int, ...]]:
        """What releases() must give, by the answers."""
        found = []
        for key, answers in self.answers.items():
            for vote, yes in zip(self.messages[key].votes, answers, strict=True):
                if yes and vote.kind in (NAME, 4, DNS_ADDR):
                    found.append((vote.t_ns, vote.user, vote.lo, vote.hi))
        return sorted(found)


def new_shard(rotate_ns: int = ROTATE) -> Counter:
    return Counter(VoteShard(Z, WINDOW, rotate_ns=rotate_ns, keep_releases=True))


def interleaved(draws: st.DataObject, probes: list[list[Message]]) -> list[Message]:
    """Their messages in one order, each probe's in its own."""
    queues = [list(messages) for messages in probes if messages]
    merged = []
    while queues:
        queue = draws.draw(st.sampled_from(queues))
        merged.append(queue.pop(0))
        queues = [left for left in queues if left]
    return merged


@given(probes_of, st.sampled_from([ROTATE, 15]), st.data())
def test_in_order_it_is_one_table_over_all(
    drawn: list[list[list[tuple[int, int, int, int]]]], rotate_ns: int, data: st.DataObject
) -> None:
    """Delays, duplicates and restarts between, as long as watermarks are true and all are there."""
    settings = vote_settings(Z, WINDOW, rotate_ns)
    probes = [messages_of(p, intervals, settings) for p, intervals in enumerate(drawn)]
    counter = new_shard(rotate_ns)
    for messages in probes:
        counter.put(messages[0])  # all are known before the first decision
    rest = interleaved(data, [messages[1:] for messages in probes])
    for message in rest:
        counter.put(message)
        if data.draw(st.booleans()):
            counter.decide()
        if data.draw(st.integers(0, 9)) == 0:
            counter.decide()
            counter.restore()
    counter.decide()
    assert counter.shard.watermark == END
    expected = decide_all(ShardOracle(Z, WINDOW, rotate_ns), counter.messages.values())
    for key, message in counter.messages.items():
        assert counter.answers[key] == expected.get(key, [])
        assert len(counter.answers[key]) == len(message.votes)
    assert sorted(counter.released) == counter.released_votes()
    assert counter.shard.stats["late"] == 0 == counter.shard.stats["pending"]
    counter.shard.check()


@given(probes_of, st.data())
def test_whatever_comes_it_releases_no_more_than_there_was(
    drawn: list[list[list[tuple[int, int, int, int]]]], data: st.DataObject
) -> None:
    """Watermarks that lie, probes that leave and return, decisions at any time."""
    probes = []
    for p, intervals in enumerate(drawn):
        lies = data.draw(st.lists(st.integers(-30, 30), min_size=20, max_size=20))
        probes.append(
            [
                m
                if m.watermark_ns == END
                else replace(m, watermark_ns=max(0, m.watermark_ns + lie))
                for m, lie in zip(messages_of(p, intervals), lies, strict=False)
            ]
        )
    counter, decided = new_shard(), 0
    for message in interleaved(data, probes):
        counter.put(message)
        match data.draw(st.integers(0, 5)):
            case 0:
                counter.decide()
                assert counter.shard.watermark >= decided
                decided = 0 if counter.shard.watermark == END else counter.shard.watermark
            case 1:
                counter.decide(data.draw(st.integers(0, 150)))
            case 2:
                counter.shard.forget_probe(
                    data.draw(st.sampled_from([*counter.shard.known_probes]))
                )
            case 3:
                counter.decide()
                counter.restore()
    counter.decide(END)
    assert counter.shard.stats["pending"] == 0
    assert_nothing_beyond_the_union(counter)


def assert_nothing_beyond_the_union(counter: Counter) -> None:
    """A yes to a vote or a peek: z users over all probes share it."""
    users: dict[tuple[int, int], list[Vote]] = defaultdict(list)
    for message in counter.messages.values():
        for vote in message.votes:
            if vote.kind in (NAME, 4, DNS_ADDR):
                users[attribute_of(vote)].append(vote)
    assert counter.answers.keys() == counter.messages.keys()
    for key, message in counter.messages.items():
        for vote, yes in zip(message.votes, counter.answers[key], strict=True):
            assert not (yes and vote.kind == CLIENT)
            if not yes or vote.kind == 6:
                continue
            shared = {
                v.user
                for v in users[attribute_of(vote)]
                if vote.t_ns - WINDOW <= v.t_ns <= vote.t_ns
            }
            assert len(shared) >= Z
    assert sorted(counter.released) == counter.released_votes()


@given(st.lists(drawn, max_size=30), st.integers(0, 3), st.booleans())
def test_an_address_that_is_a_client_anywhere_is_never_shown(
    steps: list[tuple[int, int, int, int]], epoch: int, restore: bool
) -> None:
    """One probe marks all three addresses in an epoch; another's votes and checks for them in this
    and the next epoch have the answer no."""
    start = epoch * ROTATE
    marks = [Vote(CLIENT, start, 0, name, HIGH) for name in range(1, 4)]
    votes = [
        Vote(kind, start + 1 + 15 * since, HIGH | user, name, HIGH)
        for kind, since, user, name in steps
        if kind >= 4
    ]
    counter = new_shard()
    counter.put(Message(0, 1, 1, SETTINGS, 0, []))
    counter.put(Message(0, 2, 1, SETTINGS, END, marks))
    if restore:
        counter.decide(start + 1)
        counter.restore()
    counter.put(Message(0, 1, 2, SETTINGS, END, votes))
    counter.decide()
    yes = counter.answers[1, 2]
    placed = counter.messages[1, 2].votes
    for vote, answer in zip(placed, yes, strict=True):
        if vote.t_ns < start + 2 * ROTATE:
            assert not answer
    assert counter.shard.stats["client_addresses"] >= sum(
        vote.t_ns < start + 2 * ROTATE for vote in placed
    )


# ---- faults, one by one -------------------------------------------------------------------------


def votes_at(t_ns: int, n: int = Z, name: int = 1) -> list[Vote]:
    return [Vote(NAME, t_ns, HIGH | user, name, HIGH) for user in range(n)]


def plain(probe: int, sequence: int, watermark: int, votes: list[Vote] | None = None) -> bytes:
    return encode(Message(0, probe, sequence, SETTINGS, watermark, votes or []))[0]


def test_a_gap_is_refused_and_what_is_sent_again_is_taken() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    assert shard.put(plain(1, 1, 10))
    with pytest.raises(FormatError, match="came after 1: those between are missing"):
        shard.put(plain(1, 3, 30))
    assert shard.put(plain(1, 2, 20))
    assert not shard.put(plain(1, 1, 10))
    assert shard.put(plain(1, 3, 30))
    assert shard.probes == {1: (3, 30)}
    stats = shard.stats
    assert (stats["gaps"], stats["duplicates"], stats["messages"]) == (1, 1, 3)


def test_a_probe_that_stalls_holds_until_it_is_forgotten_and_comes_back() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    shard.put(plain(1, 1, 10))
    shard.put(plain(2, 1, 30, votes_at(15)))
    assert len(shard.decide()) == 1  # the empty message of probe 1
    assert shard.watermark == 10
    shard.forget_probe(1)
    assert shard.watermark == 30
    assert read_answers(shard.decide()[0])["answers"].tolist() == [False, False, True]
    shard.put(plain(1, 2, 12, votes_at(11, 1)))  # late, and not waited for
    assert shard.probes == {2: (1, 30)}
    assert shard.decide()
    assert shard.stats["late"] == 1 == shard.stats["probe_gone"]
    shard.put(plain(1, 3, 35))
    assert shard.probes == {1: (3, 35), 2: (1, 30)}
    with pytest.raises(KeyError):
        shard.forget_probe(3)


def test_votes_of_a_probe_an_hour_behind_harm_nobody() -> None:
    """They are too late, however many, and the table's clock stays."""
    shard = VoteShard(Z, WINDOW, rotate_ns=10**6)
    settings = vote_settings(Z, WINDOW, 10**6)

    def message(probe: int, sequence: int, watermark: int, votes: list[Vote]) -> bytes:
        return encode(Message(0, probe, sequence, settings, watermark, votes))[0]

    shard.put(message(1, 1, 100_000, votes_at(99_950, Z)))
    shard.decide()
    shard.put(message(2, 1, 1000, votes_at(900, 500)))
    assert not read_answers(shard.decide()[0])["answers"].any()
    assert shard.stats["table"]["too_late"] == 500
    shard.put(message(1, 2, 100_010, votes_at(100_001, Z)))
    assert read_answers(shard.decide()[0])["answers"].tolist() == [False, False, True]
    assert shard.stats["table"]["clock_jumps"] == 0


def test_a_watermark_or_a_vote_in_the_future_is_refused() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_ahead_ns=50)
    with pytest.raises(FormatError, match="set the probe's clock"):
        shard.put(plain(1, 1, 200), now_ns=100)
    shard.put(plain(1, 1, 100), now_ns=100)
    with pytest.raises(FormatError, match="set the probe's clock"):
        shard.put(plain(2, 1, 151))
    with pytest.raises(FormatError, match="set the probe's clock"):
        shard.put(plain(2, 1, 100, votes_at(151)))
    with pytest.raises(FormatError, match="set the probe's clock"):
        shard.put(plain(2, 1, END, votes_at(151)))
    assert shard.put(plain(2, 1, 150, votes_at(120)))
    assert shard.put(plain(1, 2, 180))
    assert shard.put(plain(2, 2, END))  # a probe that ends
    assert shard.stats["too_early"] == 4
    assert len(shard.decide()) == 4


def test_a_full_shard_refuses_all_but_the_probe_it_waits_for() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_pending=20)
    shard.put(plain(1, 1, 10))
    shard.put(plain(2, 1, 30, votes_at(20, 15)))
    for _ in range(2):
        with pytest.raises(CapacityError, match="votes wait for other probes"):
            shard.put(plain(2, 2, 40, votes_at(30, 15)))
    assert shard.put(plain(1, 2, 50, votes_at(20, 15)))
    assert len(shard.decide()) == 3
    assert shard.put(plain(2, 2, 40, votes_at(30, 15)))
    assert shard.stats["no_room"] == 2


def test_what_is_for_another_counter_is_refused() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    with pytest.raises(FormatError, match="another z, window or rotation"):
        shard.put(encode(Message(0, 1, 1, SETTINGS ^ 1, 0, []))[0])
    with pytest.raises(FormatError, match="for shard 1 came to shard 0"):
        shard.put(encode(Message(1, 1, 1, SETTINGS, 0, []))[0])
    with pytest.raises(FormatError, match="is cut"):
        shard.put(b"")
    assert shard.stats["malformed"] == 3
    assert shard.known_probes == {}


def addresses(t_ns: int, name: int = 1) -> list[Vote]:
    return [Vote(4, t_ns, HIGH | user, name, HIGH) for user in range(Z)]


@pytest.mark.parametrize("first", [1, 7])
def test_a_counter_without_its_state_shows_no_address_in_the_epochs_it_missed(first: int) -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    shown = []
    for i, t_ns in enumerate((50, 150, 250)):
        shard.put(plain(1, first + i, t_ns + 1, addresses(t_ns)))
        shown.append(read_answers(shard.decide()[0])["answers"].any())
    assert shown == [first == 1, first == 1, True]


def test_it_shows_none_either_when_the_first_message_is_the_last() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    shard.put(plain(1, 7, END, addresses(950)))
    assert not read_answers(shard.decide()[0])["answers"].any()


def test_while_a_probe_is_gone_no_address_of_its_epoch_is_shown() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    shard.put(plain(1, 1, 10))
    shard.put(plain(2, 1, 20))
    shard.forget_probe(2)
    shard.put(plain(1, 2, 30, addresses(25)))
    shard.decide()
    assert shard.stats["client_addresses"] == Z
    shard.put(plain(2, 2, 40))  # it is back, and nothing of it is missing
    shard.put(plain(1, 3, 45, addresses(40)))
    shard.put(plain(2, 3, 45))
    answers = {
        a["sequence"]: a["answers"] for a in map(read_answers, shard.decide()) if a["probe"] == 1
    }
    assert answers[3].tolist() == [False, False, True]
    assert shard.stats["client_addresses"] == Z


@pytest.mark.parametrize("has_been_there", [False, True])
def test_while_marks_of_a_probe_come_late_no_address_is_shown(has_been_there: bool) -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE)
    shard.put(plain(1, 1, 10))
    if has_been_there:
        shard.put(plain(2, 1, 10))
        shard.forget_probe(2)
    shard.put(plain(1, 2, 350))
    shard.decide()
    late = 1 + has_been_there
    shard.put(plain(2, late, 340))  # is alive, and behind what is decided
    shard.put(plain(1, 3, 370, addresses(365)))
    assert not read_answers(shard.decide()[-1])["answers"].any()
    shard.put(plain(2, late + 1, 372, [Vote(CLIENT, 360, 0, 1, HIGH)]))
    shard.put(plain(1, 4, 380, addresses(371)))
    shard.decide()
    shard.put(plain(2, late + 2, 790))
    shard.put(plain(1, 5, 790, addresses(780, name=2)))
    shown = {a["sequence"]: a["answers"] for a in map(read_answers, shard.decide())}
    assert shown[5].tolist() == [False, False, True]  # as it is there, and knows of no client


def test_probes_that_ended_or_fell_behind_leave_space_for_others() -> None:
    shard = VoteShard(Z, WINDOW, rotate_ns=ROTATE, max_probes=3)
    shard.put(plain(1, 1, 100))
    shard.decide()
    for probe in range(2, 9):
        shard.put(plain(probe, 1, END if probe % 2 else 50))
    shard.put(plain(9, 1, 120))
    shard.put(plain(10, 1, 120))
    assert sorted(shard.probes) == [1, 9, 10]
    with pytest.raises(CapacityError, match="no more may join"):
        shard.put(plain(11, 1, 120))


def test_dns_addresses_count_apart() -> None:
    shard = VoteShard(2, WINDOW, rotate_ns=ROTATE)
    votes = [Vote(4, 1, HIGH | 1, 1, HIGH), Vote(DNS_ADDR, 2, HIGH | 2, 1, HIGH)]
    votes += [Vote(DNS_ADDR, 3, HIGH | 3, 1, HIGH), Vote(8, 4, 0, 1, HIGH), Vote(7, 4, 0, 1, HIGH)]
    message = Message(0, 1, 1, vote_settings(2, WINDOW, ROTATE), END, votes)
    shard.put(encode(message)[0])
    placed = decode(encode(message)[0]).votes
    yes = read_answers(shard.decide()[0])["answers"].tolist()
    assert {(v.kind, v.t_ns) for v, a in zip(placed, yes, strict=True) if a} == {(5, 3), (8, 4)}


def test_a_dump_that_is_damaged_is_refused() -> None:
    counter = new_shard()
    counter.put(
        Message(0, 1, 1, SETTINGS, 10, [Vote(CLIENT, 1, 0, 5, HIGH), *votes_at(5), *votes_at(15)])
    )
    counter.shard.decide()
    with pytest.raises(ConfigError, match="take answers and releases"):
        counter.shard.dump()
    counter.shard.releases()
    data = counter.shard.dump()
    again = VoteShard.load(data)
    assert again.dump() == data
    assert again.stats == counter.shard.stats
    for at in range(len(data)):
        with pytest.raises(FormatError):
            VoteShard.load(data[:at])
        with pytest.raises(FormatError):
            VoteShard.load(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
    with pytest.raises(FormatError, match="is damaged"):
        VoteShard.load(data + b"\0")
