# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""--partition: Parquet in hive folders of days and hours, which readers open as one table."""

import importlib
import json
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.packets import SECOND, START
from support.parts import (
    PROGRAM,
    capture_of,
    check_accounts,
    files_in,
    flow,
    in_this_order,
    manifest_of,
)

import zanon_net
from zanon_net import Config, ConfigError
from zanon_net.output import folder, parquet, partitions
from zanon_net.output.part_files import PartFile

HOUR = 3600 * SECOND
Sizes = Counter[str]


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lookups over 40 hours, and some flows of three hours."""
    begin = START - START % HOUR
    frames = [frame for n in range(200) for frame in flow(n, begin + n * HOUR // 5)]
    for n in range(200, 203):
        start = begin + (n - 199) * 10 * HOUR - 1000 * SECOND
        frames += [frame for step in range(72) for frame in flow(n, start + step * 150 * SECOND)]
    path = tmp_path_factory.mktemp("hours") / "hours.pcap"
    path.write_bytes(in_this_order(sorted(frames, key=lambda frame: frame.t_ns)))
    return path


def config(**more: Any) -> Config:
    base = Config(z=1, evidence="any", format=("parquet", "jsonl"), coarse_end="floored")
    return base.replace(**{"partition": "day,hour"} | more)


def folders_of(lines: bytes, form: str) -> Sizes:
    """The records of each folder, by JSON's times."""
    times = (json.loads(line)["t_start_ns"] // SECOND for line in lines.splitlines())
    return Counter(datetime.fromtimestamp(t, UTC).strftime(form) for t in times)


def rows_in(out: Path) -> Sizes:
    """The rows of each folder of Parquet files."""
    sizes = Sizes()
    for path in (out / "flows").rglob("*.parquet"):
        name = path.parent.relative_to(out / "flows").as_posix()
        sizes[name] += pq.ParquetFile(path).metadata.num_rows
    return sizes


@pytest.mark.family(2)
@pytest.mark.parametrize("keys", ["day", "day,hour"])
@pytest.mark.parametrize("split", [None, "6h"])
def test_a_record_lies_in_the_folder_of_its_time(
    keys: str, split: str | None, hours: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    report = zanon_net.run(hours, config(partition=keys, split=split), out=out)
    check_accounts(out)
    lines = b"".join(path.read_bytes() for path in out.glob("*.jsonl"))
    form = {"day": "day=%Y-%m-%d", "day,hour": "day=%Y-%m-%d/hour=%H"}[keys]
    expected = folders_of(lines, form)
    assert len(expected) > (30 if keys == "day,hour" else 1)
    assert rows_in(out) == expected
    assert len(report.read()) == sum(expected.values()) == len(lines.splitlines())
    assert manifest_of(out)["configuration"]["output"]["partition"] == keys


def test_few_files_are_open_at_a_time(
    hours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of one folder then lie in several files, and each is there once."""
    now = most = 0

    class Counted(parquet.ParquetFile):
        def __init__(self, *args: Any, **more: Any) -> None:
            nonlocal now, most
            super().__init__(*args, **more)
            now += 1
            most = max(most, now)

        def to_disk(self) -> int:
            nonlocal now
            now -= 1
            return super().to_disk()

    zanon_net.run(hours, config(), out=tmp_path / "all")
    monkeypatch.setattr(parquet, "ParquetFile", Counted)
    monkeypatch.setattr(partitions, "OPEN_MAX", 2)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 20)
    zanon_net.run(hours, config(), out=tmp_path / "few")
    assert most == 2  # of UDP; there is no TCP
    assert rows_in(tmp_path / "few") == rows_in(tmp_path / "all")
    names = [name for name in files_in(tmp_path / "few") if name.endswith("udp-2.parquet")]
    assert names
    check_accounts(tmp_path / "few")
    few, many = (
        sorted(
            map(str, zanon_net.read_log(tmp_path / name, into="arrow")["t_start_ns"].to_pylist())
        )
        for name in ("few", "all")
    )
    assert few == many


def test_readers_find_the_folders_as_columns(hours: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    zanon_net.run(hours, config(split="6h"), out=out)
    wanted = sum(rows for name, rows in rows_in(out).items() if name.endswith("hour=09"))
    assert wanted >= 10
    root = out / "flows"
    dataset = importlib.import_module("pyarrow.dataset")
    table = dataset.dataset(root, partitioning="hive").to_table(filter=dataset.field("hour") == 9)
    assert len(table) == wanted
    pandas = pytest.importorskip("pandas").read_parquet(root)
    assert (pandas["t_start_ns"].dt.hour == pandas["hour"].astype(int)).all()
    assert (pandas["t_start_ns"].dt.strftime("%Y-%m-%d") == pandas["day"].astype(str)).all()
    polars = pytest.importorskip("polars").read_parquet(f"{root}/", hive_partitioning=True)
    assert len(polars.filter(polars["hour"] == 9)) == wanted
    place = f"read_parquet('{root}/**/*.parquet', hive_partitioning = true)"
    ((found,),) = (
        pytest.importorskip("duckdb")
        .sql(f"SELECT count(*) FROM {place} WHERE hour::INT = 9")
        .fetchall()
    )
    assert found == wanted


def test_what_is_not_whole_is_in_no_folder(
    hours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that lists the folder at any time finds whole files only."""
    out, seen = tmp_path / "out", 0
    take = folder.FolderSink.take

    def looked_at(sink: folder.FolderSink, *args: Any) -> None:
        nonlocal seen
        take(sink, *args)
        for path in (out / "flows").rglob("*"):
            assert path.is_dir() or pq.ParquetFile(path).metadata.num_rows > 0
            seen += path.is_file()

    monkeypatch.setattr(folder.FolderSink, "take", looked_at)
    zanon_net.run(hours, config(split="6h", format="parquet"), out=out)
    assert seen > 10
    assert not list(out.rglob("*.partial"))


def test_an_error_leaves_no_folder(
    hours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_args: Any) -> None:
        raise OSError(5, "no disk")

    out = tmp_path / "out"
    monkeypatch.setattr(folder.FolderSink, "_appear_manifest", fails)
    with pytest.raises(OSError, match="no disk"):
        zanon_net.run(hours, config(), out=out)
    assert not (out / "flows").exists()


def test_a_partition_needs_parquet(tmp_path: Path) -> None:
    for options, message in (
        (("--partition", "day"), b"partition: is for Parquet; add --format parquet"),
        (
            ("--partition", "hour", "--format", "parquet"),
            b"is not one of 'none', 'day', 'day,hour'",
        ),
        (
            ("--partition", "hour,day", "--format", "parquet"),
            b"is not one of 'none', 'day', 'day,hour'",
        ),
    ):
        done = subprocess.run([*PROGRAM, "no.pcap", *options], capture_output=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr


def test_a_capture_without_flows_is_a_table_without_rows(hours: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    path.write_bytes(capture_of(flow(1, START)[:1]).replace(b"\x08\x00", b"\x08\x06", 1))
    report = zanon_net.run(path, config(format="parquet"), out=tmp_path / "out")
    assert list(files_in(tmp_path / "out")) == ["manifest.json"]
    table = report.read(into="arrow")
    assert table.num_rows == 0
    whole = zanon_net.run(hours, config(format="csv", partition="none"), out=tmp_path / "whole")
    assert table.schema.equals(whole.read(into="arrow").schema)
    for log in ("observations", None):
        if log is None:
            manifest = tmp_path / "out" / "manifest.json"
            manifest.write_text(manifest.read_text().replace('"error": null', '"error": "full"'))
        with pytest.raises(ConfigError, match="there is no log"):
            zanon_net.read_log(tmp_path / "out", log)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("path", "is_ours"),
    [
        ("flows/day=2024-05-14/hour=09/tcp.parquet", True),
        ("flows/day=2024-05-14/tcp-2.parquet", True),
        ("flows/tcp.parquet", True),
        ("flows/hour=09/tcp.parquet", False),
        ("flows/day=2024-05-14/hour=09/../tcp.parquet", False),
        ("flows/day=2024-05-14/hour=09/x/tcp.parquet", False),
        ("other/day=2024-05-14/tcp.parquet", False),
        ("/flows/tcp.parquet", False),
        ("flows/day=2024-05-14/tcp.parquet.partial", False),
    ],
)
def test_only_files_of_ours_are_ever_removed(path: str, is_ours: bool) -> None:
    facts = {"file": path, "bytes": 1, "records": 1}
    if is_ours:
        assert PartFile.of(facts).path == path
    else:
        with pytest.raises(ValueError, match="of a part"):
            PartFile.of(facts)
