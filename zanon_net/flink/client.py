# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a counting job: within this process, or on a cluster by Flink's own client."""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

from zanon_net._core import vote_settings
from zanon_net.config.parse import reject
from zanon_net.count.folders import FOLDER_MODE, CounterFolder
from zanon_net.count.frames import INTERVAL_MAX_NS, Welcome
from zanon_net.count.lateness import ANSWERS_NS, NS_PER_S
from zanon_net.errors import ZanonError
from zanon_net.flink.count_settings import NS_PER_MS, CountSettings
from zanon_net.flink.java_classes import LIGHT_JIT, flink_home
from zanon_net.system.file_errors import explained

JOB_FILE = Path(__file__).with_name("job_file.py")
START_NS = 30 * NS_PER_S
"""Allowance, in the interval between two answers, for a job that starts or restarts. Answers appear
with a checkpoint, and no checkpoint is made before all tasks run. Probes wait for two intervals."""
_JOB_ID = re.compile(r"JobID ([0-9a-f]{32})")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]{1,253}):[0-9]{1,5}")
_OWN_ERROR = re.compile(r"zanon_net\.errors\.\w+: (.+)")
_CAUSE = re.compile(r"(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)")


def run_here(settings: Mapping[str, Any]) -> None:
    """Runs the job until it ends or is interrupted. Raises ZanonError."""
    flink_home()
    os.environ.setdefault("JVM_ARGS", LIGHT_JIT)
    from py4j.protocol import Py4JJavaError

    from zanon_net.flink.count_job import run_count_job

    _keep_workers_quiet()
    try:
        # A restart would not help: the job lives in this process, and a damaged file stays damaged.
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            run_count_job(replace(_prepared(settings), restarts=False))
    except Py4JJavaError as error:
        raise ZanonError(f"the job has failed: {reason_in(str(error))}") from None


def _keep_workers_quiet() -> None:
    """Silences threads of Beam in this process, whose traces repeat the job's one-line error."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    threading.excepthook = lambda _what: None


def submit(cluster: str, settings: Mapping[str, Any]) -> str:
    """Submits the job to a cluster and returns its number. Raises ConfigError, ZanonError."""
    if _ADDRESS.fullmatch(cluster) is None:
        reject("cluster", "write HOST:PORT, as rest.address and rest.port of the job manager")
    home = flink_home()
    job = _prepared(settings)
    restore = [] if settings["savepoint"] is None else ["-s", os.fspath(settings["savepoint"])]
    program = ["-pyclientexec", sys.executable, "-py", str(JOB_FILE), job.to_json()]
    done = subprocess.run(
        [home / "bin" / "flink", "run", "-d", "-m", cluster, *restore, *program],
        env={**os.environ, "FLINK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = _JOB_ID.search(done.stdout)
    if done.returncode != 0 or found is None:
        reason = reason_in(done.stderr + done.stdout)
        raise ZanonError(f"the cluster at {cluster} does not take the job: {reason}")
    return found[1]


def reason_in(text: str) -> str:
    """Returns the reason in one line, from traces of Java and Python."""
    own = _OWN_ERROR.findall(text)
    causes = [line for line in _CAUSE.findall(text) if line.strip()]
    return own[-1] if own else causes[-1] if causes else "Flink gives no reason; see its log"


def _prepared(settings: Mapping[str, Any]) -> CountSettings:
    """Returns the settings for the job, and writes the counter's welcome for the probes."""
    folder = CounterFolder(Path(settings["votes"]).absolute())
    answers = (
        folder.answers if settings["answers"] is None else Path(settings["answers"]).absolute()
    )
    z, window = settings["z"], settings["window"]
    rotate = window if settings["rotate"] is None else settings["rotate"]
    if settings["parallelism"] > settings["shards"]:
        reject("parallelism", f"is more than there are shards, {settings['shards']}")
    for path in (folder.votes, answers):
        with explained("make", path):
            path.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    number = vote_settings(z, window, rotate, settings["count_rotate"])
    interval_ns = settings["checkpoint_every"] + ANSWERS_NS + START_NS
    if interval_ns > INTERVAL_MAX_NS:
        reject("checkpoint_every", "must be less than a day: probes wait for answers so long")
    folder.write_welcome(Welcome(settings["shards"], number, interval_ns))
    checkpoints = settings["checkpoints"]
    return CountSettings(
        votes=str(folder.votes),
        answers=str(answers),
        z=z,
        window_ns=window,
        rotate_ns=rotate,
        count_rotate_ns=settings["count_rotate"],
        shards=settings["shards"],
        expect_probes=settings["expect_probes"],
        probe_timeout_ns=settings["probe_timeout"],
        parallelism=settings["parallelism"],
        checkpoint_ms=max(1, settings["checkpoint_every"] // NS_PER_MS),
        checkpoints=None if checkpoints is None else Path(checkpoints).absolute().as_uri(),
        savepoint=None if settings["savepoint"] is None else str(settings["savepoint"]),
        ends=settings["ends"],
        python=str(settings["python"] or sys.executable),
    )
