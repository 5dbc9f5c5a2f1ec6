# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` on streams: how they end, and how much memory they take."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.cli import limited
from support.filter import COMMAND, ENVIRONMENT, run_filter
from support.filter_live import hear, live, say
from support.filter_run import HEADER, ROWS, usual
from support.waiting import running, wait_until

SMALL = limited(1 << 20, *COMMAND)  # what fails does not fill the disk


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)


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


@pytest.mark.parametrize("named", [True, False])
def test_a_file_that_takes_the_output_is_no_input(named: bool) -> None:
    """Each row would be written behind what is still to be read, without an end."""
    with Path("rows.csv").open("ab") as output, Path("rows.csv").open("rb") as rows:
        done = subprocess.run(
            [*SMALL, "--time-unit", "s", "--z", "1", *(["rows.csv"] if named else [])],
            stdin=rows,
            stdout=output,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 2
    name = b"rows.csv" if named else b"standard input"
    assert done.stderr == (
        b"zanon-net: %s is also where standard output goes; choose another file\n" % name
    )
    assert Path("rows.csv").read_text() == ROWS


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
        wait_until(lambda: process.poll() is not None or catches_signals(process.pid))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err == b"zanon-net: interrupted; only files that are whole are left\n"


WRITER = """
import sys
header, *names = sys.argv[1:]
for name in names:
    with open(name, "w") as pipe:
        pipe.write(header + "1,ann,tea\\n1,bob,tea\\n" * 10_000)
"""


def test_named_pipes_may_be_filled_one_after_the_other() -> None:
    """More than a pipe holds: who fills the first opens the second when the first is read."""
    names = ("first", "second")
    for name in names:
        os.mkfifo(name)
    with (
        live(*usual("-q", "--no-user", *names)) as process,
        running([sys.executable, "-c", WRITER, HEADER, *names]),
    ):
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out.count(b"\n") == 40_000  # with the header, without the first row of ann


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


# Python's streams without a buffer write no more than the system takes at once.
UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])


@UNBUFFERED
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk(unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *map(str, usual("rows.csv"))],
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        b"zanon-net: cannot write standard output: No space left on device; "
        b"free some space and run again\n"
    )


@UNBUFFERED
def test_a_disk_that_fills_in_the_last_write(unbuffered: str) -> None:
    rows = HEADER + "".join(f"{i},u{i},attribute\n" for i in range(1000))
    with Path("out.csv").open("wb") as out:
        done = subprocess.run(
            [*limited(20_000, *COMMAND), "--time-unit", "s", "--z", "1", "-q"],
            input=rows.encode(),
            stdout=out,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        b"zanon-net: cannot write standard output: File too large; "
        b"the limit on file sizes is reached: raise it with ulimit -f and run again\n"
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
    with running(
        [sys.executable, "-c", PEAK, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(start.encode())
        for first in range(0, n, 50_000):
            process.stdin.write(lines(first, 50_000).encode())
        process.stdin.close()
        process.wait(120)
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
