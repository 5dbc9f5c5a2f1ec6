# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names that the tests of the benchmark suite share with its conftest.py."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from zanon_net import Config, ConfigError

ITEMS_MIN = 100

Measure = Callable[..., Any]
"""Measures the one job of a test: the fixture `measure` of conftest.py."""


@dataclass(frozen=True)
class Size:
    """Factor by which the sizes of all inputs are multiplied."""

    factor: float

    def of(self, usual: int) -> int:
        """Returns the number of items in place of the usual number."""
        return max(int(usual * self.factor), min(usual, ITEMS_MIN))


def peer(who: str) -> Any:
    """Returns a peer or a limit as a value of the parameter `who`."""
    return pytest.param(who, marks=pytest.mark.peer)


def known(**settings: Any) -> dict[str, Any]:
    """Returns the settings that the measured revision has."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        with contextlib.suppress(ConfigError, TypeError):
            Config(**{name: value})
            found[name] = value
    return found
