# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net run --count-at` and `zanon-net count` as processes of their own."""

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from support.cli import COMMAND, ENVIRONMENT, run_main
from support.contract_runs import write
from support.counting import start_counter
from support.packets import SECOND, START, merged, user, visit
from support.ports import free_port
from support.probes import portions

from zanon_net.keys import new_key

SETTINGS = ["--z", "5", "--window", "2m", "--rotate", "1m"]
FORMATS = ["--format", "tstat", "--format", "jsonl", "--format", "observations"]
PROBES = 4


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p0.pcap to p3.pcap, all.pcap, the key and another."""
    folder, chance = tmp_path_factory.mktemp("captures"), random.Random(3)
    talks = []
    for _ in range(1000):
        who, where = chance.randrange(200), min(int(chance.paretovariate(0.5)), 400)
        t_ns, server = START + chance.randrange(600 * SECOND), f"198.51.100.{where % 200}"
        talks.append((who % PROBES, visit(user(who), b"h%d.example" % where, t_ns, server)))
    parts = portions(talks, PROBES)
    for n, part in enumerate(parts):
        write(folder / f"p{n}.pcap", part)
    write(folder / "all.pcap", merged(parts))
    new_key(folder / "zanon.key")
    new_key(folder / "other.key")
    return folder


def command(captures: Path, source: str, out: Path) -> list[str]:
    key = ["--key-file", str(captures / "zanon.key"), "--internal", "10.0.0.0/8"]
    return ["run", str(captures / source), "-q", "--out", str(out), *SETTINGS, *FORMATS, *key]


def start_probe(
    captures: Path, source: str, place: str, out: Path, *more: str
) -> "subprocess.Popen[bytes]":
    """A probe that reads p0.pcap and so on; "-": p0, from what is written to it."""
    name = "p0" if source == "-" else source
    arguments = command(captures, f"{name}.pcap", out / name)
    if source == "-":
        arguments[1:2] = ["-", "--flush", "100ms"]
    counting = ["--count-at", place, "--probe", name, *more]
    return subprocess.Popen(
        [*COMMAND, *arguments, *counting],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def logs_of(folder: Path) -> dict[str, Counter[bytes]]:
    """The lines of each log, without a header."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.name: Counter(
            line for line in path.read_bytes().splitlines() if not line.startswith(b"#")
        )
        for path in files
        if path.name != "manifest.json"
    }


@pytest.mark.parametrize(
    ("scheme", "more"),
    [("tcp", {}), ("file", {"count_rotate": "4m"})],
    ids=["tcp", "file and generations"],
)
def test_probes_and_a_counter_write_what_one_run_writes(
    captures: Path, tmp_path: Path, scheme: str, more: dict[str, str]
) -> None:
    options = [text for name in more for text in (f"--{name.replace('_', '-')}", more[name])]
    assert run_main(*command(captures, "all.pcap", tmp_path / "one")) == 0
    (tmp_path / "votes").mkdir()
    place = f"tcp://127.0.0.1:{free_port()}" if scheme == "tcp" else f"file:{tmp_path}/votes"
    counter = start_counter(
        place, *SETTINGS, *options, "--shards", "2", "--expect-probes", PROBES, "--until-done"
    )
    probes = [start_probe(captures, f"p{n}", place, tmp_path, *options) for n in range(PROBES)]
    errors = [probe.communicate(timeout=120)[1] for probe in probes]
    assert [probe.returncode for probe in probes] == [0] * PROBES, errors
    assert counter.wait(60) == 0
    found: dict[str, Counter[bytes]] = {}
    for n in range(PROBES):
        for name, lines in logs_of(tmp_path / f"p{n}").items():
            found[name] = found.get(name, Counter()) + lines
    assert found == logs_of(tmp_path / "one")
    manifest = json.loads((tmp_path / "p0/manifest.json").read_bytes())
    assert manifest["counters"]["count"]["questions_unanswered"] == 0
    assert manifest["configuration"]["count"] == {"probe": "p0", "count_mode": "ask"} | more


@pytest.mark.parametrize(
    ("scheme", "options", "text"),
    [
        ("tcp", ["--user-prefix", "24,56"], "its --user-prefix is 24,56 and not 32,56, as at"),
        ("file", ["--user-prefix", "24,56"], "its --user-prefix is 24,56 and not 32,56, as at"),
        ("tcp", ["--evidence", "any"], "its --evidence is any and not established, as at"),
        ("file", ["--for", "public"], "its --dns-votes is no and not own, as at"),
        (
            "file",
            ["--key-file", "other.key"],
            "its --key-file holds another key and not theirs, as at",
        ),
    ],
)
def test_a_probe_that_counts_other_users_is_refused(
    captures: Path, tmp_path: Path, scheme: str, options: list[str], text: str
) -> None:
    """Also when the first one has ended; and what others would have released stays withheld."""
    (tmp_path / "votes").mkdir()
    place = f"tcp://127.0.0.1:{free_port()}" if scheme == "tcp" else f"file:{tmp_path}/votes"
    options = [str(captures / text) if text.endswith(".key") else text for text in options]
    counter = start_counter(place, *SETTINGS)
    try:
        first = start_probe(captures, "p0", place, tmp_path)
        assert first.wait(60) == 0
        other = start_probe(captures, "p1", place, tmp_path, "--count-leases", "no", *options)
        _out, err = other.communicate(timeout=60)
        assert other.returncode == 1
        line = err.decode().splitlines()[-1]
        assert f"{text} the probes counted before" in line
        assert "the counter refuses this probe: its --" in line
        assert not any(path.stat().st_size for path in (tmp_path / "p1").glob("observations*"))
        alike = start_probe(captures, "p2", place, tmp_path)
        assert alike.wait(60) == 0
    finally:
        counter.kill()
        counter.communicate()


def test_without_a_counter_a_run_ends(captures: Path, tmp_path: Path) -> None:
    place = f"tcp://127.0.0.1:{free_port()}"
    probe = start_probe(captures, "p0", place, tmp_path, "--count-wait", "1s")
    _out, err = probe.communicate(timeout=60)
    assert probe.returncode == 1
    assert b"no counter answers; start it, or correct --count-at" in err
    assert not (tmp_path / "p0").exists()


@pytest.mark.slow
def test_a_counter_is_killed_and_comes_back(captures: Path, tmp_path: Path) -> None:
    """What is asked meanwhile is suppressed, and what comes later is not."""
    assert run_main(*command(captures, "p0.pcap", tmp_path / "one")) == 0
    place, port = "tcp://127.0.0.1:{}", free_port()
    packets = (captures / "p0.pcap").read_bytes()
    third = len(packets) // 3
    counter = started_counter(port)
    probe = start_probe(captures, "-", place.format(port), tmp_path, "--count-hold", "1s")
    assert probe.stdin is not None
    probe.stdin.write(packets[:third])
    probe.stdin.flush()
    time.sleep(5)
    counter.kill()
    counter.wait()
    probe.stdin.write(packets[third : 2 * third])
    probe.stdin.flush()
    time.sleep(5)
    counter = started_counter(port)
    time.sleep(6)  # longer than it takes the probe to look for the counter again
    probe.stdin.write(packets[2 * third :])
    probe.stdin.close()
    assert probe.wait(120) == 0
    counter.kill()
    counter.wait()
    assert probe.stderr is not None
    said = probe.stderr.read().decode()
    assert "example" not in said
    observed = logs_of(tmp_path / "p0")["observations.jsonl"]
    assert observed <= logs_of(tmp_path / "one")["observations.jsonl"]
    times = sorted(json.loads(line)["t_ns"] - START for line in observed)
    assert times[0] < 200 * SECOND
    assert times[-1] > 450 * SECOND
    manifest = json.loads((tmp_path / "p0/manifest.json").read_bytes())
    counts = manifest["counters"]["count"]
    assert counts["questions_unanswered"] > 0
    assert not manifest["complete"]
    (note,) = (note for note in manifest["notes"] if "questions in time" in note)
    assert f"did not answer {counts['questions_unanswered']:,} of {counts['questions']:,} " in note
    assert f"zanon-net: warning: {note}\n" in said


def started_counter(port: int) -> "subprocess.Popen[str]":
    counter = start_counter(f"tcp://127.0.0.1:{port}", *SETTINGS)
    assert counter.stderr is not None
    assert "counting on port" in counter.stderr.readline()
    return counter


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--count-at", "tcp://127.0.0.1:9"], "--count-at needs --probe"),
        (["--probe", "p"], "--probe needs --count-at"),
        (["--count-at", "tls://localhost:9", "--probe", "p"], "--count-tls-cert: is missing"),
        (["--count-at", "tcp://127.0.0.1:9", "--probe", "p", "--z", "1"], "z: is 1"),
        (
            ["--count-at", "tcp://127.0.0.1:9", "--probe", "p", "--target-p", "0.9"],
            "--target-p: needs",
        ),
        (["--count-at", "tcp://127.0.0.1:9", "--probe", "p", "--popularity", "x"], "popularity"),
        (["--count-at", "tcp://127.0.0.1:9", "--probe", "p", "--format", "pcap"], "format"),
        (["--count-at", "tcp://192.0.2.1:9", "--probe", "p"], "use tls"),
        (["--count-at", "nonsense", "--probe", "p"], "place of a counter"),
        (["--count-at", "tcp://127.0.0.1:9", "--probe", "a b"], "probe: must be"),
        (["--count-rotate", "7d"], "--count-rotate: is for hashes that a counter gets"),
        (
            ["--count-at", "tcp://127.0.0.1:9", "--probe", "p", "--count-rotate", "179m"],
            "--count-rotate: must be at least 3h, a window and two epochs",
        ),
    ],
)
def test_wrong_options_are_one_line(
    captures: Path,
    tmp_path: Path,
    options: list[str],
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = ["--key-file", str(captures / "zanon.key")]
    out = ["--out", str(tmp_path / "out")]
    assert run_main("run", captures / "p0.pcap", *out, *key, *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line
    assert not (tmp_path / "out").exists()


def test_a_probe_needs_a_key(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counting = ["--count-at", "tcp://127.0.0.1:9", "--probe", "p"]
    out = ["--out", str(tmp_path / "out")]
    assert run_main("run", captures / "p0.pcap", *out, *counting) == 2
    assert "key_file (--key-file)" in capsys.readouterr().err
