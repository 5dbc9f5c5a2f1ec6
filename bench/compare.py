# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the speed of this checkout with another revision, by the benchmark suite.

Usage: python bench/compare.py REV [--pairs 9] [--factor 1] [--select EXPRESSION] [FILE ...]

Both revisions are built without test code, in worktrees below build/bench/compare. The tests of
this checkout measure both, in turn and on one core. A pair is one process of each. The script
prints the median ratio of the pairs, new to old, and the interval of 90 % of the pairs. It names
each function that became slower by more than 3 %. A benchmark that the other revision cannot run is
named as new. Changes that are not committed are measured, but new files must be added to git.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "bench" / "compare"
BUILT_FROM = ("csrc", "zanon_net", "setup.py")
SLOWER = 1.03
OUTSIDE = 0.05  # share of the pairs below the interval, and above it
ROUNDS = 3  # of each function in a process; the least counts

Name = tuple[str, str]
"""Group and function of a benchmark."""

Seconds = dict[Name, float]
"""The least seconds of each function in one process."""


def output_of(*command: str | Path, cwd: Path = ROOT) -> str:
    """Returns the output of a command; ends the script if the command fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Revision:
    """A built revision: its name, and its folder with the source and the installed package."""

    name: str
    folder: Path

    @classmethod
    def built(cls, commit: str) -> "Revision":
        """Returns the revision after it was built, unless an earlier call built its source."""
        trees = output_of("git", "rev-parse", *(f"{commit}:{path}" for path in BUILT_FROM))
        folder = PLACE / hashlib.sha256(trees.encode()).hexdigest()[:12]
        source, packages = folder / "source", folder / "packages"
        if not packages.exists():
            print(f"building {commit}", file=sys.stderr)
            output_of("git", "worktree", "prune")
            if not source.exists():
                output_of("git", "worktree", "add", "--detach", source, commit)
            wheel = ("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder)
            output_of(sys.executable, "-m", *wheel, source)
            (made,) = folder.glob("*.whl")
            zipfile.ZipFile(made).extractall(packages)
        revision = cls(commit, folder)
        question = "import zanon_net; print(zanon_net.__file__)"
        done = revision.run([sys.executable, "-c", question])
        if not done.stdout.startswith(str(packages)):
            sys.exit(f"{commit}: cannot be imported:\n{done.stdout}")
        return revision

    def run(self, command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Runs a command that imports this revision's package."""
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "packages"),
            "PYTHONSAFEPATH": "1",  # the folder of the source has a package, too
            "ZANON_BENCH_SOURCE": str(self.folder / "source"),
        }
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip

    def measure(self, file: Path, options: argparse.Namespace, whole: bool) -> Seconds:
        """Returns the least seconds of each function of a file.

        whole: if true, a benchmark that fails ends the script.
        """
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "figures.json"
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
            command += ["-m", "not peer", "-k", options.select, "--benchmark-json", out]
            command += ["--rounds", str(ROUNDS), "--factor", str(options.factor)]
            done = self.run(list(map(str, command)))
            if whole and done.returncode not in (0, 5):  # 5: no test is selected
                sys.exit(f"{self.name}: {file.name} failed:\n{done.stdout[-4000:]}")
            text = out.read_text("utf-8") if out.exists() else ""
        found = json.loads(text)["benchmarks"] if text else []
        return {(one["group"], one["extra_info"]["who"]): one["stats"]["min"] for one in found}


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Returns the median and the bounds of the interval."""
    ordered = sorted(ratios)
    outside = round(len(ordered) * OUTSIDE)
    return statistics.median(ordered), ordered[outside], ordered[-1 - outside]


def judged(olds: Sequence[Seconds], news: Sequence[Seconds]) -> tuple[list[str], list[str]]:
    """Returns a line for each function, and the lines of the functions that became slower.

    olds, news: the seconds of each pair.
    """
    lines, slower = [], []
    for name in sorted({name for new in news for name in new}):
        pairs = [(old[name], new[name]) for old, new in zip(olds, news, strict=True)
                 if name in old and name in new]  # fmt: skip
        shown = "; ".join(name)
        if not pairs:
            lines.append(f"{shown}: new")
            continue
        median, low, high = interval([new / old for old, new in pairs])
        line = f"{shown}: {median:.3f} ({low:.3f} to {high:.3f})"
        lines.append(line)
        if median > SLOWER:
            slower.append(line + ("" if low > 1 else ", which may be noise"))
    return lines, slower


def compare(old: Revision, new: Revision, file: Path, options: argparse.Namespace) -> list[str]:
    """Measures a file and prints its functions. Returns the lines of slower functions."""
    found: dict[Revision, list[Seconds]] = {old: [], new: []}
    for pair in range(options.pairs):
        sides = [new, old]  # new first, because it writes the traces that are missing
        if pair % 2:
            sides.reverse()
        for side in sides:
            found[side].append(side.measure(file, options, whole=side is new))
    lines, slower = judged(found[old], found[new])
    print("".join(f"{line}\n" for line in lines), end="", flush=True)
    return slower


def main() -> None:
    """Builds, measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--pairs", type=int, default=9, help="processes of each revision")
    parser.add_argument("--factor", type=float, default=1.0, help="factor of all sizes")
    parser.add_argument("--select", default="", help="as pytest's -k", metavar="EXPRESSION")
    options = parser.parse_args()
    here = output_of("git", "stash", "create") or "HEAD"
    commits = [output_of("git", "rev-parse", "--short=12", rev) for rev in (options.revision, here)]
    if commits[0] == commits[1]:
        sys.exit(f"{options.revision} is this checkout")
    old, new = (Revision.built(commit) for commit in commits)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"old {old.name}, new {new.name}; new to old, median of {options.pairs} pairs (90 %)")
    slower: list[str] = []
    for file in options.files or sorted((ROOT / "bench").glob("test_*.py")):
        slower += compare(old, new, file.resolve(), options)
    print(f"\n{len(slower)} slower by more than {SLOWER - 1:.0%}")
    print("".join(f"{line}\n" for line in slower), end="")


if __name__ == "__main__":
    main()
