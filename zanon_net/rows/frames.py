# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Filters observations in tables of pandas, polars, pyarrow, DuckDB and other libraries of
Arrow."""

import importlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from zanon_net._core import MARKS, NUMBER, TEXT, TIME, TRUTH, Cells, FrameFilter, Texts
from zanon_net._record import dataclass
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import UNITS_NS, did_you_mean, shown
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import manifest_of
from zanon_net.errors import ConfigError, FormatError
from zanon_net.output.parquet import arrow
from zanon_net.rows.report import FilterReport, RowTotals, build_filter_manifest

if TYPE_CHECKING:
    from typing import Unpack

    from zanon_net.config.keywords import FrameSettings

BLANK, RELEASE = MARKS.index("blank"), MARKS.index("release")
NAMES_SHOWN = 20
COMMAND = "frames"


def filter(
    data: Any,
    *,
    report: Callable[[FilterReport], None] | None = None,
    **settings: "Unpack[FrameSettings]",
) -> Any:
    """Returns the rows of a table whose attribute z users share, as `zanon-net filter` does.

    data: a DataFrame of pandas or polars, a LazyFrame, a Table, RecordBatch or RecordBatchReader of
        pyarrow, a relation of DuckDB, or another object with `__arrow_c_stream__`.
    report: called at the end with the counters, as the command reports them.
    settings: the command's settings, by their names: time, user, attribute (names of columns),
        passed, z, window, never, suppressed, no_user, rotate, key_file, time_unit, strict,
        max_tuples, max_attributes. Defaults are the command's.

    The result has the type of `data`; for another object it is a pyarrow.Table, and for a
    RecordBatchReader the batches are filtered as they are read. Its columns are the time, the
    user's pseudonym, the attribute, and the columns of `passed`. Times are datetimes of any unit,
    with or without a zone (UTC in the result), dates, or whole numbers with `time_unit`. Users and
    attributes are whole numbers or texts; the number 5 and the text "5" are equal. The index of a
    pandas.DataFrame stays, if it is numbers without a name.

    A row without an attribute is suppressed. A row without a time, or with an attribute but no
    user, is dropped, with a warning if there is no `report`; with `strict` it raises FormatError.
    Raises ConfigError for wrong settings, columns that are missing or of another type, or a library
    that is missing. Raises FormatError if no row can be read, CapacityError if memory is exhausted.

    >>> import pandas, zanon_net
    >>> rows = {"t": [1, 2, 3], "who": ["ann", "bob", "bob"], "site": ["a.com", "a.com", "b.com"]}
    >>> table = pandas.DataFrame(rows)
    >>> names = {"time": "t", "user": "who", "attribute": "site", "no_user": True}
    >>> zanon_net.filter(table, **names, z=2, window="1h", time_unit="s").to_dict("list")
    {'t': [2], 'site': ['a.com']}
    """
    adapter, run = _adapter(data), _Run(settings, report, type(data))
    out = adapter(data, run)
    if adapter is not _arrow_reader:
        run.finish()
    return out


@dataclass(frozen=True, slots=True)
class _Decided:
    """The fates of rows.

    kept: bool[n], the rows of the result. released: bool[n], the rows whose attribute is released.
    marks: uint8[n], places in MARKS. pseudonyms: one for each kept row, or None. attribute: the
    column of the attributes.
    """

    kept: Any
    released: Any
    marks: Any
    pseudonyms: Texts | None
    attribute: Cells

    @property
    def is_blanked(self) -> bool:
        """True if a kept row has no attribute."""
        return len(self.released.nonzero()[0]) != len(self.kept.nonzero()[0])

    def places(self) -> Any:
        """Returns, for each kept row, the place of its attribute among those released, or -1."""
        np = importlib.import_module("numpy")
        released = self.released[self.kept]
        return np.where(released, np.cumsum(released) - 1, -1)


class _Run:
    """A filter, its settings and its report."""

    def __init__(
        self,
        settings: "FrameSettings",
        report: Callable[[FilterReport], None] | None,
        kind: type[Any],
    ) -> None:
        known = {row.name for row in rows_of(COMMAND)}
        for name in settings.keys() - known:
            raise ConfigError(f"{name}: no setting of this function{did_you_mean(name, known)}")
        self.config = FilterConfig(**settings)
        self._report = report
        self._kind = f"{_library(kind)}.{kind.__name__}"
        self._began = time.monotonic()
        self._filter = FrameFilter(**self.config.row_filter_arguments())

    def columns(self, has: Sequence[str]) -> list[str]:
        """Returns the names of the columns that are read, time, user, attribute first.

        has: the names of the table's columns. Raises ConfigError if a column is missing, or there
        twice.
        """
        config = self.config
        roles = {"time": config.time, "user": config.user, "attribute": config.attribute}
        pairs = [*roles.items(), *(("passed", name) for name in config.passed)]
        for role, name in pairs:
            if (count := has.count(name)) > 1:
                raise ConfigError(f"{role}: there are {count} columns {shown(name)}")
            if not count:
                some = ", ".join(str(known) for known in has[:NAMES_SHOWN])
                more = f" and {len(has) - NAMES_SHOWN} more" if len(has) > NAMES_SHOWN else ""
                raise ConfigError(f"{role}: there is no column {shown(name)} among {some}{more}")
        return [name for _role, name in pairs]

    def decide(self, of_time: Any, user: Any, attribute: Any) -> _Decided:
        """Decides the next rows."""
        times = self._cells("time", of_time, (NUMBER, TIME))
        users = self._cells("user", user, (NUMBER, TEXT))
        attributes = self._cells("attribute", attribute, (NUMBER, TEXT, TRUTH))
        marks, pseudonyms = self._filter.decide(times, self._unit_ns(times), users, attributes)
        return _Decided(marks >= BLANK, marks == RELEASE, marks, pseudonyms, attributes)

    def _cells(self, role: str, values: Any, kinds: Sequence[str]) -> Cells:
        name = f"{role}: column {shown(getattr(self.config, role))}"
        try:
            cells = Cells(name, values)
        except (TypeError, ValueError) as error:
            raise ConfigError(str(error)) from None
        if cells.kind not in kinds:
            wanted = "datetimes or whole numbers" if role == "time" else "whole numbers or texts"
            raise ConfigError(f"{name} holds {cells.kind}; convert it to {wanted}")
        return cells

    def _unit_ns(self, times: Cells) -> int:
        unit = self.config.time_unit
        name = f"column {shown(self.config.time)}"
        if times.kind == TIME:
            if unit != "iso":
                raise ConfigError(f"time_unit: {name} holds datetimes; leave the unit out")
            return times.unit_ns
        if unit == "iso":
            raise ConfigError(f"time_unit: {name} holds numbers; their unit can be s, ms, us, ns")
        return UNITS_NS[unit]

    def finish(self) -> None:
        """Reports the counters. Raises FormatError if no row could be read."""
        core = self._filter
        totals = RowTotals(
            rows=core.stats,
            table=core.table_stats,
            reasons=core.reasons,
            format=self._kind,
            time_range_ns=core.time_range_ns,
            memory_bytes=core.memory_bytes,
        )
        if 0 < totals.rows["rows"] == totals.unreadable:
            raise FormatError("not one row could be read")
        if self._report is not None:
            manifest = build_filter_manifest(self.config, totals, [], interrupted=False)
            shown_settings = manifest_of(rows_of(COMMAND), self.config.settings())
            manifest["configuration"] = {**shown_settings, "format": self._kind}
            self._report(FilterReport(manifest, totals, time.monotonic() - self._began))
        elif core.first_fault is not None:
            place, text = core.first_fault
            n = totals.unreadable
            rows, were = ("row", "was") if n == 1 else ("rows", "were")
            warnings.warn(
                f"{n:,} {rows} could not be read and {were} dropped; the first is row {place}, "
                f"counted from 0: {text}",
                stacklevel=3,
            )


_Adapter = Callable[[Any, _Run], Any]


def _library(kind: type[Any]) -> str:
    return kind.__module__.partition(".")[0].lstrip("_")


def _adapter(data: Any) -> _Adapter:
    """Returns the function for an object of this type. Raises ConfigError for another type."""
    kind = type(data)
    for base in kind.__mro__:
        known = _ADAPTERS.get((_library(base), base.__name__))
        if known is not None:
            return known
    if hasattr(data, "__arrow_c_stream__"):
        return _other
    raise ConfigError(
        f"data: {kind.__name__} is no table; it can be a DataFrame of pandas or polars, a table of "
        "pyarrow, a relation of DuckDB, or an object with __arrow_c_stream__"
    )


# ---- pandas ------------------------------------------------------------------------------------


def _pandas(data: Any, run: _Run) -> Any:
    names = run.columns([*data.columns])
    of_time, user, attribute = names[:3]
    _check_index(data.index)
    decided = run.decide(*(data[name] for name in names[:3]))
    if run.config.no_user:
        names.remove(user)
    out = data.loc[decided.kept, [of_time, *run.config.passed]]
    out[of_time] = _pandas_utc(out[of_time])
    if decided.pseudonyms is not None:
        out[user] = _pandas_texts(decided.pseudonyms, out.index)
    values = _pandas_plain(data[attribute])
    if run.config.suppressed == "blank":
        out[attribute] = _pandas_blanked(values, decided, out.index)
    else:
        out[attribute] = values[decided.kept]
    return out[names]


def _pandas_utc(times: Any) -> Any:
    """Returns times of a zone in UTC, and others as they are."""
    pandas = importlib.import_module("pandas")
    kind: Any = getattr(times.dtype, "pyarrow_dtype", None)
    if getattr(kind, "tz", None) is not None:
        return times.astype(pandas.ArrowDtype(arrow().timestamp(kind.unit, "UTC")))
    return times if getattr(times.dtype, "tz", None) is None else times.dt.tz_convert("UTC")


def _pandas_plain(values: Any) -> Any:
    """Returns a column without categories or views, which hold values of suppressed rows, too."""
    pandas = importlib.import_module("pandas")
    if values.dtype == "category":
        return values.astype(values.dtype.categories.dtype)
    if getattr(values.dtype, "pyarrow_dtype", None) is not None:
        plain = _plain(arrow(), arrow().array(values, from_pandas=True))
        array = pandas.arrays.ArrowExtensionArray(plain)
        return pandas.Series(array, index=values.index)
    return values


def _check_index(index: Any) -> None:
    """Refuses an index that could hold users."""
    if index.nlevels != 1 or index.name is not None or index.dtype.kind not in "iu":
        raise ConfigError("data: its index is not a row's number; use reset_index() first")


def _pandas_texts(texts: Texts, index: Any) -> Any:
    pandas, np = importlib.import_module("pandas"), importlib.import_module("numpy")
    try:
        values = arrow().array(texts)
    except ConfigError:
        width = texts.data.size // max(len(texts), 1)
        values = texts.data.view(f"S{width}") if len(texts) else np.array([], "S1")
        return pandas.Series(values.astype("U").astype(object), index=index, dtype="str")
    return pandas.Series(values.to_pandas().array, index=index, dtype="str")


def _pandas_blanked(values: Any, decided: _Decided, index: Any) -> Any:
    """Returns the released attributes at their places, and missing values at all others."""
    pandas = importlib.import_module("pandas")
    if values.dtype.kind in "iub" and not hasattr(values.dtype, "numpy_dtype"):
        name = "boolean" if values.dtype.kind == "b" else str(values.dtype).capitalize()
        values = values.astype(name.replace("Ui", "UI"))  # of numbers that can be missing
    released = values[decided.released].array
    taken = released.take(decided.places(), allow_fill=True)
    return pandas.Series(taken, index=index)


# ---- polars ------------------------------------------------------------------------------------


def _polars_lazy(data: Any, run: _Run) -> Any:
    return _polars(data.collect(), run).lazy()


def _polars(data: Any, run: _Run) -> Any:
    polars = importlib.import_module("polars")
    names = run.columns(data.columns)
    of_time, user, attribute = names[:3]
    values = data[attribute]
    if values.dtype in (polars.Categorical, polars.Enum):
        values = values.cast(polars.String)
    decided = run.decide(data[of_time], data[user], values)
    mask = polars.Series(decided.kept)
    if run.config.no_user:
        names.remove(user)
    columns = {name: data[name].filter(mask) for name in run.config.passed}
    columns[of_time] = _polars_part(data[of_time], mask)
    if getattr(columns[of_time].dtype, "time_zone", None) is not None:
        columns[of_time] = columns[of_time].dt.convert_time_zone("UTC")
    if decided.pseudonyms is not None:
        columns[user] = polars.Series(decided.pseudonyms)
    if decided.attribute.kind == TEXT:  # a filtered column would share the memory of all texts
        texts = polars.Series(decided.attribute.texts(decided.marks, RELEASE))
        columns[attribute] = texts.cast(values.dtype)
    else:
        columns[attribute] = _polars_part(values, polars.Series(decided.released))
        if decided.is_blanked:
            places = polars.Series(decided.places())
            columns[attribute] = columns[attribute].gather(places.set(places < 0, None))
    return polars.DataFrame({name: columns[name] for name in names})


def _polars_part(values: Any, mask: Any) -> Any:
    """Returns a part of a column of numbers or times, without missing ones.

    Polars may lend a part of a column instead of a copy, and the memory of all rows would stay.
    """
    polars = importlib.import_module("polars")
    numbers = values.to_physical().filter(mask)
    return polars.Series(numbers.to_numpy().copy(), dtype=numbers.dtype).cast(values.dtype)


# ---- pyarrow and others of Arrow ---------------------------------------------------------------


def _arrow_rows(data: Any, run: _Run) -> Any:
    """Returns the filtered rows of a Table or RecordBatch."""
    pa = arrow()
    names = run.columns(data.schema.names)
    of_time, user, attribute = names[:3]
    values = _plain(pa, data.column(attribute))
    decided = run.decide(data.column(of_time), data.column(user), values)
    mask = pa.array(decided.kept)
    if run.config.no_user:
        names.remove(user)
    columns = {
        name: _without_views(pa, data.column(name)).filter(mask)
        for name in names
        if name not in (user, attribute)
    }
    kind = columns[of_time].type
    if getattr(kind, "tz", None) is not None:
        columns[of_time] = columns[of_time].cast(pa.timestamp(kind.unit, "UTC"))
    if decided.pseudonyms is not None:
        columns[user] = pa.array(decided.pseudonyms)
    columns[attribute] = values.filter(pa.array(decided.released))
    if decided.is_blanked:
        places = decided.places()
        columns[attribute] = columns[attribute].take(pa.array(places, mask=places < 0))
    return type(data).from_arrays([columns[name] for name in names], names=names)


def _plain(pa: Any, values: Any) -> Any:
    """Returns a column whose memory holds nothing but its own values once it is filtered: no
    dictionary, and no views into the memory of other rows."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return _without_views(pa, values)


def _without_views(pa: Any, values: Any) -> Any:
    """Returns a column that pyarrow can filter."""
    kind = values.type
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return values.cast(views[kind]) if kind in views else values


def _arrow_reader(data: Any, run: _Run) -> Any:
    pa = arrow()
    empty = pa.RecordBatch.from_pylist([], data.schema)

    def batches() -> Iterator[Any]:
        for batch in data:
            yield _arrow_rows(batch, run)
        run.finish()

    return pa.RecordBatchReader.from_batches(_arrow_rows(empty, run).schema, batches())


def _relation(data: Any, run: _Run) -> Any:
    duckdb = importlib.import_module("duckdb")
    return duckdb.from_arrow(_other(data, run))


def _other(data: Any, run: _Run) -> Any:
    return _arrow_rows(arrow().table(data), run)


_ADAPTERS: dict[tuple[str, str], _Adapter] = {
    ("pandas", "DataFrame"): _pandas,
    ("polars", "DataFrame"): _polars,
    ("polars", "LazyFrame"): _polars_lazy,
    ("pyarrow", "Table"): _arrow_rows,
    ("pyarrow", "RecordBatch"): _arrow_rows,
    ("pyarrow", "RecordBatchReader"): _arrow_reader,
    ("duckdb", "DuckDBPyRelation"): _relation,
}
