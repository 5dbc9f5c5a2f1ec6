# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of rows of `filter`: no false alarm, whatever the rows and the settings are."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audit_rows import sifted
from support.examples import examples
from support.filter import S

TEXT = st.text(
    st.one_of(
        st.sampled_from(",;\"\n\r\t '=+-@|{}[]:\\\u2028\u2029ab01."),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    min_size=1,
    max_size=8,
)
WORD = st.sampled_from(["a", "b", "c.example", "d.c.example.", "e:80", "1", "2", "true", "-", ""])
Row = tuple[int, Any, Any, Any]
LINES = (b'a,b"c,d\n', b'1,"x\ny,2\n', b"\n", b"2,u\n", b"\xff,u,a,p\n", b',u,"a"x,p\n', b'"\r\n')
BROKEN = (b"{\n", b'{"t":1,"t":2}\n', b'{"t":[1],"u":"a","x":"b"}\n', b" \t\r\n", b'"x"\n')


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """Rows of few users and attributes, with equal, late and far times."""
    users = draw(st.lists(TEXT | WORD, min_size=1, max_size=6, unique=True))
    attributes = draw(st.lists(TEXT | WORD, min_size=1, max_size=3, unique=True))
    times = st.integers(0, 40) | st.integers(0, 400)
    row = st.tuples(times, st.sampled_from(users), st.sampled_from(attributes), TEXT)
    rows = draw(st.lists(row, max_size=60))
    return sorted(rows, key=lambda one: one[0]) if draw(st.booleans()) else rows


OPTIONS = st.fixed_dictionaries(
    {
        "z": st.sampled_from([1, 2, 3, 5]),
        "window": st.integers(1, 60).map(lambda seconds: seconds * S),
        "rotate": st.integers(1, 60).map(lambda seconds: seconds * S),
        "suppressed": st.sampled_from(["drop", "blank"]),
        "no_user": st.booleans(),
        "null": st.sampled_from([(), ("-",), ("-", "a")]),
        "never": st.sampled_from([(), ("c.example", "e")]),
        "delimiter": st.sampled_from([",", ";", "tab"]),
        "quote": st.sampled_from(["csv", "none"]),
        "to": st.sampled_from(["auto", "csv", "jsonl"]),
        "passed": st.sampled_from([(), ("p",)]),
    }
)
EXAMPLES = settings(
    max_examples=examples(100, 8), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def as_csv(rows: list[Row], options: dict[str, Any]) -> bytes:
    delimiter = "\t" if options["delimiter"] == "tab" else options["delimiter"]
    if options["quote"] == "none":
        return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


@EXAMPLES
@given(
    rows=streams(),
    more=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(LINES)), max_size=3),
    options=OPTIONS,
    has_header=st.booleans(),
)
def test_rows_of_csv_raise_no_alarm(
    tmp_path: Path,
    rows: list[Row],
    more: list[tuple[int, bytes]],
    options: dict[str, Any],
    has_header: bool,
) -> None:
    parts = [as_csv([row], options) for row in rows]
    for at, line in more:
        parts.insert(min(at, len(parts)), line)
    names: list[Any] = [("t", "u", "x", "p")]
    header = as_csv(names, options)
    named = {} if has_header else {"header": header.decode().strip("\r\n")}
    data = (header if has_header else b"") + b"".join(parts)
    columns = {"time": "t", "user": "u", "attribute": "x", "time_unit": "s", "format": "csv"}
    released = sifted(tmp_path, [data], **columns, **options, **named)
    assert released.findings(never=options["never"]) == []


PERSON = WORD | st.integers(1, 4) | st.none()
VALUE = st.one_of(WORD, st.sampled_from([1, 2, 1.5, True, None, "\u00e9"]))


@EXAMPLES
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 60), WORD | st.integers(1, 4) | st.none(), VALUE, VALUE)
    ),
    more=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(BROKEN)), max_size=3),
    options=OPTIONS,
)
def test_rows_of_json_raise_no_alarm(
    tmp_path: Path, rows: list[Row], more: list[tuple[int, bytes]], options: dict[str, Any]
) -> None:
    lines = [
        json.dumps({"t": t, "who": {"u": user}, "x": value, "p": other}).encode() + b"\n"
        for t, user, value, other in rows
    ]
    for at, line in more:
        lines.insert(min(at, len(lines)), line)
    columns = {"time": "t", "user": "who.u", "attribute": "x", "time_unit": "s", "format": "jsonl"}
    released = sifted(tmp_path, [b"".join(lines)], **columns, **options)
    assert released.findings(never=options["never"]) == []


TIMES = {
    "iso": st.from_regex(
        r"(196|197|202|226)[0-9]-[0-3][0-9]-[0-3][0-9]([Tt ][0-2][0-9]:[0-6][0-9](:[0-6][0-9]"
        r"([.,][0-9]{0,12})?)?( ?(Z|z|UTC|[+-][0-2][0-9](:?[0-6][0-9]?)?))?)?",
        fullmatch=True,
    ),
    "s": st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    "ns": st.from_regex(r"[0-9]{1,25}(\.[0-9])?(e-?[0-9])?", fullmatch=True),
}


@pytest.mark.parametrize("unit", TIMES)
@EXAMPLES
@given(data=st.data())
def test_times_of_any_form_raise_no_alarm(tmp_path: Path, unit: str, data: st.DataObject) -> None:
    times = data.draw(st.lists(TIMES[unit], max_size=8))
    first = {"iso": "2024-05-14", "s": "1715677200.5", "ns": "17"}[unit]
    rows = "".join(f'"{time}",u{at % 2},a,\n' for at, time in enumerate([first, *times]))
    columns = {"time": "t", "user": "u", "attribute": "x", "time_unit": unit, "z": 2}
    released = sifted(tmp_path, [b"t,u,x,p\n" + rows.encode()], **columns)
    assert released.findings() == []


@pytest.mark.parametrize("z", [2, 5, 20])
def test_each_row_below_z_is_found(tmp_path: Path, z: int) -> None:
    """A release with z = 1 is checked as a release with a larger z."""
    rows = [(i, f"user {i * 7 % 40}", f"a{i * i % 11}", "") for i in range(400)]
    options = {"z": 1, "window": 60 * S, "delimiter": ",", "quote": "csv"}
    columns = {"time": "t", "user": "u", "attribute": "x", "time_unit": "s"}
    data = as_csv([("t", "u", "x", "p"), *rows], options)  # type: ignore[list-item]
    released = sifted(tmp_path, [data], **columns, **options)
    released.edit_manifest(lambda manifest: manifest["configuration"].update(z=z))
    wrong = {one.row for one in released.findings() if one.check == "names"}
    expected = set()
    for at, (t, _user, attribute, _other) in enumerate(rows):
        users = {user for s, user, one, _rest in rows if one == attribute and t - 60 <= s <= t}
        if len(users) < z:
            expected.add(at + 2)
    assert wrong == expected
    assert expected
