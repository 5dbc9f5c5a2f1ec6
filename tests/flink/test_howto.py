# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of the how-to for Flink, on a cluster with Flink's own settings and two live probes.

The machine is a network namespace with the interfaces eth0 and eth1, a namespace of processes, and
one of mounts, in which /srv is a folder of the test. A run without a counter reads both
interfaces, and the two probes together have to write the lines of its logs.
"""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from support.flink_cluster import DEADLINE_S, PYTHON, ask, long_form, wanted
from support.howtos import blocks
from support.live import data_of
from support.netns import Namespace, permitted_namespace
from support.packets import user, visit

pytestmark = wanted()

CLUSTER, NORTH, SOUTH, RESCALE, STOP = blocks("flink.md")[1:]
ALONE = "zanon-net run eth0 eth1 --internal 10.0.0.0/8 --z 20 --key-file zanon.key --out alone"
VISITORS = 30  # of a host, half of them at each probe: neither probe has z of them
PAUSE_S = 0.03  # between two visits
TRAFFIC_S = 20


class Shell:
    """A shell in namespaces of its own, which runs commands one after the other."""

    def __init__(self, net: Namespace, folder: Path) -> None:
        self._folder = folder
        new = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        environ = {
            **os.environ,
            "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
            "FLINK_LOG_DIR": str(folder / "log"),
            "FLINK_PID_DIR": str(folder / "pid"),
        }
        with net.inside():
            self._process = subprocess.Popen(
                [*new, "bash"], cwd=folder, env=environ, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()  # ends all that it started
        self._process.communicate()

    def run(self, block: str) -> list[str]:
        """Returns the lines that a block of commands prints. Fails if its last command fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{{ {block}\n}} < /dev/null\nprintf '\\nend %d\\n' $?\n")
        self._process.stdin.flush()
        said: list[str] = []
        for line in self._process.stdout:
            if line.startswith("end "):
                assert line == "end 0\n", "".join(said)
                return "".join(said).split("\n")[:-2]
            said.append(line)
        raise AssertionError("".join(said))

    def start_probe(self, block: str, name: str) -> None:
        """Starts a block whose last command is a run, and waits until the run listens."""
        log = self._folder / f"{name}.said"
        log.touch()
        self.run(f"{{ {block}\n}} > {log} 2>&1 &")
        wait(lambda: "listening on" in log.read_text(), log.read_text)


def wait(is_so: Callable[[], bool], what: Callable[[], str]) -> None:
    """Waits until a condition holds. what: the problem if it never does."""
    until = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < until, what()
        time.sleep(0.2)


@contextmanager
def visits(net: Namespace) -> Iterator[None]:
    """Users visit hosts, in turns at the interfaces of both probes."""
    ends, is_over = [net.sender("tap0"), net.sender("tap1")], Event()

    def send() -> None:
        for n in count():
            host, visitor = divmod(n, VISITORS)
            server = f"198.51.100.{host % 250 + 1}"
            for frame in data_of(visit(user(visitor), b"host%d.example" % host, 0, server)):
                ends[n % 2].send(frame)
            if is_over.wait(PAUSE_S):
                return

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def tasks_of(job: str, net: Namespace) -> int:
    """The number of tasks of a job that runs; 0 for another job."""
    with net.inside():
        about = ask("127.0.0.1:8081", f"/jobs/{job}")
    if about.get("state") != "RUNNING":
        return 0
    vertex = about["vertices"][0]
    return vertex["parallelism"] if vertex["status"] == "RUNNING" else 0


def flows(*outs: Path) -> Counter[str]:
    """The lines of the logs with a name."""
    logs = [path.read_text() for out in outs for path in out.glob("*/log_tcp_complete")]
    return Counter(line for log in logs for line in log.splitlines() if ".example" in line)


@pytest.mark.parametrize("is_rescaled", [False, pytest.param(True, marks=long_form)])
def test_the_commands_count_and_lose_no_name(tmp_path: Path, is_rescaled: bool) -> None:
    """Busy machines take minutes to stop a job and to start the next, so the probes wait longer."""
    hold = " --count-hold 10m" * is_rescaled
    for name in ("srv", "log"):
        (tmp_path / name).mkdir()
    with permitted_namespace() as net, Shell(net, tmp_path) as shell:
        net.ip("link set dev lo up")
        for n in range(2):
            net.cable(f"eth{n}", f"tap{n}")
            net.recorder(f"eth{n}")  # every run gets the same times
        shell.run("set -m; mount --make-rprivate / && mount --bind srv /srv")
        job = shell.run(CLUSTER)[-1]
        shell.start_probe(NORTH.rstrip() + hold, "north")
        shell.start_probe(SOUTH.rstrip() + hold, "south")
        shell.start_probe(ALONE, "alone")
        with visits(net):
            time.sleep(TRAFFIC_S)
            assert tasks_of(job, net) == 1
            if is_rescaled:
                job = shell.run(RESCALE)[-1]
                wait(lambda: tasks_of(job, net) == 2, lambda: f"{job} has no two tasks")
                time.sleep(TRAFFIC_S)
        shell.run("sleep 1; kill -INT %1 %2 %3; wait %1 %2 %3")
        shell.run(STOP)
    outs = [tmp_path / name for name in ("north", "south")]
    manifests = [json.loads((out / "manifest.json").read_text()) for out in outs]
    notes = [note for manifest in manifests for note in manifest["notes"]]
    expected, found = flows(tmp_path / "alone"), flows(*outs)
    assert expected.total() > 100
    assert found == expected, f"{(expected - found).total()} of {expected.total()} lost: {notes}"
    assert all(manifest["complete"] for manifest in manifests)
    held = (
        "the counter answers every 42s: names and records wait for it for 84s, not 5s (count_hold)"
    )
    assert notes == ([] if is_rescaled else [held] * 2)
