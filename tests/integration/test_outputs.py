# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all, and a run leaves what its manifest says."""

import errno
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from support.capture_bytes import pcap_header, pcap_record
from support.paths import ROOT
from support.wire import CLIENT, SERVER, UDP, dns_message, dns_name, ethernet, ipv4, udp

from zanon_net import Config, ConfigError, FormatError, ZanonError, keys, run
from zanon_net.output.choice import open_sink
from zanon_net.output.folder import FolderSink, default_folder
from zanon_net.output.part_files import tstat_folder
from zanon_net.output.sink import Plan, Sink
from zanon_net.output.stdout import StdoutSink
from zanon_net.pipeline.observers import Observers

DEMO = ROOT / "pcaps" / "demo.pcap"
FIRST_S = 1_700_000_000  # 2023-11-14 22:13:20 UTC
FIRST_NS = FIRST_S * 1_000_000_000
TSTAT_FOLDER = "2023_11_14_22_13.out"
TSTAT_FILES = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")


def files_in(folder: Path) -> list[str]:
    found = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()]
    return sorted(found)


def dns_capture(flows: int = 1) -> bytes:
    """Queries and their answers, one flow a second."""
    query, answer = (
        dns_message(dns_name(b"a", b"net")),
        dns_message(dns_name(b"a", b"net"), flags=0x8180),
    )
    out = pcap_header()
    for n in range(flows):
        there, back = (40000 + n, 53), (53, 40000 + n)
        for ports, addresses, message in (
            (there, (CLIENT, SERVER), query),
            (back, (SERVER, CLIENT), answer),
        ):
            packet = ipv4(udp(message, ports=ports), UDP, addresses=addresses)
            out += pcap_record("<", FIRST_S + n, 0, ethernet(packet))
    return out


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "office" / "small.pcap"
    path.parent.mkdir()
    path.write_bytes(dns_capture(3))
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


# ---- the folder ---------------------------------------------------------------------------------


def put(sink: Sink, **texts: bytes) -> None:
    lines = {output: (text, text.count(b"\n")) for output, text in texts.items()}
    sink.take([(None, lines, {})], {})


def test_files_appear_when_they_are_whole(out: Path) -> None:
    sink = FolderSink(out, Plan((*TSTAT_FILES, "jsonl")))
    put(sink, jsonl=b"{}\n", log_udp_complete=b"one\n")
    put(sink, log_udp_complete=b"two\n")
    assert all(name.endswith(".partial") for name in files_in(out))
    sink.finish(FIRST_NS)
    sizes = {file["file"]: file["bytes"] for file in sink.files}
    assert sizes == {
        "flows.jsonl": 3,
        **{f"{TSTAT_FOLDER}/{name}": 8 * ("udp" in name) for name in TSTAT_FILES},
    }
    records = {file["file"]: file["records"] for file in sink.files}
    assert (records["flows.jsonl"], records[f"{TSTAT_FOLDER}/log_udp_complete"]) == (1, 2)
    assert all(name.endswith(".partial") for name in files_in(out))
    sink.publish(b"{}")
    assert files_in(out) == sorted([*sizes, "manifest.json"])
    assert (out / TSTAT_FOLDER / "log_udp_complete").read_bytes() == b"one\ntwo\n"
    sink.discard()
    assert len(files_in(out)) == 5


def test_without_a_packet_there_is_only_the_manifest(out: Path) -> None:
    sink = FolderSink(out, Plan((*TSTAT_FILES, "jsonl", "observations")))
    put(sink, log_udp_complete=b"header\n")
    sink.finish(None)
    assert sink.files == []
    sink.publish(b"{}")
    assert files_in(out) == ["manifest.json"]


@pytest.mark.parametrize("existing", [False, True])
def test_discarding_leaves_the_folder_as_it_was(out: Path, existing: bool) -> None:
    if existing:
        out.mkdir()
    sink = FolderSink(out, Plan(("jsonl", "log_tcp_complete")))
    put(sink, jsonl=b"{}\n")
    sink.discard()
    assert out.exists() is existing
    assert not existing or not list(out.iterdir())


def test_discarding_spares_what_others_wrote(out: Path) -> None:
    sink = FolderSink(out, Plan(("jsonl",)))
    (out / "note").write_text("mine")
    sink.discard()
    assert files_in(out) == ["note"]


def test_nothing_is_overwritten(out: Path, tmp_path: Path) -> None:
    out.mkdir()
    (out / ".hidden").touch()
    with pytest.raises(ConfigError, match="is not empty, and nothing is ever overwritten"):
        FolderSink(out, Plan(("jsonl",)))
    assert files_in(out) == [".hidden"]
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        FolderSink(tmp_path / "file", Plan(("jsonl",)))
    with pytest.raises(ZanonError, match=r"cannot make .*: No such file or directory; make the"):
        FolderSink(tmp_path / "no" / "such", Plan(("jsonl",)))


@pytest.mark.parametrize("name", ["manifest.json", "flows.jsonl"])
@pytest.mark.parametrize("dangling", [False, True], ids=["a file", "a link that leads nowhere"])
def test_what_came_in_between_is_spared(out: Path, name: str, dangling: bool) -> None:
    sink = FolderSink(out, Plan(("jsonl", "observations")))
    sink.finish(FIRST_NS)
    if dangling:
        (out / name).symlink_to("nowhere")
    else:
        (out / name).write_text("mine")
    with pytest.raises(ZanonError, match=f"cannot write .*{name}: File exists"):
        sink.publish(b"{}")
    sink.discard()
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).is_symlink() if dangling else (out / name).read_text() == "mine"


def failing(number: int, call: Callable[..., object], nth: int) -> Callable[..., object]:
    """`call`, but its nth use (from 0) fails with the error `number`."""
    uses = iter(range(1000))

    def wrapped(*arguments: object) -> object:
        if next(uses) == nth:
            raise OSError(number, os.strerror(number))
        return call(*arguments)

    return wrapped


# Four files reach the disk, then four and a folder get their names. A folder need not be synced.
@pytest.mark.parametrize(
    ("place", "nth"), [("fsync", n) for n in range(4)] + [("rename", n) for n in range(5)]
)
def test_an_error_at_any_step_leaves_nothing(
    out: Path, monkeypatch: pytest.MonkeyPatch, place: str, nth: int
) -> None:
    sink = FolderSink(out, Plan(TSTAT_FILES))
    owner = os if place == "fsync" else Path
    monkeypatch.setattr(owner, place, failing(errno.ENOSPC, getattr(owner, place), nth))

    def finish() -> None:
        sink.finish(FIRST_NS)
        sink.publish(b"{}")

    expected = r"^cannot write \S+: No space left on device; free some space and run again$"
    with pytest.raises(ZanonError, match=expected):
        finish()
    sink.discard()
    assert not out.exists()


def test_names_are_in_utc() -> None:
    assert tstat_folder(FIRST_NS) == TSTAT_FOLDER
    assert tstat_folder(0) == "1970_01_01_00_00.out"
    eastern = timezone(timedelta(hours=-5))
    assert default_folder(datetime(2024, 5, 14, 23, 0, 1, tzinfo=eastern)) == Path(
        "zanon-20240515T040001Z"
    )


# ---- standard output ----------------------------------------------------------------------------


def test_standard_output_takes_one_format_that_is_one_file() -> None:
    for name in ("jsonl", "observations", "csv"):
        assert isinstance(open_sink("-", [name], Plan((name,))), StdoutSink)
    with pytest.raises(ConfigError, match=r"three files and need a folder; .* one of jsonl"):
        open_sink("-", ["tstat"], Plan(TSTAT_FILES))
    with pytest.raises(ConfigError, match=r"parquet files are no stream and need"):
        open_sink("-", ["parquet"], Plan(("tcp_table", "udp_table")))
    with pytest.raises(ConfigError, match="takes one format"):
        open_sink("-", ["jsonl", "observations"], Plan(("jsonl", "observations")))


def test_observations_on_standard_output(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    report = run(capture, Config().replace(z=1, format="observations"), out="-")
    lines = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == ["a.net"] * 3
    assert (report.out, report.manifest["outputs"]) == (None, [])


# ---- a run --------------------------------------------------------------------------------------


def test_what_a_run_leaves(capture: Path, out: Path) -> None:
    config = Config().replace(z=1, format=["tstat", "jsonl", "observations"])
    report = run([capture], config, out=out)
    names = ["flows.jsonl", "observations.jsonl", *(f"{TSTAT_FOLDER}/{n}" for n in TSTAT_FILES)]
    assert files_in(out) == sorted([*names, "manifest.json"])
    assert report.out == out
    assert report.manifest == json.loads((out / "manifest.json").read_bytes())
    sizes = {name: (out / name).stat().st_size for name in sorted(names)}
    listed = [(file["file"], file["bytes"]) for file in report.manifest["outputs"]]
    assert listed == list(sizes.items())
    assert len((out / TSTAT_FOLDER / "log_udp_complete").read_text().splitlines()) == 4
    assert len((out / TSTAT_FOLDER / "log_tcp_complete").read_text().splitlines()) == 1


def test_a_manifest(capture: Path, out: Path) -> None:
    manifest = run(capture, Config().replace(z=2), out=out).manifest
    assert (manifest["complete"], manifest["interrupted"]) == (True, False)
    assert manifest["notes"] == ["this capture has 1 user; no name can reach z = 2"]
    assert manifest["time_range"] == {
        "first": "2023-11-14T22:13:20.000000000Z",
        "last": "2023-11-14T22:13:22.000000000Z",
        "first_ns": FIRST_NS,
        "last_ns": FIRST_NS + 2_000_000_000,
    }
    assert manifest["sources"] == [
        {
            "name": "small.pcap",
            "format": "pcap",
            "compression": None,
            "link_types": {"ETHERNET": 6},
            "bytes": capture.stat().st_size,
            "frames": 6,
            "warning": None,
        }
    ]
    decisions = manifest["decisions"]
    assert (decisions["observations"], decisions["released"]) == (0, 0)
    dns = {"dns_observations": 3, "dns_released": 0, "dns_generalized": 0, "dns_suppressed": 3}
    assert manifest["counters"]["dns"] == dns
    both = run(capture, Config().replace(z=2, dns_votes="all"), out=out.with_name("all")).manifest
    assert both["decisions"]["observations"] == both["decisions"]["suppressed"]["below_z"] == 3
    assert not any(both["counters"]["dns"].values())
    assert {"late", "late_deep", "clock_jumps", "evicted"} <= decisions.keys()
    assert manifest["counters"]["read"]["frames"] == 6
    assert manifest["users"] == 1
    assert "office" not in json.dumps(manifest)


def test_z_of_1_says_so(capture: Path, out: Path) -> None:
    manifest = run(capture, Config().replace(z=1), out=out).manifest
    assert len(manifest["notes"]) == 1
    assert manifest["notes"][0].startswith("z = 1: every name is released")


def test_wrong_internal_networks_are_noted(capture: Path, out: Path) -> None:
    manifest = run(capture, Config().replace(internal="172.16.0.0/12"), out=out).manifest
    assert manifest["notes"] == ["3 of 3 flows have no internal endpoint: check --internal"]


def test_the_same_key_gives_the_same_bytes(tmp_path: Path) -> None:
    keys.new_key(tmp_path / "key")
    config = Config().replace(z=5, key_file=tmp_path / "key", format=["tstat", "observations"])
    contents = []
    for name in ("one", "two"):
        run(DEMO, config, out=tmp_path / name)
        contents.append({f: (tmp_path / name / f).read_bytes() for f in files_in(tmp_path / name)})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 5


def test_sources_follow_one_another(tmp_path: Path, out: Path) -> None:
    whole = dns_capture(4)
    middle = 24 + (len(whole) - 24) // 2
    (tmp_path / "1.pcap").write_bytes(whole[:middle])
    (tmp_path / "2.pcap").write_bytes(whole[:24] + whole[middle:])
    report = run([tmp_path / "1.pcap", tmp_path / "2.pcap"], out=out)
    assert [source["frames"] for source in report.manifest["sources"]] == [4, 4]
    assert report.totals.counters["flows_udp"] == 4


def test_progress(capture: Path, out: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    run([capture, capture], out=out, progress=lambda *told: seen.append(told))
    size = capture.stat().st_size
    assert seen[-1] == (2 * size, 2 * size, 12)
    assert seen == sorted(seen)


def test_a_capture_without_packets_is_a_result(tmp_path: Path, out: Path) -> None:
    (tmp_path / "header.pcap").write_bytes(pcap_header())
    report = run(tmp_path / "header.pcap", out=out)
    assert files_in(out) == ["manifest.json"]
    assert (report.manifest["time_range"], report.warnings) == (None, [])


def test_a_cut_capture_is_a_warning(tmp_path: Path, out: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(dns_capture(2)[:-10])
    report = run(tmp_path / "cut.pcap", out=out)
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith("cut.pcap: record 4 at byte ")
    assert not report.manifest["complete"]
    assert report.manifest["sources"][0]["frames"] == 3
    assert (out / TSTAT_FOLDER).is_dir()


def test_one_readable_source_is_enough(tmp_path: Path, capture: Path, out: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(dns_capture(1)[:30])
    with pytest.raises(FormatError, match=r"cut\.pcap: record 1 at byte 24: .*not one packet"):
        run(tmp_path / "cut.pcap", out=out)
    assert not out.exists()
    report = run([tmp_path / "cut.pcap", capture], out=out)
    assert (len(report.warnings), report.totals.counters["frames"]) == (1, 6)


def test_an_interrupt_in_a_library_call_leaves_nothing(capture: Path, out: Path) -> None:
    def interrupt(*_told: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(capture, out=out, progress=interrupt)
    assert not out.exists()


def test_a_wrong_source_comes_before_any_output(tmp_path: Path, capture: Path, out: Path) -> None:
    with pytest.raises(ZanonError, match="No such file"):
        run([capture, tmp_path / "absent.pcap"], out=out)
    assert not out.exists()
    with pytest.raises(ConfigError, match="one source or more"):
        run([], out=out)
    with pytest.raises(ConfigError, match="standard input only once"):
        run(["-", capture, "-"], out=out)


@pytest.mark.parametrize("name", ["", "p.json", "below/p.json"])
def test_counts_for_the_operator_stay_out_of_the_folder(
    name: str, capture: Path, out: Path
) -> None:
    """One below it made the folder "not empty", and one of its name failed when all was read."""
    link = out.with_name("link")
    link.symlink_to(out)
    for path, folder in ((out / name, out), (link / name, out), (out / name, link)):
        with pytest.raises(ConfigError, match=r"^popularity: .* would lie in .*; choose another"):
            run(capture, Config().replace(popularity=str(path)), out=folder)
        assert not out.exists()
    beside = out.with_name("out.json")
    run(capture, Config().replace(popularity=beside, z=1), out=out)
    assert beside.exists()
    assert (out / "manifest.json").exists()


def test_what_comes_after_the_manifest_costs_no_file(
    capture: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_observers: Observers) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Observers, "finish", interrupt)
    beside = out.with_name("out.json")
    with pytest.raises(KeyboardInterrupt):
        run(capture, Config().replace(popularity=beside, z=1), out=out)
    assert json.loads((out / "manifest.json").read_text())["complete"]
    assert beside.exists()


def test_a_working_folder_that_is_gone_is_told_with_the_file(
    capture: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = out.with_name("gone")
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ZanonError, match=r"^cannot write p\.json: No such file"):
        run(capture, Config().replace(popularity="p.json"), out=out)
