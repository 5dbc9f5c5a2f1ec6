# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Captures with one usual frame, and the limits of the reader."""

import pytest

from support.capture_bytes import (
    enhanced,
    interface,
    section,
)
from zanon_net import _core
from zanon_net.errors import FormatError

FRAME_MAX = 256 << 10
BLOCK_MAX = 16 << 20
SECOND_NS = 1_000_000_000
DATA = bytes(range(60))
FIRST_RECORD = 24
FRAME = (5 * SECOND_NS, len(DATA), 1, DATA)


def pcapng(order: str, *blocks: bytes) -> bytes:
    return section(order) + interface(order) + b"".join(blocks)


def five_seconds(order: str) -> bytes:
    """The enhanced packet block that reads as FRAME."""
    return enhanced(order, 5_000_000, DATA)


def refused(data: bytes) -> str:
    with pytest.raises(FormatError) as caught:
        _core.Capture(data=data)
    return str(caught.value)
