# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes and a counter as processes, where packets or a probe's clock have wrong times."""

import json
import random
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.certificates import Authority
from support.cli import COMMAND, ENVIRONMENT, run_main
from support.contract_runs import write
from support.counting import counter
from support.packets import HOUR, MINUTE, SECOND, START, Frame, Udp, merged, user, visit
from support.probes import Portions, portions

from zanon_net.count.url import TlsFiles
from zanon_net.keys import new_key

SETTINGS = ["--z", "4", "--window", "2m", "--rotate", "2m", "--internal", "10.0.0.0/8"]
FIFTY_YEARS = 50 * 365 * 24 * HOUR
LENGTH, MIDDLE = 600 * SECOND, 200 * SECOND


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    new_key(path)
    return path


def traffic(start_ns: int, length_ns: int = LENGTH) -> Portions:
    """Visits of 60 users to a few servers, at two probes."""
    chance = random.Random(8)
    talks = []
    for _ in range(800):
        who, where = chance.randrange(60), min(int(chance.paretovariate(0.7)), 40)
        t_ns, server = start_ns + chance.randrange(length_ns), f"198.51.100.{where}"
        talks.append((who % 2, visit(user(who), b"h%d.example" % where, t_ns, server)))
    return portions(talks, 2)


def strays(count: int, first_ns: int, every_ns: int) -> list[Frame]:
    packets = (
        Udp("10.9.0.1", "198.51.100.99", (9, 9), first_ns + n * every_ns).send(b"x").frames
        for n in range(count)
    )
    return [frame for frames in packets for frame in frames]


def command(source: Path, out: Path, key: Path) -> list[str]:
    formats = ["--format", "observations", "--format", "jsonl"]
    options = ["-q", "--out", str(out), *SETTINGS, *formats, "--key-file", str(key)]
    return ["run", str(source), *options]


def run_probes(
    parts: Portions, tmp_path: Path, key: Path, place: str, *more: str, ca: Authority | None = None
) -> list[bytes]:
    """Runs both to their ends; returns what they say. ca: of certificates, for TLS."""
    probes = []
    for n, part in enumerate(parts):
        write(tmp_path / f"p{n}.pcap", part)
        arguments = command(tmp_path / f"p{n}.pcap", tmp_path / f"p{n}", key)
        counting = ["--count-at", place, "--probe", f"p{n}", "--count-leases", "no", *more]
        if ca is not None:
            counting += tls_options(ca.certify(f"p{n}"), "--count-tls-")
        probes.append(
            subprocess.Popen(
                [*COMMAND, *arguments, *counting], env=ENVIRONMENT, stderr=subprocess.PIPE
            )
        )
    said = [probe.communicate(timeout=120)[1] for probe in probes]
    assert [probe.returncode for probe in probes] == [0, 0], said
    return said


def tls_options(tls: TlsFiles, prefix: str) -> list[str]:
    files = (("cert", tls.cert), ("key", tls.key), ("ca", tls.ca))
    return [text for name, path in files for text in (prefix + name, str(path))]


@contextmanager
def listening(
    *more: object, ca: Authority | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    scheme = "tcp" if ca is None else "tls"
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
    options = [text for text in SETTINGS if text not in ("--internal", "10.0.0.0/8")]
    if ca is not None:
        options += tls_options(ca.certify("counter"), "--tls-")
    with counter(place, *options, *more) as process:
        assert process.stderr is not None
        assert "counting on port" in process.stderr.readline()
        yield place, process


def observed(folders: list[Path], from_ns: int = 0) -> Counter[str]:
    found: Counter[str] = Counter()
    for folder in folders:
        for line in (folder / "observations.jsonl").read_text().splitlines():
            if json.loads(line)["t_ns"] >= from_ns:
                found[line] += 1
    return found


def servers(folders: list[Path]) -> Counter[str]:
    return Counter(
        flow["server"]
        for folder in folders
        for flow in map(json.loads, (folder / "flows.jsonl").read_text().splitlines())
        if flow["server"]
    )


@pytest.mark.parametrize(
    ("count", "away", "numbers", "with_tls"),
    [
        (1, FIFTY_YEARS, 2, False),
        (1, -10 * HOUR, 2, False),
        (300, FIFTY_YEARS, 3, False),
        (300, FIFTY_YEARS, 3, True),
    ],
)
def test_a_run_goes_on_after_packets_of_another_time(
    key: Path, tmp_path: Path, count: int, away: int, numbers: int, with_tls: bool
) -> None:
    """One is never told of; many are refused, and then the probe takes another number."""
    parts = traffic(START)
    write(tmp_path / "one.pcap", merged(parts))
    assert run_main(*command(tmp_path / "one.pcap", tmp_path / "one", key)) == 0
    at = next(n for n, frame in enumerate(parts[0]) if frame.t_ns >= START + MIDDLE)
    parts[0][at:at] = strays(count, START + MIDDLE + away, SECOND)
    done = ("--expect-probes", 2, "--until-done", "--probe-timeout", "2s", "--json")
    ca = Authority(tmp_path) if with_tls else None
    with listening(*done, ca=ca) as (place, process):
        said = run_probes(parts, tmp_path, key, place, ca=ca)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    counts = json.loads(out)
    assert counts["ended"] == 2
    assert counts["probes"] == numbers
    assert (b"clock was set back" in said[0]) == (numbers == 3), said
    assert ("ahead of the counter's" in err) == (numbers == 3)
    folders, one = [tmp_path / "p0", tmp_path / "p1"], [tmp_path / "one"]
    assert observed(folders) <= observed(one)
    later = START + MIDDLE + 3 * MINUTE
    assert observed(folders, later) == observed(one, later)
    assert observed(folders, later).total() > 100
    assert servers(folders) <= servers(one)


@pytest.mark.parametrize("away", [HOUR, -HOUR])
def test_a_clock_that_is_an_hour_off_from_the_start(key: Path, tmp_path: Path, away: int) -> None:
    """Names of fewer than z people are released nowhere, and a line says so once a minute."""
    parts = traffic(time.time_ns() - 2 * MINUTE, MINUTE)
    parts[1] = [replace(frame, t_ns=frame.t_ns + away) for frame in parts[1]]
    write(tmp_path / "one.pcap", merged(parts))
    assert run_main(*command(tmp_path / "one.pcap", tmp_path / "one", key)) == 0
    began = time.monotonic()
    with listening("--probe-timeout", "2s") as (place, process):
        said = run_probes(parts, tmp_path, key, place, "--count-hold", "2s")
        process.terminate()
        _out, err = process.communicate(timeout=30)
    folders, one = [tmp_path / "p0", tmp_path / "p1"], [tmp_path / "one"]
    assert observed(folders) <= observed(one)
    assert observed(folders[:1]).total() > 0
    assert servers(folders) <= servers(one)
    if away > 0:
        minutes = 1 + int(time.monotonic() - began) // 60  # each of which has a line
        refused, others = [], []
        for line in said[1].decode().splitlines():
            is_about_it = "the counter refuses this probe for now: its clock is " in line
            (refused if is_about_it else others).append(line)
        assert 1 <= len(refused) <= minutes
        # A connection that the counter ends may be lost before its reason is read. No question of
        # the probe has an answer.
        expected = ("the connection to the counter is lost: ", "the counter did not answer ")
        assert all(any(text in line for text in expected) for line in others), others
        assert 1 <= err.count("its clock is ") <= minutes
        assert observed(folders[1:]).total() == 0
    else:
        assert said == [b"", b""]
