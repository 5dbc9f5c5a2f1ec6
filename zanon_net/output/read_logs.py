# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the logs of a run, and Tstat's own, into tables of one schema. Needs pyarrow
(zanon-net[parquet])."""

import importlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from zanon_net.errors import ConfigError
from zanon_net.output.log_files import LOGS, TSTAT_LOGS, LogPath, chosen, log_paths, log_paths_in
from zanon_net.output.log_tables import no_rows, read_logs
from zanon_net.output.parquet import arrow
from zanon_net.output.tstat_tables import RENAMED

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

KINDS = ("pandas", "polars", "arrow")
NAMES = ("flow", "tstat")
Log = Literal["flows", "observations", "tcp_complete", "tcp_nocomplete", "udp_complete"]
Names = Literal["flow", "tstat"]


@overload
def read_log(
    path: str | os.PathLike[str],
    log: Log | None = None,
    *,
    into: Literal["pandas"] = "pandas",
    names: Names | None = None,
) -> "pandas.DataFrame": ...
@overload
def read_log(
    path: str | os.PathLike[str],
    log: Log | None = None,
    *,
    into: Literal["polars"],
    names: Names | None = None,
) -> "polars.DataFrame": ...
@overload
def read_log(
    path: str | os.PathLike[str],
    log: Log | None = None,
    *,
    into: Literal["arrow"],
    names: Names | None = None,
) -> "pyarrow.Table": ...
def read_log(
    path: str | os.PathLike[str],
    log: str | None = None,
    *,
    into: str = "pandas",
    names: str | None = None,
) -> Any:
    """Reads the logs of a run as a table, whose columns do not depend on the format.

    path: a folder of a run, of several runs, or of Tstat's; or a file of any format, also
        compressed. Files that are not complete are left out.
    log: "flows", "observations", or one of Tstat's logs: "tcp_complete", "tcp_nocomplete" or
        "udp_complete". None: the flows, or the observations if there are no flows. If a run wrote
        flows in several formats, one is read: the first of Parquet, JSON Lines, CSV and Tstat's.
    into: "pandas" for a DataFrame, "polars" for one of polars, "arrow" for a pyarrow.Table.
    names: "flow" for the columns client, client_port, server and server_port, "tstat" for c_ip,
        c_port, s_ip and s_port in their place. None: "tstat" if `log` is one of Tstat's logs, for
        scripts that know these, else "flow".

    Returns the rows in the order of the files' times and of their lines. docs/reference/output.md
    has the columns. Times are timestamps in UTC with ns, durations are in ms (c_durat and s_durat:
    s). A value that the format does not have is null. Raises ConfigError for a wrong argument or a
    missing library, FormatError for a file that is no log, or is damaged.
    """
    _check(log, into, names)
    place = Path(path)
    if place.is_dir():
        found = chosen(log_paths_in(place), log)
        empty = None if found else no_rows(place, log)
        if empty is not None:
            return _as_asked(empty, log, into, names)
        if not found:
            what = f"log_{log}" if log in TSTAT_LOGS else f"log of {log}" if log else "log"
            raise ConfigError(f"{place}: there is no {what} in it")
        return _read([(one.path, one.form) for one in found], log, into, names)
    if not place.exists():
        raise ConfigError(f"{place}: there is no such file or folder")
    one = LogPath.of(place)
    return _read([(place, None if one is None else one.form)], log, into, names)


def read_files(
    files: Iterable[Path], log: str | None, *, into: str, names: str | None = None
) -> Any:
    """Reads the logs among the files of a run; see read_log.

    Raises ConfigError if no file is such a log.
    """
    _check(log, into, names)
    found = chosen(log_paths(files), log)
    if not found:
        raise ConfigError("a run that wrote no such logs into a folder has nothing to read")
    return _read([(one.path, one.form) for one in found], log, into, names)


def _read(
    files: Sequence[tuple[Path, str | None]], log: str | None, into: str, names: str | None
) -> Any:
    return _as_asked(read_logs(files, log), log, into, names)


def _as_asked(table: Any, log: str | None, into: str, names: str | None) -> Any:
    if (names or ("tstat" if log in TSTAT_LOGS else "flow")) == "tstat":
        table = table.rename_columns([RENAMED.get(name, name) for name in table.column_names])
    return converted(table, into, _nullable() if into == "pandas" else None)


def _check(log: str | None, into: str, names: str | None) -> None:
    _check_one_of("into", into, KINDS)
    if names is not None:
        _check_one_of("names", names, NAMES)
    if log is not None:
        _check_one_of("log", log, LOGS)


def _check_one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}: must be {', '.join(allowed)}, not {value!r}")


def _nullable() -> dict[Any, Any]:
    """Returns the pandas types of numbers and flags, by their Arrow types: a missing value must not
    change the type of a column."""
    pa, pandas = arrow(), _library("pandas")
    bits = [f"{sign}Int{width}" for sign in ("", "U") for width in (8, 16, 32, 64)]
    types = {getattr(pa, name.lower())(): getattr(pandas, f"{name}Dtype")() for name in bits}
    return {**types, pa.bool_(): pandas.BooleanDtype()}


def _library(into: str) -> Any:
    try:
        return importlib.import_module("pyarrow" if into == "arrow" else into)
    except ImportError:
        raise ConfigError(
            f"into: {into} is not installed; install it with: pip install {into}"
        ) from None


def converted(table: Any, into: str, types: dict[Any, Any] | None = None) -> Any:
    """Converts an object that exports Arrow data into another library's table (see KINDS).

    types: pandas types by Arrow types, where they are not the usual ones.

    Raises ConfigError if that library is not installed.
    """
    library = _library(into)
    if into == "polars":
        return library.DataFrame(table)
    rows = arrow().table(table)
    return rows if into == "arrow" else rows.to_pandas(types_mapper=types and types.get)
