# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hierarchies: their files, what is odd about them, and those that rules make."""

import datetime
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.examples import each
from support.ladders import ladder_of

from zanon_net import _core
from zanon_net._core import Taxonomy, intervals
from zanon_net.errors import CapacityError, ConfigError, FormatError, ZanonError
from zanon_net.microdata import Dates, Flat, Hierarchy, Intervals, Networks, Prefix, Round
from zanon_net.microdata.hierarchy import read_number, read_range

BROKEN = {
    "empty": (b"", "the hierarchy is empty"),
    "a mark alone": (b"\xef\xbb\xbf", "the hierarchy is empty"),
    "ragged": (b"a;x;*\nb;*\n", "line 2 has 2 columns, the first one has 3"),
    "twice": (b"a;*\nb;*\na;*\n", "line 3: its value has a line already"),
    "missing twice": (b";*\na;*\n;*\n", "line 3: its value has a line already"),
    "two parents": (
        b"a;x;p;*\nb;x;q;*\n",
        "line 2: column 3 groups what column 2 has in one group already",
    ),
    "two roots": (b"a;*\nb;+\n", "line 2: its last column is not that of the first line"),
    "no text": (b"a;*\n\xff;*\n", "line 2: not UTF-8"),
    "control": (b"a;*\nb\x07;*\n", "line 2: a control character"),
    "quote": (b'a;*\nb"b;*\n', "line 2: a quote or a line break in the wrong place"),
    "open quote": (b'a;*\n"b;*\n', "line 2: a quote or a line break in the wrong place"),
    "line break": (b'a;*\n"b\nc";*\n', "line 2: a line break in a value"),
    "empty line": (b"a;*\n\nb;*\n", "line 2: an empty line"),
}
DEEP = b";".join(b"%d" % level for level in range(65)) + b"\n"


def lines_of(made: Hierarchy) -> list[list[str | None]]:
    return [[made.labels[node] for node in line] for line in made.ancestors[:, : made.leaves].T]


@pytest.mark.parametrize(("data", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_none_is_refused_with_its_line(
    data: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "h.csv"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        Hierarchy.read(path)
    assert str(caught.value).startswith(f"h.csv: {problem}")


def test_too_many_lines_levels_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="line 1: a hierarchy has at most 64 columns"):
        Taxonomy.read(DEEP)
    many = b"".join(b"%d;*\n" % i for i in range(65_534))
    assert Taxonomy.read(many).nodes == 65_535
    with pytest.raises(CapacityError, match="at most 65535 nodes"):
        Taxonomy.read(many + b"one;*\n")
    with pytest.raises(CapacityError, match="at most 65535 lines"):
        Taxonomy.read(many + b"one;*\ntwo;*\n")
    with pytest.raises(CapacityError, match="at most 64 MiB"):
        Taxonomy.read(bytes((1 << 26) + 1))
    with pytest.raises(ZanonError, match="cannot be read: No such file"):
        Hierarchy.read(tmp_path / "none.csv")


def test_a_large_hierarchy_climbs_to_common_nodes() -> None:
    """Beyond 4,096 nodes there is no table of pairs."""
    leaves = 6_000
    lines = [[f"{i:05}", f"{i // 7}-", f"{i // 280}=", "*"] for i in range(leaves)]
    made = Hierarchy.from_lines(lines)
    assert made.taxonomy.memory_bytes < 2_000_000
    choose = random.Random(1)
    for _ in range(200):
        a, b = choose.randrange(leaves), choose.randrange(leaves)
        level = next(
            level for level in range(4) if made.ancestors[level, a] == made.ancestors[level, b]
        )
        assert made.common([a], [b]).tolist() == [made.ancestors[level, a]]


def test_a_middle_node_with_one_child_is_named_but_not_a_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_bytes(b"a;x;*\nb;x;*\n;;*\nc;y;*\n")
    assert Hierarchy.read(path).warnings == ("h.csv: line 4: a node with one child",)
    path.write_bytes(
        b"\xef\xbb\xbfEngland|Europa|*\r\nSpain|Europe|*\r\nItaly|Europe|*\r\nPeru|America|*\n"
    )
    read = Hierarchy.read(path, delimiter="|")
    assert read.warnings == ("h.csv: line 1: a node with one child, as 1 more",)
    assert read.codes(["England", "Peru", "Europa", None]).tolist() == [0, 2, -1, -1]


def test_a_hierarchy_is_written_read_copied_and_not_changed(tmp_path: Path) -> None:
    made = Hierarchy.from_lines([["a;b", 'say "x"', "*"], [None, " y", "*"], ["c", " y", "*"]])
    path = tmp_path / "h.csv"
    made.write(path)
    assert path.read_bytes() == b';" y";*\n"a;b";"say ""x""";*\nc;" y";*\n'
    assert lines_of(Hierarchy.read(path)) == lines_of(made)
    with pytest.raises(ConfigError, match="exists"):
        made.write(path)
    copy = pickle.loads(pickle.dumps(made))
    assert (copy.labels, copy.kind) == (made.labels, made.kind)
    with pytest.raises(ValueError, match="read-only"):
        made.parent[0] = 1
    with pytest.raises(ConfigError, match="a line break"):
        Hierarchy.from_lines([["a\nb", "*"]]).to_bytes()


def test_nodes_that_are_none_are_refused() -> None:
    made = Flat().hierarchy(["a", "b"])
    for nodes in ([-1], [3], [[0]]):
        with pytest.raises(ValueError, match="numbers of nodes"):
            made.common(nodes, nodes)
    with pytest.raises(ValueError, match="same length"):
        made.common([0], [0, 1])


ROUNDED = [
    (Round(10), [17, 23, 36, None], ["10-19", "20-29", "30-39", None]),
    (Round(1), [-2, 0, 37], ["-2", "0", "37"]),
    (Round(10), [-9, 9], ["[-10,0)", "0-9"]),
    (Round(10, high=90), [37, 90, 95, 200], ["30-39", "90+", "90+", "90+"]),
    (Round(10, low=20), [-5, 20, 29, 30], ["<30", "<30", "<30", "30-39"]),
    (Round(10, high=60), [70, 80], ["60+", "60+"]),
    (Round(0.5), [0.5, 0.99, 1], ["[0.5,1)", "[0.5,1)", "[1,1.5)"]),
    (Round(0.1), [0.3, 0.7], ["[0.3,0.4)", "[0.7,0.8)"]),
    (Round(10.0), [39.5], ["[30,40)"]),
    (Round(1e-15), ["0.000000000000001"], ["[0.000000000000001,0.000000000000002)"]),
]


@pytest.mark.parametrize(
    ("rule", "values", "written"), ROUNDED, ids=[str(row[0]) for row in ROUNDED]
)
def test_numbers_are_written_as_intervals_that_have_them(
    rule: Round, values: list[Any], written: list[str | None]
) -> None:
    made = rule.hierarchy(values)
    assert [made.labels[code] for code in made.codes(values)] == written


def test_levels_double_until_one_interval_is_left() -> None:
    assert lines_of(Round(10).hierarchy(range(20, 60))) == [
        ["20-29", "20-39", "0-39", "*"],
        ["30-39", "20-39", "0-39", "*"],
        ["40-49", "40-59", "40-79", "*"],
        ["50-59", "40-59", "40-79", "*"],
    ]
    assert lines_of(Round(10).hierarchy([5])) == [["0-9", "*"]]
    assert lines_of(Round(10).hierarchy([-5, 5, None])) == [
        ["[-10,0)", "*"],
        ["0-9", "*"],
        [None, "*"],
    ]
    assert lines_of(Round(10).hierarchy([])) == [[None, "*"]]


def test_a_stream_needs_both_ends_and_has_a_missing_value() -> None:
    made = Round(10, 0, 30).hierarchy(None)
    assert lines_of(made) == [
        ["<10", "<20", "*"],
        ["10-19", "<20", "*"],
        ["20-29", "20+", "*"],
        ["30+", "20+", "*"],
        [None, None, "*"],
    ]
    assert made.codes([-7, 25, 10**30, None, "x", 1.5, "1.0"]).tolist() == [0, 2, 3, 4, -1, -1, 0]
    assert lines_of(Round(10, 2, 5).hierarchy(None)) == [["*", "*"], [None, "*"]]
    for rule in (Round(10), Round(10, high=5), Round(10, low=5)):
        with pytest.raises(ConfigError, match="both ends"):
            rule.hierarchy(None)
    for other in (Prefix([3]), Intervals([5]), Dates(), Flat()):
        with pytest.raises(ConfigError, match="a stream needs a hierarchy's file"):
            other.hierarchy(None)


def test_what_is_no_number_of_a_column_is_in_no_interval() -> None:
    made = Round(10).hierarchy(["12", "x", "1.5", "1e1", "+3", " 4", "nan", "1_0"])
    assert lines_of(made) == [["10-19", "*"]]
    assert made.kind == "whole numbers"
    assert made.codes(["12", "x", "1.5", "1e1", "+3", " 4"]).tolist() == [0, -1, -1, 0, -1, -1]
    with pytest.raises(ConfigError, match="not one of its values is among the whole numbers"):
        Round(10).hierarchy(["x", "1.5"])
    for values in ([10**40], ["1e300"], [0, 10**40]):
        with pytest.raises(ConfigError, match="beyond what intervals"):
            Round(10).hierarchy(values)
    assert lines_of(Round(10, high=9).hierarchy([0, 10**40])) == [["0+", "*"]]


@each(
    "width", [0, -1, 2**53, 0.0, -0.5, float("nan"), float("inf"), 1e300, 1e-16, True, "10", None]
)
def test_impossible_widths_are_refused(width: Any) -> None:
    with pytest.raises(ConfigError, match=r"^width"):
        Round(width)
    if isinstance(width, float):
        with pytest.raises(ConfigError):
            intervals([b"1"], width)


@pytest.mark.parametrize(
    "ends", [(5, 4), (float("nan"), None), (None, float("inf")), ("0", None), (True, None)]
)
def test_impossible_ends_are_refused(ends: Any) -> None:
    with pytest.raises(ConfigError, match=r"^(low|high): "):
        Round(1, *ends)


def test_intervals_prefixes_dates_and_flat_columns() -> None:
    assert lines_of(Intervals([5, 10, 20]).hierarchy([37, -4, None])) == [
        [None, None, None, None, "*"],
        ["-4", "[-5,0)", "[-10,0)", "[-20,0)", "*"],
        ["37", "35-39", "30-39", "20-39", "*"],
    ]
    assert lines_of(Intervals([0.5]).hierarchy(["1.25"])) == [["1.25", "[1,1.5)", "*"]]
    assert lines_of(Prefix([5, 3, 2, 0]).hierarchy(["13053", "14850"])) == [
        ["13053", "130**", "13***", "*"],
        ["14850", "148**", "14***", "*"],
    ]
    assert lines_of(Prefix([3, 2]).hierarchy(["Nuernberg", "Nu", "Nuits", "N"])) == [
        ["N", "N", "N", "*"],
        ["Nu", "Nu", "Nu*", "*"],
        ["Nuernberg", "Nue*", "Nu*", "*"],
        ["Nuits", "Nui*", "Nu*", "*"],
    ]
    addresses = ["10.0.1.7", "10.0.101.7", "2001:db8::1", None]
    assert lines_of(Networks([48, 24, 16]).hierarchy(addresses)) == [
        [None, None, None, None, "*"],
        ["10.0.1.7", "10.0.1.7", "10.0.1.0/24", "10.0.0.0/16", "*"],
        ["10.0.101.7", "10.0.101.7", "10.0.101.0/24", "10.0.0.0/16", "*"],
        ["2001:db8::1", "2001:db8::/48", "2001:d00::/24", "2001::/16", "*"],
    ]
    days = pa.array([datetime.date(2024, 3, 5), None], pa.date32())
    assert lines_of(Dates(("month", "quarter", "year", "decade")).hierarchy(days)) == [
        [None, None, None, None, None, "*"],
        ["2024-03-05", "2024-03", "2024-Q1", "2024", "2020-2029", "*"],
    ]
    texts = ["1931-02-03 10:00:00 UTC", "2024-03-05T10:00:00.123456789+0800", "2024-03-05"]
    assert lines_of(Dates(["day"]).hierarchy(texts)) == [
        ["1931-02-03 10:00:00 UTC", "1931-02-03", "*"],
        ["2024-03-05", "2024-03-05", "*"],
        ["2024-03-05T10:00:00.123456789+0800", "2024-03-05", "*"],
    ]
    times = pa.array([0, 86_400_000_000], pa.timestamp("us", "UTC"))
    assert lines_of(Dates(["day"]).hierarchy(times))[1][1:] == ["1970-01-02", "*"]
    assert lines_of(Dates().hierarchy(["2024-03-05"])) == [
        ["2024-03-05", "2024-03", "2024", "*"]  # the day is the value
    ]
    assert lines_of(Flat().hierarchy([True, False, None])) == [
        [None, "*"],
        ["false", "*"],
        ["true", "*"],
    ]
    words = pa.array(["a", "b", "a"]).dictionary_encode().slice(0, 1)
    assert lines_of(Flat().hierarchy(words)) == [["a", "*"]]  # no word that no row has


REFUSED = [
    (lambda: Intervals([5, 12]), "widths: each must be a multiple"),
    (lambda: Intervals([5, 5]), "widths: each must be a multiple"),
    (lambda: Intervals([5, 10.0]), "widths: must be all with a point"),
    (lambda: Intervals([]), "widths: must be a sequence"),
    (lambda: Intervals("55"), "widths: must be a sequence"),
    (lambda: Intervals([5]).hierarchy(["x", "1"]), "1 of its values are no numbers"),
    (lambda: Intervals([5]).hierarchy(["1.5"]), "some numbers are not whole"),
    (lambda: Intervals([5]).hierarchy(["1e300"]), "a number is beyond"),
    (lambda: Prefix([2, 3]), "lengths: must be fewer"),
    (lambda: Networks([24, 24]), "bits: must be fewer bits"),
    (lambda: Dates().hierarchy(["2024-02-30"]), "1 of its values are no dates"),
    (lambda: Dates().hierarchy(["2024-03-05 25:00"]), "1 of its values are no dates"),
    (lambda: Networks([0]), "bits: must be prefix lengths"),
    (lambda: Networks([24]).hierarchy(["10.0.0.1", "10.0.0.300"]), "1 of its values are no IP"),
    (lambda: Prefix([0]), "lengths: must be numbers of characters"),
    (lambda: Prefix([1.5]), "lengths: must be numbers of characters"),
    (lambda: Dates(["year", "day"]), "parts: must be in the order"),
    (lambda: Dates(["week"]), "parts: 'week' is not one of"),
    (
        lambda: Dates().hierarchy(["2024-02-30", "soon", "2024-01-01"]),
        "2 of its values are no dates",
    ),
]


@each("make, problem", REFUSED)
def test_rules_that_do_not_fit_are_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"^{problem}"):
        make()


def test_numbers_and_ranges_out_of_options() -> None:
    assert [read_number("round", text) for text in ("10", "-3", "0.5", "1e3", "10.0")] == [
        10,
        -3,
        0.5,
        1000.0,
        10.0,
    ]
    assert isinstance(read_number("round", "10"), int)
    assert isinstance(read_number("round", "10.0"), float)
    assert read_range("clip", "..90") == (None, 90)
    assert read_range("clip", "-5..") == (-5, None)
    assert read_range("clip", "0..1.5") == (0, 1.5)
    for text in ("", "..", "5", "a..b", "1e999..", "1...2"):
        with pytest.raises(ConfigError, match=r"^clip: "):
            read_range("clip", text)


def test_arrays_of_numbers_are_found_by_their_texts() -> None:
    made = Round(10).hierarchy(np.array([3, 14]))
    for values in (np.array([3.0, 14.5]), pa.array([3.0, 14.5]), pa.chunked_array([[3.0], [14.5]])):
        assert made.codes(values).tolist() == [0, -1]
    assert made.codes(pa.chunked_array([], pa.int64())).tolist() == []


@pytest.mark.source
def test_memory_that_is_out_is_an_error_at_each_place(tmp_path: Path) -> None:
    """Of a hierarchy, and of the filter that takes it."""
    data = b"a;x;*\nb;x;*\n"
    path = tmp_path / "h.csv"
    path.write_bytes(data)
    config, ladder = ladder_of({"a": str(path)})

    def fails_at(n: int, call: Callable[[], object]) -> bool:
        _core.fail_allocation(n)
        try:
            call()
        except CapacityError:
            return True
        finally:
            _core.fail_allocation(0)
        return False

    for call in (
        lambda: Taxonomy.read(data),
        lambda: Taxonomy([[b"a", b"*"]], True, 1.0),
        lambda: _core.RowFilter(ladder=ladder.for_core(), **config.row_filter_arguments()),
    ):
        places = [fails_at(n, call) for n in range(1, 60)]
        assert places.index(False) >= 5
        assert not any(places[places.index(False) :])
