# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` as a command: options, messages, exit codes, streams and their ends."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from filter_help import COMMAND, ENVIRONMENT, run_filter

from zanon_net.cli import main
from zanon_net.errors import ConfigError
from zanon_net.filter_config import FilterConfig
from zanon_net.filter_options import filter_options

Captured = pytest.CaptureFixture[str]

HEADER = "time,user,attribute\n"
ROWS = HEADER + "1,ann,rare\n2,ann,tea\n3,bob,tea\n4,cat,tea\n"
SECRETS = ("ann", "bob", "cat", "rare", "hush")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)


def run_main(*arguments: object) -> int:
    return main(["filter", *map(str, arguments)])


def usual(*arguments: object) -> tuple[object, ...]:
    return ("--time-unit", "s", "--z", 2, *arguments)


# ---- what is said where -------------------------------------------------------------------------


def test_help(capsys: Captured) -> None:
    assert run_main("--help") == 0
    said = capsys.readouterr()
    titles = re.findall(r"^(\w[\w ()]+):$", said.out, re.MULTILINE)
    assert titles[:4] == ["Anonymity", "Columns", "Pseudonyms", "Input and output"]
    assert said.out.count("zanon-net filter") >= 4
    for default in ("20", "1h", "drop", "time", "user", "attribute", "the window", "iso"):
        assert f"[default: {default}]" in " ".join(said.out.split())


def test_every_setting_has_its_option() -> None:
    options = {parameter.name for parameter in filter_options()}
    settings = set(FilterConfig.__dataclass_fields__)
    assert options == settings | {"source", "as_json", "quiet"}


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
        {"name": "rows.csv", "bytes": len(ROWS), "rows": 4},
        {"name": "more.csv", "bytes": len(HEADER) + 17, "rows": 2},
    ]
    assert manifest["rows"]["read"] == 6
    assert manifest["rows"]["written"] == 3
    assert manifest["rows"]["dropped"]["columns"] == 1
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
        " dropped, as any other like it"
    )
    assert warnings[1] == "zanon-net: warning: 3 rows could not be read and were dropped"
    assert "dropped     2  not as many columns as the header" in said.err
    assert "hush" not in said.out + said.err


def test_times_without_offset_are_warned_of(capsys: Captured) -> None:
    Path("rows.csv").write_text(HEADER + "2024-05-14,ann,x\n")
    assert run_main("-q", "rows.csv") == 0
    assert "times without an offset were taken for UTC: 1" in capsys.readouterr().err


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
    '--delimiter " rows.csv': "--delimiter: a quote cannot part columns",
    "--max-tuples 0 rows.csv": "--max-tuples: must be from 1",
    "--header a,b --format jsonl rows.csv": "--header: JSON Lines name their columns",
    "--key-file rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4= x": "looks like a key itself",
    "--key-file rows.csv --time-unit s rows.csv": "key file rows.csv",
    "--attribute name rows.csv": "rows.csv: line 1: the header has no column 'name'",
    "--pass price rows.csv": "rows.csv: line 1: the header has no column 'price'",
    "--delimiter ; rows.csv": "the header is a single column; choose the --delimiter",
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


# ---- streams ------------------------------------------------------------------------------------


def test_standard_input_is_read_when_nothing_is_named() -> None:
    for arguments in ((), ("-",)):
        done = run_filter(*usual("--no-user", "-q"), *arguments, stdin=ROWS.encode())
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"time,attribute\n3,tea\n4,tea\n"


def test_several_files_and_standard_input_are_one_stream() -> None:
    Path("more.csv").write_text("attribute,user,time\ntea,dan,9\n")
    stdin = b"time,user,attribute\n5,eve,rare\n"
    done = run_filter(*usual("--no-user", "-q", "rows.csv", "-", "more.csv"), stdin=stdin)
    assert done.stdout == b"time,attribute\n3,tea\n4,tea\n5,rare\n9,tea\n"


def test_a_terminal_is_no_input() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    done = subprocess.run(COMMAND, stdin=theirs, capture_output=True, env=ENVIRONMENT, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert done.stderr == (b"zanon-net: standard input is a terminal; pipe observations into it\n")


Live = subprocess.Popen[bytes]


@contextmanager
def live(*arguments: object) -> Iterator[Live]:
    """The command with pipes at both ends; stopped afterwards, whatever happens."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: Live, data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def hear(process: Live) -> bytes:
    """What comes out next; the test fails when nothing ever does."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 120)
    assert ready, "nothing came out"
    return os.read(process.stdout.fileno(), 1 << 16)


def test_a_row_comes_out_before_the_next_goes_in() -> None:
    with live(*usual("--no-user")) as process:
        say(process, b"time,user,attribute\n")
        assert hear(process) == b"time,attribute\n"
        say(process, b"1,ann,tea\n2,bob,tea\n")
        assert hear(process) == b"2,tea\n"
        say(process, b"3,cat,")
        say(process, b"tea\n4,")
        assert hear(process) == b"3,tea\n"
        say(process, b"dan,tea")
        assert process.stdin is not None
        process.stdin.close()
        assert hear(process) == b"4,tea\n"
        assert process.wait(120) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number: signal.Signals) -> None:
    with live(*usual("--no-user", "--json")) as process:
        say(process, ROWS.encode() + b"5,dan,t")
        seen = b""
        while not seen.endswith(b"4,tea\n"):
            seen += hear(process)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out == b""
    text, _, last = err.decode().rpartition("zanon-net: ")
    assert last == "interrupted: every row written is complete\n"
    manifest = json.loads(text)
    assert manifest["interrupted"] is True
    assert manifest["complete"] is False
    assert manifest["rows"]["read"] == 4


def catches_signals(pid: int) -> bool:
    """Whether the process sleeps with its handler of SIGTERM in place."""
    text = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", text)
    assert caught
    return "State:\tS" in text and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_waiting_for_a_named_pipe_can_be_interrupted() -> None:
    os.mkfifo("pipe")
    with live("pipe") as process:
        while process.poll() is None and not catches_signals(process.pid):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err == b"zanon-net: interrupted; no file was written\n"


def test_a_reader_that_goes_away() -> None:
    rows = HEADER + "".join(f"{t},u{t % 5},tea\n" for t in range(200_000))
    Path("long.csv").write_text(rows)
    with live(*usual("-q", "long.csv")) as process:
        assert hear(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *map(str, usual("rows.csv"))],
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        b"zanon-net: cannot write standard output: No space left on device; "
        b"free some space and run again\n"
    )


def test_closed_standard_streams() -> None:
    shell = f"exec {sys.executable} -m zanon_net filter --time-unit s rows.csv"
    done = subprocess.run(
        ["sh", "-c", shell + " >&-"], stderr=subprocess.PIPE, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 1
    assert done.stderr == b"zanon-net: standard output is closed\n"
    shell = shell.replace("rows.csv", "-") + " <&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    assert done.stderr == b"zanon-net: standard input is closed\n"


# ---- memory -------------------------------------------------------------------------------------

SANITIZED = "address" in os.environ.get("ZANON_SANITIZE", "")
PEAK = """
import resource, sys
from zanon_net.cli import main
code = main(["filter", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def csv_lines(first: int, n: int) -> str:
    return "".join(f"{t},u{t * 7 % 997},a{t * t % 499}\n" for t in range(first, first + n))


def json_lines(first: int, n: int) -> str:
    return "".join(
        f'{{"time":{t},"user":"u{t * 7 % 997}","attribute":"a{t * t % 499}"}}\n'
        for t in range(first, first + n)
    )


def peak_kib(lines: Callable[[int, int], str], start: str, n: int) -> int:
    """Peak RSS of a process that reads n rows from a pipe."""
    arguments: Sequence[str] = ("--time-unit", "s", "--z", "3", "--window", "1000s", "-q")
    with subprocess.Popen(
        [sys.executable, "-c", PEAK, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(start)
        for first in range(0, n, 50_000):
            process.stdin.write(lines(first, 50_000))
        process.stdin.close()
        peak = int(process.stderr.read())
    assert process.returncode == 0
    return peak


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory is most of it")
@pytest.mark.parametrize(("lines", "start"), [(csv_lines, HEADER), (json_lines, "")])
def test_a_million_rows_take_no_more_memory_than_a_tenth(
    lines: Callable[[int, int], str], start: str
) -> None:
    few, many = peak_kib(lines, start, 100_000), peak_kib(lines, start, 1_000_000)
    assert many - few < 8 << 10, f"{few} KiB for 100,000 rows, {many} KiB for 1,000,000"
