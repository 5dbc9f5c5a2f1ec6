# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that listen, and a counter in another namespace, which a cable of its own leads to."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.certificates import Authority
from support.counting import counter
from support.live import Live, data_of
from support.netns import Namespace
from support.packets import SECOND, crowd
from support.waiting import wait_until

from zanon_net.count.commits import Commit
from zanon_net.count.folder_transport import FolderTransport
from zanon_net.count.frames import Welcome
from zanon_net.count.service import CounterService, Outputs
from zanon_net.count.settings import CounterSettings
from zanon_net.count.transport import Received
from zanon_net.count.url import TlsFiles
from zanon_net.keys import new_key
from zanon_net.system.signals import Interruption

PROBES, COUNTER, PORT = "10.255.0.1", "10.255.0.2", 9471


@pytest.fixture
def far(net: Namespace) -> Iterator[Namespace]:
    """The counter's namespace, to which the interface `near` of the probes' leads."""
    with Namespace() as namespace:
        net.ip(f"link add near type veth peer name off netns {namespace.path}")
        net.ip(f"address add {PROBES}/24 dev near")
        namespace.ip(f"address add {COUNTER}/24 dev off")
        net.ip("link set dev near up")
        namespace.ip("link set dev off up")
        yield namespace


class Pair:
    """Two probes, which hear the cables b-a and d-c."""

    def __init__(self, net: Namespace, live: Any, authority: Authority, folder: Path) -> None:
        self._net = net
        new_key(folder / "zanon.key")
        net.cable("c", "d")
        self.runs: list[Live] = []
        for interface in ("a", "c"):
            tls = authority.certify(f"probe-{interface}")
            self.runs.append(
                live(
                    *(interface, "--probe", interface, "--count-at", f"tls://{COUNTER}:{PORT}"),
                    *("--count-tls-cert", tls.cert, "--count-tls-key", tls.key),
                    *("--count-tls-ca", tls.ca, "--key-file", folder / "zanon.key"),
                    *("--count-hold", "4s", "--count-leases", "no", "--flush", "100ms"),
                    *("--format", "observations", "--format", "jsonl", "--order", "closing"),
                )
            )

    def visit(self, host: bytes, end: str, first: int) -> None:
        """Somebody visits a host, seen by one of the probes."""
        self._net.send(end, data_of(crowd(host, 1, first=first)))

    def written(self, output: str) -> tuple[int, int]:
        """The lines of each probe in a file that is not whole yet."""
        first, second = (next(run.out.glob(f"{output}*.partial")) for run in self.runs)
        return first.read_bytes().count(b"\n"), second.read_bytes().count(b"\n")


def count_arguments(tls: TlsFiles) -> list[object]:
    files = ("--tls-cert", tls.cert, "--tls-key", tls.key, "--tls-ca", tls.ca)
    return [f"tls://{COUNTER}:{PORT}", *("--z", "2", "--expect-probes", "2"), *files]


@pytest.mark.slow
def test_probes_release_together_and_go_on_behind_a_cut(
    net: Namespace, far: Namespace, live: Any, tmp_path: Path
) -> None:
    """What is asked while there is no way to the counter is suppressed, and nothing later is."""
    authority = Authority(tmp_path)
    tls = authority.certify("counter", host=COUNTER)
    with far.inside(), counter(*count_arguments(tls)) as process:
        assert process.stderr is not None
        assert "counting on port" in process.stderr.readline()
        pair = Pair(net, live, authority, tmp_path)
        for n, end in enumerate("bdb"):
            pair.visit(b"shared.example", end, 10 * n)
        wait_until(lambda: pair.written("flows") == (2, 1))
        assert sum(pair.written("observations")) == 2
        net.ip("link set dev near down")
        for n, end in enumerate("bdb"):
            pair.visit(b"cut.example", end, 10 * n)
        wait_until(lambda: pair.written("flows") == (4, 2))
        net.ip("link set dev near up")

        def is_back() -> bool:
            time.sleep(0.2)
            pair.visit(b"back.example", "b", 50)
            pair.visit(b"back.example", "d", 60)
            return sum(pair.written("observations")) > 2

        wait_until(is_back)
        manifests = [run.end() for run in pair.runs]
    names = [[line["name"] for line in run.lines("observations.jsonl")] for run in pair.runs]
    assert all(set(found) <= {"shared.example", "back.example"} for found in names)
    assert sum(found.count("shared.example") for found in names) == 2
    assert "back.example" in names[0] + names[1]
    assert b"cut.example" not in b"".join(
        path.read_bytes() for path in tmp_path.rglob("*.jsonl") if path.is_file()
    )
    for run, manifest in zip(pair.runs, manifests, strict=True):
        assert manifest["error"] is None
        assert "10.255." not in run.said
        assert manifest["counters"]["count"]["questions_unanswered"] > 0
        assert len(run.lines("flows.jsonl")) == manifest["records"]["records"]


INTERVAL_S = 3


class SeldomTransport(FolderTransport):
    """Publishes answers every few seconds, as a job of Flink does with its checkpoints."""

    def __init__(self, folder: Path, welcome: Welcome) -> None:
        super().__init__(folder, welcome, max_age_s=1e6)
        self._kept: list[tuple[Commit, Sequence[bytes]]] = []
        self._due_s = time.monotonic() + INTERVAL_S

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        self._kept.append((commit, answers))

    def take(self, timeout: float) -> list[Received]:
        if time.monotonic() >= self._due_s:
            self._due_s += INTERVAL_S
            for commit, answers in self._kept:
                super().publish(commit, answers)
            self._kept = []
        return super().take(timeout)


@contextmanager
def seldom_counter(folder: Path, interval_ns: int) -> Iterator[None]:
    """A counter in a thread that says how often it answers."""
    settings = CounterSettings(z=2, window_ns=3600 * SECOND, rotate_ns=3600 * SECOND)
    transport = SeldomTransport(folder, Welcome(1, settings.number, interval_ns))
    service, interruption = CounterService(settings, transport, Outputs()), Interruption()
    thread = Thread(target=service.run, args=(interruption,))
    thread.start()
    try:
        yield
    finally:
        interruption.requested = True
        thread.join()


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_probe_waits_as_long_as_the_counter_says(
    net: Namespace, live: Any, tmp_path: Path, is_announced: bool
) -> None:
    """Without that, names are lost whose answers come: the control of this test."""
    new_key(tmp_path / "zanon.key")
    (tmp_path / "votes").mkdir()
    with seldom_counter(tmp_path / "votes", INTERVAL_S * SECOND * is_announced):
        run = live(
            *("a", "--probe", "a", "--count-at", f"file:{tmp_path}/votes", "--count-hold", "1s"),
            *("--key-file", tmp_path / "zanon.key", "--count-leases", "no", "--flush", "100ms"),
            *("--format", "observations", "--order", "closing"),
        )
        visits = 40
        for n in range(visits):
            net.send("b", data_of(crowd(b"shared.example", 1, first=n)))
            time.sleep(0.1)
        part = next(run.out.glob("observations*.partial"))
        if is_announced:
            wait_until(lambda: part.read_bytes().count(b"\n") == visits - 1)
        else:
            time.sleep(2 * INTERVAL_S)
        manifest = run.end()
    text = "the counter answers every 3s: names and records wait for it for 6s, not 1s (count_hold)"
    assert (text in run.said) == (text in manifest["notes"]) == is_announced
    assert (manifest["decisions"]["suppressed"]["unanswered"] == 0) == is_announced
    assert (len(run.lines("observations.jsonl")) == visits - 1) == is_announced
