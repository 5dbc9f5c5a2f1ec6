# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A folder of Tstat's logs appears with all three of them, and never in somebody else's place."""

from pathlib import Path

import pytest

from zanon_net import ZanonError
from zanon_net.output.folder import FolderSink
from zanon_net.output.sink import Plan

FIRST_NS = 1_700_000_000_000_000_000
TSTAT_FOLDER = "2023_11_14_22_13.out"
TSTAT_FILES = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def files_in(folder: Path) -> list[str]:
    found = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()]
    return sorted(found)


def test_a_folder_appears_with_all_its_logs(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who moves it away as soon as it is there moves three logs, and the run goes on."""
    appeared: list[list[str]] = []
    rename = Path.rename

    def renamed(path: Path, final: Path) -> Path:
        done = rename(path, final)
        for folder in out.glob("*.out"):
            appeared.append(files_in(folder))
            rename(folder, out.with_name(f"moved-{len(appeared)}"))
        return done

    sink = FolderSink(out, Plan((*TSTAT_FILES, "jsonl")))
    monkeypatch.setattr(Path, "rename", renamed)
    sink.rotate(FIRST_NS, FIRST_NS)
    sink.rotate(FIRST_NS, FIRST_NS + 60 * 10**9)
    sink.finish(FIRST_NS)
    sink.publish(b"{}")
    assert appeared == [list(TSTAT_FILES)] * 3
    assert not list(out.rglob("*.partial"))


@pytest.mark.parametrize("name", [TSTAT_FOLDER, f"{TSTAT_FOLDER}.partial"])
@pytest.mark.parametrize("parts", [0, 1])
def test_a_folder_of_others_is_spared(out: Path, name: str, parts: int) -> None:
    """Also an empty one, in whose place the system would put ours; nothing of ours stays."""
    sink = FolderSink(out, Plan((*TSTAT_FILES, "jsonl")))
    for part in range(parts):
        sink.rotate(FIRST_NS, FIRST_NS - part)
    name = name.replace("13", "13-2") if parts else name
    (out / name).mkdir()
    with pytest.raises(ZanonError, match=rf"cannot write .*{TSTAT_FOLDER[:-4]}.*: File exists"):
        sink.rotate(FIRST_NS, FIRST_NS)
    sink.abandon(lambda: b"{}")
    assert (out / name).is_dir()
    first = [f"{TSTAT_FOLDER}/{log}" for log in TSTAT_FILES] if parts else []
    assert [file for file in files_in(out) if "jsonl" not in file] == [*first, "manifest.json"]
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert folders == {name} | ({TSTAT_FOLDER} if parts else set())
