# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of another process, as a thief with its rights would read it."""

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (....)")
_SHARED = ("[vvar]", "[vsyscall]", "[vvar_vclock]")


_PAGE = resource.getpagesize()
_IS_THERE = np.uint64(3 << 62)  # in /proc/PID/pagemap: the page is in memory, or in swap


def memory_of(pid: int) -> Iterator[bytes]:
    """All that the process can write to and has used, as runs of pages. Raises PermissionError."""
    maps = Path(f"/proc/{pid}/maps").read_text("ascii", "replace")
    with (
        Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory,
        Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pages,
    ):
        for line in maps.splitlines():
            found = _REGION.match(line)
            if found is None or found[3][:2] != "rw" or line.endswith(_SHARED):
                continue
            begin, end = int(found[1], 16), int(found[2], 16)
            pages.seek(begin // _PAGE * 8)
            entries = np.frombuffer(pages.read((end - begin) // _PAGE * 8), np.uint64)
            for first, last in _runs(entries & _IS_THERE != 0):
                try:
                    memory.seek(begin + first * _PAGE)
                    yield memory.read((last - first) * _PAGE)
                except OSError:  # a guard page, or a region that is gone
                    continue


def _runs(is_there: np.ndarray) -> list[tuple[int, int]]:
    """First page of each run of pages that are there, and the page behind the run."""
    edges = np.flatnonzero(np.diff(is_there, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
