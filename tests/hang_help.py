# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Ends the tests where one hangs and nothing can fail it, with its name as the last that is said.

So it is where C waits, or Hypothesis takes the failure of a timeout for one of its own. The dump of
faulthandler, a little later, begins with the name: what is kept of a long log is often its end.
"""

import os
import sys
import threading
import time
import traceback

import pytest

SHARE = 0.9  # of the time after which faulthandler ends them

_begun: dict[str, float] = {}  # the test that runs, and when it began


def pytest_configure(config: pytest.Config) -> None:
    """Starts the thread that watches."""
    late_s = SHARE * float(config.getini("faulthandler_timeout"))
    if late_s > 0:
        watch = threading.Thread(target=_watch, args=(os.dup(2), late_s), daemon=True)
        watch.start()


def pytest_runtest_logstart(nodeid: str) -> None:
    """A test begins."""
    _begun[nodeid] = time.monotonic()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """A test has ended."""
    _begun.pop(nodeid, None)


def pytest_enter_pdb() -> None:
    """Somebody looks at a test, and takes the time for it."""
    _begun.clear()


def _watch(terminal: int, late_s: float) -> None:
    main = threading.main_thread().ident or 0
    while True:
        time.sleep(min(late_s / 10, 5))
        for nodeid, since in list(_begun.items()):
            if time.monotonic() - since > late_s:
                where = "".join(traceback.format_stack(sys._current_frames()[main]))
                os.write(terminal, f"\n{where}{nodeid} hangs\n".encode())
                os._exit(1)
