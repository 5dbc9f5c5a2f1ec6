# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What documents name is there: files and headings that they link to, and options of commands."""

import re
from pathlib import Path

import click
import pytest
from support.paths import ROOT

from zanon_net.cli.command import cli

pytestmark = pytest.mark.source

DOCUMENTS = sorted((*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("docs/*.md")))
FOR_USERS = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OF_OTHERS = {
    *("--long",),  # zstd
    *("--cflags", "--libs"),  # pkg-config
    *("--system", "--no-create-home", "--now"),  # useradd, systemctl
    *("--truth", "--root", "--flow-key", "--cmd"),  # the scorer of conformance.md
    "--raw",  # bench/tstat_compare.py
}


def name_of(document: Path) -> str:
    """Its path below the root, to name a test."""
    return str(document.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub writes them in addresses."""
    text = CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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


def test_every_page_is_linked() -> None:
    linked = {
        (document.parent / link.partition("#")[0]).resolve()
        for document in DOCUMENTS
        for link in LINK.findall(document.read_text(encoding="utf-8"))
    }
    assert set(ROOT.glob("docs/*.md")) <= linked


def options(command: click.Command) -> set[str]:
    """The long options of a command and of those below it."""
    found = {name for parameter in command.params for name in parameter.opts}
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        found |= options(below)
    return found


@pytest.mark.parametrize("document", FOR_USERS, ids=name_of)
def test_options_that_documents_name_exist(document: Path) -> None:
    named = set(OPTION.findall(document.read_text(encoding="utf-8")))
    assert named <= options(cli) | OF_OTHERS | {"--help", "--version"}
