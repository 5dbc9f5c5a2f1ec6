# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes rows from CSV or JSON Lines to standard output, in classes, after a bounded delay."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from zanon_net._core import RowPublisher, Taxonomy
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import core_arguments
from zanon_net.errors import FormatError
from zanon_net.rows.publish_report import PublishReport, PublishTotals, build_publish_manifest
from zanon_net.rows.sources import RowStream, Warn, open_inputs
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import Source

OUTPUT = "rows"


def publish_rows(
    sources: Sequence[Source],
    settings: Mapping[str, Any],
    taxonomies: Sequence[Taxonomy],
    *,
    interruption: Interruption | None = None,
    warn: Warn = lambda _text: None,
) -> PublishReport:
    """Writes to standard output the rows of `sources` in classes of k users.

    sources: paths, "-" for standard input, in the order of their times; they are one stream.
    settings: of `publish`, as they are read.
    taxonomies: of the quasi-identifiers, in their order.
    interruption: an Interruption that the caller has entered; a signal then ends the reading, and
        the rows that wait are released as at the end.
    warn: called at once with the first row that cannot be read.

    Returns the report. Raises ConfigError if the settings do not fit the input. Raises FormatError
    if no row could be read, for an unknown value that is an error, or, with strict, for a row that
    cannot be read. Raises CapacityError if memory is exhausted, BrokenPipeError if the reader of
    the output has gone, ZanonError for other errors of files.
    """
    interruption = interruption or Interruption()
    with ExitStack() as stack:
        inputs = open_inputs(sources, interruption, stack)
        publisher = RowPublisher(taxonomies, **core_arguments(rows_of("publish"), settings))
        stack.callback(publisher.close)
        began = time.monotonic()
        idle = None if settings["idle"] is None else settings["idle"] / 1e9
        stream = RowStream(publisher, interruption, warn, OUTPUT, idle=idle, silent=publisher.idle)
        stream.run(inputs)
        publisher.finish()
        stream.write()
        totals = PublishTotals.of(publisher)
        interrupted = interruption.requested
        if totals.rows["rows"] and not totals.rows["observations"] and not interrupted:
            raise FormatError("not one row could be read")
        facts = [item.facts() for item in inputs]
        manifest = build_publish_manifest(settings, totals, facts, interrupted=interrupted)
        return PublishReport(manifest, totals, time.monotonic() - began)
