# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon_net.filter` on tables in memory against the command on the same rows as CSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.filter import S
from support.frames import COLUMNS, KINDS, UNITS_NS, Row, by_the_command, rows_of

import zanon_net

START_S = 1_700_000_000
TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary())
CODES = pa.dictionary(pa.int8(), pa.string())
NUMBERS = (pa.int8(), pa.int16(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())
CHARACTERS = "ab ,;\"'=\t\r\n\x01\x7f\x85\u00e9\u2028\U0001f600"
ZONES = (None, "UTC", "Asia/Kolkata", "America/Lima")


@dataclass(frozen=True)
class Frame:
    """A table, its rows as texts, and the setting of its times."""

    table: pa.Table
    rows: Sequence[Row]
    time_unit: str  # empty: its times are datetimes
    tick_ns: int


def random_frame(kind: str, random: Random) -> Frame:
    """Rows of few users and attributes, in columns of random types and chunks."""
    n = random.randint(1, 40)
    unit, zone = random.choice([*UNITS_NS]), random.choice(ZONES)
    is_number = random.random() < 0.5
    seconds = [random.randint(0, 40) for _ in range(n)]
    if random.random() < 0.5:
        seconds.sort()
    times = [(START_S + t) * (S // UNITS_NS[unit]) for t in seconds]
    columns = [
        _column(
            random, _holes(random, times), pa.int64() if is_number else pa.timestamp(unit, zone)
        ),
        *(_values(random, n, kind) for _ in ("user", "attribute")),
        _column(random, [*range(n)], pa.int64()),
    ]
    texts = [[_text(value) for value in column.to_pylist()] for column in columns[1:3]]
    ticks = columns[0].cast(pa.int64()).to_pylist()
    ns = [t if t is None else t * UNITS_NS[unit] for t in ticks]
    return Frame(
        pa.table(columns, names=COLUMNS),
        [*zip(ns, *texts, strict=True)],
        unit if is_number else "",
        UNITS_NS[unit],
    )


def _values(random: Random, n: int, kind: str) -> pa.ChunkedArray:
    """A column of users or attributes."""
    some: list[Any]
    few = range(random.randint(1, 4))
    if random.random() < 0.4:
        of = random.choice(NUMBERS)
        low = 0 if pa.types.is_unsigned_integer(of) else -(1 << (of.bit_width - 1))
        high = low + (1 << of.bit_width) - 1
        some = [random.choice((low, high, random.randint(low, high), len(few))) for _ in few]
    else:
        some = ["".join(random.choices(CHARACTERS, k=random.choice((1, 3, 20)))) for _ in few]
        some += [""] * (random.random() < 0.1)
        of = random.choice((*TEXTS, CODES))
        if of == pa.binary() and kind.startswith("pandas"):
            of = pa.string()
    return _column(random, _holes(random, random.choices(some, k=n)), of)


def _holes(random: Random, values: list[Any]) -> list[Any]:
    """The values, of which some are missing in some columns."""
    if random.random() < 0.5:
        return values
    share = random.choice((0.1, 0.5))
    return [None if random.random() < share else value for value in values]


def _column(random: Random, values: list[Any], of: pa.DataType) -> pa.ChunkedArray:
    """A column in chunks that begin within longer memory."""
    cut = random.randint(0, len(values))
    whole = pa.array([*values[:1], *values], getattr(of, "value_type", of))[1:]
    if pa.types.is_dictionary(of):
        whole = whole.dictionary_encode().cast(of)
    return pa.chunked_array([whole[:cut], whole[cut:]], type=of)


def _text(value: Any) -> str | None:
    """A value as CSV has it."""
    if isinstance(value, bytes):
        value = value.decode()
    return None if value is None else str(value)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**64))
def test_a_table_is_filtered_as_the_command_filters_its_rows(
    kind: str, key_file: str, seed: int
) -> None:
    random = Random(seed)
    frame = random_frame(kind, random)
    options: dict[str, Any] = {
        "z": random.randint(1, 4),
        "window": random.randint(1, 15) * S,
        "rotate": random.randint(1, 15) * S,
        "suppressed": random.choice(("drop", "blank")),
        "no_user": random.random() < 0.3,
        "key_file": key_file,
    }
    expected, counted = by_the_command(frame.rows, **options)
    more = {"time_unit": frame.time_unit} if frame.time_unit else {}
    reports: list[Any] = []
    given_table = KINDS[kind](frame.table)
    try:
        out = zanon_net.filter(
            given_table, **options, **more, passed=["row"], report=reports.append
        )
        read = rows_of(out, frame.tick_ns)
    except zanon_net.FormatError:  # no row can be read
        assume(expected != [])
        raise
    found = [(t, *some, _text(attribute) or None, i) for t, *some, attribute, i in read]
    assert found == expected
    assert type(out) is type(given_table) or kind == "other"
    manifest = reports[0].manifest
    assert manifest["rows"]["read"] == len(frame.rows)
    assert manifest["rows"]["written"] == len(found)
    for part in ("rows", "decisions", "time_range"):
        assert manifest[part] == counted[part]
    assert manifest["decisions"]["released"] == sum(row[-2] is not None for row in found)
