# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The filter against brute force: rows that it writes or must not, however input is cut."""

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from oracle.ztable import ZOracle
from support.filter import S, faults, oracle_pseudonym, sift

from zanon_net.errors import ConfigError, FormatError

MASTER = bytes(range(7, 39))  # what the fixture key_file holds

# Whatever a reader could take apart (separators, quotes, line ends, blanks), and any script.
TEXT = st.text(
    st.one_of(
        st.sampled_from(",;\"\n\r\t '=+-@|{}[]:\\\u2028\u2029ab01"),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    min_size=1,
    max_size=8,
)
Row = tuple[int, str, str]  # seconds, user, attribute


@st.composite
def streams(draw: st.DrawFn, *, ordered: bool) -> list[Row]:
    """Rows of few users and attributes, so that they meet; times in a range of a few windows."""
    users = draw(st.lists(TEXT, min_size=1, max_size=5, unique=True))
    attributes = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 40), st.sampled_from(users), st.sampled_from(attributes)),
            max_size=40,
        )
    )
    return sorted(rows, key=lambda row: row[0]) if ordered else rows


def as_csv(rows: list[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")  # with "\n" it would leave "\r" unquoted
    writer.writerows([("time", "user", "attribute"), *rows])
    return text.getvalue().encode()


def as_jsonl(rows: list[Row]) -> bytes:
    named = [dict(zip(("time", "user", "attribute"), row, strict=True)) for row in rows]
    return "".join(json.dumps(row) + "\n" for row in named).encode()


def read_csv(data: bytes) -> list[list[str | None]]:
    """Rows without the header; an empty field is None."""
    lines = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    assert not data or lines[0] == ["time", "user", "attribute"]
    assert all(len(line) == 3 for line in lines)
    return [[field or None for field in line] for line in lines[1:]]


def read_jsonl(data: bytes) -> list[list[str | None]]:
    rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    assert all(list(row) == ["time", "user", "attribute"] for row in rows)
    return [[str(row["time"]), row["user"], row["attribute"]] for row in rows]


FORMATS = {"csv": (as_csv, read_csv), "jsonl": (as_jsonl, read_jsonl)}


@pytest.mark.parametrize("suppressed", ["drop", "blank"])
@pytest.mark.parametrize("format", FORMATS)
@given(
    rows=streams(ordered=True),
    z=st.integers(1, 4),
    window=st.integers(1, 15),
    rotate=st.integers(1, 15),
)
def test_ordered_rows_are_what_brute_force_makes_of_them(
    format: str, suppressed: str, key_file: str, rows: list[Row], z: int, window: int, rotate: int
) -> None:
    write, read = FORMATS[format]
    oracle, expected = ZOracle(z, window * S), []
    for t, user, attribute in rows:
        released = oracle.observe(t * S, user, attribute)
        if released or suppressed == "blank":
            name = oracle_pseudonym(MASTER, rotate * S, t * S, user, z=z, window_ns=window * S)
            expected.append([str(t), name, attribute if released else None])
    out, row_filter = sift(
        write(rows),
        z=z,
        window=window * S,
        rotate=rotate * S,
        key_file=key_file,
        suppressed=suppressed,
    )
    assert faults(row_filter) == {}
    assert read(out) == expected
    assert base64.b64encode(MASTER) not in out


@pytest.mark.parametrize("format", FORMATS)
@given(rows=streams(ordered=False), z=st.integers(1, 4), window=st.integers(1, 15))
def test_nothing_is_released_that_brute_force_suppresses(
    format: str, rows: list[Row], z: int, window: int
) -> None:
    write, read = FORMATS[format]
    oracle = ZOracle(z, window * S)
    may = [oracle.observe(t * S, user, attribute) for t, user, attribute in rows]
    out, row_filter = sift(write(rows), z=z, window=window * S, suppressed="blank")
    written = read(out)
    assert len(written) == len(rows) == row_filter.table_stats["observations"]
    for (t, user, attribute), allowed, (time, alias, shown) in zip(rows, may, written, strict=True):
        assert time == str(t)
        assert alias is not None
        assert len(alias) == 32
        assert alias != user
        assert shown == attribute if allowed and shown is not None else shown is None


@given(streams(ordered=False), st.integers(1, 4), st.integers(1, 10), st.integers(1, 10))
def test_a_pseudonym_is_a_user_in_an_epoch(
    rows: list[Row], z: int, window: int, rotate: int
) -> None:
    ordered = sorted(rows, key=lambda row: row[0])
    out, _ = sift(as_csv(ordered), z=z, window=window * S, rotate=rotate * S, suppressed="blank")
    names = {
        (user, t // rotate): alias
        for (t, user, _), (_, alias, _) in zip(ordered, read_csv(out), strict=True)
    }
    assert len(set(names.values())) == len(names)
    for (t, user, _), (_, alias, _) in zip(ordered, read_csv(out), strict=True):
        assert names[user, t // rotate] == alias


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    for begin, end in pairwise(edges):
        yield data[begin:end]


def outcome(pieces: list[bytes], **options: object) -> tuple[object, ...]:
    """Everything that can be seen of a run; random keys stay out of it with no_user."""
    try:
        out, row_filter = sift(pieces, no_user=True, **options)
    except (ConfigError, FormatError) as error:
        return type(error), str(error)
    return out, row_filter.stats, row_filter.first_fault, row_filter.table_stats


PARTS = [b"time,user,attribute\n", b"1,ann,x\n", b"2,bob,x", b'"', b'""', b"\n", b"\r", b","]
PARTS += [b'{"time":1,"user":1,"attribute":"', b'"}\n', b"\\", b"\\u00", b"\xef\xbb\xbf"]
PARTS += [b"\xc3", b"[", b"]", b"{", b"}", b":", b" ", b"1"]
BYTES = st.binary(max_size=200) | st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join)


@given(
    BYTES, st.lists(st.integers(0, 1000), max_size=20), st.sampled_from(["auto", "csv", "jsonl"])
)
def test_how_input_is_cut_makes_no_difference(data: bytes, places: list[int], format: str) -> None:
    whole = outcome([data], format=format)
    assert outcome(list(cut(data, places)), format=format) == whole
    assert outcome([data[i : i + 1] for i in range(len(data))], format=format) == whole


@given(BYTES, st.sampled_from(["csv", "jsonl"]), st.sampled_from(["csv", "jsonl"]))
def test_whatever_comes_every_line_has_its_columns(data: bytes, format: str, to: str) -> None:
    for start in (b"", b"time,user,attribute\n"):
        try:
            out, row_filter = sift(start + data, format=format, to=to)
        except (ConfigError, FormatError):
            continue
        assert len(FORMATS[to][1](out)) == row_filter.stats["written"]
        assert row_filter.stats["rows"] == row_filter.stats["observations"] + sum(
            faults(row_filter).values()
        )


@given(st.lists(st.lists(TEXT, min_size=4, max_size=4), max_size=5), st.sampled_from(",;|\t"))
def test_csv_is_read_as_the_csv_module_writes_it(rows: list[list[str]], delimiter: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([["p", "attribute", "user", "time"], *([*row[:3], "1"] for row in rows)])
    out, row_filter = sift(
        text.getvalue().encode(),
        delimiter=delimiter,
        quote="csv",
        passed=["p"],
        no_user=True,
        to="jsonl",
    )
    assert faults(row_filter) == {}
    read = [json.loads(line) for line in out.decode().split("\n")[:-1]]
    assert [[row["p"], row["attribute"]] for row in read] == [row[:2] for row in rows]


# ---- rows with quotes in wrong places -----------------------------------------------------------

QUOTED = re.compile(rb'"(?:[^"]|"")*+"')
FIELD = re.compile(rb'"(?:[^"]|"")*+"|[^",\n]*')
ROWS = [b"1,ann,x\n", b'1,"ann",x\n', b'1,ann,"two\nlines"\n', b'1,ann,"say ""hi"""\n']
DAMAGE = [b'1,ann,"\n', b'1,ann,"x\n', b'1,"ann,x\n', b'1,ann,x"\n', b'",","\n', b'1,ann,"x"y\n']
SHREDS = [b'"', b'""', b",", b"\n", b"1,ann,", b"x"]


def fields_of(row: bytes) -> list[bytes] | None:
    """The fields of a row, unquoted; None where a quote is in a wrong place."""
    fields, at = [], 0
    while True:
        match = FIELD.match(row, at)
        assert match is not None
        field = match[0]
        fields.append(field[1:-1].replace(b'""', b'"') if field[:1] == b'"' else field)
        if match.end() == len(row):
            return fields
        if row[match.end() : match.end() + 1] != b",":
            return None
        at = match.end() + 1


def end_of(data: bytes, begin: int) -> int | None:
    """The end of the row that begins there, with its line feed; None if the row does not end."""
    at = begin
    while True:
        if data[at : at + 1] == b'"':
            quoted = QUOTED.match(data, at)
            if quoted is None:
                return None
            at = quoted.end()
        while data[at : at + 1] not in (b",", b"\n", b""):
            at += 1
        if data[at : at + 1] != b",":
            return at + 1 if at < len(data) else None
        at += 1


def _has_needed(fields: list[bytes]) -> bool:
    """True if a row has a time, and a user if it has an attribute."""
    time, user, attribute = fields
    return bool(time and (user or not attribute))


def rows_of(data: bytes) -> Iterator[list[bytes] | None]:
    """The fields of each row; None: a row that is dropped.

    A row of several lines that is no row costs its first line. The lines behind it, but the last
    one, are then a row each.
    """
    begin = single = 0
    while begin < len(data):
        end = data.find(b"\n", begin) + 1 if begin < single else end_of(data, begin)
        text = data[begin:end].removesuffix(b"\n") if end else data[begin:]
        fields = fields_of(text)
        if b"\n" in text and (fields is None or len(fields) != 3):
            single = begin + text.rfind(b"\n") + 1
            begin += text.find(b"\n") + 1
            yield None
        else:
            begin = end or len(data)
            if text:
                yield fields if fields and len(fields) == 3 and _has_needed(fields) else None


@given(
    st.lists(st.sampled_from(ROWS + DAMAGE) | st.sampled_from(SHREDS), max_size=12).map(b"".join),
    st.lists(st.integers(0, 1000), max_size=5),
)
@example(b'1,ann,"\n1,ann,x\n1,ann,"two\nlines"\n1,ann,x\n', [])
@example(b'1,ann,"\n1,ann,x\n1,ann,x","\n1,ann,x\n', [])
def test_a_quote_in_a_wrong_place_costs_its_line(data: bytes, places: list[int]) -> None:
    rows = list(rows_of(data))
    good = [row for row in rows if row is not None and re.fullmatch(b"1{1,9}", row[0])]
    assume(not any(row and len(row[0]) > 9 for row in rows))
    out, row_filter = sift([b"time,user,attribute\n", *cut(data, places)], no_user=True, to="jsonl")
    assert [json.loads(line)["attribute"].encode() for line in out.splitlines()] == [
        row[2] for row in good if row[2]
    ]
    assert row_filter.reasons["no_attribute"] == sum(not row[2] for row in good)
    assert row_filter.stats["rows"] == len(rows)
    assert sum(faults(row_filter).values()) == len(rows) - len(good)


@given(BYTES, st.lists(st.integers(0, 1000), max_size=5))
def test_without_quoting_no_row_takes_another_in(data: bytes, places: list[int]) -> None:
    lines = data.replace(b"1,", b"1\t").replace(b",x", b"\tx").split(b"\n")
    data = b"\n".join(lines)
    pieces = [b"time\tuser\tattribute\n", *cut(data, places)]
    out, row_filter = sift(pieces, delimiter="tab", format="csv", no_user=True)
    assert row_filter.stats["rows"] == sum(line not in (b"", b"\r") for line in lines)
    known = {tuple(line.removesuffix(b"\r").split(b"\t"))[::2] for line in lines}
    written = [tuple(line.split(b"\t")) for line in out.split(b"\n")[1:-1]]
    assert len(written) == row_filter.stats["written"]
    assert set(written) <= known


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cc", "Cs"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, JSON_VALUES, max_size=4), JSON_VALUES, st.booleans())
def test_json_is_read_as_the_json_module_writes_it(
    others: dict[str, object], value: object, ascii_only: bool
) -> None:
    row = others | {"time": 1, "user": "ann", "attribute": "x", "passed on": value}
    data = json.dumps(row, ensure_ascii=ascii_only, indent=None).encode() + b"\n"
    out, row_filter = sift(data, passed=["passed on"], no_user=True)
    assert faults(row_filter) == {}
    assert json.loads(out) == {"time": 1, "attribute": "x", "passed on": value}


@given(st.binary(max_size=60))
def test_json_is_refused_where_the_json_module_refuses_it(tail: bytes) -> None:
    row = b'{"time":1,"user":"ann","attribute":"x",' + tail.replace(b"\n", b" ")

    def refuse(_constant: str) -> None:
        raise ValueError

    try:
        json.loads(row, parse_constant=refuse)
        fine = True
    except ValueError:
        fine = False
    _, row_filter = sift(row)
    assert fine or faults(row_filter)
