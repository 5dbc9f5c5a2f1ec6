# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV and JSON Lines: rows that are read or refused, and how they are written."""

import json

import pytest
from support.examples import each
from support.filter import faults, open_row_filter, sift
from support.filter_rows import HEADER, attributes, line

from zanon_net import _core
from zanon_net._core import ROW_FAULTS
from zanon_net.errors import CapacityError, ConfigError, FormatError

# ---- CSV ----------------------------------------------------------------------------------------


@each(
    "field, value",
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


@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        ("", None),
        ("\t", None),
        ("é", None),
        ("\x7f", "control"),
        ("\x85", "control"),
        ('"', "quotes"),
        ("\r", "quotes"),
        (",", "columns"),
    ],
)
def test_csv_is_read_alike_at_every_place_of_a_row(odd: str, fault: str | None) -> None:
    values = ["a" * before + odd + "b" * after for before in range(1, 40) for after in range(1, 20)]
    data = HEADER + b"".join(f"1,ann,{value}\n".encode() for value in values)
    _out, row_filter = sift(data)
    assert faults(row_filter) == ({} if fault is None else {fault: len(values)})
    assert attributes(data) == ([] if fault is not None else values)


def test_csv_output_is_rfc_4180_with_line_feeds() -> None:
    out, _ = sift(HEADER + b'1,ann,"a,b"\n2,ann,"c""d"\n3,ann,"plain"\n4,ann, x\n', no_user=True)
    assert out == b'time,attribute\n1,"a,b"\n2,"c""d"\n3,plain\n4," x"\n'


@each(
    "row, fault",
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
        (b"1,,x", "missing"),
        (b",ann,x", "missing"),
        (b"soon,ann,x", "time"),
        (b"-1,ann,x", "time"),
        (b"1e99,ann,x", "time"),
    ],
)
def test_csv_rows_that_cannot_be_read(row: bytes, fault: str) -> None:
    out, row_filter = sift(HEADER + b"1,ann,before\n" + row + b"\n2,ann,after\n", no_user=True)
    assert out == b"time,attribute\n1,before\n2,after\n"
    assert faults(row_filter) == {fault: 1}
    texts = {**ROW_FAULTS, "time": "not a time in s since 1970, such as 1715677200.5"}
    assert row_filter.first_fault == (3, texts[fault])
    assert row_filter.stats["rows"] == 3


@pytest.mark.parametrize(
    ("rows", "attributes", "dropped"),
    [
        (b'2,ann,"y\n3,ann,z\n', ["z"], {"quotes": 1}),
        (b'2,ann,"y\n3,ann,z', ["z"], {"quotes": 1}),
        (b'2,ann,"y\n3,ann,z\n4,ann,"u"\n', ["z", "u"], {"quotes": 1}),
        (b'2,ann,"y\n3,ann,z\n4,ann,u","v\n5,ann,w\n', ["z", "w"], {"quotes": 2}),
        (b'2,ann,"y\n3,ann,z\n4,"ann\nb",u\n', ["z", "u"], {"quotes": 1}),
        (b'2,ann,"y\n3,ann,z\n4",ann,u\n', ["z"], {"columns": 1, "quotes": 1}),
        (b'2,"ann,y\n"3,ann,z\n4,ann,u\n', ["u"], {"quotes": 2}),
        (b'2,ann,"y\n3,ann,"z\n4,ann,"u\n5,ann,v\n', ["v"], {"quotes": 3}),
    ],
)
def test_a_quote_that_is_not_closed_costs_its_line(
    rows: bytes, attributes: list[str], dropped: dict[str, int]
) -> None:
    out, row_filter = sift(HEADER + b"1,ann,x\n" + rows, no_user=True, to="jsonl")
    assert [json.loads(line)["attribute"] for line in out.splitlines()] == ["x", *attributes]
    assert faults(row_filter) == dropped
    assert row_filter.first_fault is not None
    assert row_filter.first_fault[0] == 3


@pytest.mark.parametrize("quoted", [b'"', b'a,"'])
def test_a_quoted_field_without_end_costs_its_line(quoted: bytes) -> None:
    rows = b"".join(b"%d,ann,%s\n" % (n, b"y" * 100) for n in range(30_000))
    data = HEADER + b"1,ann,x\n2,ann," + quoted + b"\n" + rows + b"bad\n"
    pieces = [data[i : i + 65_536] for i in range(0, len(data), 65_536)]
    for cut in ([data], pieces):
        out, row_filter = sift(cut, no_user=True)
        assert out.count(b"\n") == 30_002
        assert row_filter.first_fault == (3, ROW_FAULTS["quotes"])
        assert sum(faults(row_filter).values()) == 2
        assert row_filter.stats["rows"] == 30_003


def test_a_row_of_several_lines_may_hold_a_megabyte() -> None:
    field = b"y\n" * 500_000
    out, row_filter = sift(HEADER + b'1,ann,x\n2,ann,"' + field + b'"\n3,ann,z\n', no_user=True)
    assert out == b'time,attribute\n1,x\n2,"' + field + b'"\n3,z\n'
    assert faults(row_filter) == {}


def test_quotes_in_every_line_cost_no_more_than_a_few_looks() -> None:
    lines = b'1,ann",",ann\n' * 500_000  # a quadratic reader takes hours
    _, row_filter = sift(HEADER + lines)
    assert row_filter.stats["rows"] == sum(faults(row_filter).values()) == 500_000


# ---- CSV without quoting ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ['"', '"begin', 'end"', '""', '"a"', "\"a' b", " a ", ",", "a\\x09b"]
)
def test_without_quoting_a_quote_is_a_character(value: str) -> None:
    data = f"time\tuser\tattribute\n1\tann\t{value}\n2\tbob\tx\n".encode()
    out, row_filter = sift(data, delimiter="tab", no_user=True)
    assert out == f"time\tattribute\n1\t{value}\n2\tx\n".encode()
    assert faults(row_filter) == {}
    out, _ = sift(data.replace(b",", b";").replace(b"\t", b","), quote="none", no_user=True)
    assert out.decode().splitlines()[1] == "1," + value.replace(",", ";")


def test_without_quoting_every_line_is_a_row() -> None:
    rows = b"".join(b'%d\tuser%d\t"\n' % (n, n % 7) for n in range(30_000))
    out, row_filter = sift(b"time\tuser\tattribute\n" + rows, delimiter="tab", z=2, no_user=True)
    assert row_filter.stats["rows"] == 30_000
    assert faults(row_filter) == {}
    assert out.count(b'\t"\n') == 29_999


def test_without_quoting_a_bad_row_costs_its_line() -> None:
    data = b"time\tuser\tattribute\n1\tann\tx\ty\n2\tann\ta\rb\n3\tann\tz\n"
    out, row_filter = sift(data, delimiter="tab", no_user=True)
    assert out == b"time\tattribute\n3\tz\n"
    assert faults(row_filter) == {"columns": 1, "quotes": 1}


def test_without_quoting_no_value_breaks_its_line() -> None:
    rows = line(time=1, user="ann", attribute="a\tb\r\n", p='"c"')
    out, _ = sift(rows, to="csv", delimiter="tab", no_user=True, passed=["p"])
    assert out == b'time\tattribute\tp\n1\ta\\x09b\\x0d\\x0a\t"c"\n'
    out, _ = sift(rows, to="csv", delimiter="tab", quote="csv", no_user=True, passed=["p"])
    assert out == b'time\tattribute\tp\n1\t"a\tb\r\n"\t"""c"""\n'


def test_lines_are_counted_in_the_file_not_in_rows() -> None:
    _, row_filter = sift(HEADER + b'1,ann,"a\nb\n\nc"\n\n\n2,bob,"\n"\nbad\n')
    assert row_filter.first_fault is not None
    assert row_filter.first_fault[0] == 10


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_ends_of_lines(end: bytes) -> None:
    rows = [HEADER.strip(), b"1,ann,x", b'2,ann,"y"']
    data = (end or b"\n").join(rows) + end
    assert attributes(data) == ["x", "y"]


def test_empty_lines_are_no_rows() -> None:
    out, row_filter = sift(b"\n\r\n" + HEADER + b"\n1,ann,x\n\r\n\n2,ann,y\n\n", no_user=True)
    assert out == b"time,attribute\n1,x\n2,y\n"
    assert row_filter.stats["rows"] == 2


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
    ("header", "problem"),
    [
        ("time,user,name", "^--header has no column 'attribute'; .* with --attribute$"),
        ("time;user;attribute", "^--header is a single column; choose the --delimiter"),
        ("time,user,user,attribute", "^--header has two columns 'user'$"),
        ('"time,user', "^--header cannot be read: "),
    ],
)
def test_a_header_that_was_given_is_in_no_line(header: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        sift(b"1,ann,x\n", header=header)


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
    out, _ = sift(data, delimiter=delimiter, quote="csv", no_user=True)
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
    out, row_filter = sift([HEADER, *pieces, b"2,ann,after\nbad\n"], no_user=True)
    assert out == b"time,attribute\n2,after\n"
    assert faults(row_filter) == {"long": 1, "columns": 1}
    assert row_filter.first_fault == (2, ROW_FAULTS["long"])
    assert row_filter.memory_bytes < 8 << 20


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
    _, row_filter = sift(HEADER + b"1,ann,x", z=2, no_user=True)
    row_filter.feed(b'attribute,more,user,time\n"x",?,bob,2\nbad\n')
    assert row_filter.take() == b"2,x\n"
    assert row_filter.first_fault == (3, ROW_FAULTS["columns"])
    row_filter.end()


def test_strict() -> None:
    with pytest.raises(FormatError, match="line 3: not as many columns"):
        sift(HEADER + b"1,ann,x\nbad\n2,ann,y\n", strict=True)


def test_strict_writes_what_came_before() -> None:
    row_filter = open_row_filter(strict=True, no_user=True)
    with pytest.raises(FormatError):
        row_filter.feed(HEADER + b"1,ann,x\nbad\n2,ann,y\n")
    assert row_filter.take() == b"time,attribute\n1,x\n"


def test_a_plain_number_is_never_guessed() -> None:
    for rows in (HEADER + b"bad,ann,x\n1715677200,ann,x\n", line(time=17, user=1, attribute=2)):
        with pytest.raises(ConfigError, match=r"line \d: the time is a plain number; say what"):
            sift(rows, time_unit="iso")
    rows = HEADER + b"2024-05-14,ann,x\n1715677200,ann,x\n"
    assert faults(sift(rows, time_unit="iso")[1]) == {"time": 1}


def test_times_without_an_offset_are_counted() -> None:
    rows = HEADER + b"2024-05-14,ann,x\n2024-05-14T00:00Z,ann,x\n2024-05-14 01:00,ann,x\n"
    out, row_filter = sift(rows, time_unit="iso", no_user=True)
    assert row_filter.stats["without_offset"] == 2
    assert out.splitlines()[1:] == [
        *(b"2024-05-14T00:00:00Z,x", b"2024-05-14T00:00:00Z,x", b"2024-05-14T01:00:00Z,x")
    ]


def test_offsets_are_not_passed_on() -> None:
    rows = line(time="2024-05-14T09:00:00+09:00", user="ann", attribute="x")
    out, _ = sift(rows, time_unit="iso", no_user=True)
    assert json.loads(out)["time"] == "2024-05-14T00:00:00Z"


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.source
def test_out_of_memory_is_said_and_nothing_leaks_out() -> None:
    said = []
    for n in range(1, 100):
        _core.fail_allocation(n)
        row_filter = None
        try:
            row_filter = open_row_filter(z=2)
            row_filter.feed(HEADER + b"1,ann,x\n2,bob,y\n")
            row_filter.feed(b"3,bob," + b"z" * 100_000)
            row_filter.end()
        except CapacityError as error:
            said.append(str(error))
            if row_filter is not None:
                assert row_filter.take() in (b"", HEADER)
        else:
            break
        finally:
            _core.fail_allocation(0)
    assert len(said) > 8
    assert all("no memory" in text for text in said)
