# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that listen, and a counter in another namespace, which a cable of its own leads to."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority
from support.counting import counter
from support.live import Live, data_of
from support.netns import Namespace
from support.packets import crowd
from support.waiting import wait_until

from zanon_net.count.tls import TlsFiles
from zanon_net.keys import new_key

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
