# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Vote messages: published vectors, what the page says, and whatever is cut or flipped."""

import json
import random
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import votes as oracle
from oracle.votes import END, Message, Vote
from support.examples import each
from support.paths import ROOT

from zanon_net import CapacityError, ConfigError, FormatError
from zanon_net._core import (
    VoteWriter,
    read_answers,
    read_votes,
    vote_rules,
    vote_rules_difference,
    vote_settings,
    write_answers,
)

VECTORS = json.loads((ROOT / "tests/oracle/vote_messages.json").read_text(encoding="utf-8"))
FLAGS = 3 << 22  # in the rules of a message
WORDS = st.integers(0, 2**64 - 1)
TIMES = st.one_of(st.integers(0, 300), st.integers(0, END))
FEW = st.integers(0, 2) | WORDS  # so that attributes and users come again

votes = st.builds(Vote, st.integers(1, 10), TIMES, FEW, FEW, FEW)
OPTIONS = st.fixed_dictionaries({
    "user_prefix": st.tuples(st.integers(1, 32), st.integers(1, 128)),
    "evidence": st.sampled_from(["established", "any"]),
    "dns_votes": st.sampled_from(["own", "all", "no"]),
    "internal": st.booleans(),
    "key_check": st.integers(0, 1) | st.integers(0, (1 << 40) - 1),
})  # fmt: skip
messages = st.builds(
    Message, st.integers(0, 0xFFFF), WORDS, st.integers(1, 2**63), WORDS, TIMES,
    st.lists(votes, max_size=40),
    st.builds(lambda chosen, bits: vote_rules(**chosen) | bits << 22, OPTIONS, st.integers(0, 3)),
)  # fmt: skip


def written(message: Message) -> tuple[bytes, list[int]]:
    writer = VoteWriter(
        message.probe, message.shard, message.settings,
        rules=message.rules & ~FLAGS, sequence=message.sequence, max_votes=500,
        new_session=bool(message.rules >> 22 & 1), marks_missing=bool(message.rules >> 23 & 1),
    )  # fmt: skip
    for v in message.votes:
        writer.add(v.kind, v.t_ns, v.user, v.lo, v.hi)
    assert len(writer) == len(message.votes)
    return writer.finish(message.watermark_ns), writer.order.tolist()


def read(data: bytes) -> Message:
    m = read_votes(data)
    columns = [m[name].tolist() for name in ("kind", "t_ns", "user", "lo", "hi")]
    header = (m[name] for name in ("shard", "probe", "sequence", "settings", "watermark_ns"))
    word = m["rules"] | m["new_session"] << 22 | m["marks_missing"] << 23
    return Message(*header, [Vote(*row) for row in zip(*columns, strict=True)], word)


def of_vector(vector: dict[str, Any]) -> Message:
    return Message(
        vector["shard"], int(vector["probe"], 16), vector["sequence"], int(vector["settings"], 16),
        vector["watermark_ns"],
        [Vote(kind, t, *(int(word, 16) for word in words)) for kind, t, *words in vector["votes"]],
        int(vector["rules"], 16),
    )  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector: dict[str, Any]) -> None:
    message, data = of_vector(vector), bytes.fromhex(vector["message"])
    assert written(message) == (data, vector["order"]) == oracle.encode(message)
    assert read(data) == oracle.decode(data)
    answers = [answer == "1" for answer in vector["answers"]]
    answer = write_answers(
        message.shard, message.probe, message.sequence, message.settings, answers
    )
    assert answer.hex() == vector["answer_message"]
    assert read_answers(answer)["answers"].tolist() == answers


@pytest.mark.source
def test_the_page_has_the_first_vectors() -> None:
    page = (ROOT / "docs/reference/vote-messages.md").read_text(encoding="utf-8").replace("\n", "")
    for vector in VECTORS[:2]:
        assert vector["message"] in page
        assert vector["answer_message"] in page


@given(messages)
def test_writer_and_reader_are_the_oracles(message: Message) -> None:
    data, order = written(message)
    assert (data, order) == oracle.encode(message)
    again = read(data)
    assert again == oracle.decode(data)
    assert again.votes == [message.votes[i].kept() for i in order]
    assert again.watermark_ns == message.watermark_ns


@given(messages, st.data())
def test_answers_are_the_oracles(message: Message, data: st.DataObject) -> None:
    n = len(message.votes)
    answers = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    start = (message.shard, message.probe, message.sequence, message.settings)
    written = write_answers(*start, answers)
    assert written == oracle.encode_answers(message, answers)
    again = read_answers(written)
    assert (again["shard"], again["probe"], again["sequence"], again["settings"]) == start
    assert again["answers"].tolist() == answers


def test_columns_are_votes_one_by_one() -> None:
    rng = np.random.default_rng(3)
    t_ns = rng.integers(0, 10**9, 400)
    user, lo, hi = (rng.integers(0, 50, 400, dtype=np.uint64) for _ in range(3))
    columns, singly = VoteWriter(1, 0, 2, max_votes=400), VoteWriter(1, 0, 2, max_votes=400)
    for _ in range(2):  # a writer begins anew after a message
        columns.add_columns(1, t_ns, user, lo, hi)
        for row in zip(t_ns.tolist(), user.tolist(), lo.tolist(), hi.tolist(), strict=True):
            singly.add(1, *row)
        with pytest.raises(CapacityError, match="takes 400 votes"):
            columns.add_columns(1, t_ns[:1], user[:1], lo[:1], hi[:1])
        with pytest.raises(CapacityError, match="takes 400 votes"):
            singly.add(1, 0, 0, 0, 0)
        assert columns.finish(5) == singly.finish(5)
    assert columns.sequence == 3


def test_groups_stay_whole_while_a_message_grows() -> None:
    """The writer doubles its slots at 257, 513 and 1,025 groups. All groups of a residue class
    start at one slot, before and after each growth."""
    attributes = [(i % 7, i // 7 << 16) for i in range(1100)]
    votes = [
        Vote(1, 5, user, low + high, low)
        for user in range(2)
        for (low, high) in attributes
    ]  # fmt: skip
    writer = VoteWriter(7, 1, 2, max_votes=len(votes))
    for sequence in (1, 2):  # the second message needs slots that the first emptied
        for vote in votes:
            writer.add(vote.kind, vote.t_ns, vote.user, vote.lo, vote.hi)
        message = Message(1, 7, sequence, 2, 9, votes)
        assert writer.finish(9) == oracle.encode(message)[0]


# ---- what is refused ----------------------------------------------------------------------------


def small() -> list[bytes]:
    both = [vector["message"] for vector in VECTORS[:3]]
    both += [vector["answer_message"] for vector in VECTORS]
    return [bytes.fromhex(text) for text in both]


def refuse(data: bytes) -> None:
    for reader in (read_votes, read_answers):
        with pytest.raises(FormatError):
            reader(data)


@pytest.mark.parametrize("data", small(), ids=range(len(small())))
def test_every_cut_and_every_flip_is_refused(data: bytes) -> None:
    for n in range(len(data)):
        refuse(data[:n])
        refuse(data[n + 1 :])
        refuse(data[:n] + data[n + 1 :])
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        refuse(bytes(changed))
    refuse(data + b"\0")
    refuse(data + data)


@given(messages, st.data())
def test_any_cut_or_flip_is_refused(message: Message, data: st.DataObject) -> None:
    whole = written(message)[0]
    at = data.draw(st.integers(0, len(whole) - 1))
    refuse(whole[:at])
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    refuse(bytes(changed))


def sealed(body: bytes) -> bytes:
    return body + oracle.checksum(body)


def with_field(at: int, form: str, value: int) -> bytes:
    """The second vector's message with another number in its header."""
    body = bytearray(bytes.fromhex(VECTORS[1]["message"])[:-8])
    struct.pack_into(form, body, at, value)
    return sealed(bytes(body))


@each(
    "at, form, value",
    [
        (4, "<B", 2),  # version
        (5, "<B", 1),  # flags
        (16, "<Q", 0),  # sequence
        (32, "<q", -1),  # watermark
        (40, "<q", -1),  # base time
        (40, "<q", END),  # with a time after it
        (48, "<I", 1),  # groups
        (48, "<I", 3),
        (52, "<I", 2),  # votes
        (52, "<I", 4),
        (52, "<I", 2**32 - 1),
        (56, "<B", 0),  # width of times
        (56, "<B", 1),
        (56, "<B", 9),
        (57, "<B", 0),  # rules: IPv4 users,
        (57, "<B", 33),
        (58, "<B", 0),  # IPv6 users,
        (58, "<B", 129),
        (59, "<B", 0x06),  # names in DNS,
        (59, "<B", 0x10),  # bits that have no meaning
        (83, "<B", 0x00),  # no count
        (84, "<B", 0),  # counts
        (84, "<B", 1),
        (84, "<B", 3),
        (84, "<H", 0x0082),  # 2 in two bytes
    ],
)
def test_a_message_that_contradicts_itself_is_refused(at: int, form: str, value: int) -> None:
    with pytest.raises(FormatError, match=r"vote message (is damaged|has version)"):
        read_votes(with_field(at, form, value))


def test_answers_that_contradict_themselves_are_refused() -> None:
    body = bytes.fromhex(VECTORS[1]["answer_message"])[:-8]
    for changed in (body + b"\0", body[:-1] + b"\x08", body[:32] + b"\x09" + body[33:]):
        with pytest.raises(FormatError, match="answer message is damaged"):
            read_answers(sealed(changed))


def test_behind_the_checksum_nothing_but_votes_comes_out() -> None:
    dice = random.Random(5)
    bodies = [data[:-8] for data in small()[:3]]
    accepted = 0
    for _ in range(4000):
        body = bytearray(dice.choice(bodies))
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(6, len(body))
            body[at] = dice.choice((0, 1, 127, 128, 255, dice.getrandbits(8)))
        data = sealed(bytes(body))
        try:
            message = read(data)
        except FormatError:
            continue
        accepted += 1
        assert message == oracle.decode(data)
        assert all(1 <= vote.kind <= 10 and 0 <= vote.t_ns <= END for vote in message.votes)
    assert accepted > 100


def test_what_a_writer_refuses() -> None:
    writer = VoteWriter(0, 0, 0, max_votes=2)
    for kind in (0, 11):
        with pytest.raises(ConfigError, match="kind"):
            writer.add(kind, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="t_ns"):
        writer.add(1, -1, 0, 0, 0)
    for bad in (
        {"shard": 65536},
        {"rules": 0},
        {"rules": 1 << 64},
        {"sequence": 0},
        {"max_votes": 0},
        {"max_votes": 2**20 + 1},
    ):
        with pytest.raises(ConfigError):
            VoteWriter(**{"probe": 0, "shard": 0, "settings": 0} | bad)
    with pytest.raises(ValueError, match="vote_rules"):
        VoteWriter(0, 0, 0, rules=32)


def test_settings_tell_every_number_apart() -> None:
    numbers = {vote_settings(*args) for args in ((5, 10), (5, 11), (6, 10), (5, 10, 1), (10, 5))}
    assert len(numbers) == 5
    assert vote_settings(5, 10) == vote_settings(5, 10, None) == vote_settings(5, 10, 0)


@given(OPTIONS, OPTIONS)
def test_rules_tell_apart_whatever_differs(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (vote_rules(**one) == vote_rules(**other)) == (one == other)
    text = vote_rules_difference(vote_rules(**one), vote_rules(**other))
    for name in one:
        said = "--key-file holds" if name == "key_check" else f"--{name.replace('_', '-')} is"
        assert (said in text) == (one[name] != other[name])
    assert text.endswith("as at the probes counted before: give all the same")
    assert "no kind" in vote_rules_difference(0, vote_rules(**one))


def test_without_options_rules_are_those_of_a_run() -> None:
    assert vote_rules() == oracle.RULES
    data = VoteWriter(1, 2, 3).finish(4)
    assert data[57:60] + data[64:69] == bytes([32, 56, *[0] * 6])
