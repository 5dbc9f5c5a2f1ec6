# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Docstrings and signatures of the package for Sphinx.

In a docstring a paragraph that begins with `name: ` or `name, name: ` describes parameters, or
fields of a class.
"""

import re
from collections.abc import Iterator
from itertools import groupby

import numpy.typing as npt
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import stringify_annotation

import zanon_net
from zanon_net import microdata, model, parse

ENTRY = re.compile(r"(?:^|(?<=[.;] )|(?<=[.;]\n))((?:[a-z]\w*, )*[a-z]\w*):\s", re.MULTILINE)
OUTCOME = re.compile(r"(?<=\.)\s(?=(?:Returns|Raises) )")  # what follows is about the whole
PAGE = re.compile(r"\bdocs/([\w/]+)\.md\b")
ARRAY_LIKE = stringify_annotation(npt.ArrayLike, "smart")
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([\w.~]+)\]\]")
PACKAGES = (zanon_net, microdata, model, parse)


def described(paragraph: str) -> Iterator[str]:
    """A paragraph about parameters as a definition list, any other as it is."""
    if not ENTRY.match(paragraph):
        yield paragraph
        return
    entries, *outcome = OUTCOME.split(paragraph, maxsplit=1)
    for names, text in zip(*[iter(ENTRY.split(entries)[1:])] * 2, strict=True):
        yield ", ".join(f"``{name}``" for name in names.split(", "))
        yield "    " + " ".join(text.split())
        yield ""
    yield from outcome


def as_restructured_text(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Sphinx's event for a docstring, whose lines are changed in place."""
    changed: list[str] = []
    for is_blank, group in groupby(lines, lambda line: not line.strip()):
        paragraph = "\n".join(group)
        changed += [""] if is_blank else "\n".join(described(paragraph)).split("\n")
    lines[:] = [PAGE.sub(r":doc:`/docs/\1`", line) for line in changed]


def shortened(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """A signature with NumPy's names for its types, and without the self that Cython writes."""
    texts = (signature, returned)
    texts = (text and text.replace(ARRAY_LIKE, "~numpy.typing.ArrayLike") for text in texts)
    signature, returned = (text and ARRAY.sub(r"~numpy.typing.NDArray[\1]", text) for text in texts)
    return signature and re.sub(r"^\(self(, )?", "(", signature), returned


def is_left_out(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leaves out the fields of named tuples, which the docstrings of the tuples describe."""
    return True if type(obj).__name__ == "_tuplegetter" else None


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
    app.connect("autodoc-process-signature", shortened)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("missing-reference", public_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
