# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""zanon_net.read_log: Tstat's logs and ours, as tables."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zanon_net
from zanon_net import Config, ConfigError, FormatError

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(demo_pcap: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as Tstat's logs and JSON Lines."""
    out = tmp_path_factory.mktemp("reading") / "out"
    config = Config().replace(z=5, format=("tstat", "jsonl"), dn_hunter=True)
    zanon_net.run(demo_pcap, config, out=out)
    return out


@pytest.fixture(scope="module")
def objects(folder: Path) -> list[Row]:
    """The JSON Lines."""
    return [json.loads(line) for line in (folder / "flows.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_our_logs_are_read(kind: str, folder: Path, objects: list[Row]) -> None:
    pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    table = zanon_net.read_log(folder, "udp_complete", into=kind)
    rows = [row for row in objects if row["proto"] == 17]
    assert len(table) == len(rows)
    assert list(table["c_pkts_all"]) if kind != "arrow" else True
    if kind == "arrow":
        assert table.column("fqdn").to_pylist() == [row["fqdn"] for row in rows]
        starts = table.column("c_first_abs").cast("int64").to_pylist()
        assert all(
            abs(ns - row["c_first_abs"] * 1e6) < 500 for ns, row in zip(starts, rows, strict=True)
        )


def test_parts_are_read_in_their_order(demo_pcap: Path, tmp_path: Path) -> None:
    config = Config().replace(z=1, split="10m", compress="gzip")
    zanon_net.run(demo_pcap, config, out=tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("*.out"))
    assert len(parts) > 10
    table = zanon_net.read_log(tmp_path / "out", into="arrow")
    assert len(table) == sum(len(zanon_net.read_log(part, into="arrow")) for part in parts)
    whole = zanon_net.run(demo_pcap, Config().replace(z=1), out=tmp_path / "whole")
    assert whole.totals.counters["records"] > len(table) > 900


def test_parts_with_one_stamp_are_read_in_their_order(tmp_path: Path) -> None:
    """A text sorts "-2.out" before ".out", and "-10" before "-2"."""
    numbers = [1, *range(2, 12)]
    for number in numbers:
        again = "" if number == 1 else f"-{number}"
        folder = tmp_path / f"2024_05_14_09_00{again}.out"
        folder.mkdir()
        (folder / "log_tcp_complete").write_text(f"#c_ip:1 c_port:2\n10.0.0.1 {number}\n")
    later = tmp_path / "2024_05_14_09_01.out"
    later.mkdir()
    (later / "log_tcp_complete").write_text("#c_ip:1 c_port:2\n10.0.0.1 99\n")
    table = zanon_net.read_log(tmp_path, into="arrow")
    assert table.column("c_port").to_pylist() == [*numbers, 99]


def tstat_log(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_what_tstat_writes_is_read(tmp_path: Path) -> None:
    path = tstat_log(
        tmp_path / "log_tcp_complete",
        "#02#c_ip:1 c_port:2 first:3 durat:4 http_res:5 c_tls_SNI:6 fqdn:7 req_tm:8 new:9",
        "10.0.0.1 50000 1484319032896.759033 12.500000 --- a.example - 0.0 7",
        "10.0.0.1 50001 1484319032896.759034 0.000000 200 - b.example 1484319032896.000001 8",
    )
    first, second = zanon_net.read_log(path, into="arrow").to_pylist()
    assert (first["first"].value, second["first"].value) == (
        1_484_319_032_896_759_033,
        1_484_319_032_896_759_034,
    )
    assert (first["req_tm"], second["req_tm"].value) == (None, 1_484_319_032_896_000_001)
    assert (first["durat"], first["http_res"], first["c_tls_SNI"]) == (12.5, None, "a.example")
    assert (second["http_res"], second["c_tls_SNI"], second["new"]) == ("200", None, 8)


def test_times_mean_what_they_say_with_any_decimals(tmp_path: Path) -> None:
    times = {"5": 5_000_000, "1484319032896.5": 1_484_319_032_896_500_000, "0.000001": 1, "0": None}
    lines = [f"10.0.0.1 {time}" for time in times]
    log = tstat_log(tmp_path / "log_tcp_complete", "#c_ip:1 first:2", *lines)
    read = zanon_net.read_log(log, into="arrow")["first"].to_pylist()
    assert [time and time.value for time in read] == list(times.values())


@pytest.mark.parametrize("into", ["pandas", "polars", "arrow"])
def test_a_text_that_is_no_utf8_is_read(into: str, tmp_path: Path) -> None:
    """Tstat writes a name as it came, and pandas and polars fail on such a text, or panic."""
    log = tmp_path / "log_tcp_complete"
    log.write_bytes(b"#c_ip:1 c_tls_SNI:2\n1.2.3.4 caf\xe9.example\n1.2.3.4 caf\xc3\xa9.example\n")
    names = zanon_net.read_log(log, into=into)["c_tls_SNI"]
    found = names.to_pylist() if into == "arrow" else list(names)
    assert found == ["caf\ufffd.example", "caf\u00e9.example"]


def test_headers_may_name_more_than_lines_have(tmp_path: Path) -> None:
    log = tstat_log(tmp_path / "log_tcp_nocomplete", "#31#c_ip:1 c_port:2 s_port:3", "10.0.0.1 7")
    table = zanon_net.read_log(log, into="arrow")
    assert table.to_pylist() == [{"c_ip": "10.0.0.1", "c_port": 7}]
    empty = tstat_log(tmp_path / "log_udp_complete", "#c_ip:1 c_port:2 c_first_abs:3")
    assert zanon_net.read_log(empty, into="arrow").num_rows == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "does not start with the header"),
        (["10.0.0.1 7"], "does not start with the header"),
        (["#c_ip:1 c_port:2", "10.0.0.1 7 8"], "line 2 has 3 columns, its header 2"),
        (["#c_ip:1 c_port:2", "10.0.0.1 7", "10.0.0.1"], "a line has 1 columns, its header 2"),
        (["#c_ip:1 c_port:2", "10.0.0.1 a.example"], "column c_port holds something else"),
        (["#c_ip:1 first:2", "10.0.0.1 a.example"], "first holds something else than a time"),
        (["#c_ip:1 first:2", "10.0.0.1 1484319.032.896"], "column first holds something else"),
        (["#c_ip:1 first:2", f"10.0.0.1 {10**13}.000000"], "column first holds something else"),
        (["#c_ip:1 last:2 last:3", "10.0.0.1 1.000000 2.000000"], "names a column twice"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=message) as raised:
        zanon_net.read_log(tstat_log(tmp_path / "log_x", *lines))
    assert "10.0.0.1" not in str(raised.value)
    assert "a.example" not in str(raised.value)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tcp.parquet"
    path.write_bytes(b"PAR1" * 10)
    with pytest.raises(FormatError, match="no Parquet file"):
        zanon_net.read_log(path)
    with pytest.raises(ConfigError, match="no such file"):
        zanon_net.read_log(tmp_path / "udp.parquet")


@pytest.mark.parametrize("into", ["pandas", "polars"])
def test_a_damaged_parquet_file_is_refused_in_a_line(
    into: str, demo_pcap: Path, tmp_path: Path, key_file: str
) -> None:
    """Whatever bytes are changed or missing: a table, or an error of ours without their content."""
    pytest.importorskip(into)
    config = Config().replace(format=["parquet"], key_file=key_file)
    zanon_net.run(demo_pcap, config, out=tmp_path / "out")
    whole = (tmp_path / "out" / "tcp.parquet").read_bytes()
    path = tmp_path / "tcp.parquet"
    rng = random.Random(1)
    said = []
    for _ in range(120):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        for _ in range(rng.choice([1, 5, 50])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            zanon_net.read_log(path, into=into)
        except FormatError as error:
            said.append(str(error))
    assert len(said) > 30
    assert set(said) == {f"{path}: it is no Parquet file, or damaged"}


NOWHERE = pa.timestamp("ns", tz="T4C")


@pytest.mark.parametrize("into", ["pandas", "polars"])
@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("t", NOWHERE)]),
        pa.schema([("t", pa.int64())], metadata={b"configuration": b"\xff"}),
        pa.schema([pa.field("t", pa.int64(), metadata={b"unit": b"\xff"})]),
        pa.schema([("t", pa.list_(NOWHERE))]),
        pa.schema([("t", pa.struct([("of", pa.map_(pa.string(), NOWHERE))]))]),
        pa.schema([("t", pa.list_(pa.field("item", pa.int64(), metadata={b"unit": b"\xff"})))]),
    ],
    ids=[
        *("zone", "metadata", "metadata of a column"),
        *("zone in a list", "zone in a map in a struct", "metadata in a list"),
    ],
)
def test_what_neither_pandas_nor_polars_takes_of_a_schema(
    schema: pa.Schema, into: str, tmp_path: Path
) -> None:
    pytest.importorskip(into)
    path = tmp_path / "tcp.parquet"
    pq.write_table(schema.empty_table(), path)
    with pytest.raises(FormatError, match="damaged"):
        zanon_net.read_log(path, into=into)


@pytest.mark.parametrize("into", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome"])
def test_times_of_other_zones_are_read(zone: str, into: str, tmp_path: Path) -> None:
    pytest.importorskip({"arrow": "pyarrow"}.get(into, into))
    path = tmp_path / "tcp.parquet"
    table = pa.table({"t": pa.array([1], pa.timestamp("ns", tz=zone))})
    pq.write_table(table, path)
    assert len(zanon_net.read_log(path, into=into)) == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named(
    library: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=f"pip install {library}"):
        zanon_net.read_log(folder, into=library)


def test_wrong_arguments_of_read_log(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        zanon_net.read_log(tmp_path / "absent")
    with pytest.raises(ConfigError, match="there is no log_tcp_complete in it"):
        zanon_net.read_log(tmp_path)
    with pytest.raises(ConfigError, match=r"^into: "):
        zanon_net.read_log(tmp_path, into="excel")
    with pytest.raises(ConfigError, match=r"^log: "):
        zanon_net.read_log(tmp_path, "video")


@pytest.mark.source
def test_tstats_own_samples_are_read(corpus: Path) -> None:
    samples = corpus.parent / "design" / "tstat_samples"
    if not samples.exists():
        pytest.skip("Tstat's samples are not beside this tree")
    for kind, columns in (("s_full", 134), ("s_plain_core", 44)):
        table = zanon_net.read_log(samples / kind, into="arrow")
        assert (table.num_columns, table.num_rows) == (columns, 30)
        lines = next((samples / kind).rglob("log_tcp_complete")).read_text().splitlines()[1:]
        firsts = [int(line.split(" ")[28].replace(".", "")) for line in lines]
        assert table.column("first").cast("int64").to_pylist() == firsts
