# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The modes of files that are for the operator: manifests, and counts of popularity."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import DEMO, Captured, run_main

import zanon_net

PRIVATE, OPEN = 0o600, 0o666  # of a umask of 0


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("time,user,attribute\n" + "1,ann,tea\n2,bob,tea\n" * 20)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    former = os.umask(0)
    yield
    os.umask(former)


def modes(*names: str) -> list[int]:
    return [stat.S_IMODE(Path(name).stat().st_mode) for name in names]


COMMANDS = {
    "run": (["run", DEMO, "--out", "o", "--popularity", "p"], ["o/manifest.json", "p"]),
    "packets": (
        ["packets", DEMO, "o.pcap", "--popularity", "p"],
        ["o.pcap.manifest.json", "p"],
    ),
    "filter": (["filter", "rows.csv", "--time-unit", "s", "--popularity", "p"], ["p"]),
    "table": (
        ["table", "anonymize", "rows.csv", "--quasi", "attribute", "--out", "o.csv"],
        ["o.csv.json"],
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("options", "mode"), [((), PRIVATE), (("--mode", "640"), 0o640)])
@pytest.mark.parametrize("mask", [0, 0o077])
def test_only_the_owner_reads_them_unless_a_mode_says_otherwise(
    command: str, options: tuple[str, ...], mode: int, mask: int
) -> None:
    os.umask(mask)
    arguments, files = COMMANDS[command]
    assert run_main(*arguments, "-q", *options) == 0
    assert modes(*files) == [mode] * len(files)


def test_other_files_are_as_the_umask_has_them() -> None:
    assert run_main("run", DEMO, "--out", "o", "--format", "csv", "-q") == 0
    assert run_main("packets", DEMO, "o.pcap", "-q") == 0
    assert modes("o/flows.csv", "o.pcap") == [OPEN] * 2


@pytest.mark.parametrize("mode", [None, "644"])
def test_the_manifest_of_a_run_that_goes_on(mode: str | None) -> None:
    seen: set[int] = set()

    def look(_done: int, _total: int, _packets: int) -> None:
        seen.update(modes(*map(str, Path("o").glob("manifest.json*"))))

    zanon_net.run(
        DEMO, out="o", progress=look, split="1m", format="csv", **({"mode": mode} if mode else {})
    )
    assert seen == {PRIVATE if mode is None else 0o644}


def test_a_mode_that_is_none(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", "o", "--mode", "777") == 2
    assert capsys.readouterr().err == (
        "zanon-net: --mode: must be one of the texts 600, 640, 604 and 644\n"
    )
