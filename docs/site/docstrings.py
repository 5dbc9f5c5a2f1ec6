# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Docstrings of the package as reStructuredText, and public names wherever types mention them.

In a docstring a paragraph that begins with `name: ` or `name, name: ` describes parameters, or
fields of a class.
"""

import re
from collections.abc import Iterator
from itertools import groupby

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import zanon_net
from zanon_net import microdata, model, parse

ENTRY = re.compile(r"(?:^|(?<=[.;] )|(?<=[.;]\n))((?:[a-z]\w*, )*[a-z]\w*):\s", re.MULTILINE)
PAGE = re.compile(r"\bdocs/([\w/]+)\.md\b")
PACKAGES = (zanon_net, microdata, model, parse)


def described(paragraph: str) -> Iterator[str]:
    """A paragraph about parameters as a definition list, any other as it is."""
    if not ENTRY.match(paragraph):
        yield paragraph
        return
    for names, text in zip(*[iter(ENTRY.split(paragraph)[1:])] * 2, strict=True):
        yield ", ".join(f"``{name}``" for name in names.split(", "))
        yield "    " + " ".join(text.split())
        yield ""


def as_restructured_text(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Sphinx's event for a docstring, whose lines are changed in place."""
    changed: list[str] = []
    for is_blank, group in groupby(lines, lambda line: not line.strip()):
        paragraph = "\n".join(group)
        changed += [""] if is_blank else "\n".join(described(paragraph)).split("\n")
    lines[:] = [PAGE.sub(r":doc:`/docs/\1`", line) for line in changed]


def public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contents: nodes.Node
) -> nodes.Node | None:
    """A link to a public name where a type names the module that defines it."""
    name = node.get("reftarget", "").rpartition(".")[2]
    for package in PACKAGES:
        if node.get("refdomain") == "py" and name in getattr(package, "__all__", ()):
            target = f"{package.__name__}.{name}"
            if target != node["reftarget"]:
                domain = env.domains.python_domain
                here = node["refdoc"]
                return domain.resolve_xref(env, here, app.builder, "obj", target, node, contents)
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Tells Sphinx of the handlers."""
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.connect("missing-reference", public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
