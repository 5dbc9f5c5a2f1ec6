# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Popularity by level: counts are brute force's, and `tune` and `model` predict a run."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from oracle.levels import Names, by_level
from support.engine import make_engine
from support.level_sites import capture, hellos
from support.packets import HOUR, MINUTE, SECOND, START
from support.paths import ROOT

from zanon_net._core import Capture, ClosedLevels, ClosedWindow
from zanon_net.cli import main
from zanon_net.config.name_lists import PUBLIC
from zanon_net.model import fit
from zanon_net.output.popularity_file import PopularityFile
from zanon_net.popularity import LevelShares, Popularity, PopularityWindow

Captured = pytest.CaptureFixture[str]
Visits = list[tuple[int, int, int]]
"""(time in ns, user, number of the name) in order of time."""

LISTS: dict[str, Any] = {
    "suffixes": [(b"test", PUBLIC, 0), (b"alone", 0, 2)],
    "categories": [(b"news", False), (b"cdn", False)],
}


def worlds(rng: random.Random) -> tuple[list[Names], dict[str, Any]]:
    """Names with their labels, and the lists that say so."""
    names: list[Names] = [("x.alone", None, "cdn"), ("y.alone", None, "cdn")]
    suffixes = list(LISTS["suffixes"])
    for d in range(rng.randint(3, 9)):
        kind = rng.randrange(3)
        suffixes.append((f"d{d}.test".encode(), 0, kind))
        category = [None, "news", "cdn"][kind]
        names += [(f"n{n}.d{d}.test", f"d{d}", category) for n in range(rng.choice([1, 2, 5, 9]))]
    return names, LISTS | {"suffixes": suffixes}


def capture_of(path: Path, visits: Visits, names: list[Names]) -> Path:
    return capture(path, hellos([(t, u, names[n][0].encode()) for t, u, n in visits]))


def read_levels(path: Path, batch: int = 1 << 14, **settings: Any) -> list[ClosedLevels]:
    """The sums of all windows of a capture."""
    engine = make_engine(popularity=True, established=False, **settings)
    found: list[ClosedLevels | None] = []
    with Capture(str(path)) as opened:
        while engine.run(opened, batch) > 0:
            while engine.window() is not None:
                found.append(engine.window_levels())
                engine.run(opened, 0)
    engine.finish()
    found.append(engine.window_levels())
    return [one for one in found if one is not None]


@pytest.mark.parametrize("batch", [7, 1 << 14])
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_brute_force(tmp_path: Path, seed: int, batch: int) -> None:
    rng = random.Random(seed)
    names, lists = worlds(rng)
    chosen = [["domain", "category"], ["domain"], ["category"]][seed % 3]
    visits = [
        (START + i * SECOND, rng.randrange(30), min(rng.choices(range(len(names)), k=2)))
        for i in range(1200)
    ]
    read = read_levels(
        capture_of(tmp_path / "in.pcap", visits, names), batch, window_ns=10 * MINUTE, z=4,
        levels=chosen, **lists,
    )  # fmt: skip
    assert [one.exposures for one in read] == [600, 600]
    seen = [0, 0, 0]
    for window, levels in enumerate(read):
        exposures = [
            (u, (names[n][0], *(names[n][1 + k] if word in chosen else None
                                for k, word in enumerate(("domain", "category")))))
            for _t, u, n in visits[600 * window : 600 * (window + 1)]
        ]  # fmt: skip
        users = len({u for u, _chain in exposures})
        steps = sorted(x for j in range(9) for x in {2**j, 3 * 2**j} if x <= users)
        assert [row[0] for row in levels.rows] == steps
        for z, *counts, kept in levels.rows:
            expected, share = by_level(exposures, z)
            assert counts == expected
            assert kept == pytest.approx(share)
            seen = [a + b for a, b in zip(seen, counts, strict=True)]
    assert [bool(n) for n in seen] == [True, "domain" in chosen, "category" in chosen]


def test_lists_of_an_engine_without_levels_sum_nothing(tmp_path: Path) -> None:
    visits = [(START + i * SECOND, i, 0) for i in range(9)]
    path = capture_of(tmp_path / "in.pcap", visits, [("n.d.test", "d", None)])
    assert read_levels(path, window_ns=MINUTE) == []
    assert read_levels(path, window_ns=MINUTE, levels=["country"], **LISTS) == []
    (found,) = read_levels(path, window_ns=MINUTE, levels=["domain"], **LISTS)
    assert found.exposures == 9


def test_counts_of_names_only_have_no_sums(tmp_path: Path) -> None:
    """A z that follows the stream reads the users of names, and nobody reads the other counts."""
    visits = [(START + i * SECOND, i, i % 9) for i in range(90)]
    names: list[Names] = [(f"n{n}.d.test", "d", None) for n in range(9)]
    path, found = capture_of(tmp_path / "in.pcap", visits, names), []
    for popularity in (1, 2):
        engine = make_engine(
            popularity=popularity, established=False, window_ns=HOUR, levels=["domain"], **LISTS
        )
        with Capture(str(path)) as opened:
            while engine.run(opened, 64) > 0:
                pass
        engine.finish()
        found.append((engine.window(), list(engine.window_counts()), engine.window_levels()))
    assert found[0][:2] == found[1][:2]
    assert found[0][1] == [10] * 9
    assert found[0][2] is not None
    assert found[1][2] is None


def test_a_window_that_lost_exposures_has_no_sums(tmp_path: Path) -> None:
    visits = [(START + i * SECOND, i, i % 9) for i in range(90)]
    names: list[Names] = [(f"n{n}.d.test", "d", None) for n in range(9)]
    path = capture_of(tmp_path / "in.pcap", visits, names)
    settings: dict[str, Any] = {"window_ns": HOUR, "levels": ["domain"], **LISTS}
    assert len(read_levels(path, **settings)) == 1
    assert read_levels(path, max_tuples=50, **settings) == []


def test_the_caps_of_the_table_bound_the_counts(tmp_path: Path) -> None:
    """Names beyond the cap of tuples take no memory for their sums."""
    more = []
    for count in (1000, 4000):
        visits = [(START + i * SECOND // 8, i, i) for i in range(count)]
        names: list[Names] = [(f"n{n}.d{n}.test", f"d{n}", None) for n in range(count)]
        path = capture_of(tmp_path / "in.pcap", visits, names)
        memory = []
        for popularity in (False, True):
            engine = make_engine(popularity=popularity, established=False, window_ns=HOUR,
                                 max_tuples=500, levels=["domain"], **LISTS)  # fmt: skip
            with Capture(str(path)) as opened:
                while engine.run(opened, 64) > 0:
                    pass
            memory.append(engine.memory_bytes)
        more.append(memory[1] - memory[0])
    assert more[1] < 1.1 * more[0]


# ---- files ---------------------------------------------------------------------------------------

ROWS = (
    LevelShares(1, 1.0, 0.0, 0.0, 1.0),
    LevelShares(4, 0.5, 0.3049, 0.1, 0.8),
    LevelShares(16, 0.1, 0.5, 0.2, 0.4),
)
WINDOWS = [
    PopularityWindow(0, True, 1000, (4, 3, 2, 9), 1234, ROWS),
    PopularityWindow(HOUR, True, 1000, (4, 3, 2, 9), 1234, ROWS[:2]),
]


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "popularity.json"
    path.write_bytes(Popularity.of(2, HOUR, WINDOWS).to_bytes())
    return path


def test_shares_are_rounded_in_the_file(counts: Path) -> None:
    first, second = Popularity.load(counts).windows
    assert first.exposures == 1200
    assert first.levels[1] == LevelShares(4, 0.5, 0.3, 0.1, 0.8)
    assert len(second.levels) == 2


def test_a_file_has_levels_of_the_last_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a file is never too long to be read; rows end where nothing is shared."""
    monkeypatch.setattr("zanon_net.output.popularity_file.LEVELS_MAX", 2)
    counts = PopularityFile(tmp_path / "p.json", 1, HOUR)
    rows = ((1, 10, 0, 0, 1.0), (2, 5, 1, 2, 0.5), (3, 0, 0, 0, 0.0), (4, 0, 0, 0, 0.0))
    for _window in range(4):
        counts.add(ClosedWindow(0, HOUR, True, 9, (2, 3)), levels=ClosedLevels(10, rows))
    counts.publish()
    windows = Popularity.load(tmp_path / "p.json").windows
    assert [(one.exposures, len(one.levels)) for one in windows] == [(0, 0)] * 2 + [(10, 3)] * 2
    assert windows[3].levels[1] == LevelShares(2, 0.5, 0.1, 0.2, 0.5)


def test_files_without_levels_are_as_before(tmp_path: Path) -> None:
    without = PopularityWindow(0, True, 1000, (4, 3, 2, 9))
    assert set(without.to_dict()) == {"start_ns", "whole", "users", "bins"}
    mixed = Popularity(2, HOUR, (*WINDOWS, without))
    whole, part = fit(Popularity(2, HOUR, tuple(WINDOWS))).levels, fit(mixed).levels
    assert whole is not None
    assert part is not None
    assert part.at(4) == whole.at(4)
    assert fit(Popularity(2, HOUR, (without,))).levels is None
    assert Popularity.from_dict(json.loads(mixed.to_bytes())) == mixed


@pytest.mark.parametrize(
    "row", [[4, 0.5, 0.3, 0.1], [0, 1, 0, 0, 1], [4, 0.9, 0.9, 0, 1], [4, -1, 0, 0, 1], ["4"], 4]
)
def test_damaged_shares_are_no_popularity_file(counts: Path, row: Any, capsys: Captured) -> None:
    data = json.loads(counts.read_text())
    data["windows"][0]["levels"][1] = row
    counts.write_text(json.dumps(data))
    assert main(["tune", "--popularity", str(counts)]) == 1
    assert "is no popularity file" in capsys.readouterr().err


def test_shares_between_two_steps_are_on_a_line(counts: Path) -> None:
    levels = fit(counts).levels
    assert levels is not None
    assert levels.at(16) == pytest.approx((16, 0.05, 0.25, 0.1, 0.2))  # one window of two
    assert levels.at(8) == pytest.approx((8, 0.275, 0.275, 0.1, 0.5))
    assert levels.at(17) == (17, 0, 0, 0, 0)


@pytest.mark.parametrize("command", [["model", "--z", "4"], ["tune", "--target", "0.5"]])
def test_commands_print_shares_by_level(command: list[str], counts: Path, capsys: Captured) -> None:
    arguments = [command[0], "--popularity", str(counts), *command[1:]]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "With labels (run --levels), counted and not fitted, of all exposures:" in out
    assert "information kept" in out
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row, *_) = found["rows"] if command[0] == "model" else [found["windows"][0]["first"]]
    assert row["levels"].keys() == {
        "name_share", "domain_share", "category_share", "nothing_share", "information_kept_share",
    }  # fmt: skip
    if command[0] == "model":
        assert main([*arguments, "--window", "2h"]) == 0
        assert "With labels" not in capsys.readouterr().out
        assert row["levels"]["domain_share"] == pytest.approx(0.3)
        assert row["levels"]["nothing_share"] == pytest.approx(0.1)


# ---- a run ---------------------------------------------------------------------------------------


@pytest.mark.source
def test_the_model_is_within_two_points_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generated traffic in small, as bench/levels_model.py compares it in large."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    import levels_model

    world = levels_model.World(users=1000, exposures=40_000, windows=4)
    rows = levels_model.compare(tmp_path, world, [20])
    assert [row.level for row in rows if row.steady > 0.02] == list(levels_model.LEVELS)
    for row in rows:
        assert abs(row.points) < 2, row
