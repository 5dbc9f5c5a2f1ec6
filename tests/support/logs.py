# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of other tools for tests, made here, and the filter's output of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from support.filter import open_row_filter
from zanon_net._core import RowFilter

TYPES = {
    "ts": "time",
    "id.orig_h": "addr",
    "id.resp_h": "addr",
    "id.orig_p": "port",
    "id.resp_p": "port",
    "answers": "vector[string]",
}
CONNECTION = ("ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p")
FIELDS = {
    "zeek-conn": (*CONNECTION, "proto", "service", "orig_bytes", "conn_state", "history"),
    "zeek-dns": (*CONNECTION, "proto", "query", "qtype_name", "rcode", "answers"),
    "zeek-ssl": (*CONNECTION, "version", "server_name", "established", "subject", "ja3"),
    "zeek-http": (*CONNECTION, "host", "uri", "user_agent", "response_body_len", "status_code"),
    "zeek-quic": (*CONNECTION, "version", "client_scid", "server_name", "history"),
}
"""Some fields of Zeek's logs, in their order."""
NAMES = {
    "zeek-conn": "id.resp_h",
    "zeek-dns": "query",
    "zeek-ssl": "server_name",
    "zeek-http": "host",
    "zeek-quic": "server_name",
}
USUAL = {
    "proto": "udp",
    "id.orig_p": "50000",
    "id.resp_p": "443",
    "id.resp_h": "198.51.100.7",
    "rcode": "0",
    "established": "T",
    "status_code": "200",
    "history": "IishIHh",
    "conn_state": "SF",
    "response_body_len": "1000",
    "orig_bytes": "1000",
}
"""Values of a row that does not say otherwise: the server answered."""
START = 1_700_000_000

Row = Mapping[str, str]


def row_of(preset: str, number: int, client: str, name: str, **more: str) -> dict[str, str]:
    """A row of a log, `number` seconds after the start; fields of `more` have _ for a dot."""
    row = {field: USUAL[field] for field in FIELDS[preset] if field in USUAL}
    row |= {"ts": f"{START + number}.500000", "uid": f"CUID{number}", "id.orig_h": client}
    return row | {NAMES[preset]: name} | more


def tsv_header(fields: Sequence[str], path: str, separator: str = "\t") -> str:
    mark = f"\\x{ord(separator):02x}"
    lines = [
        f"#separator {mark}",
        separator.join(("#set_separator", ",")),
        separator.join(("#empty_field", "(empty)")),
        separator.join(("#unset_field", "-")),
        separator.join(("#path", path)),
        separator.join(("#open", "2026-01-01-00-00-00")),
        separator.join(("#fields", *fields)),
        separator.join(("#types", *(TYPES.get(field, "string") for field in fields))),
    ]
    return "\n".join(lines) + "\n"


def zeek_tsv(preset: str, rows: Iterable[Row], separator: str = "\t") -> bytes:
    """The rows as Zeek writes them in TSV."""
    fields = FIELDS[preset]
    text = tsv_header(fields, preset.partition("-")[2], separator)
    for row in rows:
        text += separator.join(row.get(field, "-") for field in fields) + "\n"
    return (text + separator.join(("#close", "2026-01-01-01-00-00")) + "\n").encode()


def zeek_json(preset: str, rows: Iterable[Row]) -> bytes:
    """The rows as Zeek writes them in JSON: without unset fields."""
    lines = []
    for row in rows:
        members: dict[str, Any] = {
            field: row[field] for field in FIELDS[preset] if row.get(field, "-") != "-"
        }
        for field in ("id.orig_p", "id.resp_p", "rcode", "status_code", "response_body_len"):
            if field in members:
                members[field] = int(members[field])
        members["ts"] = float(row["ts"])
        if "established" in members:
            members["established"] = members["established"] == "T"
        if "answers" in members:
            members["answers"] = members["answers"].split(",")
        lines.append(json.dumps(members, separators=(",", ":")))
    return ("\n".join(lines) + "\n").encode()


def anonymize(data: bytes | Sequence[bytes], preset: str, **options: Any) -> tuple[str, RowFilter]:
    """The whole output for one source, or for several, and the filter for its counters."""
    usual = {"time_unit": "iso", "z": 2, "preset": preset}
    row_filter = open_row_filter(**usual | options)
    for source in [data] if isinstance(data, bytes) else data:
        row_filter.feed(source)
        row_filter.end()
    row_filter.finish()
    return row_filter.take().decode(), row_filter


def tsv_rows(text: str, separator: str = "\t") -> list[dict[str, str]]:
    """The rows of a log in TSV, each by the fields of the header before it."""
    rows, fields = [], []
    for line in text.splitlines():
        if line.startswith("#fields"):
            fields = line.split(separator)[1:]
        elif not line.startswith("#"):
            rows.append(dict(zip(fields, line.split(separator), strict=True)))
    return rows


def json_rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
