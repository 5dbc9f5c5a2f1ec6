# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows that come with votes: which of them leave a counter, and what of them is in it.

Names are canaries: they are in rows only, so a counter that knows one has opened a row.
"""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from support.cli import run_main
from support.counting import Votes, counter, key_file, put_file, start_counter
from support.memory import memory_of

from zanon_net._core import RowSealer, ThresholdSealer, read_votes
from zanon_net.audit import audit
from zanon_net.errors import FormatError
from zanon_net.keys import new_reader_key
from zanon_net.pipeline.vote_sealing import read_reader_key

KEY = bytes(range(32))
EPOCHS = 4
AUDITED = {"z": 3, "window": "1h", "rotate": "1h", "purpose": "internal"}
CANARY = re.compile(rb"canary-[0-9a-f]{16}")
Attach = Callable[[bytes, list[bytes | None]], bytes]


def name_of(lo: int) -> str:
    return f"canary-{lo:016x}.example"


def row_of(t_ns: int, user: int, lo: int) -> bytes:
    client = f"10.{user % 251}.{user % 241}.{user % 239}"
    line = {"t_ns": t_ns, "client": client, "name": name_of(lo), "name_source": "tls"}
    return json.dumps(line, separators=(",", ":")).encode()


def rows_of(message: bytes) -> list[bytes | None]:
    read = read_votes(message)
    columns = (read[name].tolist() for name in ("t_ns", "user", "lo"))
    return [row_of(*vote) for vote in zip(*columns, strict=True)]


def put_all(folder: Path, votes: Votes, attach: Attach) -> bytes:
    """Puts all messages with their rows; returns them, one behind the other."""
    sent = []
    for probe, message in votes.in_turns():
        attached = attach(message, rows_of(message))
        put_file(folder, probe, message, attached)
        sent.append(attached)
    return b"".join(sent)


def released(votes: Votes) -> Counter[bytes]:
    return Counter(row_of(t_ns, user, lo) for t_ns, user, lo, _hi in votes.releases)


def lines_in(files: Iterable[Path]) -> Counter[bytes]:
    return Counter(line for path in files for line in path.read_bytes().splitlines())


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reader") / "reader.key"
    new_reader_key(path)
    return path


@pytest.fixture(scope="module")
def seal(reader: Path) -> Attach:
    return RowSealer(read_reader_key(Path(f"{reader}.pub"))).attach


def share(votes: Votes) -> Attach:
    return ThresholdSealer(KEY, z=votes.z, window_ns=votes.window_ns, epochs=EPOCHS).attach


def unsealed(reader: Path, folder: Path, out: Path) -> Counter[bytes]:
    assert run_main("unseal", "--reader-key", reader, folder, "--out", out) == 0
    return lines_in([out])


def done(votes: Votes) -> list[object]:
    return [*votes.options, "--expect-probes", votes.probes, "--until-done", "--json"]


# ---- sealed -------------------------------------------------------------------------------------


def test_the_reader_gets_what_z_users_share(
    votes: Votes, reader: Path, seal: Attach, tmp_path: Path
) -> None:
    put_all(tmp_path, votes, seal)
    mode = ("--mode", "sealed", "--sealed-out", tmp_path / "released")
    with counter(f"file:{tmp_path}", *done(votes), *mode) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["sealed_rows_released"] == len(votes.releases)
    opened = tmp_path / "observations.jsonl"
    assert unsealed(reader, tmp_path / "released", opened) == released(votes)
    assert audit(opened, **AUDITED).facts["records"] == len(votes.releases)
    with pytest.raises(FormatError, match="its rows are sealed; open them with `zanon-net unseal"):
        audit(tmp_path / "released", **AUDITED)


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.1)


def canaries_in(parts: Iterable[bytes]) -> set[bytes]:
    # Most regions of a process hold no canary, and `in` searches far faster than an expression.
    return {name for part in parts if b"canary-" in part for name in CANARY.findall(part)}


def test_a_counter_of_sealed_rows_knows_no_name(votes: Votes, seal: Attach, tmp_path: Path) -> None:
    """Neither in memory, nor on disk, nor in what it prints."""
    sent = put_all(tmp_path / "votes", votes, seal)
    assert not canaries_in([sent])
    state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
    mode = ("--mode", "sealed", "--sealed-out", tmp_path / "released")
    wanted = (*votes.options, "--expect-probes", votes.probes)
    process = start_counter(f"file:{tmp_path / 'votes'}", *wanted, *state, *mode)
    try:
        answers = tmp_path / "votes" / "answers"
        wait_until(lambda: len({path.parent for path in answers.rglob("*.zna")}) == votes.probes)
        wait_until(lambda: any((tmp_path / "released").glob("*.zns")))
        time.sleep(0.5)
        try:
            memory = list(memory_of(process.pid))
        except PermissionError:
            pytest.skip("only root reads the memory of a process that forbids it")
        process.terminate()
        printed = process.communicate(timeout=60)
    finally:
        process.kill()
    assert sum(map(len, memory)) > 1 << 20
    assert not canaries_in(memory)
    assert not canaries_in(text.encode() for text in printed)
    assert not canaries_in(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_killed_counter_releases_the_same_again(
    votes: Votes, reader: Path, seal: Attach, tmp_path: Path
) -> None:
    put_all(tmp_path, votes, seal)
    state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
    mode = ("--mode", "sealed", "--sealed-out", tmp_path / "released")
    arguments = (f"file:{tmp_path}", *done(votes), *state, *mode)
    before: dict[Path, bytes] = {}
    for delay in (0.8, 1.2, 1.6):
        process = start_counter(*arguments)
        time.sleep(delay)
        process.kill()
        process.communicate()
        now = {path: path.read_bytes() for path in (tmp_path / "released").glob("*.zns")}
        assert all(now[path] == content for path, content in before.items())
        before = now
    with counter(*arguments) as process:
        _out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert unsealed(reader, tmp_path / "released", tmp_path / "out.jsonl") == released(votes)


def test_another_mode_is_refused_in_one_line(votes: Votes, seal: Attach, tmp_path: Path) -> None:
    probe, message = votes.in_turns()[0]
    put_file(tmp_path, probe, message, seal(message, rows_of(message)))
    with counter(f"file:{tmp_path}", *votes.options) as process:
        assert process.stderr is not None
        assert "its --count-mode is not the counter's --mode, ask" in process.stderr.readline()


# ---- threshold ----------------------------------------------------------------------------------


def names_of_z_users(votes: Votes) -> set[bytes]:
    """Those that z users had in one epoch."""
    step = votes.window_ns // EPOCHS
    users: dict[tuple[int, int], set[int]] = defaultdict(set)
    for messages in votes.messages.values():
        for read in map(read_votes, messages):
            columns = (read[name].tolist() for name in ("t_ns", "user", "lo"))
            for t_ns, user, lo in zip(*columns, strict=True):
                for back in range(EPOCHS):
                    users[t_ns // step - back, lo].add(user)
    shared = {lo for (_epoch, lo), known in users.items() if len(known) >= votes.z}
    return {name_of(lo).split(".")[0].encode() for lo in shared}


def test_the_centre_opens_only_what_z_users_share(tmp_path: Path) -> None:
    votes = Votes(seconds=90)
    sent = put_all(tmp_path / "votes", votes, share(votes))
    assert not canaries_in([sent])
    state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
    mode = ("--mode", "threshold", "--observations-out", tmp_path / "released")
    wanted = (*votes.options, "--expect-probes", votes.probes)
    process = start_counter(f"file:{tmp_path / 'votes'}", *wanted, *state, *mode)
    try:
        answers = tmp_path / "votes" / "answers"
        wait_until(lambda: len({path.parent for path in answers.rglob("*.zna")}) == votes.probes)
        wait_until(lambda: any((tmp_path / "released").glob("*.jsonl")))
        time.sleep(0.5)
        try:
            memory = list(memory_of(process.pid))
        except PermissionError:
            memory = []
        process.terminate()
        printed = process.communicate(timeout=60)
    finally:
        process.kill()
    opened, exact = lines_in((tmp_path / "released").glob("*.jsonl")), released(votes)
    assert not opened - exact
    assert opened.total() > 0.9 * exact.total()
    shared = names_of_z_users(votes)
    assert canaries_in(memory) <= shared
    assert canaries_in(text.encode() for text in printed) == set()
    on_disk = (path for path in tmp_path.rglob("*") if path.is_file())
    assert canaries_in(path.read_bytes() for path in on_disk) <= shared


def test_a_restored_counter_of_shares_goes_on(votes: Votes, tmp_path: Path) -> None:
    """With its state, as if it had never ended."""
    found = []
    for name, halves in (("once", 1), ("twice", 2)):
        folder = tmp_path / name
        turns = votes.in_turns()
        folder.mkdir()
        state = ("--state", folder / "state", "--state-key-file", key_file(folder))
        mode = ("--mode", "threshold", "--observations-out", folder / "released")
        attach = share(votes)
        for half in range(halves):
            first, last = half * len(turns) // halves, (half + 1) * len(turns) // halves
            for probe, message in turns[first:last]:
                put_file(folder, probe, message, attach(message, rows_of(message)))
            is_last = half + 1 == halves
            end = ("--expect-probes", votes.probes, *(("--until-done",) if is_last else ()))
            process = start_counter(f"file:{folder}", *votes.options, *end, *state, *mode)
            if not is_last:
                wait_until(lambda out=folder / "released": any(out.glob("*.jsonl")))  # type: ignore[misc]
                time.sleep(0.5)
                process.terminate()
            _out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        found.append(lines_in((folder / "released").glob("*.jsonl")))
    assert found[0] == found[1]
