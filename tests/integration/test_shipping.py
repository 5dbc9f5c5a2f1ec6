# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finished parts may be moved away while the run goes on, as docs/howto/operating.md says."""

from collections.abc import Callable
from pathlib import Path

from support.parts import manifest_of, records_in

from zanon_net import Config, run


def mover(out: Path, away: Path) -> Callable[[int, int, int], None]:
    """Moves what is finished, whole folders of Tstat's too, each time it is called."""

    def move(_done: int, _total: int, _packets: int) -> None:
        for path in (*out.iterdir(), *out.glob("flows/*")):
            if not path.name.endswith(".partial") and path.name != "flows":
                path.rename(away / path.relative_to(out))

    return move


def test_parts_that_were_moved_away_are_whole_and_listed(many: Path, tmp_path: Path) -> None:
    out, away = tmp_path / "out", tmp_path / "away"
    (away / "flows").mkdir(parents=True)
    formats = ("tstat", "jsonl", "parquet")
    config = Config().replace(z=1, split_size=1, format=formats)
    run(many, config, out=out, progress=mover(out, away))
    manifest, moved = manifest_of(out), [path for path in away.rglob("*") if path.is_file()]
    assert len(moved) >= 2 * 6  # of two parts or more
    assert manifest["complete"]
    listed = {file["file"]: file for file in manifest["outputs"]}
    for path in moved:
        name, content = path.relative_to(away).as_posix(), path.read_bytes()
        assert listed[name]["bytes"] == len(content)
        assert listed[name]["records"] == records_in(name, content)
    left = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    gone = {path.relative_to(away).as_posix() for path in moved}
    assert left - {"manifest.json"} == listed.keys() - gone
    assert manifest["records"]["jsonl"] == {"written": 20_000, "left_out": 0, "lost": 0}
