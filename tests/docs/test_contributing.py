# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""All diffs of CONTRIBUTING.md together, in one copy of the tree: each addition works."""

import csv
import json
import re
import shutil
from pathlib import Path, PurePath

import pytest
from support.c_build import run as output_of
from support.core_copy import CFLAGS, compile_objects, link_core, python
from support.diffs import apply, documented
from support.packets import CLIENT, RST, SECOND, START, Tcp, user
from support.parts import capture_of
from support.paths import ROOT
from support.shared import made_once

pytestmark = [pytest.mark.source, pytest.mark.slow]

PLACES = {
    "Add a column": 3,
    "Add a counter": 2,
    "Add a format": 3,
    "Add an analyzer": 4,
    "Add an attribute": 3,
    "Add an option": 2,
    "Add a command": 2,
}
"""The number of places of each section; a header and its C file are one place."""
STRICT = ["-Wall", "-Wextra", "-Werror", "-DZN_DEBUG", "-fsyntax-only"]
NEW_COLUMN = 'X("pkts_both", NUMBER, U64, "", NULL, packets_both, EXACT, '
FOLDERS = ("csrc", "zanon_net", "docs", "pcaps", "scripts", "tests/support")
FILES = ("pyproject.toml", "tests/conftest.py", "tests/unit/test_config.py")
COMMAND = ("-m", "zanon_net")
DAY_NS = 86_400 * 10**9


def build(tree: Path, library: Path) -> None:
    """Makes a copy of the tree with all diffs, and runs the scripts that each section names."""
    for folder in FOLDERS:
        skip = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / folder, tree / folder, ignore=skip)
    for file in FILES:
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, tree / file)
    for section in PLACES:
        apply(documented(section), tree)
    python(tree, "scripts/make_settings.py")
    link_core(tree, compile_objects(tree, library, tree / "obj"))
    python(tree, "tests/support/reference_docs.py")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, c_library: Path) -> Path:
    return made_once(tmp_path_factory, "contributing", lambda tree: build(tree, c_library))


def test_the_page_states_the_places_of_each_addition() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(PLACES) == set(re.findall(r"^## (Add an? .*)$", page, re.M)) - {"Add a part"}
    for section, count in PLACES.items():
        changed = re.findall(r"^\+\+\+ b/(.*)$", documented(section), re.M)
        assert len({PurePath(name).with_suffix("") for name in changed}) == count, section
        anchor = section.lower().replace(" ", "-")
        assert re.search(rf"\(#{anchor}\) \| {count} \|", page), section


def test_new_c_has_no_warning(tree: Path) -> None:
    new = [
        name
        for section in PLACES
        for name in re.findall(r"^--- /dev/null\n\+\+\+ b/(.*\.c)$", documented(section), re.M)
    ]
    assert len(new) == 4
    output_of(["gcc", *CFLAGS, *STRICT, *new], cwd=tree)


def test_the_column_is_in_every_format_and_blank_in_coarse_records(
    tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    formats = [f"--format={name}" for name in ("tstat", "csv", "jsonl", "tsv", "parquet")]
    run = [*COMMAND, "run", "pcaps/demo.pcap", "--out", str(out), "-q", "--z", "3"]
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
    assert "packets of both sides" in python(tree, "-c", show, str(out / "flows" / "tcp.parquet"))


def test_the_column_is_in_the_schema_and_in_the_page(tree: Path) -> None:
    show = "from zanon_net.output.schema import columns; print(columns()['pkts_both'].disclosure)"
    assert python(tree, "-c", show) == "EXACT\n"
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


NAME = b"hail.example.org"
HAIL = b"\x02H" + bytes([len(NAME)]) + NAME
NOTHING = b"\xf7" * 40  # what no analyzer begins with
ANALYZER_CASES = {
    "first": [HAIL],
    "two segments": [HAIL[:2], HAIL[2:]],
    "second": [NOTHING, HAIL],
    "tenth": [NOTHING] * 9 + [HAIL],
}
RUN_EACH = """
import json, sys, zanon_net
for capture in sys.argv[1:]:
    out = capture + ".out"
    zanon_net.run(capture, out=out, z=2, format="observations")
    manifest = json.load(open(out + "/manifest.json"))
    names = [json.loads(line)["name"] for line in open(out + "/observations.jsonl")]
    counters = manifest["counters"]
    print(json.dumps([names, counters["flow"]["flows_reset"], counters["name"]["names_hail"]]))
"""


def test_the_analyzer_sees_each_segment_and_the_counters_count(tree: Path, tmp_path: Path) -> None:
    """The fast path skips no segment that the new analyzer needs."""
    captures = []
    for number, payloads in enumerate(ANALYZER_CASES.values()):
        frames = []
        for n in range(2):
            talk = Tcp(user(n), t_ns=START + n * SECOND).handshake()
            for payload in payloads:
                talk.say(payload)
            frames += (talk.close() if n == 0 else talk.segment(CLIENT, RST)).frames
        captures.append(tmp_path / f"{number}.pcap")
        captures[-1].write_bytes(capture_of(frames))
    lines = python(tree, "-c", RUN_EACH, *map(str, captures)).splitlines()
    found = dict(zip(ANALYZER_CASES, map(json.loads, lines), strict=True))
    assert found == {case: [[NAME.decode()], 1, 2] for case in ANALYZER_CASES}


def test_the_counters_are_in_the_page(tree: Path) -> None:
    page = (tree / "docs" / "reference" / "output.md").read_text("utf-8")
    assert "\n| `flow` | `flows_reset` | TCP flows that a RST closed |\n" in page
    assert "\n| `name` | `names_hail` | names seen in HAIL |\n" in page


def test_the_attribute_has_a_column_and_counts(tree: Path, tmp_path: Path) -> None:
    run = [*COMMAND, "run", "pcaps/demo.pcap", "--out", str(tmp_path / "out"), "-q", "--z", "3"]
    formats = ("--format", "jsonl", "--format", "observations")
    python(tree, *run, "--attributes", "suites", *formats)
    lines = (tmp_path / "out" / "flows.jsonl").read_text("utf-8").splitlines()
    values = {json.loads(line)["suites"] for line in lines}
    assert any(value is not None and value.isdigit() for value in values)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    observations = (tmp_path / "out" / "observations.jsonl").read_text("utf-8")
    released = observations.count('"namespace":"suites"')
    assert manifest["attributes"]["suites"]["released"] == released > 0
    page = (tree / "docs" / "reference" / "columns.md").read_text("utf-8")
    assert "| `suites` | text | | number of cipher suites" in page


def test_the_option_sets_what_the_file_sets(tree: Path, tmp_path: Path) -> None:
    def retention_of(folder: str) -> int:
        manifest = json.loads((tmp_path / folder / "manifest.json").read_text("utf-8"))
        return int(manifest["configuration"]["output"]["retention"])

    page = (tree / "docs" / "reference" / "configuration.md").read_text("utf-8")
    assert "| `retention` | no limit | 1ns to 3650d | for how long" in page
    assert "--retention DURATION" in python(tree, *COMMAND, "run", "--help-all")
    show = "from zanon_net.config.keywords import RunSettings; print(RunSettings.__annotations__)"
    assert "'retention': int | str | None," in python(tree, "-c", show)
    assert '\n# retention = "90d"\n' in python(tree, *COMMAND, "config")
    settings = tmp_path / "zanon.toml"
    settings.write_text('[output]\nretention = "30d"\n')
    run = (*COMMAND, "run", "pcaps/demo.pcap", "-q", "--config", str(settings))
    python(tree, *run, "--out", str(tmp_path / "file"))
    python(tree, *run, "--out", str(tmp_path / "option"), "--retention", "7d")
    assert (retention_of("file"), retention_of("option")) == (30 * DAY_NS, 7 * DAY_NS)
    inner = ("-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}")  # as test_time_limits.py
    python(tree, "-m", "pytest", "-q", *inner, "tests/unit/test_config.py")


def test_the_command_runs_and_is_listed(tree: Path, tmp_path: Path) -> None:
    never = tmp_path / "never.txt"
    never.write_text("*.Example.ORG\n")
    assert python(tree, *COMMAND, "suffixes", str(never)) == "example.org\n"
    assert "suffixes  Print the suffixes in a file of --never" in " ".join(
        re.sub(r" {2,}", "  ", line) for line in python(tree, *COMMAND, "--help").splitlines()
    )
