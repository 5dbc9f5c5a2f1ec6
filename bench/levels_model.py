# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the shares by level that `tune` and `model` state with the shares of runs.

Traffic is generated: independent users expose names of Zipf popularity, in domains and categories,
at a constant rate. A run counts the popularity, and each z is then run and looked up. The table is
empty at the start of the first window, so shares are also given for the rest of the run (steady).
"""

import argparse
import struct
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from flow_traffic import IP, L4, START_NS, segment

from zanon_net import Config, run
from zanon_net.bench.messages import Dice, HelloShape, hello_record
from zanon_net.model import fit

ACK_PUSH = 24
WINDOW_S = 600
LEVELS = ("name", "domain", "category", "nothing")
PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)


@dataclass(frozen=True)
class World:
    """Stationary traffic: users, domains of 1 to `names` names each, exposures in all windows."""

    users: int = 2_000
    domains: int = 400
    names: int = 40
    exposures: int = 240_000
    windows: int = 12
    seed: int = 1


def write_lists(folder: Path, world: World) -> dict[str, object]:
    """Writes the lists of suffixes and categories, and returns the settings that name them."""
    rules, kinds = folder / "suffixes.dat", folder / "categories.tsv"
    rules.write_text("test\n")
    kinds.write_text("".join(f"d{d}.test\tkind{d % 7}\n" for d in range(0, world.domains, 2)))
    return {"suffixes": rules, "categories": [kinds], "levels": ("domain", "category")}


def write_captures(folder: Path, world: World) -> None:
    """Writes a ClientHello in a flow of its own for each exposure: all, and the first window."""
    rng = np.random.default_rng(world.seed)
    sizes = rng.integers(1, world.names + 1, world.domains)
    domain = np.repeat(np.arange(world.domains), sizes)
    within = np.concatenate([np.arange(1, size + 1) for size in sizes])
    weights = 1 / ((domain + 1) * within)
    picked = rng.choice(len(domain), world.exposures, p=weights / weights.sum())
    users = rng.integers(0, world.users, world.exposures)
    times = np.sort(rng.integers(0, world.windows * WINDOW_S * 10**6, world.exposures))  # us
    dice = Dice("levels")
    pairs = zip(within.tolist(), domain.tolist(), strict=True)
    names = [b"n%d.d%d.test" % (n, d) for n, d in pairs]
    frames = [segment(ACK_PUSH, hello_record(name, HelloShape(), dice)) for name in names]
    first = int(np.searchsorted(times, WINDOW_S * 10**6))
    records = [PCAP]
    for i, (t, user, name) in enumerate(
        zip(times.tolist(), users.tolist(), picked.tolist(), strict=True)
    ):
        frame = bytearray(frames[name])
        struct.pack_into(">H", frame, IP + 2, len(frame) - IP)
        struct.pack_into(">II", frame, IP + 12, (10 << 24) + user, 198 << 24 | 18 << 16)
        struct.pack_into(">H", frame, L4, 1024 + i % 60_000)
        seconds = START_NS // 10**9 + t // 10**6
        head = struct.pack("<IIII", seconds, t % 10**6, len(frame), len(frame))
        records.append(head + frame)
    (folder / "all.pcap").write_bytes(b"".join(records))
    (folder / "first.pcap").write_bytes(b"".join(records[: first + 1]))


def shares_of_run(counters: Mapping[str, int]) -> list[float]:
    """Returns the shares of observations published by level."""
    levels = [counters[name] for name in ("released", "generalized_domain", "generalized_category")]
    observations = counters["observations"]
    return [n / observations for n in [*levels, observations - sum(levels)]]


@dataclass(frozen=True)
class Row:
    """Shares of a level at a z: of the whole run, of the run after its first window, and of the
    model."""

    z: int
    level: str
    whole: float
    steady: float
    model: float

    @property
    def points(self) -> float:
        """Difference of the model from the run after its first window, in points."""
        return 100 * (self.model - self.steady)


def compare(folder: Path, world: World, thresholds: list[int]) -> list[Row]:
    """Runs each z, and looks it up in the popularity that the first run counted."""
    write_captures(folder, world)
    config = Config().replace(
        window=f"{WINDOW_S}s", evidence="any", format="observations", **write_lists(folder, world)
    )
    rows, counted = [], folder / "popularity.json"
    for z in thresholds:
        wanted = {} if counted.exists() else {"popularity": counted}
        whole = run(folder / "all.pcap", config.replace(z=z, **wanted), out=folder / f"all-{z}")
        first = run(folder / "first.pcap", config.replace(z=z), out=folder / f"first-{z}")
        later = {name: n - first.counters[name] for name, n in whole.counters.items()}
        levels = fit(counted).levels
        assert levels is not None
        shares = levels.at(z)
        model = (shares.name, shares.domain, shares.category, shares.nothing)
        found = zip(LEVELS, shares_of_run(whole.counters), shares_of_run(later), model, strict=True)
        rows += [Row(z, *row) for row in found]
    return rows


def main() -> int:
    """Prints the shares of runs next to the model's. Returns 1 if two differ by 2 points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--z", type=int, nargs="+", default=[3, 5, 10, 20, 50, 100])
    parser.add_argument("--exposures", type=int, default=World.exposures)
    parser.add_argument("--windows", type=int, default=World.windows)
    given = parser.parse_args()
    world = World(exposures=given.exposures, windows=given.windows)
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(Path(folder), world, given.z)
    print(f"{'z':>4}  {'level':<10}{'run':>7}{'steady':>8}{'model':>7}{'points':>8}")
    for row in rows:
        shares = f"{row.whole:>7.1%}{row.steady:>8.1%}{row.model:>7.1%}"
        print(f"{row.z:>4}  {row.level:<10}{shares}{row.points:>+8.1f}")
    worst = max(abs(row.points) for row in rows)
    first = max(100 * abs(row.model - row.whole) for row in rows)
    print(f"largest difference: {worst:.1f} points, {first:.1f} with the first window")
    return int(worst > 2)


if __name__ == "__main__":
    sys.exit(main())
