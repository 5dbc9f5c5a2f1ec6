# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Other libraries open the folder of Parquet files as one table, without an argument of ours."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import zanon_net

Facts = tuple[int, int, int, int]
"""Flows, names, flows that are complete, bytes of the servers."""


def by_pandas(folder: Path) -> Facts:
    table = importlib.import_module("pandas").read_parquet(folder)
    assert str(table["t_start_ns"].dtype) == "datetime64[ns, UTC]"
    complete = table["complete"].eq(True).sum()
    return len(table), table["name"].notna().sum(), complete, table["s_bytes"].sum()


def by_polars(folder: Path) -> Facts:
    polars = importlib.import_module("polars")
    table = polars.read_parquet(f"{folder}/")
    assert table.schema["t_start_ns"] == polars.Datetime("ns", "UTC")
    names = len(table) - table["name"].null_count()
    return len(table), names, table["complete"].sum(), table["s_bytes"].sum()


def by_pyarrow(folder: Path) -> Facts:
    table = importlib.import_module("pyarrow.dataset").dataset(folder).to_table()
    assert str(table.schema.field("complete").type) == "bool"
    complete = sum(map(bool, table["complete"].to_pylist()))
    return (
        *(len(table), len(table) - table["name"].null_count),
        *(complete, sum(table["s_bytes"].to_pylist())),
    )


def by_duckdb(folder: Path) -> Facts:
    database = importlib.import_module("duckdb")
    place = f"'{folder}/**/*.parquet'"
    (row,) = database.sql(
        "SELECT count(*), count(name), count(*) FILTER (complete), sum(s_bytes),"
        f" any_value(typeof(t_start_ns)), any_value(typeof(complete)) FROM {place}"
    ).fetchall()
    assert row[4].startswith("TIMESTAMP")
    assert row[5] == "BOOLEAN"
    facts: Facts = row[:4]
    return facts


READERS = {"pandas": by_pandas, "polars": by_polars, "pyarrow": by_pyarrow, "duckdb": by_duckdb}


@pytest.fixture(scope="module", params=[{}, {"split": "2h"}], ids=["whole", "parts"])
def out(
    request: pytest.FixtureRequest, demo_pcap: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The demo as Parquet and other files."""
    out = tmp_path_factory.mktemp("readers") / "out"
    formats = ("parquet", "csv", "observations")
    zanon_net.run(demo_pcap, z=3, format=formats, out=out, **request.param)
    return out


@pytest.mark.parametrize(("name", "read"), READERS.items(), ids=READERS)
def test_a_reader_opens_the_folder(name: str, read: Callable[[Path], Facts], out: Path) -> None:
    pytest.importorskip(name)
    tables = [pq.ParquetFile(path).read() for path in (out / "flows").rglob("*.parquet")]
    assert len(tables) > 1

    def values(column: str) -> list[Any]:
        return [value for table in tables for value in table[column].to_pylist()]

    names = sum(name is not None for name in values("name"))
    expected = (
        sum(map(len, tables)),
        names,
        values("complete").count(True),
        sum(values("s_bytes")),
    )
    assert min(expected) > 100
    assert read(out / "flows") == expected


def test_the_files_have_one_schema_and_no_neighbours(out: Path) -> None:
    """Spark, for one, takes every file whose name starts with neither _ nor a point."""
    files = [path for path in (out / "flows").rglob("*") if not path.is_dir()]
    assert {path.suffix for path in files} == {".parquet"}
    first, *others = [pq.read_schema(path) for path in files]
    assert all(other.equals(first, check_metadata=True) for other in others)
