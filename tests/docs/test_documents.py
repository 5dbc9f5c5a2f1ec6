# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The documents: files, headings and options that they name exist, and no merge left marks."""

import re
import subprocess
import sys
from functools import cache
from itertools import count
from pathlib import Path

import click
import pytest
from support.every_command import commands_of
from support.examples import each
from support.paths import ROOT

from zanon_net.cli.entry import cli

pytestmark = pytest.mark.source

FOLDERS = ("bench", "csrc", "docs", "examples", "packaging", "pcaps", "tests", "zanon_net")
DOCUMENTS = sorted(
    (*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")))
)
INDEX = ROOT / "docs" / "README.md"
KINDS = ("tutorial", "howto", "reference", "explanation")
PAGES = sorted(set(ROOT.glob("docs/**/*.md")) - {INDEX})
NOTEBOOKS = ROOT.glob("docs/notebooks/*.ipynb")
FOR_USERS = [ROOT / "README.md", *PAGES]
HISTORY = ROOT / "bench" / "tried.md"  # what it names may be gone
PRESENT = [page for page in DOCUMENTS if page != HISTORY]
PATH = re.compile(r"`((?:csrc|zanon_net|tests|bench|scripts|examples|packaging)/[\w./*-]+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(?:\w+::)?(\w+)`")
C_NAME = re.compile(r"\b(?:zn|ZN)_\w+(?<!_)")
DIFF = re.compile(r"^```diff\n.*?^```$", re.DOTALL | re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"^- \[[^]]+\]\(([^)\s]+)\)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OF_OTHERS = {
    *("--long",),  # zstd
    *("--cflags", "--libs"),  # pkg-config
    *("--system", "--no-create-home", "--now"),  # useradd, systemctl
    *("--truth", "--root", "--flow-key", "--cmd"),  # the scorer of conformance.md
    "--collector",  # node_exporter, in front of a dot
    *("--rm", "--userns", "--network", "--cap-add", "--security-opt"),  # podman
    "--raw",  # bench/tstat_compare.py
}


def name_of(document: Path) -> str:
    """Its path below the root, to name a test."""
    return str(document.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub writes them in addresses."""
    text = CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\]\([^)]*\)", "", heading).lower()  # of a link, its text
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = (f"{anchor}-{number}" for number in count(1))
        found.add(anchor if anchor not in found else next(a for a in again if a not in found))
    return found


@each("document", DOCUMENTS)
def test_links_lead_somewhere(document: Path) -> None:
    text = CODE_BLOCK.sub("", document.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if link.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_the_index_has_every_page_once() -> None:
    links = LISTED.findall(INDEX.read_text(encoding="utf-8"))
    listed = sorted((INDEX.parent / link).resolve() for link in links if "../" not in link)
    assert listed == sorted([*PAGES, *NOTEBOOKS])


def test_every_page_is_of_one_kind() -> None:
    assert {page.parent.relative_to(INDEX.parent).as_posix() for page in PAGES} <= set(KINDS)


@each("document", DOCUMENTS)
def test_documents_hold_no_marks_of_a_merge(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert not re.findall(r"^(?:<{7}|>{7}) .*", text, re.MULTILINE)


@pytest.mark.parametrize("document", PRESENT, ids=name_of)
def test_sources_that_documents_name_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path in PATH.findall(text):
        bare = path.rstrip("/")
        assert [*ROOT.glob(bare), *ROOT.glob(f"{bare}.*")], f"{path}: no such file"
    for path, test in TEST.findall(text):
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{path}::{test}: no such test"
    text = DIFF.sub("", text)  # a diff names what it adds
    assert set(C_NAME.findall(text)) <= c_names()


@cache
def c_names() -> set[str]:
    """The names of the C sources that begin with zn_ or ZN_."""
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "csrc").rglob("*.[ch]"))
    return set(re.findall(r"\bzn_\w+", sources, re.IGNORECASE))


def test_threats_have_a_state() -> None:
    """Each of the 24 threats has one row, and what is prevented or limited names a test."""
    page = (ROOT / "docs" / "explanation" / "threats.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| T")]
    assert sorted(int(row[0].removeprefix("| T")) for row in rows) == list(range(1, 25))
    for number, _attack, state, shown, _setting in rows:
        assert state.startswith(("prevented", "limited", "open")), number
        assert "`tests/" in shown or state == "open", number


@pytest.mark.parametrize("name", ["draw_floors.py", "draw_demo.py"])
def test_pictures_are_drawn_from_these_sources(name: str) -> None:
    script = ROOT / "scripts" / name
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def options(command: click.Command) -> set[str]:
    """The long options of a command and of those below it."""
    found = {name for parameter in command.params for name in parameter.opts}
    for below in commands_of(command).values() if isinstance(command, click.Group) else ():
        found |= options(below)
    return found


@each("document", FOR_USERS)
def test_options_that_documents_name_exist(document: Path) -> None:
    named = set(OPTION.findall(document.read_text(encoding="utf-8")))
    assert named <= options(cli) | OF_OTHERS | {"--help", "--version"}
