# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Service manager that started the process, such as systemd: sd_notify(3)."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket


class ServiceManager:
    """Sends the state of the process to the service manager; does nothing without a service
    manager.

    A manager that does not answer, or is gone, ends no run.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address.startswith(("/", "@")):
            self._socket = _datagrams()
        self._interval_s = _watchdog_interval_s(environment)
        self._due = 0.0

    @property
    def is_there(self) -> bool:
        """True if there is a service manager."""
        return self._socket is not None

    def ready(self) -> None:
        """Reports that the process does now what it was started for."""
        self._tell("READY=1")

    def status(self, text: str) -> None:
        """Reports a line for people, which `systemctl status` shows."""
        self._tell(f"STATUS={text}")

    def beat(self, now: float | None = None) -> None:
        """Reports that the process is alive; to be called often. The watchdog gets it twice an
        interval."""
        now = time.monotonic() if now is None else now
        if self._interval_s is not None and now >= self._due:
            self._due = now + self._interval_s
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Reports that the process is about to end."""
        self._tell("STOPPING=1")

    def close(self) -> None:
        """Closes the socket. A second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tell(self, state: str) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.sendto(state.encode(), self._address)


def _datagrams() -> "socket.socket":
    import socket  # late: most processes have no such manager

    opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    opened.setblocking(False)
    return opened


def _watchdog_interval_s(environment: Mapping[str, str]) -> float | None:
    """Returns half of the watchdog's time, in s; None if it does not wait for this process."""
    meant, wait_us = environment.get("WATCHDOG_PID"), environment.get("WATCHDOG_USEC", "")
    if not wait_us.isascii() or not wait_us.isdigit() or meant not in (None, str(os.getpid())):
        return None
    return int(wait_us) * 1e-6 / 2
