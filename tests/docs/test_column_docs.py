# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/columns.md has every column, and a member of a record one class."""

import re
from collections import defaultdict

import pytest
from support.column_docs import PAGE, page
from support.paths import ROOT

from zanon_net._core import columns

pytestmark = pytest.mark.source

CLASSES = {"ALWAYS", "ROUNDED", "EXACT", "CLIENT", "RELEASED", "OWN"}


def test_the_page_is_made_of_the_table() -> None:
    made = "\n".join(page())
    assert PAGE.read_text("utf-8") == made, "python tests/support/column_docs.py makes the page"


def test_every_class_is_one_of_those_described() -> None:
    for column in columns():
        assert column.disclosure in CLASSES or re.fullmatch(r"COMPUTED\(\w+\)", column.disclosure)


def test_columns_of_a_name_say_the_same() -> None:
    by_name = defaultdict(set)
    for column in columns():
        if column.type is not None:
            about = (column.type, column.unit, column.disclosure, column.description)
            by_name[column.name].add(about)
    assert {name: about for name, about in by_name.items() if len(about) != 1} == {}


def test_columns_of_a_member_have_one_class() -> None:
    """Else one of them would say what another withholds."""
    text = (ROOT / "csrc" / "release" / "columns.h").read_text("utf-8").replace("\\\n", "")
    classes = defaultdict(set)
    for member, disclosure in re.findall(
        r'(?:NULL|"[^"]*"),\s*([\w.\[\]]+),\s*([A-Z]+(?:\(\w+\))?),\s*(?:#side\s*)?"', text
    ):
        classes[member].add(disclosure)
    assert len(classes) > 70
    assert {m: c for m, c in classes.items() if len(c) != 1} == {}
