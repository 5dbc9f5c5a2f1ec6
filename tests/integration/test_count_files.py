# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter and its probes over a shared folder: the decisions of one table, whatever is killed."""

import os
import random
import threading
import time
from pathlib import Path

import pytest
from support.counting import (
    Votes,
    answers_in,
    counter,
    counts_of,
    key_file,
    put_file,
    releases_in,
    start_counter,
)

from zanon_net._core import read_answers
from zanon_net.count.client import connect
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import Key

KILLS = int(os.environ.get("ZANON_COUNT_KILLS", "5"))


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes()


@pytest.mark.parametrize("expected", [3, 0])
def test_decides_as_one_table_does(votes: Votes, tmp_path: Path, expected: int) -> None:
    for probe, message in votes.in_turns():
        put_file(tmp_path, probe, message)
    done = ("--expect-probes", expected or 3, "--until-done")
    with counter(
        f"file:{tmp_path}", *votes.options, *done, "--json", "--releases", tmp_path / "released"
    ) as process:
        counts = counts_of(process)
    assert answers_in(tmp_path) == votes.answers
    assert releases_in(tmp_path / "released") == votes.releases
    assert counts["votes"] == counts["decided"] == sum(map(len, votes.answers.values()))
    assert counts["table_released"] == len(votes.releases)
    assert counts["late"] == 0
    assert 0.2 < len(votes.releases) / counts["votes"] < 0.8


def test_a_client_has_each_answer_once_and_removes_the_files(votes: Votes, tmp_path: Path) -> None:
    with counter(f"file:{tmp_path}", *votes.options, "--expect-probes", 3) as process:
        clients = {
            probe: connect(f"file:{tmp_path}", probe=probe, settings=votes.settings)
            for probe in votes.messages
        }
        for client in clients.values():
            welcome = client.welcome(30)
            assert welcome is not None
            assert welcome.shards == votes.shards
        for probe, message in votes.in_turns():
            clients[probe].send(message)
        found = {}
        until = time.monotonic() + 60
        while len(found) < len(votes.answers) and time.monotonic() < until:
            for client in clients.values():
                for message in client.receive(0.05):
                    read = read_answers(message)
                    place = read["probe"], Key(read["shard"], read["sequence"])
                    assert place not in found
                    found[place] = read["answers"].tolist()
        assert found == votes.answers
        assert not any(client.unanswered_bytes for client in clients.values())
        files = CounterFolder(tmp_path)
        left = [*files.votes.rglob("*.*"), *files.answers.rglob("*.*")]
        assert left == []
        process.terminate()
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "votes in" in err


def contents(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*.[zn][np]?")}


def test_kills_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    """Whatever was written before a kill has the same bytes afterwards, under the same name."""
    seconds = 15 * KILLS
    votes = Votes(seconds=seconds, window_s=20, seed=random.randrange(1 << 30))
    print(f"seed {votes.seed}")
    key, released = key_file(tmp_path), tmp_path / "released"
    finished = threading.Event()

    def feed() -> None:
        """For a little longer than all the kills take."""
        for number, (probe, message) in enumerate(votes.in_turns()):
            put_file(tmp_path, probe, message)
            if number % (votes.probes * votes.shards) == 0:
                time.sleep(1.2 * KILLS / seconds)
        finished.set()

    arguments = (f"file:{tmp_path}", *votes.options, "--expect-probes", 3, "--until-done", "--json")
    arguments += ("--releases", released, "--state", tmp_path / "state", "--state-key-file", key)
    feeder = threading.Thread(target=feed)
    feeder.start()
    written: dict[Path, bytes] = {}
    rng = random.Random(votes.seed)
    kills = 0
    for _kill in range(KILLS):
        process = start_counter(*arguments)
        time.sleep(rng.uniform(0.3, 1.8))
        kills += process.poll() is None
        process.kill()
        process.communicate()
        now = contents(tmp_path / "answers", released)
        assert all(now[path] == content for path, content in written.items())
        written = now
    feeder.join()
    assert finished.is_set()
    with counter(*arguments) as process:
        counts_of(process)
    now = contents(tmp_path / "answers", released)
    assert all(now[path] == content for path, content in written.items())
    assert answers_in(tmp_path) == votes.answers
    assert releases_in(released) == votes.releases
    assert kills >= KILLS * 0.6
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
    assert modes == {0o600}
