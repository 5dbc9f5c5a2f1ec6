# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net tune --steps`: the steps of `filter --levels` that lose least, against brute force."""

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from oracle import ladder as oracle
from oracle.hierarchy import Tree
from support.cli import run_here
from support.filter import S

from zanon_net.cli import main
from zanon_net.rows import step_search

Captured = pytest.CaptureFixture[str]
GROUPS = {"Ruhr;west": "Essen Bochum", "Rhine;west": "Bonn Cologne", "Spree;east": "Berlin Cottbus"}
GROUPS |= {"Elbe;east": "Dresden Riesa"}
TOWNS = tuple(f"{town};{group};*" for group, towns in GROUPS.items() for town in towns.split())
TRADES = ("baker;food;*", "cook;food;*", "smith;metal;*", "locksmith;metal;*")
Z, WINDOW = 3, 40
COUNT = 301
Losses = tuple[float, float, float]
"""Loss on the first half, loss and share of suppressed rows on the second."""


def rows_of(seed: int) -> list[tuple[int, str, list[str]]]:
    rng = random.Random(seed)

    def one_of(lines: Sequence[str]) -> str:
        return lines[min(rng.randrange(len(lines)) for _ in range(3))].split(";")[0]

    return [
        (t, f"u{rng.randrange(12)}", [one_of(lines) for lines in (TOWNS, TRADES)])
        for t in range(COUNT)
    ]


def write(folder: Path, seed: int = 0) -> list[str]:
    """The arguments of `tune` for the rows of a seed."""
    lines = [f"{t},{user},{','.join(values)}\n" for t, user, values in rows_of(seed)]
    (folder / "rows.csv").write_text("time,user,town,trade\n" + "".join(lines))
    arguments = ["tune", "--steps", str(folder / "rows.csv"), "--attribute", "town,trade"]
    for name, text in (("town", TOWNS), ("trade", TRADES)):
        (folder / f"{name}.csv").write_text("\n".join(text) + "\n")
        arguments += ["--hierarchy", f"{name}={folder / name}.csv"]
    return [*arguments, "--time-unit", "s", "--z", str(Z), "--window", f"{WINDOW}s"]


def found_by(arguments: list[str], capsys: Captured) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def losses(seed: int, steps: list[tuple[int, ...]]) -> Losses:
    """Returns the loss of the rule in Python with these steps."""
    trees = [Tree([line.split(";") for line in lines]) for lines in (TOWNS, TRADES)]
    rule = oracle.Ladder(trees, steps, Z, WINDOW * S)
    lost: list[Fraction] = []
    for t, user, values in rows_of(seed):
        answer = rule.decide(t * S, int(user[1:]), values)
        if answer is None:
            lost.append(Fraction(1))
            continue
        nodes = rule.nodes(values, answer[0])
        parts = [tree.loss(node) for tree, node in zip(trees, nodes, strict=True)]
        lost.append(Fraction(sum(parts)) / len(parts))
    half = (COUNT + 1) // 2
    first, rest = lost[:half], lost[half:]
    return (
        round(float(sum(first) / len(first)), 12),
        round(float(sum(rest) / len(rest)), 12),
        rest.count(Fraction(1)) / len(rest),
    )


def facts_of(steps: list[tuple[int, ...]], lost: Losses) -> dict[str, Any]:
    names = ("chosen_loss", "loss", "suppressed")
    values = {name: pytest.approx(one, abs=2e-6) for name, one in zip(names, lost, strict=True)}
    return {"steps": [list(step) for step in steps], **values}


def subsets_of(steps: list[tuple[int, ...]]) -> Iterator[list[list[tuple[int, ...]]]]:
    """All subsets, size by size."""
    for size in range(1, len(steps) + 1):
        yield [list(some) for some in combinations(steps, size)]


@pytest.mark.parametrize("seed", range(3))
def test_the_best_subset_of_each_size_is_that_of_brute_force(
    seed: int, tmp_path: Path, capsys: Captured
) -> None:
    found = found_by(write(tmp_path, seed), capsys)
    chain = [tuple(step) for step in found["chain"]["steps"]]
    assert len(chain) == 5
    best = []
    for subsets in subsets_of(chain):
        all_ = [(losses(seed, steps), steps) for steps in subsets]
        best.append(min(all_, key=lambda one: one[0][0]))
    assert found["best"] == [facts_of(steps, lost) for lost, steps in best]
    assert found["chain"] == facts_of(chain, losses(seed, chain))
    assert (found["subsets_tried"], found["all_subsets"]) == (31, True)
    assert found["rows"] == {"chosen_on": 151, "measured_on": 150}
    least = min(best, key=lambda one: one[0][0])
    helps = least[0][1] < found["chain"]["loss"] - 1e-6
    assert found["advised"] == (facts_of(least[1], least[0]) if helps else found["chain"])
    assert {len(steps) for _lost, steps in best} == {1, 2, 3, 4, 5}


def test_a_long_chain_is_searched_one_step_at_a_time(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_search, "SUBSETS_MAX", 13)
    found = found_by(write(tmp_path), capsys)
    chain = [tuple(step) for step in found["chain"]["steps"]]
    steps: list[tuple[int, ...]] = []
    expected = []
    for _size in range(3):  # 5, 4 and 3 subsets; two more are not allowed
        grown = [sorted([*steps, step], key=chain.index) for step in chain if step not in steps]
        steps = min(grown, key=lambda some: losses(0, some)[0])
        expected.append(facts_of(steps, losses(0, steps)))
    assert found["best"] == expected
    assert (found["subsets_tried"], found["all_subsets"]) == (12, False)
    assert found["chain"] == facts_of(chain, losses(0, chain))
    assert main(write(tmp_path)) == 0
    assert "12 subsets of the chain's 5 steps tried: one more step at a time" in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_steps_are_written_for_filter(tmp_path: Path, capsys: Captured) -> None:
    arguments, out = write(tmp_path), tmp_path / "steps.txt"
    found = found_by([*arguments, "--out", str(out)], capsys)
    written = [list(map(int, line.split(","))) for line in out.read_text().splitlines()]
    assert written == found["advised"]["steps"] != found["chain"]["steps"]
    rest = arguments[arguments.index("--attribute") :]
    of_filter = ["filter", *rest, "--levels", str(out), "--no-user", "--json", arguments[2]]
    assert main(of_filter) == 0
    err = capsys.readouterr().err
    manifest = json.loads(err[err.index("{") :])
    assert [step["levels"] for step in manifest["levels"]["steps"]] == written
    lost = [found["advised"][name] for name in ("chosen_loss", "loss")]
    both = (151 * lost[0] + 150 * lost[1]) / 301
    assert manifest["levels"]["loss"] == pytest.approx(both, abs=2e-6)
    assert main([*arguments, "--out", str(out)]) == 2
    assert "steps.txt exists, and nothing is ever overwritten" in capsys.readouterr().err


def test_the_text_names_the_choice_and_the_rows(tmp_path: Path, capsys: Captured) -> None:
    arguments = write(tmp_path)
    found = found_by(arguments, capsys)
    before = set(tmp_path.iterdir())
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    words = " ".join(out.split())
    assert "rows.csv: z = 3, window 40s; steps chosen on 151 rows" in words
    assert "measured on the next 150" in words
    assert "31 subsets of the chain's 5 steps tried: all of them. Levels of town, trade:" in words
    advised, chain = found["advised"], found["chain"]
    said = f"Take {len(advised['steps'])} steps: they lose {advised['loss']:.3f}, and the chain"
    assert f"{said} {chain['loss']:.3f}." in words
    assert len(out.splitlines()) < 14
    assert set(tmp_path.iterdir()) == before


def test_the_chain_is_advised_if_no_choice_loses_less(tmp_path: Path, capsys: Captured) -> None:
    arguments = write(tmp_path)
    same = "".join(f"{t},u{t % 9},Essen,cook\n" for t in range(100))
    (tmp_path / "rows.csv").write_text("time,user,town,trade\n" + same)
    found = found_by(arguments, capsys)
    assert found["advised"] == found["chain"]
    assert main(arguments) == 0
    assert "Take --levels chain: no other choice was found to lose less." in capsys.readouterr().out


def test_a_sample_is_the_first_rows_in_any_form(tmp_path: Path, capsys: Captured) -> None:
    arguments = write(tmp_path)
    limited = found_by([*arguments, "--sample", "100"], capsys)
    assert limited["rows"] == {"chosen_on": 50, "measured_on": 50}
    lines = (tmp_path / "rows.csv").read_bytes().splitlines(keepends=True)
    rows = [dict(zip(("time", "user", "town", "trade"), row, strict=True)) for row in (
        (t, user, *values) for t, user, values in rows_of(0)[:100]
    )]  # fmt: skip
    forms = {
        "cut.csv": b"".join(lines[:101]).removesuffix(b"\n"),
        "cut.csv.gz": gzip.compress(b"".join(lines[:101])),
        "cut.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode(),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        other = [*arguments[:2], str(tmp_path / name), *arguments[3:]]
        assert found_by(other, capsys) == limited | {"source": name}
    piped = run_here(*arguments[:2], "-", *arguments[3:], "--json", stdin=forms["cut.csv"])
    assert json.loads(piped.stdout) == limited | {"source": "standard input"}


def test_rows_that_cannot_be_read_and_a_long_window_are_said(
    tmp_path: Path, capsys: Captured
) -> None:
    arguments = [*write(tmp_path), "--window", "1h"]
    del arguments[arguments.index("--window") : arguments.index("--window") + 2]
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    lines[3] = "3,u1,Essen"
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["rows"] == {"chosen_on": 150, "measured_on": 150}
    assert found["notes"] == [
        "the window is longer than half of the sample's time: a run on more rows decides otherwise"
    ]
    assert err.count("\n") == 1
    assert "rows.csv: line 4: not as many columns as the header" in err


BAD = {
    "": "--hierarchy: 'attribute' has no hierarchy",
    "--attribute town,trade": "--hierarchy: 'town' has no hierarchy",
    "HERE --attribute town": "--hierarchy: 'trade' is not one of the attributes",
    "HERE --user who": "rows.csv: line 1: the header has no column 'who'",
    "HERE --attribute town,trade --time-unit iso": "rows.csv: line 2: the time is a plain number",
    "HERE --z 1001": "--z: must be 1 to 1,000 with --levels",
    "HERE --window 1h": "--window: give one with --steps",
    "HERE --sample 1": "--sample: must be from 2 to 1000000",
    "HERE --target 0.9": "--target: is for the search of z; leave it out with --steps",
    "HERE --popularity p.json": "--popularity: is for the search of z",
    "HERE --plot p.svg": "--plot: is for the search of z",
    "HERE --out rows.csv": "rows.csv exists, and nothing is ever overwritten",
}


@pytest.mark.parametrize("more", BAD)
def test_wrong_options_end_it_with_one_line(
    more: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = write(tmp_path)
    words = [*(here if "HERE" in more else here[:3]), *more.removeprefix("HERE").split()]
    before = set(tmp_path.iterdir())
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert BAD[more] in err
    assert err.count("\n") == 1
    assert out == ""
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("option", ["--sample 5", "--out x", "--z 5", "--attribute a"])
def test_options_of_the_search_need_a_sample(option: str, capsys: Captured) -> None:
    assert main(["tune", *option.split()]) == 2
    name = option.split()[0]
    assert f"{name}: is for the search of steps; add --steps FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "code", "problem"),
    [
        ("", 2, "rows.csv has no row"),
        ("time,user,town,trade\n", 2, "rows.csv has no row"),
        ("time,user,town,trade\n1,u,Essen,cook\n", 2, "rows.csv has too few rows"),
        ("time,user,town,trade\n1,u\n2,v\n", 1, "not one row could be read"),
        ("time,user,town,trade\n1,u,Oslo,cook\n", 1, "line 2: the hierarchy of column 'town'"),
        ("PAR1", 2, "a sample is CSV or JSON Lines, not Parquet"),
    ],
)
def test_a_sample_that_does_not_fit(
    data: str, code: int, problem: str, tmp_path: Path, capsys: Captured
) -> None:
    arguments = write(tmp_path)
    (tmp_path / "rows.csv").write_text(data)
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert problem in err
    assert out == ""
    assert "Oslo" not in err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    arguments = write(tmp_path)
    (tmp_path / "rows.csv").unlink()
    assert main(arguments) == 1
    assert "rows.csv cannot be opened: No such file or directory" in capsys.readouterr().err
