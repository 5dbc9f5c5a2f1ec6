# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The run under test: started, asked and ended as an operator would."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.netns import Namespace

import zanon_net
from month.broken import Broken

PATIENCE_S = 300.0
STATUS_S = 0.5
FORMATS = ("tstat", "jsonl", "observations", "parquet")
SERVING = re.compile(rb"serving metrics on port (\d+)")


class Probe:
    """A process of `zanon-net run`, from its start to its end.

    home: the folder in which it makes its own, as the service does. said: the file that has all it
    says on stderr. options: further ones.
    """

    def __init__(
        self, net: Namespace, library: Path, home: Path, said: Path, options: Sequence[object]
    ) -> None:
        self.said = said
        self.metrics_file = said.with_suffix(".prom")
        self.statuses: list[dict[str, Any]] = []
        self._read = 0  # bytes of what it said
        self._port: int | None = None
        command = [sys.executable, "-m", "zanon_net", "run", "a", "-v"]
        command += [word for name in FORMATS for word in ("--format", name)]
        command += ["--status", f"{STATUS_S}s", "--status-format", "json", "--flush", "1s"]
        command += ["--metrics", "127.0.0.1:0", "--metrics-file", str(self.metrics_file)]
        package = str(Path(zanon_net.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": package, "LD_PRELOAD": str(library)}
        before = set(home.iterdir())
        former = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
        with net.inside(), said.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, *map(str, options)],
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        signal.signal(signal.SIGHUP, former)
        self.until("it listens", lambda: b"listening on a" in self.text())
        (self.out,) = (path for path in home.iterdir() if path not in before)

    # ---- what it says ----

    def text(self) -> bytes:
        """All that it has said."""
        return self.said.read_bytes()

    def look(self) -> dict[str, Any]:
        """Its last status, with those before in `statuses`."""
        with self.said.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            if line.startswith(b"{"):
                self.statuses.append(json.loads(line))
        return self.statuses[-1] if self.statuses else {"packets": 0, "capture_drops": {}}

    def next_statuses(self) -> None:
        """Waits for two statuses, the second of which has seen all that happened before."""
        self.look()
        due = len(self.statuses) + 2

        def are_there() -> bool:
            self.look()
            return len(self.statuses) >= due

        self.until("it says how it is", are_there)

    @property
    def packets(self) -> int:
        """What it has read, by its last status."""
        return int(self.look()["packets"])

    @property
    def lost(self) -> int:
        """What it has lost, by its last status."""
        return sum(self.look()["capture_drops"].values())

    def state(self) -> dict[str, Any]:
        """The manifest so far."""
        manifest: dict[str, Any] = json.loads((self.out / "manifest.json.partial").read_bytes())
        return manifest

    def manifest(self) -> dict[str, Any]:
        """The manifest of a run that has ended."""
        manifest: dict[str, Any] = json.loads((self.out / "manifest.json").read_bytes())
        return manifest

    @property
    def port(self) -> int:
        """Where its metrics are."""
        if self._port is None:
            found = SERVING.search(self.text())
            if found is None:
                raise Broken("it serves no metrics", str(self.said))
            self._port = int(found[1])
        return self._port

    # ---- how it is ----

    def resident(self) -> int:
        """Bytes of memory that it has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def until(self, what: str, condition: Callable[[], bool], *, may_end: bool = False) -> None:
        """Waits. Raises Broken where it does not come true, or the process ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if not may_end and not self.is_alive:
                raise Broken(f"it ended before {what}", self.last_words())
            if time.monotonic() > deadline:
                raise Broken(f"not in {PATIENCE_S:.0f} s: {what}", self.last_words())
            time.sleep(0.02)

    def last_words(self) -> str:
        """The last line that is no status."""
        lines = [line for line in self.text().splitlines() if not line.startswith(b"{")]
        return lines[-1].decode() if lines else "it said nothing"

    # ---- what is done to it ----

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM, code: int = 0) -> None:
        """Ends it by a signal."""
        self.send_signal(number)
        self.wait(code)

    def wait(self, code: int) -> None:
        """Waits for its end. Raises Broken where its exit code is another one."""
        try:
            ended = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Broken("it does not end", self.last_words()) from None
        if ended != code:
            raise Broken(f"exit code {ended}, not {code}", self.last_words())

    def close(self) -> None:
        """Leaves no process behind, whatever happened."""
        if self.is_alive:
            self.process.kill()
        self.process.wait()
