# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter and its probes over a shared folder: the decisions of one table, whatever is killed."""

import errno
import os
import random
import time
from collections.abc import Iterator
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

from zanon_net._core import read_answers, write_answers
from zanon_net.count.client import connect
from zanon_net.count.commits import Commit
from zanon_net.count.folder_transport import FolderTransport
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import Key, Refusal, Welcome, framed

KILLS = int(os.environ.get("ZANON_COUNT_KILLS", "5"))


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes()


def test_decides_as_one_table_does(votes: Votes, tmp_path: Path) -> None:
    for probe, message in votes.in_turns():
        put_file(tmp_path, probe, message)
    done = ("--expect-probes", 3, "--until-done")
    with counter(
        *(f"file:{tmp_path}", *votes.options, *done, "--json"),
        *("--releases", tmp_path / "released", "--metrics-file", tmp_path / "counter.prom"),
    ) as process:
        counts = counts_of(process)
    assert answers_in(tmp_path) == votes.answers
    assert releases_in(tmp_path / "released") == votes.releases
    assert counts["votes"] == counts["decided"] == sum(map(len, votes.answers.values()))
    assert counts["table_released"] == len(votes.releases)
    assert counts["late"] == 0
    metrics = (tmp_path / "counter.prom").read_text()
    assert f"zanon_counter_votes_total {counts['votes']}.0\n" in metrics
    assert 'zanon_probe_last_seen_seconds{probe="0000000000000003"}' in metrics
    assert 0.2 < len(votes.releases) / counts["votes"] < 0.8


def test_files_that_hold_no_votes_are_counted_and_end_nothing(votes: Votes, tmp_path: Path) -> None:
    for probe, message in votes.in_turns():
        put_file(tmp_path, probe, message)
    folder = CounterFolder(tmp_path).votes_of(1)
    for number, content in enumerate((b"", b"\xff" * 50, b"\0\0\0\0", b"\x10\0\0\0short")):
        (folder / f"{number}.znv").write_bytes(content)
    done = ("--expect-probes", 3, "--until-done", "--json")
    with counter(f"file:{tmp_path}", *votes.options, *done) as process:
        counts = counts_of(process)
    assert counts["refused_format"] == 3  # an empty file has no message
    assert answers_in(tmp_path) == votes.answers


def test_files_that_killed_probes_left_are_removed(tmp_path: Path) -> None:
    votes = Votes(probes=1, shards=1, seconds=3)
    for probe, message in votes.in_turns():
        put_file(tmp_path, probe, message)
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=100)
    received = transport.take(0)
    assert len(received) == 3
    transport.publish(Commit(0, []), [write_answers(0, 1, 1, votes.settings, [True])])
    put_file(tmp_path, 2, votes.messages[1][0])  # was not read yet
    files = CounterFolder(tmp_path)
    there = [*files.votes.rglob("*.znv"), *files.answers.rglob("*.zna")]
    for path in there[1:]:
        os.utime(path, (0, 0))
    transport._removal_due_s = 0  # a minute later
    assert len(transport.take(0)) == 1
    left = {*files.votes.rglob("*.znv"), *files.answers.rglob("*.zna")}
    assert left == {path for path in there if path == there[0] or path.parent.name == f"{2:016x}"}


def test_a_probe_cannot_vote_in_the_name_of_another(tmp_path: Path) -> None:
    votes = Votes(probes=2, shards=1, seconds=3)
    put_file(tmp_path, 1, votes.messages[1][0])
    put_file(tmp_path, 1, votes.messages[2][1])
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=100)
    assert [item.message for item in transport.take(0)] == [votes.messages[1][0], b""]


def test_only_files_of_some_size_are_read_and_no_links(tmp_path: Path) -> None:
    votes = Votes(probes=1, shards=1, seconds=3)
    put_file(tmp_path, 1, votes.messages[1][0])
    folder = CounterFolder(tmp_path).votes_of(1)
    outside = tmp_path / "outside"
    outside.write_bytes(framed(votes.messages[1][1]))
    (folder / "a.znv").symlink_to(outside)
    (folder / "b.znv").symlink_to("/dev/zero")
    os.mkfifo(folder / "c.znv")
    (folder / "d.znv").mkdir()
    with (folder / "e.znv").open("wb") as file:
        file.truncate(1 << 40)
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=100)
    assert [item.message for item in transport.take(0)] == [votes.messages[1][0], *[b""] * 5]


def test_a_probe_that_leaves_while_its_answers_are_written_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = FolderTransport(tmp_path, Welcome(1, 7), max_age_s=100)
    client = connect(f"file:{tmp_path}", probe=1, settings=7)
    mkdir, scandir = Path.mkdir, os.scandir

    def leave_after(path: Path, *arguments: object, **options: object) -> None:
        mkdir(path, *arguments, **options)  # type: ignore[arg-type]
        client.close()

    def vanish(path: str | Path) -> "Iterator[os.DirEntry[str]]":
        if Path(path).parent.name == "votes":
            raise FileNotFoundError(errno.ENOENT, "gone", str(path))
        return scandir(path)  # type: ignore[return-value]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", leave_after)
        transport.publish(Commit(0, []), [write_answers(0, 1, 1, 7, [True])])
    assert len(list((tmp_path / "answers").rglob("*.zna"))) == 1
    CounterFolder(tmp_path).votes_of(1).mkdir()
    monkeypatch.setattr(os, "scandir", vanish)
    assert transport.take(0) == []


def test_a_file_that_has_to_wait_is_not_read_all_the_time(tmp_path: Path) -> None:
    votes = Votes(probes=1, shards=1, seconds=3)
    put_file(tmp_path, 1, votes.messages[1][0])
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=100)
    (item,) = transport.take(0)
    transport.refuse(item, Refusal("later", is_final=False))
    assert transport.take(0) == []
    assert transport.take(5) == [item]


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
    votes = Votes(seconds=10 * (KILLS + 2), seed=random.randrange(1 << 30))
    rng = random.Random(votes.seed)
    print(f"seed {votes.seed}")
    turns, parts = votes.in_turns(), KILLS + 2
    key, released = key_file(tmp_path), tmp_path / "released"
    arguments = (
        *(f"file:{tmp_path}", *votes.options, "--expect-probes", 3, "--until-done", "--json"),
        *("--releases", released, "--state", tmp_path / "state", "--state-key-file", key),
    )

    def feed(part: int, until: float) -> None:
        """Puts a part of the votes there, until a time."""
        files = turns[part * len(turns) // parts : (part + 1) * len(turns) // parts]
        for number, (probe, message) in enumerate(files):
            put_file(tmp_path, probe, message)
            time.sleep(max(until - time.monotonic(), 0) / (len(files) - number) / 2)
        time.sleep(max(until - time.monotonic(), 0))

    began, process = time.monotonic(), start_counter(*arguments)
    feed(0, began)
    while not contents(tmp_path / "answers"):
        time.sleep(0.01)
    usual = time.monotonic() - began  # from the start of a process to its first commit
    written: dict[Path, bytes] = {}
    for part in range(1, parts):
        process.kill()
        process.communicate()
        now = contents(tmp_path / "answers", released)
        assert all(now[path] == content for path, content in written.items())
        written = now
        process = start_counter(*arguments)
        feed(part, time.monotonic() + usual * rng.uniform(0.3, 1.7))
        assert process.poll() is None or part == parts - 1
    counts_of(process)
    now = contents(tmp_path / "answers", released)
    assert all(now[path] == content for path, content in written.items())
    assert answers_in(tmp_path) == votes.answers
    assert releases_in(released) == votes.releases
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()}
    assert modes == {0o600}
