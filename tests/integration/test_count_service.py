# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter as a service: what the service manager hears of it, and how it ends."""

import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT
from support.counting import Votes, counts_of, key_file, put_file, start_counter

PATIENCE_S = 60.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_the_service_manager_hears(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ready once it takes votes, alive while it waits for them, and ends with its state."""
    votes = Votes(probes=1, shards=1, seconds=3)
    path = str(tmp_path / "notify")
    monkeypatch.setitem(ENVIRONMENT, "NOTIFY_SOCKET", path)
    monkeypatch.setitem(ENVIRONMENT, "WATCHDOG_USEC", "400000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(path)
        end.settimeout(PATIENCE_S)
        state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
        process = start_counter(f"file:{tmp_path}", *votes.options, *state, "--json")
        try:
            heard = [end.recv(4096).decode() for _time in range(5)]
            for probe, message in votes.in_turns():
                put_file(tmp_path, probe, message)
            while not list((tmp_path / "answers").rglob("*.zna")):
                heard.append(end.recv(4096).decode())
            process.send_signal(number)
            counts = counts_of(process)
        finally:
            process.kill()
            process.communicate()
        end.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                heard.append(end.recv(4096).decode())
    assert counts["votes"] == counts["decided"] == 120
    assert heard[:2] == ["STATUS=0 votes, 0 probes", "READY=1"]
    assert heard.count("READY=1") == heard.count("STOPPING=1") == 1
    assert heard.count("WATCHDOG=1") >= 3
    assert heard[-2:] == ["STOPPING=1", "STATUS=120 votes, 1 probes"]
    assert len(list((tmp_path / "state").glob("*.snapshot"))) == 1
