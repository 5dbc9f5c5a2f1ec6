# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What the service manager hears, over a socket of its kind."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from zanon_net.system.service import ServiceManager


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """The address as systemd gives it, and its own end."""
    name = f"zanon-test-{os.getpid()}"
    path = str(tmp_path / "notify")
    written, bound = (path, path) if request.param == "path" else (f"@{name}", f"\0{name}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(bound)
        end.setblocking(False)
        yield written, end


def heard(end: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(end.recv(4096).decode())
        except BlockingIOError:
            return found


def test_the_life_of_a_service(manager: tuple[str, socket.socket]) -> None:
    address, end = manager
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"}
    with closing(ServiceManager(environment)) as service:
        assert service.is_there
        service.ready()
        service.status("reading")
        for tenth in range(61):
            service.beat(100 + tenth / 10)
        service.stopping()
    assert heard(end) == ["READY=1", "STATUS=reading", *["WATCHDOG=1"] * 5, "STOPPING=1"]
    service.ready()
    service.close()
    assert heard(end) == []


@pytest.mark.parametrize(
    ("pid", "usec", "beats"),
    [("this", "20", 1), ("1", "20", 0), (None, "", 0), (None, "x", 0), (None, "-1", 0)],
)
def test_the_watchdog_waits_for_one_process(
    pid: str | None, usec: str, beats: int, manager: tuple[str, socket.socket]
) -> None:
    address, end = manager
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": usec}
    if pid is not None:
        environment["WATCHDOG_PID"] = str(os.getpid()) if pid == "this" else pid
    with closing(ServiceManager(environment)) as service:
        service.beat()
    assert len(heard(end)) == beats


@pytest.mark.parametrize("address", [None, "", "relative", "vsock:2:1"])
def test_without_a_manager(address: str | None) -> None:
    environment = {} if address is None else {"NOTIFY_SOCKET": address}
    with closing(ServiceManager(environment)) as service:
        assert not service.is_there
        service.ready()
        service.beat()


def test_a_manager_that_is_gone_or_does_not_listen(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with closing(ServiceManager({"NOTIFY_SOCKET": path})) as service:
        service.ready()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.bind(path)
            for _time in range(5000):  # more than wait in a queue
                service.status("reading")
        service.stopping()
