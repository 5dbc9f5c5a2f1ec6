# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sums over the records that a run has released: by time, service and name. Needs pyarrow.

pyarrow reads a file at a time and adds up. Python sees the sums.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net._text import NS_PER_S
from zanon_net.errors import FormatError
from zanon_net.output.log_files import OBSERVATIONS
from zanon_net.output.log_tables import read_logs
from zanon_net.output.parquet import arrow

MINUTE_NS = 60 * NS_PER_S
BINS_MAX = 48
"""Most bars of a chart over time."""
WIDTHS_NS = [MINUTE_NS * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)]
COMPACT_ROWS = 1 << 20
"""Rows of partial sums that are added up, so that memory depends on distinct names only."""
NAMES_MAX = 25
"""Most names that are listed."""
RELEASED, SUPPRESSED, NAMELESS, UNKNOWN = "released", "suppressed", "none", "unknown"
"""Status of a record's name. Tstat's logs do not have the status of a name that is not released."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over records.

    kind: the format of the records, as `RunFolder.files` has it.
    records: the number of records.
    starts: the start of each bin of time, ns since the Unix epoch. width_ns: of all bins.
    by_status: records of each bin, by the status of their names.
    services: (service, records, bytes of payload), by bytes or records. Observations have no bytes.
    names: (name, records, bytes), the most frequent ones first. distinct: number of all names.
    """

    kind: str
    records: int
    starts: Sequence[int]
    width_ns: int
    by_status: Mapping[str, Sequence[int]]
    services: Sequence[tuple[str, int, int]]
    names: Sequence[tuple[str, int, int]]
    distinct: int

    @property
    def has_bytes(self) -> bool:
        """True if the records are of flows, and not of observations."""
        return self.kind != OBSERVATIONS

    @property
    def noun(self) -> str:
        """The word for records of this kind."""
        return "flows" if self.has_bytes else "observations"


def sums_of(kind: str, files: Sequence[Path]) -> Sums:
    """Returns the sums over files of one format, which are read one at a time.

    Raises FormatError if a file is damaged, ConfigError if pyarrow is not installed.
    """
    pa = arrow()
    by_time, by_service, by_name = (_Partial(keys) for keys in _KEYS)
    for file in files:
        try:
            rows = _of_file(file, kind)
            for sums in (by_time, by_service):
                sums.add(rows)
            by_name.add(rows.filter(rows["name"].is_valid()))
        except pa.ArrowException:  # such as a time or a count that is too large
            raise FormatError(f"{file}: it is no log of zanon-net, or damaged") from None
    starts, width_ns, by_status = _over_time(by_time.total())
    services = [
        (service_of(row["service"]), row["records"], row["bytes"]) for row in by_service.rows()
    ]
    names = by_name.total()
    return Sums(
        kind=kind,
        records=sum(records for _service, records, _bytes in services),
        starts=starts,
        width_ns=width_ns,
        by_status=by_status,
        services=_merged(services),
        names=_largest(names),
        distinct=names.num_rows,
    )


_KEYS = (("minute", "status"), ("service",), ("name",))


class _Partial:
    """Sums of records and bytes by keys, which are added up when they are many."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._parts: list[Any] = []

    def add(self, rows: Any) -> None:
        """Adds rows with the columns `keys`, records and bytes."""
        self._parts.append(_summed(rows.select([*self._keys, "records", "bytes"]), self._keys))
        if sum(part.num_rows for part in self._parts) > COMPACT_ROWS:
            self._parts = [self.total()]

    def total(self) -> Any:
        """Returns the table of all sums."""
        if not self._parts:
            return _empty().select([*self._keys, "records", "bytes"])
        return _summed(arrow().concat_tables(self._parts), self._keys)

    def rows(self) -> list[dict[str, Any]]:
        """Returns the sums as dictionaries."""
        listed: list[dict[str, Any]] = self.total().to_pylist()
        return listed


def _summed(rows: Any, keys: Sequence[str]) -> Any:
    sums = rows.group_by(list(keys)).aggregate([("records", "sum"), ("bytes", "sum")])
    names = {"records_sum": "records", "bytes_sum": "bytes"}
    sums = sums.rename_columns([names.get(name, name) for name in sums.column_names])
    return sums.select([*keys, "records", "bytes"])


def _empty() -> Any:
    pa = arrow()
    texts = dict.fromkeys(("status", "service", "name"), pa.string())
    kinds = {"minute": pa.int64(), **texts, "records": pa.int64(), "bytes": pa.int64()}
    return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})


def _of_file(file: Path, kind: str) -> Any:
    """Returns the rows of a file, with the columns of `_empty`. Raises FormatError."""
    pa, pc = arrow(), importlib.import_module("pyarrow.compute")
    logs = read_logs([(file, kind)], None)
    texts = (RELEASED, SUPPRESSED, NAMELESS, UNKNOWN)
    released, suppressed, nameless, unknown = (pa.scalar(text, pa.string()) for text in texts)
    if "namespace" in logs.column_names:  # observations of attributes are no names
        of_names = pa.array(["name", "dns"])
        logs = logs.filter(pc.is_in(pc.fill_null(logs["namespace"], "name"), value_set=of_names))
    name = logs["name"]
    if kind == OBSERVATIONS:
        status: Any = pa.repeat(released, logs.num_rows)
        service, times = logs["name_source"], logs["t_ns"]
        octets: Any = pa.repeat(pa.scalar(0, pa.int64()), logs.num_rows)
    else:
        is_nameless = pc.fill_null(pc.equal(logs["name_status"], NAMELESS), False)
        rest = unknown if kind == "tstat" else pc.if_else(is_nameless, nameless, suppressed)
        status = pc.if_else(pc.is_valid(name), released, rest)
        numbers = (logs[column].cast(pa.string()) for column in ("proto", "server_port"))
        service = pc.binary_join_element_wise(*numbers, "/")
        times = pc.coalesce(logs["t_end_ns"], logs["t_start_ns"])
        octets = pc.add(*(pc.fill_null(logs[column], 0) for column in ("c_bytes", "s_bytes")))
    minutes = pc.multiply(pc.divide(times.cast(pa.int64()), MINUTE_NS), MINUTE_NS)
    records = pa.repeat(pa.scalar(1, pa.int64()), logs.num_rows)
    columns = (minutes, status, service, name, records, octets.cast(pa.int64()))
    return pa.table(dict(zip(_empty().column_names, columns, strict=True)))


# ---- sums ---------------------------------------------------------------------------------------


def width_for(span_ns: int) -> int:
    """Returns the width of bins with which a span of time has at most BINS_MAX bins."""
    for width_ns in WIDTHS_NS:
        if span_ns < width_ns * (BINS_MAX - 1):
            return width_ns
    day_ns = WIDTHS_NS[-1]
    return day_ns * (span_ns // (day_ns * (BINS_MAX - 1)) + 1)


def bins(first_ns: int, last_ns: int) -> tuple[list[int], int]:
    """Returns the starts of the bins that cover two times and all between, and their width."""
    width_ns = width_for(last_ns - first_ns)
    return list(range(first_ns // width_ns * width_ns, last_ns + 1, width_ns)), width_ns


def _over_time(table: Any) -> tuple[list[int], int, dict[str, list[int]]]:
    """Returns the starts and the width of bins, and the records of each bin by status."""
    pc = importlib.import_module("pyarrow.compute")
    if not table.num_rows:
        return [], MINUTE_NS, {}
    ends = pc.min_max(table["minute"]).as_py()
    starts, width_ns = bins(ends["min"], ends["max"])
    places = pc.divide(pc.subtract(table["minute"], starts[0]), width_ns)
    sums = _summed(table.set_column(0, "minute", places), ("minute", "status"))
    by_status: dict[str, list[int]] = {}
    for row in sums.to_pylist():
        by_status.setdefault(row["status"], [0] * len(starts))[row["minute"]] += row["records"]
    return starts, width_ns, by_status


def service_of(key: str | None) -> str:
    """Returns the name of a service by "protocol/port", or by the source of an observation."""
    return _SERVICES.get(key or "", _PROTOCOLS.get((key or "").partition("/")[0], "other"))


_SERVICES = {
    "6/443": "HTTPS (TCP 443)",
    "17/443": "QUIC (UDP 443)",
    "6/80": "HTTP (TCP 80)",
    "17/53": "DNS (UDP 53)",
    "6/53": "DNS (TCP 53)",
    "6/853": "DNS over TLS (TCP 853)",
    "17/853": "DNS over QUIC (UDP 853)",
    "tls": "TLS",
    "quic": "QUIC",
    "http": "HTTP",
    "dns": "DNS",
}
_PROTOCOLS = {"6": "TCP, other ports", "17": "UDP, other ports"}


def _merged(services: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for service, records, octets in services:
        before = sums.get(service, (0, 0))
        sums[service] = (before[0] + records, before[1] + octets)
    merged = [(service, *counts) for service, counts in sums.items()]
    return sorted(merged, key=lambda row: (-row[2], -row[1], row[0]))


def _largest(names: Any) -> list[tuple[str, int, int]]:
    """Returns the names with the most records."""
    order = [("records", "descending"), ("name", "ascending")]
    rows = names.sort_by(order).slice(0, NAMES_MAX).to_pylist()
    return [(row["name"], row["records"], row["bytes"]) for row in rows]
