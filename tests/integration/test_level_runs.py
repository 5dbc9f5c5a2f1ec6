# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs with --levels: workers and batches change no byte, and each decision is the rule's for
late packets and for a z that changes."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from oracle.generalization import Rule
from support.engine import Outcome, Taker, make_engine, run
from support.level_sites import (
    LEVELS,
    Site,
    capture,
    frames_of,
    hellos,
    sites,
    visits,
    world_of,
)
from support.packets import MINUTE, SECOND, START, Frame

from zanon_net import Config
from zanon_net import run as run_to_folder
from zanon_net._core import Capture

NAME_LEVELS = ("name", "domain", "category")
Visit = tuple[int, int, int]
"""Time, user and number of the site."""


def files_of(folder: Path, path: Path, workers: int, **settings: Any) -> dict[str, bytes]:
    """The files of a run and its popularity, without the number of workers in the manifest."""
    counts = folder.with_suffix(".json")
    config = Config().replace(workers=workers, popularity=counts, **settings)
    run_to_folder(path, config, out=folder)
    texts = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    texts["manifest.json"] = texts["manifest.json"].replace(b'"workers": %d' % workers, b"")
    return texts | {"popularity": counts.read_bytes()}


def lists_of(tmp_path: Path, networks: str) -> dict[str, Any]:
    """Files of lists for the sites."""
    (tmp_path / "rules.dat").write_text("test\norg\n")
    (tmp_path / "kinds.tsv").write_text(
        "".join(f"d{d}.test\t{'news' if d % 2 else 'cdn'}\n" for d in range(5)) + "alone\tcdn\n"
    )
    (tmp_path / "networks.tsv").write_text(networks)
    return {
        "levels": LEVELS,
        "suffixes": tmp_path / "rules.dat",
        "categories": [tmp_path / "kinds.tsv"],
        "networks": [tmp_path / "networks.tsv"],
    }


@pytest.mark.parametrize(
    "more", [{}, {"target_p": 0.9, "z": 2, "z_max": 8, "split": "10m"}], ids=["fixed", "target"]
)
def test_workers_change_no_byte(tmp_path: Path, key_file: str, more: dict[str, Any]) -> None:
    rng = random.Random(7)
    found, _lists, networks = sites(rng)
    path = capture(tmp_path / "in.pcap", frames_of(visits(rng, len(found), 500), found))
    settings = {"z": 3, "window": "5m", "format": ("tstat", "jsonl", "csv", "observations")}
    settings |= {"key_file": key_file, "columns": ("core", "layer7", "levels")}
    settings |= lists_of(tmp_path, networks) | more
    one = files_of(tmp_path / "1", path, 1, **settings)
    shown = b"".join(text for name, text in one.items() if "observations" in name)
    assert shown.count(b'"name_level":"domain"') > 10
    assert shown.count(b'"name_level":"category"') > 2
    assert b'"levels": [[1, 1.0, 0.0, 0.0, 1.0], [2, ' in one["popularity"]
    assert (b'"reason"' in one["manifest.json"]) is bool(more)  # z changed
    for workers in (2, 4):
        assert files_of(tmp_path / str(workers), path, workers, **settings) == one


def shown_by(outcome: Outcome) -> dict[int, tuple[str, str]]:
    """Name and level of each observation, by its time."""
    return {o["t_ns"]: (o["name"], o["name_level"]) for o in outcome.observations}


def decided(
    arrived: Sequence[Visit],
    found: list[Site],
    outcome: Outcome,
    zs: Sequence[int],
    window: int,
) -> Counter[str]:
    """Asserts that each decision is the rule's, on visits in the order in which they are decided.
    zs: z at each visit. Returns the number of visits published at each level."""
    world, texts, chains = world_of([found[s].labels() for _t, _u, s in arrived])
    rule = Rule(world, window, z_max=max(zs))
    shown, levels = shown_by(outcome), Counter[str]()
    for (t, u, _s), chain, z in zip(arrived, chains, zs, strict=True):
        seen = shown.get(t)
        is_name = seen is not None and seen[1] == "name"
        level = rule.observe(t, u, chain, z, released=is_name)
        assert seen == (None if level is None else (texts[chain[level]], NAME_LEVELS[level])), t
        levels[seen[1] if seen else "nothing"] += 1
    return levels


@pytest.mark.parametrize("batch", [1, 7, 50])
@pytest.mark.parametrize("seed", range(3))
def test_late_packets_are_decided_by_the_rule(seed: int, batch: int) -> None:
    rng = random.Random(seed)
    found, lists, _networks = sites(rng)
    window = 5 * MINUTE
    late = [0] * 6 + [SECOND, 20 * SECOND, 2 * window]
    made = [
        (max(t - rng.choice(late), START) + i, u, s)  # no time occurs twice
        for i, (t, u, s) in enumerate(visits(rng, len(found), 700))
    ]
    arrived = [one for at in range(0, len(made), batch) for one in sorted(made[at : at + batch])]
    frames: list[Frame] = hellos([(t, u, found[s].name.encode()) for t, u, s in made])
    outcome = run(
        frames, batch=batch, z=4, window_ns=window, levels=LEVELS[:2], established=False, **lists
    )
    levels = decided(arrived, found, outcome, [4] * len(made), window)
    assert outcome.stats["suppressed_too_late"] > 10
    assert min(levels[level] for level in (*NAME_LEVELS, "nothing")) > 5


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("batch", [1, 7, 1 << 14])
def test_a_z_that_changes_is_decided_by_the_rule(tmp_path: Path, batch: int, workers: int) -> None:
    """z changes at the ends of windows, as --target-p changes it."""
    rng = random.Random(11)
    found, lists, _networks = sites(rng)
    window, steps = 3 * MINUTE, [3, 5, 2, 6, 4, 4, 2]
    made = [(t + 1000 * i, u, s) for i, (t, u, s) in enumerate(visits(rng, len(found), 500))]
    path = capture(
        tmp_path / "in.pcap", hellos([(t, u, found[s].name.encode()) for t, u, s in made])
    )
    engine = make_engine(
        popularity=True, established=False, z=steps[0], z_max=max(steps), window_ns=window,
        levels=LEVELS[:2], workers=workers, **lists,
    )  # fmt: skip
    taker, ended = Taker(engine), []
    with Capture(str(path)) as opened:
        while engine.run(opened, batch) > 0:
            while (closed := engine.window()) is not None:
                ended.append(closed.end_ns)
                engine.set_z(steps[len(ended) % len(steps)])
                engine.run(opened, 0)
            taker.take()
    assert len(ended) > len(steps)
    zs = [steps[sum(t >= end for end in ended) % len(steps)] for t, _u, _s in made]
    levels = decided(made, found, taker.outcome(), zs, window)
    assert min(levels[level] for level in (*NAME_LEVELS, "nothing")) > 5
