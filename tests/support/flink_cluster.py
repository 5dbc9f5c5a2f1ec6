# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A cluster of processes, started by Flink's own scripts in a temporary folder."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pytest

from support.ports import free_port
from zanon_net.flink.java_classes import LIGHT_JIT

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-flink" / "bin" / "python"
DEADLINE_S = 300


IS_LONG = os.environ.get("ZANON_FLINK") == "long"
long_form = pytest.mark.skipif(not IS_LONG, reason="takes minutes: make test-flink")


def wanted() -> list[pytest.MarkDecorator]:
    """The marks of a module that needs Flink."""
    has_all = PYTHON.exists() and shutil.which("javac") is not None
    return [
        pytest.mark.source,
        pytest.mark.slow,
        pytest.mark.timeout(1800 if IS_LONG else 1200),
        pytest.mark.skipif(
            "ZANON_FLINK" not in os.environ or not has_all,
            reason="needs Flink and Java: make test-flink-quick",
        ),
    ]


def flink_home() -> Path:
    return next((PYTHON.parents[1] / "lib").glob("python3.*/site-packages/pyflink"))


def ask(address: str, path: str) -> dict:
    """Returns the answer of a job manager; empty if it does not answer."""
    with (
        suppress(OSError, ValueError),
        urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer,
    ):
        return json.load(answer)
    return {}


class FlinkCluster:
    """A job manager and task managers of one slot each.

    Everything they write is below `folder`: configuration, logs, process ids and checkpoints.
    more: settings of Flink beside those of all tests.
    """

    def __init__(
        self,
        folder: Path,
        *,
        task_managers: int = 2,
        backend: str = "hashmap",
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.folder, self._wanted = folder, task_managers
        self.checkpoints, self.savepoints = folder / "checkpoints", folder / "savepoints"
        self.rest, rpc = free_port(), free_port()
        self._settings = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.rpc.port": rpc,
            "jobmanager.memory.process.size": "700m",
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.memory.process.size": "1g",
            "env.java.opts.taskmanager": LIGHT_JIT,
            "taskmanager.memory.managed.size": "128m",
            "taskmanager.memory.jvm-metaspace.size": "192m",
            "taskmanager.numberOfTaskSlots": 1,
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self.rest,
            "rest.bind-port": self.rest,
            "heartbeat.interval": "1 s",
            "heartbeat.timeout": "20 s",
            "heartbeat.rpc-failure-threshold": 2,
            "blob.server.port": 0,
            "io.tmp.dirs": folder / "tmp",
            "state.backend.type": backend,
            "execution.checkpointing.dir": self.checkpoints.as_uri(),
            "execution.checkpointing.savepoint-dir": self.savepoints.as_uri(),
            **more,
        }

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.rest}"

    def __enter__(self) -> "FlinkCluster":
        home, conf = flink_home(), self.folder / "conf"
        conf.mkdir(parents=True)
        for name in ("log", "tmp"):
            (self.folder / name).mkdir()
        for path in (home / "conf").glob("log4j*.properties"):
            (conf / path.name).write_bytes(path.read_bytes())
        java = _java_options(home / "conf" / "config.yaml")
        lines = [f"{key}: {value}" for key, value in self._settings.items()]
        (conf / "config.yaml").write_text("\n".join([*lines, java]) + "\n")
        self._environment = {
            **os.environ,
            "FLINK_HOME": str(home),
            "FLINK_CONF_DIR": str(conf),
            "FLINK_LOG_DIR": str(self.folder / "log"),
            "FLINK_PID_DIR": str(self.folder / "pid"),
            "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        try:
            self._script("jobmanager.sh", "start")
            for _ in range(self._wanted):
                self.start_task_manager()
            self.wait(self.has_all_slots, "the task managers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for pid in self._pids("standalonesession") + self._pids("taskexecutor"):
            _kill_tree(pid)

    def start_task_manager(self) -> None:
        self._script("taskmanager.sh", "start")

    def has_all_slots(self) -> bool:
        return self.get("/overview").get("slots-total", 0) >= self._wanted

    def kill_task_manager(self, away_s: float = 0) -> list[int]:
        """kill -9 of one that runs Python, and starts another later; the processes that it had
        started, which must find out by themselves."""
        running = [pid for pid in self._pids("taskexecutor") if is_alive(pid)]
        victim, workers = max(((pid, descendants(pid)) for pid in running), key=lambda v: len(v[1]))
        assert workers
        os.kill(victim, signal.SIGKILL)
        time.sleep(away_s)
        self.start_task_manager()
        return workers

    def kill_job_manager(self) -> None:
        """kill -9, and starts another, which knows no job."""
        for pid in self._pids("standalonesession"):
            os.kill(pid, signal.SIGKILL)
        self.wait(lambda: not self.get("/overview"), "the end of the job manager")
        self._script("jobmanager.sh", "start")
        self.wait(self.has_all_slots, "the task managers")

    def flink(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Flink's own client; `run` goes through zanon-net."""
        return self._script("flink", arguments[0], "-m", self.address, *arguments[1:])

    def zanon_net(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [PYTHON, "-m", "zanon_net", *map(str, arguments)]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip

    def submit(self, *options: object) -> str:
        done = self.zanon_net("flink", "submit", "--cluster", self.address, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    # ---- what the job manager says --------------------------------------------------------------

    def get(self, path: str) -> dict:
        return ask(self.address, path)

    def state_of(self, job: str) -> str:
        return self.get(f"/jobs/{job}").get("state", "")

    def counts_of(self, job: str) -> dict:
        """Of its checkpoints."""
        return self.get(f"/jobs/{job}/checkpoints").get("counts", {})

    def completed(self, job: str) -> int:
        return self.counts_of(job).get("completed", 0)

    def wait(self, is_so, what: str, deadline_s: float = DEADLINE_S) -> None:
        until = time.monotonic() + deadline_s
        while not is_so():
            if time.monotonic() > until:
                raise AssertionError(f"waited {deadline_s} s for {what}\n{self.log_end()}")
            time.sleep(0.2)

    def log_end(self) -> str:
        """The last warnings of all logs."""
        lines = [
            line
            for path in sorted((self.folder / "log").glob("*.log"))
            for line in path.read_text(errors="replace").splitlines()
            if " WARN " in line or " ERROR " in line or "Caused by" in line or "errors." in line
        ]
        return "\n".join(line[:300] for line in lines[-12:])

    # ---- processes ------------------------------------------------------------------------------

    def _script(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [flink_home() / "bin" / name, *arguments], env=self._environment,
            capture_output=True, text=True, timeout=DEADLINE_S, check=True,
        )  # fmt: skip

    def _pids(self, kind: str) -> list[int]:
        return [
            int(line)
            for path in (self.folder / "pid").glob(f"*{kind}*.pid")
            for line in path.read_text().split()
        ]


def _java_options(path: Path) -> str:
    """The options by which Flink runs on this Java, out of its own configuration."""
    line = next(line for line in path.read_text().splitlines() if line.strip().startswith("all:"))
    return f"env.java.opts.all: {line.partition(':')[2].strip()}"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def descendants(pid: int) -> list[int]:
    """What a process has started, and these, known by their parents."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return children + [pid for child in children for pid in descendants(child)]


def _kill_tree(pid: int) -> None:
    for each in [*descendants(pid), pid]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
