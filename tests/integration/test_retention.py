# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Old parts that --keep and --max-disk remove, and everything else, which stays."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_main
from support.packets import HOUR, MINUTE, SECOND, START
from support.parts import capture_of, files_in, flow, manifest_of, records_in

from zanon_net import Config, run
from zanon_net.keys import new_key
from zanon_net.output import part_files, retention, state_file
from zanon_net.output.disk import DiskRules
from zanon_net.output.folder import FolderSink
from zanon_net.output.retention import Retention
from zanon_net.output.sink import Plan

LOGS = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")
ALL = ("tstat", "csv", "jsonl", "parquet", "observations", "pcapng")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    """Lookups over ten hours, one in each half of an hour."""
    begin = START - START % HOUR
    frames = [frame for n in range(20) for frame in flow(n, begin + n * 30 * MINUTE + SECOND)]
    path = tmp_path / "hours.pcap"
    path.write_bytes(capture_of(frames))
    return path


def check_disk(folder: Path) -> dict[str, Any]:
    """Asserts that the manifest lists the files that exist, and accounts for those removed."""
    manifest, files = manifest_of(folder), files_in(folder)
    listed = {file["file"]: file for file in manifest["outputs"]}
    assert set(listed) == set(files) - {"manifest.json"}
    counted = dict(manifest["removed"]["records"])
    for name, file in listed.items():
        assert file["bytes"] == len(files[name])
        kind = retention.format_of(name) or ""
        if kind != "pcapng":
            assert file["records"] == records_in(name, files[name])
        counted[kind] = counted.get(kind, 0) + file["records"]
    for name, account in manifest["records"].items():
        if isinstance(account, dict):
            assert account["written"] == counted.get(name, 0)
            assert account["lost"] == 0
    return manifest


# ---- captures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_of_a_capture_are_as_old_as_its_packets_say(
    hours: Path, out: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "zanon_net")
    config = Config(z=1, split="1h", format=ALL, workers=workers, evidence="any")
    config = config.replace(partition="day,hour", coarse_end="floored")
    run(hours, config.replace(keep="2h"), out=out)
    run(hours, config, out=out.with_name("all"))
    manifest = check_disk(out)
    assert manifest["complete"]
    everything = [file["file"] for file in manifest_of(out.with_name("all"))["outputs"]]
    left = [file["file"] for file in manifest["outputs"]]
    parts = sorted({name.split("-")[1] for name in everything if name.startswith("observations")})
    kept = sorted({name.split("-")[1] for name in left if name.startswith("observations")})
    # The last part begins at its first packet, an hour after the one before.
    assert kept == parts[-4:]
    removed = set(everything) - set(left)
    assert manifest["removed"]["parts"] == len(parts) - len(kept) > 3
    assert len({file["part"] for file in manifest["outputs"]}) == len(kept)
    said = [record.getMessage() for record in caplog.records if "removed" in record.getMessage()]
    assert len(said) == manifest["removed"]["parts"]
    assert all("over for more than --keep 2h" in line and " bytes" in line for line in said)
    assert len(removed) >= len(ALL) * manifest["removed"]["parts"]
    assert all(any(folder.iterdir()) for folder in (out / "flows").rglob("*=*"))


def test_a_packet_with_a_wrong_time_removes_nothing(tmp_path: Path, out: Path) -> None:
    """Here one of ten years later; parts are as old as the time at which the last one was over."""
    begin = START - START % HOUR
    times = [begin + n * HOUR for n in range(4)]
    times[2:2] = [begin + 87_600 * HOUR]
    frames = [frame for n, t_ns in enumerate(times) for frame in flow(n, t_ns + SECOND)]
    (tmp_path / "jump.pcap").write_bytes(capture_of(frames))
    config = Config(z=1, split="1h", keep="10h", format="observations", evidence="any")
    run(tmp_path / "jump.pcap", config, out=out)
    manifest = check_disk(out)
    assert manifest["removed"]["parts"] == 0
    assert sum(file["records"] for file in manifest["outputs"]) == len(times)


def test_parts_take_no_more_than_they_may(many: Path, out: Path) -> None:
    config = Config(z=1, split="1m", max_disk="2M", format="csv", evidence="any")
    run(many, config, out=out)
    manifest = check_disk(out)
    taken = sum(file["bytes"] for file in manifest["outputs"])
    assert 3 << 19 < taken <= 2 << 20
    assert manifest["removed"]["bytes"] > 1 << 20
    numbers = sorted({file["part"] for file in manifest["outputs"]})
    assert numbers == list(range(numbers[0], numbers[-1] + 1))  # the newest ones


def test_the_same_input_leaves_the_same_parts(many: Path, out: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "zanon.key")
    config = Config(z=1, split="1m", keep="4m", max_disk="2M", format="csv", evidence="any")
    config = config.replace(key_file=tmp_path / "zanon.key")
    left = []
    for workers in (1, 2):
        place = out.with_name(f"out{workers}")
        run(many, config.replace(workers=workers), out=place)
        manifest = check_disk(place)
        left.append((sorted(set(files_in(place)) - {"manifest.json"}), manifest["removed"]))
    assert left[0] == left[1]
    assert left[0][1]["parts"] > 0


def test_a_run_that_fails_accounts_for_parts_that_are_removed(many: Path, out: Path) -> None:
    """Also where no part is left that its manifest could list."""

    def progress(_done: int, _all: int, packets: int) -> None:
        if packets > 30_000:
            raise KeyboardInterrupt

    config = Config(z=1, split="1m", max_disk=1, format="csv", evidence="any")
    with pytest.raises(KeyboardInterrupt):
        run(many, config, out=out, progress=progress)
    manifest = manifest_of(out)
    assert manifest["outputs"] == []
    assert manifest["removed"]["records"]["csv"] > 0
    assert manifest["error"] == "KeyboardInterrupt"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--keep", "7d"], "--keep: removes whole parts; say when one ends with --split"),
        (["--max-disk", "1G"], "--max-disk: removes whole parts; say when one ends"),
        (["--split-size", "1G", "--max-disk", "1G"], "--max-disk: must be more than --split-size"),
        (["--keep", "7"], "--keep"),
        (["--on-full", "go"], "--on-full"),
        (["--split", "1h", "--keep", "7d", "--out", "-", "--format", "csv"], "--keep: is for the"),
        (["--on-full", "wait", "--out", "-", "--format", "csv"], "--on-full: is for the files"),
    ],
)
def test_contradictions_are_refused(
    hours: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main("run", hours, *options) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["hours.pcap"]


# ---- what lies where a part was -----------------------------------------------------------------


RULES = DiskRules(max_bytes=1)


def part_of(out: Path) -> tuple[FolderSink, list[Path]]:
    """A sink whose first part is over, and that part's files; the next rotation removes it."""
    sink = FolderSink(out, Plan((*LOGS, "csv"), headers={"csv": b"t\n"}, disk=RULES))
    sink._retention._rules = DiskRules(keep_ns=10**18)
    sink.rotate(START, START + SECOND)
    sink._retention._rules = RULES
    return sink, [out / str(file["file"]) for file in sink.files]


def test_a_link_in_the_place_of_a_part_stays(out: Path, tmp_path: Path) -> None:
    """And what it leads to: a file, or a folder with files of the same names and sizes."""
    sink, files = part_of(out)
    elsewhere = tmp_path / "elsewhere"
    folder = next(file.parent for file in files if file.parent != out)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    table = next(file for file in files if file.parent == out)
    table.rename(tmp_path / "table")
    table.symlink_to(tmp_path / "table")
    sink.rotate(START, START + 2 * SECOND)
    assert sorted(path.name for path in elsewhere.iterdir()) == list(LOGS)
    assert (tmp_path / "table").read_bytes() == b"t\n"
    assert folder.is_symlink()
    assert table.is_symlink()
    sink.discard()


def test_files_of_others_stay(out: Path) -> None:
    """A file that has changed, and a folder in which somebody keeps something."""
    sink, files = part_of(out)
    folder = next(file.parent for file in files if file.parent != out)
    (folder / "notes").write_text("mine")
    table = next(file for file in files if file.parent == out)
    table.write_text("somebody's")
    (out / "other.csv").write_text("t\n")
    sink.rotate(START, START + 2 * SECOND)
    assert sorted(path.name for path in folder.iterdir()) == [*LOGS, "notes"]
    assert table.read_text() == "somebody's"
    assert (out / "other.csv").exists()
    sink.discard()


def test_files_that_were_moved_away_are_not_counted(out: Path) -> None:
    sink, files = part_of(out)
    for file in files:
        file.unlink()
    sink.rotate(START, START + 2 * SECOND)
    assert sink.disk.removed.parts == 1  # the second part
    assert {str(file["file"]) for file in sink.files} == {
        file.relative_to(out).as_posix() for file in files
    }
    sink.discard()


def test_a_part_whose_removal_fails_stays_with_one_warning(
    out: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink, _files = part_of(out)

    def refused(*_arguments: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(retention, "remove", refused)
    for n in range(3):
        sink.rotate(START, START + (n + 2) * SECOND)
    monkeypatch.undo()
    said = [r.getMessage() for r in caplog.records if "cannot remove 20" in r.getMessage()]
    assert len(said) == 1
    assert sink.disk.removed.parts == 0
    sink.rotate(START, START + 9 * SECOND)
    assert sink.disk.removed.parts == 5
    assert {path.name for path in out.iterdir() if not path.name.endswith(".partial")} == set()
    sink.discard()


def unlink_but_not(kept: str) -> Callable[..., None]:
    """os.unlink of a folder in which files of one name may not be removed."""
    intact = os.unlink

    def unlink(name: Any, **more: Any) -> None:
        if str(name).startswith(kept):
            raise PermissionError(1, os.strerror(1))
        intact(name, **more)

    return unlink


@pytest.mark.parametrize("rules", [{"keep_ns": 1}, {"max_bytes": 9}])
def test_a_part_that_cannot_be_removed_keeps_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: dict[str, int]
) -> None:
    """Such as that of an earlier run of root's; it is not counted, so that no other has to go."""
    folder = earlier(tmp_path, "20260101T100000Z")
    os.utime(folder / "2026_01_01_10_00.out/log_udp_complete", (1, 1))
    os.utime(folder / "flows-20260101T100500Z.csv", (2, 2))
    found = live_retention(tmp_path, **rules)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink_but_not("log_udp"))
        found.remove_due(0, 0)
        assert not (folder / "flows-20260101T100500Z.csv").exists()
        found.remove_due(0, 0)
        assert found.removed[1].parts == 1
    found.remove_due(0, 0)
    assert found.removed[1].parts == 2
    assert list(files_in(folder)) == ["manifest.json"]


def test_what_stays_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all the parts of this run would go in its place."""
    folder = earlier(tmp_path, "20260101T100000Z")
    os.utime(folder / "2026_01_01_10_00.out/log_udp_complete", (1, 1))
    found = live_retention(tmp_path, max_bytes=15)
    monkeypatch.setattr(os, "unlink", unlink_but_not("log_udp"))
    for _look in range(3):
        found.remove_due(0, 0)
    assert found.removed[1].parts == 0
    assert (folder / "flows-20260101T100500Z.csv").exists()


def test_a_part_that_is_removed_by_half_is_counted_by_half(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest lists what is left."""
    sink, _files = part_of(out)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink_but_not(LOGS[1]))
        sink.rotate(START, START + 2 * SECOND)
    left = {name for name in files_in(out) if not name.endswith(".partial")}
    listed = {str(file["file"]).replace(".out/", ".out.removed.partial/") for file in sink.files}
    assert left == listed
    assert any(name.endswith(LOGS[1]) for name in left)
    assert not any(name.endswith(LOGS[0]) for name in left)
    sink.discard()


def test_what_somebody_puts_into_a_folder_that_is_removed_stays(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, _files = part_of(out)
    intact = os.rename

    def rename(old: Any, new: Any, **more: Any) -> None:
        intact(old, new, **more)
        if str(new).endswith(part_files.REMOVED):
            (out / str(new) / "notes").write_text("mine")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        sink.rotate(START, START + 2 * SECOND)
    assert sink.disk.removed.parts == 2
    assert sink.files == []
    assert {path.read_text() for path in out.glob("*.removed.partial/*")} == {"mine"}
    sink.discard()


def test_many_parts_are_removed_in_several_looks(tmp_path: Path) -> None:
    """While they are, nothing reads the interface."""
    for n in range(1, 6):
        earlier(tmp_path, f"2026010{n}T100000Z")
    found = live_retention(tmp_path, keep_ns=1)
    counts = []
    for _look in range(4):
        found.remove_due(0, 0)
        counts.append(found.removed[1].parts)
    assert counts == [4, 8, 10, 10]


def test_parts_may_be_moved_away_at_the_same_time(
    out: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the very moment of their removal, of which nothing is counted then."""
    sink, files = part_of(out)

    def moved(*_arguments: object, **_more: object) -> None:
        raise FileNotFoundError(2, os.strerror(2))

    facts = [part_files.PartFile.of(file) for file in sink.files]
    with monkeypatch.context() as patched, part_files.folder_of_ours(out) as folder:
        assert folder is not None
        patched.setattr(os, "unlink", moved)
        patched.setattr(os, "rename", moved)
        assert list(part_files.remove(facts, folder)) == []
    assert all(file.exists() for file in files)
    assert not caplog.messages
    sink.discard()


class Killed(BaseException):
    """The end of the process at this place."""


@pytest.mark.parametrize("call", range(6))
def test_a_removal_that_is_killed_is_finished_by_the_next(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """After whichever step: no folder of Tstat's has its name with a part of its logs."""
    sink, files = part_of(out)
    facts = [part_files.PartFile.of(file) for file in sink.files]
    steps = iter(range(100))

    def killing(name: str) -> Callable[..., None]:
        intact = getattr(os, name)

        def step(*arguments: Any, **more: Any) -> None:
            if next(steps) == call:
                raise Killed
            intact(*arguments, **more)

        return step

    with monkeypatch.context() as patched:
        for name in ("unlink", "rename", "rmdir"):
            patched.setattr(os, name, killing(name))
        with part_files.folder_of_ours(out) as folder:
            assert folder is not None
            with pytest.raises(Killed):
                list(part_files.remove(facts, folder))
    logs = next(file.parent for file in files if file.parent != out)
    assert not logs.exists() or sorted(path.name for path in logs.iterdir()) == list(LOGS)
    with part_files.folder_of_ours(out) as folder:
        assert folder is not None
        list(part_files.remove(facts, folder))
    assert [path for path in out.iterdir() if ".out" in path.name or "flows-" in path.name] == []
    sink.discard()


# ---- earlier runs -------------------------------------------------------------------------------


def earlier(parent: Path, start: str, *, killed: bool = False, **changed: Any) -> Path:
    """The folder of a run on an interface with two parts, as it ended or was killed."""
    folder = parent / f"zanon-{start}"
    (folder / "2026_01_01_10_00.out").mkdir(parents=True)
    outputs = []
    for part, name in enumerate(
        ("2026_01_01_10_00.out/log_udp_complete", "flows-20260101T100500Z.csv")
    ):
        (folder / name).write_bytes(b"0123456789")
        outputs.append({"file": name, "bytes": 10, "records": 3, "part": part + 1})
    manifest = {
        "name": "zanon-net",
        "configuration": {"output": {"keep": "7d", "max_disk": None}},
        "sources": [{"format": "interface"}],
        "removed": {"parts": 0, "bytes": 0, "records": {}, "earlier_runs": {}},
        "outputs": outputs,
    }
    name = "manifest.json.partial" if killed else "manifest.json"
    (folder / name).write_text(json.dumps(manifest | changed))
    return folder


def live_retention(parent: Path, **rules: int) -> Retention:
    folder = parent / "zanon-20260202T000000Z"
    folder.mkdir()
    return Retention(folder, DiskRules(is_live=True, **rules))


@pytest.mark.parametrize("killed", [False, True])
def test_parts_of_earlier_runs_are_removed_too(tmp_path: Path, killed: bool) -> None:
    folder = earlier(tmp_path, "20260101T100000Z", killed=killed)
    old = time.time() - 8 * 86_400
    os.utime(folder / "2026_01_01_10_00.out/log_udp_complete", (old, old))
    (folder / "flows.csv.partial").write_text("of a killed run")
    found = live_retention(tmp_path, keep_ns=7 * 24 * HOUR)
    assert found.remove_due(0, 0) == set()
    own, others = found.removed
    assert (own.parts, others.parts, others.bytes, others.records) == (0, 1, 10, {"tstat": 3})
    manifest = json.loads(next(folder.glob("manifest.json*")).read_text())
    assert [file["file"] for file in manifest["outputs"]] == ["flows-20260101T100500Z.csv"]
    assert manifest["removed"]["parts"] == 1
    assert manifest["removed"]["records"] == {"tstat": 3}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["flows-20260101T100500Z.csv", "flows.csv.partial", manifest_name(killed)]
    )


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_who_may_read_a_manifest_stays(tmp_path: Path, mode: int) -> None:
    manifest = earlier(tmp_path, "20260101T100000Z") / "manifest.json"
    manifest.chmod(mode)
    live_retention(tmp_path, max_bytes=1).remove_due(0, 0)
    assert json.loads(manifest.read_text())["removed"]["parts"] == 2
    assert manifest.stat().st_mode & 0o777 == mode


def manifest_name(killed: bool) -> str:
    return "manifest.json.partial" if killed else "manifest.json"


def test_the_oldest_part_of_all_runs_goes_first(tmp_path: Path) -> None:
    first, second = (earlier(tmp_path, f"2026010{n}T100000Z") for n in (1, 2))
    for n, file in enumerate(
        (
            second / "flows-20260101T100500Z.csv",
            first / "flows-20260101T100500Z.csv",
            first / "2026_01_01_10_00.out/log_udp_complete",
            second / "2026_01_01_10_00.out/log_udp_complete",
        )
    ):
        os.utime(file, (n + 1, n + 1))
    found = live_retention(tmp_path, max_bytes=25)
    found.remove_due(0, 0)
    assert found.removed[1].parts == 2
    assert not list(tmp_path.rglob("*.csv"))
    found.remove_due(0, 10)
    assert found.removed[1].parts == 3
    assert not (first / "2026_01_01_10_00.out").exists()
    assert (second / "2026_01_01_10_00.out/log_udp_complete").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"configuration": {"output": {"keep": None, "max_disk": None}}},
        {"sources": [{"format": "pcap"}]},
        {"name": "another program"},
        {"outputs": [{"file": "../precious", "bytes": 10, "records": 0, "part": 1}]},
        {"outputs": [{"file": "/etc/hostname", "bytes": 10, "records": 0, "part": 1}]},
        {"outputs": [{"file": "a.out/b/c", "bytes": 10, "records": 0, "part": 1}]},
        {"outputs": [{"file": "flows.csv.partial", "bytes": 10, "records": 0, "part": 1}]},
        {"outputs": [{"file": "flows.csv", "bytes": 10, "records": 0}]},
        {"outputs": [{"file": "flows.csv", "bytes": 10, "records": 0, "part": float("inf")}]},
        {"outputs": "none"},
        {"sources": None},
    ],
)
def test_what_no_manifest_of_ours_names_stays(tmp_path: Path, changed: dict[str, Any]) -> None:
    """That of a run without these options, on captures, or of somebody who wrote one like ours."""
    folder = earlier(tmp_path, "20260101T100000Z", **changed)
    (tmp_path / "precious").write_bytes(b"0123456789")
    (folder / "flows.csv.partial").write_bytes(b"0123456789")
    (folder / "flows.csv").write_bytes(b"0123456789")
    before = files_in(tmp_path)
    found = live_retention(tmp_path, max_bytes=1)
    found.remove_due(0, 0)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "removed", [None, 5, {"parts": 0}, {"parts": 0, "bytes": 0, "records": []}]
)
def test_a_manifest_that_somebody_has_changed_does_not_end_the_run(
    tmp_path: Path, removed: object
) -> None:
    folder = earlier(tmp_path, "20260101T100000Z", removed=removed)
    before = (folder / "manifest.json").read_bytes()
    found = live_retention(tmp_path, max_bytes=1)
    found.remove_due(0, 0)
    assert found.removed[1].parts == 2
    assert files_in(folder) == {"manifest.json": before}


def test_a_part_that_a_killed_run_did_not_list_stays(tmp_path: Path) -> None:
    """It got its name right before the kill. Those that are listed go, whole as they are."""
    folder = tmp_path / "zanon-20260101T100000Z"
    rules = DiskRules(is_live=True, keep_ns=HOUR)
    sink = FolderSink(folder, Plan((*LOGS, "csv"), headers={"csv": b"t\n"}, disk=rules))
    sink.rotate(START, START + HOUR)
    state = {
        "name": "zanon-net",
        "configuration": {"output": {"keep": "1h", "max_disk": None}},
        "sources": [{"format": "interface"}],
        "removed": {"parts": 0, "bytes": 0, "records": {}},
        "outputs": sink.files,
    }
    sink.keep_state(lambda: json.dumps(state).encode())
    sink.rotate(START, START + 2 * HOUR)
    listed, unlisted = ({str(f["file"]) for f in sink.files if f["part"] == n} for n in (1, 2))
    sink._close_manifest()  # here it is killed: its lock is gone, its files stay
    found = live_retention(tmp_path, max_bytes=1)
    found.remove_due(0, 0)
    assert found.removed[1].parts == 1
    left = {name for name in files_in(folder) if not name.endswith(".partial")}
    assert left == unlisted
    assert left.isdisjoint(listed)
    assert json.loads((folder / "manifest.json.partial").read_bytes())["outputs"] == []
    sink.discard()


def test_other_folders_stay(tmp_path: Path) -> None:
    """Of another name, links, those of a run that goes on, and without a manifest."""
    earlier(tmp_path, "20260101T100000Z").rename(tmp_path / "kept")
    (tmp_path / "zanon-20260102T100000Z").symlink_to(tmp_path / "kept")
    earlier(tmp_path, "20260103T100000Z", killed=True)
    bare = earlier(tmp_path, "20260104T100000Z")
    (bare / "manifest.json").unlink()
    running = tmp_path / "zanon-20260103T100000Z" / state_file.RESERVED
    before = files_in(tmp_path)
    with running.open("wb") as file:
        state_file.lock(file.fileno())
        found = live_retention(tmp_path, max_bytes=1)
        found.remove_due(0, 0)
    running.unlink()
    assert files_in(tmp_path) == before


def test_a_run_of_another_folder_covers_itself_alone(tmp_path: Path) -> None:
    earlier(tmp_path, "20260101T100000Z")
    before = files_in(tmp_path)
    (tmp_path / "logs").mkdir()
    Retention(tmp_path / "logs", DiskRules(is_live=True, max_bytes=1)).remove_due(0, 0)
    Retention(tmp_path / "logs", DiskRules(max_bytes=1)).remove_due(0, 0)
    assert files_in(tmp_path) == before


def test_a_clock_that_is_set_removes_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = DiskRules(is_live=True, keep_ns=HOUR)
    sink = FolderSink(out, Plan(("csv",), headers={"csv": b"t\n"}, disk=rules))
    sink.rotate(START, START + SECOND)
    monkeypatch.setattr(time, "time_ns", lambda: START + 10**18)
    assert not sink.tend()
    monkeypatch.setattr(retention, "_now_ns", lambda: 10**18)
    assert sink.tend()
    assert sink.files == []
    assert sink.disk.removed.parts == 1
    sink.discard()


def test_a_manifest_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = earlier(tmp_path, "20260101T100000Z")
    before = (folder / "manifest.json").read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    found = live_retention(tmp_path, max_bytes=1)
    found.remove_due(0, 0)
    assert found.removed[1].parts == 2
    assert files_in(folder) == {"manifest.json": before}
