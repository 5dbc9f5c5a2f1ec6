# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the loss of `zanon-net filter --levels` on UCI Adult, and its speed.

python bench/ladder.py [--shuffles 5] [--rows 1000000]

Education, occupation and native country of Adult (bench/adult.py), each row a user, z = 10; a row a
second, and the window has 1,000 rows. Means over shuffles of the rows. The loss (NCP) of a row is
the mean over its columns, and 1 for a suppressed row. "rare" is the share of the released rows
whose text fewer than z rows of the whole output show, or of the 1,000 rows of its own part of the
output. The ladder promises that z users stand behind the text, not that z rows show it. "few" has
four of the seven steps of the chain, which were chosen on this data. "tune" searches the chain's
steps as `tune --steps`: chosen on the first half of the rows, and measured on the second. The rule
in Python (tests/oracle/ladder.py) decides each row of one order, too. Ends with 1 if a row differs,
or if a loss is above its bar.

The core's speed is measured from CSV in memory to CSV in memory. The plain filter, with the
education as its attribute, reads the bytes of the ladder in the same run. "table" is the z-table
alone, with the same steps of numbered nodes. Only the ratio means anything elsewhere. CPU seconds
of one thread, the best of --repeat; the commands' with start-up.
"""

import argparse
import collections
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from adult import HIERARCHIES, QUASI, lines_of, read

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracle import ladder as oracle
from oracle.hierarchy import Tree

from zanon_net import ZTable
from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.microdata import Hierarchy
from zanon_net.rows.ladder import Ladder
from zanon_net.rows.step_search import Sample, search_steps

Z, WINDOW = 10, 1000
FEW = "0,0,0\n1,0,0\n2,1,1\n3,2,1\n"
BARS = {"chain": 0.17, "few": 0.15}
"""The largest loss that is allowed."""
PIECE = 1 << 18


def settings(**more: Any) -> FilterConfig:
    """Returns the filter's settings; `more` changes them."""
    given: dict[str, Any] = {
        "z": Z,
        "window": f"{WINDOW - 1}s",
        "time_unit": "s",
        "no_user": True,
        "attribute": ",".join(QUASI),
        "hierarchy": {name: str(path) for name, path in HIERARCHIES.items()},
        "levels": "chain",
    }
    return FilterConfig(**given | more)


def plain() -> FilterConfig:
    """Returns the settings of the filter on one of the columns, as it is."""
    return settings(attribute=QUASI[0], hierarchy=(), levels=None)


def rows_of(table: dict[str, list[str]], order: Sequence[int], rows: int) -> bytes:
    """Returns CSV of `rows` rows, repeated in this order, with one second and one user each."""
    columns = [table[name] for name in QUASI]
    lines = [f"time,user,{','.join(QUASI)}"]
    for second in range(rows):
        row = order[second % len(order)]
        lines.append(f"{second},u{second},{','.join(column[row] for column in columns)}")
    return "\n".join(lines).encode() + b"\n"


def sift(config: FilterConfig, data: bytes) -> tuple[bytes, RowFilter, float]:
    """Returns (output, row filter, CPU seconds of the core)."""
    ladder = Ladder.of(config)
    core = None if ladder is None else ladder.for_core()
    row_filter = RowFilter(ladder=core, **config.row_filter_arguments())
    out, began = [], time.process_time()
    for at in range(0, len(data), PIECE):
        row_filter.feed(data[at : at + PIECE])
        out.append(row_filter.take())
    row_filter.end()
    out.append(row_filter.take())
    return b"".join(out), row_filter, time.process_time() - began


def rare(lines: Sequence[bytes]) -> float:
    """Returns the share of texts that fewer than Z of these have."""
    counts = collections.Counter(lines)
    return sum(count for count in counts.values() if count < Z) / len(lines)


def shuffled(table: dict[str, list[str]], seed: int) -> list[int]:
    """Returns the rows in an order by a seed."""
    order = list(range(len(table[QUASI[0]])))
    random.Random(seed).shuffle(order)
    return order


def differing(table: dict[str, list[str]], name: str, levels: str) -> int:
    """Prints and returns the number of rows that leave otherwise than by the rule in Python."""
    config, order = settings(levels=levels), shuffled(table, 0)
    ladder = Ladder.of(config)
    assert ladder is not None
    trees = [Tree(lines_of(path)) for path in HIERARCHIES.values()]
    rule = oracle.Ladder(trees, ladder.steps, Z, (WINDOW - 1) * 10**9)
    expected = set()
    for second, row in enumerate(order):
        answer = rule.decide(second * 10**9, second, [table[column][row] for column in QUASI])
        if answer is not None:
            expected.add(",".join([str(second), *map(str, answer[1])]).encode())
    found = sift(config, rows_of(table, order, len(order)))[0].splitlines()[1:]
    count = len({line.partition(b",")[0] for line in expected.symmetric_difference(found)})
    steps = f"{len(ladder.steps):3} steps"
    print(f"{name:5} {steps}: {count} of {len(order):,} rows differ from the rule in Python")
    return count


def losses(table: dict[str, list[str]], name: str, levels: str, shuffles: int) -> float:
    """Prints the figures of one kind of steps; returns the loss."""
    config = settings(levels=levels)
    ladder = Ladder.of(config)
    assert ladder is not None
    found = collections.defaultdict(list)
    for seed in range(shuffles):
        order = shuffled(table, seed)
        out, row_filter, _seconds = sift(config, rows_of(table, order, len(order)))
        facts = ladder.facts(row_filter.ladder_stats or {}, len(order))
        written = [line.partition(b",") for line in out.splitlines()[1:]]
        texts = [text for _time, _comma, text in written]
        parts = collections.defaultdict(list)
        for second, _comma, text in written:
            parts[int(second) // WINDOW].append(text)
        found["loss"].append(facts["loss"])
        found["suppressed"].append(1 - len(texts) / len(order))
        found["rare in all"].append(rare(texts))
        found["rare in 1,000"].append(
            sum(rare(part) * len(part) for part in parts.values()) / len(texts)
        )
    means = {what: sum(all_) / shuffles for what, all_ in found.items()}
    texts = ", ".join(f"{what} {mean:.4f}" for what, mean in means.items())
    print(f"{name:5} {len(ladder.steps):3} steps: {texts}; loss allowed {BARS[name]}")
    return means["loss"]


def searched(table: dict[str, list[str]], shuffles: int) -> None:
    """Prints the loss of the chain, and of the steps that `tune --steps` chooses, on rows that had
    no part in the choice."""
    config, count = settings(), len(table[QUASI[0]])
    ladder = Ladder.of(config)
    assert ladder is not None
    found, began = collections.defaultdict(list), time.process_time()
    for seed in range(shuffles):
        lines = rows_of(table, shuffled(table, seed), count).splitlines(keepends=True)
        first, rest = b"".join(lines[: 1 + count // 2]), b"".join(lines[1 + count // 2 :])
        search = search_steps(Sample("adult", first, rest, (0, count * 10**9)), config, ladder)
        choices = {"chain": search.chain, "best 4": search.best[3], "advised": search.advised}
        for name, choice in choices.items():
            found[f"{name} loss"].append(choice.measured.loss)
            found[f"{name} suppressed"].append(choice.measured.suppressed / choice.measured.rows)
    seconds = (time.process_time() - began) / shuffles
    means = ", ".join(f"{name} {sum(all_) / shuffles:.4f}" for name, all_ in found.items())
    print(f"tune  {search.tried} subsets, {seconds:.1f} s: {means}")
    print(f"tune  best 4 of the last order: {search.best[3].steps}")


def core_speed(table: dict[str, list[str]], rows: int, repeat: int) -> None:
    """Prints rows per CPU second of the core, beside the plain filter's."""
    data = rows_of(table, range(len(table[QUASI[0]])), rows)
    configs = {"plain": plain(), "chain": settings()}
    seconds = {
        name: min(sift(config, data)[2] for _ in range(repeat)) for name, config in configs.items()
    }
    for name, cost in seconds.items():
        ratio = cost / seconds["plain"]
        print(f"{name:5} core {rows / cost / 1e6:6.2f} M rows/s, {ratio:5.2f} x the plain filter")


def table_speed(table: dict[str, list[str]], rows: int, repeat: int) -> None:
    """Prints rows per CPU second of the z-table alone, with the steps of the chain."""
    ladder = Ladder.of(settings())
    assert ladder is not None
    columns = [Hierarchy.read(path) for path in HIERARCHIES.values()]
    codes = [np.resize(h.codes(table[name]), rows) for name, h in zip(QUASI, columns, strict=True)]
    asked = np.zeros((rows, len(ladder.steps)), np.uint64)
    for i, step in enumerate(ladder.steps):
        for hierarchy, level, code in zip(columns, step, codes, strict=True):
            nodes = hierarchy.ancestors[level][code].astype(np.uint64)
            asked[:, i] = asked[:, i] << np.uint64(16) | nodes
    steps = len(ladder.steps)
    times = np.repeat(np.arange(rows, dtype=np.int64) * 10**9, steps)
    users = np.repeat(np.arange(rows, dtype=np.uint64), steps)
    costs = []
    for _ in range(repeat):
        counts = ZTable(Z, (WINDOW - 1) * 10**9, keep=Z)
        began = time.process_time()
        counts.observe_batch(times, users, asked.reshape(-1))
        costs.append(time.process_time() - began)
    print(f"chain table {rows / min(costs) / 1e6:5.2f} M rows/s, {steps} observations each")


def command_speed(table: dict[str, list[str]], rows: int, repeat: int) -> None:
    """Prints rows per CPU second of the command, CSV to CSV."""
    base = f"--z {Z} --window {WINDOW - 1}s --time-unit s --no-user -q".split()
    ladder = ["--attribute", ",".join(QUASI), "--levels", "chain"]
    for name, path in HIERARCHIES.items():
        ladder += ["--hierarchy", f"{name}={path}"]
    commands = {"plain": ["--attribute", QUASI[0]], "chain": ladder}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "rows.csv")
        source.write_bytes(rows_of(table, range(len(table[QUASI[0]])), rows))
        for _ in range(repeat):
            for name, options in commands.items():
                command = [sys.executable, "-m", "zanon_net", "filter", *base, *options]
                seconds[name].append(cpu_seconds([*command, str(source)]))
    for name, costs in seconds.items():
        ratio = min(costs) / min(seconds["plain"])
        rate = rows / min(costs) / 1e6
        print(f"{name:5} CSV to CSV {rate:6.2f} M rows/s, {ratio:5.2f} x the plain filter")


def cpu_seconds(command: Sequence[str]) -> float:
    """Returns the CPU time of a child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Prints all figures. Returns 1 if a loss is above its bar or a row differs from Python."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shuffles", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    table, missed = read(), False
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, "steps.txt")
        few.write_text(FEW)
        for name, levels in (("chain", "chain"), ("few", str(few))):
            missed |= losses(table, name, levels, options.shuffles) > BARS[name]
            missed |= differing(table, name, levels) > 0
    searched(table, options.shuffles)
    core_speed(table, options.rows, options.repeat)
    table_speed(table, options.rows, options.repeat)
    command_speed(table, options.rows, options.repeat)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
