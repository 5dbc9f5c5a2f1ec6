# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Audit of a whole table: the sizes of its classes, and guesses of sensitive values.

A class is the rows with equal quasi-identifiers. The attacker knows all quasi-identifiers of a
person and that the person is in the table (the prosecutor of El Emam, 2008). The l-diversity
paper of 2025 defines re-identification and attribute disclosure in section 4.4.
"""

import csv
import os
from collections.abc import Sequence
from contextlib import closing
from glob import escape
from pathlib import Path
from typing import Any

from zanon_net.audit.database import Database
from zanon_net.audit.result import Metric, Report
from zanon_net.audit.sql import column
from zanon_net.audit.thresholds import absent, share_of
from zanon_net.config.presets import PURPOSE
from zanon_net.errors import ConfigError, FormatError, UnopenedError

CSV = (
    "read_csv(?, auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"',"
    " strict_mode = true, columns = ?)"
)
"""Without detection, which would skip lines that do not fit."""
READERS = {
    ".csv": CSV,
    ".jsonl": "read_json(?, format = 'newline_delimited')",
    ".parquet": "read_parquet(?)",
}
NAMES = ("rows_k", "rows_reid", "rows_l", "rows_disclosure")
FIVE = 5
NO_SENSITIVE = "no sensitive column is named (--sensitive-columns)"
LEFT_OUT = (
    ("linking", "whether rows of one person can be joined, in the table or with another table"),
    ("less knowledge", "attackers who know a part of the quasi-identifiers; see table risk"),
    ("membership", "whether a person is in the table; see table risk --population"),
)


def audit_table(
    path: str | os.PathLike[str],
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    purpose: str | None = None,
    memory: int,
    workers: int,
) -> Report:
    """Measures what a table discloses about the people in its rows.

    path: a .csv, .jsonl or .parquet file.
    quasi: columns that together can identify.
    sensitive: columns that must stay unknown.
    purpose: internal, partner or public; None: partner.
    memory: most bytes. workers: threads.

    Raises UnopenedError, FormatError and ConfigError for a table or a column that cannot be read,
    CapacityError if the memory does not suffice.
    """
    table, recipient = Path(path), purpose or PURPOSE
    with closing(Database(memory, workers)) as database:
        columns = _load(database, table)
        for name in (*quasi, *sensitive):
            if name not in columns:
                raise ConfigError(f"{table}: it has no column {name!r}")
        rows = int(database.value("SELECT count(*) FROM the_table"))
        if not rows:
            raise FormatError(f"{table}: it has no rows")
        keys = ", ".join(column(name) for name in quasi)
        database.run(f"CREATE TABLE classes AS SELECT count(*) AS k FROM the_table GROUP BY {keys}")
        metrics = [
            *_of_classes(database, recipient, rows),
            *_of_values(database, recipient, keys, sensitive, rows),
        ]
        return Report(
            purpose=recipient,
            promise="not checked",
            facts={
                "rows": rows,
                "columns": len(columns),
                "classes": int(database.value("SELECT count(*) FROM classes")),
                "quasi_columns": len(quasi),
                "sensitive_columns": len(sensitive),
                "least_k": int(database.value("SELECT min(k) FROM classes")),
            },
            metrics=metrics,
            left_out=LEFT_OUT,
        )


def _load(database: Database, path: Path) -> list[str]:
    """Copies the table, and closes the database to files. Returns the names of its columns."""
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ConfigError(f"{path}: a table is a .csv, a .jsonl or a .parquet file")
    values: list[object] = [escape(str(path))]
    if path.exists() and not path.is_file():
        raise UnopenedError(f"{path}: it is no file")
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            if path.suffix == ".csv":
                values.append(dict.fromkeys(next(csv.reader(file, strict=True), []), "VARCHAR"))
    except OSError as error:
        raise UnopenedError(f"{path}: {error.strerror}") from None
    except csv.Error:
        raise FormatError(f"{path}: its first line is no line of CSV") from None
    database.run(f"CREATE TABLE the_table AS FROM {reader}", values, file=path)
    database.lock()
    return [str(row[0]) for row in database.rows("DESCRIBE the_table")]


def _of_classes(database: Database, purpose: str, rows: int) -> list[Metric]:
    """Measures the sizes of classes and re-identification."""
    ((alone, under_5, classes, fifth),) = database.rows(
        "SELECT coalesce(sum(k) FILTER (k = 1), 0), coalesce(sum(k) FILTER (k < 5), 0), count(*),"
        f" sum(least(k, {FIVE})) FROM classes"
    )
    sizes = database.rows(
        "SELECT floor(log2(k))::INTEGER AS power, sum(k)::BIGINT FROM classes GROUP BY power"
        " ORDER BY power"
    )
    parts: dict[str, Any] = {
        "k<5": float(under_5) / rows,
        "rows by power of 2 of k": {str(power): int(count) for power, count in sizes},
    }
    found = {"@1": float(classes) / rows, "@5": float(fifth) / rows}
    return [
        share_of("rows_k", purpose, float(alone), rows, 1 / rows, parts=parts),
        share_of("rows_reid", purpose, float(classes), rows, 1 / rows, parts=found),
    ]


def _of_values(
    database: Database, purpose: str, keys: str, sensitive: Sequence[str], rows: int
) -> list[Metric]:
    """Measures classes with one sensitive value, and guesses of the most frequent value of a class.

    Of several sensitive columns the worst decides.
    """
    if not sensitive:
        return [absent(name, NO_SENSITIVE) for name in ("rows_l", "rows_disclosure")]
    same: list[tuple[float, float]] = []
    guessed: list[tuple[float, float]] = []
    for name in sensitive:
        value = column(name)
        ((alike, best, usual),) = database.rows(
            f"WITH counts AS (SELECT {keys}, {value} AS value, count(*) AS n FROM the_table"
            f" GROUP BY ALL), classes AS (SELECT max(n) AS most, sum(n) AS k FROM counts"
            f" GROUP BY {keys}) SELECT (SELECT coalesce(sum(k) FILTER (k = most), 0) FROM classes),"
            " (SELECT sum(most) FROM classes),"
            " (SELECT max(n) FROM (SELECT sum(n) AS n FROM counts GROUP BY value))"
        )
        same.append((float(alike), 0.0))
        guessed.append((float(best), float(usual) / rows))
    best, baseline = max(guessed, key=lambda pair: pair[0] / rows - pair[1])
    return [
        share_of("rows_l", purpose, max(same)[0], rows, 0.0),
        share_of("rows_disclosure", purpose, best, rows, baseline),
    ]
