# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Captures that are read instead of mapped."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.capture_bytes import pcap_header, pcap_record
from zanon_net import _core

GUARDS = 64  # files that can be mapped at a time


@contextmanager
def unmapped(folder: Path) -> Iterator[None]:
    """Inside, files are read, not mapped: others use up the mappings."""
    path = folder / "mapped.pcap"
    path.write_bytes(pcap_header() + pcap_record("<", 0, 0, b"x"))
    with ExitStack() as others:
        for _ in range(GUARDS):
            others.enter_context(_core.Capture(str(path)))
        yield
