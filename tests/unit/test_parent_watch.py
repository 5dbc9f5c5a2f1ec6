# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of Flink ends with the JVM that started it."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd_open")

WORKER = """
import time
from zanon_net.flink.parent_watch import end_with_task_manager
end_with_task_manager()
end_with_task_manager()
print("begun", flush=True)
time.sleep(60)
"""
STARTER = """
import subprocess, sys
command = ["sh", "-c", '"$0" -c "$1"; true', sys.argv[1], sys.argv[2]]
subprocess.run(command)
"""


def started(folder: Path, name: str) -> tuple[subprocess.Popen, int]:
    """A process of that name, and a descriptor of the worker that it has started by a shell."""
    java = folder / name
    java.symlink_to(Path(sys.executable).resolve())
    process = subprocess.Popen(
        [java, "-c", STARTER, sys.executable, WORKER], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    return process, os.pidfd_open(descendant(process.pid, 2))


def descendant(pid: int, generations: int) -> int:
    for _ in range(generations):
        pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    return pid


def has_ended(descriptor: int, timeout_s: float) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))


@pytest.mark.parametrize(("name", "ends"), [("java", True), ("javac", False)])
def test_a_worker_ends_with_its_jvm_alone(tmp_path: Path, name: str, ends: bool) -> None:
    process, worker = started(tmp_path, name)
    try:
        assert not has_ended(worker, 0.1)
        process.kill()
        process.wait()
        assert has_ended(worker, 20 if ends else 0.3) == ends
    finally:
        if not has_ended(worker, 0):
            signal.pidfd_send_signal(worker, signal.SIGKILL)
        os.close(worker)
        process.stdout.close()
