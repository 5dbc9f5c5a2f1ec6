# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of a release into one table of DuckDB, `records`, whatever their format.

`rowid` is the order of the records: folder by folder, file by file, line by line. Names and
pseudonyms are hashes in `records`, because most figures need equality only. The tables `names` and
`clients` have the texts for figures that need them. The table `attributes` has the released
attributes besides names: its columns mean what they mean in `records`, and `name` is a hash of the
attribute and its text.
"""

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from zanon_net.audit.database import Database
from zanon_net.audit.release import OBSERVATIONS, ROWS, Folder, LogFile, Release
from zanon_net.audit.sql import column, csv_source, json_source, parquet_source, quoted
from zanon_net.audit.text_files import first_line, refuse_cut
from zanon_net.audit.tool_logs import tool_rows
from zanon_net.errors import FormatError

NONE, RELEASED, SUPPRESSED, UNREAD = range(4)
"""Values of `status`. UNREAD flows have no name, but bytes that may hold one."""
COLUMNS = {
    "folder": "USMALLINT",  # index in Release.folders
    "file": "UINTEGER",  # index of the file, over all folders
    "epoch": "INTEGER",  # the low bits of the pseudonym's epoch
    "who": "UBIGINT",  # hash of pseudonym and epoch; NULL if the record names no client
    "name": "UBIGINT",  # hash of the released name; NULL without a name
    "dns": "BOOLEAN",  # true if the name comes from a DNS question
    "status": "UTINYINT",
    "coarse": "BOOLEAN",  # true if the measurements are rounded
    "tcp": "BOOLEAN",
    "port": "USMALLINT",  # of the server
    "start_us": "BIGINT",  # microseconds since the Unix epoch
    "end_us": "BIGINT",
    "c_pkts": "UINTEGER",
    "s_pkts": "UINTEGER",
    "c_bytes": "BIGINT",
    "s_bytes": "BIGINT",
}
_NUMBERS = ("c_pkts", "s_pkts", "c_bytes", "s_bytes")
_FLOW_TYPES = {
    **dict.fromkeys(("t_start_ns", "t_end_ns", "epoch", *_NUMBERS), "BIGINT"),
    **dict.fromkeys(("proto", "server_port"), "INTEGER"),
    "complete": "VARCHAR",
}
_TSTAT_TYPES = {
    **dict.fromkeys(("first", "last", "c_first_abs", "c_durat"), "DOUBLE"),
    **dict.fromkeys(("c_pkts_all", "s_pkts_all", "c_bytes_all", "s_bytes_all"), "BIGINT"),
    "s_port": "INTEGER",
}
_TSTAT_NAMES = ("c_tls_SNI", "http_hostname", "quic_SNI", "fqdn")
BINARY = ("parquet", "dnstap")
_NAME_NOT_FIRST = ("fqdn",)
"""Columns of flows that show a name when the column `name` shows none."""
_UNITS = {"s": "1000000.0", "ms": "1000.0", "us": "1.0", "ns": "0.001"}
NAMESPACES = "(coalesce(namespace, 'name') IN ('name', 'dns'))"
"""Condition on observations of names."""
MINUTE_US = 60_000_000
EPOCHS = 1 << 31  # so that an epoch fits into its column


def load(
    database: Database, release: Release, *, with_names: bool = False, with_clients: bool = False
) -> None:
    """Makes the table `records`, and locks the database.

    with_names, with_clients: also make `names` (hash, text) and `clients` (hash of pseudonym and
    epoch, epoch, text). Raises FormatError for a file that is damaged, cut, or has another number
    of records than its manifest states.
    """
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    database.run(f"CREATE TABLE records ({columns})")
    database.run(
        "CREATE TABLE attributes (epoch INTEGER, who UBIGINT, name UBIGINT, start_us BIGINT)"
    )
    texts = {"names": "(name UBIGINT, text VARCHAR)"} if with_names else {}
    texts |= {"clients": "(who UBIGINT, epoch INTEGER, text VARCHAR)"} if with_clients else {}
    for table, kinds in texts.items():
        database.run(f"CREATE TABLE {table} {kinds}")
    number = 0
    for index, folder in enumerate(release.folders):
        for path in folder.others:
            refuse_cut(path)
        for file in folder.files:
            source, values = _read(database, file, folder, release.rotate_ns)
            if source:
                places = {"folder": str(index), "file": str(number)}
                more = _load_attributes(database, file, folder, source, values)
                _load_file(database, file, source, {**places, **values}, texts.keys(), more)
            number += 1
    database.lock()


def _load_file(
    database: Database,
    file: LogFile,
    source: str,
    values: Mapping[str, str],
    texts: Collection[str],
    more: int,
) -> None:
    """Adds a file to `records` and to the tables of texts. more: rows of the file for which
    `records` has no row."""
    before = database.value("SELECT count(*) FROM records")
    epoch, client, name = (f"({values[column]})" for column in ("epoch", "client", "name"))
    who = f"CASE WHEN {client} IS NOT NULL THEN hash({client}, {epoch}) END"
    hashes = {
        "epoch": f"{epoch} % {EPOCHS}",
        "who": who,
        "name": f"CASE WHEN {name} IS NOT NULL THEN hash({name}) END",
    }
    cells = {**values, **hashes}
    chosen = ", ".join(f"({cells[column]})::{kind}" for column, kind in COLUMNS.items())
    database.run(f"INSERT INTO records SELECT {chosen} FROM {source}", file=file.path)
    count = database.value("SELECT count(*) FROM records") - before + more
    if file.records is not None and count != file.records:
        raise FormatError(
            f"{file.path}: it has {count:,} records, its manifest states {file.records:,}"
        )
    bad = "start_us IS NULL OR end_us IS NULL OR (who IS NOT NULL AND epoch IS NULL)"
    if database.value(f"SELECT count(*) FROM records WHERE rowid >= {before} AND ({bad})"):
        hint = "; name a file of observations observations.jsonl" if file.form == ROWS else ""
        raise FormatError(f"{file.path}: a row has no time, so it is no log of zanon_net{hint}")
    rows = {
        "names": f"SELECT DISTINCT {hashes['name']}, {name} FROM {source} WHERE {name} IS NOT NULL",
        "clients": f"SELECT DISTINCT {who}, {epoch} % {EPOCHS}, {client} FROM {source}"
        f" WHERE {client} IS NOT NULL",
    }
    for table in texts:
        database.run(f"INSERT INTO {table} {rows[table]}", file=file.path)


def _load_attributes(
    database: Database, file: LogFile, folder: Folder, source: str, values: Mapping[str, str]
) -> int:
    """Adds the released attributes of a file to `attributes`. Returns how many rows of the file are
    of an attribute alone."""
    epoch, client, start = (f"({values[column]})" for column in ("epoch", "client", "start_us"))

    def insert(word: str, text: str, rows: str) -> None:
        database.run(
            f"INSERT INTO attributes SELECT {epoch} % {EPOCHS}, hash({client}, {epoch}),"
            f" hash({word}, {text}), {start} FROM {rows} WHERE {client} IS NOT NULL"
            f" AND {text} IS NOT NULL",
            file=file.path,
        )

    if not folder.attributes or folder.preset or file.form == ROWS:
        return 0
    if file.form == OBSERVATIONS:
        rows = source.replace(NAMESPACES, f"NOT {NAMESPACES}")
        insert("namespace", "name", rows)
        return int(database.value(f"SELECT count(*) FROM {rows}"))
    found = database.columns_of(source, file.path)
    for word in folder.attributes:
        if column_of(word) in found:
            insert(quoted(word), column(column_of(word)), source)
    return 0


def column_of(word: str) -> str:
    """Returns the column of an attribute besides names."""
    return word.replace("-", "_")


def _read(
    database: Database, file: LogFile, folder: Folder, rotate_ns: int
) -> tuple[str, dict[str, str]]:
    """Returns the source of a file's rows, and an expression for each column; the source is empty
    if the file has no rows."""
    if file.form not in BINARY and not file.path.name.endswith(".parquet"):
        refuse_cut(file.path)
    if file.form == "tstat":
        source, values = _tstat(file.path, rotate_ns)
        if source and folder.preset:
            values |= _of_preset(values["name"], folder)
        elif source and folder.setting("anonymity", "exact") and folder.z > 1:
            values |= _exact(values["name"])
        return source, values
    if file.form == OBSERVATIONS:
        return _observations(file.path, rotate_ns)
    if file.form == ROWS:
        return _rows(database, file.path, folder.columns, rotate_ns)
    if folder.preset:
        rows = tool_rows(database, file.path, file.form)
        values = _exposures(rows.time_us, rows.client, rows.name, rows.dns, rotate_ns)
        values |= {"tcp": rows.tcp, "port": rows.port, **_of_preset(rows.name, folder)}
        return rows.source, values | dict(zip(_NUMBERS, rows.numbers, strict=True))
    return _flows(database, file, folder.attributes)


# ---- formats ------------------------------------------------------------------------------------


def _flows(
    database: Database, file: LogFile, attributes: Sequence[str]
) -> tuple[str, dict[str, str]]:
    wanted = [*_FLOW_TYPES, "client", "name", "name_source", "name_status"]
    types = {name: _FLOW_TYPES.get(name, "VARCHAR") for name in wanted}
    start, end = "t_start_ns // 1000", "t_end_ns // 1000"
    if file.form == "parquet":
        source = parquet_source(file.path)
        names = database.columns_of(source, file.path)
        start, end = "epoch_ns(t_start_ns) // 1000", "epoch_ns(t_end_ns) // 1000"
    elif file.form == "csv":
        names = first_line(file.path).decode("ascii", "replace").split(",")
        types = {name: types.get(name, "VARCHAR") for name in names}
        options = "header = true, delim = ',', quote = '\"', escape = '\"'"
        source = csv_source(file.path, types, options)
    else:
        types |= dict.fromkeys((*_NAME_NOT_FIRST, *map(column_of, attributes)), "VARCHAR")
        source, names = json_source(file.path, types), list(types)
    missing = next((name for name in wanted if name not in names), None)
    if missing or len(set(names)) != len(names):
        raise FormatError(f"{file.path}: it has no column {missing}, so it is no log of zanon_net")
    shown = ", ".join(["name", *(name for name in _NAME_NOT_FIRST if name in names)])
    return source, {
        "epoch": "epoch",
        "client": "client",
        "name": _without_labels(f"coalesce({shown})"),
        "dns": "coalesce(name_source = 'dns', false)",
        "status": f"CASE name_status WHEN 'none' THEN {NONE} WHEN 'released' THEN {RELEASED}"
        f" ELSE CASE WHEN name_source IS NULL THEN {UNREAD} ELSE {SUPPRESSED} END END",
        "coarse": "complete IS NULL",
        "tcp": "proto = 6",
        "port": "server_port",
        "start_us": start,
        "end_us": end,
        **{name: name for name in _NUMBERS},
    }


def _without_labels(name: str) -> str:
    """Returns the expression of a name, which is null in a record with a label of `--levels`."""
    return f"CASE WHEN NOT regexp_matches({name}, '^\\*|:') THEN {name} END"


def _tstat(path: Path, rotate_ns: int) -> tuple[str, dict[str, str]]:
    header, _newline, line = first_line(path, 2).partition(b"\n")
    words = header.decode("ascii", "replace").split(" ")
    names = [word.rpartition("#")[2].partition(":")[0] for word in words]
    if not header.startswith(b"#") or names[0] != "c_ip" or len(set(names)) != len(names):
        raise FormatError(f"{path}: it does not start with the header of a Tstat log")
    if not line:
        return "", {}
    names = names[: line.count(b" ") + 1]  # the header of nocomplete names columns of no line
    is_udp = "c_durat" in names
    found = [name for name in _TSTAT_NAMES if name in names]
    name = _without_labels(f"coalesce({', '.join([*found, 'NULL', 'NULL'])})")
    start, end = "first * 1000", "last * 1000"
    if is_udp:
        start, end = "c_first_abs * 1000", "c_first_abs * 1000 + c_durat * 1000000"
    start, end = f"({start})::BIGINT", f"({end})::BIGINT"
    coarse = f"({name} IS NULL AND {start} % {MINUTE_US} = 0 AND {end} % {MINUTE_US} = 0)"
    types = {name: _TSTAT_TYPES.get(name, "VARCHAR") for name in names}
    options = "header = false, skip = 1, delim = ' ', quote = '', escape = '',"
    end = f"greatest({start}, {end})"  # a coarse row of `filter` has no end
    return csv_source(path, types, f"{options} nullstr = ['-', '---']"), {
        "epoch": f"{start} // {max(1, rotate_ns // 1000)}",
        "client": "c_ip",
        "name": name,
        "dns": "s_port = 53",
        "status": f"CASE WHEN {name} IS NOT NULL THEN {RELEASED} WHEN {coarse} THEN {SUPPRESSED}"
        f" ELSE {NONE} END",
        "coarse": coarse,
        "tcp": str(not is_udp),
        "port": "s_port",
        "start_us": start,
        "end_us": end,
        **{name: f"{name}_all" for name in _NUMBERS},
    }


def _exposures(time_us: str, client: str, name: str, dns: str, rotate_ns: int) -> dict[str, str]:
    """Returns the expressions of rows that have a time, a user and a name."""
    absent = dict.fromkeys(("port", *_NUMBERS), "NULL")
    status = f"CASE WHEN {name} IS NULL THEN {SUPPRESSED} ELSE {RELEASED} END"
    return {
        "epoch": f"({time_us})::BIGINT // {max(1, rotate_ns // 1000)}",
        "client": client,
        "name": name,
        "dns": dns,
        "status": status,
        "coarse": "false",
        "tcp": "NULL",
        "start_us": time_us,
        "end_us": time_us,
        **absent,
    }


def _observations(path: Path, rotate_ns: int) -> tuple[str, dict[str, str]]:
    texts = dict.fromkeys(("client", "name", "name_source", "namespace"), "VARCHAR")
    dns = "coalesce(name_source = 'dns', false)"
    source = f"(SELECT * FROM {json_source(path, {'t_ns': 'BIGINT', **texts})} WHERE {NAMESPACES})"
    return source, _exposures("t_ns // 1000", "client", "name", dns, rotate_ns)


def _exact(name: str) -> dict[str, str]:
    """Returns the state of Tstat's lines with exact measurements. A line without a name may be of
    a suppressed name, because Tstat has no column that says so."""
    status = f"CASE WHEN {name} IS NULL THEN {SUPPRESSED} ELSE {RELEASED} END"
    return {"status": status, "coarse": "false"}


def _of_preset(name: str, folder: Folder) -> dict[str, str]:
    """Returns the state of rows of `filter --preset`: without a name they are coarse, unless z = 1
    suppresses nothing."""
    hidden = SUPPRESSED if folder.z > 1 else NONE
    return {
        "status": f"CASE WHEN {name} IS NULL THEN {hidden} ELSE {RELEASED} END",
        "coarse": f"({name} IS NULL AND {folder.z > 1})",
    }


def _rows(
    database: Database, path: Path, columns: Mapping[str, str], rotate_ns: int
) -> tuple[str, dict[str, str]]:
    """Returns the source of rows that `filter` wrote. Several attributes, which `--levels` releases
    together, are one name."""
    time, user, attribute = (columns.get(role, role) for role in ("time", "user", "attribute"))
    attributes = attribute.split(",") if columns.get("has_levels") else [attribute]
    unit, kinds = columns.get("unit", ""), dict.fromkeys((time, user, *attributes), "VARCHAR")
    if path.name.endswith(".parquet"):
        source = parquet_source(path)
        names = database.columns_of(source, path)
    elif ".jsonl" in path.suffixes:
        source, names = json_source(path, kinds), list(kinds)
    else:
        source, names = _delimited(path, columns)
    if not {time, *attributes} <= set(names):
        raise FormatError(f"{path}: it has no columns of a time and an attribute")
    at = f"epoch_us({column(time)}::TIMESTAMP)"
    if unit in _UNITS:
        at = f"({column(time)}::DOUBLE * {_UNITS[unit]})::BIGINT"
    client = f"nullif({column(user)}::VARCHAR, '')" if user in names else "NULL::VARCHAR"
    cells = [f"nullif({column(one)}::VARCHAR, '')" for one in attributes]
    name = _without_labels(cells[0]) if columns.get("has_labels") else cells[0]
    if len(cells) > 1:
        shown = ", ".join(f"coalesce({cell}, '')" for cell in cells)
        name = f"CASE WHEN coalesce({', '.join(cells)}) IS NOT NULL THEN hash({shown})::VARCHAR END"
    return source, _exposures(at, client, name, "false", rotate_ns)


def _delimited(path: Path, columns: Mapping[str, str]) -> tuple[str, list[str]]:
    """Returns the source of a file of CSV, and its columns. Without a header line, the manifest of
    `filter` states them."""
    delimiter, quote = columns.get("delimiter", ","), columns.get("quote", '"')
    names = columns.get("header", "").split("\n")
    if not names[0]:
        line = first_line(path).decode("utf-8", "replace")
        names = line.split(delimiter)
        if quote:
            names = next(csv.reader([line], delimiter=delimiter), [])
    has_header = str(not columns.get("header")).lower()
    options = f"header = {has_header}, delim = {quoted(delimiter)}, quote = {quoted(quote)}"
    types = dict.fromkeys(names, "VARCHAR")
    return csv_source(path, types, f"{options}, escape = {quoted(quote)}"), names
