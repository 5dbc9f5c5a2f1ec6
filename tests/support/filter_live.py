# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` between two pipes."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from support.filter import COMMAND, ENVIRONMENT
from support.waiting import running

Live = subprocess.Popen[bytes]


@contextmanager
def live(*arguments: object) -> Iterator[Live]:
    """The command with pipes at both ends; stopped afterwards, whatever happens."""
    with running(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        yield process


def say(process: Live, data: bytes) -> None:
    """Writes into the command's standard input."""
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def hear(process: Live) -> bytes:
    """What comes out next; the test fails when nothing ever does."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 120)
    assert ready, "nothing came out"
    out = os.read(process.stdout.fileno(), 1 << 16)
    assert out, "it ended"
    return out
