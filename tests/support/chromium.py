# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, controlled over its pipe (Chrome DevTools Protocol)."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.examples import EVERY_CASE

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
IN_SITE = "ZANON_SITE" in os.environ
"""True in `make site`, which installs Chromium: there no test is skipped."""
needs_chromium = pytest.mark.skipif(
    not IN_SITE and (PROGRAM is None or not EVERY_CASE),
    reason="`make site` installs Chromium and opens the page in it",
)
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe", "--disable-background-networking"),
)
# Chromium reads commands from descriptor 3, and writes answers to descriptor 4.
START = 'exec "$0" "$@" 3<&{} 4>&{}'


class Browser:
    """A tab. requests: the addresses that the page has requested. said: lines of its console."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, os.fdopen(answers, "rb")
        self._number, self._rest, self._session = 0, b"", ""
        self.requests: list[str] = []
        self.said: list[str] = []
        self._loads = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Network", "Page", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and returns its result; notes the events before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._answers.fileno(), 1 << 20)
            assert data, "Chromium ended"
            self._rest += data
        line, _zero, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.said.append(str(params["args"]))
        elif event == "Page.loadEventFired":
            self._loads += 1

    def show(self, path: Path, width: int, *, dark: bool = False, media: str = "screen") -> None:
        """Loads a file in a window of `width` pixels, and waits until everything is there."""
        self.requests, self.said = [], []
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        before = self._loads
        self.call("Page.navigate", url=path.as_uri())
        while self._loads == before:
            self._next()

    def value(self, expression: str) -> Any:
        """Returns the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self) -> bytes:
        """Returns the whole page as PNG."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(taken["data"])


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Starts Chromium with a profile in a folder, and ends it."""
    assert PROGRAM is not None, "Chromium is not installed"
    for_commands, commands = os.pipe()
    answers, for_answers = os.pipe()
    script = START.format(for_commands, for_answers)
    command = ["bash", "-c", script, PROGRAM, *OPTIONS, f"--user-data-dir={folder / 'profile'}"]
    environ = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(
        command, env=environ, pass_fds=(for_commands, for_answers), stderr=subprocess.DEVNULL
    ) as process:
        os.close(for_commands)
        os.close(for_answers)
        try:
            yield Browser(commands, answers)
        finally:
            process.terminate()
            os.close(commands)
