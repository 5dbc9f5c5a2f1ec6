# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The reference has every column and counter of the core, and a member of a record one class."""

import re
from collections import defaultdict

import pytest
from support.paths import ROOT
from support.reference_docs import OUTPUT_PAGE, PAGE, output_page, page

from zanon_net._core import columns

pytestmark = pytest.mark.source

MAKE = "python tests/support/reference_docs.py writes it"
CLASSES = {"ALWAYS", "ROUNDED", "EXACT", "CLIENT", "RELEASED", "OWN"}


def test_the_page_is_made_of_the_table() -> None:
    made = "\n".join(page())
    assert PAGE.read_text("utf-8") == made, MAKE


def test_the_table_of_counters_is_made_of_the_core() -> None:
    text = OUTPUT_PAGE.read_text("utf-8")
    assert text == output_page(text), MAKE


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
