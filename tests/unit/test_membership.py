# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which probes of a shard are expected, present, gone, refused, abandoned or replaced."""

import pytest

from zanon_net import FormatError
from zanon_net._core import (
    COUNTING_KINDS,
    STANDINGS,
    VOTE_ENTRIES,
    VOTE_KINDS,
    VOTE_WATERMARK_END,
    VoteShard,
    VoteWatch,
    VoteWriter,
    read_answers,
    read_entry,
    vote_rules,
    vote_settings,
    write_entry,
)

Z, WINDOW = 2, 1000
SETTINGS = vote_settings(Z, WINDOW, WINDOW)
RULES = vote_rules()
TIMEOUT = 100


def shard(**more: int) -> VoteShard:
    return VoteShard(Z, WINDOW, rotate_ns=WINDOW, **more)


def message(session: int, sequence: int, watermark: int, **more: bool) -> bytes:
    return bytes(VoteWriter(session, 0, SETTINGS, sequence=sequence, **more).finish(watermark))


def standing(of: VoteShard, session: int, sequence: int, **more: int) -> str:
    asked = {"settings": SETTINGS, "rules": RULES, **more}
    names = {number: name for name, number in STANDINGS.items()}
    return names[of.standing(session, sequence, **asked)]


# ---- settings, kinds, entries --------------------------------------------------------------------


def test_the_digest_of_settings_is_that_of_the_document() -> None:
    ten_minutes, two_hours = 600 * 10**9, 7200 * 10**9
    assert vote_settings(5, ten_minutes, ten_minutes) == 7486472882212576782
    assert vote_settings(5, ten_minutes, None, two_hours) == 14542115773178922529


def test_the_kinds_that_count_a_user_are_those_that_the_table_observes() -> None:
    assert list(VOTE_KINDS.values()) == list(range(1, 11))
    assert {VOTE_KINDS[name] for name in ("name", "addr", "dns_addr", "only")} == {*COUNTING_KINDS}


def test_an_entry_is_read_as_it_was_written() -> None:
    counted = message(7, 1, 10)
    written = {
        "counted": (counted, 0),
        "uncounted": (counted, 0),
        "gone": (b"", 7),
        "all_present": (b"", 0),
    }
    for name, parts in written.items():
        entry = write_entry(VOTE_ENTRIES[name], *parts)
        assert read_entry(entry) == (VOTE_ENTRIES[name], *parts)
    assert write_entry(VOTE_ENTRIES["counted"], counted) == counted


@pytest.mark.parametrize(
    "entry", [b"", b"ZNV", b"ZNVQ", b"ZNVG1234567", b"ZNVG123456789", b"ZNVP0"]
)
def test_what_is_no_entry_is_refused(entry: bytes) -> None:
    with pytest.raises(FormatError):
        read_entry(entry)


# ---- standing of a message -----------------------------------------------------------------------


def test_a_message_has_a_standing_before_it_is_put() -> None:
    one = shard()
    assert standing(one, 7, 5) == "next"  # a session may begin in the middle
    one.put(message(7, 5, 10))
    assert [standing(one, 7, n) for n in (5, 6, 7)] == ["duplicate", "next", "gap"]
    assert [standing(one, 7, n, after=6) for n in (6, 7, 8)] == ["duplicate", "next", "gap"]
    assert standing(one, 8, 2, after=1) == "next"
    assert standing(one, 7, 6, settings=SETTINGS + 1) == "other_settings"
    assert standing(one, 7, 6, rules=vote_rules(user_prefix=(24, 56))) == "other_rules"
    one.refuse(7)
    one.abandon(8)
    assert (standing(one, 7, 6), standing(one, 8, 1)) == ("refused", "abandoned")


def test_the_refused_and_the_abandoned_are_as_few_as_the_sessions() -> None:
    one = shard(max_probes=3)
    for session in (1, 2, 3, 1, 4):
        one.refuse(session)
        one.abandon(session)
    assert [standing(one, session, 1) for session in range(1, 5)] == ["next", *3 * ["refused"]]
    assert one.membership == {"joined": 0, "known": 0, "refused": 3, "abandoned": 3}
    again = VoteShard.load(one.dump())  # who is refused hears it again
    assert [standing(again, session, 1) for session in range(1, 5)] == ["next", *3 * ["abandoned"]]


# ---- expected probes -----------------------------------------------------------------------------


@pytest.mark.parametrize("reloads", [False, True])
def test_a_session_that_replaces_another_is_no_further_probe(reloads: bool) -> None:
    one = shard()
    for session, replaces, missing in ((1, False, 1), (2, True, 1), (3, True, 1), (4, False, 0)):
        one.put(message(session, 1, 10, new_session=replaces, marks_missing=replaces))
        if reloads:
            one = VoteShard.load(one.dump())
        assert one.missing(2) == missing
        assert one.begin(2) == one.has_begun == (missing == 0)
    assert one.begin(9)  # for good
    assert one.missing(9) == 7


def test_sessions_are_probes_of_their_own_when_no_more_are_expected() -> None:
    one = shard()
    for session in (1, 2, 3):
        one.put(message(session, 1, 10, new_session=True, marks_missing=True))
    assert (one.missing(2), one.has_begun) == (2, False)
    one.expect_no_more(2)
    assert (one.missing(2), one.missing(3), one.has_begun) == (0, 1, True)


# ---- marks alone ---------------------------------------------------------------------------------


def test_of_a_message_that_is_not_counted_the_marks_of_clients_count() -> None:
    one, writer = shard(), VoteWriter(1, 0, SETTINGS)
    writer.add(VOTE_KINDS["client"], 5, 0, 9, 1 << 60)
    for user in (1, 2):
        writer.add(VOTE_KINDS["name"], 6, user, 8, 1 << 60)
        writer.add(VOTE_KINDS["addr"], 6, user, 9, 1 << 60)
    assert one.put(writer.finish(10), marks_only=True)
    assert [read_answers(answer)["answers"].tolist() for answer in one.decide()] == [[False]]
    for user in (3, 4):
        writer.add(VOTE_KINDS["name"], 12, user, 8, 1 << 60)
        writer.add(VOTE_KINDS["addr"], 12, user, 9, 1 << 60)
    one.put(writer.finish(20))
    assert sum(read_answers(one.decide()[0])["answers"]) == 1  # the second name, and no address


# ---- clocks --------------------------------------------------------------------------------------


def test_a_silent_session_is_gone_once_in_each_timeout() -> None:
    one, watch = shard(), VoteWatch(TIMEOUT, 0)
    for session in (1, 2, 3):
        one.put(message(session, 1, 10))
        watch.hear(session, 0, joins=True)
    one.put(message(3, 2, VOTE_WATERMARK_END))
    watch.hear(1, 60, joins=False)
    gone = []
    for now in (50, 99, 100, 150, 200, 250):
        watch.look([one], now)
        gone.append(watch.take_silent(now))
    assert gone == [[], [], [2], [], [1], [2]]  # the third has ended
    assert not watch.remove(3)


def test_a_session_whose_messages_are_held_elsewhere_can_be_silent_too() -> None:
    watch = VoteWatch(TIMEOUT, 0)
    for now, gone in ((10, []), (109, []), (110, [5])):
        watch.look([shard()], now, [5])
        watch.forget_unknown()
        assert watch.take_silent(now) == gone


def test_a_session_is_late_while_it_sends_and_stays_behind() -> None:
    shards, watch = [shard(), shard()], VoteWatch(TIMEOUT, 0)
    for one, lag in zip(shards, (20, 30), strict=True):
        one.put(message(1, 1, 500))
        one.decide()
        one.put(message(2, 1, 500 - lag))
    late = []
    for now in (0, 50, 99, 100):
        watch.hear(1, now, joins=False)
        if now == 0:
            watch.hear(2, now, joins=True)
        watch.look(shards, now)
        watch.note_late(now)
        late.append((watch.late(now, 0), watch.late(now, 50)))
    assert late == [({2: 30}, {}), ({2: 30}, {2: 30}), ({2: 30}, {2: 30}), ({}, {})]


def test_a_slow_clock_is_found_unless_all_are_slow() -> None:
    one, watch = shard(), VoteWatch(TIMEOUT, 0)
    one.put(message(1, 1, 900))
    one.put(message(2, 1, 300))
    found = []
    for now, limit in ((0, 500), (100, 500), (101, 500), (102, 950), (300, 500), (401, 500)):
        watch.look([one], now)
        found.append(watch.slow(limit, now))
    assert found == [[], [], [2], [], [], [2]]


def test_sessions_that_send_long_after_the_newest_joined_are_all_probes() -> None:
    one, watch = shard(), VoteWatch(TIMEOUT, 0)
    for session in (1, 2):
        one.put(message(session, 1, 10, new_session=True, marks_missing=True))
        watch.hear(session, session, joins=True)
    watch.hear(1, 102, joins=False)
    assert not watch.speakers
    watch.hear(1, 103, joins=False)
    assert watch.speakers == {1}
    assert [watch.all_present([one], expected) for expected in (1, 2)] == [True, False]
    one.put(message(2, 2, VOTE_WATERMARK_END))
    assert watch.all_present([one], 2)
    assert not watch.all_present([one, shard()], 2)  # in one shard it has not ended
    watch.hear(3, 104, joins=True)
    assert not watch.speakers


def test_a_session_whose_end_says_that_another_follows_is_no_probe_that_ended() -> None:
    """Its probe is still to come under its new session."""
    one, watch = shard(), VoteWatch(TIMEOUT, 0)
    one.put(message(1, 1, 10))
    one.put(message(1, 2, VOTE_WATERMARK_END, new_session=True))
    assert not watch.all_present([VoteShard.load(one.dump())], 1)
    one.put(message(2, 1, VOTE_WATERMARK_END))
    assert watch.all_present([VoteShard.load(one.dump())], 1)
