# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables in and out of files: strict text, and an output that is whole, new and without traces."""

import csv
import errno
import io
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.microdata import WORDS
from support.packers import PACKERS

from zanon_net import microdata as md
from zanon_net.errors import ConfigError, FormatError, OutputError, ZanonError
from zanon_net.microdata.arrow import as_table, empty_as_missing
from zanon_net.microdata.tables import as_released, read_table, table_bytes
from zanon_net.output.new_file import write_files


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., dict[str, list[Any]]]:
    """Reads bytes as a file; the columns as lists."""

    def reading(data: bytes, *columns: str, **more: str) -> dict[str, list[Any]]:
        path = tmp_path / "table"
        path.write_bytes(data)
        return dict(read_table(path, columns, **more).to_pydict())

    return reading


Read = Callable[..., dict[str, list[Any]]]


def test_csv(read: Read) -> None:
    data = b'\xef\xbb\xbfa,b,"c d"\r\n1,x,0\r\n,"y, ""z""\nw",00\r\n\r\n"",\xc3\xa9,1'
    assert read(data, "c d", "b", "a") == {
        "c d": ["0", "00", "1"],
        "b": ["x", 'y, "z"\nw', "é"],
        "a": ["1", None, None],
    }
    assert read(b"a\tb\n1\t2\n", "b", delimiter="tab") == {"b": ["2"]}
    assert read(b"a;b\n1;\n", "b", delimiter=";") == {"b": [None]}
    assert read(b"a,b\n", "b", "a") == {"b": [], "a": []}
    assert read(b'a\n""\n\nx\n', "a") == {"a": [None, "x"]}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a,b\n1,2\n3\n", "line 3: not as many columns as the header"),
        (b'a,b\n"1\n2",2\n3,4,5\n', "line 4: not as many columns as the header"),
        (b"a,b\n1,2\n  \n", "line 3: not as many columns as the header"),
        (b'a,b\n1,2"3\n', "line 2: a quote or a line break in the wrong place"),
        (b'a,b\n1,"2"3\n', "line 2: a quote or a line break in the wrong place"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "line 3: a quote or a line break in the wrong place"),
        (b"a,b\r\n1,\r2\r\n", "line 2: a quote or a line break in the wrong place"),
        (b"a,b\n1,2\n3,\x1b4\n", "line 3: a control character"),
        (b"a,b\n1,2\n3,\xc2\x85\n", "line 3: a control character"),
        (b"a,b\n1,2\n3,\xff\n", "line 3: not UTF-8"),
        (b"a,b\n1,2\n3,\xed\xa0\x80\n", "line 3: not UTF-8"),
        (b'a,"b\n', "line 1: a quote or a line break in the wrong place"),
        (b"", "it is empty; the first line of CSV has the columns' names"),
        (b'{"a":1,"b":2}\n{"a":1,"b":2\n', "line 2: not a JSON object"),
        (b'{"a":1,"b":2}\n\n[1]\n', "line 3: not a JSON object"),
        (b'{"a":1,"b":NaN}\n', "line 1: not a JSON object"),
        (b'{"a":1,"b":2,"a":3}\n', "line 1: a column twice"),
        (b'{"a":1,"b":"\\u0007"}\n', "line 1: a control character"),
        (b'{"a":1,"b":"\\ud800"}\n', "line 1: a control character"),
        (b'{"a":1,"b":[2]}\n', "line 1: column 'b' holds a list or an object"),
        (b'{"a":1,"b":2}\n{"a":"1","b":2}\n', "line 2: column 'a' has a text where lines above"),
        (b'{"a":1,"b":true}\n{"a":1,"b":2}\n', "line 2: column 'b' has a number where lines"),
        (b'{"a":1,"b":' + b"9" * 30 + b"}\n", "column 'b' has numbers beyond 64 bits"),
        (b"PAR1", "it is no Parquet file, or damaged"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(
    read: Read, data: bytes, problem: str
) -> None:
    with pytest.raises(FormatError) as caught:
        read(data, "a", "b")
    assert str(caught.value).startswith(f"table: {problem}")


@pytest.mark.parametrize("data", [b"a,city\n1,2\n", b'{"a":1,"city":2}\n'])
def test_a_column_that_is_not_there(read: Read, data: bytes) -> None:
    with pytest.raises(
        ConfigError, match=r"^table: there is no column 'citty'; did you mean 'city'\?$"
    ):
        read(data, "a", "citty")


def test_a_column_that_is_there_twice(read: Read) -> None:
    with pytest.raises(ConfigError, match=r"^table: there are 2 columns 'a'$"):
        read(b"a,a,b\n1,2,3\n", "a")
    assert read(b"a,a,b\n1,2,3\n", "b") == {"b": ["3"]}


def test_json_lines(read: Read) -> None:
    data = b'{"a":1,"b":"x","c":[1]}\n{"b":null,"a":2.5}\n\n{"a":null,"b":"\\u00e9"}\n'
    assert read(data, "b", "a") == {"b": ["x", None, "é"], "a": [1.0, 2.5, None]}
    assert read(b'{"a":true}\n{"a":false}\n', "a") == {"a": [True, False]}
    assert read(b'{"a":17}\n', "a") == {"a": [17]}


def test_parquet_and_packed_files(tmp_path: Path, read: Read) -> None:
    table = pa.table({"a": ["x", None], "b": pa.array([1, 2], pa.uint8()), "c": [[1], [2]]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", ["b", "a"]).to_pydict() == {
        "b": [1, 2],
        "a": ["x", None],
    }
    with pytest.raises(ConfigError, match="column 'c' holds lists or structs"):
        read_table(tmp_path / "t.parquet", ["c"])
    no_text = pa.array([b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"a": no_text}), tmp_path / "no_text.parquet")
    with pytest.raises(FormatError, match="it is no Parquet file, or damaged"):
        read_table(tmp_path / "no_text.parquet", ["a"])
    for name, pack in PACKERS.items():
        (tmp_path / name).write_bytes(pack(b"a\nx\n"))
        assert read_table(tmp_path / name, ["a"]).to_pydict() == {"a": ["x"]}
        (tmp_path / name).write_bytes(pack(b"a\nx\n")[:-1])
        with pytest.raises(FormatError, match=f"{name}: the {name} data ends early, after byte"):
            read_table(tmp_path / name, ["a"])
    (tmp_path / "plain.csv.gz").write_bytes(b"a\nx\n")
    assert read_table(tmp_path / "plain.csv.gz", ["a"]).to_pydict() == {"a": ["x"]}
    with pytest.raises(ZanonError, match="cannot be read: No such file"):
        read_table(tmp_path / "none.csv", ["a"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_tables_of_other_libraries(make: Callable[[Any], Any]) -> None:
    columns = {"a": ["x", "y", None], "b": [1, 2, 3]}
    table = as_table(make(columns), ["b", "a"])
    assert table.to_pydict() == {"b": [1, 2, 3], "a": ["x", "y", None]}
    assert table.schema.field("a").type == pa.dictionary(pa.int32(), pa.string())


class _Stream:
    """A table that exports a stream, and is nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class _Array:
    """A table that exports an array of structs, and is nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._batch = table.to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("export", [_Stream, _Array])
def test_any_table_that_exports_arrow_data(export: Callable[[pa.Table], Any]) -> None:
    columns = {"a": ["x", "y", None], "b": [1, 2, 3]}
    assert as_table(export(pa.table(columns)), ["a", "b"]).to_pydict() == columns


def test_duckdb_gives_and_takes_tables() -> None:
    """Rows of a query go in as they are; a query reads what comes out by its variable."""
    rows = duckdb.sql("SELECT i % 4 AS age, i % 3 AS disease FROM range(100) t(i)")
    plan = md.Plan(quasi={"age": md.Round(2, 0, 3)}, sensitive="disease", k=5, l=3)
    assert md.check(rows, plan).k == 25
    released = md.anonymize(rows, plan).table  # noqa: F841
    counted = duckdb.sql("SELECT age, count(*) FROM released GROUP BY age ORDER BY age").fetchall()
    assert counted == [("2+", 50), ("<2", 50)]


def test_categories_and_views() -> None:
    words = pl.DataFrame({"a": ["x", "y", "x"]}, schema={"a": pl.Categorical})
    assert as_table(words, ["a"]).to_pydict() == {"a": ["x", "y", "x"]}
    indices = pa.array([0, 1, None], pa.int32())
    twice = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "x"]))
    table = as_table(pa.table({"a": twice}), ["a"], encode=False)
    assert table.column("a").chunk(0).dictionary.to_pylist() == ["x"]
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))
    assert as_table(pa.table({"a": hidden}), ["a"]).column("a").null_count == 1


def test_an_object_that_is_no_table() -> None:
    with pytest.raises(ConfigError, match="a int is not a table that Arrow can read"):
        as_table(5, ["a"])


def test_an_empty_text_can_be_made_missing() -> None:
    table = as_table({"a": ["x", "", None], "b": [1, 2, 3]}, ["a", "b"])
    assert empty_as_missing(table).to_pydict() == {"a": ["x", None, None], "b": [1, 2, 3]}


# ---- output -------------------------------------------------------------------------------------

cells = st.one_of(st.none(), WORDS, st.sampled_from(["", "a\nb", "\r", "\u2028", "= 1", '"a"']))


@given(st.lists(st.tuples(cells, st.one_of(st.none(), st.integers(-5, 5))), max_size=8))
def test_what_is_written_is_read_back(rows: list[tuple[str | None, int | None]]) -> None:
    table = as_table(
        {
            "a,b": pa.array([row[0] for row in rows], pa.string()),
            "n": pa.array([row[1] for row in rows], pa.int64()),
        },
        ["a,b", "n"],
    )
    as_csv = table_bytes(table, "csv")
    found = list(csv.reader(io.StringIO(as_csv.decode(), newline=""), strict=True))
    assert found[0] == ["a,b", "n"]
    written = [["" if value is None else str(value) for value in row] for row in rows]
    assert sorted(found[1:]) == sorted(written)
    as_json = table_bytes(table, "jsonl").decode()
    assert not set(as_json) & set("\r\u2028")
    objects = [list(json.loads(line).values()) for line in as_json.split("\n")[:-1]]
    assert sorted(objects, key=repr) == sorted(map(list, rows), key=repr)
    as_parquet = pq.read_table(io.BytesIO(table_bytes(table, "parquet"))).to_pylist()
    assert sorted([list(row.values()) for row in as_parquet], key=repr) == sorted(
        map(list, rows), key=repr
    )


def test_the_order_of_rows_tells_nothing() -> None:
    rows = [("b", 1), ("a", 2), ("b", 1), (None, 10), ("a", 1)]
    for order in (rows, rows[::-1]):
        table = as_table(
            {"a": [row[0] for row in order], "n": [row[1] for row in order]}, ["a", "n"]
        )
        assert table_bytes(table, "csv") == b"a,n\n,10\na,1\na,2\nb,1\nb,1\n"
        assert table_bytes(table, "jsonl").splitlines() == sorted(
            table_bytes(table, "jsonl").splitlines()
        )
        released = as_released(table).to_pydict()
        assert released == {"a": [None, "a", "a", "b", "b"], "n": [10, 1, 2, 1, 1]}


def test_a_single_column_keeps_its_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(table_bytes(as_table({"a": ["x", None]}, ["a"]), "csv"))
    assert read_table(path, ["a"]).to_pydict() == {"a": [None, "x"]}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_nothing_of_rows_that_are_left_out_is_written(form: str) -> None:
    """A dictionary has words of rows that were dropped, and metadata can have anything."""
    words = pa.array(["kept", "SECRET"]).dictionary_encode()
    field = pa.field("a", words.type, metadata={"note": "SECRET"})
    table = pa.table([words], schema=pa.schema([field], metadata={"pandas": "SECRET"})).slice(0, 1)
    assert b"SECRET" not in table_bytes(table, form)
    assert "SECRET" not in str(as_released(table).schema)


def test_a_control_character_is_not_written_as_text() -> None:
    table = as_table({"a": ["x\x1b"]}, ["a"])
    for form in ("csv", "jsonl"):
        with pytest.raises(FormatError, match="a control character"):
            table_bytes(table, form)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_together_and_never_replace_one(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.json"
    write_files({first: b"one", second: b"two"})
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    third = tmp_path / "c.csv"
    for path in (second, tmp_path / "link"):
        if path.name == "link":
            path.symlink_to(tmp_path / "nowhere")
        with pytest.raises(ConfigError, match="nothing is ever overwritten"):
            write_files({third: b"three", path: b"four"})
    assert names_in(tmp_path) == ["a.csv", "b.json", "link"]
    assert second.read_bytes() == b"two"


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A limit on the size of files stands for it: the second file has no room."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(OutputError, match=os.strerror(errno.EFBIG)):
            write_files({tmp_path / "a": b"x" * 100, tmp_path / "b": b"x" * 2000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names_in(tmp_path) == []
    with pytest.raises(OutputError, match="make the folder it is to lie in first"):
        write_files({tmp_path / "a": b"", tmp_path / "none" / "b": b""})
    assert names_in(tmp_path) == []


# ---- CSV without quoting ------------------------------------------------------------------------


def test_without_quoting_every_line_is_a_row(read: Read) -> None:
    data = b'"a"\tb\n"begin\tx\n"y\tz""\n\tend"\r\n"q"\t""\n'
    rows = {'"a"': ['"begin', '"y', None, '"q"'], "b": ["x", 'z""', 'end"', '""']}
    assert read(data, '"a"', "b", delimiter="tab") == rows
    assert read(data.replace(b"\t", b","), '"a"', "b", quote="none") == rows
    assert read(b'a\tb\n"x\ny"\tz\n', "a", "b", delimiter="tab", quote="csv") == {
        "a": ["x\ny"],
        "b": ["z"],
    }


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'a\tb\n1\t2\n"x\ny"\tz\n', "line 3: not as many columns as the header"),
        (b'a\tb\n1\t"2\r3"\n', "line 2: a quote or a line break in the wrong place"),
    ],
)
def test_without_quoting_no_field_holds_a_line_break(read: Read, data: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=f"^table: {problem}$"):
        read(data, "a", "b", delimiter="tab")


bare_cells = st.one_of(st.none(), WORDS, st.sampled_from(["a\nb", "\r", "a\tb", " a ", '"', '"a"']))


@given(st.lists(bare_cells, max_size=8), st.booleans())
def test_without_quoting_a_table_is_read_back_or_not_written(
    words: list[str | None], wide: bool
) -> None:
    columns = {"a": pa.array(words, pa.string())} | ({"b": ["x"] * len(words)} if wide else {})
    broken = [word for word in words if word and set(word) & set("\t\r\n")]
    unsaid = not wide and not all(words)
    table = as_table(columns, list(columns))
    if broken or unsaid:
        with pytest.raises(FormatError, match=r"--quote csv$"):
            table_bytes(table, "csv", delimiter="tab")
        return
    written = table_bytes(table, "csv", delimiter="tab")
    lines = [line.split("\t") for line in written.decode().split("\n")[:-1]]
    assert lines[0] == list(columns)
    assert sorted(line[0] for line in lines[1:]) == sorted(word or "" for word in words)
