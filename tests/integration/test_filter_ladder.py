# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter --levels` and `zanon-net table hierarchy` on a few rows."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import run_here
from support.ladders import ladder_of

from zanon_net.cli import main
from zanon_net.errors import ConfigError

Captured = pytest.CaptureFixture[str]
ROWS = (
    "time,user,town,trade,note\n"
    "1,ann,Essen,baker,n1\n"
    "2,bob,Bonn,baker,n2\n"
    "3,cat,Essen,baker,n3\n"
    "4,ann,Essen,,n4\n"
    "5,dan,Paris,smith,n5\n"
    "6,eve,Essen,,n6\n"
)
TOWNS = "Essen;west;*\nBonn;west;*\nBerlin;east;*\nParis;abroad;*\n"
TRADES = "baker;food;*\ncook;food;*\nsmith;metal;*\nlocksmith;metal;*\n;;*\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The arguments for the two columns, and the file of the rows last."""
    for name, text in (("town.csv", TOWNS), ("trade.csv", TRADES), ("rows.csv", ROWS)):
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "never.txt").write_text("example.org\n")
    options = ["--time-unit", "s", "--z", "2", "--levels", "chain", "--attribute", "town,trade"]
    for name in ("town", "trade"):
        options += ["--hierarchy", f"{name}={tmp_path / name}.csv"]
    return [*options, str(tmp_path / "rows.csv")]


def test_each_row_leaves_at_its_finest_step(files: list[str], capsys: Captured) -> None:
    assert main(["filter", *files, "--no-user", "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "time,town,trade",
        "2,west,baker",
        "3,Essen,baker",
        "6,Essen,",
    ]
    manifest = json.loads(err[err.index("{") :])
    assert manifest["configuration"]["hierarchy"] == {"town": "town.csv", "trade": "trade.csv"}
    assert manifest["decisions"]["observations"] == 6
    assert manifest["decisions"]["released"] == 3
    assert manifest["decisions"]["suppressed"]["below_z"] == 3
    assert manifest["configuration"]["levels"] == "chain"
    ladder = manifest["levels"]
    assert (ladder["columns"], ladder["unknown_values"]) == (["town", "trade"], 0)
    released = {tuple(step["levels"]): step["released"] for step in ladder["steps"]}
    assert released == {(0, 0): 2, (1, 0): 1, (1, 1): 0, (1, 2): 0}
    # west,baker withdraws ann's votes above it, Essen,baker her vote for it, and the last row the
    # votes of her other row
    assert [step["withdrawn"] for step in ladder["steps"]] == [0, 2, 2, 2]
    assert ladder["users_behind"] == {"smallest": 2, "median": 2}
    assert ladder["levels_paused"] == 0
    # by hand: 1 + (1/3)/2 + 0 + 1 + 1 + 0, over six rows
    assert ladder["loss"] == pytest.approx((3 + 1 / 6) / 6, abs=1e-6)
    for secret in ("ann", "bob", "Essen", "Paris", "smith", "west"):
        assert secret not in err


def test_blank_rows_pass_and_json(files: list[str], capsys: Captured) -> None:
    more = ["--suppressed", "blank", "--pass", "note", "--to", "jsonl", "--no-user", "-q"]
    assert main(["filter", *files, *more]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {"time": 1, "town": None, "trade": None, "note": "n1"}
    assert rows[1] == {"time": 2, "town": "west", "trade": "baker", "note": "n2"}
    assert rows[5] == {"time": 6, "town": "Essen", "trade": None, "note": "n6"}
    assert len(rows) == 6


def test_names_of_columns_with_commas(tmp_path: Path, capsys: Captured) -> None:
    for name, text in (("town", TOWNS), ("trade", TRADES)):
        (tmp_path / name).write_text(text, "utf-8")
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS.replace("town,trade", '"town, now",trade'), "utf-8")
    columns = ["--attribute", '"town, now",trade', "--hierarchy", f"town, now={tmp_path / 'town'}"]
    columns += ["--hierarchy", f"trade={tmp_path / 'trade'}", "--time-unit", "s", "--z", "2"]
    assert main(["filter", "--levels", "chain", *columns, "--no-user", "-q", str(rows)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ['time,"town, now",trade', "2,west,baker"]
    columns[1] = '"town, now,trade'
    assert main(["filter", "--levels", "chain", *columns, str(rows)]) == 2
    assert "--attribute: a name with a comma is in double quotes" in capsys.readouterr().err


def test_the_summary_says_what_was_lost(files: list[str], capsys: Captured) -> None:
    assert main(["filter", *files]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()[1].split(",")[1]) == 32  # the pseudonym
    assert "released    3 of 6" in err
    assert "loss        0.528 (from 0, unchanged, to 1, nothing left)" in err
    assert "1  town 1, trade 0" in err
    assert "z users stand behind each coarser row" in " ".join(err.split())


@pytest.mark.parametrize("unknown", ["suppress", "top"])
def test_unknown_values(unknown: str, files: list[str], tmp_path: Path, capsys: Captured) -> None:
    data = tmp_path / "other.csv"
    data.write_text("time,user,town,trade\n1,u,Bonn,cook\n2,v,Oslo,cook\n3,w,Oslo,cook\n")
    arguments = [*files[:-1], str(data), "--no-user"]
    assert main(["filter", *arguments]) == 1
    out, err = capsys.readouterr()
    assert "other.csv: line 3: the hierarchy of column 'town' has not its value" in err
    assert "Oslo" not in err
    assert out == "time,town,trade\n"
    assert main(["filter", *arguments, "--unknown", unknown]) == 0
    out, err = capsys.readouterr()
    assert "Oslo" not in out + err
    if unknown == "suppress":
        assert out == "time,town,trade\n"
        assert "2  a value that its hierarchy does not have" in err
    else:  # the root is what a known town is at its last level, too
        assert out == "time,town,trade\n3,*,cook\n"


BAD: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "no file for a column": (
        lambda args: [*args[:8], *args[10:]],
        "--hierarchy: 'town' has no hierarchy; each attribute needs COL=FILE",
    ),
    "a file for no column": (
        lambda args: [*args, "--hierarchy", "note=x.csv"],
        "--hierarchy: 'note' is not one of the attributes",
    ),
    "a column twice": (
        lambda args: [*args, "--attribute", "town,town"],
        "--attribute: 'town' is named already; each column has one role",
    ),
    "no name": (
        lambda args: [*args, "--attribute", "town,,trade"],
        "--attribute: must be names of columns, separated by commas",
    ),
    "popularity": (
        lambda args: [*args, "--popularity", "p.json"],
        "--popularity: counts users of one attribute, and not with --levels",
    ),
    "without --levels": (
        lambda args: [arg for arg in args if arg not in ("--levels", "chain")],
        "--hierarchy: is for rows that leave generalized; add --levels chain",
    ),
    "z too large": (
        lambda args: [*args, "--z", "1001"],
        "--z: must be 1 to 1,000 with --levels",
    ),
    "all combinations": (
        lambda args: [*args, "--levels", "all"],
        "--levels: not all combinations can be tried; take chain, or a file of steps",
    ),
    "levels of one attribute": (
        lambda args: [*args, "--levels", "domain,category"],
        "--hierarchy: is for rows that leave generalized; add --levels chain",
    ),
    "names that never leave": (
        lambda args: [*args, "--never", args[-1].replace("rows.csv", "never.txt")],
        "--never: is for one attribute, and not with the steps of --levels",
    ),
    "no such file of steps": (
        lambda args: [*args, "--levels", "nowhere.txt"],
        "--levels: nowhere.txt cannot be read: No such file or directory",
    ),
    "--generalize": (
        lambda args: [*args, "--generalize"],
        "--generalize: is now --levels chain, which suppresses more rows",
    ),
    "--steps": (
        lambda args: [*args, "--steps", "chain"],
        "--steps: is now --levels: chain, or a file of steps",
    ),
    "--round": (
        lambda args: [*args, "--round", "age=10"],
        "--round: make intervals with 'zanon-net table hierarchy --intervals' and give them",
    ),
    "a column that is not there": (
        lambda args: [
            arg.replace("town=", "city=") if "=" in arg else arg.replace("town,", "city,")
            for arg in args
        ],
        "has no column 'city'; name the right one with --attribute",
    ),
    "a column is passed on, too": (
        lambda args: [*args, "--pass", "trade"],
        "--pass: 'trade' is named already; each column has one role",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_options_that_do_not_fit_end_it_with_2(
    kind: str, files: list[str], capsys: Captured
) -> None:
    change, problem = BAD[kind]
    assert main(["filter", *change(files)]) == 2
    out, err = capsys.readouterr()
    assert problem in err
    assert sum("warning:" not in line for line in err.splitlines()) == 1
    assert out == ""


def test_a_file_of_settings_names_the_option_that_replaces_a_key(
    files: list[str], tmp_path: Path, capsys: Captured
) -> None:
    settings = tmp_path / "filter.toml"
    settings.write_text("[filter]\ngeneralize = true\n")
    assert main(["filter", "--config", str(settings), *files]) == 2
    found = "[filter] unknown key 'generalize'; generalize is now --levels chain, which suppresses"
    assert found in capsys.readouterr().err


STEPS = {
    "0,0\n1,1\n": "",
    "0 0\n\n0 1\n2 1\n": "",
    "0,0\n1\n": ": line 2: must be 2 whole numbers, a level for each attribute",
    "0,x\n": ": line 1: must be 2 whole numbers, a level for each attribute",
    "0,0\n0,3\n": ": line 2: attribute 2 has levels 0 to 2, not 3",
    "0,0\n0,1\n\n1,0\n": ": line 4: must be coarser than the step before in a column",
    "0,0\n0,1\n0,1\n": ": line 3: must be coarser than the step before in a column",
    "\n": " has no step",
}


@pytest.mark.parametrize("steps", STEPS)
def test_steps_of_a_file_are_nested(
    steps: str, files: list[str], tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "steps.txt").write_text(steps)
    code = main(["filter", *files, "--levels", str(tmp_path / "steps.txt"), "--json"])
    out, err = capsys.readouterr()
    if STEPS[steps]:
        assert (code, out) == (2, "")
        assert f"--levels: steps.txt{STEPS[steps]}" in err
        return
    assert code == 0
    manifest = json.loads(err[err.index("{") :])
    assert manifest["configuration"]["levels"] == "steps.txt"
    assert [step["levels"] for step in manifest["levels"]["steps"]] == [
        list(map(int, line.replace(",", " ").split())) for line in steps.split("\n") if line
    ]


def test_a_broken_hierarchy_ends_it_with_its_line(
    files: list[str], tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "town.csv").write_text("Essen;west;*\nEssen;west;*\n")
    assert main(["filter", *files]) == 1
    assert "town.csv: line 2: its value has a line already" in capsys.readouterr().err
    (tmp_path / "town.csv").write_text("Essen;north;*\nBonn;west;*\nParis;west;*\n")
    assert main(["filter", *files]) == 0
    assert "warning: town.csv: line 1: a node with one child" in capsys.readouterr().err


def test_too_many_steps_are_refused_with_what_to_do(tmp_path: Path) -> None:
    levels = ";".join(f"{level}" for level in range(7))
    names = {}
    for name in "abc":
        names[name] = str(tmp_path / name)
        (tmp_path / name).write_text(f"x;{levels};*\ny;{levels};*\n")
    _config, ladder = ladder_of(names)
    assert len(ladder.steps) == 24
    assert ladder.steps[0] == (0, 0, 0)
    many = ";".join(f"{level}" for level in range(62))
    for name in "abc":
        (tmp_path / name).write_text(f"x;{many};*\ny;{many};*\n")
    with pytest.raises(ConfigError, match=r"^hierarchy: a chain must have 1 to 64 steps, not 189"):
        ladder_of(names)
    alone = tmp_path / "alone"
    alone.write_text("*\n")
    with pytest.raises(ConfigError, match=r"^hierarchy: a chain must have 1 to 64 steps, not 0"):
        ladder_of({"a": str(alone)})


def test_a_chain_coarsens_one_column_at_a_time_where_least_is_lost(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1;x;*\n2;x;*\n3;x;*\n4;y;*\n")
    (tmp_path / "b").write_text("1;*\n2;*\n")
    _config, ladder = ladder_of({name: str(tmp_path / name) for name in "ab"})
    assert ladder.steps == ((0, 0), (1, 0), (2, 0))
    assert ladder.expected == (0, 0.25, 0.5)


def test_the_clock_is_set_back_after_as_many_rows_as_without_a_ladder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;*\ny;*\n")
    hierarchy = ("--levels", "chain", "--hierarchy", f"attribute={tmp_path / 'a.csv'}")
    late = "".join(f"{second},u{second % 3},x\n" for second in range(300))
    data = f"time,user,attribute\n999999,u,x\n{late}".encode()
    found = [
        run_here("filter", "--time-unit", "s", "--z", "2", "--json", *more, stdin=data)
        for more in ((), hierarchy)
    ]
    for done in found:
        assert done.returncode == 0
        decisions = json.loads(done.stderr)["decisions"]
        assert decisions["clock_jumps"] == 1
        assert decisions["suppressed"]["too_late"] == 255
        assert decisions["observations"] == 301
    lines = [[line.split(b",")[0] for line in done.stdout.splitlines()[1:]] for done in found]
    assert lines[0] == lines[1]


def test_rows_without_a_ladder_are_as_ever() -> None:
    """The manifest has no word of it, and a name with a comma is one column."""
    data = b'time,user,"a,b"\n1,u,x\n2,v,x\n'
    done = run_here(
        "filter",
        "--time-unit",
        "s",
        "--z",
        "2",
        "--attribute",
        "a,b",
        "--no-user",
        "--json",
        stdin=data,
    )
    assert done.stdout == b'time,"a,b"\n2,x\n'
    text = done.stderr.decode()
    assert not [word for word in ("levels", "generalize", "hierarchy", "unknown") if word in text]


# ---- zanon-net table hierarchy ------------------------------------------------------------------

TABLE = "zip,age,born\n13053,28,2024-01-05\n13068,29,2024-02-01\n14850,,2023-12-31\n"
MADE = {
    "--column zip --prefix 5,3,2,0": [
        "13053;130**;13***;*",
        "13068;130**;13***;*",
        "14850;148**;14***;*",
    ],
    "--column age --intervals 5,10,20": [
        ";;;;*",
        "28;25-29;20-29;20-39;*",
        "29;25-29;20-29;20-39;*",
    ],
    "--column born --dates month,year": [
        "2023-12-31;2023-12;2023;*",
        "2024-01-05;2024-01;2024;*",
        "2024-02-01;2024-02;2024;*",
    ],
    "--column zip": ["13053;*", "13068;*", "14850;*"],
}
REFUSED = {
    "": "--column: name the column",
    "--column zap": "rows.csv: there is no column 'zap'",
    "--column zip --prefix 3,5": "--prefix: must be fewer characters from level to level",
    "--column zip --prefix x": "--prefix: must be a number",
    "--column age --intervals 5,7": "--intervals: each must be a multiple",
    "--column born --intervals 5": "column 'born': 3 of its values are no numbers",
    "--column zip --dates day": "column 'zip': 3 of its values are no dates",
    "--column zip --dates week": "--dates: 'week' is not one of",
    "--column zip --dates day --prefix 3": "--dates: give it or --prefix, not both",
}


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize("options", MADE)
def test_a_hierarchy_is_made_of_a_column(options: str, table: str, capsys: Captured) -> None:
    assert main(["table", "hierarchy", table, *options.split()]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == MADE[options]
    assert err == ""


@pytest.mark.parametrize("options", REFUSED)
def test_a_hierarchy_that_cannot_be_made_is_refused(
    options: str, table: str, capsys: Captured
) -> None:
    assert main(["table", "hierarchy", table, *options.split()]) == 2
    out, err = capsys.readouterr()
    assert REFUSED[options] in err
    assert err.count("\n") == 1
    assert out == ""
    assert "13053" not in err
