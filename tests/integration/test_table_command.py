# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table check` and `table risk` from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import ENVIRONMENT

from zanon_net.cli import main

Captured = pytest.CaptureFixture[str]

ROWS = """\
age,zip,sex,disease,id
31,13053,f,SECRETflu,1
37,13053,m,SECRETcold,2
36,13068,f,SECRETflu,3
52,13068,m,SECRETflu,4
59,14850,f,,5
"""
SHARED = """\
age,zip,disease
30-39,130**,SECRETcold
30-39,130**,SECRETflu
30-39,130**,SECRETflu
50-59,*,
50-59,*,SECRETflu
"""
ZIPS = "13053;130**;*\n13068;130**;*\n14850;148**;*\n"
QUASI = ("--quasi", "age,zip", "--sensitive", "disease")
RECODED = ("--round", "age=10", "--hierarchy", "zip=zip.csv")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, content in (("data.csv", ROWS), ("shared.csv", SHARED), ("zip.csv", ZIPS)):
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


def table(*arguments: object) -> int:
    return main(["table", *map(str, arguments)])


def manifest(capsys: Captured, *arguments: object, code: int = 0) -> dict[str, Any]:
    assert table(*arguments, "--json") == code
    said = capsys.readouterr()
    assert "SECRET" not in said.out + said.err
    return dict(json.loads(said.out))


# ---- check --------------------------------------------------------------------------------------


def test_check_says_what_holds(capsys: Captured) -> None:
    assert table("check", "shared.csv", *QUASI) == 0
    said = capsys.readouterr()
    assert "rows        5 in 2 classes" in said.out
    assert "2 distinct" in said.out
    assert said.err == ""
    found = manifest(capsys, "check", "shared.csv", *QUASI)
    assert (found["name"], found["source"]) == ("zanon-net table check", "shared.csv")
    assert (found["k"], found["sensitive"]["disease"]["l"], found["holds"]) == (2, 2, True)
    assert found["configuration"]["quasi"] == ["age", "zip"]


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (["--k", 2, "--l", 2], True),
        (["--k", 3], False),
        (["--l", 3], False),
        (["--l", 2, "--l-kind", "entropy"], False),
        (["--l", 2, "--l-kind", "recursive:2.5"], True),
        (["--l", 2, "--l-kind", "recursive:2"], False),
        (["--max-share", 0.7], True),
        (["--max-share", 0.6], False),
        (["--t", 0.5], True),
        (["--t", 0.1], False),
    ],
)
def test_what_does_not_hold_is_exit_code_3(
    capsys: Captured, asked: list[object], holds: bool
) -> None:
    found = manifest(capsys, "check", "shared.csv", *QUASI, *asked, code=0 if holds else 3)
    assert found["holds"] is holds
    assert any(failed["classes"] for failed in found["failed"].values()) is not holds
    assert table("check", "shared.csv", *QUASI, *asked) == (0 if holds else 3)
    assert ("does not hold" in capsys.readouterr().out) is not holds
    assert table("check", "shared.csv", *QUASI, *asked, "--quiet") == (0 if holds else 3)
    assert capsys.readouterr() == ("", "")


def test_the_class_of_one_user(capsys: Captured, folder: Path) -> None:
    (folder / "users.csv").write_text("q,u\n1,a\n1,a\n2,a\n2,b\n", "utf-8")
    assert manifest(capsys, "check", "users.csv", "--quasi", "q")["k"] == 2
    assert manifest(capsys, "check", "users.csv", "--quasi", "q", "--user", "u")["k"] == 1


def test_check_knows_the_loss_where_it_knows_the_hierarchy(capsys: Captured) -> None:
    options = ("--round", "age=10", "--clip", "age=30..59", "--hierarchy", "zip=zip.csv")
    loss = manifest(capsys, "check", "shared.csv", *QUASI, *options)["loss"]
    assert loss["columns"]["zip"] == pytest.approx((3 * 0.5 + 2 * 1) / 5)
    assert loss["unknown_rows"] == {"age": 5}  # with both ends cut it is <40 and 50+


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_formats(capsys: Captured, folder: Path, form: str) -> None:
    rows = [{"age": 30, "zip": "x"}, {"age": 30, "zip": "x"}, {"age": None, "zip": "y"}]
    path = folder / "rows"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = manifest(capsys, "check", path, "--quasi", "age", "--sensitive", "zip")
    assert (found["rows"], found["classes"], found["k"]) == (3, 2, 1)


def test_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zanon_net", "table", "check", "-", *QUASI, "--json"],
        input=SHARED.encode(),
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    assert json.loads(done.stdout)["k"] == 2


def test_help_loads_neither_numpy_nor_pyarrow() -> None:
    program = (
        "import sys; from zanon_net.cli import main; main(['table', 'check', '--help']);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow')))"
    )
    command = [sys.executable, "-c", program]
    assert (
        subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False).returncode == 0
    )


# ---- risk ---------------------------------------------------------------------------------------


def test_risk_before_and_after(capsys: Captured) -> None:
    before = manifest(capsys, "risk", "data.csv", "--original", "data.csv", *QUASI)
    attack = before["attack"]["release"]
    assert (attack["re_id_1"], attack["attribute"]["disease"]["hit"]) == (1.0, 1.0)
    after = manifest(capsys, "risk", "shared.csv", "--original", "data.csv", *QUASI, *RECODED)
    attack = after["attack"]["release"]
    assert attack["targets"] == 5
    assert attack["re_id_1"] == pytest.approx((3 / 3 + 2 / 2) / 5)
    # 30-39: flu is right for two of three; 50-59: either value is as frequent.
    assert attack["attribute"]["disease"]["hit"] == pytest.approx((2 + 1) / 5)
    assert attack["attribute"]["disease"]["base"] == pytest.approx(3 / 5)
    assert after["loss"]["columns"]["zip"] == pytest.approx((3 * 0.5 + 2 * 1) / 5)
    assert after["rows"] == {"original": 5, "released": 5}
    assert table("risk", "shared.csv", "--original", "data.csv", *QUASI, *RECODED) == 0
    assert "re-ID       @1 40.0%, @5 100.0% of 5 rows" in capsys.readouterr().out


def test_risk_says_what_it_cannot_explain(capsys: Captured) -> None:
    found = manifest(capsys, "risk", "shared.csv", "--original", "data.csv", *QUASI)
    assert found["attack"]["release"]["targets"] == 2
    assert found["notes"][0].startswith("3 released rows have a value of 'zip' that contains no")


def test_the_risk_of_an_attacker_who_does_not_know_who_is_in_the_table(
    capsys: Captured, folder: Path
) -> None:
    people = [f"{20 + i % 30},{'fm'[i % 2]}" for i in range(300)]
    (folder / "all.csv").write_text("\n".join(["age,sex", *people, ""]))
    (folder / "some.csv").write_text("\n".join(["age,sex", *people[:60], ""]))
    (folder / "other.csv").write_text("\n".join(["age,sex", *people[:60], "99,f", ""]))
    risk = ("risk", "some.csv", "--quasi", "age,sex")
    found = manifest(capsys, *risk, "--population", "all.csv")
    assert found["configuration"]["population"] == "all.csv"
    assert (found["k"], found["journalist"]["k_map"]) == (2, 10)
    assert found["journalist"]["max"] == pytest.approx(1 / 10)
    assert found["journalist"]["mean"] == pytest.approx(1 / 10)
    found = manifest(capsys, *risk, "--sampling", "20%")["journalist"]
    assert (found["population"], found["k_map"], found["unique_rows"]) == (300, 10, 0)
    assert 1 / 10 < found["max"] < 1 / 5
    assert table(*risk, "--sampling", "0.2", "--original", "some.csv") == 0
    said = capsys.readouterr().out
    assert "journalist  at most" in said
    assert "re-ID" in said
    assert table(*risk, "--population", "other.csv") == 0
    assert table("risk", "other.csv", "--quasi", "age,sex", "--population", "all.csv") == 0
    assert "1 of 61 (1.6%) released rows have no person" in " ".join(
        capsys.readouterr().out.split()
    )


def test_the_window_of_a_target(capsys: Captured, folder: Path) -> None:
    """Two targets look the same, and only their times part them."""
    (folder / "in.csv").write_text("t,q,s\n0,a,x\n1,b,y\n60,a,x\n61,b,y\n", "utf-8")
    (folder / "out.csv").write_text("t,q,s\n10,*,x\n10,*,y\n70,*,x\n70,*,y\n", "utf-8")
    options = ("--original", "in.csv", "--quasi", "q", "--sensitive", "s")
    timed = ("--time", "t", "--time-unit", "s", "--delay", "10s")
    found = manifest(capsys, "risk", "out.csv", *options, *timed)["attack"]
    assert found["release"]["re_id_1"] == pytest.approx(1 / 4)
    assert found["window"]["re_id_1"] == pytest.approx(1 / 2)
    assert found["window"]["targets"] == 4
    late = manifest(capsys, "risk", "out.csv", *options, *timed[:-1], "5s")["attack"]
    assert late["window"]["targets"] == 0
    for name in ("in.csv", "out.csv"):
        text = (folder / name).read_text("utf-8").splitlines()
        stamped = [
            f"2026-11-01T00:{int(line[:-4]) // 60:02}:{int(line[:-4]) % 60:02}.5+00:00{line[-4:]}"
            for line in text[1:]
        ]
        (folder / name).write_text("\n".join([text[0], *stamped, ""]), "utf-8")
    timed = ("--time", "t", "--delay", "10s")
    assert manifest(capsys, "risk", "out.csv", *options, *timed)["attack"] == found


# ---- settings out of a file ---------------------------------------------------------------------


def test_a_configuration_file(capsys: Captured, folder: Path) -> None:
    (folder / "conf").mkdir()
    (folder / "conf" / "zip.csv").write_text(ZIPS, "utf-8")
    (folder / "conf" / "t.toml").write_text(
        '[table]\nquasi = ["age", "zip"]\nsensitive = "disease"\nk = 3\noriginal = "../data.csv"\n'
        'round = {age = "10"}\nhierarchy = {zip = "zip.csv"}\n',
        "utf-8",
    )
    assert table("check", "shared.csv", "--config", "conf/t.toml", "-q") == 3
    found = manifest(capsys, "check", "shared.csv", "--config", "conf/t.toml", "--k", 2)
    assert found["configuration"]["hierarchy"] == {"zip": "zip.csv"}
    found = manifest(capsys, "risk", "shared.csv", "--config", "conf/t.toml")
    assert found["configuration"]["original"] == "data.csv"
    assert found["attack"]["release"]["targets"] == 5


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "[tables]\n",
            "c.toml: unknown section ['tables']; did you mean 'table'? (at line 1, column 1)",
        ),
        (
            "[table]\nquasy = 'a'\n",
            "c.toml: [table] unknown key 'quasy'; did you mean 'quasi'? (at line 2, column 1)",
        ),
        (
            "[table]\nk = 'x'\n",
            "c.toml: [table] k: must be a whole number, not 'x' (at line 2, column 1)",
        ),
        (
            "table = 5\n",
            "c.toml: table is a section; write [table] and its keys below (at line 1, column 1)",
        ),
        (
            "[table]\nround = ['age']\n",
            "c.toml: [table] round: must be COLUMN=WIDTH, not 'age' (at line 2, column 1)",
        ),
    ],
)
def test_a_wrong_configuration_file(
    capsys: Captured, folder: Path, content: str, problem: str
) -> None:
    (folder / "c.toml").write_text(content, "utf-8")
    assert table("check", "shared.csv", "--config", "c.toml") == 2
    assert capsys.readouterr().err == f"zanon-net: {problem}\n"


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_columns_whose_names_contain_commas(separator: str, capsys: Captured, folder: Path) -> None:
    name = "delimiter", "tab" if separator == "\t" else separator
    rows = ['"income, net"', "age", '"a ""b"", c"'], ["10", "1", "x"], ["10", "1", "y"]
    (folder / "c.csv").write_text("".join(separator.join(row) + "\n" for row in rows))
    (folder / "c.toml").write_text(
        '[table]\nquote = "csv"\nquasi = ["income, net", "age"]\nsensitive = [\'a "b", c\']\n'
    )
    delimiter = (f"--{name[0]}", name[1])
    found = manifest(capsys, "check", "c.csv", *delimiter, "--config", "c.toml")
    assert (found["k"], found["sensitive"]['a "b", c']["values"]) == (2, 2)
    options = ("--quote", "csv", "--quasi", '"income, net",age', "--sensitive", '"a ""b"", c"')
    assert manifest(capsys, "check", "c.csv", *delimiter, *options)["k"] == 2
    rounded = (*options, "--round", "income, net=10", "--k", "2")
    assert table("anonymize", "c.csv", *delimiter, *rounded, "-q") == 0
    assert "income, net" in capsys.readouterr().out


def test_a_table_without_rows_meets_no_requirement(capsys: Captured, folder: Path) -> None:
    (folder / "e.csv").write_text("age,sex\n")
    assert table("check", "e.csv", "--quasi", "age,sex", "--k", 5) == 3
    said = capsys.readouterr().out
    assert "the table has no row" in said
    assert "does not hold" in said
    assert table("check", "e.csv", "--quasi", "age,sex") == 0


# ---- errors -------------------------------------------------------------------------------------

INPUTS = {
    "array.json": b'\n [{"age":1},{"age":2}]\n',
    "in.csv": b"t,q\n1,a\n",
    "comma.csv": b'"a, b",c\n1,2\n',
    "utf16.csv": "age,zip\n1,2\n".encode("utf-16"),
    "bare16.csv": "age,zip\n1,2\n".encode("utf-16-be"),
    "book.xlsx": b"PK\x03\x04" + bytes(100),
}
CHECK = ("check", "shared.csv")
RISK = ("risk", "shared.csv", "--original", "data.csv")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((*CHECK,), 2, "--quasi: name 1 to 16 columns"),
        ((*CHECK, "--quasi", "agee"), 2, "shared.csv: there is no column 'agee'; did you mean"),
        ((*CHECK, "--quasi", "age,age"), 2, "--quasi: 'age' is named twice"),
        ((*CHECK, *QUASI, "--user", "age"), 2, "--user: 'age' is named already"),
        ((*CHECK, "--quasi", "age", "--l", 2), 2, "--l: is about sensitive values"),
        ((*CHECK, *QUASI, "--k", 0), 2, "--k: must be from 1"),
        ((*CHECK, *QUASI, "--max-share", 2), 2, "--max-share: must be a number from 0 to 1"),
        ((*CHECK, *QUASI, "--l-kind", "most"), 2, "--l-kind: must be distinct, entropy or"),
        ((*CHECK, *QUASI, "--round", "age"), 2, "--round: must be COLUMN=WIDTH"),
        ((*CHECK, *QUASI, "--round", "sex=1"), 2, "--round: 'sex' is not among the quasi-ident"),
        ((*CHECK, *QUASI, "--round", "age=x"), 2, "--round: must be a number"),
        ((*CHECK, *QUASI, "--round", "age=0"), 2, "--round: must be a width above 0"),
        ((*CHECK, *QUASI, "--clip", "age=1..2"), 2, "--clip: 'age' has no --round"),
        ((*CHECK, *QUASI, "--round", "age=1", "--clip", "age=5"), 2, "--clip: must be LOW..HIGH"),
        ((*CHECK, *QUASI, "--hierarchy", "zip=no.csv"), 1, "no.csv cannot be read: No such file"),
        ((*CHECK, *QUASI, "--hierarchy", "zip=data.csv"), 1, "data.csv: line"),
        ((*CHECK, *QUASI, "--config", "no.toml"), 1, "cannot read no.toml"),
        (("check", "no.csv", *QUASI), 1, "no.csv cannot be read: No such file or directory"),
        (("check", ".", *QUASI), 1, ". is a folder; name a file"),
        (("check", "zip.csv", *QUASI), 2, "zip.csv: the header is a single column; choose the"),
        ((*CHECK, "--quasi", '"a'), 2, "--quasi: a name with a comma is in double quotes"),
        (("check", "comma.csv", "--quasi", "a, b"), 2, "comma.csv: there is no column 'a'; "),
        (("check", "array.json", *QUASI), 1, "array.json: a JSON array is not JSON Lines"),
        (("check", "utf16.csv", *QUASI), 1, "utf16.csv: its text is UTF-16 or UTF-32; save it"),
        (("check", "bare16.csv", *QUASI), 1, "bare16.csv: its text is UTF-16 or UTF-32"),
        (("check", "book.xlsx", *QUASI), 1, "book.xlsx: it is a ZIP archive or a workbook"),
        (("risk", "shared.csv", *QUASI), 2, "--original: name the table before"),
        (("risk", "shared.csv", *QUASI, "--sampling", 0), 2, "--sampling: must be a share above"),
        (("risk", "shared.csv", *QUASI, "--sampling", "x"), 2, "--sampling: must be a share such"),
        (
            ("risk", "in.csv", "--quasi", "q", "--sampling", "5%", "--time", "t", "--delay", "1s"),
            2,
            "--time: is for the attack with the original",
        ),
        ((*RISK, *QUASI, "--sampling", "5%", "--population", "data.csv"), 2, "--sampling: give it"),
        ((*RISK, "--quasi", "age", "--population", "zip.csv"), 2, "zip.csv: the header is a si"),
        ((*RISK, *QUASI, "--time", "t"), 2, "--delay: give --time and --delay together"),
        ((*RISK, *QUASI, "--round", "zip=10", "--hierarchy", "zip=zip.csv"), 2, "--round: 'zip'"),
        ((*RISK, "--quasi", "sex"), 2, "shared.csv: there is no column 'sex'"),
        ((*RISK, *QUASI, "--round", "zip=1", "--round", "zip=2"), 2, "--round: 'zip' is given tw"),
    ],
)
def test_errors_are_one_line(
    capsys: Captured, folder: Path, arguments: tuple[object, ...], code: int, problem: str
) -> None:
    for name, content in INPUTS.items():
        (folder / name).write_bytes(content)
    assert table(*arguments) == code
    said = capsys.readouterr()
    assert said.err.startswith(f"zanon-net: {problem}")
    assert (said.err.count("\n"), said.out) == (1, "")
    assert "SECRET" not in said.err


def test_a_row_that_cannot_be_read(capsys: Captured, folder: Path) -> None:
    (folder / "bad.csv").write_text(SHARED + 'SECRET"x,1,2\n', "utf-8")
    assert table("check", "bad.csv", *QUASI) == 1
    problem = "bad.csv: line 7: a quote or a line break in the wrong place"
    assert capsys.readouterr().err == f"zanon-net: {problem}\n"


def test_without_pyarrow_the_line_to_type_is_said(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert table(*CHECK, *QUASI) == 1
    assert "pip install 'zanon-net[table]'" in capsys.readouterr().err


def test_no_space_for_the_manifest() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "zanon_net", "table", *CHECK, *QUASI, "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert done.stderr.count(b"\n") == 1
