# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows as tables in memory, frames of captures as arrays, and a report's files."""

import ctypes
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.engine import feed, make_engine
from support.packets import START, Udp, user

import zanon_net
from zanon_net import Config, ConfigError, FlowBatch, Report
from zanon_net._core import PacketEngine, RowBatch, TableRows
from zanon_net.keys import new_key
from zanon_net.output.schema import described

LOGS: tuple[Any, ...] = ("tcp_complete", "tcp_nocomplete", "udp_complete")
SETTINGS: dict[str, Any] = {"z": 5, "columns": ("core", "layer7", "e2e", "options", "p2p")}


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("key") / "key"
    new_key(path)
    return str(path)


@pytest.fixture(scope="module")
def report(demo_pcap: Path, key_file: str, tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("parquet") / "out"
    return zanon_net.run(demo_pcap, out=out, format="parquet", key_file=key_file, **SETTINGS)


@pytest.fixture(scope="module")
def batches(demo_pcap: Path, key_file: str) -> list[FlowBatch]:
    return list(zanon_net.flows(demo_pcap, key_file=key_file, **SETTINGS))


def of(batches: list[FlowBatch], protocol: str) -> list[FlowBatch]:
    return [batch for batch in batches if batch.protocol == protocol]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_batches_hold_what_parquet_has(
    protocol: str, batches: list[FlowBatch], report: Report
) -> None:
    tables = [batch.to_arrow() for batch in of(batches, protocol)]
    for table in tables:
        table.validate(full=True)
    (path,) = [file for file in report.files if file.name == f"{protocol}.parquet"]
    written = pq.read_table(path)
    batch, every = pa.concat_tables(tables), written
    written = every.select(batch.column_names)
    assert [field.type for field in batch.schema] == [field.type for field in written.schema]
    assert plain(batch) == plain(written)
    absent = every.drop_columns(batch.column_names)
    assert absent.num_columns > 10
    assert {column.null_count for column in absent.columns} == {len(every)}
    for mine, field in zip(tables[0].schema, written.schema, strict=True):
        said = {key: text for key, text in field.metadata.items() if b":" not in key}
        assert mine.metadata == said


def test_each_library_takes_a_batch(batches: list[FlowBatch]) -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for batch in batches:
        table = batch.to_arrow()
        assert len(batch) == table.num_rows == pa.record_batch(batch).num_rows
        assert pa.RecordBatchReader.from_stream(batch).read_all().equals(table)
        assert pa.schema(batch).equals(table.schema)
        assert batch.to_polars().equals(pl.DataFrame(table))
        pd.testing.assert_frame_equal(batch.to_pandas(), table.to_pandas())
        assert repr(batch) == f"<FlowBatch of {len(batch):,} {batch.protocol} flows>"


def test_memory_lives_as_long_as_its_importer(demo_pcap: Path) -> None:
    """The engine reuses the memory of a table that nobody reads any more, and only that."""
    columns, before = [], []
    for batch in zanon_net.flows(demo_pcap, z=1):
        column = pa.record_batch(batch).column("c_bytes_all")
        columns.append(column)
        before.append(column.to_pylist())
        del batch, column
        gc.collect()
    assert [column.to_pylist() for column in columns] == before


def test_capsules_that_nobody_takes(batches: list[FlowBatch]) -> None:
    for _ in range(3):
        batches[0].__arrow_c_schema__()
        batches[0].__arrow_c_array__(None)
        batches[0].__arrow_c_stream__(None)
    assert len(batches[0].to_arrow()) == len(batches[0])


class Stream(ctypes.Structure):
    """struct ArrowArrayStream, as far as it is called here."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    )


def test_a_stream_has_its_schema_also_at_its_end(batches: list[FlowBatch]) -> None:
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    capsule = batches[0].__arrow_c_stream__()
    place = pointer_of(capsule, b"arrow_array_stream")
    stream = Stream.from_address(place)
    array, end, schema = (ctypes.create_string_buffer(80) for _ in range(3))
    assert stream.get_next(place, array) == stream.get_next(place, end) == 0
    assert stream.get_schema(place, schema) == 0
    assert end.raw == bytes(80)
    rows = pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
    assert rows.equals(pa.record_batch(batches[0]))


def lookups(engine: PacketEngine, n: int) -> None:
    """Closes n flows of UDP."""
    for i in range(n):
        talk = Udp(user(i + 1), ports=(20000 + i, 53), t_ns=START)
        feed(engine, talk.lookup(b"www.example.org").frames)
    while engine.finish():
        pass


def test_fields_and_rows_that_do_not_fit_are_refused() -> None:
    engine = make_engine(z=1, outputs=("udp_table",))
    fields = described(engine.fields("udp_table"))
    lookups(engine, 2)
    table = engine.drain()[1]["udp_table"]
    assert len(table) == 2
    (row,) = pa.record_batch(RowBatch(fields, table, 1, 2)).to_pylist()
    assert row["name"] == "www.example.org"
    batch = RowBatch(fields, table, 0, 1)
    with pytest.raises(RuntimeError, match="twice"):  # it may have lent what it holds
        batch.__init__(fields, table, 0, 1)  # type: ignore[misc]
    for some, rows in (
        (fields[1:], (0, 1)),
        ([*fields[1:], fields[0]], (0, 1)),
        (fields, (0, 3)),
        (fields, (2, 1)),
        (fields, (-1, 1)),
    ):
        with pytest.raises(ValueError, match="of a batch"):
            RowBatch(some, table, *rows)
    with pytest.raises(TypeError, match="out of an engine"):
        TableRows()


def test_rows_outlive_their_engine_and_its_next_rows() -> None:
    """In whatever order batches, capsules and what was imported from them go, in any thread."""
    engine = make_engine(z=1, outputs=("udp_table",))
    fields = described(engine.fields("udp_table"))
    held: list[Any] = []
    wanted = []
    for n in (3, 1, 2):
        lookups(engine, n)
        table = engine.drain()[1]["udp_table"]
        batch = RowBatch(fields, table, 0, n)
        wanted.append(pa.record_batch(batch).to_pylist())
        held.append([table, batch, batch.__arrow_c_array__(None), pa.record_batch(batch)])
        del table, batch
    engine.close()
    del engine
    for place in (0, 2, 1):
        for kept in held:
            kept[place] = None
    gc.collect()
    assert [kept[3].to_pylist() for kept in held] == wanted
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(list.clear, held))


def test_settings_without_a_meaning_are_refused(demo_pcap: Path, key_file: str) -> None:
    with pytest.raises(ConfigError, match="drop_to and popularity"):
        next(zanon_net.flows(demo_pcap, popularity="p.json"))
    with pytest.raises(ConfigError, match=r"^z:"):
        next(zanon_net.flows(demo_pcap, z=0))
    with pytest.raises(ConfigError, match=r"^count_at: only a whole run uses a counter; [^\n]+$"):
        next(zanon_net.flows(demo_pcap, count_at="tcp:localhost:1", probe="a", key_file=key_file))


def test_an_end_in_the_middle_closes_everything(demo_pcap: Path) -> None:
    running: Iterator[FlowBatch] = zanon_net.flows(demo_pcap, z=1)
    next(running)
    del running
    gc.collect()


# ---- frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 1000, 1 << 20])
def test_frames_are_what_an_engine_takes(demo_pcap: Path, count: int) -> None:
    read = 0
    with zanon_net.Engine(z=5) as engine:
        for batch in zanon_net.frames(demo_pcap, count=count):
            assert len(batch.buffer) == int(batch.caplen.sum())
            engine.feed(*batch)
            read += len(batch.ts_ns)
        engine.finish()
        stats, records = engine.stats, engine.records()
    assert read == stats["frames"] == 15629
    assert len(records) == stats["records"] > 1000


def test_frames_of_several_link_types_come_apart() -> None:
    from zanon_net.frame_batches import _by_link_type

    n = np.array([1, 2, 3, 4], np.uint32)
    links = np.array([1, 1, 113, 1], np.uint32)
    parts = list(_by_link_type(b"abbcccdddd", n.astype(np.int64), n, n, links))
    assert [(part.buffer, part.linktype) for part in parts] == [
        (b"abb", 1),
        (b"ccc", 113),
        (b"dddd", 1),
    ]


def test_frames_pass_a_filter(demo_pcap: Path) -> None:
    some = sum(len(batch.ts_ns) for batch in zanon_net.frames(demo_pcap, filter="udp"))
    assert 0 < some < 15629
    with pytest.raises(ConfigError):
        next(zanon_net.frames(demo_pcap, filter="no such thing"))
    with pytest.raises(ValueError, match="count"):
        next(zanon_net.frames(demo_pcap, count=0))


# ---- reports ------------------------------------------------------------------------------------


def test_a_report_reads_what_was_written(report: Report, demo_pcap: Path, tmp_path: Path) -> None:
    assert report.counters["frames"] == 15629
    assert [path.name for path in report.files] == ["tcp.parquet", "udp.parquet"]
    assert report.read("udp_complete", into="arrow").num_rows == 704
    tstat = zanon_net.run(demo_pcap, Config(), z=5, out=tmp_path / "tstat")
    assert tstat.manifest["configuration"]["anonymity"]["z"] == 5
    assert len(tstat.read()) == len(report.read()) == report.counters["records"]
    logs = [len(tstat.read(log, into="arrow")) for log in LOGS]
    assert sum(logs) == len(tstat.read())
    assert min(logs) > 10
    both = zanon_net.run(demo_pcap, z=5, format=["jsonl", "observations"], out=tmp_path / "jsonl")
    assert len(both.read(into="polars")) == len(report.read())
    names = both.read("observations")["name"]
    assert 0 < len(names) == both.manifest["decisions"]["released"] + both.counters["dns_released"]
    with pytest.raises(ConfigError, match="nothing to read"):
        report.read("observations")


def test_a_report_in_a_notebook(report: Report) -> None:
    html = report._repr_html_()
    assert html.startswith('<main class="zanon-report">')
    assert "<b>15.6 k</b>" in html
    assert "<h2>Top released names</h2>" in html
