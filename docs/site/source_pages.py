# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files of the repository that documents link to, such as examples, as pages of the site.

MyST takes a link to a file that is no page for a download, and warns where there is no such file.
"""

from collections.abc import Iterator
from html import escape
from typing import Any

from docutils import nodes
from pygments.lexers import find_lexer_class_for_filename
from sphinx import addnodes
from sphinx.application import Sphinx

BEFORE_DOWNLOADS_ARE_COLLECTED = 400


def link_to_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Replaces downloads by links to the pages that `pages` makes."""
    here = app.env.docname
    for download in list(doctree.findall(addnodes.download_reference)):
        path, _ = app.env.relfn2path(download["reftarget"])
        uri = app.builder.get_relative_uri(here, path)
        link = nodes.reference("", "", *download.children, internal=True, refuri=uri)
        link["source_file"] = path
        download.replace_self(link)


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file, at the file's place in the repository."""
    links = (
        link
        for page in app.env.found_docs
        for link in app.env.get_doctree(page).findall(nodes.reference)
    )
    for path in sorted({link["source_file"] for link in links if "source_file" in link}):
        lexer = find_lexer_class_for_filename(path)
        text = (app.srcdir / path).read_text(encoding="utf-8")
        language = lexer.aliases[0] if lexer else "none"
        block = app.builder.highlighter.highlight_block(text, language)
        body = f"<h1>{escape(path)}</h1>\n{block}"
        yield path, {"title": path, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tells Sphinx of the handlers."""
    app.connect("doctree-read", link_to_pages, BEFORE_DOWNLOADS_ARE_COLLECTED)
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
