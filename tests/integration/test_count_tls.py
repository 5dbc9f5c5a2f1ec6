# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net run --count-at tls://` and `zanon-net count tls://`: mutual TLS from end to end."""

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.certificates import Authority
from support.cli import COMMAND, ENVIRONMENT, run_main
from support.contract_runs import write
from support.counting import counter
from support.packets import SECOND, START, merged, user, visit
from support.ports import free_port
from support.probes import portions

from zanon_net.count.url import TlsFiles
from zanon_net.keys import new_key

SETTINGS = ["--z", "4", "--window", "2m", "--rotate", "1m"]
PROBES = 2


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p0.pcap, p1.pcap, all.pcap and the key."""
    folder, chance = tmp_path_factory.mktemp("captures"), random.Random(4)
    talks = []
    for _ in range(400):
        who, where = chance.randrange(60), min(int(chance.paretovariate(0.5)), 99)
        t_ns = START + chance.randrange(300 * SECOND)
        server = f"198.51.100.{where}"
        talks.append((who % PROBES, visit(user(who), b"h%d.example" % where, t_ns, server)))
    parts = portions(talks, PROBES)
    for n, part in enumerate(parts):
        write(folder / f"p{n}.pcap", part)
    write(folder / "all.pcap", merged(parts))
    new_key(folder / "zanon.key")
    return folder


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def command(captures: Path, source: str, out: Path) -> list[str]:
    key = ["--key-file", str(captures / "zanon.key"), "--internal", "10.0.0.0/8"]
    formats = ["--format", "tstat", "--format", "observations"]
    return ["run", source, "-q", "--out", str(out), *SETTINGS, *formats, *key]


def start_probe(
    captures: Path, name: str, out: Path, port: int, tls: TlsFiles, *more: str
) -> "subprocess.Popen[bytes]":
    """A probe that reads NAME.pcap; "-": what is written to it."""
    source = "-" if name == "-" else str(captures / f"{name}.pcap")
    files = ("--count-tls-cert", tls.cert, "--count-tls-key", tls.key, "--count-tls-ca", tls.ca)
    counting = ["--count-at", f"tls://127.0.0.1:{port}", "--probe", out.name, *map(str, files)]
    return subprocess.Popen(
        [*COMMAND, *command(captures, source, out), *counting, *more],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def count_arguments(port: int, tls: TlsFiles) -> list[str]:
    files = ("--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca)
    return [f"tls://127.0.0.1:{port}", *SETTINGS, *map(str, files)]


@contextmanager
def listening(port: int, tls: TlsFiles, *more: object) -> "Iterator[subprocess.Popen[str]]":
    """A counter that takes connections."""
    with counter(*count_arguments(port, tls), *more) as process:
        assert process.stderr is not None
        assert "counting on port" in process.stderr.readline()
        yield process


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


def test_probes_write_what_one_run_writes(
    captures: Path, authority: Authority, tmp_path: Path
) -> None:
    assert run_main(*command(captures, str(captures / "all.pcap"), tmp_path / "one")) == 0
    port = free_port()
    done = ("--expect-probes", PROBES, "--until-done", "--shards", "2")
    with listening(port, authority.certify("counter"), *done) as process:
        probes = [
            start_probe(captures, f"p{n}", tmp_path / f"p{n}", port, authority.certify(f"probe{n}"))
            for n in range(PROBES)
        ]
        errors = [probe.communicate(timeout=60)[1] for probe in probes]
        assert [probe.returncode for probe in probes] == [0] * PROBES, errors
        assert process.wait(60) == 0
    found: dict[str, Counter[bytes]] = {}
    for n in range(PROBES):
        for name, lines in logs_of(tmp_path / f"p{n}").items():
            found[name] = found.get(name, Counter()) + lines
    assert found == logs_of(tmp_path / "one")


@pytest.mark.parametrize(
    ("own", "text"),
    [
        ({"other": True}, "unable to get local issuer certificate"),
        ({"days": -1}, "certificate has expired"),
        ({"only_servers": True}, "unsuitable certificate purpose"),
    ],
)
def test_a_probe_that_the_counter_does_not_accept_is_one_line_at_both(
    captures: Path, authority: Authority, tmp_path: Path, own: dict[str, object], text: str
) -> None:
    """The run ends before it has read anything: no counter is there for it."""
    options, port = dict(own), free_port()
    of = Authority(tmp_path, "other") if options.pop("other", False) else authority
    tls = of.certify("probe", **options)  # type: ignore[arg-type]
    tls = TlsFiles(tls.cert, tls.key, authority.path)
    with listening(port, authority.certify("counter")) as process:
        probe = start_probe(captures, "p0", tmp_path / "p0", port, tls, "--count-wait", "2s")
        _out, err = probe.communicate(timeout=30)
        process.terminate()
        _out, said = process.communicate(timeout=30)
    lines = err.decode().splitlines()
    assert probe.returncode == 1
    assert len(lines) == 2, lines
    assert "no counter answers: " in lines[0]
    assert "no counter answers; start it, or correct --count-at" in lines[1]
    assert not (tmp_path / "p0").exists()
    assert "Traceback" not in said
    assert "127.0.0" not in err.decode() + said
    (line,) = [line for line in said.splitlines() if "warning" in line]
    assert "a client is refused: its certificate is not accepted" in line
    assert text in line


NOT_THE_COUNTER = [
    ({"days": -1}, "certificate has expired"),
    ({"host": "127.0.0.9"}, "IP address mismatch"),
    ({"other": True}, "signed certificate"),
]


@pytest.mark.parametrize(("own", "text"), NOT_THE_COUNTER)
def test_a_counter_that_the_probe_does_not_accept_is_one_line(
    captures: Path, authority: Authority, tmp_path: Path, own: dict[str, object], text: str
) -> None:
    options, port = dict(own), free_port()
    of = Authority(tmp_path, "other") if options.pop("other", False) else authority
    with listening(port, of.certify("counter", **options)):  # type: ignore[arg-type]
        tls = authority.certify("probe")
        probe = start_probe(captures, "p0", tmp_path / "p0", port, tls, "--count-wait", "2s")
        _out, err = probe.communicate(timeout=30)
    lines = err.decode().splitlines()
    assert probe.returncode == 1
    assert len(lines) == 2, lines
    assert "no counter answers: its certificate is not accepted" in lines[0]
    assert text in lines[0]
    assert "127.0.0" not in err.decode()


def test_a_counter_that_is_another_one_by_and_by_is_not_asked(
    captures: Path, authority: Authority, tmp_path: Path
) -> None:
    """Its certificate has expired: the probe suppresses, and goes on to its end."""
    packets = (captures / "p0.pcap").read_bytes()
    half, port = len(packets) // 2, free_port()
    with listening(port, authority.certify("counter")):
        more = ("--flush", "100ms", "--count-hold", "500ms", "--count-leases", "no")
        probe = start_probe(captures, "-", tmp_path / "p", port, authority.certify("p"), *more)
        assert probe.stdin is not None
        probe.stdin.write(packets[:half])
        probe.stdin.flush()
        time.sleep(2)
    assert probe.stderr is not None
    said = b""
    with listening(port, authority.certify("later", days=-1)):
        while b"certificate has expired" not in said:
            line = probe.stderr.readline()
            assert line, said
            said += line
        probe.stdin.write(packets[half:])
        _out, err = probe.communicate(timeout=60)
    assert probe.returncode == 0, said + err
    assert (said + err).count(b"certificate has expired") == 1
    assert b"127.0.0" not in said + err
    counts = json.loads((tmp_path / "p/manifest.json").read_bytes())["counters"]["count"]
    assert 0 < counts["questions_unanswered"] < counts["questions"]
