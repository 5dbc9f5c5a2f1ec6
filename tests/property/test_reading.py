# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs over random conversations are one table, in whatever format they are read."""

import json
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario.crowd import Scenario, scenarios, settings_of
from support.contract_runs import LIMITS, captures, columns_of
from support.examples import examples

import zanon_net
from zanon_net import Config, _core
from zanon_net.output.schema import columns

FORMATS = {"jsonl": "*.jsonl*", "csv": "*.csv*", "parquet": "flows", "tstat": "*.out"}
NOT_IN_TSTAT = {"t_end_ns", "name_source", "name_status", "ech", "epoch", "early"}
CORE = {column.name for column in _core.columns() if column.group in ("FLOW", "TCP")}


def written(scenario: Scenario, key_file: str, folder: Path, **more: Any) -> None:
    """Runs once, and sorts the files into a folder for each format."""
    rules = settings_of(scenario.rules) | LIMITS | {"key_file": key_file, "format": tuple(FORMATS)}
    config = Config().replace(**rules | {"columns": columns_of(scenario.rules)} | more)
    zanon_net.run(captures(folder, scenario.frames, 1), config, out=folder / "out")
    for form, names in FORMATS.items():
        (folder / form).mkdir()
        for path in (folder / "out").glob(names):
            path.rename(folder / form / path.name)
        manifest = (folder / "out" / "manifest.json").read_bytes()
        (folder / form / "manifest.json").write_bytes(manifest)


def expected(name: str, value: Any) -> Any:
    """A value of JSON as the table has it; times as ns."""
    kind = columns()[name].type
    if value is None or kind == "text":
        return value
    if kind == "bool":
        return bool(int(value))
    if kind == "time" and not name.endswith("_ns"):
        return int(Decimal(value) * 10**6)
    return float(value) if kind in ("ms", "s") else int(value)


def check_against_json(table: pa.Table, lines: list[dict[str, Any]]) -> None:
    """Compares with what Python's own reader makes of the lines."""
    assert table.num_rows == len(lines)
    for field in table.schema:
        values = table[field.name]
        if columns()[field.name].type == "time":
            values = values.cast("int64")
        wanted = [expected(field.name, line.get(field.name)) for line in lines]
        assert values.to_pylist() == wanted, field.name
    assert set().union(*lines) <= set(table.column_names)


def of_proto(table: pa.Table, proto: int) -> pa.Table:
    return table.filter(pc.equal(table["proto"], proto))


def facts(table: pa.Table, names: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


def check_tstat(tstat: pa.Table, whole: pa.Table, dn_hunter: bool) -> None:
    """Compares what Tstat's logs hold. They lack flows that were joined after their start; a coarse
    record does not say whether its flow was one."""
    assert tstat.schema.equals(whole.schema)
    names = [name for name in whole.column_names if name not in NOT_IN_TSTAT]
    for name in NOT_IN_TSTAT - {"t_end_ns", "name_source"}:
        assert tstat[name].null_count == len(tstat)
    unsaid = {"complete", "midstream", "name"}
    for proto, log in ((17, "udp"), (6, "core"), (6, "complete")):
        mine, theirs = of_proto(tstat, proto), of_proto(whole, proto)
        held = [name for name in names if name not in unsaid]
        if log == "core":
            held = [name for name in held if name in CORE]
        if log == "complete":
            mine = mine.filter(pc.field("complete"))
        assert not facts(mine, held) - facts(theirs, held)
        if log != "complete":
            known = theirs.filter(pc.equal(theirs["midstream"], False))
            assert not facts(known, held) - facts(mine, held)
            assert len(mine) <= len(theirs)
    told = set(tstat["name"].to_pylist())
    assert told <= set(whole["name"].to_pylist())
    shown = of_proto(whole, 17).filter(pc.equal(of_proto(whole, 17)["name_source"], "dns"))
    if not dn_hunter:
        assert set(shown["name"].to_pylist()) <= told | {None}


@settings(max_examples=examples(4))
@given(scenarios, st.sampled_from(["none", "gzip", "zstd"]), st.sampled_from([None, "1m"]))
def test_every_format_is_read_as_one_table(
    key_file: str, scenario: Scenario, compress: str, split: str | None
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(scenario, key_file, folder, compress=compress, split=split)
        tables = {form: zanon_net.read_log(folder / form, into="arrow") for form in FORMATS}
        texts = json_texts(folder / "jsonl")
    lines = [json.loads(text, parse_float=str) for text in texts]
    check_against_json(tables["jsonl"], lines)
    assert tables["csv"].drop_columns(rest(tables)).equals(tables["jsonl"])
    for proto in (6, 17):
        mine = of_proto(tables["parquet"].drop_columns(rest(tables)), proto)
        assert mine.equals(of_proto(tables["jsonl"], proto))
    tstat = tables["tstat"].select(
        [name for name in tables["jsonl"].column_names if name in tables["tstat"].column_names]
    )
    check_tstat(tstat, tables["jsonl"].select(tstat.column_names), scenario.rules.dn_hunter)


def rest(tables: dict[str, pa.Table]) -> list[str]:
    """The columns that JSON Lines do not name if no flow of TCP is there."""
    return [name for name in tables["csv"].column_names if name not in tables["jsonl"].column_names]


def json_texts(folder: Path) -> list[str]:
    """The lines of every part, unpacked, in the order of the parts' times."""

    def key(path: Path) -> tuple[str, int]:
        _flows, *stamp = path.name.partition(".")[0].split("-")
        return "".join(stamp[:1]), int("".join(stamp[1:]) or 1)

    texts = []
    for path in sorted(folder.glob("flows*"), key=key):
        with pa.input_stream(path, compression="detect") as stream:
            texts += stream.read().decode().splitlines()
    return texts
