# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon_net.filter`: kinds of tables, what their memory holds, reports, and wrong input."""

import sys
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.frames import KINDS, Stream, as_table, rows_of

import zanon_net
from zanon_net import ConfigError, FormatError

START = 1_700_000_000
SECRET = "a-name-of-one-user-only.example"
SHARED = "a-name-that-all-users-share.example"
OPTIONS: dict[str, Any] = {"z": 2, "window": "1h", "time_unit": "s", "no_user": True}


def table(**columns: Any) -> pa.Table:
    """Three rows, of which the last is released; `columns` replace some."""
    rows = {
        "time": [START, START + 1, START + 2],
        "user": ["ann", "bob", "bob"],
        "attribute": [SHARED, SECRET, SHARED],
        "row": [0, 1, 2],
    }
    return pa.table(rows | columns)


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_is_of_the_kind_that_was_given(kind: str) -> None:
    data = KINDS[kind](table())
    out = zanon_net.filter(data, **OPTIONS | {"no_user": False})
    assert type(out) is (pa.Table if kind == "other" else type(data))
    ((t_ns, user, attribute),) = rows_of(out, 10**9)
    assert (t_ns, attribute) == ((START + 2) * 10**9, SHARED)
    assert len(user) == 32
    assert int(user, 16) >= 0


def memory_of(column: pa.ChunkedArray) -> bytes:
    """Everything that a column holds, also beneath missing values."""
    buffers = []
    for chunk in column.chunks:
        buffers += [b for b in chunk.buffers() if b is not None]
        if pa.types.is_dictionary(chunk.type):
            buffers += [b for b in chunk.dictionary.buffers() if b is not None]
    return b"".join(buffer.to_pybytes() for buffer in buffers)


@pytest.mark.parametrize("suppressed", ["drop", "blank"])
@pytest.mark.parametrize("of", ["string", "large_string", "string_view", "dictionary", "number"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "lazy" not in kind])
def test_no_memory_of_a_result_holds_a_suppressed_attribute(
    kind: str, of: str, suppressed: str
) -> None:
    secret, shared = SECRET.encode(), SHARED.encode()
    column = pa.chunked_array([[SHARED, SECRET, SHARED]])
    if of == "number":
        numbers = [0x6161616161616161, 0x6262626262626262]
        secret, shared = b"b" * 8, b"a" * 8
        column = pa.chunked_array([[numbers[0], numbers[1], numbers[0]]])
    elif of == "dictionary":
        column = column.dictionary_encode()
    else:
        column = column.cast(getattr(pa, of)())
    if kind.startswith("pandas") and of == "string_view":
        pytest.skip("pandas has no views")
    data = KINDS[kind](table(attribute=column))
    out = zanon_net.filter(data, **OPTIONS, suppressed=suppressed)
    if isinstance(out, pd.DataFrame):
        assert not isinstance(out["attribute"].dtype, pd.CategoricalDtype)
        masked = getattr(out["attribute"].array, "_data", None)
        if isinstance(masked, np.ndarray):
            assert secret not in masked.tobytes()
    column = as_table(out).column("attribute")
    assert column.null_count == (2 if suppressed == "blank" else 0)
    assert shared in memory_of(column)
    assert secret not in memory_of(column)


def test_the_index_of_pandas_stays_if_it_is_numbers() -> None:
    frame = table().to_pandas().iloc[::-1].sort_index(ascending=True)
    out = zanon_net.filter(frame, **OPTIONS, suppressed="blank", passed=["row"])
    assert out.index.tolist() == out["row"].tolist() == [0, 1, 2]
    assert zanon_net.filter(frame, **OPTIONS).index.tolist() == [2]
    twice = frame.set_index(pd.Index([7, 7, 7]))
    assert zanon_net.filter(twice, **OPTIONS, suppressed="blank")["attribute"].tolist()[2] == SHARED


@pytest.mark.parametrize(
    "index", [pd.Index(["ann", "bob", "bob"]), pd.Index([1, 2, 3], name="user id")]
)
def test_an_index_that_could_hold_users_is_refused(index: Any) -> None:
    frame = table().to_pandas().set_index(index)
    with pytest.raises(
        ConfigError, match=r"^data: its index is not a row's number; use reset_index"
    ):
        zanon_net.filter(frame, **OPTIONS)


@pytest.mark.parametrize("kind", ["pandas", "pandas of Arrow", "polars", "Table", "DuckDB"])
def test_a_zone_would_show_where_a_user_is(kind: str) -> None:
    times = pa.array([START, START + 1, START + 2], pa.timestamp("s", "Asia/Kolkata"))
    del (options := dict(OPTIONS))["time_unit"]
    out = zanon_net.filter(KINDS[kind](table(time=times)), **options)
    if kind == "pandas":
        assert str(out["time"].dt.tz) == "UTC"
    zone = as_table(out).schema.field("time").type.tz
    assert zone == "UTC" or kind == "DuckDB"  # whose zone is the machine's
    assert rows_of(out)[0][0] == (START + 2) * 10**9


def test_a_number_and_its_text_are_one_user_and_one_attribute_in_every_chunk() -> None:
    for users in ([5, 5, 6], ["5", "5", "6"]):
        out = zanon_net.filter(table(user=users, attribute=[1, 1, 1]), **OPTIONS)
        assert out.num_rows == 1


class TestPandasWithoutPyarrow:
    @pytest.fixture(autouse=True)
    def no_pyarrow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)

    @pytest.mark.parametrize("user", [["a", "b", "b"], [1, 2, 2]])
    @pytest.mark.parametrize("suppressed", ["drop", "blank"])
    def test_columns_of_numpy(self, user: list[Any], suppressed: str) -> None:
        frame = pd.DataFrame({
            "time": np.array([START, START + 1, START + 2], "M8[s]"),
            "user": pd.Series(user, dtype=None if isinstance(user[0], int) else object),
            "attribute": pd.Series([SHARED, None, SHARED], dtype=object),
        })  # fmt: skip
        out = zanon_net.filter(frame, z=2, suppressed=suppressed)
        assert [len(name) for name in out["user"]] == [32] * len(out)
        assert out["attribute"].notna().tolist()[-1]
        assert len(out) == (3 if suppressed == "blank" else 1)

    def test_numbers_that_can_be_missing(self) -> None:
        frame = pd.DataFrame({
            "time": [START, START + 1, START + 2],
            "user": pd.array([1, None, 2], "UInt8"),
            "attribute": pd.array([7, 7, 7], "Int64"),
        })  # fmt: skip
        with pytest.warns(UserWarning, match=r"^1 row could not be read and was dropped; "):
            out = zanon_net.filter(frame, z=2, time_unit="s")
        assert out["attribute"].tolist() == [7]


class TestReports:
    def test_a_report_has_the_counters_and_settings(self) -> None:
        reports: list[Any] = []
        zanon_net.filter(table(user=["ann", None, "bob"]), report=reports.append, **OPTIONS)
        (report,) = reports
        assert [report.manifest["rows"][name] for name in ("read", "written")] == [3, 1]
        assert report.manifest["rows"]["dropped"]["missing"] == 1
        assert report.manifest["decisions"]["suppressed"]["below_z"] == 1
        assert report.manifest["configuration"]["format"] == "pyarrow.Table"
        assert "delimiter" not in report.manifest["configuration"]
        assert "2 read" not in report.summary()

    def test_rows_that_are_dropped_cause_a_warning_without_a_report(self) -> None:
        match = "^2 rows could not be read and were dropped; the first is row 0, counted from 0: "
        with pytest.warns(UserWarning, match=match) as caught:
            zanon_net.filter(table(user=[None, "", "bob"]), **OPTIONS)
        assert caught[0].filename == __file__

    def test_strict(self) -> None:
        with pytest.raises(FormatError, match=r"^row 1, counted from 0: no text or number in a na"):
            zanon_net.filter(table(user=["ann", None, "bob"]), strict=True, **OPTIONS)

    def test_a_row_without_an_attribute_is_no_damage(self) -> None:
        rows, reports = table(attribute=pa.array([None, "", None], pa.string())), []
        options = OPTIONS | {"strict": True, "report": reports.append}
        blank = zanon_net.filter(rows, suppressed="blank", **options)
        assert blank.column("attribute").null_count == 3
        assert zanon_net.filter(rows, **options | {"z": 1}).num_rows == 0
        assert [report.manifest["rows"]["no_attribute"] for report in reports] == [3, 3]

    def test_suffixes_that_are_never_released(self) -> None:
        out = zanon_net.filter(table(), never=["share.example"], **OPTIONS | {"z": 1})
        assert out.column("attribute").to_pylist() == [SHARED, SECRET, SHARED]
        out = zanon_net.filter(table(), never=[SHARED], **OPTIONS | {"z": 1})
        assert out.column("attribute").to_pylist() == [SECRET]

    def test_a_reader_is_read_batch_by_batch(self) -> None:
        batches = table().to_batches(max_chunksize=1)
        seen = []

        def read() -> Any:
            for i, batch in enumerate(batches):
                seen.append(i)
                yield batch

        reader = pa.RecordBatchReader.from_batches(batches[0].schema, read())
        reports: list[Any] = []
        out = zanon_net.filter(reader, report=reports.append, **OPTIONS)
        assert seen == []
        assert out.read_next_batch().num_rows == 0
        assert seen == [0]
        assert reports == []
        assert out.read_all().num_rows == 1
        assert reports[0].manifest["rows"]["read"] == 3


def test_no_rows() -> None:
    for kind in ("pandas", "polars", "Table"):
        out = zanon_net.filter(KINDS[kind](table().slice(0, 0)), **OPTIONS)
        assert rows_of(out, 1) == []


@pytest.mark.parametrize("chunks", [[], [0, 0, 3, 0], [1, 2]])
def test_empty_chunks(chunks: list[int]) -> None:
    parts = [table().slice(0, n) for n in chunks]
    whole = pa.concat_tables(parts) if parts else table().schema.empty_table()
    assert zanon_net.filter(whole, **OPTIONS | {"z": 1}).num_rows == sum(chunks)


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no column": ({}, {"user": "usr"}, "user: there is no column 'usr' among time, user, attrib"),
    "no passed column": ({}, {"passed": ["x"]}, "passed: there is no column 'x' among time, "),
    "one role each": ({}, {"user": "time"}, "user: 'time' is named already; each column has one"),
    "float": ({"user": [1.5] * 3}, {}, "user: column 'user' holds floating-point numbers; conv"),
    "float time": ({"time": [1.5] * 3}, {}, "time: column 'time' holds floating-point numbers; "),
    "text time": ({"time": ["x"] * 3}, {}, "time: column 'time' holds texts; convert it to date"),
    "nested": ({"attribute": [[1]] * 3}, {}, "attribute: column 'attribute' holds values of ano"),
    "truth": ({"user": [True] * 3}, {}, "user: column 'user' holds truth values; convert it to "),
    "no unit": ({}, {"time_unit": "iso"}, "time_unit: column 'time' holds numbers; their unit "),
    "unit": (
        {"time": pa.array([1] * 3, pa.timestamp("s"))},
        {},
        "time_unit: column 'time' holds datetimes; leave the unit out",
    ),
    "wrong unit": ({}, {"time_unit": "min"}, "time_unit: must be one of s, ms, us, ns, iso"),
    "setting of files": ({}, {"delimiter": ";"}, "delimiter: no setting of this function"),
    "misspelt": ({}, {"windows": 1}, "windows: no setting of this function; did you mean 'windo"),
    "z": ({}, {"z": 0}, "z: "),
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "Table", "RecordBatchReader"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(case: str, kind: str) -> None:
    columns, settings, message = WRONG[case]
    with pytest.raises(ConfigError) as caught:
        zanon_net.filter(KINDS[kind](table(**columns)), **OPTIONS | settings)
    if case == "nested" and kind == "pandas":
        message = "attribute: column 'attribute' holds objects that are not texts"
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_two_columns_of_one_name() -> None:
    rows = table().rename_columns(["time", "user", "user", "row"])
    with pytest.raises(ConfigError, match=r"^user: there are 2 columns 'user'$"):
        zanon_net.filter(rows, **OPTIONS)


@pytest.mark.parametrize("data", [None, {"time": [1]}, [(1, "a", "b")], np.zeros(3), "time"])
def test_other_objects(data: Any) -> None:
    with pytest.raises(ConfigError, match=r"^data: \w+ is no table; it can be a DataFrame of "):
        zanon_net.filter(data, **OPTIONS)


@pytest.mark.parametrize(
    ("times", "fault"),
    [([-1, START, START], "time"), ([2**63 - 1] * 3, "time"), ([None] * 3, "missing")],
)
def test_times_that_are_none(times: list[int | None], fault: str) -> None:
    reports: list[Any] = []
    rows = table(time=pa.array(times, pa.int64()))
    with pytest.raises(FormatError, match=r"^row 0, counted from 0: "):
        zanon_net.filter(rows, strict=True, **OPTIONS)
    if fault == "time" and times[0] == -1:
        zanon_net.filter(rows, report=reports.append, **OPTIONS)
        assert reports[0].manifest["rows"]["dropped"]["time"] == 1
    else:
        with pytest.raises(FormatError, match=r"^not one row could be read$"):
            zanon_net.filter(rows, **OPTIONS)


def test_a_stream_that_fails() -> None:
    def batches() -> Any:
        yield table().to_batches()[0]
        raise ValueError(SECRET)

    class Broken:
        """A column whose stream ends with an error."""

        dtype = None

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            reader = pa.RecordBatchReader.from_batches(table().schema, batches())
            return reader.__arrow_c_stream__(requested_schema)

    with pytest.raises(FormatError, match=r"^x cannot be read: its Arrow stream ended with an er"):
        zanon_net._core.Cells("x", Broken())  # type: ignore[attr-defined]


def test_a_frame_of_a_derived_class() -> None:
    class Visits(pd.DataFrame):
        pass

    assert len(zanon_net.filter(Visits(table().to_pandas()), **OPTIONS)) == 1


def test_duckdb_can_query_the_result() -> None:
    out = zanon_net.filter(duckdb.from_arrow(table()), **OPTIONS)
    assert out.aggregate("count(*)").fetchall() == [(1,)]
    assert pl.DataFrame(zanon_net.filter(Stream(table()), **OPTIONS)).height == 1
