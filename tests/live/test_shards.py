# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shards of a run on an interface: each reads its own rings, and all count together."""

import json
import pwd
from pathlib import Path
from typing import Any

import pytest
from support.live import data_of, let_anybody_pass
from support.netns import Namespace
from support.packets import crowd

from zanon_net.keys import new_key

SHARDS, VISITORS = 3, 24


@pytest.mark.parametrize("more", [(), ("--drop-to", "nobody")], ids=["root", "nobody"])
def test_shards_of_an_interface_release_together(
    net: Namespace, live: Any, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """No shard hears all users of the name, and the name is released for all but the first."""
    key = tmp_path / "zanon.key"
    new_key(key)
    if more:
        let_anybody_pass(tmp_path)
    run = live(
        *("a", "--shards", SHARDS, "--key-file", key, "--status", "200ms"),
        *("--format", "observations", "--count-leases", "no", *more),
    )
    frames = data_of(crowd(b"shared.example", VISITORS))
    net.send("b", frames)
    run.wait_for_packets(len(frames))
    manifest = run.end()
    assert manifest["complete"]
    owner = pwd.getpwnam("nobody").pw_uid if more else 0
    assert {path.stat().st_uid for path in (run.out, *run.out.rglob("*"))} == {owner}
    assert sum(source["frames"] for source in manifest["sources"]) >= len(frames)
    heard = [
        json.loads((run.out / f"shard-{n}/manifest.json").read_text())["decisions"]["observations"]
        for n in range(SHARDS)
    ]
    assert sum(heard) == VISITORS
    assert max(heard) < VISITORS
    lines = [
        json.loads(line)
        for path in run.out.glob("shard-*/observations.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert len(lines) == manifest["decisions"]["released"] == VISITORS - 1
    assert {line["name"] for line in lines} == {"shared.example"}
