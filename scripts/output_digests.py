# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Prints digests of all output of a build, to prove that a change of the code changes no output.

    .venv/bin/python scripts/output_digests.py before.json ../shared/corpus pcaps build/bench
    (change the code, build)
    .venv/bin/python scripts/output_digests.py after.json ../shared/corpus pcaps build/bench
    .venv/bin/python scripts/output_digests.py --compare before.json after.json

Each capture in the folders is run under one key with each option set of RUNS. The result maps
"capture, run, file" to a SHA-256. Manifests and the output of `inspect` are kept as text, so that
differences can be read. Parts that differ from build to build are removed. Renamed counters are
compared by their old names.
"""

import argparse
import base64
import contextlib
import hashlib
import io
import json
import shlex
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

SUFFIXES = {".pcap", ".pcapng", ".snoop", ".cap", ".trace", ".gz", ".zst", ".xz", ".lz4", ".bz2"}
FORMATS = ("tstat", "jsonl", "csv", "parquet", "observations")
EVERY_FORMAT = "".join(f" --format {name}" for name in FORMATS)
EVERY_COLUMN = " --columns core,layer7,e2e,options,p2p"
RUNS = {
    "open": "--z 1 --evidence any" + EVERY_FORMAT + EVERY_COLUMN,
    "open-2": "--z 1 --evidence any --workers 2" + EVERY_FORMAT + EVERY_COLUMN,
    "all-users": "--z 1 --internal any --dn-hunter --exact" + EVERY_FORMAT,
    "five": "--z 5 --window 10m --dn-hunter" + EVERY_FORMAT,
    "five-2": "--z 5 --workers 2 --popularity {out}.popularity" + EVERY_FORMAT,
    "two-core": "--z 2 --columns core --keep-client-port --dns-votes no --compress gzip --rotate 5m"
    " --format tstat --format csv",
    "split": "--z 2 --split 1m --target-p 0.9 --max-flows 2000 --format tstat --format jsonl",
}
CASES_OF_WORKER = 20
COLUMNS_OF_ROWS = " --time t_ns --time-unit ns --user client --attribute name"
FILTERS = {
    "filter": "--z 2" + COLUMNS_OF_ROWS,
    "filter-blank": "--z 5 --suppressed blank --to csv --pass name_source" + COLUMNS_OF_ROWS,
}
ANY_ADDRESS = " --internal any --addresses wide --evidence any"
PACKETS = {
    "packets": "--z 2 --payload keep-encrypted --fingerprint tested --tcp-timestamps offset",
    "packets-open": "--z 1 --encapsulation keep" + ANY_ADDRESS,
    "packets-open-2": "--z 1 --workers 2 --payload keep-encrypted --encapsulation keep --ttl keep"
    " --keep-client-port" + ANY_ADDRESS,
    "packets-exact": "--z 3 --exact --encapsulation keep" + ANY_ADDRESS,
    "packets-coarse": "--for internal --z 3 --suppressed coarse --encapsulation keep"
    " --server-address linkable --tcp-timestamps keep" + ANY_ADDRESS,
    "packets-hold-0": "--z 1 --hold 0 --payload cut --mac zero" + ANY_ADDRESS,
    "packets-full": "--z 1 --hold 10s --hold-memory 1M --encapsulation keep" + ANY_ADDRESS,
    "packets-views": "--for internal --z 1 --payload keep-encrypted --suppressed coarse"
    " --view public:z=2,payload=zero --view cut:z=1,payload=cut" + ANY_ADDRESS,
}


def call(arguments: list[str]) -> tuple[int, str]:
    """Runs the command. Returns its exit code and standard output."""
    from zanon_net.cli import main

    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, "utf-8", write_through=True)
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        code = main(arguments)
    with contextlib.suppress(ValueError):
        text.flush()
    return code, raw.getvalue().decode("utf-8", "replace")


def neutral(value: Any, renamed: frozenset[str]) -> Any:
    """Returns a manifest without version and performance, and with counters by their old names."""
    if isinstance(value, dict):
        dropped = {"version", "performance", *renamed}
        return {k: neutral(v, renamed) for k, v in value.items() if k not in dropped}
    if isinstance(value, list):
        return [neutral(item, renamed) for item in value]
    return value


def manifest_of(text: str | bytes) -> Any:
    """Returns the comparable form of a manifest's text."""
    from zanon_net import _core

    return neutral(json.loads(text), frozenset(getattr(_core, "STAT_ALIASES", {})))


def content_of(path: Path) -> Any:
    """Returns the comparable form of an output file: a digest, or the manifest itself."""
    data = path.read_bytes()
    if path.name == "manifest.json":
        return manifest_of(data)
    if path.suffix == ".gz":
        import gzip

        data = gzip.decompress(data)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        schema = str(table.schema.remove_metadata())
        data = (schema + "\n" + str(table.to_pydict())).encode()
    return hashlib.sha256(data).hexdigest()


def filtered(folder: Path, observations: Path) -> dict[str, Any]:
    """Returns the digests of `filter`'s output for a run's observations."""
    found: dict[str, Any] = {}
    for name, options in FILTERS.items():
        code, text = call(
            ["filter", *shlex.split(options), *key_of(folder), "-q", str(observations)]
        )
        found[name] = [code, hashlib.sha256(text.encode()).hexdigest()]
    return found


def key_of(folder: Path) -> list[str]:
    """Returns the option for a fixed key. The first call makes the key file."""
    path = folder / "key"
    if not path.exists():
        path.write_bytes(base64.b64encode(bytes(range(7, 39))) + b"\n")
        path.chmod(0o600)
    return ["--key-file", str(path)]


def anonymized(folder: Path, source: str) -> dict[str, Any]:
    """Returns the digests of the packets that leave, and their manifests."""
    found: dict[str, Any] = {}
    for run, options in PACKETS.items():
        out = folder / run
        out.mkdir()
        words = [*key_of(folder), *shlex.split(options)]
        code, _ = call(["packets", source, str(out / "out.pcapng"), "-q", *words])
        found[f"{run}: exit"] = code
        for path in sorted(out.iterdir()):
            is_manifest = path.name.endswith("manifest.json")
            data = path.read_bytes()
            found[f"{run}: {path.name}"] = (
                manifest_of(data) if is_manifest else hashlib.sha256(data).hexdigest()
            )
    return found


def digests(case: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    """Returns the digests of one capture or folder, by run and file."""
    name, source = case
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for run, options in RUNS.items():
            out = folder / run
            chosen = shlex.split(options.replace("{out}", str(out)))
            code, _ = call(["run", source, "--out", str(out), "-q", *key_of(folder), *chosen])
            found[f"{run}: exit"] = code
            for path in sorted(out.rglob("*")):
                if path.is_file():
                    found[f"{run}: {path.relative_to(out)}"] = content_of(path)
            popularity = Path(f"{out}.popularity")
            if popularity.exists():
                found[f"{run}: popularity"] = hashlib.sha256(popularity.read_bytes()).hexdigest()
        found |= anonymized(folder, source)
        code, text = call(["inspect", source, "--json"])
        found["inspect"] = [code, manifest_of(text) if code == 0 else text]
        observations = folder / "open" / "observations.jsonl"
        if observations.exists() and observations.stat().st_size:
            found |= filtered(folder, observations)
    return name, found


def cases(folders: list[Path]) -> list[tuple[str, str]]:
    """Returns (name, source) for each capture in the folders."""
    found = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                found.append((f"{folder.name}/{path.relative_to(folder)}", str(path)))
    return found


def all_digests(captures: list[tuple[str, str]], jobs: int) -> dict[str, dict[str, Any]]:
    """Returns the digests of captures, by name. Workers are renewed now and then. Exits if a worker
    crashes."""
    found: dict[str, dict[str, Any]] = {}
    size = CASES_OF_WORKER * jobs
    for start in range(0, len(captures), size):
        with ProcessPoolExecutor(jobs) as pool:
            try:
                found |= pool.map(digests, captures[start : start + size])
            except BrokenProcessPool:
                name = captures[len(found)][0]
                sys.exit(f"output_digests.py: a worker crashed on {name} or a capture behind it;"
                         " find the capture with --jobs 1")  # fmt: skip
    return found


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Prints each difference. Returns the number of differences."""
    different = 0
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name, {}), after.get(name, {})
        for file in sorted(one.keys() | other.keys()):
            left, right = (json.loads(json.dumps(side.get(file))) for side in (one, other))
            if left != right:
                different += 1
                print(f"{name}, {file}:", *lines_between(left, right), sep="\n  ")
    total = sum(len(files) for files in before.values())
    print(f"{len(before)} captures, {total} outputs, {different} different")
    return different


def lines_between(left: Any, right: Any) -> list[str]:
    """Returns one line for each place at which two values differ (at most ten)."""
    import difflib

    texts = [json.dumps(side, indent=1).splitlines() for side in (left, right)]
    lines = difflib.unified_diff(*texts, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))][:10]


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compare", action="store_true", help="compare two results")
    parser.add_argument("--only-after", action="store_true", help="compare what the second has")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("result", type=Path)
    parser.add_argument("others", type=Path, nargs="+", help="folders of captures, or a result")
    asked = parser.parse_args()
    if asked.compare:
        before, after = (json.loads(path.read_text()) for path in (asked.result, asked.others[0]))
        if asked.only_after:
            before = {name: before[name] for name in after if name in before}
        return 1 if compare(before, after) else 0
    found = all_digests(cases(asked.others), asked.jobs)
    asked.result.write_text(json.dumps(found, indent=0, sort_keys=True))
    print(f"{len(found)} captures, {sum(map(len, found.values()))} outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
