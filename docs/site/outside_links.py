# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""outside-links.txt beside the pages: every link that leaves the site, for somebody to look at.

Nothing is fetched, so the build needs no network and fails for nobody else's server.
"""

from collections import defaultdict

from docutils import nodes
from sphinx.application import Sphinx

LIST = "outside-links.txt"
OUTSIDE = ("http://", "https://", "mailto:")


def write_list(app: Sphinx, error: Exception | None) -> None:
    """Writes a line for each link, with the pages that it is on."""
    if error is not None:
        return
    pages = defaultdict(set)
    for page in app.env.found_docs:
        for link in app.env.get_doctree(page).findall(nodes.reference):
            if link.get("refuri", "").startswith(OUTSIDE):
                pages[link["refuri"]].add(page)
    lines = (f"{link} {' '.join(sorted(pages[link]))}\n" for link in sorted(pages))
    (app.outdir / LIST).write_text("".join(lines), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tells Sphinx of the handler."""
    app.connect("build-finished", write_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
