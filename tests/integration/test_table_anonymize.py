# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table anonymize` from the command line: what it writes, and what it never says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from support.cli import COMMAND, ENVIRONMENT, limited

from zanon_net.cli import main
from zanon_net.microdata import anonymizing

Captured = pytest.CaptureFixture[str]

HEADER = "name,age,zip,sex,disease"
PEOPLE = [f"CANARY{i},{20 + i % 60},{13000 + i % 4},{'fm'[i % 2]},d{i % 5}" for i in range(200)]
STRANGER = "CANARYx,9753,13999,m,dCANARY"
ZIPS = [f"{zip_};130**;*" for zip_ in (13000, 13001, 13002, 13003)]
QUASI = ("--quasi", "age,zip,sex", "--sensitive", "disease")
RECODED = ("--round", "age=10", "--clip", "age=..70", "--hierarchy", "zip=zip.csv")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("\n".join([HEADER, *PEOPLE, ""]), "utf-8")
    (tmp_path / "zip.csv").write_text("\n".join([*ZIPS, ""]), "utf-8")
    return tmp_path


def anonymize(*arguments: object) -> int:
    return main(["table", "anonymize", *map(str, arguments)])


def rows_of(path: str) -> list[dict[str, Any]]:
    table = pq.read_table(path) if path.endswith("parquet") else pyarrow.csv.read_csv(path)
    return [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]


def test_the_table_its_manifest_and_the_curve(folder: Path, capsys: Captured) -> None:
    asked = ("--k", 5, "--l", 3)
    for out in ("out.csv", "out.jsonl", "out.parquet"):
        curve = ("--curve", "k.svg") if out == "out.csv" else ()
        assert anonymize("data.csv", *QUASI, *RECODED, *asked, "--out", out, *curve) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "rows in     200" in said.err
    assert main(["table", "check", "out.parquet", *QUASI, "--k", "5", "--l", "3", "-q"]) == 0
    assert rows_of("out.csv") == rows_of("out.parquet")
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert lines[0] == "age,zip,sex,disease"
    assert lines[1:] == sorted(lines[1:])
    assert [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    manifest = json.loads(Path("out.csv.json").read_text("utf-8"))
    assert (manifest["rows_in"], manifest["rows_out"]) == (200, 200)
    assert manifest["k"] >= 5
    assert manifest["configuration"]["hierarchy"] == {"zip": "zip.csv"}
    assert Path("k.svg").read_text("utf-8").startswith("<?xml")
    written = b"".join(path.read_bytes() for path in folder.iterdir() if "." in path.name[1:])
    assert b".partial" not in written
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["data.csv", "zip.csv", "k.svg"]
        + [
            f"out.{suffix}{more}"
            for suffix in ("csv", "jsonl", "parquet")
            for more in ("", ".json")
        ]
    )


def test_standard_output_and_the_same_bytes_each_time(capsys: Captured) -> None:
    assert anonymize("data.csv", *QUASI, "--k", 5, "--json") == 0
    first = capsys.readouterr()
    assert json.loads(first.err)["method"] == "topdown"
    shuffled = [PEOPLE[i * 77 % 200] for i in range(200)]
    Path("other.csv").write_text("\n".join([HEADER, *shuffled, ""]), "utf-8")
    Path("zip.csv").write_text("\n".join([*reversed(ZIPS), ""]), "utf-8")
    assert anonymize("other.csv", *QUASI, "--k", 5, "--quiet") == 0
    second = capsys.readouterr()
    assert (second.out, second.err) == (first.out, "")


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl", "out.parquet"])
def test_nothing_of_a_suppressed_row_or_dropped_column_appears(
    folder: Path, capsys: Captured, out: str
) -> None:
    Path("data.csv").write_text("\n".join([HEADER, *PEOPLE, STRANGER, ""]), "utf-8")
    arguments = (
        "data.csv",
        *QUASI,
        "--hierarchy",
        "zip=zip.csv",
        "--round",
        "age=20",
        "--out",
        out,
    )
    curve = ("--curve", "k.html") if out == "out.csv" else ()
    assert anonymize(*arguments, "--unknown", "suppress", "--k", 2, *curve) == 0
    assert anonymize(*arguments) == 2  # it has a value that its hierarchy does not have
    with_zip = [*ZIPS, "13999;139**;*", ""]
    Path("zip.csv").write_text("\n".join(with_zip), "utf-8")
    fixed = ("--method", "fixed", "--suppress", "1%", "--k", 3)
    assert anonymize(*arguments[:-1], f"fixed.{out}", *fixed, "--json") == 0
    said = capsys.readouterr()
    assert '"users": 1' in said.out
    left = [path for path in folder.iterdir() if path.name not in ("data.csv", "zip.csv")]
    assert len(left) == 4 + len(curve) // 2
    everything = said.out + said.err + "".join(path.read_bytes().decode("latin-1") for path in left)
    for secret in ("CANARY", "13999", "139**", "9753", "9740"):
        assert secret not in everything, secret


def test_passed_columns_are_written_with_a_warning(capsys: Captured) -> None:
    assert anonymize("data.csv", *QUASI, "--k", 5, "--pass", "name", "-q") == 0
    said = capsys.readouterr()
    assert said.out.count("CANARY") == 200
    assert "warning: column 'name' is written as it is: it is not protected" in said.err


def test_users_are_counted_and_never_written(capsys: Captured) -> None:
    people = [f"CANARY{i % 3},30,13000,f,d{i % 5}" for i in range(30)]
    Path("data.csv").write_text("\n".join([HEADER, *people, ""]), "utf-8")
    assert anonymize("data.csv", *QUASI, "--user", "name", "--k", 3) == 0
    assert anonymize("data.csv", *QUASI, "--user", "name", "--k", 4) == 2
    said = capsys.readouterr()
    assert "30 of 3 users in 1 classes" in said.err
    assert "--k: 4 is more than the 3 users that there are" in said.err
    assert "CANARY" not in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--quasi", "age"], "nothing.csv cannot be read"),
        (["--quasi", "weight"], "there is no column 'weight'"),
        (["--sensitive", "disease"], "--quasi: name 1 to 16 columns"),
        ([*QUASI, "--l", 6], "--l: 6 is more than the 5 values of column 'disease'"),
        ([*QUASI, "--k", 201], "--k: 201 is more than the 200 rows"),
        ([*QUASI, "--max-share", 0.1], "--max-share: one value"),
        ([*QUASI, "--method", "fixed", "--k", 5], "rows (100.00%) are in classes that do not"),
        ([*QUASI, "--level", "zip=1"], "--level: are for the method fixed"),
        ([*QUASI, "--method", "fixed", "--level", "zip=9"], "--level: 'zip' needs a"),
        ([*QUASI, "--method", "fixed", "--level", "zap=1"], "--level: 'zap' is not among"),
        ([*QUASI, "--level", "zip=x"], "--level: must be COLUMN=LEVEL"),
        ([*QUASI, "--suppress", "5%%"], "--suppress: must be a share such as 5% or 0.05"),
        ([*QUASI, "--suppress", "101%"], "--suppress: must be a share"),
        ([*QUASI, "--out", "data.xls"], "data.xls: its name does not end in"),
        ([*QUASI, "--out", "data.csv"], "data.csv exists, and nothing is ever overwritten"),
        ([*QUASI, "--curve", "k.pdf"], "--curve: k.pdf must end in .png, .svg, .html"),
        ([*QUASI, "--hierarchy", "zip=bad.csv"], "bad.csv: line 2 has 2 columns"),
        ([*QUASI, "--hierarchy", "zip=part.csv"], "column 'zip': 50 rows, the first one row 4,"),
        ([*QUASI, "--round", "sex=10"], "column 'sex'"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    folder: Path, capsys: Captured, arguments: list[object], problem: str
) -> None:
    Path("bad.csv").write_text("13000;130**;*\n13001;*\n", "utf-8")
    Path("part.csv").write_text("\n".join([*ZIPS[:3], ""]), "utf-8")
    before = sorted(folder.iterdir())
    source = "nothing.csv" if "cannot be read" in problem else "data.csv"
    code = 1 if any(word in problem for word in ("be read", "in classes", "bad.csv")) else 2
    assert anonymize(source, *arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("zanon-net: ")
    assert said.err.count("\n") == 1
    assert problem in said.err
    assert "CANARY" not in said.err
    assert sorted(folder.iterdir()) == before


def test_a_configuration_file(capsys: Captured) -> None:
    Path("table.toml").write_text(
        '[table]\nquasi = ["zip", "sex"]\nk = 100\nmethod = "fixed"\nlevel = { zip = 1 }\n'
        'hierarchy = { zip = "zip.csv" }\nsuppress = "5%"\n',
        "utf-8",
    )
    assert anonymize("data.csv", "--config", "table.toml", "-q") == 0
    assert set(capsys.readouterr().out.splitlines()) == {"zip,sex", "130**,f", "130**,m"}


def test_a_full_disk_leaves_nothing(folder: Path) -> None:
    before = sorted(folder.iterdir())
    command = limited(500, *COMMAND, "table", "anonymize", "data.csv", *QUASI, "--out", "o.csv")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_the_lattice_says_its_levels_and_loses_no_more_than_it_may(capsys: Captured) -> None:
    Path("data.csv").write_text("\n".join([HEADER, *PEOPLE, STRANGER, ""]), "utf-8")
    asked = ("--method", "lattice", "--k", 4, "--suppress", "0.5%", "--round", "age=10")
    assert anonymize("data.csv", *QUASI, *asked, "--json", "--out", "o.csv") == 0
    manifest = json.loads(capsys.readouterr().out)
    assert set(manifest["levels"]) == {"age", "zip", "sex"}
    assert manifest["rows_out"] + manifest["suppressed"]["users"] == 201
    assert manifest["suppressed"]["users"] <= 1


def test_whole_numbers_have_ranges_of_their_own_accord() -> None:
    table = pyarrow.csv.read_csv("data.csv", convert_options=pyarrow.csv.ConvertOptions())
    found = anonymizing.anonymize(table, anonymizing.Plan(quasi=["age"], k=10)).table
    assert "20-22" in found.column("age").to_pylist()


def test_all_of_it_is_written_or_an_error(tmp_path: Path) -> None:
    """Unbuffered, a write may be cut: by a limit here. A closed output is an error, too."""
    data = tmp_path / "data.csv"
    data.write_text("a,s\n" + "".join(f"{'x' * 50}{n % 3},{n % 2}\n" for n in range(4000)))
    words = f'"{sys.executable}" -m zanon_net table anonymize "{data}" --quasi a -q'
    environment = {**ENVIRONMENT, "PYTHONUNBUFFERED": "1"}
    for command, problem in (
        (f"ulimit -f 20; {words} > cut", b"cannot write standard output: "),
        (f"{words} >&-", b"standard output is closed"),
    ):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"zanon-net: " + problem)
        assert done.stderr.count(b"\n") == 1


def test_a_quote_of_a_person_takes_no_line_of_another_in(tmp_path: Path, capsys: Captured) -> None:
    lines = ['ann\ttcp\t"begin', "bob\ttcp\tsecret-clinic", 'ann\ttcp\tend"', "cat\ttcp\tone"]
    data = tmp_path / "conn.tsv"
    data.write_text("\n".join(["user\tproto\tagent", *lines, ""]))
    words = [str(data), "--delimiter", "tab", "--quasi", "proto", "--sensitive", "agent"]
    assert anonymize(*words, "--user", "user", "--k", 3, "--l", 2, "-q") == 0
    agents = [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()]
    assert agents == ["agent", '"begin', 'end"', "one", "secret-clinic"]
    assert main(["table", "check", *words, "--k", "4", "-q"]) == 0
    assert main(["table", "hierarchy", str(data), "--column", "agent", "--delimiter", "tab"]) == 0
    assert capsys.readouterr().out.count("\n") == 4


def test_rows_of_blanks_are_rows(tmp_path: Path) -> None:
    data = tmp_path / "blanks.tsv"
    data.write_text("a\ts\n\t\n\t\n")
    words = ["table", "check", str(data), "--quasi", "a", "--delimiter", "tab", "-q", "--k"]
    assert [main([*words, k]) for k in ("2", "3")] == [0, 3]
