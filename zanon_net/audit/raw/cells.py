# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks `format` and `coarse`: the form of the files, and what rounded records may say."""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.names import COARSE_STATES, MINUTE_NS, is_coarse, nanoseconds
from zanon_net.audit.raw.shown import Row, text_of

GENERALIZED = "generalized"
COMMON_PORTS = (0, 53, 80, 443, 853)
ROUNDED = ("pkts", "bytes", "pkts_all", "bytes_all", "bytes_uniq", "pkts_data")
# Columns of a coarse record that keep their value: none of them counts or measures anything.
KEPT = {
    "proto",
    "name",
    "name_source",
    "name_status",
    "epoch",
    "client",
    "c_ip",
    "c_isint",
    "s_isint",
}
KEPT |= {"c_iscrypto", "c_port", "client_port", "c_tls_SNI", "http_hostname", "quic_SNI", "c_type"}
KEPT |= {"s_type", "fqdn", "name_level"}
TIMES = ("t_start_ns", "t_end_ns", "first", "last", "c_first_abs", "s_first_abs")
NOTHING = (None, 0, "0", "0.0", "0.000", "0.000000", "none", False, "", "-", "---")


def form_of(path: Path, file: str) -> Iterator[Finding]:
    """Yields the lines of a text file that are no whole line of printable text."""
    data = text_of(path)
    if data and not data.endswith(b"\n"):
        yield Finding("format", file, data.count(b"\n") + 1, "end of line", 0, 1)
    columns = None
    separator = b" " if path.name.startswith("log_") else b","
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        bad = sum(not 0x20 <= byte <= 0x7E for byte in line)
        if bad:
            yield Finding("format", file, number, "bytes", bad, 0)
        if ".jsonl" in path.suffixes:
            continue
        found = len(split(line, separator))
        if number == 1:
            columns = None if separator == b" " else found
        elif columns is None:
            columns = found
        if columns is not None and found != columns:
            yield Finding("format", file, number, "columns", found, columns)


def split(line: bytes, separator: bytes) -> list[bytes]:
    """Returns the cells of a line. A quoted cell of CSV may have separators."""
    if b'"' not in line:
        return line.split(separator)
    parts = line.split(b'"')
    return b"".join(b"x" if at % 2 else part for at, part in enumerate(parts)).split(separator)


@lru_cache(maxsize=8)
def grid(steps: str) -> frozenset[int]:
    """Returns the numbers that a coarse record may show."""
    if steps == "sqrt2":
        powers = {1 if k == 0 else math.isqrt(2**k - 1) + 1 for k in range(130)}
    else:
        powers = {int(steps) ** k for k in range(65)}
    return frozenset({0} | powers)


def coarse(row: Row, output: Mapping[str, str], exact: bool) -> Iterator[Finding]:
    """Yields what a record with a withheld name says too exactly."""
    status = row.cells.get("name_status")
    if row.form == "observations" or exact:
        return
    if row.form == "tstat" and output["times"] != "exact":
        return  # all records have whole minutes, so none says that it is coarse
    if not is_coarse(row):
        if status in (*COARSE_STATES, GENERALIZED):
            yield Finding("coarse", row.file, row.number, "complete", 1, 0)
        return
    if status in COARSE_STATES:
        for column in ("name", "c_tls_SNI", "http_hostname", "quic_SNI"):
            if row.cells.get(column):
                yield Finding("format", row.file, row.number, column, 1, 0)
    for column, value in row.cells.items():
        yield from cell(row, column, value, output)


def cell(row: Row, column: str, value: object, output: Mapping[str, str]) -> Iterator[Finding]:
    """Yields what is too exact in a cell of a coarse record."""
    place = (row.file, row.number, column)
    side, _line, kind = column.partition("_")
    if column in TIMES:
        if value in NOTHING:
            return
        t_ns = (
            nanoseconds(str(value))
            if row.form == "tstat" or column[0] in "flcs"
            else int(str(value))
        )
        if row.form == "flows" and isinstance(value, int):
            t_ns = value
        if t_ns % MINUTE_NS:
            yield Finding("coarse", *place, t_ns % MINUTE_NS, 0)
    elif side in ("c", "s") and kind in ROUNDED:
        if value is not None and int(str(value)) not in grid(output["coarse_steps"]):
            yield Finding("coarse", *place, int(str(value)), 0)
    elif column in ("server_port", "s_port"):
        if int(str(value or 0)) not in COMMON_PORTS:
            yield Finding("coarse", *place, 1, 0)
    elif column in ("client", "c_ip", "epoch"):
        if value not in NOTHING and output["coarse_client"] == "none":
            yield Finding("coarse", *place, 1, 0)
    elif column in ("client_port", "c_port") or column not in KEPT:
        durations = column in ("durat", "c_durat", "s_durat") and output["coarse_end"] == "floored"
        if value not in NOTHING and not durations:
            yield Finding("coarse", *place, 1, 0)
