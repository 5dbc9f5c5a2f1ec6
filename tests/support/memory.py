# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of another process, as a thief with its rights would read it."""

import re
from collections.abc import Iterator
from pathlib import Path

_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (....)")
_SHARED = ("[vvar]", "[vsyscall]", "[vvar_vclock]")


def memory_of(pid: int) -> Iterator[bytes]:
    """All that the process can write to, a region each. Raises PermissionError."""
    maps = Path(f"/proc/{pid}/maps").read_text("ascii", "replace")
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps.splitlines():
            found = _REGION.match(line)
            if found is None or found[3][:2] != "rw" or line.endswith(_SHARED):
                continue
            begin, end = int(found[1], 16), int(found[2], 16)
            try:
                memory.seek(begin)
                yield memory.read(end - begin)
            except OSError:  # a guard page, or a region that is gone
                continue
