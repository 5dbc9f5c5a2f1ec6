# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that are silent, behind, ahead or lie, and states that cannot be used.

None of it releases what the probes' users do not share, and each has a count and a line.
"""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.cli import COMMAND, ENVIRONMENT, LIMITING
from support.count_desk import Desk
from support.counting import (
    NAME,
    SECOND,
    START,
    Votes,
    answers_in,
    counter,
    counts_of,
    hashed,
    key_file,
    put_file,
)

from zanon_net._core import VOTE_KINDS, VoteWriter, vote_rules
from zanon_net.count.frames import ENDED
from zanon_net.count.sealed_files import SealedWriter, read_records
from zanon_net.errors import OutputError

Logged = pytest.LogCaptureFixture


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def pair() -> Desk:
    """One that waits for two probes at the start."""
    return Desk(expect_probes=2)


def test_a_silent_probe_leaves_the_minimum_and_its_votes_are_late(
    pair: Desk, caplog: Logged
) -> None:
    pair.send(1, {1: [10]}, 5)
    pair.send(2, {1: [20]}, 2)
    pair.send(1, {6: [11]}, 50)
    assert pair.answers == {(1, 1): [False], (2, 1): [True]}
    pair.now_s = 25
    pair.send(1, {}, 60)
    pair.wait(10)
    assert pair.answers[1, 2] == [True]
    assert pair.count("probe_gone") == 1
    assert "probe 0000000000000002 is gone: it is silent for 30 s" in caplog.text
    pair.send(2, {3: [30, 31]}, 4)  # of before what is decided
    pair.wait(0)
    assert pair.count("late") == 2
    pair.send(2, {70: [32]}, 80)  # has caught up, and counts again
    pair.send(1, {75: [33]}, 80)
    assert pair.answers[2, 3] == [True]


def test_a_probe_whose_number_is_replaced_leaves_at_once(pair: Desk) -> None:
    pair.send(1, {1: [10]}, 5)
    pair.send(2, {1: [20]}, 2)
    pair.transport.take_lost = lambda: [2]  # type: ignore[method-assign]
    pair.wait(0)
    assert pair.answers == {(1, 1): [False], (2, 1): [True]}
    assert pair.count("probe_gone") == 1


def test_a_probe_that_has_ended_is_not_waited_for(pair: Desk) -> None:
    pair.send(1, {1: [10]}, ENDED)
    pair.send(2, {2: [20]}, 3)
    assert pair.answers == {(1, 1): [False], (2, 1): [True]}
    pair.wait(100)
    assert pair.count("probe_gone") == 1  # probe 2, which has not
    assert pair.count("ended") == 1


def test_a_clock_an_hour_ahead_is_refused(desk: Desk, caplog: Logged) -> None:
    desk.send(1, {1: [10]}, 2)
    wrong = desk.message(2, {3601: [20]}, 3602)
    desk.put(wrong)
    assert [refusal.is_final for refusal in desk.transport.refusals] == [False]
    assert desk.count("refused_future") == 1
    assert "its clock is 3602s ahead of the counter's" in caplog.text
    assert "set both clocks by NTP" in caplog.text
    desk.send(1, {4: [11]}, 5)
    assert desk.answers == {(1, 1): [False], (1, 2): [True]}  # nobody waits for it


def test_votes_of_the_future_under_a_harmless_watermark_are_refused(desk: Desk) -> None:
    desk.put(desk.message(2, {0: [20], 7000: [21]}, 1))
    assert desk.count("refused_future") == 1
    assert desk.count("votes") == 0


def test_a_clock_an_hour_behind_holds_nobody_up(pair: Desk, caplog: Logged) -> None:
    pair.now_s = 7200
    pair.send(1, {7199: [10]}, 7200)
    pair.send(2, {3599: [20, 21]}, 3600)
    for second in range(7201, 7240):
        pair.now_s = second
        pair.send(1, {}, second)
        pair.send(2, {}, second - 3600)
    assert pair.count("probe_gone") == 1
    assert "its clock is behind by more than --max-skew" in caplog.text
    assert pair.answers[1, 1] == [True]  # user 20 was at 3599: within the hour before 7199
    assert caplog.text.count("is gone") == 1
    pair.send(2, {3640: [30, 31, 32]}, 3641)
    pair.send(1, {7240: [11]}, 7241)
    assert pair.count("late") == 3


def test_captures_are_of_the_past_and_no_probe_is_behind(pair: Desk) -> None:
    pair.now_s = 100_000
    pair.send(1, {7199: [10]}, 7200)
    pair.send(2, {1: [20]}, 3)
    for _second in range(50):
        pair.now_s += 1
        pair.send(1, {}, 7200)
        pair.send(2, {}, 4)
    assert pair.count("probe_gone") == 0


def test_what_was_sent_already_counts_once(desk: Desk) -> None:
    first = desk.send(1, {1: [10]}, 2)
    desk.put(first, first)
    desk.put(first)
    assert desk.count("duplicates_resent") == 3
    assert desk.count("votes") == 1
    assert len(desk.transport.answers) == 1


def test_a_gap_is_refused_until_it_is_closed(desk: Desk) -> None:
    messages = [desk.message(1, {second: [second]}, second + 1) for second in range(3)]
    desk.put(messages[0])
    desk.put(messages[2])
    assert desk.count("refused_gap") == 1
    assert not desk.transport.refusals[0].is_final
    desk.put(messages[1], messages[2])
    assert desk.count("votes") == 3


def test_damage_and_other_settings_are_refused(desk: Desk) -> None:
    good = desk.message(1, {1: [10]}, 2)
    for at in range(0, len(good), 7):
        bad = bytearray(good)
        bad[at] ^= 0x20
        desk.put(bytes(bad))
    desk.put(b"", b"ZNVM", good[:-1])
    other = VoteWriter(1, 0, desk.settings.number + 1)
    desk.put(other.finish(START))
    assert desk.count("votes") == 0
    assert desk.count("refused_settings") >= 1
    assert desk.count("refused_format") >= 3
    desk.put(good)
    assert desk.count("votes") == 1


def test_a_probe_of_other_rules_is_refused_for_good(desk: Desk, caplog: Logged) -> None:
    first = desk.send(1, {1: [10]}, 2)
    other = VoteWriter(2, 0, desk.settings.number, rules=vote_rules(dns_votes="no"))
    other.add(NAME, START + SECOND, hashed(20), hashed(-1), hashed(-2))
    message = bytes(other.finish(START + 2 * SECOND))
    desk.put(message)
    assert [refusal.is_final for refusal in desk.transport.refusals] == [True]
    assert "--dns-votes is no and not own" in desk.transport.refusals[0].text
    assert caplog.text.count("a probe's votes are refused: its --dns-votes is no and not own") == 1
    assert desk.count("refused_settings") == 1
    assert desk.service.counter.offset == 1  # the journal has nothing of it
    for at in (57, 58, 59):  # rules that there are none of
        bad = bytearray(first)
        bad[at] = 0xFF
        desk.put(bytes(bad))
    assert desk.count("refused_settings") == 4
    desk.send(1, {3: [11]}, 4)
    assert desk.answers == {(1, 1): [False], (1, 2): [True]}


def test_a_probe_that_comes_late_and_stays_behind_is_spoken_of(desk: Desk, caplog: Logged) -> None:
    for second in range(60, 100):
        desk.now_s = second
        desk.send(1, {second: [10]}, second)
        desk.send(2, {second - 30: [20 + second]}, second - 30)
    assert desk.count("late") == 40
    assert desk.service.facts().probe_late_s == {f"{1:016x}": 0.0, f"{2:016x}": 30.0}
    assert caplog.text.count("probe 0000000000000002 stays 30s behind what is decided") == 1
    assert "set its clock by NTP, or begin with --expect-probes" in caplog.text
    assert desk.count("probe_gone") == 0
    assert desk.answers[1, 39] == [True]  # what the late one sent counts from then on
    desk.send(2, {}, 99)  # its clock is set
    desk.wait(1)
    assert desk.service.facts().probe_late_s == {f"{1:016x}": 0.0, f"{2:016x}": 0.0}


def test_the_others_wait_for_one_that_is_a_second_behind(desk: Desk, caplog: Logged) -> None:
    for second in range(60, 100):
        desk.now_s = second
        desk.send(1, {second: [10]}, second)
        desk.send(2, {second - 2: [20]}, second - 1)
    assert desk.count("late") == 2  # of before it was there
    assert desk.answers[1, 35] == [True]
    assert "behind" not in caplog.text


def test_a_shard_that_is_not_there_is_refused(desk: Desk) -> None:
    desk.put(VoteWriter(1, 1, desk.settings.number).finish(START))
    assert "the counter has 1" in desk.transport.refusals[0].text


def test_more_users_than_a_probe_may_have_do_not_count(caplog: Logged) -> None:
    desk = Desk(max_users_per_probe=3)
    desk.send(1, {1: [10, 11]}, 2)
    desk.send(1, {2: [12, 13, 14]}, 3)  # would be five
    desk.send(1, {3: [11, 12]}, 4)
    assert desk.answers == {(1, 1): [False, True], (1, 2): [], (1, 3): [True, True]}
    assert desk.count("uncounted") == 1
    assert "has more users than --max-users-per-probe" in caplog.text
    assert desk.count("votes") == 4


def test_clients_count_where_users_do_not() -> None:
    """No other probe shows an address that was a client at one over its quota."""
    desk = Desk(z=1, max_users_per_probe=1)
    over = VoteWriter(1, 0, desk.settings.number)
    over.add(VOTE_KINDS["client"], START, 0, 7, 7)
    for user in range(3):
        over.add(NAME, START, hashed(user), hashed(-1), hashed(-2))
    other = VoteWriter(2, 0, desk.settings.number)
    other.add(VOTE_KINDS["addr"], START + SECOND, hashed(9), 7, 7)
    desk.put(bytes(other.finish(START + 2 * SECOND)), bytes(over.finish(START + 2 * SECOND)))
    assert desk.count("uncounted") == 1
    assert desk.answers[2, 1] == [False]


def test_a_probe_far_ahead_has_to_wait() -> None:
    desk = Desk(max_pending=10, expect_probes=2)
    desk.send(2, {0: [1]}, 1)
    messages = [desk.message(1, {second: [second] * 4}, second + 1) for second in range(2, 9)]
    for message in messages:
        desk.put(message)
    refused = len(desk.transport.refusals)
    assert refused
    assert not any(refusal.is_final for refusal in desk.transport.refusals)
    desk.send(2, {}, 100)
    desk.put(*messages)
    assert desk.count("votes") == 1 + 4 * 7


def test_answers_that_made_too_little_space_for_a_message_are_not_lost() -> None:
    desk = Desk(max_pending=10, expect_probes=2)
    desk.send(2, {}, 1)
    desk.send(1, {2: [10] * 4}, 3)
    desk.send(1, {3: [11] * 4}, 4)
    desk.put(desk.message(2, {}, 2.5), desk.message(1, {4: [12] * 9}, 5))
    assert len(desk.transport.refusals) == 1
    assert desk.answers == {(2, 1): [], (2, 2): [], (1, 1): [False] * 4}


def test_what_comes_behind_a_message_that_has_to_wait_has_to_wait_too() -> None:
    desk = Desk(max_pending=10, expect_probes=2)
    desk.send(2, {}, 1)
    messages = [desk.message(1, {second: [second] * 4}, second + 1) for second in range(2, 9)]
    desk.put(*messages)
    assert len(desk.transport.refusals) > 1
    assert not any(refusal.is_final for refusal in desk.transport.refusals)
    desk.send(2, {}, 100)
    desk.put(*messages)
    assert desk.count("votes") == 4 * 7


def test_a_probe_that_says_twice_that_it_ends_has_ended_once(pair: Desk) -> None:
    pair.send(1, {}, ENDED)
    pair.send(1, {}, ENDED)
    assert pair.count("ended") == 1
    assert not pair.service.counter.is_done


def test_a_probe_that_goes_on_under_another_number_has_not_ended(pair: Desk) -> None:
    pair.send(1, {1: [10]}, 50)
    pair.send(3, {2: [11]}, 3)  # its clock was set back
    pair.send(1, {}, ENDED)
    pair.send(2, {}, ENDED)
    assert pair.count("ended") == 2
    assert not pair.service.is_done
    assert pair.answers[3, 1] == [True]
    pair.send(3, {}, ENDED)
    assert pair.service.is_done


def test_a_number_that_is_left_alone_holds_nobody_up_for_long(pair: Desk) -> None:
    pair.send(1, {}, 1)
    pair.put(pair.message(1, {4000: [10]}, 4001))  # is refused
    pair.send(3, {2: [11]}, 3)
    pair.send(2, {1: [12]}, 5)
    assert (3, 1) not in pair.answers
    pair.send(3, {}, ENDED)
    pair.send(2, {}, ENDED)
    pair.wait(31)
    assert pair.answers[3, 1] == [True]
    assert pair.count("probe_gone") == 1
    assert pair.service.is_done


def test_nothing_is_decided_before_the_expected_probes_have_come() -> None:
    desk = Desk(expect_probes=2)
    desk.send(1, {1: [10, 11]}, 5)
    desk.send(1, {2: [12]}, 6)
    assert desk.answers == {}
    assert desk.service.facts().probes_missing == 1
    desk.send(2, {1: [20]}, 6)
    assert desk.answers == {(1, 1): [False, True], (1, 2): [True], (2, 1): [True]}


# ---- states --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes(probes=2, shards=1, seconds=20)


class Kept:
    """A counter's folder whose state has counted half of the votes."""

    def __init__(self, folder: Path, votes: Votes) -> None:
        self.folder, self.votes = folder, votes
        self.state, self.key = folder / "state", key_file(folder)
        turns = votes.in_turns()
        for probe, message in turns[: len(turns) // 2]:
            put_file(folder, probe, message)
        with counter(*self.arguments, "--json") as process:
            self._wait_for_answers()
            process.terminate()
            counts_of(process)
        for probe, message in turns[len(turns) // 2 :]:
            put_file(folder, probe, message)

    def _wait_for_answers(self) -> None:
        for _try in range(300):
            if len(list((self.folder / "answers").glob("*/*.zna"))) >= 2:
                return
            time.sleep(0.05)
        pytest.fail("no answer came")

    @property
    def arguments(self) -> list[object]:
        return [
            *(f"file:{self.folder}", *self.votes.options, "--expect-probes", 2),
            *("--state", self.state, "--state-key-file", self.key),
        ]

    def fails(self, *arguments: object) -> str:
        """The line of a counter that cannot take the state up."""
        with counter(*(arguments or self.arguments)) as process:
            out, err = process.communicate(timeout=30)
        assert (out, process.returncode) == ("", 1), err
        assert err.count("\n") == 1
        return err

    def completes(self) -> None:
        with counter(*self.arguments, "--until-done") as process:
            _out, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        assert answers_in(self.folder) == self.votes.answers


@pytest.fixture
def kept(tmp_path: Path, votes: Votes) -> Kept:
    return Kept(tmp_path, votes)


def test_a_state_that_cannot_be_used_is_named_and_stays(kept: Kept) -> None:
    (snapshot,) = kept.state.glob("*.snapshot")
    content = snapshot.read_bytes()
    assert "with --z 5; give that" in kept.fails(*kept.arguments, "--z", 6)
    other = kept.folder / "other"
    other.mkdir()
    line = kept.fails(*kept.arguments, "--state-key-file", key_file(other))
    assert "was written with another key" in line
    version = bytearray(content)
    version[4] = 1
    snapshot.write_bytes(version)
    assert "is of version 1 of the counter's state" in kept.fails()
    damaged = bytearray(content)
    damaged[-1] ^= 1
    snapshot.write_bytes(damaged)
    assert "is damaged" in kept.fails()
    snapshot.write_bytes(content[:-40])
    assert "is damaged" in kept.fails()
    snapshot.write_bytes(content)
    with counter(*kept.arguments):
        time.sleep(1.5)
        assert "another counter uses" in kept.fails()
    kept.completes()


def test_nothing_in_the_state_can_be_read(kept: Kept) -> None:
    secrets = [hashed(number).to_bytes(8, "little") for number in range(3000)]
    for path in kept.state.iterdir():
        content = path.read_bytes()
        assert not any(secret in content for secret in secrets)


def test_no_nonce_seals_two_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was cut by a full disk is on the disk all the same."""
    nonces = []
    with SealedWriter(tmp_path / "file", bytes(32)) as file:
        encrypt, write = file._cipher.encrypt, os.write

        class Cipher:
            def encrypt(self, nonce: bytes, *arguments: object) -> bytes:
                nonces.append(nonce)
                return encrypt(nonce, *arguments)  # type: ignore[arg-type]

        def fill(_fd: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "full")

        file._cipher = Cipher()  # type: ignore[assignment]
        file.append(b"first")
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fill)
            with pytest.raises(OutputError):
                file.append(b"second")
        file.append(b"third")
        assert os.write is write
    assert len(set(nonces)) == 3


def test_a_large_commit_is_read_again(tmp_path: Path) -> None:
    """As large as what a broker hands out at once can be."""
    size = (1 << 27) + 1
    with SealedWriter(tmp_path / "file", bytes(32)) as file:
        file.append(b"begin")
        file.append(bytes(size))
        file.append(b"end")
        file.publish()
    records = read_records(tmp_path / "file", bytes(32), may_be_torn=True)
    assert [len(record) for record in records] == [5, size, 3]


def test_a_full_disk_at_the_state_ends_it_with_nothing_published(kept: Kept) -> None:
    """A limit on files stands for the disk: the same error, but for its number."""
    before = {path: path.read_bytes() for path in (kept.folder / "answers").rglob("*.zna")}
    limit = max(path.stat().st_size for path in kept.state.iterdir()) + 200
    command = [sys.executable, "-c", LIMITING, str(limit), *COMMAND, "count"]
    process = subprocess.run(
        [*command, *map(str, kept.arguments)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == 1
    assert process.stderr.count("\n") == 1
    assert "cannot write" in process.stderr
    assert "the limit on file sizes is reached" in process.stderr
    after = {path: path.read_bytes() for path in (kept.folder / "answers").rglob("*.zna")}
    assert after == before
    assert not list(kept.state.glob("*.partial"))
    kept.completes()
