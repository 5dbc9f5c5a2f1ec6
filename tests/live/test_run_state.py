# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What can be read of a run on an interface while it goes on."""

import json
import os
import select
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from support.live import COMMAND, ENVIRONMENT, PATIENCE_S, USUAL, data_of
from support.netns import Namespace
from support.packets import crowd
from support.waiting import running, wait_until


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_says_what_it_listens_on(net: Namespace, tmp_path: Path, quiet: bool) -> None:
    """Also on an interface that is silent, and nothing where it is to be quiet."""
    out = tmp_path / "out"
    command = [*COMMAND, "a", *USUAL, "--out", str(out), *(["-q"] if quiet else [])]
    with net.inside(), running(command, env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        if quiet:
            wait_until((out / "manifest.json.partial").exists)
        else:
            assert select.select([process.stderr], [], [], PATIENCE_S)[0]
            assert os.read(process.stderr.fileno(), 4096) == b"zanon-net: listening on a\n"
        process.terminate()
        said = process.communicate(timeout=PATIENCE_S)[1]
        assert (process.returncode, said == b"") == (0, quiet)


@pytest.mark.parametrize("compress", ["none", "gzip"])
def test_records_and_state_can_be_read(net: Namespace, live: Any, compress: str) -> None:
    """Before the run ends, and though it wrote far less than a buffer takes."""
    names = ["--format", "observations", "--compress", compress]
    run = live("a", *names, "--flush", "100ms", "--status", "100ms")
    state = json.loads((run.out / "manifest.json.partial").read_bytes())
    assert (state["running"], state["counters"]["read"]["frames"]) == (True, 0)
    net.send("b", data_of(crowd(b"shared.example", 40)))
    (partial,) = run.out.glob("observations*.partial")

    def lines() -> int:
        content = partial.read_bytes()
        if compress == "gzip" and content:
            content = zlib.decompressobj(31).decompress(content)
        assert content.endswith(b"\n") or not content
        return content.count(b"\n")

    wait_until(lambda: lines() == 39)
    run.wait_for("status:")

    def released() -> int:
        state = json.loads((run.out / "manifest.json.partial").read_bytes())
        return int(state["decisions"]["released"])

    wait_until(lambda: released() == 39)
    run.end()
