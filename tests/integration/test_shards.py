# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net run --shards`: the processes together write the lines of one run over all packets, and
an error or a signal ends all processes."""

import json
import os
import random
import re
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cli import COMMAND, ENVIRONMENT, run_main
from support.contract_runs import write
from support.packets import SECOND, START, merged, user, visit
from support.ports import free_port
from support.probes import portions

from zanon_net.keys import new_key

SETTINGS = ["--z", "5", "--window", "2m", "--rotate", "1m", "--internal", "10.0.0.0/8", "-q"]
FORMATS = ["--format", "tstat", "--format", "jsonl", "--format", "observations"]
QUEUES = 4
PACKETS = re.compile(rb"status: .* packets ([1-9][0-9,]*) ")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key, q0.pcap to q3.pcap, and all.pcap, in which the packets of all are merged. A user's
    flows are in several queues."""
    folder, chance = tmp_path_factory.mktemp("captures"), random.Random(5)
    talks = []
    for _ in range(1000):
        who, where = chance.randrange(200), min(int(chance.paretovariate(0.5)), 400)
        t_ns, server = START + chance.randrange(600 * SECOND), f"198.51.100.{where % 200}"
        flow = visit(user(who), b"h%d.example" % where, t_ns, server)
        talks.append((chance.randrange(QUEUES), flow))
    parts = portions(talks, QUEUES)
    for n, part in enumerate(parts):
        write(folder / f"q{n}.pcap", part)
    write(folder / "all.pcap", merged(parts))
    write(folder / "none.pcap", [])
    new_key(folder / "zanon.key")
    return folder


def command(captures: Path, sources: Sequence[str], out: Path, *more: str) -> list[str]:
    paths = [name if name == "-" else str(captures / name) for name in sources]
    key = ["--key-file", str(captures / "zanon.key")]
    return ["run", *paths, "--out", str(out), *SETTINGS, *FORMATS, *key, *more]


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*COMMAND, *arguments], env=ENVIRONMENT, stderr=subprocess.PIPE)


def logs_of(folder: Path) -> dict[str, Counter[bytes]]:
    """The lines of each log in all folders, without headers."""
    found: dict[str, Counter[bytes]] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            lines = (line for line in path.read_bytes().splitlines() if line[:1] != b"#")
            found[path.name] = found.get(path.name, Counter()) + Counter(lines)
    return found


def test_shards_write_what_one_run_writes(captures: Path, tmp_path: Path) -> None:
    assert run_main(*command(captures, ["all.pcap"], tmp_path / "one")) == 0
    sources = [f"q{n}.pcap" for n in range(QUEUES)]
    many = command(captures, sources, tmp_path / "many", "--shards", str(QUEUES))
    process = started(*many)
    _out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert logs_of(tmp_path / "many") == logs_of(tmp_path / "one")
    one, whole = (
        json.loads((tmp_path / n / "manifest.json").read_bytes()) for n in ("one", "many")
    )
    assert whole["complete"]
    assert whole["configuration"]["limits"]["shards"] == QUEUES
    assert whole["decisions"]["released"] == one["decisions"]["released"] > 100
    assert whole["counters"]["count"]["questions_unanswered"] == 0
    assert {Path(file["file"]).parts[0] for file in whole["outputs"]} == {
        f"shard-{n}" for n in range(QUEUES)
    }
    assert whole["pseudonyms"] == one["pseudonyms"]


def test_a_folder_has_a_folder_of_each_queue(captures: Path, tmp_path: Path) -> None:
    """A queue without a packet delays nothing, and the captures of a queue follow each other."""
    assert run_main(*command(captures, ["q0.pcap"], tmp_path / "one")) == 0
    for queue, name in (("a", "q0.pcap"), ("b", "none.pcap")):
        (tmp_path / "queues" / queue).mkdir(parents=True)
        (tmp_path / "queues" / queue / name).write_bytes((captures / name).read_bytes())
    many = command(captures, [str(tmp_path / "queues")], tmp_path / "many", "--shards", "2")
    process = started(*many)
    _out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert logs_of(tmp_path / "many") == logs_of(tmp_path / "one")


def test_a_shard_that_fails_ends_the_run(captures: Path, tmp_path: Path) -> None:
    """The other shard publishes nothing, although it has read its capture."""
    (tmp_path / "bad.pcap").write_bytes(b"no capture at all")
    out = tmp_path / "out"
    sources = ["q0.pcap", str(tmp_path / "bad.pcap")]
    process = started(*command(captures, sources, out, "--shards", "2"))
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = err.decode().splitlines()
    assert line.startswith("zanon-net: shard 1: ")
    assert "bad.pcap" in line
    assert not out.exists()


def waiting_run(
    captures: Path, tmp_path: Path, *more: str
) -> "tuple[subprocess.Popen[bytes], int]":
    """A run whose second shard waits for packets of a pipe; the process, and the pipe's end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ("--shards", "2", "--status", "100ms", *more)
    process = started(*command(captures, ["q0.pcap", str(pipe)], tmp_path / "out", *options))
    writing = os.open(pipe, os.O_WRONLY)
    packets = (captures / "q1.pcap").read_bytes()
    os.write(writing, packets[: min(len(packets) // 2, 1 << 16)])
    assert process.stderr is not None
    seen: list[bytes] = []
    while len(seen) < 5 or len(set(seen[-5:])) > 1:  # until both shards wait
        line = process.stderr.readline()
        assert line, seen
        found = PACKETS.search(line)
        seen.append(line if found is None else found[1])
    return process, writing


def children_of(process: "subprocess.Popen[bytes]") -> list[int]:
    tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(child) for child in tasks.read_text().split()]


def test_a_shard_that_is_killed_ends_the_run(captures: Path, tmp_path: Path) -> None:
    process, writing = waiting_run(captures, tmp_path)
    first, second = children_of(process)
    os.kill(first, signal.SIGKILL)
    _out, err = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode == 1
    (line,) = (line for line in err.decode().splitlines() if "status:" not in line)
    assert line == "zanon-net: shard 0 ended by signal 9; the run ends with it"
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert all(".partial" in str(path) for path in left)  # of the killed shard
    assert not (tmp_path / "out/shard-1").exists()
    assert not Path(f"/proc/{second}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_shards(captures: Path, tmp_path: Path, number: int) -> None:
    """The shards get the signal, too, as from a terminal or a service manager. They write the
    packets that they have read."""
    process, writing = waiting_run(captures, tmp_path)
    shards = children_of(process)
    for pid in (process.pid, *shards):
        os.kill(pid, number)
    _out, err = process.communicate(timeout=60)
    os.close(writing)
    assert process.returncode == 1
    assert b"interrupted: what had been read is complete" in err
    whole = json.loads((tmp_path / "out/manifest.json").read_bytes())
    assert whole["interrupted"]
    assert whole["counters"]["count"]["questions_unanswered"] == 0
    assert logs_of(tmp_path / "out")["observations.jsonl"].total() > 0


def test_each_shard_has_metrics_of_its_own(captures: Path, tmp_path: Path) -> None:
    port = free_port()
    process, writing = waiting_run(captures, tmp_path, "--metrics", f"127.0.0.1:{port}")
    texts = [
        urllib.request.urlopen(f"http://127.0.0.1:{port + n}/metrics", timeout=10).read()
        for n in range(2)
    ]
    process.terminate()
    process.communicate(timeout=60)
    os.close(writing)
    for text in texts:
        assert b"zanon_packets_total" in text


def test_shards_end_with_the_process_that_started_them(captures: Path, tmp_path: Path) -> None:
    process, writing = waiting_run(captures, tmp_path)
    shards = children_of(process)
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while any(Path(f"/proc/{shard}").exists() for shard in shards) and time.monotonic() < until:
        time.sleep(0.05)
    os.close(writing)
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert left == []


@pytest.mark.parametrize(
    ("sources", "options", "text"),
    [
        (["q0.pcap"], ["--shards", "2"], "there are 2, and 1 sources"),
        (["q0.pcap", "q1.pcap", "q2.pcap"], ["--shards", "2"], "there are 2, and 3 sources"),
        (["q0.pcap", "-"], ["--shards", "2"], "standard input is one stream"),
        (["q0.pcap", "q1.pcap"], ["--shards", "2", "--out", "-"], "need a folder"),
        (["q0.pcap", "q1.pcap"], ["--shards", "2", "--z", "1"], "z: is 1"),
        (["q0.pcap", "q1.pcap"], ["--shards", "2", "--target-p", "0.9"], "--target-p: needs"),
        (
            ["q0.pcap", "q1.pcap"],
            ["--shards", "2", "--metrics-file", "m.prom"],
            "--metrics-file: is of",
        ),
        (
            ["q0.pcap", "q1.pcap"],
            ["--shards", "2", "--count-at", "tcp://127.0.0.1:9", "--probe", "p"],
            "--shards: the run has a counter of its own",
        ),
    ],
)
def test_wrong_options_are_one_line(
    captures: Path,
    tmp_path: Path,
    sources: list[str],
    options: list[str],
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert run_main(*command(captures, sources, out, *options)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line
    assert not out.exists()


def test_shards_need_a_key(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [str(captures / f"q{n}.pcap") for n in range(2)]
    assert run_main("run", *sources, "--shards", "2", "--out", str(tmp_path / "out")) == 2
    assert "all shards need the same key" in capsys.readouterr().err
