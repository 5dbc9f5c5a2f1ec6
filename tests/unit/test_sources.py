# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Several sources are one stream: files, folders, pipes, in the order of their first packets."""

import gzip
import json
import logging
import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from support.capture_bytes import enhanced, interface, pcap_header, pcap_record, section
from support.packets import SECOND, START, Frame, visit
from support.snoop_bytes import snoop_header, snoop_record
from support.waiting import filled

from zanon_net import Config, FormatError, run
from zanon_net._core import PacketEngine
from zanon_net.cli import main
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline.inspection import inspect
from zanon_net.pipeline.reader import Reader
from zanon_net.pipeline.sources import open_sources
from zanon_net.rows.filtering import filter_rows
from zanon_net.system.signals import Interruption


def as_pcap(frames: list[Frame]) -> bytes:
    records = (pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames)
    return pcap_header(magic=0xA1B23C4D) + b"".join(records)


def as_pcapng(frames: list[Frame]) -> bytes:
    return section() + interface() + b"".join(enhanced("<", f.t_ns // 1000, f.data) for f in frames)


def as_snoop(frames: list[Frame]) -> bytes:
    records = (snoop_record(f.t_ns // SECOND, f.t_ns % SECOND // 1000, f.data) for f in frames)
    return snoop_header() + b"".join(records)


@pytest.fixture
def visits() -> list[list[Frame]]:
    """Six captures' frames, one after the other in time."""
    return [visit(f"10.7.0.{i}", b"www.example.org", START + i * 60 * SECOND) for i in range(1, 7)]


@pytest.fixture
def rotated(tmp_path: Path, visits: list[list[Frame]]) -> Path:
    """A folder of six captures, of all formats, packed or not, named against their times."""
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "f").write_bytes(as_pcap(visits[0]))
    (folder / "e.pcap.gz").write_bytes(gzip.compress(as_pcap(visits[1])))
    (folder / "d.pcapng").write_bytes(as_pcapng(visits[2]))
    (folder / "c.zst").write_bytes(zstandard.ZstdCompressor().compress(as_pcapng(visits[3])))
    (folder / "b.snoop").write_bytes(as_snoop(visits[4]))
    (folder / "a.lz4").write_bytes(lz4.frame.compress(as_pcap(visits[5])))
    (folder / "notes.txt").write_text("no capture")
    (folder / "empty").touch()
    (folder / "beneath").mkdir()
    (folder / "beneath" / "more").write_bytes(as_pcap(visits[0]))
    return folder


def flows_of(capsys: pytest.CaptureFixture[str], *sources: Path | str) -> list[dict[str, object]]:
    arguments = ["run", "--z", "3", "--format", "jsonl", "--out", "-", "-q"]
    assert main([*arguments, *map(str, sources)]) == 0
    flows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [{k: v for k, v in flow.items() if k != "client"} for flow in flows]


def test_a_folder_is_one_stream(
    rotated: Path, tmp_path: Path, visits: list[list[Frame]], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "whole.pcap").write_bytes(as_pcap([f for frames in visits for f in frames]))
    whole = flows_of(capsys, tmp_path / "whole.pcap")
    assert len(whole) == 6
    assert [flow["name"] for flow in whole] == 2 * [None] + 4 * ["www.example.org"]
    assert flows_of(capsys, rotated) == whole
    files = sorted(
        path for path in rotated.iterdir() if path.name in ["f", "e.pcap.gz", "d.pcapng"]
    )
    rest = [rotated / name for name in ("b.snoop", "a.lz4", "c.zst")]
    assert flows_of(capsys, *rest, *files) == whole


def test_the_order_and_what_is_left_out(rotated: Path) -> None:
    report = run(rotated, out=rotated.parent / "out")
    sources = report.manifest["sources"]
    names = ["f", "e.pcap.gz", "d.pcapng", "c.zst", "b.snoop", "a.lz4"]
    assert [source["name"] for source in sources] == names
    formats = ["pcap", "pcap", "pcapng", "pcapng", "snoop", "pcap"]
    assert [source["format"] for source in sources] == formats
    packed = [None, "gzip", None, "zstd", None, "lz4"]
    assert [source["compression"] for source in sources] == packed
    assert all(source["warning"] is None for source in sources)
    assert (
        sum(source["frames"] for source in sources) == report.manifest["counters"]["read"]["frames"]
    )
    assert [facts.name for facts in inspect(rotated).facts] == names


def test_a_link_to_nowhere_in_a_folder_is_told(
    rotated: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may have been a capture, on a disk that is not there."""
    (rotated / "gone.pcap").symlink_to(rotated.parent / "elsewhere" / "gone.pcap")
    with caplog.at_level(logging.WARNING, "zanon_net"):
        assert len(inspect(rotated).facts) == 6
    assert caplog.messages == ["gone.pcap leads to no file: left out"]


def test_a_fifo_among_files(rotated: Path, tmp_path: Path, visits: list[list[Frame]]) -> None:
    """A stream is opened once, and keeps its place in time."""
    fifo = tmp_path / "fifo"
    sources = [rotated / "d.pcapng", fifo, rotated / "f"]
    with filled(fifo, gzip.compress(as_pcap(visits[1]))):
        report = run(sources, Config().replace(z=1), out=tmp_path / "out")
    assert [source["name"] for source in report.manifest["sources"]] == ["f", "fifo", "d.pcapng"]
    assert report.manifest["decisions"]["released"] == 3


def test_a_capture_without_packets_comes_last(tmp_path: Path, visits: list[list[Frame]]) -> None:
    (tmp_path / "none").write_bytes(pcap_header())
    (tmp_path / "some").write_bytes(as_pcap(visits[0]))
    report = run([tmp_path / "none", tmp_path / "some"], out=tmp_path / "out")
    assert [source["name"] for source in report.manifest["sources"]] == ["some", "none"]


def test_a_damaged_one_costs_only_its_tail(
    rotated: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("e.pcap.gz", "b.snoop"):
        path = rotated / name
        path.write_bytes(path.read_bytes()[:-7])
    assert main(["run", str(rotated), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "e.pcap.gz: the gzip data ends early, after byte " in said
    assert "b.snoop: record " in said
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert [bool(source["warning"]) for source in manifest["sources"]] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    assert manifest["counters"]["flow"]["flows_tcp"] == 6


@pytest.fixture
def _few_files() -> Iterator[None]:
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, former[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, former)


@pytest.mark.usefixtures("_few_files")
@pytest.mark.parametrize("as_folder", [True, False])
def test_more_files_than_can_be_open(
    as_folder: bool, tmp_path: Path, visits: list[list[Frame]]
) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for i in range(150):
        content = as_pcap(visits[i % 6])
        (folder / f"{i}").write_bytes(gzip.compress(content) if i % 2 else content)
    sources = [folder] if as_folder else sorted(folder.iterdir())
    report = run(sources, out=tmp_path / "out")
    assert report.manifest["counters"]["read"]["frames"] == 150 * len(visits[0])


def test_what_cannot_be_a_source(tmp_path: Path, visits: list[list[Frame]]) -> None:
    (tmp_path / "good").write_bytes(as_pcap(visits[0]))
    (tmp_path / "none").mkdir()
    with ExitStack() as stack:
        with pytest.raises(ConfigError, match="one source or more"):
            open_sources([], Config(), stack)
        with pytest.raises(ConfigError, match="holds a zero byte"):  # the system reads "good"
            open_sources([f"{tmp_path / 'good'}\0x"], Config(), stack)
        with pytest.raises(ConfigError, match="holds a zero byte"):
            filter_rows([f"{tmp_path / 'good'}\0x"], FilterConfig())
        with pytest.raises(CaptureError, match="lo is a network interface, which only"):
            open_sources(["lo"], Config(), stack)
        with pytest.raises(FormatError, match="none is a folder without a capture in it"):
            open_sources([tmp_path / "good", tmp_path / "none"], Config(), stack)


def test_small_captures_share_a_batch(tmp_path: Path, visits: list[list[Frame]]) -> None:
    """A run that moves its output after each file takes longer."""
    for number, frames in enumerate(visits):
        (tmp_path / f"{number}.pcap").write_bytes(as_pcap(frames))
    config = Config()
    engine = PacketEngine(**config.engine_arguments())
    with ExitStack() as stack:
        sources = open_sources([tmp_path], config, stack)
        reader = Reader(engine, sources, None, Interruption())
        read = [engine.stats["frames"] for _batch in reader.batches()]
    # The first packet is read alone, and the last file ends the reading.
    assert read == [1, sum(map(len, visits))]
