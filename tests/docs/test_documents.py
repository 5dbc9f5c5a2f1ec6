# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The documents: files, headings and options that they name exist, and no merge left marks."""

import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import click
import pytest
from support.every_command import commands_of
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
FOR_USERS = [ROOT / "README.md", *PAGES]
HISTORY = ROOT / "bench" / "tried.md"  # what it names may be gone
PRESENT = [page for page in DOCUMENTS if page != HISTORY]
PATH = re.compile(r"`((?:csrc|zanon_net|tests|bench|scripts|examples|packaging)/[\w./*-]+)`")
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
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
    assert sorted((INDEX.parent / link).resolve() for link in links if "../" not in link) == PAGES


def test_every_page_is_of_one_kind() -> None:
    assert {page.parent.relative_to(INDEX.parent).as_posix() for page in PAGES} <= set(KINDS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_documents_hold_no_marks_of_a_merge(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert not re.findall(r"^(?:<{7}|>{7}) .*", text, re.MULTILINE)


@pytest.mark.parametrize("document", PRESENT, ids=name_of)
def test_sources_that_documents_name_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for path in PATH.findall(text):
        bare = path.rstrip("/")
        assert [*ROOT.glob(bare), *ROOT.glob(f"{bare}.*")], f"{path}: no such file"
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "csrc").rglob("*.[ch]"))
    defined = set(re.findall(r"\bzn_\w+", sources, re.IGNORECASE))
    text = DIFF.sub("", text)  # a diff names what it adds
    assert set(C_NAME.findall(text)) <= defined


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


@pytest.mark.parametrize("document", FOR_USERS, ids=name_of)
def test_options_that_documents_name_exist(document: Path) -> None:
    named = set(OPTION.findall(document.read_text(encoding="utf-8")))
    assert named <= options(cli) | OF_OTHERS | {"--help", "--version"}
