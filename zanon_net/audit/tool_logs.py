# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs that `filter --preset` wrote in the form of another tool, as sources of rows in SQL."""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.audit.database import Database
from zanon_net.audit.dnstap_log import messages_of
from zanon_net.audit.sql import column, csv_source, lines_source, objects_source, quoted
from zanon_net.audit.text_files import first_line
from zanon_net.errors import FormatError

Cell = Callable[[str], str]
"""Returns the expression of a column of a log as a text; NULL if the log lacks the column."""
SECOND_US, MILLISECOND_US = 1_000_000, 1000
ZEEK_HEADER_LINES = 16  # at most
ZEEK = {
    "zeek-conn": ("id.resp_h", ("orig_pkts", "resp_pkts", "orig_bytes", "resp_bytes")),
    "zeek-dns": ("query", ()),
    "zeek-ssl": ("server_name", ()),
    "zeek-http": ("host", ("", "", "request_body_len", "response_body_len")),
    "zeek-quic": ("server_name", ()),
}
"""The column of the name, and of c_pkts, s_pkts, c_bytes and s_bytes."""
SURICATA_NAMES = ("tls.sni", "http.hostname", "quic.sni")
SURICATA_DNS_NAMES = ("dns.rrname", "dns.queries[0].rrname", "dns.query[0].rrname")
SERVER_PORTS = "('53', '80', '443', '853')"
"""Ports by which the filter finds the server of an event of Suricata."""
BIND_START = r"^([^ ]+(?: [0-9:.]+)?) (?:queries: )?(?:info: )?client (?:@0x0 )?"
BIND = BIND_START + r"([^ ]+)#0 \(([^ ]*)\): query: "
UNBOUND_START = r"^(\[[0-9.]+\]|[A-Z][a-z]{2} [0-9 ]\d [0-9:]+|[^ ]+) unbound\[0:0\] "
UNBOUND = UNBOUND_START + r"[a-z]+: (\S+) (\S+) "
UNSET = "-"
TAP_BATCH = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRows:
    """Rows of a log, as expressions of SQL over `source`.

    time_us: us since the Unix epoch. client: pseudonym. name: NULL if it is suppressed. dns: true
    if the name comes from a DNS question. tcp: true or false. port: of the server.
    numbers: c_pkts, s_pkts, c_bytes and s_bytes; 0 where the tool does not count.
    """

    source: str
    time_us: str
    client: str
    name: str
    dns: str = "true"
    tcp: str = "false"
    port: str = "53"
    numbers: Sequence[str] = ("0",) * 4


def tool_rows(database: Database, path: Path, preset: str) -> ToolRows:
    """Returns the rows of a log of a preset. Raises FormatError for another kind of file."""
    if preset in ZEEK:
        return _zeek(path, preset)
    if preset in LINES:
        return _lines(path, *LINES[preset])
    if preset == "dnstap":
        return _dnstap(database, path)
    return _suricata(path) if preset == "suricata-eve" else _nfstream(path)


# ---- Zeek, Suricata, NFStream -------------------------------------------------------------------


def _zeek(path: Path, preset: str) -> ToolRows:
    source, cell = (_zeek_json if first_line(path).startswith(b"{") else _zeek_tsv)(path)
    name, numbers = ZEEK[preset]
    proto, is_tcp = cell("proto"), str(preset in ("zeek-ssl", "zeek-http"))
    first = f"coalesce({cell(name)}, {cell(name.replace('.', '_'))})"
    return ToolRows(
        source=source,
        time_us=_time_us(cell("ts"), SECOND_US),
        client=f"coalesce({cell('id.orig_h')}, {cell('id_orig_h')})",
        name=first,
        dns=str(preset == "zeek-dns"),
        tcp=f"coalesce(lower({proto}) = 'tcp', {is_tcp})",
        port=f"coalesce({cell('id.resp_p')}, {cell('id_resp_p')})",
        numbers=[_number(cell(one)) if one else "0" for one in numbers or ("",) * 4],
    )


def _zeek_json(path: Path) -> tuple[str, Cell]:
    return objects_source(path), lambda name: f"json->>{quoted(f'$.{column(name)}')}"


def _zeek_tsv(path: Path) -> tuple[str, Cell]:
    """Returns the lines of a log, and its cells. Raises FormatError without a header."""
    head = first_line(path, ZEEK_HEADER_LINES).decode("utf-8", "replace").split("\n")
    mark = next((line.partition(" ")[2] for line in head if line.startswith("#separator ")), "")
    separator = chr(int(mark[2:], 16)) if mark.startswith("\\x") else mark
    lines = {words[0]: words[1:] for words in (line.split(separator or "\t") for line in head)}
    names, unset = lines.get("#fields", []), lines.get("#unset_field", [UNSET])[0]
    if not separator or not names:
        raise FormatError(f"{path}: it does not start with the header of a log of Zeek")
    # A second header may have other fields: its lines are no rows, and its rows have other lengths.
    source = (
        f"(SELECT CASE WHEN len(cells) = {len(names)} THEN cells ELSE error('columns') END AS cells"
        f" FROM (SELECT string_split(line, {quoted(separator)}) AS cells FROM {lines_source(path)}"
        " WHERE NOT starts_with(line, '#')))"
    )

    def cell(name: str) -> str:
        if name not in names:
            return "NULL::VARCHAR"
        return f"nullif(cells[{names.index(name) + 1}], {quoted(unset)})"

    return source, cell


def _suricata(path: Path) -> ToolRows:
    def cell(name: str) -> str:
        return f"json->>{quoted('$.' + name)}"

    source, target = cell("src_port"), cell("dest_port")
    swapped = f"({source} IN {SERVER_PORTS} AND {target} NOT IN {SERVER_PORTS})"
    asked = f"coalesce({', '.join(map(cell, SURICATA_DNS_NAMES))})"
    return ToolRows(
        source=objects_source(path),
        time_us=_time_us(cell("timestamp"), SECOND_US),
        client=f"CASE WHEN {swapped} THEN {cell('dest_ip')} ELSE {cell('src_ip')} END",
        name=f"coalesce({', '.join(map(cell, SURICATA_NAMES))}, {asked})",
        dns=f"({asked} IS NOT NULL OR {cell('event_type')} = 'dns')",
        tcp=f"(upper({cell('proto')}) = 'TCP')",
        port=f"CASE WHEN {swapped} THEN {source} ELSE {target} END",
        numbers=("0", "0", "0", _number(cell("http.length"))),
    )


def _nfstream(path: Path) -> ToolRows:
    names = first_line(path).decode("utf-8", "replace").split(",")

    def cell(name: str) -> str:
        return f"nullif({column(name)}, '')" if name in names else "NULL::VARCHAR"

    if "src_ip" not in names or len(set(names)) != len(names):
        raise FormatError(f"{path}: it does not start with the header of a log of NFStream")
    counted = ("packets", "bytes")
    numbers = [f"{side}_{what}" for what in counted for side in ("src2dst", "dst2src")]
    options = "header = true, delim = ',', quote = '\"', escape = '\"'"
    return ToolRows(
        source=csv_source(path, dict.fromkeys(names, "VARCHAR"), options),
        time_us=_time_us(cell("bidirectional_first_seen_ms"), MILLISECOND_US),
        client=cell("src_ip"),
        name=cell("requested_server_name"),
        dns=f"({cell('dst_port')} = '53')",
        tcp=f"({cell('protocol')} = '6')",
        port=cell("dst_port"),
        numbers=[_number(cell(one)) for one in numbers],
    )


def _time_us(text: str, scale: int) -> str:
    """Returns a time in us. text: ISO 8601, or a number of units of `scale` us.

    A time without an offset is UTC.
    """
    zoned = f"CASE WHEN regexp_matches({text}, ':.*(Z|[+-][0-9:]+)$') THEN {text}"
    zoned += f" ELSE {text} || 'Z' END"
    return (
        f"coalesce((try_cast({text} AS DECIMAL(20, 6)) * {scale})::BIGINT,"
        f" epoch_us(try_cast({zoned} AS TIMESTAMPTZ)))"
    )


def _number(text: str) -> str:
    """Returns a number; 0 if it is unset."""
    return f"coalesce(try_cast({text} AS BIGINT), 0)"


# ---- resolvers ----------------------------------------------------------------------------------


def _lines(path: Path, pattern: str, time_us: str) -> ToolRows:
    """Returns the rows of a log of lines. pattern: groups of the time, the client and the name."""
    parts = f"regexp_extract(line, {quoted(pattern)}, ['time', 'client', 'name'])"
    source = f"(SELECT unnest({parts}) FROM {lines_source(path)})"
    return ToolRows(
        source=source,
        time_us=time_us,
        client=f"nullif(client, '{UNSET}')",
        name=f"nullif(rtrim(name, '.'), '{UNSET}')",
    )


def _local(text: str, form: str) -> str:
    return f"epoch_us(try_strptime({text}, '{form}'))"


BIND_TIME = f"{_local('time', '%d-%b-%Y %H:%M:%S.%g')}, {_time_us('time', SECOND_US)}"
UNBOUND_TIME = _local("'1972 ' || time", "%Y %b %d %H:%M:%S")
"""A year that is missing counts as the filter's first year."""
UNBOUND_TIME += ", " + _time_us("trim(time, '[]')", SECOND_US)
LINES = {
    "bind": (BIND, f"coalesce({BIND_TIME})"),
    "unbound": (UNBOUND, f"coalesce({UNBOUND_TIME})"),
}
"""The pattern of a line, and the expression of its time."""


def _dnstap(database: Database, path: Path) -> ToolRows:
    """Copies the messages of a log into a table."""
    database.run("CREATE OR REPLACE TABLE messages (t_us BIGINT, client VARCHAR, name VARCHAR)")
    messages = messages_of(path)
    while batch := list(islice(messages, TAP_BATCH)):
        columns = dict(zip(("t_us", "client", "name"), zip(*batch, strict=True), strict=True))
        database.append("messages", columns)
    return ToolRows(source="messages", time_us="t_us", client="client", name="name")
