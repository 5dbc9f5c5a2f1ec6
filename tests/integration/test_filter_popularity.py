# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`filter --popularity`: counts are brute force's, the file is whole or not there."""

import json
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import run_here
from support.filter import S, open_row_filter, sift

from zanon_net._core import ClosedWindow, RowFilter
from zanon_net.cli import main
from zanon_net.model import fit
from zanon_net.popularity import Popularity

WINDOW = 100
Row = tuple[int, str, str]
HEADER = b"time,user,attribute\n"
ROWS = st.lists(
    st.tuples(st.integers(0, 900), st.sampled_from("abcdefg"), st.sampled_from("xyzw")),
    max_size=80,
)


def csv_of(rows: list[Row]) -> bytes:
    return HEADER + b"".join(f"{t},{user},{attribute}\n".encode() for t, user, attribute in rows)


def expected_windows(rows: list[Row]) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Of rows in time order, by start: users, and attributes with 1, 2-3, 4-7, ... of them."""
    seen: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for t, user, attribute in rows:
        seen[t - (t - rows[0][0]) % WINDOW][attribute].add(user)
    found = {}
    for start, users_of in seen.items():
        powers = [len(users).bit_length() - 1 for users in users_of.values()]
        bins = tuple(powers.count(j) for j in range(max(powers) + 1))
        found[start * S] = len(set().union(*users_of.values())), bins
    return found


def windows_of(row_filter: RowFilter) -> list[ClosedWindow]:
    row_filter.finish()
    return row_filter.windows()


def counted(data: bytes | list[bytes], **options: Any) -> list[ClosedWindow]:
    settings = {"window": f"{WINDOW}s", "popularity": "not written by a row_filter"} | options
    _out, row_filter = sift(data, **settings)
    return windows_of(row_filter)


@given(ROWS, st.integers(1, 50))
def test_counts_are_brute_force(rows: list[Row], piece: int) -> None:
    rows.sort(key=lambda row: row[0])
    data = csv_of(rows)
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    found = counted(pieces)
    assert {w.start_ns: (w.users, w.bins) for w in found} == expected_windows(rows)
    assert all(window.end_ns == window.start_ns + WINDOW * S for window in found)
    assert [window.whole for window in found] == [True] * (len(found) - 1) + [False] * bool(found)


@given(ROWS)
def test_late_rows_count_in_their_own_window_or_not_at_all(rows: list[Row]) -> None:
    """In any order, no window has more than its rows."""
    for window in counted(csv_of(rows)):
        inside = [row for row in rows if window.start_ns <= row[0] * S < window.end_ns]
        assert window.users <= len({user for _t, user, _attribute in inside})
        assert sum(window.bins) <= len({attribute for _t, _user, attribute in inside})


def test_the_order_within_a_window_does_not_matter() -> None:
    """Not even where a row comes behind more later ones than the z-table looks past."""
    rows = [(WINDOW - 1 - i % WINDOW, f"u{i}", f"a{i % 3}") for i in range(300)]
    found = counted(csv_of([(0, "first", "a0"), *rows]))
    assert [(w.users, w.bins, w.whole) for w in found] == [(301, (0,) * 6 + (3,), False)]


def test_a_clock_set_back_cuts_the_window() -> None:
    far = [(10**6, "a", "x")]
    back = [(i, f"u{i}", "x") for i in range(300)]
    found = counted(csv_of(far + back), window="1000s")
    assert [(w.start_ns, w.whole, w.users) for w in found] == [
        (10**6 * S, False, 1),
        (255 * S, False, 45),
    ]


def test_counting_changes_no_output(key_file: str) -> None:
    rows = [(t, f"u{t % 7}", f"a{t % 3}") for t in range(0, 5000, 11)]
    settings = {"z": 3, "window": f"{WINDOW}s", "key_file": key_file}
    without, _ = sift(csv_of(rows), **settings)
    beside, _ = sift(csv_of(rows), popularity="p.json", **settings)
    assert without == beside
    assert without.count(b"\n") > 1


def test_a_row_filter_that_counts_nothing_has_no_windows() -> None:
    row_filter = open_row_filter(popularity=None)
    row_filter.feed(csv_of([(1, "a", "x")]))
    row_filter.end()
    assert windows_of(row_filter) == []


def test_a_table_too_small_is_no_whole_window() -> None:
    rows = [(t, f"u{t}", f"a{t}") for t in range(300)]
    whole, small = counted(csv_of(rows)), counted(csv_of(rows), max_tuples=50)
    assert [window.whole for window in whole] == [True, True, False]
    assert not any(window.whole for window in small)


# ---- the file -----------------------------------------------------------------------------------


def stream(windows: int) -> bytes:
    """Windows of 5, 1, 5, 1, ... users."""
    return csv_of(
        [
            (window * WINDOW + user, f"secret-user{user}", "secret-thing")
            for window in range(windows)
            for user in range(1 if window % 2 else 5)
        ]
    )


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    options = ("--time-unit", "s", "--window", f"{WINDOW}s", "--z", 2, "--popularity", path)
    done = run_here("filter", *options, "--json", stdin=stream(7))
    assert done.returncode == 0
    manifest = json.loads(done.stderr)
    assert manifest["configuration"]["popularity"] is True
    found = Popularity.load(path)
    assert (found.z, found.window_ns, found.omitted) == (2, WINDOW * S, 3)
    assert [(w.start_ns, w.whole, w.users, w.bins) for w in found.windows] == [
        (i * 2 * WINDOW * S, i < 3, 5, (0, 0, 1)) for i in range(4)
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret" not in path.read_text()
    assert "not for release" in path.read_text()
    assert fit(path).windows == 3


def test_the_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("mine")
    done = run_here("filter", "--time-unit", "s", "--popularity", path, stdin=stream(2))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"p.json exists, and nothing is ever overwritten" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "more"),
    [
        (b"not,the,columns\n1,2,3\n", ()),
        (HEADER + b"1,,x\n", ()),
        (HEADER + b",,\n", ("--strict",)),
    ],
)
def test_nothing_is_left_after_an_error(tmp_path: Path, data: bytes, more: tuple[str]) -> None:
    path = tmp_path / "p.json"
    done = run_here("filter", "--time-unit", "s", "--popularity", path, *more, stdin=data)
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_no_folder_for_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "rows.csv"
    source.write_bytes(stream(2))
    path = tmp_path / "no" / "p.json"
    assert main(["filter", "--time-unit", "s", "--popularity", str(path), str(source)]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "make the folder it is to lie in first" in said.err
    assert said.err.count("\n") == 1
