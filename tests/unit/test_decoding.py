# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Each link type and header that is decoded, and no other, has a name, a line in the documents and
a frame to try it on."""

import re

import pytest
from frames.link import LINKS
from frames.tunnel import TUNNELS
from support.decode import link_types
from support.paths import ROOT

from zanon_net import _core
from zanon_net.pipeline.link_types import LINK_TYPES

pytestmark = pytest.mark.source

COUNTERS = {name for name, group, _text in _core.STAT_INFO if group == "encapsulation"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of docs/reference/decoding.md."""
    page = ROOT / "docs" / "reference" / "decoding.md"
    text = page.read_text("utf-8").partition(f"## {heading}\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_link_type_has_a_frame() -> None:
    assert {case.link for case in LINKS.values()} == set(link_types())


def test_each_encapsulation_has_a_frame() -> None:
    seen = " ".join(case.seen for case in (LINKS | TUNNELS).values()).split()
    assert {f"in_{name}" for name in seen} == COUNTERS


def test_each_link_type_is_documented_by_its_name() -> None:
    numbers: set[int] = set()
    for number_cell, name_cell, _how in rows("Link types"):
        of_row = [int(number) for number in number_cell.split(",")]
        numbers |= set(of_row)
        names = [LINK_TYPES[number].partition("_1")[0] for number in of_row]
        assert all(name in name_cell for name in names), name_cell
    assert numbers == set(link_types())


def test_each_encapsulation_is_documented() -> None:
    documented = [re.findall(r"`(in_\w+)`", row[0]) for row in rows("Encapsulations")]
    assert {name for names in documented for name in names} == COUNTERS
    assert sum(map(len, documented)) == len(COUNTERS)
