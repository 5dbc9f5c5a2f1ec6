# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`--metrics` and `--metrics-file` on captures: what is refused, served and written."""

import ipaddress
import json
import random
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from support.canary import Canaries
from support.cli import ENVIRONMENT, run_here
from support.demo import read_truth
from support.metrics import HURRIED, PATIENCE_S, SERVING, samples, scrape, shapes, until

from zanon_net.pipeline.metrics import METRICS, rounded


def call(*arguments: object, code: int, cwd: Path) -> str:
    """What the command says when it is not to come to anything, or to all of it."""
    with chdir(cwd):
        done = run_here(*arguments)
    said = done.stderr.decode()
    assert done.returncode == code, said
    assert code == 0 or said.count("\n") == 1
    return said


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("run",), ("packets", "--dry-run")])
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--metrics", "0.0.0.0:9464"], "--metrics: other machines reach this address"),
        (["--metrics", "[::]:9464"], "--metrics: other machines reach this address"),
        (["--metrics", "probe:9464"], "--metrics: must be an address and a port"),
        (["--metrics-anywhere"], "--metrics-anywhere: is for metrics"),
        (["--metrics-file", "m.txt"], "--metrics-file: must be the path of a file that ends"),
    ],
)
def test_usage(
    command: tuple[str, ...], options: list[str], problem: str, demo_pcap: Path, tmp_path: Path
) -> None:
    outputs = ["x.pcap"] if command[0] == "packets" else []
    said = call(*command, demo_pcap, *outputs, *options, code=2, cwd=tmp_path)
    assert problem in said
    assert not list(tmp_path.iterdir())


def test_a_port_in_use(demo_pcap: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = call("run", demo_pcap, "--metrics", f"127.0.0.1:{port}", code=1, cwd=tmp_path)
    assert said == (
        f"zanon-net: cannot serve metrics on port {port}: Address already in use;"
        " choose another port\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_file_in_no_folder(demo_pcap: Path, tmp_path: Path) -> None:
    said = call("run", demo_pcap, "--metrics-file", "no/m.prom", code=1, cwd=tmp_path)
    assert "cannot write no/m.prom: No such file or directory; make the folder" in said
    assert not list(tmp_path.iterdir())


def test_without_the_library(demo_pcap: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['prometheus_client'] = None;"
        " from zanon_net.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", str(demo_pcap), "--metrics", "127.0.0.1:0"],
        env=ENVIRONMENT,
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "zanon-net: metrics need prometheus-client; install it with: pip install"
        " 'zanon-net[metrics]'\n"
    )
    assert not list(tmp_path.iterdir())


# ---- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_the_last_file_is_the_manifest(workers: int, demo_pcap: Path, tmp_path: Path) -> None:
    formats = ("tstat", "jsonl", "parquet", "observations")
    options = [word for name in formats for word in ("--format", name)]
    options += ["--metrics-file", "zanon.prom", "--workers", str(workers), "--split", "30m"]
    call("run", demo_pcap, "--out", "out", "--z", 5, *options, code=0, cwd=tmp_path)
    found = samples((tmp_path / "zanon.prom").read_text())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    decisions, counters = manifest["decisions"], manifest["counters"]
    expected: dict[tuple[str, str], float] = {
        ("zanon_packets_total", ""): counters["read"]["frames"],
        ("zanon_bytes_total", ""): counters["read"]["bytes_wire"],
        ("zanon_open_flows", ""): 0,
        ("zanon_z", ""): 5,
        ("zanon_late_total", ""): decisions["late"],
        ("zanon_decisions_total", "released"): decisions["released"],
        ("zanon_decisions_total", "generalized"): decisions["generalized"],
    }
    expected |= {("zanon_decisions_total", k): n for k, n in decisions["suppressed"].items()}
    for place, lost in manifest["capture_drops"].items():
        expected["zanon_capture_dropped_packets_total", place] = lost
    for name in formats:
        files = [file for file in manifest["outputs"] if _format(file["file"]) == name]
        expected["zanon_output_records_total", name] = sum(file["records"] for file in files)
    for name in ("jsonl", "observations"):
        files = [file for file in manifest["outputs"] if _format(file["file"]) == name]
        expected["zanon_output_bytes_total", name] = sum(file["bytes"] for file in files)
    assert found == found | {key: rounded(number) for key, number in expected.items()}


def _format(file: str) -> str:
    if file.endswith(".parquet"):
        return "parquet"
    if file.endswith(".jsonl"):
        return "observations" if file.startswith("observations") else "jsonl"
    return "tstat"


def test_packets(demo_pcap: Path, tmp_path: Path) -> None:
    call(
        *("packets", demo_pcap, "shared.pcapng", "--internal", "10.0.0.0/8"),
        *("--metrics-file", tmp_path / "zanon.prom", "--view", "small:payload=cut"),
        code=0,
        cwd=tmp_path,
    )
    found = samples((tmp_path / "zanon.prom").read_text())
    manifest = json.loads((tmp_path / "shared.pcapng.manifest.json").read_text())
    records = {file["file"]: file["records"] for file in manifest["outputs"]}
    assert found["zanon_output_records_total", "pcapng"] == rounded(records["shared.pcapng"])


# ---- the server ---------------------------------------------------------------------------------


class Replay:
    """A run that reads what it is fed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*HURRIED, "run", "-", "--out", "out", "-v", *options],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stderr=(folder / "said").open("wb"),
            cwd=folder,
        )

    def said(self) -> str:
        """Its messages so far."""
        return (self.folder / "said").read_text()

    def port(self) -> int:
        """Where its metrics are."""
        until(lambda: SERVING.search(self.said()) is not None)
        found = SERVING.search(self.said())
        assert found is not None
        return int(found[1])

    def feed(self, data: bytes) -> None:
        """Feeds it."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self) -> None:
        """Ends the input, and waits for the run."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_S) == 0, self.said()


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[Callable[..., Replay]]:
    """Starts a Replay; whatever happens, none is left running."""
    started: list[Replay] = []

    def start(*options: str) -> Replay:
        started.append(Replay(tmp_path, *options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def asked(port: int, random_: random.Random) -> bytes:
    """A scrape with a path, a query and headers that a client may send."""
    query = random_.choice(["", "?name[]=zanon_z", "?name[]=10.100.1.2", "?%00", "?name[]=%ff"])
    path = random_.choice(["/metrics", "/", "/../alice-nas.example", "//[", "/%2e%2e"])
    accept = random_.choice(["*/*", "application/openmetrics-text; version=1.0.0", ";;q=,"])
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}{query}",
        headers={"Accept": accept, "X-Forwarded-For": "10.100.1.2"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return bytes(answer.headers) + answer.read()


def test_no_scrape_tells_of_the_traffic(
    replay: Callable[..., Replay], demo_pcap: Path, demo_truth: Path, tmp_path: Path
) -> None:
    """No name, also a released one, and no address, while the demo's capture is read piece by
    piece."""
    truth = read_truth(demo_truth)
    ends = {ipaddress.ip_address(line[end]) for line in truth for end in ("client", "server")}
    net = Canaries.of(ends, {line["name"] for line in truth})
    run = replay("--metrics", "127.0.0.1:0", "--metrics-file", "zanon.prom", "--z", "5")
    data, seen, packets = demo_pcap.read_bytes(), bytearray(), [0.0]
    shapes_seen: set[str] = set()
    pieces, random_ = 8, random.Random(7)
    for piece in range(pieces):
        run.feed(data[len(data) * piece // pieces : len(data) * (piece + 1) // pieces])
        port = run.port()
        for _time in range(40):
            seen += asked(port, random_)
        until(lambda: samples(scrape(run.port()))["zanon_packets_total", ""] > packets[-1])
        written = (tmp_path / "zanon.prom").read_text()
        seen += written.encode()
        shapes_seen |= shapes(written) | shapes(scrape(port))
        packets.append(samples(scrape(port))["zanon_packets_total", ""])
    run.end()
    assert packets == sorted(packets)
    assert packets[-1] > 0
    assert net.found_in(b"server 10.100.1.2 of alice-nas.example ") != set()
    assert net.found_in(bytes(seen)) == set()
    assert net.found_in((tmp_path / "zanon.prom").read_bytes()) == set()
    assert shapes_seen == shapes((tmp_path / "zanon.prom").read_text())
    assert "Traceback" not in run.said()


def test_what_a_scrape_may_hold(
    replay: Callable[..., Replay], demo_pcap: Path, tmp_path: Path
) -> None:
    """Metrics of the table alone, of three digits, renewed by the run and not by the scrape."""
    run = replay("--metrics", "127.0.0.1:0")
    run.feed(demo_pcap.read_bytes()[: 1 << 20])
    port = run.port()
    run.feed(demo_pcap.read_bytes()[1 << 20 : 2 << 20])
    told: dict[str, Any] = {metric.full_name: metric for metric in METRICS}
    for (name, _label), value in samples(scrape(port)).items():
        assert name in told or name == "zanon_snapshot_age_seconds"
        assert name == "zanon_key_epoch_start_seconds" or value == rounded(value)
    run.end()
    with pytest.raises(OSError, match="refused"):
        scrape(port)
