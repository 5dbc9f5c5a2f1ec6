# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A namespace with a cable in it, and runs that end with their test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import USUAL, Live
from support.netns import Namespace, permitted_namespace


@pytest.fixture
def net() -> Iterator[Namespace]:
    """A namespace with a cable from b to a."""
    with permitted_namespace() as namespace:
        namespace.cable("a", "b")
        yield namespace


@pytest.fixture
def live(net: Namespace, tmp_path: Path) -> Iterator[Any]:
    """Starts a Live; whatever happens, none is left running."""
    started: list[Live] = []

    def start(*arguments: object) -> Live:
        started.append(Live(net, tmp_path / f"out{len(started)}", *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()
