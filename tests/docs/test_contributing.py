# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The diffs of CONTRIBUTING.md that add a column and a format work, in a copy of the tree."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.c_build import run as output_of
from support.paths import ROOT
from support.shared import made_once

pytestmark = [pytest.mark.source, pytest.mark.slow]

CFLAGS = ["-std=c11", "-O0", "-fPIC", "-D_GNU_SOURCE", "-w", "-Icsrc", "-Icsrc/include"]
NEW_COLUMN = 'X("pkts_both", NUMBER, U64, "", NULL, packets_both, EXACT, '
KEEP = ("csrc", "zanon_net", "docs", "pcaps", "tests/support")


def diffs() -> list[str]:
    """The diffs of CONTRIBUTING.md that add a column and a format."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    chapters = [text.partition(f"## Add a {what}\n")[2] for what in ("column", "format")]
    return [re.split(r"^```(?:diff)?\n", chapter, flags=re.M)[1] for chapter in chapters]


def apply(diff: str, tree: Path) -> None:
    """Places are found by their lines, whatever line numbers a diff has."""
    output_of(["git", "apply", "--recount", "-"], stdin=diff, cwd=tree)


def includes(tree: Path, path: str, seen: dict[str, set[str]]) -> set[str]:
    """The headers of ours that a file includes, also by others."""
    if path not in seen:
        seen[path] = set()
        for name in re.findall(r'#include "([^"]+)"', (tree / "csrc" / path).read_text("utf-8")):
            base = "include/" if (tree / "csrc/include" / name).exists() else ""
            seen[path] |= {base + name} | includes(tree, base + name, seen)
    return seen[path]


def built_before(source: str) -> Iterator[Path]:
    """Objects of a source file that an earlier build may have left."""
    for pattern in ("lib/obj", "testing/temp*/csrc"):
        for folder in (ROOT / "build").glob(pattern):
            yield from (folder / source).parent.glob(f"{Path(source).stem}.o")


def compile_core(tree: Path) -> None:
    """Makes _core, with the objects of an earlier build where nothing that they hold changed."""
    seen: dict[str, set[str]] = {}
    objects, commands = [], []
    for path in sorted((tree / "csrc").rglob("*.c")):
        source = path.relative_to(tree / "csrc").as_posix()
        used = {source, *includes(tree, source, seen)}
        newest = max((tree / "csrc" / name).stat().st_mtime for name in used)
        old = [one for one in built_before(source) if one.stat().st_mtime > newest]
        target = old[0] if old else (tree / "obj" / source).with_suffix(".o")
        objects.append(str(target))
        if not old:
            target.parent.mkdir(parents=True, exist_ok=True)
            commands.append(["gcc", *CFLAGS, "-c", f"csrc/{source}", "-o", str(target)])
    binding = tree / "obj" / "_core.c"
    cython = [sys.executable, "-m", "cython", "-3", "-X", "binding=True"]
    output_of([*cython, "zanon_net/_core.pyx", "-o", str(binding)], cwd=tree)
    python = f"-I{sysconfig.get_path('include')}"
    commands.insert(0, ["gcc", *CFLAGS, python, "-c", str(binding), "-o", f"{binding}.o"])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: output_of(command, cwd=tree), commands))
    name = f"zanon_net/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    libraries = output_of(["pkg-config", "--libs", "libcrypto", "libpcap"]).split()
    link = ["gcc", "-shared", f"{binding}.o", *objects, *libraries, "-lm", "-pthread", "-o", name]
    output_of(link, cwd=tree)


def build(tree: Path) -> None:
    """A copy of the tree with both diffs."""
    for folder in KEEP:
        skip = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / folder, tree / folder, ignore=skip)
    for diff in diffs():
        apply(diff, tree)
    compile_core(tree)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "contributing", build)


def python(tree: Path, *arguments: str) -> str:
    """What the copy's Python prints."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_takes_at_most_four_places() -> None:
    column, text_format = (re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE) for diff in diffs())
    assert len(column) <= 3  # and the page of columns, which a command makes
    assert len(text_format) <= 4


def test_the_column_is_in_every_format_and_blank_in_coarse_records(
    tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    formats = [f"--format={name}" for name in ("tstat", "csv", "jsonl", "tsv", "parquet")]
    run = ["-m", "zanon_net", "run", "pcaps/demo.pcap", "--out", str(out), "-q", "--z", "3"]
    python(tree, *run, *formats)
    lines = [json.loads(line) for line in (out / "flows.jsonl").read_text("utf-8").splitlines()]
    tcp = [line for line in lines if line["proto"] == 6]
    coarse = [line for line in tcp if line["complete"] is None]
    assert 0 < len(coarse) < len(tcp)
    for line in tcp:
        whole = 0 if line["complete"] is None else line["c_pkts"] + line["s_pkts"]
        assert line["pkts_both"] == whole
    with (out / "flows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["pkts_both"]) for row in rows if row["proto"] == "6"] == [
        line["pkts_both"] for line in tcp
    ]
    assert len((out / "flows.tsv").read_text("utf-8").splitlines()) == len(lines)
    (header,) = {path.read_text().split("\n")[0] for path in out.glob("*.out/log_tcp_complete")}
    assert " pkts_both:" in header
    show = "import pyarrow.parquet as p, sys; print(p.read_schema(sys.argv[1]).field('pkts_both')"
    show += ".metadata)"
    assert "packets of both sides" in python(tree, "-c", show, str(out / "tcp.parquet"))


def test_the_column_is_in_the_schema_and_in_the_page(tree: Path) -> None:
    show = "from zanon_net.output.schema import columns; print(columns()['pkts_both'].disclosure)"
    assert python(tree, "-c", show) == "EXACT\n"
    python(tree, "tests/support/column_docs.py")
    page = (tree / "docs" / "reference" / "columns.md").read_text("utf-8")
    assert "| `pkts_both` | uint64 | | packets of both sides | blank |" in page


@pytest.mark.parametrize(
    "row", [NEW_COLUMN.replace("EXACT, ", ""), NEW_COLUMN.replace("EXACT", "")]
)
def test_a_row_without_a_class_does_not_compile(tree: Path, tmp_path: Path, row: str) -> None:
    shutil.copytree(tree / "csrc", tmp_path / "csrc")
    table = tmp_path / "csrc" / "release" / "columns.h"
    check = ["gcc", *CFLAGS, "-fsyntax-only", "csrc/release/disclosure.c"]
    output_of(check, cwd=tmp_path)
    table.write_text(table.read_text("utf-8").replace(NEW_COLUMN, row), encoding="utf-8")
    output_of(check, code=1, cwd=tmp_path)
