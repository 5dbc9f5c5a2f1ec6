# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The side bar: the chapters of docs/README.md as they stand there, and then all other pages."""

import re
from collections.abc import Iterable, Iterator

from sphinx.application import Sphinx

CHAPTER = re.compile(r"^## ", re.MULTILINE)
PAGE = re.compile(r"\[([^\]]+)\]\(([^)#.]+)\.md\)")  # below docs/: links to the rest have dots
OF_THE_SITE = ["site/python", "site/c"]


def chapters(index: str) -> Iterator[tuple[str, list[str]]]:
    """The headings of the index, each with the pages that its list links to, by its titles."""
    for chapter in CHAPTER.split(index)[1:]:
        heading, _, text = chapter.partition("\n")
        yield heading, [f"{title} <{page}>" for title, page in PAGE.findall(text)]


def toctree(caption: str, pages: Iterable[str]) -> str:
    """Sphinx's directive for a part of the side bar."""
    lines = ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```"]
    return "\n\n" + "\n".join(lines) + "\n"


def add_to_index(app: Sphinx, docname: str, source: list[str]) -> None:
    """Appends the side bar to the text of the index, which has links for readers instead."""
    if docname != app.config.root_doc:
        return
    for heading, pages in list(chapters(source[0])):
        source[0] += toctree(heading, pages)
    source[0] += toctree("Interfaces", OF_THE_SITE)
    others = sorted(name for name in app.env.found_docs if not name.startswith("docs/"))
    source[0] += toctree("Repository", (f"/{name}" for name in others))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tells Sphinx of the handler."""
    app.connect("source-read", add_to_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
