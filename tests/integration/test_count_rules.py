# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that do not agree on who is a user: a counter counts those that are like its first one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.counting import NAME, SECOND, START, counter, counts_of, hashed, key_file, put_file

from zanon_net._core import VoteWriter, read_answers, vote_rules
from zanon_net.count.client import connect
from zanon_net.count.frames import ENDED, read_refusal
from zanon_net.count.settings import CounterSettings
from zanon_net.errors import ZanonError

HOUR = 3600 * SECOND
SETTINGS = CounterSettings(z=2, window_ns=HOUR, rotate_ns=HOUR, shards=4)
OPTIONS = ("--z", 2, "--window", "1h", "--shards", 4)
OURS, OTHERS = vote_rules(), vote_rules(user_prefix=(24, 56), evidence="any")
REASON = (
    "its --user-prefix is 24,56 and not 32,56, --evidence is any and not established,"
    " as at the probes counted before: give all the same"
)


def message(probe: int, shard: int, rules: int, user: int, *, sequence: int = 1) -> bytes:
    """A vote for the name of a shard, and the end."""
    writer = VoteWriter(probe, shard, SETTINGS.number, rules=rules, sequence=sequence)
    writer.add(NAME, START + user * SECOND, hashed(user), hashed(-1), shard << 62)
    return bytes(writer.finish(ENDED))


def ask(place: str, probe: int, rules: int, user: int) -> list[list[bool]]:
    """The answers to a probe that votes in all shards. Raises ZanonError where it is refused."""
    client = connect(place, probe=probe, settings=SETTINGS.number)
    answers: dict[int, list[bool]] = {}
    try:
        assert client.welcome(30) is not None
        for shard in (2, 0, 1, 3):
            client.send(message(probe, shard, rules, user))
        until = time.monotonic() + 30
        while len(answers) < 4 and time.monotonic() < until:
            for answer in map(read_answers, client.receive(0.1)):
                answers[answer["shard"]] = answer["answers"].tolist()
    finally:
        client.close()
    return [answers[shard] for shard in range(4)]


@contextmanager
def counting(scheme: str, folder: Path, *more: object) -> Iterator[str]:
    """A counter, and its place."""
    place = f"file:{folder}" if scheme == "file" else "tcp://127.0.0.1:0"
    with counter(place, *OPTIONS, *more) as process:
        if scheme != "file":
            assert process.stderr is not None
            place = f"tcp://127.0.0.1:{process.stderr.readline().split()[-1]}"
        yield place


@pytest.mark.parametrize("scheme", ["tcp", "file"])
def test_a_probe_of_other_rules_is_told_so_and_counts_nowhere(scheme: str, tmp_path: Path) -> None:
    with counting(scheme, tmp_path) as place:
        assert ask(place, 1, OURS, 10) == [[False]] * 4
        with pytest.raises(ZanonError) as refused:
            ask(place, 2, OTHERS, 20)
        assert str(refused.value) == f"the counter refuses this probe: {REASON}"
        if scheme == "tcp":  # it may have been cut off before it heard why
            client = connect(place, probe=2, settings=SETTINGS.number)
            with pytest.raises(ZanonError, match="--user-prefix is 24,56"):
                client.welcome(30)
            client.close()
        assert ask(place, 3, OURS, 30) == [[True]] * 4


@pytest.mark.parametrize("keeps", [False, True])
def test_a_counter_that_starts_again_knows_the_rules_by_its_state(
    keeps: bool, tmp_path: Path
) -> None:
    """Without a state it knows no votes either; then the first probe says again."""
    state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
    options = state if keeps else ()
    with counting("file", tmp_path / "votes", *options) as place:
        assert ask(place, 1, OURS, 10) == [[False]] * 4
    with counting("file", tmp_path / "votes", *options) as place:
        if keeps:
            with pytest.raises(ZanonError, match="--user-prefix is 24,56 and not 32,56"):
                ask(place, 2, OTHERS, 20)
            assert ask(place, 3, OURS, 30) == [[True]] * 4
        else:
            assert ask(place, 2, OTHERS, 20) == [[False]] * 4
            with pytest.raises(ZanonError, match="--user-prefix is 32,56 and not 24,56"):
                ask(place, 3, OURS, 30)


def test_what_comes_at_once_is_told_apart_in_all_shards(tmp_path: Path) -> None:
    """The first message decides for shards that have none yet; refusals are counted as those of
    settings, whether a message before them was counted already or came with them."""
    probes = {1: OURS, 2: OTHERS}
    for shard in range(4):
        for probe, rules in probes.items():
            put_file(tmp_path, probe, message(probe, shard, rules, probe))
    done = ("--expect-probes", 1, "--until-done", "--probe-timeout", "1s", "--json")
    with counter(f"file:{tmp_path}", *OPTIONS, *done) as process:
        counts = counts_of(process)
    assert (counts["votes"], counts["refused_settings"], counts["probes"]) == (4, 4, 1)
    (path,) = (tmp_path / "answers" / f"{2:016x}").iterdir()
    assert read_refusal(path.read_bytes()[4:]).text == REASON
    left = {probe: len(list((tmp_path / "votes" / f"{probe:016x}").iterdir())) for probe in probes}
    assert left == {1: 4, 2: 0}  # no later counter takes a refused message for its first


def test_a_message_whose_votes_do_not_count_keeps_its_rules() -> None:
    shard = SETTINGS.new_shard(0)
    assert shard.put(message(1, 0, OTHERS, 1), marks_only=True)
    assert (shard.rules, shard.stats["votes"]) == (OTHERS, 0)
