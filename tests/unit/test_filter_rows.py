# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV and JSON Lines: what is read, what is refused, and how it is written again."""

import csv
import io
import json

import pytest
from filter_help import faults, open_sieve, sift

from zanon_net import _core
from zanon_net._core import ROW_FAULTS
from zanon_net.errors import CapacityError, ConfigError, FormatError

HEADER = b"time,user,attribute\n"


def attributes(data: bytes, **options: object) -> list[str]:
    """The attributes written for `data`, read back by the csv module."""
    out, _sieve = sift(data, **{"no_user": True} | options)
    return [row[1] for row in csv.reader(io.StringIO(out.decode(), newline=""), strict=True)][1:]


# ---- CSV ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("plain", "plain"),
        ('"plain"', "plain"),
        ('"a,b"', "a,b"),
        ('"say ""hi"""', 'say "hi"'),
        ('""""', '"'),
        ('"two\nlines"', "two\nlines"),
        ('"two\r\nlines"', "two\r\nlines"),
        ('"\ta tab"', "\ta tab"),
        (" blanks around ", " blanks around "),
        ("Città della Pieve", "Città della Pieve"),
        ("東京", "東京"),
        ("=HYPERLINK(1)", "=HYPERLINK(1)"),
        ("it's", "it's"),
        ("{}", "{}"),
        ("a;b|c", "a;b|c"),
    ],
)
def test_csv_values_survive(field: str, value: str) -> None:
    assert attributes(HEADER + f"1,ann,{field}\n".encode()) == [value]


def test_csv_output_is_rfc_4180_with_line_feeds() -> None:
    out, _ = sift(HEADER + b'1,ann,"a,b"\n2,ann,"c""d"\n3,ann,"plain"\n4,ann, x\n', no_user=True)
    assert out == b'time,attribute\n1,"a,b"\n2,"c""d"\n3,plain\n4," x"\n'


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (b"1,ann", "columns"),
        (b"1,ann,x,", "columns"),
        (b"1,ann,x,y", "columns"),
        (b"1", "columns"),
        (b" ", "columns"),
        (b'1,ann,a"b', "quotes"),
        (b'1,ann,"a"b', "quotes"),
        (b'1,ann,"a" ', "quotes"),
        (b'1,ann, "a"', "quotes"),
        (b"1,ann,a\rb", "quotes"),
        (b"1,ann,a\r\r", "quotes"),
        (b"1,ann,\xff", "utf8"),
        (b"1,ann,\xc0\xaf", "utf8"),
        (b"1,ann,\xed\xa0\x80", "utf8"),
        (b"1,ann,\xf4\x90\x80\x80", "utf8"),
        (b"1,ann,\xe2\x82", "utf8"),
        (b"1,ann,\xe2\x82,x", "utf8"),
        (b"1,ann,a\0b", "control"),
        (b"1,ann,\x1b[2J", "control"),
        (b"1,ann,\x7f", "control"),
        ("1,ann,\x85".encode(), "control"),
        (b"1,ann,", "missing"),
        (b'1,ann,""', "missing"),
        (b"1,,x", "missing"),
        (b",ann,x", "missing"),
        (b"soon,ann,x", "time"),
        (b"-1,ann,x", "time"),
        (b"1e9,ann,x", "time"),
    ],
)
def test_csv_rows_that_cannot_be_read(row: bytes, fault: str) -> None:
    out, sieve = sift(HEADER + b"1,ann,before\n" + row + b"\n2,ann,after\n", no_user=True)
    assert out == b"time,attribute\n1,before\n2,after\n"
    assert faults(sieve) == {fault: 1}
    assert sieve.first_fault == (3, ROW_FAULTS[fault])
    assert sieve.stats["rows"] == 3


def test_a_quote_that_is_not_closed_takes_the_rest_with_it() -> None:
    out, sieve = sift(HEADER + b'1,ann,x\n2,ann,"y\n3,ann,z\n', no_user=True)
    assert out == b"time,attribute\n1,x\n"
    assert faults(sieve) == {"quotes": 1}
    assert sieve.first_fault == (3, ROW_FAULTS["quotes"])


def test_a_quoted_field_without_end_ends_the_reading() -> None:
    with pytest.raises(FormatError, match="line 3: a quoted field does not end within 1 MiB"):
        sift(HEADER + b'1,ann,x\n2,ann,"' + b"y\n" * 600_000)


def test_lines_are_counted_in_the_file_not_in_rows() -> None:
    _, sieve = sift(HEADER + b'1,ann,"a\nb\n\nc"\n\n\n2,bob,"\n"\nbad\n')
    assert sieve.first_fault is not None
    assert sieve.first_fault[0] == 10


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_ends_of_lines(end: bytes) -> None:
    rows = [HEADER.strip(), b"1,ann,x", b'2,ann,"y"']
    data = (end or b"\n").join(rows) + end
    assert attributes(data) == ["x", "y"]


def test_empty_lines_are_no_rows() -> None:
    out, sieve = sift(b"\n\r\n" + HEADER + b"\n1,ann,x\n\r\n\n2,ann,y\n\n", no_user=True)
    assert out == b"time,attribute\n1,x\n2,y\n"
    assert sieve.stats["rows"] == 2


def test_byte_order_mark() -> None:
    mark = b"\xef\xbb\xbf"
    assert attributes(mark + HEADER + b"1,ann,x\n") == ["x"]
    for pieces in ([mark, mark + HEADER], [mark * 2 + HEADER]):
        with pytest.raises(ConfigError, match="no column 'time'"):
            sift(pieces)


def test_columns_are_found_by_name() -> None:
    data = b'secret,shop,"the time",who\nS1,milk,5,ann\nS2,bread,6,bob\n'
    names = {"time": "the time", "user": "who", "attribute": "shop"}
    out, _ = sift(data, no_user=True, **names)
    assert out == b"the time,shop\n5,milk\n6,bread\n"
    out, _ = sift(data, no_user=True, passed=["secret"], **names)
    assert out == b"the time,shop,secret\n5,milk,S1\n6,bread,S2\n"


def test_a_column_that_looks_like_csv_in_its_name() -> None:
    out, _ = sift(b'time,user,"a,""b"""\n1,ann,x\n', attribute='a,"b"', no_user=True)
    assert out == b'time,"a,""b"""\n1,x\n'


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"time,user,name\n", "line 1: the header has no column 'attribute'; .* with --attribute"),
        (b"Time,user,attribute\n", "no column 'time'; .* with --time"),
        (b"time, user,attribute\n", "no column 'user'; .* with --user"),
        (b"time;user;attribute\n", "line 1: the header is a single column; choose the --delimiter"),
        (b"\ntime,user,user,attribute\n", "line 2: the header has two columns 'user'"),
    ],
)
def test_headers_that_do_not_fit(header: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        sift(header + b"1,ann,x\n")
    with pytest.raises(ConfigError, match=r"no column 'price'; .* with --pass"):
        sift(HEADER, passed=["price"])


@pytest.mark.parametrize(
    "header", [b'"time,user\n', b'ti"me,user,attribute\n', b"time,user,attribute,\xff\n", b"a\0b\n"]
)
def test_headers_that_cannot_be_read(header: bytes) -> None:
    with pytest.raises(FormatError, match="line 1: the header cannot be read"):
        sift(header)
    with pytest.raises(FormatError, match="line 1: the header is longer than 1 MiB"):
        sift(HEADER.strip() + b",x" * 600_000)
    with pytest.raises(FormatError, match="the header cannot be read"):
        sift(b"," * 5000 + HEADER)


@pytest.mark.parametrize(("delimiter", "sign"), [(";", b";"), ("|", b"|"), ("tab", b"\t")])
def test_delimiters(delimiter: str, sign: bytes) -> None:
    data = b'time;user;attribute\n1;ann;a,b\n2;ann;"c;d"\n'.replace(b";", sign)
    out, _ = sift(data, delimiter=delimiter, no_user=True)
    assert out == b'time;attribute\n1;a,b\n2;"c;d"\n'.replace(b";", sign)


def test_without_a_header() -> None:
    out, _ = sift(b"1,x,ann\n2,y,bob\n", header="time,attribute,user", no_user=True)
    assert out == b"1,x\n2,y\n"
    out, _ = sift(b"1,x,ann\n", header="time,attribute,user", no_user=True, to="jsonl")
    assert out == b'{"time":1,"attribute":"x"}\n'
    with pytest.raises(ConfigError, match="no column 'user'"):
        sift(b"1,x,ann\n", header="time,attribute,who")


def test_rows_that_are_too_long() -> None:
    long = b"1,ann," + b"x" * 2_500_000 + b"\n"
    pieces = [long[i : i + 65_536] for i in range(0, len(long), 65_536)]
    out, sieve = sift([HEADER, *pieces, b"2,ann,after\nbad\n"], no_user=True)
    assert out == b"time,attribute\n2,after\n"
    assert faults(sieve) == {"long": 1, "columns": 1}
    assert sieve.first_fault == (2, ROW_FAULTS["long"])
    assert sieve.memory_bytes < 8 << 20


# ---- JSON Lines ---------------------------------------------------------------------------------


def line(**members: object) -> bytes:
    return json.dumps(members).encode() + b"\n"


@pytest.mark.parametrize(
    "value", ["plain", 'q"uo\\te', "tab\t", "two\nlines", "é東😀", "\u2028\u2029", "/", "a,b", "0"]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_texts_survive(value: str, ascii_only: bool) -> None:
    row = json.dumps({"time": 1, "user": "ann", "attribute": value}, ensure_ascii=ascii_only)
    out, sieve = sift(row.encode() + b"\n", no_user=True)
    assert faults(sieve) == {}
    assert len(out.decode().splitlines()) == 1
    assert json.loads(out) == {"time": 1, "attribute": value}


@pytest.mark.parametrize("value", ["17", "-0.5", "1e9", "true", "false", "0"])
def test_json_numbers_and_literals_stay_as_they_are(value: str) -> None:
    row = f'{{"time":"2.50","user":7,"attribute":{value}}}\n'
    assert sift(row.encode(), no_user=True)[0] == f'{{"time":2.5,"attribute":{value}}}\n'.encode()


def test_whatever_else_a_json_row_holds_is_left_out() -> None:
    row = b' { "x" : [ {"a": [1, {}, []]}, "\\u00e9\\"" , null ] , "time" : 1 , "user" : "ann" ,\t'
    row += b'"y":{"attribute":"no"},"attribute":"yes","z":-1.5E+3 } \r\n'
    out, sieve = sift(row, no_user=True)
    assert out == b'{"time":1,"attribute":"yes"}\n'
    assert faults(sieve) == {}


@pytest.mark.parametrize(
    ("row", "fault"),
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
        (b'{"time":1,"user":"a"}', "missing"),
        (b"{}", "missing"),
        (b'{"time":1,"user":"a","attribute":null}', "missing"),
        (b'{"time":1,"user":"a","attribute":""}', "missing"),
        (b'{"time":1,"user":"a","attribute":["x"]}', "missing"),
        (b'{"time":1,"user":{"id":1},"attribute":"x"}', "missing"),
        (b'{"time":1,"user":"a","attribute":"x","attribute":"y"}', "twice"),
        (b'{"time":1,"user":"a","us\\u0065r":"b","attribute":"x"}', "twice"),
        (b'{"time":1,"user":1.0,"attribute":"x"}', "user"),
        (b'{"time":1,"user":1e3,"attribute":"x"}', "user"),
        (b'{"time":1,"user":-0,"attribute":"x"}', "user"),
        (b'{"time":1,"user":true,"attribute":"x"}', "user"),
        (b'{"time":-1,"user":"a","attribute":"x"}', "time"),
        (b'{"time":1e9,"user":"a","attribute":"x"}', "time"),
        (b'{"time":true,"user":"a","attribute":"x"}', "time"),
    ],
)
def test_json_rows_that_cannot_be_read(row: bytes, fault: str) -> None:
    good = line(time=1, user="ann", attribute="good")
    out, sieve = sift(good + row + b"\n" + good, no_user=True)
    assert out == b'{"time":1,"attribute":"good"}\n' * 2
    assert faults(sieve) == {fault: 1}
    assert sieve.first_fault == (2, ROW_FAULTS[fault])


def test_control_characters_elsewhere_in_json_are_no_fault() -> None:
    out, sieve = sift(b'{"time":1,"user":"a","attribute":"x","y":"\x7f"}\n', no_user=True)
    assert (out, faults(sieve)) == (b'{"time":1,"attribute":"x"}\n', {})
    _, sieve = sift(b'{"time":1,"user":"a","attribute":"x","p":["\x7f"]}\n', passed=["p"])
    assert faults(sieve) == {"control": 1}


def test_nesting_up_to_the_limit_is_read() -> None:
    deep = b"[" * 63 + b'{"a":1}' + b"]" * 63
    row = b'{"time":1,"user":"a","y":' + deep + b',"attribute":"x"}\n'
    assert faults(sift(row)[1]) == {}


def test_long_json_rows_are_dropped() -> None:
    good = line(time=1, user="ann", attribute="good")
    out, sieve = sift(good + line(x="y" * 3_000_000) + b"   \n" + good, no_user=True)
    assert out == b'{"time":1,"attribute":"good"}\n' * 2
    assert faults(sieve) == {"long": 1}


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


# ---- formats and sources ------------------------------------------------------------------------


def test_from_one_format_to_the_other() -> None:
    out, _ = sift(HEADER + b'1,ann,"a""b"\n', to="jsonl", no_user=True)
    assert out == b'{"time":1,"attribute":"a\\"b"}\n'
    rows = line(time=1, user="ann", attribute="a,b") + line(time=2, user="ann", attribute=1.5)
    out, _ = sift(rows, to="csv", no_user=True, passed=["p"])
    assert out == b'time,attribute,p\n1,"a,b",\n2,1.5,\n'


def test_json_numbers_may_hold_the_delimiter() -> None:
    out, _ = sift(line(time=1, user="a", attribute="x", p=[1, "b"]), to="csv", passed=["p"])
    assert out.endswith(b',x,"[1, ""b""]"\n')


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf", b"\xef\xbb"])
def test_nothing_to_read(data: bytes) -> None:
    if data == b"\xef\xbb":
        with pytest.raises(FormatError, match="the header cannot be read"):
            sift(data)
    else:
        assert sift(data)[0] == b""


def test_sources_are_one_stream_and_each_has_its_header() -> None:
    _, sieve = sift(HEADER + b"1,ann,x", z=2, no_user=True)
    sieve.feed(b'attribute,more,user,time\n"x",?,bob,2\nbad\n')
    assert sieve.take() == b"2,x\n"
    assert sieve.first_fault == (3, ROW_FAULTS["columns"])
    sieve.end()


def test_strict() -> None:
    with pytest.raises(FormatError, match="line 3: not as many columns"):
        sift(HEADER + b"1,ann,x\nbad\n2,ann,y\n", strict=True)


def test_strict_writes_what_came_before() -> None:
    sieve = open_sieve(strict=True, no_user=True)
    with pytest.raises(FormatError):
        sieve.feed(HEADER + b"1,ann,x\nbad\n2,ann,y\n")
    assert sieve.take() == b"time,attribute\n1,x\n"


def test_a_plain_number_is_never_guessed() -> None:
    for rows in (HEADER + b"bad,ann,x\n1715677200,ann,x\n", line(time=17, user=1, attribute=2)):
        with pytest.raises(ConfigError, match=r"line \d: the time is a plain number; say what"):
            sift(rows, time_unit="iso")
    rows = HEADER + b"2024-05-14,ann,x\n1715677200,ann,x\n"
    assert faults(sift(rows, time_unit="iso")[1]) == {"time": 1}


def test_times_without_an_offset_are_counted() -> None:
    rows = HEADER + b"2024-05-14,ann,x\n2024-05-14T00:00Z,ann,x\n2024-05-14 01:00,ann,x\n"
    out, sieve = sift(rows, time_unit="iso", no_user=True)
    assert sieve.stats["without_offset"] == 2
    assert out.splitlines()[1:] == [
        *(b"2024-05-14T00:00:00Z,x", b"2024-05-14T00:00:00Z,x", b"2024-05-14T01:00:00Z,x")
    ]


def test_offsets_are_not_passed_on() -> None:
    rows = line(time="2024-05-14T09:00:00+09:00", user="ann", attribute="x")
    out, _ = sift(rows, time_unit="iso", no_user=True)
    assert json.loads(out)["time"] == "2024-05-14T00:00:00Z"


# ---- memory -------------------------------------------------------------------------------------


def test_out_of_memory_is_said_and_nothing_leaks_out() -> None:
    said = []
    for n in range(1, 100):
        _core.fail_allocation(n)
        sieve = None
        try:
            sieve = open_sieve(z=2)
            sieve.feed(HEADER + b"1,ann,x\n2,bob,y\n")
            sieve.feed(b"3,bob," + b"z" * 100_000)
            sieve.end()
        except CapacityError as error:
            said.append(str(error))
            if sieve is not None:
                assert sieve.take() in (b"", HEADER)
        else:
            break
        finally:
            _core.fail_allocation(0)
    assert len(said) > 8
    assert all("no memory" in text for text in said)
