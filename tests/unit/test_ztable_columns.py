# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`ZTable.observe_batch` on columns of every library against `observe` one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import each, examples

from zanon_net import ZTable

Texts = list[str | None]

TEXTS: dict[str, Callable[[Texts], Any]] = {
    "Series": pd.Series,
    "Series of objects": lambda texts: pd.Series(texts, dtype=object),
    "Series of categories": lambda texts: pd.Series(
        pd.Categorical(texts, categories=sorted({text for text in texts if text is not None}))
    ),
    "Series of Arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda texts: pl.Series(texts, dtype=pl.String),
    "polars categories": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "Array": lambda texts: pa.array(texts, pa.string()),
    "large": lambda texts: pa.array(texts, pa.large_string()),
    "view": lambda texts: pa.array(texts, pa.string_view()),
    "bytes": lambda texts: pa.array(texts, pa.string()).cast(pa.binary()),
    "dictionary": lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
    "ChunkedArray": lambda texts: pa.chunked_array([texts[:3], texts[3:]], pa.string()),
    "slice": lambda texts: pa.array(["x", *texts], pa.string())[1:],
    "objects": lambda texts: np.array(texts, dtype=object),
}
PADDED: dict[str, Callable[[list[str]], Any]] = {
    "NumPy's str": lambda texts: np.array(texts, dtype=f"U{max(map(len, texts), default=1) or 1}"),
    "NumPy's str, a stride": lambda texts: np.repeat(np.array(texts, dtype="U30"), 2)[::2],
    "NumPy's str, swapped": lambda texts: np.array(texts, dtype="U30").astype(">U30"),
    "NumPy's StringDType": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "NumPy's bytes": lambda texts: np.array([text.encode() for text in texts], dtype="S90"),
}
WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@st.composite
def observations(draw: st.DrawFn) -> tuple[list[int], Texts, Texts]:
    """Times, users and attributes of which some are missing."""
    n = draw(st.integers(0, 30))
    columns = []
    for _ in range(2):
        some = draw(st.lists(st.none() | WORDS, min_size=1, max_size=5, unique=True))
        columns.append(draw(st.lists(st.sampled_from(some), min_size=n, max_size=n)))
    times = draw(st.lists(st.integers(0, 300), min_size=n, max_size=n))
    return sorted(times), *columns  # type: ignore[return-value]


def one_by_one(t_ns: list[int], user: Texts, attribute: Texts) -> list[bool]:
    table = ZTable(2, 100)
    return [
        u is not None and a is not None and table.observe(t, u, a)
        for t, u, a in zip(t_ns, user, attribute, strict=True)
    ]


@pytest.mark.parametrize("kind", TEXTS)
@settings(max_examples=examples(30))
@given(observations())
def test_texts(kind: str, of: tuple[list[int], Texts, Texts]) -> None:
    t_ns, user, attribute = of
    make = TEXTS[kind]
    answers = ZTable(2, 100).observe_batch(np.array(t_ns, np.int64), make(user), make(attribute))
    assert answers.dtype == bool
    assert answers.tolist() == one_by_one(*of)


@pytest.mark.parametrize("kind", PADDED)
@settings(max_examples=examples(30))
@given(observations())
def test_texts_of_numpy(kind: str, of: tuple[list[int], Texts, Texts]) -> None:
    t_ns = of[0]
    user, attribute = ([(text or "").rstrip("\0") for text in column] for column in of[1:])
    make = PADDED[kind]
    answers = ZTable(2, 100).observe_batch(np.array(t_ns, np.int64), make(user), make(attribute))
    assert answers.tolist() == one_by_one(t_ns, user, attribute)  # type: ignore[arg-type]


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "NumPy": lambda array: array,
    "NumPy, swapped": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "pandas": pd.Series,
    "pandas with missing": lambda array: pd.Series(pd.array(array).astype(array.dtype)),
    "polars": pl.Series,
    "pyarrow": pa.array,
}


@each("library", LIBRARIES)
@each("kind", INTEGERS)
def test_numbers_of_every_width(kind: str, library: str) -> None:
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    values = np.array([low, high, 1, low, high, 0, 1], kind)
    make = LIBRARIES[library]
    t_ns = np.arange(7)
    wide = values.astype(np.int64 if low < 0 else np.uint64)
    tables = [ZTable(2, 100), ZTable(2, 100)]
    found = tables[0].observe_batch(make(t_ns), make(np.arange(7).astype(kind)), make(values))
    expected = tables[1].observe_batch(t_ns, np.arange(7), wide)
    assert found.tolist() == expected.tolist()
    assert expected.any()
    for value in values:
        counts = [table.count(int(value) % 2**64) for table in tables]
        assert counts[0] == counts[1] >= 1


TIMES: dict[str, Callable[[str], Any]] = {
    "NumPy": lambda unit: np.array([0, 60, 121], "M8[s]").astype(f"M8[{unit}]"),
    "pandas": lambda unit: pd.Series(np.array([0, 60, 121], "M8[s]")).astype(f"M8[{unit}]"),
    "zone": lambda unit: (
        pd.Series(np.array([0, 60, 121], "M8[s]"))
        .dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata").dt.as_unit(unit)
    ),
    "pyarrow": lambda unit: (
        pa.array([0, 60, 121], pa.timestamp("s")).cast(pa.timestamp(unit, "America/Lima"))
    ),
    "polars": lambda unit: pl.Series(np.array([0, 60, 121], "M8[s]").astype(f"M8[{unit}]")),
}  # fmt: skip


@pytest.mark.parametrize("library", TIMES)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit(unit: str, library: str) -> None:
    if (library, unit) == ("polars", "s"):
        pytest.skip("polars has no times in seconds")
    table = ZTable(2, window="1m")
    answers = table.observe_batch(TIMES[library](unit), np.arange(3), np.zeros(3, np.int64))
    assert answers.tolist() == [False, True, False]


def test_missing_times_are_not_observed() -> None:
    times = np.array(["1970-01-01", "NaT", "1970-01-01"], "M8[ns]")
    for t_ns in (times, pd.Series(times), pl.Series(times), pa.array([0, None, 0])):
        table = ZTable(2, 100)
        answers = table.observe_batch(t_ns, np.arange(3), np.zeros(3, np.int64))
        assert answers.tolist() == [False, False, True]
        assert table.stats["observations"] == 2


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    users = np.array(["a", "\ud800", "\udc00"], dtype=object)
    table = ZTable(1, 100)
    assert table.observe_batch(np.zeros(3, np.int64), users, users).tolist() == [True, False, False]


def test_more_rows_than_a_batch_of_the_core() -> None:
    n = 1000
    texts = [None if i % 7 == 0 else f"name{i % 50}" for i in range(n)]
    users = [f"user{i % 90}" for i in range(n)]
    found = ZTable(2, 100).observe_batch(np.arange(n), pl.Series(users), pl.Series(texts))
    assert found.tolist() == one_by_one([*range(n)], users, texts)  # type: ignore[arg-type]


WRONG = {
    "list": ([1, 2, 3], "must be an array, a Series or an Arrow column, not list"),
    "bytes": (b"\0" * 24, "must be an array, a Series or an Arrow column, not bytes"),
    "nothing": (None, "must be an array, a Series or an Arrow column, not NoneType"),
    "floats": (np.zeros(3), "holds floating-point numbers, not "),
    "floats of Arrow": (pa.array([0.5] * 3), "holds floating-point numbers, not "),
    "truth values": (np.zeros(3, bool), "holds truth values, not "),
    "objects": (np.array([1, 2, 3], object), "holds objects that are not texts; convert it to "),
    "lists": (pa.array([[1]] * 3), "holds values of another type, not "),
    "durations": (np.zeros(3, "m8[s]"), "holds durations, not "),
    "months": (np.zeros(3, "M8[M]"), "holds values of another type, not "),
    "decimals": (pa.array([1, 2, 3], pa.decimal128(5, 2)), "holds decimal numbers, not "),
}


@each("column", ["t_ns", "user", "attribute"])
@each("case", WRONG)
def test_wrong_columns(case: str, column: str) -> None:
    names = ("t_ns", "user", "attribute")
    columns: dict[str, Any] = {name: np.zeros(3, np.int64) for name in names}
    values, message = WRONG[case]
    with pytest.raises(TypeError) as caught:
        ZTable(1, 10).observe_batch(**columns | {column: values})
    assert str(caught.value).startswith(f"{column} {message}")


def test_times_are_no_users_and_texts_no_times() -> None:
    numbers = np.zeros(3, np.int64)
    times, texts = numbers.view("M8[ns]"), np.array(["a", "b", "c"])
    for wrong in ((texts, numbers, numbers), (numbers, times, numbers), (numbers, numbers, times)):
        with pytest.raises(TypeError, match=r" holds (times|texts), not whole numbers or t"):
            ZTable(1, 10).observe_batch(*wrong)


def test_columns_of_another_length() -> None:
    numbers = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match=r"^attribute must have one dimension and the length of t"):
        ZTable(1, 10).observe_batch(pd.Series(numbers), numbers, pl.Series(["a", "b"]))
