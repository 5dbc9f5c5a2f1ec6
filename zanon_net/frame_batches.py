# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of captures in batches, as `Engine.feed` takes them. They are not anonymized."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zanon_net.config.settings import Config
from zanon_net.pipeline.sources import open_sources
from zanon_net.system.streams import Source

BATCH_FRAMES = 16384


class FrameBatch(NamedTuple):
    """Frames of one link type: `engine.feed(*batch)`.

    buffer: the frames back to back. ts_ns: int64[n], ns since the Unix epoch. caplen, wirelen:
    uint32[n], bytes in the buffer and on the wire. linktype: their LINKTYPE_*.
    """

    buffer: bytes
    ts_ns: npt.NDArray[np.int64]
    caplen: npt.NDArray[np.uint32]
    wirelen: npt.NDArray[np.uint32]
    linktype: int


def frames(source: Source, *, filter: str = "", count: int = BATCH_FRAMES) -> Iterator[FrameBatch]:
    """Yields the frames of a capture, as they were captured.

    source: a capture's path, also compressed, a folder of captures, or "-" for standard input.
    filter: a BPF expression that frames have to pass. count: most frames of a batch, from 1.

    Raises ConfigError, CaptureError or FormatError when the first batch is requested. A capture
    that is cut short ends with its last whole frame.

    >>> import zanon_net
    >>> with zanon_net.Engine(z=5) as engine:
    ...     for batch in zanon_net.frames("pcaps/demo.pcap"):
    ...         engine.feed(*batch)
    ...     engine.finish()
    ...     len(engine.records()) > 0
    True
    """
    if count < 1:
        raise ValueError("count must be at least 1")
    with ExitStack() as stack:
        for opened in open_sources([source], Config().replace(filter=filter), stack):
            while True:
                buffer, ts_ns, caplen, wirelen, linktype = opened.capture.read(count)
                if not len(ts_ns):
                    break
                yield from _by_link_type(buffer, ts_ns, caplen, wirelen, linktype)
            opened.check()
            opened.close()


def _by_link_type(
    buffer: bytes,
    ts_ns: npt.NDArray[np.int64],
    caplen: npt.NDArray[np.uint32],
    wirelen: npt.NDArray[np.uint32],
    linktype: npt.NDArray[np.uint32],
) -> Iterator[FrameBatch]:
    """Yields a batch for each run of frames of one link type, because captures may have several."""
    starts = [0, *(np.flatnonzero(np.diff(linktype)) + 1).tolist()]
    ends = np.cumsum(caplen, dtype=np.int64)
    for start, end in zip(starts, [*starts[1:], len(ts_ns)], strict=True):
        first = int(ends[start - 1]) if start else 0
        yield FrameBatch(
            buffer[first : int(ends[end - 1])],
            ts_ns[start:end],
            caplen[start:end],
            wirelen[start:end],
            int(linktype[start]),
        )
