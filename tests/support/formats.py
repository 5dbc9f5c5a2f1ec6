# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the formats of one run field by field: JSON Lines with each other one."""

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

LOGS = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")
MISSING = ("-", "---", "0.0", "0.000000")  # where JSON has null
TSTAT = {"c_ip": "client", "s_ip": "server", "c_port": "client_port", "s_port": "server_port"}
Row = dict[str, Any]


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def as_csv(value: object) -> str:
    return "" if value is None else str(value)


def check_csv(text: bytes, lines: bytes) -> None:
    """Asserts that the CSV file and the JSON lines of a run agree."""
    rows, decimals = csv_rows(text.decode("ascii")), lines.splitlines()
    assert {None} not in [set(row) for row in rows]
    for row, line in zip(rows, decimals, strict=True):
        expected = json.loads(line, parse_float=str)
        for name, field in row.items():
            assert field == as_csv(expected.get(name)), name


def in_ns(value: object, scale: int) -> int:
    return int(Decimal(str(value)) * scale)


def check_parquet(table: pa.Table, rows: Sequence[Row]) -> None:
    """Asserts that a Parquet file and the JSON records of its protocol agree."""
    assert table.num_rows == len(rows)
    for field in table.schema:
        column, kind = table.column(field.name), str(field.type)
        values = column.cast("int64").to_pylist() if "timestamp" in kind else column.to_pylist()
        for value, row in zip(values, rows, strict=True):
            expected = row.get(field.name)
            if expected is None or value is None:
                assert expected is value, field.name
            elif "timestamp" in kind:
                scale = 1 if field.name.startswith("t_") else 10**6
                assert abs(value - in_ns(expected, scale)) < 500, field.name  # json.loads: a double
            else:
                assert value == expected, field.name


def same(field: str, expected: object) -> bool:
    """Whether a field of Tstat's has JSON's value."""
    if expected is None:
        return field in MISSING
    return field == expected or (isinstance(expected, int | float) and float(field) == expected)


def says(line: dict[str, str], row: Row) -> bool:
    """Whether a line of Tstat's agrees with the record, where both have a value."""
    found = ((TSTAT.get(name, name), field) for name, field in line.items())
    return all(same(field, row[name]) for name, field in found if name in row)


def check_tstat(logs: dict[str, bytes], rows: Sequence[Row]) -> None:
    """Asserts that Tstat's logs and the JSON records agree. Lines stand in the order of the
    records; a coarse record does not say in which log it is, if in any."""
    left: dict[str, list[dict[str, str]]] = {}
    for log in LOGS:
        header, *lines = logs[log].decode("ascii").splitlines()
        names = [word.rpartition("#")[2].partition(":")[0] for word in header.split(" ")]
        left[log] = [dict(zip(names, line.split(" "), strict=True)) for line in reversed(lines)]
    for row in rows:
        known = row["proto"] == 17 or row["complete"] is not None
        choice = LOGS[2:] if row["proto"] == 17 else LOGS[:2]
        if row["proto"] == 6 and known:
            choice = () if row["midstream"] else (LOGS[1 - row["complete"]],)
        log = next((log for log in choice if left[log] and says(left[log][-1], row)), None)
        assert log is not None or not known or not choice, row
        if log is not None:
            left[log].pop()
    assert left == {log: [] for log in LOGS}
