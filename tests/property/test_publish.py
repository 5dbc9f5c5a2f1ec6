# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`publish` against its oracle: which rows leave, with what, when, in which bytes."""

import csv
import io
import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.publishing import Came, Stream
from oracle.suhdsa import Grouper, Rule, Tree
from support.publish import AGE, CITY, csv_bytes, jsonl_bytes, pieces, publish

S = 1_000_000_000
TREES = [Tree(h.parent.tolist()) for h in (CITY, AGE)]
CITIES = ["bern", "genf", "graz", "wien", None, "atlantis"]
AGES = [3, 17, 25, 38, 39, 70, None]
VALUES = ["tea", "jam", "oil, thin", None]
USERS = ["ann", "bob", "cat", "dan", "eve"]
WAYS = ["up", "down"]
KINDS = ["distinct", "entropy", "recursive:1.5"]

Row = tuple[int, str, str | None, int | None, str | None, str]


@st.composite
def streams(draw: st.DrawFn, *, unknown: bool = True) -> list[Row]:
    """Rows whose times mostly rise; few users and values, so that they meet."""
    cities = CITIES if unknown else CITIES[:-1]
    row = st.tuples(
        st.integers(-6, 9),
        st.sampled_from(USERS),
        st.sampled_from(cities),
        st.sampled_from(AGES),
        st.sampled_from(VALUES),
    )
    rows, now = [], 100
    for number, (step, *rest) in enumerate(draw(st.lists(row, max_size=40))):
        now = max(now + step, 0)
        rows.append((now, *rest, f"hush{number}"))
    return rows


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Settings that go together."""
    k, l = draw(st.integers(1, 4)), draw(st.integers(1, 3))  # noqa: E741
    found: dict[str, Any] = {
        "k": k,
        "l": l,
        "rows": draw(st.integers(max(k, l), 12)),
        "buffer": draw(st.sampled_from(["tumbling", "sliding"])),
        "delay": draw(st.sampled_from([None, "3s", "12s", "60s"])),
        "unknown": draw(st.sampled_from(["suppress", "top"])),
    }
    if found["delay"] is not None:
        found["once"] = draw(st.sampled_from([None, "5s"]))
    if l > 1:
        found["l_kind"] = draw(st.sampled_from(KINDS))
    if found["buffer"] == "tumbling":
        most = draw(st.none() | st.integers(l, min(4, found["rows"])))
        found["adapt_l"] = None if most is None else f"{most}:{draw(st.sampled_from(WAYS))}"
    if draw(st.booleans()):
        found["max_share"] = draw(st.sampled_from([0.5, 0.7]))
    return found


def nodes_of(row: Row, settings: dict[str, Any]) -> tuple[int | None, ...]:
    codes = [int(CITY.codes([row[2]])[0]), int(AGE.codes([row[3]])[0])]
    if settings["unknown"] == "top":
        roots = [CITY.nodes - 1, AGE.nodes - 1]
        return tuple(r if code < 0 else code for code, r in zip(codes, roots, strict=True))
    return tuple(None if code < 0 else code for code in codes)


def seconds(text: str | None) -> int | None:
    return None if text is None else int(text.removesuffix("s")) * S


def adaptive(text: str | None) -> tuple[int, bool] | None:
    most, _, way = (text or "").partition(":")
    return (int(most), way == "up") if most else None


def oracle_of(rows: list[Row], settings: dict[str, Any]) -> Stream:
    kind, share = settings.get("l_kind", "distinct"), settings.get("max_share", 1.0)
    rule = Rule(settings["k"], settings["l"], kind, share)
    stream = Stream(
        Grouper(TREES, rule),
        (CITY.labels, AGE.labels),
        settings["rows"],
        delay=seconds(settings["delay"]),
        sliding=settings["buffer"] == "sliding",
        once=seconds(settings.get("once")),
        adapt=adaptive(settings.get("adapt_l")),
    )
    for row in rows:
        value = (VALUES.index(row[4]),)
        stream.take(Came(row[0] * S, nodes_of(row, settings), value, USERS.index(row[1])))
    stream.end()
    return stream


def lines_of(stream: Stream, rows: list[Row], form: str) -> bytes:
    """What is written, release by release, each sorted by its bytes."""
    lines = []
    for time, leaving in stream.releases:
        of_release = []
        for number, (city, age) in leaving.items():
            row = [time // S, CITY.labels[city], AGE.labels[age], rows[number][4]]
            if form == "csv":
                of_release.append(csv_bytes([row], ()).removeprefix(b"\n"))
            else:
                named = dict(zip(("time", "city", "age", "product"), row, strict=True))
                text = json.dumps(named, separators=(",", ":"), ensure_ascii=False)
                of_release.append(text.encode() + b"\n")
        lines += sorted(of_release)
    head = b"time,city,age,product\n" if form == "csv" and rows else b""
    return head + b"".join(lines)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(rows=streams(), settings=options())
def test_the_oracle_writes_the_same_bytes(
    form: str, rows: list[Row], settings: dict[str, Any]
) -> None:
    data = csv_bytes(rows) if form == "csv" else jsonl_bytes(rows)
    if not rows:
        data = b""
    out, publisher = publish(data, **settings)
    stream = oracle_of(rows, settings)
    assert out == lines_of(stream, rows, form)
    counts = publisher.window
    fates = Counter(stream.fates.values())
    assert counts["rows"] == len(rows) == sum(fates.values())
    assert counts["released"] == fates.pop("released", 0)
    assert {name: n for name, n in counts["suppressed"].items() if n} == dict(fates)


@given(rows=streams(), settings=options(), size=st.sampled_from([1, 7, 50]))
def test_any_portions_give_the_same_bytes(
    rows: list[Row], settings: dict[str, Any], size: int
) -> None:
    data = csv_bytes(rows)
    assert publish(pieces(data, size), **settings)[0] == publish(data, **settings)[0]


@given(rows=streams(), settings=options())
def test_each_class_of_a_release_holds(rows: list[Row], settings: dict[str, Any]) -> None:
    """Counted from the bytes alone, with the users as they came."""
    stream = oracle_of(rows, settings)
    out, _publisher = publish(csv_bytes(rows), **settings)
    written = list(csv.reader(io.StringIO(out.decode(), newline=""), strict=True))[1:]
    at = 0
    for _time, leaving in stream.releases:
        classes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for row in written[at : at + len(leaving)]:
            classes[row[1], row[2]].append(row[3])
        at += len(leaving)
        for members in classes.values():
            assert len(members) >= settings["k"]
            assert len(set(members)) >= settings["l"]
    assert at == len(written)


@given(rows=streams(), settings=options())
def test_no_row_leaves_after_its_bound(rows: list[Row], settings: dict[str, Any]) -> None:
    _out, publisher = publish(csv_bytes(rows), **settings)
    delay = seconds(settings["delay"])
    if delay is not None:
        assert publisher.window["delay_max"] < delay


@given(rows=streams(), settings=options())
def test_nothing_else_of_a_row_leaves(rows: list[Row], settings: dict[str, Any]) -> None:
    out, _publisher = publish(csv_bytes(rows), **settings)
    for word in (*USERS, "hush", "atlantis"):
        assert word.encode() not in out
