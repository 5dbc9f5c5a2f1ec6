# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Times as text: numbers of every unit, ISO 8601, and what is neither."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import each

from zanon_net._core import format_time, parse_time, time_problem

NINE = 10**9
MAX_NS = 2**63 - 1
PER_UNIT = {"s": NINE, "ms": 10**6, "us": 10**3, "ns": 1}


@each(
    "text, unit, t_ns",
    [
        ("0", "s", 0),
        ("1715677200", "s", 1715677200 * NINE),
        ("1715677200.5", "s", 1715677200 * NINE + NINE // 2),
        ("1.000000001", "s", NINE + 1),
        ("1.0000000019", "s", NINE + 1),
        ("0001.10", "s", 11 * 10**8),
        ("1715677200123", "ms", 1715677200123 * 10**6),
        ("1715677200123.456789", "ms", 1715677200123456789),
        ("1715677200123456", "us", 1715677200123456000),
        ("1715677200123456789", "ns", 1715677200123456789),
        ("5.9", "ns", 5),
        ("9223372036.854775807", "s", MAX_NS),
        ("9223372036854775807", "ns", MAX_NS),
        ("1.7e9", "s", 17 * 10**8 * NINE),
        ("1.719616661E+09", "s", 1719616661 * NINE),
        ("1719616661500e-3", "s", 1719616661 * NINE + NINE // 2),
        ("1.7156772001234567891e18", "ns", 1715677200123456789),
        ("17e-10", "s", 1),
        ("17e-11", "s", 0),
        ("0.000000000000000000000001e33", "s", NINE * NINE),
        ("0e99999999999999999999999", "s", 0),
        ("5e-99999999999999999999999", "ms", 0),
        ("1" + "0" * 400 + "e-400", "s", NINE),
    ],
)
def test_numbers(text: str, unit: str, t_ns: int) -> None:
    assert parse_time(text.encode(), unit) == (t_ns, True)


@each("unit", PER_UNIT)
@each(
    "text",
    [
        "",
        ".",
        ".5",
        "5.",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1e",
        "1e+",
        "e9",
        "1.e9",
        "1e9.5",
        "1e1e1",
        "1e 9",
        "1e400",
        "1e99999999999999999999999",
        "1_000",
        "0x10",
        "1,5",
        "1.5.2",
        "nan",
        "9223372036854775808",
        "99999999999999999999",
        "1" * 400,
        "1\0",
        "\uff12",
        "2024-05-14",
    ],
)
def test_what_is_no_number(text: str, unit: str) -> None:
    assert parse_time(text.encode(), unit) is None


_EXACT = Context(prec=200)


@given(
    st.from_regex(r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", fullmatch=True).filter(
        str.isascii  # the pattern's digits are the digits of all scripts
    ),
    st.sampled_from(sorted(PER_UNIT)),
)
def test_numbers_as_the_decimal_module_reads_them(text: str, unit: str) -> None:
    expected = int(_EXACT.multiply(_EXACT.create_decimal(text), Decimal(PER_UNIT[unit])))
    assert parse_time(text.encode(), unit) == (None if expected > MAX_NS else (expected, True))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_numbers_end_in_2262(unit: str) -> None:
    last, rest = divmod(MAX_NS, PER_UNIT[unit])
    decimals = len(str(PER_UNIT[unit])) - 1
    assert parse_time(f"{last}.{rest:0{decimals}}".encode(), unit) == (MAX_NS, True)
    assert parse_time(f"{last}.{rest + 1:0{decimals}}".encode(), unit) is None
    assert parse_time(f"{last + 1}".encode(), unit) is None


@each(
    "text, t_ns",
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-05-14T09:00:00Z", 1715677200 * NINE),
        ("2024-05-14t09:00z", 1715677200 * NINE),
        ("2024-05-14 09:00:00.000000001+00:00", 1715677200 * NINE + 1),
        ("2024-05-14T11:00:00,5+02", 1715677200 * NINE + NINE // 2),
        ("2024-05-14T14:45:00+0545", 1715677200 * NINE),
        ("2024-05-14 09:00:00 UTC", 1715677200 * NINE),
        ("2024-05-14T09:00:00UTC", 1715677200 * NINE),
        ("2024-05-14 09:00 Z", 1715677200 * NINE),
        ("2024-05-14 17:00:00 +0800", 1715677200 * NINE),
        ("2024-05-14 17:00:00+0800", 1715677200 * NINE),
        ("2024-05-14 09:00:00.123456789 UTC", 1715677200123456789),
        ("2024-05-13T23:00:00-10:00", 1715677200 * NINE),
        ("1969-12-31T23:30:00-00:30", 0),
        ("2000-02-29T23:59:59.9999999999Z", 951868799 * NINE + 999999999),
        ("2262-04-11T23:47:16.854775807Z", MAX_NS),
    ],
)
def test_iso(text: str, t_ns: int) -> None:
    assert parse_time(text.encode(), "iso") == (t_ns, True)


@pytest.mark.parametrize("text", ["2024-05-14", "2024-05-14T00:00", "2024-05-14 00:00:00.000"])
def test_iso_without_offset_is_utc_and_says_so(text: str) -> None:
    assert parse_time(text.encode(), "iso") == (1715644800 * NINE, False)


@each(
    "text",
    [
        "",
        "2024",
        "2024-05",
        "2024-5-14",
        "20240514",
        "2024-05-14T",
        "2024-05-14T09",
        "24-05-14",
        "2024-13-01",
        "2024-00-10",
        "2024-04-31",
        "2023-02-29",
        "2100-02-29",
        "2024-05-00",
        "2024-05-14T24:00:00Z",
        "2024-05-14T09:60Z",
        "2024-05-14T23:59:60Z",
        "2024-05-14T9:00Z",
        "2024-05-14T09:00:00.Z",
        "2024-05-14T09:00:00X",
        "2024-05-14T09:00:00+",
        "2024-05-14Z",
        "2024-05-14 UTC",
        "2024-05-14 09:00:00 ",
        "2024-05-14 09:00:00  UTC",
        "2024-05-14 09:00:00 UT",
        "2024-05-14 09:00:00 UTC+1",
        "2024-05-14 09:00:00 CET",
        "14/05/2024 09:00",
        "1.7e9",
        "2024-05-14T09:00:00+2",
        "2024-05-14T09:00:00+24:00",
        "2024-05-14T09:00:00+02:60",
        "2024-05-14T09:00:00+02:",
        "2024-05-14T09:00:00Z ",
        " 2024-05-14T09:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "2262-04-11T23:47:16.854775808Z",
        "2263-01-01T00:00:00Z",
        "9999-12-31",
        "-2024-05-14",
        "2024-05-14T09:00:00Z\0",
        "1715677200",
    ],
)
def test_what_is_not_iso(text: str) -> None:
    assert parse_time(text.encode(), "iso") is None


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2262, 4, 10)),
    st.integers(-23 * 60, 23 * 60),
    st.sampled_from(["T", " "]),
    st.sampled_from(["", " "]),
    st.booleans(),
)
def test_iso_as_the_datetime_module_reads_it(
    moment: datetime, minutes: int, sep: str, blank: str, colon: bool
) -> None:
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    since = local - datetime(1970, 1, 1, tzinfo=UTC)
    expected = (since // timedelta(microseconds=1)) * 1000
    written = local.isoformat()[-6:]
    text = moment.isoformat(sep) + blank + (written if colon else written.replace(":", ""))
    assert parse_time(text.encode(), "iso") == (expected, True)


@given(st.integers(0, MAX_NS), st.sampled_from([*PER_UNIT, "iso"]))
def test_what_is_written_is_read_back(t_ns: int, unit: str) -> None:
    text = format_time(t_ns, unit)
    assert parse_time(text.encode(), unit) == (t_ns, True)
    if unit == "iso":
        whole = datetime.fromtimestamp(t_ns // NINE, UTC)
        assert text.startswith(f"{whole:%Y-%m-%dT%H:%M:%S}")
        assert text.endswith("Z")
    else:
        assert text == "0" or not (text.endswith("0") and "." in text)


@pytest.mark.parametrize(
    ("t_ns", "unit", "text"),
    [
        (1715677200 * NINE, "iso", "2024-05-14T09:00:00Z"),
        (1715677200 * NINE + 5 * 10**8, "iso", "2024-05-14T09:00:00.500Z"),
        (1715677200 * NINE + 1000, "iso", "2024-05-14T09:00:00.000001Z"),
        (1, "iso", "1970-01-01T00:00:00.000000001Z"),
        (1, "s", "0.000000001"),
        (15 * 10**8, "s", "1.5"),
        (2 * NINE, "s", "2"),
        (1500, "ms", "0.0015"),
        (7, "ns", "7"),
    ],
)
def test_written(t_ns: int, unit: str, text: str) -> None:
    assert format_time(t_ns, unit) == text


@pytest.mark.parametrize("unit", [*PER_UNIT, "iso"])
def test_the_time_of_an_error_would_be_read(unit: str) -> None:
    problem = time_problem(b"14/05/2024 09:00", unit)
    assert "14/05" not in problem
    assert parse_time(problem.rpartition(" ")[2].encode(), unit) is not None


@pytest.mark.parametrize("text", ["1715677200,5", "1,7e9"])
@pytest.mark.parametrize("unit", [*PER_UNIT, "iso"])
def test_a_decimal_comma_gets_a_hint(text: str, unit: str) -> None:
    assert parse_time(text.encode(), unit) is None
    assert "write a point" in time_problem(text.encode(), unit)
