# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net publish` from the command line: output, report, errors, streams."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_here
from support.filter import ENVIRONMENT
from support.publish import (
    COMMAND,
    csv_bytes,
    jsonl_bytes,
    open_publisher,
    publish,
    write_city,
)

from zanon_net.cli import main

Rows = list[tuple[object, ...]]
SECRETS = (b"ann", b"bob", b"cat", b"dan", b"hush", b"atlantis", b"17")
ROWS: Rows = [
    (10, "ann", "bern", 17, "tea", "hush1"),
    (11, "bob", "genf", 17, "jam", "hush2"),
    (12, "cat", "graz", 12, "tea", "hush3"),
    (13, "dan", "wien", 14, "oil", "hush4"),
]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    city = write_city(tmp_path / "city.csv")
    text = "--user user --quasi city,age --round age=10 --clip age=0..39 --sensitive product"
    return [*text.split(), "--hierarchy", f"city={city}", "--time-unit", "s", "--k", "2"]


@dataclass(frozen=True)
class Done:
    """What the command said, run in this process."""

    returncode: int
    stdout: bytes
    stderr: bytes


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs the command in this process, on rows in a file."""

    def run_main(*arguments: object, rows: bytes = csv_bytes(ROWS)) -> Done:
        source = tmp_path / "rows.csv"
        source.write_bytes(rows)
        code = main(["publish", *map(str, arguments), str(source)])
        return Done(code, *capfdbinary.readouterr())

    return run_main


def test_rows_leave_in_classes(options: list[str]) -> None:
    done = run_here("publish", *options, "--rows", 4, stdin=csv_bytes(ROWS))
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [
        "time,city,age,product",
        "13,east,10-19,oil",
        "13,east,10-19,tea",
        "13,west,10-19,jam",
        "13,west,10-19,tea",
    ]
    assert b"4 read, 4 written" in done.stderr
    assert not any(word in done.stderr for word in SECRETS[:-1])


def test_json_lines(options: list[str]) -> None:
    rows = [*ROWS, (14, "eve", None, None, None, "x"), (14, "fay", None, None, "tea", "x")]
    done = run_here("publish", *options, "--rows", 6, stdin=jsonl_bytes(rows))
    released = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(released[0]) == ["time", "city", "age", "product"]
    assert {"time": 14, "city": None, "age": None, "product": None} in released
    assert len(released) == 6


def test_the_manifest_has_numbers_alone(options: list[str]) -> None:
    rows = [*ROWS, (13, "ann", "atlantis", 17, "hush", "hush5")]
    more = ("--rows", 4, "--unknown", "suppress", "--json", "--pass", "secret")
    done = run_here("publish", *options, *more, stdin=csv_bytes(rows))
    assert done.returncode == 0
    text = done.stderr[done.stderr.index(b"{") :]
    manifest = json.loads(text)
    assert manifest["rows"]["read"] == 5
    assert manifest["rows"]["written"] == 4
    assert manifest["rows"]["suppressed"]["unknown"] == 1
    assert manifest["classes"]["smallest"] == 2
    assert manifest["classes"]["loss"].keys() == {"city", "age"}
    assert "column 'secret' is not protected" in manifest["notes"]
    assert not any(word in text for word in SECRETS[:-1])
    assert b"hush5" not in done.stdout


def test_settings_out_of_a_file(options: list[str], tmp_path: Path) -> None:
    write_city(tmp_path / "city.csv")
    config = tmp_path / "publish.toml"
    config.write_text(
        '[publish]\nuser = "user"\nquasi = ["city", "age"]\nsensitive = "product"\n'
        'hierarchy = { city = "city.csv" }\nround = { age = 10 }\nclip = { age = "0..39" }\n'
        'time_unit = "s"\nk = 3\nrows = 4\ndelay = "60s"\nlambda = 0.5\n'
    )
    done = run_here("publish", "--config", config, "--k", 2, "-q", stdin=csv_bytes(ROWS))
    assert done.stderr == b""
    assert done.stdout == run_here("publish", *options, "--rows", 4, stdin=csv_bytes(ROWS)).stdout
    config.write_text("[publish]\nq = 1\n")
    done = run_here("publish", "--config", config)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


WRONG = [
    (["--k", "2000"], "--k: 2000 users do not fit into --rows 1000"),
    (["--l", "200", "--rows", "100"], "--l: 200 values do not fit into --rows 100"),
    (["--quasi", "job"], "--quasi: 'job' needs --hierarchy, or --round and --clip"),
    (["--round", "city=2"], "--hierarchy: 'city' has --round or --clip, too; give one"),
    (["--clip", "age=0..x"], "--clip: "),
    (["--clip", "age=..90"], "a stream's numbers need both ends of their range"),
    (["--clip", "job=0..9"], "--clip: 'job' is not a column of --quasi"),
    (["--hierarchy", "job=x"], "--hierarchy: 'job' is not a column of --quasi"),
    (["--sensitive", "city"], "--sensitive: 'city' is named already; each column has one role"),
    (["--pass", "time"], "--pass: 'time' is named already"),
    (["--l-kind", "most"], "--l-kind: must be distinct, entropy or recursive:C"),
    (["--max-share", "0"], "--max-share: must be above 0"),
    (["--max-share", "1.5"], "--max-share: "),
    (["--delay", "soon"], "--delay: 'soon' is not a duration"),
    (["--adapt-l", "0"], "--adapt-l: must be a largest l"),
    (["--adapt-l", "3", "--buffer", "sliding"], "--adapt-l: is for --buffer tumbling"),
    (["--lambda", "2"], "--lambda: "),
    (["--max-memory", "1K"], "max-memory: a window of this size takes"),
    (["--time", "when"], "has no column 'when'; name the right one with --time"),
    (["--delimiter", ";"], "is a single column; choose the --delimiter between its columns"),
    (["--time-unit", "iso"], "the time is a plain number; say what it counts with --time-unit"),
]


@pytest.mark.parametrize(("more", "problem"), WRONG, ids=lambda value: "".join(value)[:30])
def test_a_wrong_setting_is_one_line(
    run: Run, options: list[str], more: list[str], problem: str
) -> None:
    if more[1].startswith("age="):
        at = options.index(more[0])
        options = options[:at] + options[at + 2 :]
    done = run(*options, *more)
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert done.stdout in (b"", b"time,city,age,product\n")
    assert problem in error
    assert error.count("\n") == 1


WITHOUT_USER = [
    (["--once", "1h"], "--once: is about users; name their column with --user"),
    (["--pseudonym", "release"], "--pseudonym: is about users"),
]


@pytest.mark.parametrize(("more", "problem"), WITHOUT_USER, ids=str)
def test_what_needs_users(run: Run, options: list[str], more: list[str], problem: str) -> None:
    done = run(*options[2:], *more)
    assert (done.returncode, problem in done.stderr.decode()) == (2, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bern;west;*\nbern;east;*\n", "line 2"),
        ("bern;west;*\ngenf;*\n", "line 2"),
        ("bern;west;*\ngenf;west;all\n", "city.csv"),
    ],
)
def test_a_bad_hierarchy_is_one_line(
    run: Run, options: list[str], tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "city.csv").write_text(text)
    done = run(*options)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert problem in done.stderr.decode()
    assert done.stdout == b""


def test_a_hierarchy_that_is_not_there(run: Run, options: list[str], tmp_path: Path) -> None:
    (tmp_path / "city.csv").unlink()
    done = run(*options)
    assert (done.returncode, done.stderr.count(b"\n"), done.stdout) == (1, 1, b"")


def test_an_unknown_value_is_an_error(run: Run, options: list[str]) -> None:
    rows = [*ROWS, (14, "ann", "atlantis", 3, "tea", "hush")]
    done = run(*options, rows=csv_bytes(rows))
    assert done.returncode == 1
    assert b"line 6: column 'city' has a value that its hierarchy lacks" in done.stderr
    assert not any(word in done.stderr for word in SECRETS)


def test_a_row_that_cannot_be_read(run: Run, options: list[str]) -> None:
    data = csv_bytes(ROWS) + b"x,ann\n,ann,bern,3,tea,x\nsoon,ann,bern,3,tea,x\n"
    done = run(*options, "--rows", 4, rows=data)
    assert done.returncode == 0
    assert b"line 6: not as many columns as the header" in done.stderr
    assert b"3 rows could not be read" in done.stderr
    done = run(*options, "--strict", rows=data)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


def test_a_full_disk(options: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *options, "--rows", "4"],
            input=csv_bytes(ROWS),
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1


def test_a_closed_pipe(options: list[str]) -> None:
    rows: Rows = [(10, f"user{i}", "bern", 3, "tea", "x") for i in range(50_000)]
    with subprocess.Popen(
        [*COMMAND, *options, "--rows", "100"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        try:
            process.stdin.write(csv_bytes(rows))
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr is not None
        error = process.stderr.read()
    assert process.returncode != 0
    assert b"Traceback" not in error


def test_idle_closes_the_window_of_a_silent_pipe(options: list[str]) -> None:
    with subprocess.Popen(
        [*COMMAND, *options, "--rows", "1000", "--idle", "200ms", "--delay", "1h", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(csv_bytes(ROWS))
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(5)]  # while the pipe is open
        process.stdin.close()
        assert process.stdout.read() == b""
    assert lines[1] == b"13,east,10-19,oil\n"
    assert process.returncode == 0


# ---- in this process ----------------------------------------------------------------------------


def many(n: int, **columns: Any) -> Rows:
    """Rows of different users in one place."""
    value = {"city": "bern", "age": 3, "product": "tea", "secret": "x"} | columns
    return [(1000 + i, f"user{i}", *value.values()) for i in range(n)]


def test_a_clock_that_was_wrong_is_set_back() -> None:
    """One time of a century later, and all that follows is late: but for 255 rows."""
    rows = [*many(10), (4000000000, "far", "bern", 3, "tea", "x"), *many(300)]
    _out, publisher = publish(csv_bytes(rows), rows=100, delay="1h")
    counts = publisher.window
    assert counts["clock_jumps"] == 1
    assert counts["suppressed"]["late"] == 255
    assert counts["released"] == 311 - 255 - counts["suppressed"]["users"]


def test_memory_is_bounded() -> None:
    rows = many(4000, secret="s" * 2000)
    options = {"rows": 4000, "passed": ["secret"], "delay": "10d"}
    out, publisher = publish(csv_bytes(rows), max_memory="8M", **options)
    assert publisher.window["windows"]["memory"] > 2
    assert out.count(b"\n") == 4001
    assert publish(csv_bytes(rows), **options)[1].window["windows"]["memory"] == 0


def test_a_long_stream_takes_no_more_memory() -> None:
    rows = csv_bytes(many(1000))
    publisher = open_publisher(rows=100)
    publisher.feed(rows)
    publisher.take()
    before = publisher.memory_bytes
    for _ in range(30):
        publisher.feed(rows.partition(b"\n")[2])
        publisher.take()
    assert publisher.memory_bytes == before


def test_pseudonyms_are_new_in_each_release() -> None:
    rows = [(10 + i, f"user{i % 3}", "bern", 3, "tea", "x") for i in range(12)]
    out, _publisher = publish(csv_bytes(rows), rows=6, k=3, pseudonym="release")
    lines = [line.split(",") for line in out.decode().splitlines()]
    assert lines[0] == ["time", "user", "city", "age", "product"]
    first, second = ({line[1] for line in lines if line[0] == t} for t in ("15", "21"))
    assert len(first) == len(second) == 3
    assert not first & second
    assert all(len(pseudonym) == 32 for pseudonym in first | second)


def test_a_missing_value_is_a_value_like_others() -> None:
    rows = [(10, "ann", "bern", 3, "", "x"), (10, "bob", "bern", 3, "tea", "x")]
    out, publisher = publish(csv_bytes(rows), rows=2, l=2)
    assert out.splitlines()[1:] == [b"10,bern,<10,", b"10,bern,<10,tea"]
    assert publisher.window["distinct_min"] == [2]


def test_quotes_and_delimiters_in_values() -> None:
    rows = [(10, "ann", "bern", 3, 'a "b", c\nd', "x"), (10, "bob", "bern", 3, "é", "x")]
    out, _publisher = publish(csv_bytes(rows), rows=2)
    assert b'10,bern,<10,"a ""b"", c\nd"\n' in out


def test_without_quoting_a_quote_is_a_character() -> None:
    rows = [(10, "ann", "bern", 3, '"begin', "x"), (10, "bob", "bern", 3, 'end"', "x")]
    data = csv_bytes(rows).replace(b'"""begin"', b'"begin').replace(b'"end"""', b'end"')
    out, publisher = publish(data.replace(b",", b"\t"), rows=2, delimiter="tab")
    assert out.splitlines()[1:] == [b'10\tbern\t<10\t"begin', b'10\tbern\t<10\tend"']
    assert publisher.stats["rows"] == 2


def test_environment_of_the_command(options: list[str]) -> None:
    """No NumPy and no pyarrow for --help."""
    code = "import sys; from zanon_net.cli import main; main(['publish', '--help']);"
    code += "sys.exit('numpy' in sys.modules or 'pyarrow' in sys.modules)"
    done = subprocess.run([COMMAND[0], "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert os.fspath(options[1]).encode() in done.stdout
