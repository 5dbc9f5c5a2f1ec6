# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows without an attribute, `--null`, members of objects, and `--never`, in rows of any origin."""

import pytest
from support.filter import faults, sift
from support.filter_rows import HEADER, attributes

from zanon_net.errors import ConfigError, FormatError

WITHOUT = [
    b"2,ann,\n",
    b'2,ann,""\n',
    b'{"time":2,"user":"ann"}\n',
    b'{"time":2,"user":"ann","attribute":null}\n',
    b'{"time":2,"user":"ann","attribute":""}\n',
    b'{"time":2}\n',
]


def input_of(row: bytes) -> bytes:
    """The row after a row with an attribute, in the row's format."""
    if row.startswith(b"{"):
        return b'{"time":1,"user":"ann","attribute":"x"}\n' + row
    return HEADER + b"1,ann,x\n" + row


@pytest.mark.parametrize("row", WITHOUT)
def test_a_row_without_attribute_is_counted_and_is_no_fault(row: bytes) -> None:
    out, row_filter = sift(input_of(row), strict=True, no_user=True)
    assert faults(row_filter) == {}
    assert row_filter.reasons["no_attribute"] == 1
    assert row_filter.table_stats["observations"] == 1
    assert out.count(b"\n") == (1 if row.startswith(b"{") else 2)  # a header, and a row


def test_a_blanked_row_without_attribute_has_no_more_than_a_suppressed_row() -> None:
    rows = b"1,ann,x\n2,ann,\n"
    out, _row_filter = sift(HEADER + rows, z=2, suppressed="blank", no_user=True)
    assert out == b"time,attribute\n1,\n2,\n"
    lines = b'{"time":1,"user":"ann"}\n{"time":2}\n'
    out, _row_filter = sift(lines, z=2, suppressed="blank", no_user=True)
    assert out == b'{"time":1,"attribute":null}\n'


def test_rows_without_attribute_move_the_keys_as_other_rows_do() -> None:
    """A time far ahead must not end the rotation of pseudonyms, whatever the row says."""
    options = {"z": 2, "window": "10s", "rotate": "10s", "suppressed": "blank"}
    ahead = b"4000000000,eve,\n"
    rows = b"".join(b"%d,ann,\n" % (1_000 + n // 10) for n in range(1_000))
    out, row_filter = sift(HEADER + ahead + rows, **options)
    pseudonyms = [line.split(b",")[1] for line in out.splitlines()[2:]]
    assert len(pseudonyms) == 1_000
    assert len(set(pseudonyms[500:])) == 5  # 50 s of 10 s each
    assert row_filter.table_stats["clock_jumps"] == 1
    assert row_filter.table_stats["observations"] == 0
    assert row_filter.reasons["no_attribute"] == 1_001


@pytest.mark.parametrize("row", [b",ann,x\n", b"2,,x\n", b",,\n"])
def test_a_row_needs_a_time_and_with_an_attribute_a_user(row: bytes) -> None:
    _out, row_filter = sift(HEADER + row)
    assert faults(row_filter) == {"missing": 1}


def test_null_texts_are_no_value() -> None:
    rows = HEADER + b"1,a,-\n2,b,-\n3,a,(empty)\n4,b,(empty)\n5,a,x\n6,-,x\n7,b,x\n"
    assert attributes(rows, z=2) == ["-", "(empty)", "x", "x"]
    assert attributes(rows, z=2, null=("-", "(empty)")) == ["x"]
    _out, row_filter = sift(rows, z=2, null=("-", "(empty)"))
    assert row_filter.reasons["no_attribute"] == 4
    assert faults(row_filter) == {"missing": 1}


@pytest.mark.parametrize("null", ["-", ("",), ("a\n",), ("x",) * 17])
def test_bad_null_texts_are_refused(null: object) -> None:
    with pytest.raises(ConfigError, match=r"^null: "):
        sift(b"", null=null)


def test_members_of_objects_are_found_by_their_path() -> None:
    rows = b'{"time":1,"flow":{"user":"a","x":{"y":[1]}},"tls":{"v":[{"sni":"no"}],"sni":"x"}}\n'
    rows += b'{"time":2,"flow.user":"b","tls.sni":"x"}\n'
    rows += b'{"time":3,"flow":{},"tls":{}}\n'
    options = {"user": "flow.user", "attribute": "tls.sni", "z": 2, "no_user": True}
    out, row_filter = sift(rows, **options)
    assert out == b'{"time":2,"tls.sni":"x"}\n'
    assert row_filter.reasons["no_attribute"] == 1
    assert faults(row_filter) == {}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (b'{"time":1,"user":"a","t.s":"x","t":{"s":"x"}}', "twice"),
        (b'{"time":1,"user":"a","t":{"s":"x"},"t.s":"x"}', "twice"),
        (b'{"time":1,"user":"a","t":{"s":"x"},"t":{"s":"x"}}', "twice"),
        (b'{"time":1,"user":"a","t":{"s":"x",}}', "json"),
        (b'{"time":1,"user":"a","t":{"s":"x"}', "json"),
        (b'{"time":1,"user":"a","t":{"s":"x"}}}', "json"),
        (b'{"time":1,"user":"a","t":{"s":"x" "z":1}}', "json"),
        (b'{"time":1,"user":"a","t":{,"s":"x"}}', "json"),
        (b'{"time":1,"user":"a","t":{"s":["x"]}}', "missing"),
    ],
)
def test_rows_whose_members_cannot_be_read(row: bytes, fault: str) -> None:
    _out, row_filter = sift(row + b"\n", attribute="t.s")
    assert faults(row_filter) == {fault: 1}


def test_names_below_a_suffix_are_never_released() -> None:
    rows = HEADER + b"1,a,www.Clinic.example.\n2,b,www.Clinic.example.\n3,a,x.example\n"
    out, row_filter = sift(rows, never=["clinic.example"], no_user=True)
    assert out == b"time,attribute\n3,x.example\n"
    assert row_filter.reasons["never"] == 2
    assert row_filter.table_stats["observations"] == 3


def test_a_log_of_zeek_without_a_preset_is_named() -> None:
    with pytest.raises(ConfigError, match="line 1: this is a log of Zeek; read it with --preset"):
        sift(b"#separator \\x09\n#path\tssl\n")


def test_a_quote_in_a_log_without_quoting_is_a_character() -> None:
    """As in a log of Zeek: the rows between the quotes of a client stay rows."""
    rows = b'ts\tu\thost\tagent\n1\ta\tx\t"begin\n2\tb\tx\tM\n3\tc\ty\tM\n4\td\tx\tend"\n'
    options = {"delimiter": "tab", "time": "ts", "user": "u", "attribute": "host"}
    out, row_filter = sift(rows, passed=("agent",), z=2, no_user=True, **options)
    assert out == b'ts\thost\tagent\n2\tx\tM\n4\tx\tend"\n'
    assert row_filter.stats["rows"] == 4


def test_one_quote_does_not_end_the_input() -> None:
    rows = b"ts\tu\thost\tagent\n" + b'1\ta\tx\t"\n' + b"2\tb\tx\tM\n" * 2000
    options = {"delimiter": "tab", "time": "ts", "user": "u", "attribute": "host"}
    _out, row_filter = sift(rows, z=2, **options)
    assert row_filter.stats["observations"] == 2001


def test_strict_ends_at_damage_and_not_at_a_missing_attribute() -> None:
    with pytest.raises(FormatError, match="line 4: "):
        sift(HEADER + b"1,a,\n2,b,\n3,c\n", strict=True)
