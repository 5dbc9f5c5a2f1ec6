# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of JSON Lines: rows that are read or refused, and the form in which they are written."""

import json

import pytest
from support.examples import each
from support.filter import faults, sift
from support.filter_rows import line

from zanon_net._core import ROW_FAULTS
from zanon_net.errors import FormatError


@each(
    "value", ["plain", 'q"uo\\te', "tab\t", "two\nlines", "é東😀", "\u2028\u2029", "/", "a,b", "0"]
)
@each("ascii_only", [True, False])
def test_json_texts_survive(value: str, ascii_only: bool) -> None:
    row = json.dumps({"time": 1, "user": "ann", "attribute": value}, ensure_ascii=ascii_only)
    out, row_filter = sift(row.encode() + b"\n", no_user=True)
    assert faults(row_filter) == {}
    assert len(out.decode().splitlines()) == 1
    assert json.loads(out) == {"time": 1, "attribute": value}


@pytest.mark.parametrize("value", ["17", "-0.5", "1e9", "true", "false", "0"])
def test_json_numbers_and_literals_stay_as_they_are(value: str) -> None:
    row = f'{{"time":"2.50","user":7,"attribute":{value}}}\n'
    assert sift(row.encode(), no_user=True)[0] == f'{{"time":2.5,"attribute":{value}}}\n'.encode()


def test_whatever_else_a_json_row_holds_is_left_out() -> None:
    row = b' { "x" : [ {"a": [1, {}, []]}, "\\u00e9\\"" , null ] , "time" : 1 , "user" : "ann" ,\t'
    row += b'"y":{"attribute":"no"},"attribute":"yes","z":-1.5E+3 } \r\n'
    out, row_filter = sift(row, no_user=True)
    assert out == b'{"time":1,"attribute":"yes"}\n'
    assert faults(row_filter) == {}


@each(
    "row, fault",
    [
        (b"x", "json"),
        (b"[]", "json"),
        (b"null", "json"),
        (b'"text"', "json"),
        (b"{", "json"),
        (b"{}x", "json"),
        (b'{"time":1,"user":"a","attribute":"x"', "json"),
        (b'{"time":1,"user":"a","attribute":"x"}}', "json"),
        (b'{"time":1,"user":"a","attribute":"x"} {}', "json"),
        (b'{"time":1,"user":"a","attribute":"x",}', "json"),
        (b'{"time":1 "user":"a","attribute":"x"}', "json"),
        (b'{time:1,"user":"a","attribute":"x"}', "json"),
        (b"{'time':1}", "json"),
        (b'{"time":01,"user":"a","attribute":"x"}', "json"),
        (b'{"time":1.,"user":"a","attribute":"x"}', "json"),
        (b'{"time":+1,"user":"a","attribute":"x"}', "json"),
        (b'{"time":1,"user":"a","attribute":NaN}', "json"),
        (b'{"time":1,"user":"a","attribute":"\\x"}', "json"),
        (b'{"time":1,"user":"a","attribute":"\\u12"}', "json"),
        (b'{"time":1,"user":"a","attribute":"\\ud800"}', "json"),
        (b'{"time":1,"user":"a","attribute":"\\udc00\\ud800"}', "json"),
        (b'{"time":1,"user":"a","attribute":"\\ud800\\u0041"}', "json"),
        (b'{"time":1,"user":"a","attribute":"a\tb"}', "json"),
        (b'{"time":1,"user":"a","attribute":"x","y":[1,2}', "json"),
        (b'{"time":1,"user":"a","attribute":"x","y":[1,]}', "json"),
        (b'{"time":1,"user":"a","attribute":"x","y":{"a"}}', "json"),
        (b'{"time":1,"user":"a","attribute":"x","y":truth}', "json"),
        (b'{"y":' + b"[" * 65 + b"]" * 65 + b"}", "json"),
        (b'{"time":1,"user":"a","attribute":"\xff"}', "utf8"),
        (b'{"time":1,"user":"a","attribute":"x","y":"\xc3"}', "utf8"),
        (b'{"time":1,"user":"a","attribute":"\\u0000"}', "control"),
        (b'{"time":1,"user":"\\u001b[2J","attribute":"x"}', "control"),
        (b'{"time":1,"user":"a","attribute":"\x7f"}', "control"),
        ('{"time":1,"user":"a\x85","attribute":"x"}'.encode(), "control"),
        (b"{}", "missing"),
        (b'{"time":1,"user":"a","attribute":["x"]}', "missing"),
        (b'{"time":1,"user":{"id":1},"attribute":"x"}', "missing"),
        (b'{"time":1,"user":"a","attribute":"x","attribute":"y"}', "twice"),
        (b'{"time":1,"user":"a","us\\u0065r":"b","attribute":"x"}', "twice"),
        (b'{"time":1,"user":1.0,"attribute":"x"}', "user"),
        (b'{"time":1,"user":1e3,"attribute":"x"}', "user"),
        (b'{"time":1,"user":-0,"attribute":"x"}', "user"),
        (b'{"time":1,"user":true,"attribute":"x"}', "user"),
        (b'{"time":-1,"user":"a","attribute":"x"}', "time"),
        (b'{"time":1e99,"user":"a","attribute":"x"}', "time"),
        (b'{"time":true,"user":"a","attribute":"x"}', "time"),
    ],
)
def test_json_rows_that_cannot_be_read(row: bytes, fault: str) -> None:
    good = line(time=1, user="ann", attribute="good")
    out, row_filter = sift(good + row + b"\n" + good, no_user=True)
    assert out == b'{"time":1,"attribute":"good"}\n' * 2
    assert faults(row_filter) == {fault: 1}
    texts = {**ROW_FAULTS, "time": "not a time in s since 1970, such as 1715677200.5"}
    assert row_filter.first_fault == (2, texts[fault])


def test_control_characters_elsewhere_in_json_are_no_fault() -> None:
    out, row_filter = sift(b'{"time":1,"user":"a","attribute":"x","y":"\x7f"}\n', no_user=True)
    assert (out, faults(row_filter)) == (b'{"time":1,"attribute":"x"}\n', {})
    _, row_filter = sift(b'{"time":1,"user":"a","attribute":"x","p":["\x7f"]}\n', passed=["p"])
    assert faults(row_filter) == {"control": 1}


def test_nesting_up_to_the_limit_is_read() -> None:
    deep = b"[" * 63 + b'{"a":1}' + b"]" * 63
    row = b'{"time":1,"user":"a","y":' + deep + b',"attribute":"x"}\n'
    assert faults(sift(row)[1]) == {}


def test_long_json_rows_are_dropped() -> None:
    good = line(time=1, user="ann", attribute="good")
    out, row_filter = sift(good + line(x="y" * 3_000_000) + b"   \n" + good, no_user=True)
    assert out == b'{"time":1,"attribute":"good"}\n' * 2
    assert faults(row_filter) == {"long": 1}


def test_a_json_array_is_explained() -> None:
    with pytest.raises(FormatError, match="a JSON array is not JSON Lines"):
        sift(b'[{"time":1,"user":"ann","attribute":"x"}]\n')


def test_json_columns_passed_on() -> None:
    rows = line(time=1, user="ann", attribute="x", p={"a": [1, None]}, q="é\n")
    rows += line(time=2, user="ann", attribute="y", q=None)
    out, _ = sift(rows, passed=["p", "q"], no_user=True)
    read = [json.loads(text) for text in out.splitlines()]
    assert read == [
        {"time": 1, "attribute": "x", "p": {"a": [1, None]}, "q": "é\n"},
        {"time": 2, "attribute": "y", "p": None, "q": None},
    ]


def test_numbers_and_texts_are_two_attributes_but_one_user() -> None:
    rows = line(time=1, user=17, attribute=5) + line(time=2, user="18", attribute="5")
    rows += line(time=3, user="17", attribute=5) + line(time=4, user=18, attribute="5")
    assert sift(rows, z=2)[0] == b""
    rows += line(time=5, user=19, attribute=5)
    out, _ = sift(rows, z=2, no_user=True)
    assert out == b'{"time":5,"attribute":5}\n'


def test_an_escape_makes_no_other_attribute() -> None:
    rows = b'{"time":1,"user":"ann","attribute":"\\u00e9"}\n'
    rows += '{"time":2,"user":"bob","attribute":"é"}\n'.encode()
    out, _ = sift(rows, z=2, no_user=True)
    assert out.decode() == '{"time":2,"attribute":"é"}\n'
