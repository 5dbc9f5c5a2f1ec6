# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Engines with one wrong line, whose broken promise the raw mode of the audit finds."""

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.c_build import run as output_of
from support.cli import DEMO
from support.core_copy import CFLAGS, compile_objects, link_core, python
from support.paths import ROOT
from support.shared import made_once

from zanon_net.audit.raw.check import check_files, read_captures

pytestmark = [
    pytest.mark.source,
    pytest.mark.slow,
    pytest.mark.usefixtures("needs_tshark"),
]
HEAD = 24  # bytes of a pcap's header
LATE_S = 40 * 60


@dataclass(frozen=True)
class Mutant:
    """A line of a file below csrc, its wrong form, and the check that finds the violations.

    late: true if some packets of the capture are late. options: of the run.
    """

    file: str
    line: str
    wrong: str
    check: str
    late: bool = False
    options: tuple[str, ...] = ()


MUTANTS = {
    "one user too few": Mutant("anonymity/ztable.c", ".z = z,", ".z = z > 2 ? z - 1 : z,", "names"),
    "a window twice as long": Mutant(
        "anonymity/ztable.c", ".window_ns = window_ns,", ".window_ns = 2 * window_ns,", "names"
    ),
    "flows in place of users": Mutant(
        "release/gate.c",
        "    return cut;",
        "    cut.byte[8] ^= (uint8_t)f->tuple.port[f->client]; return cut;",
        "names",
    ),
    "the exact record of a suppressed flow": Mutant(
        "release/flow_record.c",
        "c.withheld = !roles->release_all && has_withheld(g, f);",
        "c.withheld = false && has_withheld(g, f);",
        "coarse",
    ),
    "releases a nanosecond late": Mutant(
        "release/gate.c", "zn_policy_time(v->t_ns,", "zn_policy_time(v->t_ns + 1,", "names"
    ),
    "a server below z": Mutant(
        "release/gate.c",
        "release ? ZN_ADDR_RELEASED : ZN_ADDR_SUPPRESSED;",
        "ZN_ADDR_RELEASED;",
        "addresses",
    ),
    "labels that keep votes for published names": Mutant(
        "anonymity/levels.c",
        "(void)zn_vote_table_withdraw(table_of(l, above), label, level, tag);",
        "(void)tag;",
        "names",
        options=("--levels", "domain"),
    ),
    "labels that count users of published names": Mutant(
        "anonymity/levels.c",
        "c.voting = (answer & ZN_ANSWER_MARKED) == 0;",
        "c.voting = true;",
        "names",
        options=("--levels", "domain"),
    ),
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory, c_library: Path) -> dict[str, Path]:
    """The objects of the engine without a change."""

    def make(folder: Path) -> None:
        found = compile_objects(ROOT, c_library, folder)
        (folder / "objects.json").write_text(json.dumps({k: str(v) for k, v in found.items()}))

    folder = made_once(tmp_path_factory, "mutants", make)
    found = json.loads((folder / "objects.json").read_text())
    return {source: Path(path) for source, path in found.items()}


def late(capture: Path) -> bytes:
    """A capture in which a tenth of the packets has a time before the packets around it."""
    data, at, rng = bytearray(capture.read_bytes()), HEAD, random.Random(1)
    while at < len(data):
        seconds = int.from_bytes(data[at : at + 4], "little")
        if rng.random() < 0.1:
            data[at : at + 4] = (seconds - LATE_S).to_bytes(4, "little")
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return bytes(data)


def built(mutant: Mutant | None, objects: dict[str, Path], tree: Path) -> None:
    """Makes a copy of the package with the engine of a mutant; None: without a change."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "zanon_net", tree / "zanon_net", ignore=ignored)
    if mutant is not None:
        text = (ROOT / "csrc" / mutant.file).read_text("utf-8")
        assert text.count(mutant.line) == 1
        source, target = tree / "mutant.c", tree / "mutant.o"
        source.write_text(text.replace(mutant.line, mutant.wrong))
        output_of(["gcc", *CFLAGS, "-c", str(source), "-o", str(target)], cwd=ROOT)
        objects = objects | {mutant.file: target}
    link_core(tree, objects)


@pytest.mark.family(0)
@pytest.mark.parametrize("name", ["none", "none, late packets", *MUTANTS])
def test_a_mutant_is_found(name: str, objects: dict[str, Path], tmp_path: Path) -> None:
    mutant = MUTANTS.get(name)
    built(mutant, objects, tmp_path)
    capture, out = tmp_path / "capture.pcap", tmp_path / "out"
    is_late = name == "none, late packets" or (mutant is not None and mutant.late)
    capture.write_bytes(late(DEMO) if is_late else DEMO.read_bytes())
    settings = ["--z", "3", "--window", "1h" if is_late else "10m", "--format", "csv"]
    settings += ["--format", "observations", "-q", *(mutant.options if mutant else ())]
    python(tmp_path, "-m", "zanon_net", "run", str(capture), "--out", str(out), *settings)
    manifest = json.loads((out / "manifest.json").read_bytes())
    found = {
        one.check
        for one in check_files(out, manifest, read_captures(manifest, [capture])).violations
    }
    if mutant is None:
        assert found == set()
    else:
        assert mutant.check in found
