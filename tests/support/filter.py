# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the filter on bytes, in this process; the oracle for its pseudonyms."""

import hashlib
import hmac
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import zanon_net
from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig

# Child processes import the package that this one uses.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "zanon_net", "filter")

S = 1_000_000_000


def open_row_filter(**options: Any) -> RowFilter:
    """A row filter with the settings of FilterConfig; times are seconds unless stated."""
    return RowFilter(**FilterConfig(**{"time_unit": "s", "z": 1} | options).row_filter_arguments())


def sift(data: bytes | Iterable[bytes], **options: Any) -> tuple[bytes, RowFilter]:
    """The output for one source, fed at once or in parts, and the row filter for its counters."""
    row_filter = open_row_filter(**options)
    for piece in [data] if isinstance(data, bytes) else data:
        row_filter.feed(piece)
    row_filter.end()
    return row_filter.take(), row_filter


def faults(row_filter: RowFilter) -> dict[str, int]:
    """The rows dropped, by reason, without zeros."""
    known = ("rows", "observations", "written", "without_offset", "hold_full")
    return {name: n for name, n in row_filter.stats.items() if n and name not in known}


def oracle_pseudonym(
    master: bytes, rotate_ns: int, t_ns: int, user: str, *, z: int = 1, window_ns: int = 3600 * S
) -> str:
    """The pseudonym by the formulas of crypto/keys.h and row_pseudonym.h, from other libraries."""
    numbers = b"".join(number.to_bytes(8) for number in (rotate_ns, z, window_ns))
    info = b"zanon-net/2/filter" + numbers + bytes(32) + (t_ns // rotate_ns).to_bytes(8)
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(master)
    return hmac.new(key, user.encode(), hashlib.sha256).hexdigest()[:32]


def run_filter(
    *arguments: object, stdin: bytes = b"", **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
        **more,
    )
