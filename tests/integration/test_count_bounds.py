# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What counters and probes remember over months is bounded, and what has to go releases nothing."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.count_desk import Desk, Inbox
from support.counting import NAME, SECOND, START, Votes, hashed, key_file, put_file
from support.engine import Taker, feed, make_engine
from support.packets import MINUTE, merged, user, visit

from zanon_net._core import VOTE_KINDS, VoteWriter, read_answers, write_answers
from zanon_net.config.settings import Config
from zanon_net.count import admission, listener
from zanon_net.count import state as state_file
from zanon_net.count.client import connect
from zanon_net.count.client_base import CountClient
from zanon_net.count.commits import COUNTED, Commit, Entry
from zanon_net.count.counter import Counter
from zanon_net.count.folder_transport import FolderTransport
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import ENDED, Hello, Welcome
from zanon_net.count.listener import Listener
from zanon_net.count.service import CounterService, Outputs
from zanon_net.count.settings import CounterSettings
from zanon_net.count.state import StateFolder
from zanon_net.count.transport import Received
from zanon_net.count.url import read_place
from zanon_net.pipeline import counting
from zanon_net.pipeline.counting import Counting
from zanon_net.pipeline.probe_sessions import ProbeSessions
from zanon_net.pipeline.vote_sealing import NothingAttached

KNOWN = 4096  # probes, in a shard
RUNS = 6000
ADDR, CLIENT = VOTE_KINDS["addr"], VOTE_KINDS["client"]


def message(
    desk: Desk,
    probe: int,
    votes: Sequence[tuple[int, int, int]] = (),
    watermark_s: float = ENDED,
    sequence: int = 1,
) -> bytes:
    """votes: (kind, second, user); all are for one name or address."""
    writer = VoteWriter(probe, 0, desk.settings.number, sequence=sequence, max_votes=16)
    for kind, second, who in votes:
        number = 0 if kind == CLIENT else hashed(who)
        writer.add(kind, START + second * SECOND, number, hashed(-1), hashed(-2))
    mark = START + int(watermark_s * SECOND) if watermark_s != ENDED else ENDED
    return bytes(writer.finish(mark))


def runs_that_end(desk: Desk, first: int, count: int = RUNS) -> None:
    for at in range(first, first + count, 500):
        desk.put(*(message(desk, probe) for probe in range(at, min(at + 500, first + count))))


def runs_that_are_killed(desk: Desk, first: int) -> None:
    for at in range(first, first + RUNS, 500):
        desk.now_s += 100
        desk.put(*(message(desk, probe, (), desk.now_s) for probe in range(at, at + 500)))
        desk.wait(40)


def bits(answer: bytes) -> list[bool]:
    return [bool(bit) for bit in read_answers(answer)["answers"]]


# ---- probes --------------------------------------------------------------------------------------


def test_thousands_of_runs_of_probes_leave_nothing() -> None:
    desk = Desk()
    desk.put(message(desk, 1, [(NAME, 1, 10)], 2))
    runs_that_end(desk, 100, 1000)
    before = {name: len(part) for name, part in desk.service.counter.dump().items()}
    runs_that_end(desk, 10_000)
    facts = desk.service.facts()
    assert facts.probes == 1 + 1000 + RUNS
    assert desk.count("ended") == 1000 + RUNS
    assert desk.count("probes_forgotten") == facts.probes - KNOWN
    after = {name: len(part) for name, part in desk.service.counter.dump().items()}
    assert after["counter"] <= before["counter"] + 20
    assert after["shard-0"] <= before["shard-0"] + KNOWN * 64
    desk.put(message(desk, 1, [(NAME, 3, 11)], 4, sequence=2))  # is known still
    assert bits(desk.transport.answers[-1]) == [True]
    desk.wait(100)
    assert len(desk.service._admission.last_seen) == 0


def test_runs_that_were_killed_leave_nothing_either() -> None:
    desk = Desk()
    runs_that_are_killed(desk, 100)
    assert desk.count("probe_gone") == RUNS
    assert desk.count("probes_forgotten") == RUNS - KNOWN
    assert len(desk.service.counter.watermarks()) == 0
    assert len(desk.service._admission.last_seen) == 0


def test_what_a_forgotten_probe_sent_counts_no_user_twice() -> None:
    """z is 2: its one user, again under another number, is one user still."""
    desk = Desk()
    first = message(desk, 1, [(NAME, 1, 10)])
    desk.put(message(desk, 2, (), 0.5), first)
    runs_that_end(desk, 100)
    desk.put(first)
    assert desk.count("duplicates_resent") == 0  # it is not known any more
    assert desk.count("votes") == 2
    desk.put(message(desk, 2, [(NAME, 2, 10)], 3, sequence=2))
    assert desk.count("table_released") == 0
    assert desk.count("late") + desk.count("decided") >= 2
    desk.put(message(desk, 2, [(NAME, 3, 20)], 4, sequence=3))
    assert desk.count("table_released") == 1


def test_a_probe_that_was_forgotten_and_is_back_hides_what_it_may_have_told_of_clients() -> None:
    """It was cut off, and sends on; nobody here knows of its earlier messages."""
    desk = Desk(z=1)
    desk.put(message(desk, 1, (), 1))
    desk.wait(40)
    runs_that_are_killed(desk, 100)
    now_s = int(desk.now_s) + 10
    desk.now_s = now_s
    desk.put(message(desk, 1, [(NAME, now_s, 10)], now_s + 2, sequence=7))
    desk.put(message(desk, 2, [(ADDR, now_s + 1, 20)], now_s + 2))
    desk.now_s = later_s = now_s + 3 * 3600
    later = [(ADDR, later_s, 20)]
    desk.put(message(desk, 1, (), sequence=8), message(desk, 2, later, sequence=2))
    assert desk.count("client_addresses") == 1  # of two: the epochs after the next are whole
    assert desk.count("refused_gap") == 0


def test_a_probe_that_is_known_leaves_no_gap() -> None:
    desk = Desk()
    desk.put(message(desk, 1, (), 1))
    runs_that_end(desk, 100)
    desk.put(message(desk, 1, (), 2, sequence=3))
    assert desk.count("refused_gap") == 1


def test_the_end_of_a_probe_counts_once_its_last_shard_has_it() -> None:
    desk = Desk(shards=4)
    writers = [VoteWriter(1, shard, desk.settings.number, max_votes=4) for shard in range(4)]
    for writer in writers[:3]:
        desk.put(bytes(writer.finish(ENDED)))
    assert desk.count("ended") == 0
    desk.put(bytes(writers[3].finish(ENDED)))
    desk.put(*(bytes(writer.finish(ENDED)) for writer in writers))
    assert desk.count("ended") == 1
    assert desk.service.facts().probes == 1


# ---- users of a sender ---------------------------------------------------------------------------


def test_users_of_windows_that_are_over_are_forgotten() -> None:
    desk = Desk(max_users_per_probe=3)
    for number in range(300):
        desk.now_s = second = number * 1800
        desk.put(message(desk, 1000 + number, [(NAME, second, number)]))
        desk.put(message(desk, 1, (), second + 1, sequence=number + 1))
        desk.wait(0)
    assert len(desk.service._admission._users) <= 6
    assert desk.count("votes") == 300
    assert desk.count("uncounted") == desk.count("senders_over") == 0


def test_votes_whose_users_may_be_forgotten_do_not_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else a probe could cast as many again for the same window."""
    desk = Desk(max_users_per_probe=2)
    desk.put(message(desk, 1, (), 0), message(desk, 2, [(NAME, 10, 1), (NAME, 11, 2)], 12))
    desk.now_s = 3 * 3600
    desk.put(message(desk, 1, (), desk.now_s, sequence=2))
    desk.put(message(desk, 2, (), desk.now_s, sequence=2))
    desk.now_s += 1
    desk.wait(0)
    assert desk.service._admission._users == {}
    desk.put(message(desk, 2, [(NAME, 12, 3), (NAME, 13, 4)], desk.now_s, sequence=3))
    assert desk.count("uncounted") == 1
    assert "is more than a window late" in caplog.text


def test_more_senders_than_are_known_do_not_count(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(admission, "SENDERS_MAX", 2)
    desk = Desk(max_users_per_probe=9, z=1)
    desk.put(*(message(desk, probe, [(NAME, 1, probe)]) for probe in (1, 2, 3)))
    assert desk.count("senders_over") == desk.count("uncounted") == 1
    assert sorted(bits(answer) for answer in desk.transport.answers) == [[], [True], [True]]
    assert "is one of more than 2 with users" in caplog.text


# ---- answers and certificates --------------------------------------------------------------------


def served(monkeypatch: pytest.MonkeyPatch, **limits: int) -> Listener:
    for name, value in limits.items():
        monkeypatch.setattr(listener, name, value)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    transport = Listener(read_place("SOURCE", f"tcp://127.0.0.1:{port}"), Welcome(1, 7), None)
    transport.start("series")
    return transport


def test_answers_that_nobody_confirms_are_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transport = served(monkeypatch, RETAINED_BYTES=1000, RETAINED_MAX=50)
    try:
        for sequence in range(1, 101):
            transport.publish(Commit(0, []), [write_answers(0, 5, sequence, 7, [True] * 300)])
        kept = transport._retained[5]
        size = len(write_answers(0, 5, 1, 7, [True] * 300))
        assert len(kept) == 1000 // size
        assert transport.counts["answers_dropped"] == 100 - len(kept)
        newest = max(read_answers(answer)["sequence"] for answer in kept.messages())
        assert newest == 100
        transport.publish(Commit(0, []), [write_answers(0, 5, 100, 7, [True] * 300)])
        assert len(kept) == 1000 // size  # the same one
    finally:
        transport.close()


def test_probes_that_came_and_went_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = served(monkeypatch, OWNERS_MAX=3)
    try:
        for probe in range(1, 9):
            client = connect(f"tcp://127.0.0.1:{transport.port}", probe=probe, settings=7)
            assert client.welcome(30) is not None
            client.close()
            until = time.monotonic() + 30
            while transport._connections and time.monotonic() < until:
                time.sleep(0.01)
        assert len(transport._owners) == 3
        assert transport.counts["owners_forgotten"] == 5
        assert 8 in transport._owners
    finally:
        transport.close()


# ---- folders -------------------------------------------------------------------------------------


def test_the_folders_of_killed_probes_are_removed_and_a_client_makes_its_own_again(
    tmp_path: Path,
) -> None:
    votes = Votes(probes=1, shards=1, seconds=3)
    client = connect(f"file:{tmp_path}", probe=1, settings=votes.settings)
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=100)
    files = CounterFolder(tmp_path)
    for probe in range(2, 500):
        files.votes_of(probe).mkdir()
    for folder in files.votes.iterdir():
        os.utime(folder, (0, 0))
    transport.take(0)
    assert list(files.votes.iterdir()) == []
    client.send(votes.messages[1][0])
    assert len(transport.take(0)) == 1


def test_what_was_published_is_on_the_disk_before_a_snapshot_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut no journal makes it again."""
    votes = Votes(probes=1, shards=1, seconds=30, window_s=24)
    for probe, one in votes.in_turns():
        put_file(tmp_path, probe, one)
    settings = CounterSettings(votes.z, votes.window_ns, votes.window_ns)
    transport = FolderTransport(tmp_path, Welcome(1, votes.settings), max_age_s=1e9)
    key = bytes(32)
    state = StateFolder(tmp_path / "state", key, settings.for_state())
    service = CounterService(settings, transport, Outputs(state))
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_sync(fd: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    def note_replace(path: Path, target: Path) -> Path:
        done.append(f"appears {target}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    answers = CounterFolder(tmp_path).answers_of(1)
    for item in transport.take(0):
        service._snapshot_due_s = 0.0
        service.step([item])
        (answers / "link.zna").unlink(missing_ok=True)
        (answers / "99999999999999999999.zna").symlink_to("/dev/null")
        (answers / "99999999999999999999.zna").rename(answers / "link.zna")
    service._keep_state()
    state.close()
    snapshots = [at for at, what in enumerate(done) if what.endswith(".snapshot")]
    assert len(snapshots) >= 2
    on_disk: set[str] = set()
    published: set[str] = set()
    for what in done:
        name = what.removeprefix("appears ")
        if what.endswith(".snapshot"):
            assert published <= on_disk
            assert str(answers) in on_disk
        elif what.endswith(".zna") and what != name:
            published.add(name)
            on_disk.discard(str(answers))
        else:
            on_disk.add(name)
    assert len(published) == 30
    assert len([what for what in done if what in published]) == 30  # each once


def test_a_journal_is_bounded_while_nothing_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of snapshots does not come as long as an expected probe does not."""
    monkeypatch.setattr(state_file, "JOURNAL_BYTES", 3000)
    desk = Desk(expect_probes=2)
    folder = StateFolder(tmp_path / "state", bytes(32), desk.settings.for_state())
    service = CounterService(desk.settings, Inbox(), Outputs(folder))
    for sequence in range(1, 301):
        service._snapshot_due_s = 0.0
        vote = (NAME, sequence, sequence)
        service.step([Received(message(desk, 1, [vote], sequence + 1, sequence))])
    ((journal,), (snapshot,)) = (
        folder._folder.glob(f"*.{kind}") for kind in ("journal", "snapshot")
    )
    assert journal.stat().st_size < max(3000, snapshot.stat().st_size) + 400
    folder.close()
    again = StateFolder(tmp_path / "state", bytes(32), desk.settings.for_state())
    taken_up = CounterService(desk.settings, Inbox(), Outputs(again))
    assert taken_up.facts().counts["votes"] == 300
    again.close()


# ---- a probe whose counter is away ---------------------------------------------------------------


class Away(CountClient):
    """A counter that was there once. all: the clients of all numbers."""

    def __init__(self, probe: int, all: "list[Away]") -> None:
        super().__init__(Hello(probe, 7))
        self.sent = 0
        self.closed = False
        self.all = all
        all.append(self)

    is_connected = False

    def welcome(self, timeout: float) -> Welcome | None:
        del timeout
        return Welcome(1, 7)

    def send(self, message: bytes) -> None:
        assert not self.closed
        self._keep(message)
        self.sent += 1

    def as_another(self, probe: int) -> "Away":
        return Away(probe, self.all)

    def receive(self, timeout: float) -> list[bytes]:
        del timeout
        return []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def chosen(tmp_path: Path) -> dict[str, Any]:
    path = key_file(tmp_path)
    return {"z": 5, "window_ns": MINUTE, "rotate_ns": MINUTE // 2, "key_file": str(path)}


def test_marks_for_a_counter_that_stays_away_are_bounded(
    chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are given up again and again, each time under another number, and spoken of once."""
    monkeypatch.setattr(counting, "MUTE_BYTES", 2000)
    monkeypatch.setattr(counting, "SPEAK_BYTES", 1000)
    monkeypatch.setattr(counting, "ABANDON_BYTES", 15_000)
    monkeypatch.setattr(counting, "SIZE_S", 0.0)
    engine = make_engine(**chosen, count_probe="probe")
    engine.count_begin(1)
    numbers: list[Away] = []
    taker, client = Taker(engine), Away(engine.count_probe[0], numbers)
    config = Config(count_at="tcp://127.0.0.1:9", probe="p", key_file="x", z=5)
    probe = ProbeSessions(client, shards=1, patience_s=1.0)
    one = Counting(engine, probe, NothingAttached(), config, is_live=True)
    most = 0
    for epoch in range(120):
        t_ns = START + epoch * chosen["rotate_ns"]
        visits = [visit(user(n), b"a.example", t_ns + n * SECOND // 2) for n in range(20)]
        feed(engine, merged(visits))
        one.exchange()
        engine.flush()
        taker.take()
        most = max(most, probe.unanswered_bytes)
    assert len(numbers) > 2
    assert [client.closed for client in numbers] == [True] * (len(numbers) - 1) + [False]
    assert {client.hello.probe for client in numbers[1:]}.isdisjoint({numbers[0].hello.probe})
    assert 12_000 < most <= 15_000
    assert not any(client.unanswered_bytes for client in numbers[:-1])
    assert caplog.text.count("the counter has not answered for so long") == 1
    while engine.finish():
        taker.take()
    outcome = taker.outcome()
    assert outcome.stats["marks_dropped"] > 300
    assert len(outcome.flows) == 2400
    assert b"203.0.113" not in outcome.everything()
    assert not any(flow["server"] for flow in outcome.flows)


def test_a_number_that_takes_the_place_of_another_is_no_other_probe() -> None:
    """Nothing is decided before the probe that is still to come, and nothing is over before it."""
    settings = CounterSettings(z=2, window_ns=MINUTE, rotate_ns=MINUTE, expect_probes=2)
    counter = Counter(settings)

    def put(writer: VoteWriter, watermark_ns: int) -> int:
        entry = Entry(COUNTED, bytes(writer.finish(watermark_ns)))
        return len(counter.apply(Commit(counter.offset, [entry])).answers)

    first = VoteWriter(1, 0, settings.number)
    assert put(first, START + 60 * MINUTE) == 0
    last = VoteWriter(1, 0, settings.number, sequence=2, new_session=True)
    second = VoteWriter(2, 0, settings.number, new_session=True, marks_missing=True)
    assert put(second, START) == put(last, ENDED) == 0
    assert counter.probes_missing == 1
    put(VoteWriter(2, 0, settings.number, sequence=2), ENDED)
    assert not counter.is_done
    other = VoteWriter(3, 0, settings.number)
    assert put(other, START) > 0
    put(other, ENDED)
    assert counter.is_done


def test_a_counter_that_first_hears_the_end_of_a_number_counts_its_probe_once() -> None:
    settings = CounterSettings(z=2, window_ns=MINUTE, rotate_ns=MINUTE, expect_probes=1)
    counter = Counter(settings)
    last = VoteWriter(1, 0, settings.number, sequence=9, new_session=True)
    following = VoteWriter(2, 0, settings.number, new_session=True, marks_missing=True)
    for writer, watermark_ns in ((last, ENDED), (following, START)):
        entry = Entry(COUNTED, bytes(writer.finish(watermark_ns)))
        counter.apply(Commit(counter.offset, [entry]))
        assert counter.probes_missing == 0
