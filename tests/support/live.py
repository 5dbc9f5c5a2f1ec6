# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A virtual cable in a namespace, a sender at one end, `zanon-net run` at the other."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import zanon_net
from support import wire
from support.netns import Namespace
from support.packets import Frame

# Child processes import the package that this one uses.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "zanon_net", "run")
USUAL = ("--internal", "10.0.0.0/8", "--z", "2")
PATIENCE_S = 60.0
MAX_DATAGRAMS = 1024  # ZN_DEFRAG_DATAGRAMS
STATUS = re.compile(
    r"status: .*packets ([\d,]+) .*dropped ([\d,]+) by the ring, ([\d,]+) by the interface,"
    r" ([\d,]+) by us"
)


class Live:
    """`zanon-net run` on interfaces, in a process of its own."""

    command: Sequence[str] = COMMAND
    stdout: int | None = None

    def __init__(self, net: Namespace, out: Path, *arguments: object) -> None:
        self.out = out
        command = [*self.command, *self.usual()]
        with net.inside():
            self.process = subprocess.Popen(
                [*command, *(str(argument) for argument in arguments)],
                env=ENVIRONMENT,
                stderr=subprocess.PIPE,
                stdout=self.stdout,
                stdin=subprocess.DEVNULL,
            )
        self.said = ""
        self.wait_for("listening on")

    def usual(self) -> list[str]:
        """The options that every run has."""
        return ["-v", "--out", str(self.out)]

    def wait_for(self, text: str) -> None:
        """Reads its messages until `text` is in the new ones."""
        assert self.process.stderr is not None
        new, until = "", time.monotonic() + PATIENCE_S
        while text not in new:
            ready, _, _ = select.select([self.process.stderr], [], [], until - time.monotonic())
            assert ready, f"no {text!r} in {PATIENCE_S} s: {new}"
            piece = os.read(self.process.stderr.fileno(), 4096).decode()
            assert piece, f"it ended without {text!r}: {new}"
            new += piece
        self.said += new

    def wait_for_packets(self, n: int) -> None:
        """Reads its status lines until one has n packets or more."""
        while not any(int(found[0].replace(",", "")) >= n for found in STATUS.findall(self.said)):
            self.wait_for("status:")

    def wait_for_frames(self, n: int) -> None:
        """Reads its status lines until one accounts for n frames or more, as read or as lost. The
        system may deliver a frame long after it was sent."""
        while not any(
            sum(int(count.replace(",", "")) for count in found) >= n
            for found in STATUS.findall(self.said)
        ):
            self.wait_for("status:")

    def wait_for_interfaces(self) -> None:
        """Reads its status lines until one has no interface that is away."""
        self.wait_for("status:")
        while "away since" in re.findall(r"status: (.*)\n", self.said)[-1]:
            self.wait_for("status:")

    def end(self, number: int = signal.SIGTERM, code: int = 0) -> dict[str, Any]:
        """Ends it by a signal; returns its manifest. code: its exit code."""
        self.process.send_signal(number)
        _nothing, said = self.process.communicate(timeout=PATIENCE_S)
        self.said += said.decode()
        assert self.process.returncode == code, self.said
        assert not list(self.out.rglob("*.partial"))
        manifest: dict[str, Any] = json.loads((self.out / "manifest.json").read_text())
        return manifest

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of a JSONL output."""
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]


def thread_statuses(run: Live) -> list[str]:
    """What /proc says of each thread, but of those that end meanwhile, such as one that answers."""
    statuses = []
    for thread in Path(f"/proc/{run.process.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            statuses.append((thread / "status").read_text())
    assert statuses
    return statuses


def datagrams(n: int, size: int = 60) -> list[bytes]:
    """n numbered frames of UDP datagrams."""
    return [
        wire.ethernet(wire.ipv4(wire.udp(i.to_bytes(4, "big") + bytes(size)), wire.UDP))
        for i in range(n)
    ]


def let_anybody_pass(folder: Path) -> None:
    """Lets every user reach the files in a folder."""
    for parent in (folder, *folder.parents[:-1]):
        if not parent.stat().st_mode & 1:
            parent.chmod(parent.stat().st_mode | 0o11)


def data_of(frames: Sequence[Frame]) -> list[bytes]:
    return [frame.data for frame in frames]


def only(manifest: dict[str, Any]) -> dict[str, Any]:
    """The only source of a run."""
    (source,) = manifest["sources"]
    assert isinstance(source, dict)
    return source
