# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hierarchies against trees of tuples, and what is made of numbers against fractions."""

import random
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracle.hierarchy import Tree, contains, interval
from support.hierarchies import LABELS, as_file, lines

from zanon_net._core import Taxonomy, intervals
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata import Hierarchy, Intervals, Prefix, Round

DIGITS = st.text("0123456789", min_size=1, max_size=25)
NUMBERS = st.builds(
    lambda sign, head, tail, exponent: sign + head + tail + exponent,
    st.sampled_from(["", "-"]),
    DIGITS,
    st.one_of(st.just(""), DIGITS.map(lambda digits: "." + digits)),
    st.one_of(st.just(""), st.integers(-45, 45).map(lambda n: f"e{n}")),
)
WIDTHS = st.one_of(
    st.integers(1, 10**6).map(str),
    st.builds(lambda n, d: str(Decimal(n).scaleb(-d)), st.integers(1, 10**6), st.integers(1, 9)),
)


@given(lines(), st.booleans())
def test_a_hierarchy_is_its_tree(rows: list[list[str]], in_order: bool) -> None:
    tree = Tree(rows, in_order=in_order)
    found = Hierarchy.from_lines(rows, in_order=in_order)
    assert found.labels == tuple(label or None for _level, label in tree.nodes)
    assert (found.leaves, found.nodes) == (len(rows), len(tree.nodes))
    assert found.level.tolist() == [level for level, _label in tree.nodes]
    assert found.leaves_below.tolist() == [tree.leaves_below(node) for node in tree.nodes]
    assert found.loss.tolist() == [float(tree.loss(node)) for node in tree.nodes]
    for number, node in enumerate(tree.nodes):
        parent = tree.number(tree.parent(node))
        assert found.parent[number] == (number if node[0] == tree.levels - 1 else parent)
        for level in range(found.levels):
            assert found.ancestors[level, number] == tree.number(tree.ancestor(node, level))
    pairs = [(a, b) for a in tree.nodes for b in tree.nodes]
    common = found.common([tree.number(a) for a, _b in pairs], [tree.number(b) for _a, b in pairs])
    assert common.tolist() == [tree.number(tree.common(a, b)) for a, b in pairs]


@given(lines(), st.randoms(use_true_random=False), st.booleans(), st.sampled_from(";,|\t"))
def test_neither_the_order_of_lines_nor_how_they_are_written_changes_anything(
    rows: list[list[str]], shuffler: random.Random, quoted: bool, delimiter: str
) -> None:
    shuffled = rows[:]
    shuffler.shuffle(shuffled)
    one = Taxonomy([[label.encode() for label in row] for row in rows])
    other = Taxonomy.read(as_file(shuffled, delimiter, quoted=quoted), ord(delimiter))
    assert one.lines() == other.lines()
    assert one.labels() == other.labels()
    assert (one.ancestors() == other.ancestors()).all()


@given(lines(), st.lists(st.one_of(st.none(), LABELS)))
def test_values_are_found_whatever_holds_them(
    rows: list[list[str]], others: list[str | None]
) -> None:
    tree, found = Tree(rows), Hierarchy.from_lines(rows)
    values = [row[0] or None for row in rows] + others
    expected = [tree.find(value) for value in values]
    assert found.codes(values).tolist() == expected
    column = pa.array(values, pa.string())
    assert found.codes(column).tolist() == expected
    halves = pa.chunked_array([column[:3].dictionary_encode(), column[3:].dictionary_encode()])
    assert found.codes(halves).tolist() == expected
    assert found.codes(np.array(values, object)).tolist() == expected


@given(lines(), st.data())
def test_a_broken_line_is_named(rows: list[list[str]], data: st.DataObject) -> None:
    """Each kind of damage, anywhere below the first line."""
    assume(len(rows) > 1 and len(rows[0]) > 1)
    at = data.draw(st.integers(1, len(rows) - 1))
    broken = {
        "ragged": [*rows[at], "*"],
        "short": rows[at][:-1],
        "twice": [rows[0][0], *rows[at][1:]],
        "root": [*rows[at][:-1], "+"],
    }
    kind = data.draw(st.sampled_from(sorted(broken)))
    assume(kind != "root" or len(rows[0]) == 2)  # else a node has two parents, too
    damaged = [*rows[:at], broken[kind], *rows[at + 1 :]]
    with pytest.raises(FormatError, match=rf"^line {at + 1}\b"):
        Taxonomy.read(as_file(damaged, quoted=True))


@given(lines(levels=5), st.data())
def test_a_node_with_two_parents_is_named(rows: list[list[str]], data: st.DataObject) -> None:
    levels = len(rows[0])
    assume(levels > 2)
    level = data.draw(st.integers(1, levels - 2))
    first: dict[str, int] = {}
    again = [
        i for i, row in enumerate(rows) if first.setdefault(row[level], i) != i
    ]  # a node that has been there
    assume(again)
    at = data.draw(st.sampled_from(again))
    damaged = [row[:] for row in rows]
    damaged[at][level + 1] = "another" if level + 1 < levels - 1 else "+"
    with pytest.raises(FormatError, match=rf"^line {at + 1}\b") as caught:
        Taxonomy.read(as_file(damaged, quoted=True))
    if level + 1 < levels - 1:
        assert f"column {level + 2} groups" in str(caught.value)


@given(st.lists(st.one_of(NUMBERS, LABELS), max_size=20), WIDTHS, st.booleans())
@example(["0.3", "0.6", "0.29999999999999999999999999999999999999999999999"], "0.1", False)
@example(["-1." + "0" * 50 + "1", "-1." + "0" * 50, "1." + "9" * 60], "1", False)
@example(["1e400", "-1e400", "1e-400", "-1e-400", "1e99999999999999", "0e99"], "1", True)
def test_a_number_is_in_its_interval(texts: list[str], width: str, whole: bool) -> None:
    found, known = intervals([text.encode() for text in texts], float(width), whole)
    for text, number, is_number in zip(texts, found.tolist(), known.tolist(), strict=True):
        expected = interval(re.sub(r"e99999999999999$", "e999", text), width, whole=whole)
        assert is_number == (expected is not None), text
        if expected is not None:
            assert number == max(-(2**63), min(2**63 - 1, expected)), text


@given(
    st.lists(st.integers(-99, 99), min_size=1, max_size=6),
    st.integers(2, 40) | st.just(1),
    st.none() | st.integers(-120, 120),
    st.none() | st.integers(-120, 120),
    st.booleans(),
)
def test_what_whole_numbers_are_written_as_has_them(
    values: list[int], width: int, low: int | None, high: int | None, missing: bool
) -> None:
    assume(low is None or high is None or low <= high)
    column = pa.array([*values, *[None] * missing], pa.int64())
    check_round(Round(width, low, high).hierarchy(column), [*map(str, values)], column)


@given(
    st.lists(st.decimals(-5, 5, places=2), min_size=1, max_size=6),
    st.sampled_from([0.1, 0.25, 0.5, 2.0, 12.5]),
    st.none() | st.integers(-6, 0),
    st.none() | st.integers(0, 6),
)
def test_what_numbers_are_written_as_has_them(
    values: list[Decimal], width: float, low: int | None, high: int | None
) -> None:
    texts = [f"{value:f}" for value in values]
    column = pa.array(texts)
    check_round(Round(width, low, high).hierarchy(column), texts, column)


def check_round(made: Hierarchy, texts: list[str], column: pa.Array) -> None:
    """Each value lies in its label at each level, in one level's intervals only one does."""
    codes = made.codes(column)
    assert (codes >= 0).all()
    for text, code in zip(texts, codes.tolist(), strict=False):
        for level in range(made.levels):
            held = [
                node
                for node in np.flatnonzero(made.level == level).tolist()
                if made.labels[node] is not None and contains(made.labels[node] or "", text)
            ]
            assert held == [made.ancestors[level, code]]
    if column.null_count:
        assert made.labels[codes[-1]] is None


@given(
    st.lists(st.integers(-300, 300), min_size=1, max_size=20),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_intervals_nest_and_have_their_values(values: list[int], factors: list[int]) -> None:
    widths = [factors[0]]
    for factor in factors[1:]:
        widths.append(widths[-1] * (factor + 1))
    made = Intervals(widths).hierarchy(values)
    for value, code in zip(values, made.codes(values).tolist(), strict=True):
        assert made.labels[code] == str(value)
        for level in range(1, made.levels):
            assert contains(made.labels[made.ancestors[level, code]] or "", str(value))
    read = Taxonomy.read(made.to_bytes())
    assert read.labels() == made.taxonomy.labels()


def masked_label(value: str, kept: int, values: list[str]) -> str:
    """The first characters, and asterisks; one if their number would tell the length."""
    if len(value) < kept:
        return value
    is_even = len(set(map(len, values))) == 1
    return value[:kept] + "*" * (len(value) - kept if is_even else 1)


@given(
    st.lists(LABELS.filter(bool), max_size=15),
    st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True),
)
def test_prefixes_are_those_of_their_values(values: list[str], lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    made = Prefix([*lengths, 0]).hierarchy(values)
    for value, code in zip(values, made.codes(values).tolist(), strict=True):
        labels = [made.labels[node] for node in made.ancestors[:, code]]
        shorter = [n for n in lengths if n < max(map(len, values))]
        masked = [masked_label(value, n, values) for n in shorter]
        assert labels == [value, *masked, "*"]


def test_a_width_that_makes_too_many_intervals_is_refused() -> None:
    assert Round(7).hierarchy([0, 7 * 32_767]).leaves == 32_768
    with pytest.raises(ConfigError, match=r"^a width of 7 makes more than 32,768 intervals"):
        Round(7).hierarchy([0, 7 * 32_768])
