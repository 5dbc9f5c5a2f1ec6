# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a log of Tstat, ours or Tstat's own, into an Arrow table of flows. Needs pyarrow."""

import contextlib
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net import _core
from zanon_net.errors import FormatError
from zanon_net.output.flow_columns import arrow_type, csv_problem, time_of_ms
from zanon_net.output.log_files import LogPath
from zanon_net.output.parquet import arrow
from zanon_net.output.schema import columns
from zanon_net.output.state_file import MANIFEST

MISSING = ["-", "---"]
RENAMED = {"client": "c_ip", "server": "s_ip", "client_port": "c_port", "server_port": "s_port"}
"""The columns that Tstat has under another name."""
COPIED = {
    **{"c_pkts": "c_pkts_all", "s_pkts": "s_pkts_all"},
    **{"c_bytes": "c_bytes_all", "s_bytes": "s_bytes_all"},
}
"""The columns of every flow that Tstat has among its own."""
NAMES = {"c_tls_SNI": "tls", "http_hostname": "http", "quic_SNI": "quic"}
"""Columns with a flow's own name, and the source of it."""
TCP, UDP = 6, 17


def tstat_table(path: Path, data: bytes) -> Any:
    """Returns the flows of a log, with the columns of every flow that the log holds, and Tstat's
    other columns.

    path: the file; its name says whether its flows are complete. data: its content.

    Raises FormatError if it is no such log.
    """
    if not data.isascii():  # Tstat writes names unchanged; pandas and polars take UTF-8 only
        data = data.decode("utf-8", "replace").encode()
    header, _newline, lines = data.partition(b"\n")
    names = _names(path, header)
    if lines and not lines.endswith(b"\n"):
        raise FormatError(f"{path}: it ends in the middle of a line; is it whole?")
    # Tstat's header of log_tcp_nocomplete names columns that its lines do not have.
    width = lines.partition(b"\n")[0].count(b" ") + 1 if lines else len(names)
    if width > len(names):
        raise FormatError(f"{path}: line 2 has {width} columns, its header {len(names)}")
    if len(set(names[:width])) != width:
        raise FormatError(f"{path}: its header names a column twice")
    table = _parse(path, lines, names[:width])
    return _with_flow(path, _typed(path, table), is_udp=not _UDP_ONLY.isdisjoint(names))


def _only_udp() -> frozenset[str]:
    groups: dict[bool, set[str]] = {True: set(), False: set()}
    for column in _core.columns():
        groups[column.group == "UDP"].add(column.name)
    return frozenset(groups[True] - groups[False])


_UDP_ONLY = _only_udp()


def _names(path: Path, header: bytes) -> list[str]:
    words = header.decode("ascii", "replace").split(" ")
    names = [word.rpartition("#")[2].partition(":")[0] for word in words]
    if not header.startswith(b"#") or names[0] != "c_ip":
        raise FormatError(f"{path}: it does not start with the header of a Tstat log")
    return names


def _parse(path: Path, lines: bytes, names: list[str]) -> Any:
    pa, csv = arrow(), importlib.import_module("pyarrow.csv")
    kinds = {name: _read_as(name) for name in names}
    if not lines:
        return pa.table({name: pa.array([], kinds[name]) for name in names})
    try:
        return csv.read_csv(
            pa.BufferReader(lines),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=kinds,
                null_values=MISSING,
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        problem = csv_problem(str(error), names, "something else than a number", "a Tstat log")
        raise FormatError(f"{path}: {problem}") from None


def _kind(name: str) -> str:
    """Returns the type of a column of Tstat's; a column that we do not know is a number."""
    if name in ("c_ip", "s_ip"):
        return "text"
    if name in ("c_port", "s_port"):
        return "uint16"
    return str(columns()[name].type) if name in columns() else "int64"


def _read_as(name: str) -> Any:
    """Returns the type of a column while it is read: times stay text, so that no digit is lost."""
    pa, kind = arrow(), _kind(name)
    if kind in ("text", "time"):
        return pa.string()
    return pa.float64() if kind in ("ms", "s") else pa.int64()


def _typed(path: Path, table: Any) -> dict[str, Any]:
    """Returns the columns with the types of the schema."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    found = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind = _kind(name)
        if kind == "time":
            try:
                values = time_of_ms(values)
            except pa.ArrowInvalid:
                problem = f"column {name} holds something else than a time"
                raise FormatError(f"{path}: {problem}") from None
            if columns()[name].missing is not None:  # Tstat writes 0 for "never"
                never = compute.equal(values.cast(pa.int64()), 0)
                values = compute.if_else(never, None, values)
        elif kind == "bool" or kind.startswith("uint"):
            values = _in_range(values, kind)
        found[name] = values
    return found


def _in_range(values: Any, kind: str) -> Any:
    """Converts numbers; a number that the type does not hold, such as Tstat's -1, becomes null."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    most = 1 if kind == "bool" else 2 ** min(63, int(kind.removeprefix("uint"))) - 1
    fits = compute.and_(compute.greater_equal(values, 0), compute.less_equal(values, most))
    return compute.if_else(fits, values, pa.scalar(None, pa.int64())).cast(arrow_type(kind))


# ---- the columns of every flow -----------------------------------------------------------------


def _with_flow(path: Path, there: Mapping[str, Any], *, is_udp: bool) -> Any:
    """Returns Tstat's columns with the columns of every flow that follow from them."""
    pa = arrow()
    rows = len(there["c_ip"])
    log = LogPath.of(path)
    is_complete = None if log is None else not log.log.endswith("nocomplete")
    flow = {
        "t_start_ns": _start(there) if is_udp else there.get("first"),
        "t_end_ns": None if is_udp else there.get("last"),  # UDP: whole microseconds only
        "proto": pa.repeat(pa.scalar(UDP if is_udp else TCP, pa.uint8()), rows),
        "complete": pa.repeat(pa.scalar(is_complete, pa.bool_()), rows),
        "midstream": pa.repeat(pa.scalar(False), rows),
    }
    flow |= {name: there.get(tstats) for name, tstats in RENAMED.items()}
    counts = {name: there.get(tstats) for name, tstats in COPIED.items()}
    flow |= {name: values and values.cast(pa.uint64()) for name, values in counts.items()}
    flow["name"], flow["name_source"] = _own_names(path, there, rows, is_udp=is_udp)
    found = {name: values for name, values in flow.items() if values is not None}
    return pa.table(found | {name: there[name] for name in there.keys() - RENAMED.values()})


def _start(there: Mapping[str, Any]) -> Any:
    """Returns the time of the first datagram of either side."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    names = [name for name in ("c_first_abs", "s_first_abs") if name in there]
    if not names:
        return None
    first = compute.min_element_wise(*(there[name].cast(pa.int64()) for name in names))
    return first.cast(arrow_type("time"))


def _own_names(path: Path, there: Mapping[str, Any], rows: int, *, is_udp: bool) -> tuple[Any, Any]:
    """Returns the names of the flows, and their sources."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    none = pa.nulls(rows, pa.string())
    sources = {name: source for name, source in NAMES.items() if name in there}
    if is_udp and "fqdn" in there and _has_names_of_queries(path):
        sources["fqdn"] = "dns"
    names = compute.coalesce(*(there[name] for name in sources), none)
    words = (
        compute.if_else(compute.is_valid(there[name]), source, none)
        for name, source in sources.items()
    )
    return names, compute.coalesce(*words, none)


def _has_names_of_queries(path: Path) -> bool:
    """Returns true if fqdn of UDP is the name of a DNS query, which only the manifest says: else
    it is the name by which the client found the server."""
    log = LogPath.of(path)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        manifest = json.loads(((log.run if log else path.parent) / MANIFEST).read_bytes())
        is_ours = manifest["name"] == "zanon-net"
        return is_ours and manifest["configuration"]["anonymity"]["dn_hunter"] is False
    return False
