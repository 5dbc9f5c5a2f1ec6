# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Filters observations from CSV or JSON Lines to standard output, with zero delay."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.ladder_rules import OF_NAMES
from zanon_net.config.parse import reject
from zanon_net.errors import ConfigError, FormatError
from zanon_net.output.popularity_file import PopularityFile
from zanon_net.rows.inputs import Input
from zanon_net.rows.ladder import Ladder
from zanon_net.rows.report import FilterReport, RowTotals, build_filter_manifest
from zanon_net.rows.sources import RowStream, Warn, is_parquet, open_inputs
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import Source

OUTPUT = "observations"


class _Filter:
    """A row filter between inputs and standard output."""

    def __init__(
        self,
        row_filter: RowFilter,
        popularity: PopularityFile | None,
        interruption: Interruption,
        warn: Warn,
        put: Callable[[bytes], None] | None,
    ) -> None:
        self._row_filter = row_filter
        self._popularity = popularity
        self._stream = RowStream(
            row_filter, interruption, warn, OUTPUT, written=self._count, put=put
        )

    def run(self, inputs: Sequence[Input]) -> None:
        """Reads all inputs to their ends, or until interrupted."""
        self._stream.run(inputs)
        self._row_filter.finish()
        self._stream.write()
        self._count()
        if self._popularity is not None:
            self._popularity.publish()

    def _count(self) -> None:
        """Adds the windows that have ended to the popularity file."""
        if self._popularity is not None:
            for window in self._row_filter.windows():
                self._popularity.add(window)


def _check_kind(config: FilterConfig, totals: RowTotals) -> None:
    """Raises ConfigError if no value of the column is of the kind that the levels are for."""
    levels = config.levels_of_attribute
    if levels and 0 < totals.reasons["invalid"] == totals.table["observations"]:
        kind = "a hostname" if levels[0] in OF_NAMES else "an address"
        reject("levels", f"{','.join(levels)} does not fit: no value of --attribute is {kind}")


def filter_rows(
    sources: Sequence[Source],
    config: FilterConfig,
    *,
    interruption: Interruption | None = None,
    warn: Warn = lambda _text: None,
) -> FilterReport:
    """Writes to standard output the observations of `sources` that z users share.

    sources: paths, "-" for standard input, in the order of their times; they are one stream. All
        are files of Parquet, or none is.
    config: the settings.
    interruption: an Interruption that the caller has entered, so that a signal ends the reading.
    warn: called at once with the first row that cannot be read.

    Returns the report. Raises ConfigError if the settings do not fit the input, FormatError if no
    row could be read or, with config.strict, a row could not. Raises CapacityError if memory is
    exhausted, BrokenPipeError if the reader of the output has gone, ZanonError for other errors of
    files.
    """
    interruption = interruption or Interruption()
    parquet_files = [source for source in sources if is_parquet(source)]
    if parquet_files:
        if len(parquet_files) != len(sources):
            raise ConfigError("files of Parquet and other sources cannot be one stream")
        from zanon_net.rows.parquet_rows import filter_parquet

        return filter_parquet(sources, config, interruption)
    with ExitStack() as stack, ExitStack() as until_done:
        inputs = open_inputs(sources, interruption, stack)
        ladder = Ladder.of(config)
        for warning in () if ladder is None else ladder.warnings:
            warn(warning)
        row_filter = RowFilter(
            ladder=None if ladder is None else ladder.for_core(), **config.row_filter_arguments()
        )
        stack.callback(row_filter.close)
        popularity = None
        if config.popularity is not None:
            popularity = PopularityFile(
                config.popularity, config.z, config.window_ns, mode=config.file_mode
            )
            until_done.callback(popularity.discard)
        put = None
        if config.to == "parquet":
            from zanon_net.rows.parquet_rows import ParquetOutput

            output = ParquetOutput(config)
            stack.callback(output.finish)  # also after an error, so that the rows before it count
            put = output.take
        began = time.monotonic()
        _Filter(row_filter, popularity, interruption, warn, put).run(inputs)
        totals = RowTotals.of(row_filter, ladder, config.levels_of_attribute)
        interrupted = interruption.requested
        if 0 < totals.rows["rows"] == totals.unreadable and not interrupted:
            raise FormatError("not one row could be read")
        _check_kind(config, totals)
        facts = [item.facts() for item in inputs]
        manifest = build_filter_manifest(config, totals, facts, interrupted=interrupted)
        until_done.pop_all()
        return FilterReport(manifest, totals, time.monotonic() - began)
