# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""zanon_net.read_log: Tstat's logs and ours, as tables."""

import gzip
import json
import random
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import zstandard

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
def every_format(demo_pcap: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo in every format."""
    out = tmp_path_factory.mktemp("every") / "out"
    formats = ("tstat", "csv", "jsonl", "parquet", "observations")
    zanon_net.run(demo_pcap, z=3, format=formats, out=out)
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
    assert whole.totals.counters["records"] == len(table) > 1500


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
    assert table.column("client_port").to_pylist() == [*numbers, 99]


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


def test_a_log_of_tstats_has_the_columns_of_every_flow(tmp_path: Path) -> None:
    tcp = tstat_log(
        tmp_path / "log_tcp_nocomplete",
        "#02#c_ip:1 c_port:2 c_pkts_all:3 c_bytes_all:4 s_ip:5 s_port:6 first:7 last:8 c_isint:9"
        " http_hostname:10 c_mss:11",
        "10.0.0.1 50000 3 500 192.0.2.1 80 1000.000001 2000.000002 1 a.example -1",
    )
    (row,) = zanon_net.read_log(tcp, into="arrow").to_pylist()
    held = {name: value for name, value in row.items() if value is not None}
    times = {name: held.pop(name).value for name in ("t_start_ns", "t_end_ns", "first", "last")}
    assert times == dict.fromkeys(("t_start_ns", "first"), 1_000_000_001) | dict.fromkeys(
        ("t_end_ns", "last"), 2_000_000_002
    )
    assert held == {
        **{"proto": 6, "client": "10.0.0.1", "client_port": 50000, "server": "192.0.2.1"},
        **{"server_port": 80, "name": "a.example", "name_source": "http", "c_pkts": 3},
        **{"c_bytes": 500, "c_pkts_all": 3, "c_bytes_all": 500, "c_isint": True},
        **{"complete": False, "midstream": False, "http_hostname": "a.example"},
    }
    (row,) = zanon_net.read_log(tcp, into="arrow", names="tstat").to_pylist()
    assert (row["c_ip"], row["c_port"], row["s_ip"], row["s_port"]) == (
        *("10.0.0.1", 50000),
        *("192.0.2.1", 80),
    )
    assert "client" not in row


def test_fqdn_of_tstats_own_is_no_name_of_the_flow(tmp_path: Path) -> None:
    """Only the manifest of a run without --dn-hunter says that it is the name of a query."""
    folder = tmp_path / "2024_05_14_09_00.out"
    folder.mkdir()
    header = "#c_ip:1 c_first_abs:2 s_first_abs:3 fqdn:4 quic_SNI:5"
    lines = ("10.0.0.1 2000.5 1000.5 a.example -", "10.0.0.1 2000.5 0.000000 - b.example")
    tstat_log(folder / "log_udp_complete", header, *lines)

    def read() -> list[tuple[Any, ...]]:
        rows = zanon_net.read_log(tmp_path, into="arrow").to_pylist()
        return [(row["t_start_ns"].value, row["name"], row["name_source"]) for row in rows]

    assert read() == [(1_000_500_000, None, None), (2_000_500_000, "b.example", "quic")]
    manifest = {"name": "zanon-net", "configuration": {"anonymity": {"dn_hunter": False}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert read()[0] == (1_000_500_000, "a.example", "dns")
    (tmp_path / "manifest.json").write_text("[]")
    assert read()[0][1] is None


def test_times_mean_what_they_say_with_any_decimals(tmp_path: Path) -> None:
    times = {"5": 5_000_000, "1484319032896.5": 1_484_319_032_896_500_000, "0.000001": 1, "0": None}
    lines = [f"10.0.0.1 {time}" for time in times]
    log = tstat_log(tmp_path / "log_tcp_complete", "#c_ip:1 req_tm:2", *lines)
    read = zanon_net.read_log(log, into="arrow")["req_tm"].to_pylist()
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
    (row,) = table.select(["client", "client_port", "server_port"]).to_pylist()
    assert row == {"client": "10.0.0.1", "client_port": 7, "server_port": None}
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
    whole = (tmp_path / "out" / "flows" / "tcp.parquet").read_bytes()
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


SAID = re.compile(
    r"line \d+ has \d+ columns, its header \d+|a line has \d+ columns, its header \d+"
    r"|column [a-zA-Z0-9_]+ holds (a value of another type|something else than a (number|time))"
    r"|it cannot be read as (CSV|JSON Lines|a Tstat log)|its header names a column twice"
    r"|it does not start with the header of a Tstat log"
    r"|it ends in the middle of a line; is it whole\?"
    r"|it has bytes that are no UTF-8 text"
    r"|a row has no (t_start_ns|proto|t_ns|name), so it is no log of zanon_net"
)


@pytest.mark.parametrize("name", ["flows.csv", "flows.jsonl", "observations.jsonl", "udp"])
def test_a_damaged_text_is_refused_in_a_line(name: str, every_format: Path, tmp_path: Path) -> None:
    """As of Parquet: a table, or a line without an address or a name, whatever the bytes are."""
    path = every_format / name
    if name == "udp":
        (path,) = every_format.rglob("log_udp_complete")
    lines = path.read_bytes().splitlines(keepends=True)
    whole = b"".join(lines[:40])
    damaged = tmp_path / path.name
    rng = random.Random(2)
    said = set()
    for _ in range(150):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(1, len(whole))])])
        for _ in range(rng.choice([1, 5, 50])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        damaged.write_bytes(data)
        try:
            zanon_net.read_log(damaged)
        except FormatError as error:
            said.add(str(error).removeprefix(f"{damaged}: "))
    assert len(said) > 1
    assert [text for text in said if not SAID.fullmatch(text)] == []


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_log_that_is_cut_is_refused(
    suffix: str, every_format: Path, tmp_path: Path
) -> None:
    packed = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    data = packed((every_format / "flows.csv").read_bytes())
    path = tmp_path / f"flows.csv{suffix}"
    path.write_bytes(data)
    assert len(zanon_net.read_log(path)) > 1000
    for n in (0, 1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:n])
        with pytest.raises(FormatError):
            zanon_net.read_log(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("flows.jsonl", '{"user":"a.example"}\n', "a row has no t_start_ns"),
        ("flows.jsonl", '{"t_start_ns":1,"proto":6,"complete":2}\n', "column complete holds"),
        ("flows.csv", "a,b\n1,2\n", "a row has no t_start_ns"),
        ("flows.csv", "t_start_ns,proto\n1,6\n,6\n", "a row has no t_start_ns"),
        ("flows.csv", "t_start_ns,proto,proto\n1,6,6\n", "names a column twice"),
        ("flows.csv", "t_start_ns,proto\n1,600\n", "column proto holds"),
        ("flows.csv", "t_start_ns,proto\n1,6", "ends in the middle of a line"),
        ("observations.jsonl", '{"t_ns":1,"client":null,"name":null}\n', "a row has no name"),
    ],
)
def test_what_is_no_log_of_ours_is_refused(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message) as raised:
        zanon_net.read_log(tmp_path)
    assert "a.example" not in str(raised.value)


# ---- folders with several kinds ----------------------------------------------------------------


def test_one_format_of_a_run_is_read(every_format: Path, tmp_path: Path) -> None:
    """Every format has the same flows: reading two would count them twice."""
    whole = zanon_net.read_log(every_format, into="arrow")
    observations = zanon_net.read_log(every_format, "observations", into="arrow")
    left = tmp_path / "left"
    shutil.copytree(every_format, left)
    for gone in ("flows/*.parquet", "flows.jsonl", "flows.csv", "*.out/log_*"):
        assert zanon_net.read_log(left, into="arrow").shape == whole.shape
        for path in left.glob(gone):
            path.unlink()
    assert zanon_net.read_log(left, into="arrow").equals(observations)
    with pytest.raises(ConfigError, match="there is no log of flows in it"):
        zanon_net.read_log(left, "flows")


def test_runs_of_several_formats_are_one_table(every_format: Path, tmp_path: Path) -> None:
    names = {"a/flows.csv": "flows.csv", "b/flows.jsonl": "flows.jsonl", "c": "flows"}
    for to, name in names.items():
        (tmp_path / to).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if name == "flows" else shutil.copy
        copy(every_format / name, tmp_path / to)
    (tmp_path / "b" / "flows-20240514T090000Z.jsonl.partial").write_text("{")
    whole = zanon_net.read_log(every_format, into="arrow")
    table = zanon_net.read_log(tmp_path, into="arrow")
    assert table.num_rows == 3 * whole.num_rows
    assert table.schema.equals(whole.schema)


@pytest.mark.parametrize("name", ["flows", "flows.csv", "flows.jsonl"])
def test_tstats_logs_are_found_in_every_format(name: str, every_format: Path) -> None:
    """But coarse records of TCP, which do not say whether they are complete."""
    for log, proto in (("udp_complete", 17), ("tcp_complete", 6), ("tcp_nocomplete", 6)):
        tstat = zanon_net.read_log(every_format, log, into="arrow")  # type: ignore[call-overload]
        path = every_format / name
        path = path / f"{log[:3]}.parquet" if name == "flows" else path
        ours = zanon_net.read_log(path, log, into="arrow")  # type: ignore[call-overload]
        assert set(ours["proto"].to_pylist()) == {proto}
        exact = ours if proto == 17 else tstat.filter(pc.is_in(tstat["first"], ours["first"]))
        assert 0 < len(ours) <= len(tstat)
        assert len(ours) == len(exact if proto == 6 else tstat)


def test_types_do_not_depend_on_missing_values(every_format: Path) -> None:
    flows = zanon_net.read_log(every_format)
    tcp = zanon_net.read_log(every_format, "tcp_nocomplete")
    assert list(flows.dtypes) == list(tcp.dtypes)
    assert str(flows["complete"].dtype) == "boolean"
    assert str(flows["c_rst_cnt"].dtype) == "UInt32"
    assert flows["c_rst_cnt"].isna().any()
    assert not tcp["c_rst_cnt"].isna().any()


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
    time = pa.array([1], pa.timestamp("ns", tz=zone))
    pq.write_table(pa.table({"t_start_ns": time, "proto": [6], "seen": time}), path)
    table = zanon_net.read_log(path, into=into)
    assert len(table) == 1
    if into == "arrow":
        assert str(table["t_start_ns"].type) == "timestamp[ns, tz=UTC]"
        assert table["seen"].type == time.type


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
    with pytest.raises(ConfigError, match="there is no log in it"):
        zanon_net.read_log(tmp_path)
    with pytest.raises(ConfigError, match="there is no log_tcp_complete in it"):
        zanon_net.read_log(tmp_path, "tcp_complete")
    with pytest.raises(ConfigError, match=r"^names: "):
        zanon_net.read_log(tmp_path, names="short")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match=r"^into: "):
        zanon_net.read_log(tmp_path, into="excel")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match=r"^log: "):
        zanon_net.read_log(tmp_path, "video")  # type: ignore[call-overload]


@pytest.mark.source
def test_tstats_own_samples_are_read(corpus: Path) -> None:
    samples = corpus.parent / "design" / "tstat_samples"
    if not samples.exists():
        pytest.skip("Tstat's samples are not beside this tree")
    for kind, columns in (("s_full", 134), ("s_plain_core", 44)):
        table = zanon_net.read_log(samples / kind, into="arrow")
        assert table.num_rows == 30 + 16 + 13
        assert ("c_rtt_avg" in table.column_names) == (columns == 134)
        lines = next((samples / kind).rglob("log_tcp_complete")).read_text().splitlines()[1:]
        firsts = [int(line.split(" ")[28].replace(".", "")) for line in lines]
        log = zanon_net.read_log(samples / kind, "tcp_complete", into="arrow")
        assert log.column("first").cast("int64").to_pylist() == firsts
        assert log.column("t_start_ns").equals(log.column("first"))
