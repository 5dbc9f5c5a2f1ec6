# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every format says the same: Tstat's logs, CSV, JSON Lines and Parquet of one run."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from support import wire
from support.demo import read_truth
from support.engine import feed, make_engine, run
from support.examples import examples
from support.formats import LOGS, Row, check_csv, check_parquet, check_tstat, csv_rows
from support.packets import ACK, CLIENT, PSH, SECOND, SERVER, START, Tcp, Udp, hello, request, user

import zanon_net
from zanon_net import Config
from zanon_net.output import parquet
from zanon_net.output.parquet import Schema
from zanon_net.output.schema import columns

FORMATS = ("tstat", "csv", "jsonl", "parquet", "observations")
SETS = "core,e2e,p2p,options,layer7"


@pytest.fixture(scope="module")
def folder(demo_pcap: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo in every format."""
    out = tmp_path_factory.mktemp("formats") / "out"
    config = Config().replace(z=5, format=FORMATS, columns=SETS, dn_hunter=True)
    zanon_net.run(demo_pcap, config, out=out)
    return out


@pytest.fixture(scope="module")
def objects(folder: Path) -> list[Row]:
    """The JSON Lines."""
    return [json.loads(line) for line in (folder / "flows.jsonl").read_bytes().splitlines()]


def test_csv_says_what_json_says(folder: Path, objects: list[Row]) -> None:
    assert len(objects) > 1500
    check_csv((folder / "flows.csv").read_bytes(), (folder / "flows.jsonl").read_bytes())


@pytest.mark.parametrize(("name", "proto"), [("tcp", 6), ("udp", 17)])
def test_parquet_says_what_json_says(
    name: str, proto: int, folder: Path, objects: list[Row]
) -> None:
    rows = [row for row in objects if row["proto"] == proto]
    assert len(rows) > 500
    table = pq.read_table(folder / "flows" / f"{name}.parquet")
    header, *_lines = (folder / "flows.csv").read_text().splitlines()
    assert table.column_names == header.split(",")
    check_parquet(table, rows)


def test_the_types_of_parquet_are_real(folder: Path) -> None:
    schema = pq.read_schema(folder / "flows" / "tcp.parquet")
    assert str(schema.field("t_start_ns").type) == "timestamp[ns, tz=UTC]"
    assert str(schema.field("first").type) == "timestamp[ns, tz=UTC]"
    assert str(schema.field("complete").type) == "bool"
    assert str(schema.field("c_bytes_all").type) == "uint64"
    for name in ("name", "client", "fqdn", "c_tls_SNI"):
        assert str(schema.field(name).type).startswith("dictionary<values=string"), name
    assert schema.field("name").nullable
    assert not schema.field("c_bytes_all").nullable
    for field in (*schema, *pq.read_schema(folder / "flows" / "udp.parquet")):
        assert field.metadata[b"description"], field.name
    assert schema.field("c_rtt_avg").metadata[b"unit"] == b"ms"
    assert schema.field("c_bytes_all").metadata[b"unit"] == b"bytes"
    about = json.loads(schema.metadata[b"configuration"])
    assert about["anonymity"]["z"] == 5
    assert "key_file" not in about["addresses"]


@pytest.mark.parametrize(("compress", "codec"), [("none", "SNAPPY"), ("zstd", "ZSTD")])
def test_parquet_is_compressed_as_asked(
    compress: str, codec: str, demo_pcap: Path, folder: Path, tmp_path: Path
) -> None:
    config = Config().replace(z=5, format="parquet", columns=SETS, compress=compress)
    zanon_net.run(demo_pcap, config, out=tmp_path / "out")
    group = pq.ParquetFile(tmp_path / "out" / "flows" / "tcp.parquet").metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert columns["c_pkts_all"].compression == codec
    assert columns["t_start_ns"].compression == "UNCOMPRESSED"
    assert "DELTA_BINARY_PACKED" in columns["t_start_ns"].encodings
    told = (
        pq.read_table(tmp_path / "out" / "flows" / "tcp.parquet").column("c_bytes_all").to_pylist()
    )
    other = pq.read_table(folder / "flows" / "tcp.parquet").column("c_bytes_all").to_pylist()
    assert sorted(told) == sorted(other)  # under another key, coarse records have another order


def plain_rows(path: Path) -> list[Row]:
    return list(pq.read_table(path).to_pylist())


def test_parts_of_parquet_hold_what_the_whole_has(
    demo_pcap: Path, key_file: str, tmp_path: Path
) -> None:
    config = Config().replace(z=1, key_file=key_file, format="parquet", columns=SETS)
    zanon_net.run(demo_pcap, config, out=tmp_path / "whole")
    zanon_net.run(demo_pcap, config.replace(split="10m"), out=tmp_path / "parts")
    for log in ("tcp", "udp"):
        parts = sorted((tmp_path / "parts" / "flows").glob(f"{log}-*.parquet"))
        assert len(parts) > 10
        rows = [row for part in parts for row in plain_rows(part)]
        assert rows == plain_rows(tmp_path / "whole" / "flows" / f"{log}.parquet")
        for part in parts:
            names = pq.read_table(part).column("name").combine_chunks()
            assert set(names.dictionary.to_pylist()) == set(names.to_pylist()) - {None}, part


def test_row_groups_of_parts_are_full(
    demo_pcap: Path, key_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the last, whenever their rows were taken from the engine."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 40)
    config = Config().replace(z=1, key_file=key_file, format="parquet", columns=SETS)
    zanon_net.run(demo_pcap, config, out=tmp_path / "whole")
    zanon_net.run(demo_pcap, config.replace(split="1h"), out=tmp_path / "parts")
    for log in ("tcp", "udp"):
        rows = []
        for part in sorted((tmp_path / "parts" / "flows").glob(f"{log}-*.parquet")):
            told = pq.ParquetFile(part).metadata
            sizes = [told.row_group(i).num_rows for i in range(told.num_row_groups)]
            assert set(sizes[:-1]) <= {40}
            assert 0 < sizes[-1] <= 40
            rows += plain_rows(part)
        assert rows == plain_rows(tmp_path / "whole" / "flows" / f"{log}.parquet")
        assert len(rows) > 400


def test_rows_that_are_held_stay_as_they_are() -> None:
    """The memory of drained rows is used again only when nobody reads it any more."""
    engine = make_engine(z=1, outputs=("udp_table",))
    schema = Schema(engine.fields("udp_table"), {})
    kept, seen = [], []
    for n in range(6):
        talk = Udp(user(n + 1), ports=(20000 + n, 53), t_ns=START + n * 400 * SECOND)
        feed(engine, talk.lookup(b"www.example.org").frames)
        feed(engine, Udp(user(99), t_ns=START + (n * 400 + 300) * SECOND).send(b"x").frames)
        table = engine.drain()[1]["udp_table"]
        kept.append(table if n % 2 else None)
        seen.append(schema.table(table, 0, len(table)).to_pylist())
        del table
    engine.close()
    for rows, before in zip(kept, seen, strict=True):
        if rows is not None:
            assert schema.table(rows, 0, len(rows)).to_pylist() == before


def test_lines_that_are_held_stay_as_they_are() -> None:
    """The same of text; also when the engine is closed."""
    engine = make_engine(z=1, outputs=("jsonl", "csv"))
    kept, seen, lines = [], [], 0
    for n in range(8):
        talk = Udp(user(n + 1), ports=(20000 + n, 53), t_ns=START + n * 400 * SECOND)
        feed(engine, talk.lookup(b"www.example.org").frames)
        feed(engine, Udp(user(99), t_ns=START + (n * 400 + 300) * SECOND).send(b"x").frames)
        for _period, texts, _ends in engine.drain()[0]:
            lines += texts["jsonl"][1]
            seen.append({output: bytes(text) for output, (text, _count) in texts.items()})
            kept.append(texts if n % 3 else None)
            assert all(text.count(b"\n") == texts[output][1] for output, text in seen[-1].items())
        texts = {}
    engine.close()
    assert lines > len(seen)
    for texts, before in zip(kept, seen, strict=True):
        if texts is not None:
            assert {output: bytes(text) for output, (text, _count) in texts.items()} == before


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 700])
def test_rows_of_any_number(rows: int) -> None:
    engine = make_engine(z=1, outputs=("udp_table", "jsonl"))
    for n in range(rows):
        feed(engine, Udp(user(n % 200 + 1), ports=(1024 + n, 5000), t_ns=START).send(b"x").frames)
    while engine.finish():
        pass
    parts, tables = engine.drain()
    lines = [json.loads(line) for line in bytes(parts[0][1]["jsonl"][0]).splitlines()]
    table = Schema(engine.fields("udp_table"), {}).table(tables["udp_table"], 0, rows)
    assert table.num_rows == len(lines) == rows
    for name in ("client", "server", "name_status", "c_pkts", "c_isint", "s_first_abs"):
        assert table.column(name).to_pylist() == [line[name] for line in lines], name
    engine.close()


def test_every_field_is_described() -> None:
    engine = make_engine(columns=SETS.split(","))
    for name, kind, nullable in (*engine.fields("tcp_table"), *engine.fields("udp_table")):
        column = columns()[name]
        assert column.description
        assert column.type == kind
        assert nullable or column.missing is None
        assert (kind in ("ms", "s", "time")) <= (column.unit != "")


def test_tstat_says_what_json_says(folder: Path, objects: list[Row]) -> None:
    logs = {path.name: path.read_bytes() for path in folder.glob("*.out/*")}
    assert min(text.count(b"\n") for text in logs.values()) > 10
    check_tstat(logs, objects)


def test_the_records_are_counted(folder: Path, objects: list[Row]) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    counts = {file["file"]: file["records"] for file in manifest["outputs"]}
    n = len(objects)
    assert counts["flows.csv"] == counts["flows.jsonl"] == n
    assert counts["flows/tcp.parquet"] + counts["flows/udp.parquet"] == n
    assert sum(counts[name] for name in counts if ".out/" in name) == n
    accounts = manifest["records"]
    assert accounts["closed"] == accounts["records"] == n
    for name in ("csv", "jsonl", "parquet", "tstat"):
        assert accounts[name] == {"written": n, "left_out": 0, "lost": 0}


def test_a_flow_joined_later_is_left_out_of_tstats_logs() -> None:
    talk = Tcp(user(1)).segment(CLIENT, PSH | ACK, b"x").segment(SERVER, ACK)
    outcome = run(talk.frames, z=1)
    assert (outcome.stats["records"], outcome.stats["records_midstream"]) == (1, 1)
    assert (outcome.flow["midstream"], outcome.flow["complete"]) == (1, 0)
    assert not any(outcome.log(log) for log in LOGS)


# ---- compression --------------------------------------------------------------------------------


def inflate(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


@pytest.mark.parametrize(
    ("kind", "suffix", "plain"), [("gzip", ".gz", gzip.decompress), ("zstd", ".zst", inflate)]
)
def test_compressed_files_hold_the_same(
    kind: str,
    suffix: str,
    plain: Callable[[bytes], bytes],
    demo_pcap: Path,
    key_file: str,
    tmp_path: Path,
) -> None:
    config = Config().replace(z=5, key_file=key_file, format=("tstat", "csv", "jsonl"))
    zanon_net.run(demo_pcap, config, out=tmp_path / "plain")
    report = zanon_net.run(demo_pcap, config.replace(compress=kind), out=tmp_path / "small")
    names = [file["file"] for file in report.manifest["outputs"]]
    assert all(name.endswith(suffix) for name in names)
    assert len(names) == 5
    for file in report.manifest["outputs"]:
        data = (tmp_path / "small" / file["file"]).read_bytes()
        assert len(data) == file["bytes"]
        whole = (tmp_path / "plain" / file["file"].removesuffix(suffix)).read_bytes()
        assert plain(data) == whole
        assert len(data) < len(whole)


# ---- line fuzz ----------------------------------------------------------------------------------

AWKWARD = st.one_of(
    st.binary(max_size=60),
    st.text("a.-_ ,;\"'\t\r\n\\#|\x00\x7f", max_size=40).map(lambda text: text.encode("latin-1")),
)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(AWKWARD, min_size=1, max_size=4))
def test_whatever_traffic_holds_the_columns_stay(texts: list[bytes]) -> None:
    frames = []
    for n, text in enumerate(texts):
        tls = Tcp(user(1), ports=(20000 + n, 443), t_ns=START).handshake().say(hello(text))
        http = Tcp(user(1), ports=(21000 + n, 80), t_ns=START).handshake()
        http.say(request(text)).say(b"HTTP/1.1 " + text + b"\r\n\r\n", SERVER).close()
        query = wire.dns_message(wire.dns_name(text[:60]))
        look_up = Udp(user(1), ports=(22000 + n, 53)).send(query).send(text, SERVER)
        certificate = wire.record(b"\2" + wire.vector(3, b"\3\3" + bytes(36)) + text)
        frames += [*tls.say(certificate, SERVER).close().frames, *http.frames, *look_up.frames]
    outcome = run(frames, z=1, columns=SETS.split(","), dn_hunter=True)
    for log in LOGS:
        header, *lines = outcome.text[log].decode("ascii").split("\n")[:-1]
        assert {line.count(" ") for line in lines} <= {header.count(" ")}
    header, *_rest = rows = csv_rows(outcome.text["csv"].decode("ascii"))
    assert len(rows) == outcome.stats["records"] == len(outcome.flows)
    assert all(None not in row and None not in row.values() for row in rows)
    for text in outcome.text.values():
        assert all(byte == 0x0A or 0x20 <= byte <= 0x7E for byte in text)


def test_truth_is_in_every_format(folder: Path, demo_truth: Path) -> None:
    names = {line["name"] for line in read_truth(demo_truth)}
    tables = [pq.read_table(folder / "flows" / f"{log}.parquet") for log in ("tcp", "udp")]
    told = {name for table in tables for name in table["name"].to_pylist() if name}
    assert told
    assert told <= names
    assert told == {row["name"] for row in csv_rows((folder / "flows.csv").read_text())} - {""}
