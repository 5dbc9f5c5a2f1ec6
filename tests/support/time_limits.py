# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hooks of pytest that let a time limit end one test: the run continues with the next test.

pyproject.toml sets the limits. A signal interrupts a test that takes too long. C that blocks the
signal is ended with its worker process by faulthandler; pytest-xdist then starts another worker.
"""

import faulthandler
import signal
import sys
from types import FrameType
from typing import Any

import pytest


class TimeLimitError(BaseException):
    """A test that took too long. Not an Exception, because Hypothesis takes an Exception for a
    failing example, which it would run again, without a limit."""


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Starts the time limit of a test; pytest-timeout starts those of other methods."""
    if settings.method != "signal":
        return None

    def end(_number: int, _frame: FrameType | None) -> None:
        faulthandler.dump_traceback(sys.__stderr__)
        raise TimeLimitError(f"the test took more than {settings.timeout:g} s")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    """Ends the time limit of a test."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Makes the scheduler of `--dist loadfile`, which would run a test again that ended its worker,
    and end the next worker by it, too."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def remove_node(self, node: Any) -> str | None:
            """Returns the test that ended the worker, and gives other workers the rest."""
            units = self.assigned_work.get(node, {}).values()
            left = ((unit, test) for unit in units for test, done in unit.items() if not done)
            unit, ended = next(left, (None, None))
            if unit is not None:
                unit[ended] = True
            super().remove_node(node)
            return ended

    return Scheduling(config, log)
