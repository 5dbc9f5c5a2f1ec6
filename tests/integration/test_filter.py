# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` as a command: options, messages, exit codes."""

import json
import os
import re
from pathlib import Path

import pytest
from support.filter import run_filter
from support.filter_run import HEADER, ROWS, SECRETS, Captured, run_main, usual

from zanon_net.cli.options import filter_options
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.errors import ConfigError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)


# ---- what is said where -------------------------------------------------------------------------


def test_help(capsys: Captured) -> None:
    assert run_main("--help-all") == 0
    said = capsys.readouterr()
    titles = re.findall(r"^(\w[\w ()]+):$", said.out, re.MULTILINE)
    assert titles[:7] == [
        "Anonymity",
        "Columns",
        "Logs of other tools",
        "Generalization",
        "Lists of names",
        "Pseudonyms",
        "Input and output",
    ]
    assert said.out.count("zanon-net filter") >= 4
    for default in ("20", "1h", "drop", "time", "user", "attribute", "the window", "iso"):
        assert f"[default: {default}]" in " ".join(said.out.split())


def test_every_setting_has_its_option() -> None:
    offered = [one for one in filter_options() if not getattr(one, "hidden", False)]
    options = {parameter.name for parameter in offered}
    settings = set(FilterConfig.__dataclass_fields__)
    assert options == settings | {"source", "config_file", "as_json", "quiet"}


def test_rows_and_summary(capsys: Captured) -> None:
    assert run_main(*usual("--no-user", "rows.csv")) == 0
    said = capsys.readouterr()
    assert said.out == "time,attribute\n3,tea\n4,tea\n"
    lines = {line.partition("  ")[0]: line for line in said.err.splitlines()}
    assert "4 read, 2 written" in lines["rows"]
    assert "2 of 4 (50.0%)" in lines["released"]
    assert "2  exposed by fewer than z users" in lines["suppressed"]
    assert "1970-01-01T00:00:01Z to 1970-01-01T00:00:04Z, 3.0 s" in lines["time span"]
    assert "rows/s" in lines["speed"]
    assert not any(secret in said.err for secret in SECRETS)


def test_pseudonyms(capsys: Captured) -> None:
    assert run_main(*usual("-q", "--suppressed", "blank", "rows.csv")) == 0
    said = capsys.readouterr()
    rows = [line.split(",") for line in said.out.splitlines()]
    assert rows[0] == ["time", "user", "attribute"]
    assert [(row[0], row[2]) for row in rows[1:]] == [
        *(("1", ""), ("2", ""), ("3", "tea"), ("4", "tea"))
    ]
    assert all(re.fullmatch("[0-9a-f]{32}", row[1]) for row in rows[1:])
    assert rows[1][1] == rows[2][1]
    assert len({row[1] for row in rows[1:]}) == 3
    assert said.err == ""


def test_json(capsys: Captured) -> None:
    Path("more.csv").write_text(HEADER + "5,dan,tea\nbroken\n")
    assert run_main(*usual("--json", "rows.csv", "more.csv")) == 0
    said = capsys.readouterr()
    warning, manifest_text = said.err.split("\n{", 1)
    manifest = json.loads("{" + manifest_text[: manifest_text.rindex("}") + 1])
    assert warning.startswith("zanon-net: warning: more.csv: line 3: not as many columns")
    assert manifest.pop("performance").keys() == {"seconds", "rows_per_s", "memory_bytes"}
    assert manifest["complete"] is False
    assert manifest["interrupted"] is False
    assert manifest["sources"] == [
        {"name": "rows.csv", "compression": None, "bytes": len(ROWS), "rows": 4},
        {"name": "more.csv", "compression": None, "bytes": len(HEADER) + 17, "rows": 2},
    ]
    assert manifest["rows"]["read"] == 6
    assert manifest["rows"]["written"] == 3
    assert manifest["rows"]["dropped"]["columns"] == 1
    assert manifest["rows"]["hold_full"] == 0
    assert manifest["decisions"]["observations"] == 5
    assert manifest["decisions"]["released"] == 3
    assert manifest["decisions"]["suppressed"]["below_z"] == 2
    assert manifest["time_range"]["last_ns"] == 5_000_000_000
    assert manifest["configuration"]["format"] == "csv"
    assert manifest["configuration"]["key_mode"] == "ephemeral"
    assert said.out.count("\n") == 4


def test_passing_a_column_on_is_warned_of(capsys: Captured) -> None:
    Path("rows.csv").write_text("time,user,attribute,price\n1,ann,tea,9\n2,bob,tea,8\n")
    assert run_main(*usual("--pass", "price", "--no-user", "rows.csv", "-q")) == 0
    said = capsys.readouterr()
    assert said.out == "time,attribute,price\n2,tea,8\n"
    assert said.err == (
        "zanon-net: warning: column 'price' is written as it is: it is not anonymized\n"
    )


def test_z_of_1_is_announced(capsys: Captured) -> None:
    assert run_main("--time-unit", "s", "--z", 1, "rows.csv") == 0
    assert "z = 1: every attribute is released" in " ".join(capsys.readouterr().err.split())


def test_late_rows_and_clock_steps_are_counted(capsys: Captured) -> None:
    Path("rows.csv").write_text(HEADER + "9,a,x\n8,b,x\n900000,c,x\n" + "9,d,x\n" * 256)
    assert run_main(*usual("rows.csv")) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "255 older than the window" in said
    assert "time 1 out of order" in said
    assert "time 1 times the clock was reset" in said


def test_rows_that_cannot_be_read(capsys: Captured) -> None:
    Path("rows.csv").write_text(ROWS + "hush\n5,hush\n" + "soon,dan,tea\n")
    assert run_main(*usual("rows.csv")) == 0
    said = capsys.readouterr()
    warnings = [line for line in said.err.splitlines() if "warning" in line]
    assert len(warnings) == 2
    assert warnings[0] == (
        "zanon-net: warning: rows.csv: line 6: not as many columns as the header; the row is"
        " dropped, like all that cannot be read"
    )
    assert warnings[1] == "zanon-net: warning: 3 rows could not be read and were dropped"
    assert "dropped     2  not as many columns as the header" in said.err
    assert "hush" not in said.out + said.err


LEAK = """\
time\tuser\tattribute\tagent
1\t10.0.0.1\ta.example\tone
2\t10.0.0.66\ta.example\t"begin
3\t10.0.0.3\tclinic.example\tone
4\t10.0.0.66\ta.example\tend"
5\t10.0.0.2\ta.example\tone
"""


def test_a_quote_of_a_client_takes_no_line_of_another_in(capsys: Captured) -> None:
    Path("http.tsv").write_text(LEAK)
    options = usual("--delimiter", "tab", "--no-user", "--json", "--pass", "agent", "http.tsv")
    assert run_main(*options) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == [
        '2\ta.example\t"begin',
        '4\ta.example\tend"',
        "5\ta.example\tone",
    ]
    manifest = json.loads(said.err[said.err.index("{") :])
    assert manifest["rows"]["read"] == 5
    assert manifest["configuration"]["quote"] == "none"
    assert run_main(*options[:-1], "--quote", "csv", "http.tsv") == 0
    assert "clinic.example" in capsys.readouterr().out


def test_times_without_offset_are_warned_of(capsys: Captured) -> None:
    Path("rows.csv").write_text(HEADER + "2024-05-14,ann,x\n")
    assert run_main("-q", "rows.csv") == 0
    assert "times without an offset were taken for UTC: 1" in capsys.readouterr().err


TIMES = {
    "s": ("1.719616661e+09", "1.719616662E9", "17196166625e-1"),
    "ns": ("1719616661123456789", "1.719616662e18", "1719616662123456789.9"),
    "iso": ("2024-05-14 09:00:00 UTC", "2024-05-14 17:00:00.5 +0800", "2024-05-14T09:00:01+00"),
}


@pytest.mark.parametrize("unit", TIMES)
@pytest.mark.parametrize("form", ["csv", "jsonl", "jsonl of texts"])
def test_forms_of_times(unit: str, form: str, capsys: Captured) -> None:
    lines = [f"{text},u{number},x" for number, text in enumerate(TIMES[unit])]
    if form != "csv":
        quote = '"' if unit == "iso" or "texts" in form else ""
        lines = [
            f'{{"time":{quote}{text}{quote},"user":"u{number}","attribute":"x"}}'
            for number, text in enumerate(TIMES[unit])
        ]
    header = [HEADER.strip()] if form == "csv" else []
    Path("t").write_text("\n".join([*header, *lines]))
    assert run_main("--z", 2, "-q", "--no-user", "--time-unit", unit, "t") == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("\n") == 2 + len(header)


@pytest.mark.parametrize(
    ("text", "unit", "shown"),
    [
        ("14/05/2024 09:00", "iso", "such as 2024-05-14T09:00:00Z"),
        ("14/05/2024 09:00", "s", "not a time in s since 1970, such as 1715677200.5"),
        ("2024-05-14T09:00:00Z", "ms", "not a time in ms since 1970, such as 1715677200500"),
        ('"1715677200,5"', "s", "a decimal comma; write a point, such as 1715677200.5"),
    ],
)
def test_a_time_that_is_not_read(text: str, unit: str, shown: str, capsys: Captured) -> None:
    Path("t.csv").write_text(f"{HEADER}{text},a,x\n")
    assert run_main("--z", 2, "-q", "--time-unit", unit, "t.csv") == 1
    warning, end = capsys.readouterr().err.splitlines()
    assert shown in warning
    assert "chosen" not in warning
    assert end == "zanon-net: not one row could be read"


def test_empty_input(capsys: Captured) -> None:
    Path("empty.csv").touch()
    assert run_main(*usual("-q", "empty.csv")) == 0
    assert capsys.readouterr() == ("", "")
    Path("empty.csv").write_text(HEADER)
    assert run_main(*usual("-q", "empty.csv")) == 0
    assert capsys.readouterr() == (HEADER, "")


# ---- what is wrong ------------------------------------------------------------------------------

USAGE = {
    "--z 0 rows.csv": "--z: must be from 1 to 2147483648, not 0",
    "--window 3600 rows.csv": "--window: '3600' is not a duration",
    "--rotate 0s rows.csv": "--rotate: must be longer than zero",
    "--time user rows.csv": "--user: 'user' is named already; each column has one role",
    "--pass user rows.csv": "--pass: 'user' is named already",
    "--user= rows.csv": "--user: must be the name of a column",
    "--suppressed mask rows.csv": "Invalid value for '--suppressed'",
    "--delimiter ab rows.csv": "--delimiter: must be one character",
    "--delimiter a rows.csv": "--delimiter: must be one character",
    '--delimiter " rows.csv': "--delimiter: a quote or a backslash cannot separate columns",
    "--delimiter \\ rows.csv": "--delimiter: a quote or a backslash cannot separate columns",
    "--quote double rows.csv": "Invalid value for '--quote'",
    "--max-tuples 0 rows.csv": "--max-tuples: must be from 1",
    "--header a,b --format jsonl rows.csv": "--header: JSON Lines name their columns",
    "--key-file rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4= x": "looks like a key itself",
    "--key-file rows.csv --time-unit s rows.csv": "key file rows.csv",
    "--attribute name rows.csv": "rows.csv: line 1: the header has no column 'name'",
    "--pass price rows.csv": "rows.csv: line 1: the header has no column 'price'",
    "--delimiter ; rows.csv": "the header is a single column; choose the --delimiter",
    "exponent.csv": "line 2: the time is a plain number; say what it counts with --time-unit",
    "rows.csv": "rows.csv: line 2: the time is a plain number; say what it counts with --time-unit",
    "- -": "standard input only once",
    "--nonsense rows.csv": "No such option",
}
OPERATIONAL = {
    "missing.csv": "missing.csv cannot be opened: No such file or directory",
    "rows.csv missing.csv": "missing.csv cannot be opened",
    "folder": "folder is a folder; name the files in it",
    "--time-unit s --strict bad.csv": "bad.csv: line 3: not as many columns as the header",
    "--time-unit ms all-bad.csv": "not one row could be read",
    "array.json": "array.json: a JSON array is not JSON Lines",
    "--key-file missing.key rows.csv": "missing.key cannot be opened",
    "binary": "binary: line 1: the header cannot be read",
}


@pytest.fixture
def inputs() -> None:
    """The files that the cases below are about."""
    Path("rows.csv").chmod(0o600)
    Path("folder").mkdir()
    Path("bad.csv").write_text(HEADER + "1,ann,x\nhush\n")
    Path("all-bad.csv").write_text(HEADER + "soon,ann,x\nlater,bob,x\n")
    Path("exponent.csv").write_text(HEADER + "1.7e9,ann,x\n")
    Path("array.json").write_text('[{"time": 1}]')
    Path("binary").write_bytes(bytes(range(256)) * 10)


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    ("line", "said", "code"),
    [(*item, 2) for item in USAGE.items()] + [(*item, 1) for item in OPERATIONAL.items()],
)
def test_one_line_and_an_exit_code(line: str, said: str, code: int, capsys: Captured) -> None:
    assert run_main(*line.split()) == code
    shown = capsys.readouterr()
    messages = shown.err.splitlines()
    assert said in messages[-1]
    assert all(message.startswith("zanon-net: ") for message in messages)
    assert "Traceback" not in shown.err
    assert "hush" not in shown.err
    assert "rare" not in shown.out


@pytest.mark.parametrize(
    "options",
    [
        {"time_unit": "h"},
        {"format": "xml"},
        {"to": "xml"},
        {"suppressed": "x"},
        {"user": "a\nb"},
        {"user": "\udcff"},
        {"user": "x" * 1001},
        {"header": "a\x1bb"},
        {"passed": [f"p{i}" for i in range(17)]},
        {"passed": ["p", "p"]},
        {"z": 2**31 + 1},
        {"z": True},
    ],
)
def test_settings_that_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        FilterConfig(**options)  # type: ignore[arg-type]


def test_sixteen_columns_can_be_passed_on(capsys: Captured) -> None:
    names = [f"p{i}" for i in range(16)]
    Path("rows.csv").write_text(f"time,user,attribute,{','.join(names)}\n1,ann,x{',v' * 16}\n")
    arguments = [part for name in names for part in ("--pass", name)]
    assert run_main("--time-unit", "s", "--z", 1, "--no-user", *arguments, "rows.csv") == 0
    assert capsys.readouterr().out.splitlines()[1] == "1,x" + ",v" * 16


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(capsys: Captured) -> None:
    Path("rows.csv").chmod(0)
    assert run_main(*usual("rows.csv")) == 1
    assert capsys.readouterr().err == "zanon-net: rows.csv cannot be opened: Permission denied\n"


def test_a_source_that_breaks_off() -> None:
    """Reading a process's own memory at address 0 fails as a bad disk does."""
    if not Path("/proc/self/mem").exists():
        pytest.skip("this system has no /proc/self/mem")
    done = run_filter("/proc/self/mem")
    assert done.returncode == 1
    assert done.stderr == b"zanon-net: cannot read mem: Input/output error\n"
