# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The filter's pseudonyms: by formula with a key file, unlinkable between epochs without one."""

import base64
import csv
import io
import subprocess
from pathlib import Path

import pytest
from support.filter import S, open_row_filter, oracle_pseudonym, run_filter, sift

from zanon_net._core import Keys
from zanon_net.errors import ConfigError, ZanonError

MASTER = bytes(range(7, 39))  # what the fixture key_file holds
HEADER = b"time,user,attribute\n"
HOUR = 3600


def aliases(data: bytes) -> list[str]:
    """The users' column of CSV output, without its header."""
    return [row[1] for row in csv.reader(io.StringIO(data.decode()))][1:]


def test_the_same_key_file_gives_the_same_output_in_every_process(key_file: str) -> None:
    rows = HEADER + b"".join(f"{t * 500},u{t % 7},x\n".encode() for t in range(40))
    arguments = ("--time-unit", "s", "--z", 3, "--key-file", key_file, "-q")
    runs = [run_filter(*arguments, stdin=rows) for _ in range(2)]
    assert [done.returncode for done in runs] == [0, 0]
    assert runs[0].stdout == runs[1].stdout
    assert len(aliases(runs[0].stdout)) > 20
    for t, _, name in csv.reader(io.StringIO(runs[0].stdout.decode())):
        assert name in ("x", "attribute")
        if t != "time":
            user = f"u{int(t) // 500 % 7}"
            expected = oracle_pseudonym(MASTER, HOUR * S, int(t) * S, user, z=3)
            assert f"{t},{expected},x\n".encode() in runs[0].stdout


def test_random_keys_differ_from_run_to_run() -> None:
    rows = HEADER + b"1,ann,x\n"
    assert aliases(sift(rows)[0]) != aliases(sift(rows)[0])


@pytest.mark.parametrize("keyed", [True, False])
def test_epochs(keyed: bool, key_file: str) -> None:
    rows = HEADER + b"0,ann,x\n99,ann,x\n100,ann,x\n199,ann,x\n5000,ann,x\n5001,bob,x\n"
    out, _ = sift(rows, rotate="100s", key_file=key_file if keyed else None)
    a, b, c, d, e, f = aliases(out)
    assert a == b
    assert c == d
    assert len({a, c, e, f}) == 4


def test_counting_does_not_rotate() -> None:
    rows = HEADER + b"1,ann,x\n2,ann,x\n3,ann,x\n4,bob,x\n"
    assert len(aliases(sift(rows, z=2, rotate="1s")[0])) == 1


def test_late_rows_with_a_key_file_get_their_own_epoch(key_file: str) -> None:
    rows = HEADER + b"99,ann,x\n101,ann,x\n98,ann,x\n102,ann,x\n"
    a, b, c, d = aliases(sift(rows, rotate="100s", key_file=key_file)[0])
    assert (a, b) == (c, d)
    assert a != b
    assert a == oracle_pseudonym(MASTER, 100 * S, 99 * S, "ann")


def test_late_rows_without_one_get_the_present_epoch() -> None:
    rows = HEADER + b"99,ann,x\n101,ann,x\n98,ann,x\n"
    a, b, c = aliases(sift(rows, rotate="100s")[0])
    assert b == c != a


def test_a_clock_set_back_draws_a_fresh_key() -> None:
    rows = HEADER + b"1000000,ann,x\n" + b"5,ann,x\n" * 300 + b"1000000,ann,x\n"
    out, row_filter = sift(rows, window="10s", rotate="300d", suppressed="blank")
    names = aliases(out)
    assert row_filter.table_stats["clock_jumps"] == 1
    assert len(set(names)) == 2
    assert names[0] != names[-1]
    assert names[256] == names[-1]


def test_a_clock_set_back_with_a_key_file_changes_nothing(key_file: str) -> None:
    rows = HEADER + b"1000000,ann,x\n" + b"5,ann,x\n" * 300 + b"1000000,ann,x\n"
    out, _ = sift(rows, window="10s", rotate="300d", suppressed="blank", key_file=key_file)
    assert set(aliases(out)) == {
        oracle_pseudonym(MASTER, 300 * 86400 * S, 5 * S, "ann", window_ns=10 * S)
    }


def test_more_users_than_are_remembered(key_file: str) -> None:
    users = 150_000
    rows = HEADER + b"".join(f"{i // users},u{i % users},x\n".encode() for i in range(2 * users))
    names = aliases(sift(rows, key_file=key_file)[0])
    assert names[:users] == names[users:]
    assert len(set(names)) == users
    for i in range(0, users, 9_999):
        assert names[i] == oracle_pseudonym(MASTER, HOUR * S, 0, f"u{i}")


def test_users_are_told_apart_byte_by_byte() -> None:
    rows = HEADER + "1,ann,x\n1,Ann,x\n1,ann ,x\n1,é,x\n1,e\u0301,x\n".encode()
    assert len(set(aliases(sift(rows)[0]))) == 5


def test_without_users_nothing_is_keyed(key_file: str) -> None:
    out, _ = sift(HEADER + b"1,ann,x\n", no_user=True, key_file=key_file)
    assert out == b"time,attribute\n1,x\n"


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        (b"short\n", 0o600, "does not hold exactly one line of 32 bytes"),
        (base64.b64encode(MASTER) + b"\n", 0o644, "open to other users"),
    ],
)
def test_bad_key_files(tmp_path: Path, content: bytes, mode: int, problem: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=problem):
        open_row_filter(key_file=str(path))


def test_the_key_is_in_no_output(key_file: str) -> None:
    done: subprocess.CompletedProcess[bytes] = run_filter(
        *("--time-unit", "s", "--z", 1, "--key-file", key_file, "--json"),
        stdin=HEADER + b"1,ann,x\n",
    )
    assert done.returncode == 0
    for said in (done.stdout, done.stderr):
        assert base64.b64encode(MASTER) not in said
        assert key_file.encode() not in said
        assert b"ann" not in said


# ---- the core's keys ----------------------------------------------------------------------------


def test_ephemeral_keys_derive_forward_only() -> None:
    keys = Keys(S)
    first = keys.derive(b"zanon-net/2/filter", 5, 32)
    assert keys.derive(b"zanon-net/2/filter", 5, 32) == first
    assert keys.derive(b"zanon-net/2/other", 5, 32) != first
    assert keys.derive(b"zanon-net/2/filter", 6, 32) != first
    with pytest.raises(ZanonError):
        keys.derive(b"zanon-net/2/filter", 5, 32)


def test_deriving_and_pseudonyms_share_their_epoch() -> None:
    keys = Keys(S)
    before = keys.pseudonym(5 * S, "10.1.2.3")
    keys.derive(b"zanon-net/2/filter", 5, 32)
    assert keys.pseudonym(5 * S, "10.1.2.3") == before
    keys.derive(b"zanon-net/2/filter", 6, 32)
    assert keys.pseudonym(5 * S, "10.1.2.3")[1] == 6
