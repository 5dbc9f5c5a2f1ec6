# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`filter --levels` on rows against the rule in Python, row by row."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import ladder as oracle
from oracle.ztable import ZOracle
from support.filter import S, faults
from support.hierarchies import lines
from support.ladders import ladder_of, sift_ladder, trees_of, write_hierarchies

Row = tuple[int, str, list[str]]
"""(seconds, user, values)"""


@st.composite
def streams(
    draw: st.DrawFn, *, ordered: bool, strangers: bool = False
) -> tuple[list[list[list[str]]], list[Row]]:
    """Hierarchies of one to three columns, and rows of few users that meet.

    strangers: some values are in no hierarchy.
    """
    hierarchies = [
        draw(lines(leaves=5, levels=draw(st.integers(2, 4))))
        for _column in range(draw(st.integers(1, 3)))
    ]
    values = [[row[0] for row in rows] + ["?? unknown"] * strangers for rows in hierarchies]
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 30),
                st.sampled_from("uvwxyz"),
                st.tuples(*map(st.sampled_from, values)).map(list),
            ),
            max_size=40,
        )
    )
    return hierarchies, sorted(rows, key=lambda row: row[0]) if ordered else rows


def as_csv(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["time", "user", *names])
    writer.writerows([t, user, *values] for t, user, values in rows)
    return text.getvalue().encode()


def as_jsonl(rows: Sequence[Row], names: Sequence[str]) -> bytes:
    """A missing value is null, absent or an empty text."""
    objects = []
    for t, user, values in rows:
        found: dict[str, Any] = dict(zip(names, values, strict=True))
        if t % 3:
            found = {name: value or None for name, value in found.items()}
        if t % 3 == 2:
            found = {name: value for name, value in found.items() if value is not None}
        objects.append({"time": t, **found, "user": user})
    return "".join(json.dumps(row) + "\n" for row in objects).encode()


def read_csv(data: bytes) -> list[list[str | None]]:
    found = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    return [[field or None for field in line] for line in found[1:]]


def read_jsonl(data: bytes) -> list[list[str | None]]:
    rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    return [[str(row.pop("time")), *row.values()] for row in rows]


FORMATS = {"csv": (as_csv, read_csv), "jsonl": (as_jsonl, read_jsonl)}


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("format", FORMATS)
@given(
    stream=streams(ordered=True),
    z=st.integers(1, 4),
    window=st.integers(1, 15),
    suppressed=st.sampled_from(["drop", "blank"]),
    piece=st.sampled_from([7, 1 << 30]),
)
def test_rows_leave_at_the_step_that_the_rule_chooses(
    every: int,
    format: str,
    stream: tuple[list[list[list[str]]], list[Row]],
    z: int,
    window: int,
    suppressed: str,
    piece: int,
) -> None:
    hierarchies, rows = stream
    write, read = FORMATS[format]
    trees = trees_of(hierarchies)
    with TemporaryDirectory() as folder:
        files = write_hierarchies(Path(folder), hierarchies)
        settings = {"z": z, "window": window * S, "suppressed": suppressed, "no_user": True}
        config, ladder = ladder_of(files, **settings)
        if every > 1:
            steps = ladder.steps[::every]
            text = "".join(",".join(map(str, step)) + "\n" for step in steps)
            path = Path(folder) / "steps.txt"
            path.write_text(text)
            config, ladder = ladder_of(files, levels=path, **settings)
            assert ladder.steps == steps
    brute = oracle.Ladder(trees, ladder.steps, z, window * S)
    expected, counts, loss = [], [0] * len(ladder.steps), 0.0
    for t, user, values in rows:
        answer = brute.decide(t * S, ord(user), values)
        if answer is None:
            loss += 1
            if suppressed == "blank":
                expected.append([str(t), *[None] * len(values)])
            continue
        step, labels = answer
        expected.append([str(t), *labels])
        counts[ladder.steps.index(step)] += 1
        nodes = brute.nodes(values, step)
        losses = [tree.loss(node) for tree, node in zip(trees, nodes, strict=True)]
        loss += float(sum(losses)) / len(trees)
    out, row_filter = sift_ladder(write(rows, list(files)), config, ladder, piece)
    assert faults(row_filter) == {}
    assert read(out) == expected
    stats = row_filter.ladder_stats
    assert stats is not None
    assert (stats["released"], stats["unknown"]) == (counts, 0)
    table = row_filter.table_stats
    assert (table["observations"], table["released"]) == (len(rows), sum(counts))
    assert table["below_z"] == len(rows) - sum(counts)
    facts = ladder.facts(stats, table["observations"])
    assert facts["loss"] == (pytest.approx(loss / len(rows), abs=1e-6) if rows else None)


@given(stream=streams(ordered=True, strangers=True), z=st.integers(1, 3))
def test_a_value_in_no_hierarchy_is_the_root_or_suppresses_its_row(
    stream: tuple[list[list[list[str]]], list[Row]], z: int
) -> None:
    hierarchies, rows = stream
    trees = trees_of(hierarchies)
    known = [
        all(tree.find(value) >= 0 for tree, value in zip(trees, row[2], strict=True))
        for row in rows
    ]
    for unknown in ("top", "suppress"):
        with TemporaryDirectory() as folder:
            files = write_hierarchies(Path(folder), hierarchies)
            config, ladder = ladder_of(files, z=z, unknown=unknown, no_user=True)
        brute = oracle.Ladder(trees, ladder.steps, z, 3600 * S)
        expected = []
        for row, is_known in zip(rows, known, strict=True):
            if not is_known and unknown == "suppress":
                continue
            answer = brute.decide(row[0] * S, ord(row[1]), row[2])
            if answer is not None:
                expected.append([str(row[0]), *answer[1]])
        out, row_filter = sift_ladder(as_csv(rows, list(files)), config, ladder)
        assert read_csv(out) == expected
        stats = row_filter.ladder_stats
        assert stats is not None
        assert stats["unknown"] == (known.count(False) if unknown == "suppress" else 0)
        assert "?? unknown" not in out.decode()


@given(stream=streams(ordered=False), z=st.integers(1, 4), window=st.integers(1, 15))
def test_no_generalization_leaves_that_fewer_users_exposed(
    stream: tuple[list[list[list[str]]], list[Row]], z: int, window: int
) -> None:
    """In whatever order rows come."""
    hierarchies, rows = stream
    trees = trees_of(hierarchies)
    with TemporaryDirectory() as folder:
        files = write_hierarchies(Path(folder), hierarchies)
        config, ladder = ladder_of(
            files, z=z, window=window * S, suppressed="blank", no_user=True, to="jsonl"
        )
    brute = oracle.Ladder(trees, ladder.steps, z, window * S)
    out, row_filter = sift_ladder(as_csv(rows, list(files)), config, ladder)
    written = read_jsonl(out)
    assert len(written) == len(rows) == row_filter.table_stats["observations"]
    exposed = ZOracle(z, window * S)
    for (t, user, values), line in zip(rows, written, strict=True):
        may = []
        for step in ladder.steps:
            nodes = brute.nodes(values, step)
            if exposed.observe(t * S, user, nodes):
                may.append([label or None for _level, label in nodes])
        assert line[1:] in [*may, [None] * len(values)]
