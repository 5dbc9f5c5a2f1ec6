# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the records and the manifest of an active run readable."""

import time
from collections.abc import Callable

from zanon_net.config.settings import Config
from zanon_net.output.sink import Sink

STATE_S = 60.0  # between two states of a run without --status
TEND_S = 2.0  # between two looks at old parts, and at a full disk
STATE_SHARE = 0.01  # of the time that states may take, because the state of a year lists many files


class Upkeep:
    """Flushes a sink's buffers, and keeps its state: at the start, with each part, and at
    intervals.

    manifest: makes the manifest of the run so far.
    is_live: true if the sources are interfaces. Compressors then delay no bytes. For captures, the
        same input has to give the same bytes, however long it takes.
    """

    def __init__(
        self, sink: Sink, config: Config, manifest: Callable[[], bytes], *, is_live: bool
    ) -> None:
        self._sink, self._manifest, self._is_live = sink, manifest, is_live
        self._flush_s = config.output.flush_s
        self._state_s = config.live.status_s or STATE_S
        self._flush_due = time.monotonic() + self._flush_s
        self._tend_due = 0.0
        self._parts = sink.parts
        self._keep_state()

    def tick(self) -> None:
        """Does the work that is due; cheap enough to be called often. Raises OutputError."""
        now = time.monotonic()
        if now >= self._flush_due:
            self._sink.flush(blocks=self._is_live)
            self._flush_due = now + self._flush_s
        has_changed = False
        if self._is_live and now >= self._tend_due:
            has_changed = self._sink.tend()
            self._tend_due = now + TEND_S
        if has_changed or now >= self._state_due or self._sink.parts != self._parts:
            self._keep_state()

    def _keep_state(self) -> None:
        began = time.monotonic()
        self._parts = self._sink.parts
        self._sink.keep_state(self._manifest)
        now = time.monotonic()
        self._state_due = max(began + self._state_s, now + (now - began) / STATE_SHARE)
