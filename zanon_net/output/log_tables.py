# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads files of logs into one Arrow table, whatever their format. Needs pyarrow."""

import importlib
import itertools
import json
import re
import zoneinfo
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zanon_net.errors import FormatError
from zanon_net.output.flow_columns import (
    OPTIONAL_SETS,
    arrow_type,
    as_flows,
    check_needed,
    csv_problem,
    joined,
)
from zanon_net.output.log_files import FLOW_FORMATS, OBSERVATIONS, TSTAT_LOGS
from zanon_net.output.parquet import arrow
from zanon_net.output.schema import columns
from zanon_net.output.state_file import MANIFEST
from zanon_net.output.tstat_tables import tstat_table

OBSERVATION_TYPES = {"t_ns": "time", "client": "text", "name": "text", "name_source": "text"}
OBSERVATION_NEEDS = ("t_ns", "name")


def read_logs(paths: Iterable[tuple[Path, str | None]], log: str | None) -> Any:
    """Reads files as one table, in their order.

    paths: each with its format as in log_files; None: its content says it.
    log: as `read_log` takes it.

    Raises FormatError for a file that is no log, or that has other rows than `log` says.
    """
    kinds, tables, last = set(), [], Path()
    for last, form in paths:
        table, form = _read(last, form)
        kinds.add(form == OBSERVATIONS)
        if len(kinds) > 1 or (log is not None and (form == OBSERVATIONS) != (log == OBSERVATIONS)):
            wanted = "flows" if form == OBSERVATIONS else "observations"
            raise FormatError(f"{last}: it does not have {wanted}")
        tables.append(_of_log(table, log) if log in TSTAT_LOGS and form != "tstat" else table)
    return joined(last, tables, is_observations=True in kinds)


def no_rows(path: Path, log: str | None) -> Any:
    """Returns the table without rows of a run that wrote no record; None if it is no such run.

    path: the folder of the run. log: as `read_log` takes it.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        written = set(manifest["configuration"]["output"]["format"])
        is_whole = manifest["name"] == "zanon-net" and manifest["error"] is None
        is_empty = manifest["outputs"] == [] and manifest["records"]["records"] == 0
        is_over = is_whole and not manifest["running"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    has_flows = not written.isdisjoint(FLOW_FORMATS)
    is_observations = log == OBSERVATIONS or (log is None and not has_flows)
    is_written = OBSERVATIONS in written if is_observations else has_flows
    if not (is_over and is_empty and is_written):
        return None
    table = _json_table(path, b"", OBSERVATIONS if is_observations else "jsonl")
    return joined(path, [table], is_observations=is_observations)


def _of_log(table: Any, log: str | None) -> Any:
    """Returns the flows that Tstat has in this log; a coarse record of TCP does not say its log."""
    compute = importlib.import_module("pyarrow.compute")
    is_udp = compute.equal(table["proto"], 17)
    if log == "udp_complete":
        return table.filter(is_udp)
    if "complete" not in table.column_names:
        return table.slice(0, 0)
    is_complete = compute.equal(table["complete"], log == "tcp_complete")
    rows = compute.and_(compute.invert(is_udp), is_complete)
    if "midstream" in table.column_names:
        rows = compute.and_(rows, compute.invert(table["midstream"]))
    return table.filter(rows)


def _read(path: Path, form: str | None) -> tuple[Any, str]:
    """Returns the table of a file, and its format."""
    if form == "parquet" or (form is None and path.suffix == ".parquet"):
        return _parquet_table(path), "parquet"
    data = _content(path)
    form = form or _form_of(path, data)
    if form == "tstat":
        return tstat_table(path, data), form
    if data and not data.endswith(b"\n"):
        raise FormatError(f"{path}: it ends in the middle of a line; is it whole?")
    try:
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: it has bytes that are no UTF-8 text") from None
    return (_csv_table(path, data) if form == "csv" else _json_table(path, data, form)), form


def _content(path: Path) -> bytes:
    """Returns the content of a file, unpacked."""
    try:
        if path.stat().st_size == 0 and path.suffix in (".gz", ".zst"):
            raise FormatError(f"{path}: it is empty; a compressed log never is")
        with arrow().input_stream(path, compression="detect") as stream:
            return bytes(stream.read())
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error}") from None


def _form_of(path: Path, data: bytes) -> str:
    """Returns the format of a text file by its first bytes."""
    if data.startswith(b"{"):
        return OBSERVATIONS if data.startswith(b'{"t_ns"') else "jsonl"
    if not data and ".jsonl" in path.suffixes:
        return OBSERVATIONS if path.name.startswith(OBSERVATIONS) else "jsonl"
    return "csv" if data.startswith(b"t_start_ns,") else "tstat"


# ---- each format -------------------------------------------------------------------------------


def _parquet_table(path: Path) -> Any:
    pa = arrow()
    try:
        table = importlib.import_module("pyarrow.parquet").read_table(path, partitioning=None)
        table.validate(full=True)  # else an error of pandas could quote a damaged value
        _check_schema(table.schema)
    except (pa.ArrowException, OSError, ValueError) as error:  # damage raises any of them
        if isinstance(error, OSError) and error.errno is not None:
            raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
        raise FormatError(f"{path}: it is no Parquet file, or damaged") from None
    names = table.column_names
    if len(set(names)) != len(names):
        raise FormatError(f"{path}: it has two columns of one name")
    return as_flows(path, dict(zip(names, table.columns, strict=True)))


def _check_schema(schema: Any) -> None:
    """Raises ValueError for texts and time zones with which pandas or polars would fail or
    panic."""
    fields = list(schema)
    _check_texts(schema.metadata)
    while fields:
        field = fields.pop()
        field.name.encode()
        _check_texts(field.metadata)
        kind = getattr(field.type, "storage_type", field.type)  # for extension types
        if not kind.num_fields:
            kind = getattr(kind, "value_type", kind)  # of a dictionary
        zone = getattr(kind, "tz", None)
        if zone not in (None, "UTC") and zone not in zoneinfo.available_timezones():
            raise ValueError("there is no such time zone")
        fields += [kind.field(i) for i in range(kind.num_fields)]


def _check_texts(metadata: dict[bytes, bytes] | None) -> None:
    for text in itertools.chain(*(metadata or {}).items()):
        text.decode()


def _csv_table(path: Path, data: bytes) -> Any:
    pa, csv = arrow(), importlib.import_module("pyarrow.csv")
    names = data.partition(b"\n")[0].decode("ascii", "replace").split(",")
    if len(set(names)) != len(names):
        raise FormatError(f"{path}: its header names a column twice")
    kinds = {name: _written(name) for name in names if name in columns()}
    kinds |= {name: pa.string() for name, kind in kinds.items() if pa.types.is_decimal(kind)}
    kinds |= {name: pa.bool_() for name in kinds if columns()[name].type == "bool"}
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            convert_options=csv.ConvertOptions(
                column_types=kinds,
                null_values=[""],
                true_values=["1"],
                false_values=["0"],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        problem = csv_problem(str(error), names, "a value of another type", "CSV")
        raise FormatError(f"{path}: {problem}") from None
    return as_flows(path, dict(zip(names, table.columns, strict=True)))


def _json_table(path: Path, data: bytes, form: str) -> Any:
    pa, reader = arrow(), importlib.import_module("pyarrow.json")
    is_flows = form != OBSERVATIONS
    names: Iterable[str] = columns() if is_flows else OBSERVATION_TYPES
    schema = pa.schema([(name, _written(name)) for name in names])
    options = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        table = schema.empty_table()
        if data:
            table = reader.read_json(pa.BufferReader(data), parse_options=options)
        table.validate(full=True)
    except pa.ArrowException as error:
        raise FormatError(f"{path}: {_json_problem(str(error))}") from None
    if not is_flows:
        return _observations(path, table)
    unused = _unused(table)
    there = dict(zip(table.column_names, table.columns, strict=True))
    return as_flows(path, {name: there[name] for name in there if name not in unused})


def _json_problem(message: str) -> str:
    column = re.match(r"JSON parse error: Column\(/(\w+)\) changed from", message)
    if column and (column[1] in columns() or column[1] in OBSERVATION_TYPES):
        return f"column {column[1]} holds a value of another type"
    return "it cannot be read as JSON Lines"


def _unused(table: Any) -> set[str]:
    """Returns the columns of the sets that no line has: a line names the columns of its flow."""
    groups: dict[str, list[str]] = {}
    for name, column in columns().items():
        groups.setdefault(column.group, []).append(name)
    return {
        name
        for group in OPTIONAL_SETS
        if all(table[name].null_count == len(table) for name in groups[group])
        for name in groups[group]
    }


def _observations(path: Path, table: Any) -> Any:
    pa = arrow()
    times = table["t_ns"].cast(pa.timestamp("ns", tz="UTC"))
    table = table.set_column(table.column_names.index("t_ns"), "t_ns", times)
    check_needed(path, dict(zip(table.column_names, table.columns, strict=True)), OBSERVATION_NEEDS)
    return table


def _written(name: str) -> Any:
    """Returns the type as which a column of CSV or JSON Lines is read."""
    pa = arrow()
    column = columns().get(name)
    kind = OBSERVATION_TYPES[name] if column is None else str(column.type)
    if kind == "bool":
        return pa.uint8()
    if kind == "time":  # Tstat's times are ms with six decimals
        return pa.int64() if name.endswith("_ns") else pa.decimal128(22, 6)
    return arrow_type(kind)
