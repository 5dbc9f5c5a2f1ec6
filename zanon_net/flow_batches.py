# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows that a run releases, as tables in memory: batch by batch, while it is active."""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from zanon_net._core import FULL_ROWS, TABLES, PacketEngine, RowBatch, TableRows
from zanon_net.config.probe_rules import reject_counter
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.output.read_logs import converted
from zanon_net.output.schema import Field, described
from zanon_net.pipeline.reader import reader_opener
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import Source

if TYPE_CHECKING:
    from typing import Unpack

    from zanon_net.config.keywords import RunSettings

PROTOCOLS = {"tcp_table": "tcp", "udp_table": "udp"}


class FlowBatch:
    """Closed flows of one protocol, at least one, as columns.

    Libraries that know the Arrow PyCapsule interface take a batch as it is and without a copy:
    `pyarrow.table(batch)`, `polars.DataFrame(batch)`. Columns are those of the Parquet files;
    docs/reference/columns.md has their meaning, and so has each field's metadata.

    protocol: "tcp" or "udp", which have different columns.
    """

    def __init__(self, protocol: str, fields: Sequence[Field], table: TableRows):
        self.protocol = protocol
        self._rows = RowBatch(described(fields), table, 0, len(table))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<FlowBatch of {len(self):,} {self.protocol} flows>"

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._rows.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Returns a pyarrow.Table over the same memory. Raises ConfigError without pyarrow."""
        return converted(self, "arrow")

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame. Raises ConfigError without polars."""
        return converted(self, "polars")

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame. Raises ConfigError without pandas or pyarrow."""
        return converted(self, "pandas")


def flows(
    source: Source | Iterable[Source],
    config: Config | None = None,
    *,
    interruption: Interruption | None = None,
    **settings: "Unpack[RunSettings]",
) -> Iterator[FlowBatch]:
    """Yields the anonymized flows of captures, or of interfaces until interrupted; writes no file.

    source: as `run` takes it.
    config: the settings; the defaults if None. Among settings of the output, only `columns`,
        `purpose` and its presets have an effect. A counter is refused.
    interruption: an Interruption inside whose `with` block the flows are read: signals then end
        the reading.
    settings: single settings, which override config, such as z=20 or window="1h".

    Yields batches as flows close, TCP and UDP apart, in the order that `order` sets. Raises
    ConfigError, CaptureError, FormatError or CapacityError as `run` does, when the first batch is
    requested. Raises CaptureError after the last batch if a lost interface ended the reading.

    >>> import zanon_net
    >>> sum(len(batch) for batch in zanon_net.flows("pcaps/demo.pcap", z=5)) > 0
    True
    """
    config = (config or Config()).replace(**settings)
    if config.live.drop_to is not None or config.output.popularity is not None:
        raise ConfigError("drop_to and popularity are settings of a run that writes files")
    reject_counter(config.count.count_at)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    with ExitStack() as stack:
        begin = reader_opener(sources, config, None, interruption or Interruption(), stack)
        arguments = config.engine_arguments() | {"outputs": TABLES, "split_ns": 0}
        engine = PacketEngine(**arguments)
        stack.callback(engine.close)
        reader = begin(engine, WindowHooks(config))
        fields = {table: engine.fields(table) for table in TABLES}
        for _batch in reader.batches():
            yield from _batches(engine, fields, FULL_ROWS)
        while engine.finish():
            yield from _batches(engine, fields, FULL_ROWS)
        yield from _batches(engine, fields, 0)
        if reader.failure is not None:
            raise CaptureError(errno.ENODEV, reader.failure)


def _batches(
    engine: PacketEngine, fields: dict[str, list[Field]], full: int
) -> Iterator[FlowBatch]:
    """Drains the engine batch by batch, until no record waits for free outputs."""
    while True:
        _parts, tables = engine.drain(rows=full)
        for name, table in tables.items():
            yield FlowBatch(PROTOCOLS[name], fields[name], table)
        if not engine.waiting:
            return
        engine.flush()
