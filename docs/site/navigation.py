# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the side bar from the chapters of docs/README.md, with the titles of its links."""

import re
from collections.abc import Iterable, Iterator

from sphinx.application import Sphinx

CHAPTER = re.compile(r"^## ", re.MULTILINE)
PAGE = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\.(?:md|ipynb)\)", re.MULTILINE)
OF_THE_SITE = ["Python: every public name <site/python>", "C: the two headers <site/c>"]


def chapters(index: str) -> Iterator[tuple[str, list[str]]]:
    """Returns the headings of the index, each with the titles and pages of its list."""
    for chapter in CHAPTER.split(index)[1:]:
        heading, _, text = chapter.partition("\n")
        yield heading, [f"{title} <{page}>" for title, page in PAGE.findall(text)]


def toctree(caption: str, pages: Iterable[str]) -> str:
    """Returns Sphinx's directive for a part of the side bar."""
    lines = ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"]
    return "\n\n" + "\n".join(lines) + "\n"


def add_to_index(app: Sphinx, docname: str, source: list[str]) -> None:
    """Appends the side bar to the text of the index. Sphinx warns of a page without an entry."""
    if docname != app.config.root_doc:
        return
    for heading, titles in [*chapters(source[0]), ("Programming", OF_THE_SITE)]:
        source[0] += toctree(heading, titles)


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the handler with Sphinx."""
    app.connect("source-read", add_to_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
