# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of Zeek through `filter --preset`, next to brute force: made logs, and Zeek's own logs."""

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.logs import NAME, released, rows_of
from support.logs import NAMES, anonymize, json_rows, row_of, tsv_rows, zeek_json, zeek_tsv
from support.paths import ROOT

from zanon_net.errors import ConfigError, FormatError

LOGS = ROOT / "../shared/corpus/zeek_logs"
PATHS = tuple(NAME)

clients = st.sampled_from(
    [f"10.0.0.{i}" for i in range(1, 5)] + ["2001:db8:1::1", "2001:db8:1::2", "203.0.113.9"]
)
names = st.sampled_from(
    [
        "a.example",
        "A.example.",
        "b.example",
        "c.example:443",
        "x.local",
        "192.0.2.1",
        "-",
        "(empty)",
    ]
)
marks = st.sampled_from(["0", "-", "T", "F", "200", "iH", "IS"])
rows = st.lists(
    st.tuples(st.integers(0, 20), clients, names, marks, st.sampled_from(["10.9.9.9", "-"])),
    max_size=30,
)


@given(path=st.sampled_from(PATHS), drawn=rows, z=st.integers(2, 3))
def test_rows_leave_as_by_brute_force(path: str, drawn: list[tuple[int, ...]], z: int) -> None:
    preset, made, t = f"zeek-{path}", [], 0
    for step, client, name, mark, server in drawn:
        t += step
        row = row_of(preset, t, str(client), str(name), **{"id.resp_h": str(server)})
        field = {"dns": "rcode", "ssl": "established", "http": "status_code", "quic": "history"}
        if mark in ("-", "F", "IS"):
            row[field[path]] = "-" if mark == "F" and path != "ssl" else str(mark)
        made.append(row)
    for row in made:
        if row.get("rcode", "0") not in ("0", "-") or row.get("status_code", "200") not in (
            "200",
            "-",
        ):
            row["rcode" if path == "dns" else "status_code"] = "-"
    text = zeek_tsv(preset, made)
    expected = released(path, text.decode(), z, 60)
    out, _row_filter = anonymize(text, preset, z=z, window="60s")
    left = tsv_rows(out)
    assert [(row["ts"], row[NAMES[preset]]) for row in left] == expected
    json_out, _row_filter = anonymize(zeek_json(preset, made), preset, z=z, window="60s")
    assert [row[NAMES[preset]] for row in json_rows(json_out)] == [name for _t, name in expected]


def with_times(text: str) -> str:
    """Zeek's tests mask times; each masked row gets a time of its own."""
    numbers = itertools.count(1_700_000_000)
    return re.sub(r"X{10}\.X{6}", lambda _mask: f"{next(numbers)}.000000", text)


def logs() -> list[Path]:
    return sorted(LOGS.iterdir()) if LOGS.is_dir() else []


@pytest.mark.family(6)
@pytest.mark.skipif(not logs(), reason="the logs of ../shared/corpus/zeek_logs are not here")
@pytest.mark.parametrize("path", ["conn", *PATHS])
@pytest.mark.parametrize("suppressed", ["drop", "blank"])
def test_logs_of_zeeks_own_tests(path: str, suppressed: str) -> None:
    read = 0
    messages: list[str] = []
    for log in logs():
        text = with_times(log.read_text(encoding="utf-8"))
        try:
            out, row_filter = anonymize(
                text.encode(), f"zeek-{path}", suppressed=suppressed, window="10d"
            )
        except (ConfigError, FormatError) as error:
            messages.append(str(error))
            continue
        read += 1
        if not text.lstrip("#").startswith(("## BTest", "{")) or "#fields" not in text:
            continue
        given = [line for line in text.splitlines() if line.startswith(("#fields", "#types"))]
        assert [
            line for line in out.splitlines() if line.startswith(("#fields", "#types"))
        ] == given
        shown = {value for row in tsv_rows(out) for value in row.values()}
        held = list(rows_of(text))
        assert not shown & {row["id.orig_h"] for row in held if row.get("id.orig_h")} - {"-"}
        assert not shown & {row["uid"] for row in held if row.get("uid")} - {"-"}
        if path == "conn":
            continue
        expected = released(path, text, 2, 864_000)
        left = [(row["ts"], row[NAME[path]]) for row in tsv_rows(out) if row[NAME[path]] != "-"]
        assert left == expected
        assert row_filter.table_stats["released"] == len(expected)
    assert read > 5
    assert not any("\n" in message for message in messages)
