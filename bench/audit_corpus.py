# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""False alarms of the audit: runs over captures, whose logs `audit --raw` has to find in order.

Each capture is run at z = 1, 2, 5 and 20 with both kinds of evidence. Captures are the files below
a folder, and generated traffic. One line is printed for each capture, and the sums at the end.
The results are kept in a file. A later run with the same file leaves out the captures in it.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.audit_runs import ATTRIBUTES, SETTINGS, checked_run  # noqa: E402

from zanon_net.audit.raw import tshark  # noqa: E402
from zanon_net.audit.raw.check import UNPROVEN_MOST  # noqa: E402
from zanon_net.bench.trace import Scale, generate  # noqa: E402
from zanon_net.errors import FormatError  # noqa: E402

PROFILES = ("isp", "modern")
SCALE = {"octets": 8_000_000, "homes": 60, "names": 80, "seconds": 5000}
"""Size of generated traffic, in which names have up to tens of users within a window."""
COUNTS = ("runs", "claims", "unproven", "doubtful")
Result = dict[str, Any]
Make = Callable[[Path], Path]


def captures(folder: Path | None, count: int) -> dict[str, Make]:
    """Returns what makes each capture, by its name: the files below a folder, and generated
    traffic."""
    files = [] if folder is None else sorted(folder.rglob("*cap*"))
    found: dict[str, Make] = {
        str(path.relative_to(folder)): partial(_existing, path) for path in files if path.is_file()
    }
    for seed in range(count):
        profile = PROFILES[seed % len(PROFILES)]
        found[f"generated, {profile}, seed {seed}"] = partial(_generated, profile, seed)
    return found


def _existing(path: Path, _folder: Path) -> Path:
    return path


def _generated(profile: str, seed: int, folder: Path) -> Path:
    path = folder / "generated.pcap"
    generate(path, profile, Scale(seed=seed, **SCALE))
    return path


def checked(program: str, capture: Path, folder: Path) -> Result:
    """Returns the numbers of a capture: runs, claims, violations by check, and doubtful runs."""
    violations: Counter[str] = Counter()
    runs = claims = unproven = doubtful = 0
    began = time.process_time()
    try:
        packets = list(tshark.read(program, capture, ATTRIBUTES))
    except FormatError:
        return {"runs": 0}
    for number, (z, evidence) in enumerate(SETTINGS):
        try:
            result = checked_run(capture, packets, z, evidence, folder / str(number))
        except FormatError:
            return {"runs": 0}
        runs += 1
        claims += result.claims
        unproven += len(result.unproven)
        doubtful += len(result.unproven) > UNPROVEN_MOST * result.claims
        violations.update(
            f"{one.check}.{one.column}, z {z}, {evidence}" for one in result.violations
        )
    return {
        "runs": runs,
        "claims": claims,
        "violations": dict(violations),
        "unproven": unproven,
        "doubtful": doubtful,
        "seconds": round(time.process_time() - began, 1),
    }


def line_of(name: str, result: Result) -> str:
    """Returns the line of a capture."""
    if not result["runs"]:
        return f"{name}: refused"
    texts = [f"{result[what]} {what}" for what in COUNTS]
    return f"{name}: {', '.join(texts)}, violations {result['violations'] or 0}"


def main() -> int:
    """Checks the captures that have no result yet; returns 1 if a run has a violation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="folder of captures")
    parser.add_argument("--generated", type=int, default=20, metavar="N", help="generated captures")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "audit_corpus.jsonl")
    arguments = parser.parse_args()
    program = tshark.find()
    if program is None:
        parser.error("tshark is not installed")
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    results: dict[str, Result] = dict(map(json.loads, lines))
    makes = captures(arguments.folder, arguments.generated)
    with arguments.results.open("a") as file:
        for name in [one for one in makes if one not in results]:
            with tempfile.TemporaryDirectory() as folder:
                results[name] = checked(program, makes[name](Path(folder)), Path(folder))
            file.write(json.dumps([name, results[name]]) + "\n")
            file.flush()
            print(line_of(name, results[name]), flush=True)
    read = [result for result in results.values() if result["runs"]]
    sums: Result = {what: sum(result[what] for result in read) for what in COUNTS}
    sums["violations"] = sum(sum(result["violations"].values()) for result in read)
    print(line_of(f"sum of {len(read)} captures", sums))
    return int(sums["violations"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
