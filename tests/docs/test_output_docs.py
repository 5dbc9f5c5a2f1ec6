# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/output.md has every field, counter and key of a manifest, and no other."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT

from zanon_net import Config, run
from zanon_net._core import STAT_ALIASES, STAT_INFO, Column, PacketEngine, columns
from zanon_net.config.formats import FORMATS as ROWS
from zanon_net.config.run_rows import COLUMN_SETS
from zanon_net.embedding import NAME_SOURCES, NAME_STATUSES
from zanon_net.output.sink import Sent
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.live_interfaces import InterfaceFacts
from zanon_net.system.signals import Interruption

pytestmark = pytest.mark.source

FORMATS = tuple(ROWS)


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "reference" / "output.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose header begins with `heading`."""
    lines = page[page.index(f"| {heading} |") :].splitlines()[2:]
    table = lines[: next((i for i, line in enumerate(lines) if not line), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_groups_of_counters(page: str) -> None:
    groups = [name for row in rows(page, "group | counts") for name in row[0].split(", ")]
    assert groups == list(dict.fromkeys(f"`{group}`" for _name, group, _text in STAT_INFO))


def test_old_names_of_counters(page: str) -> None:
    old_names = [(row[1].strip("`"), row[0].strip("`")) for row in rows(page, "old name | counter")]
    assert dict(old_names) == STAT_ALIASES
    assert len(old_names) == len(STAT_ALIASES)


def test_fields(page: str) -> None:
    config = Config().replace(format=("tstat", "parquet"), columns=COLUMN_SETS)
    engine = PacketEngine(**config.engine_arguments())
    headers = [engine.header(log) for log in ROWS["tstat"].outputs]
    fields = [*engine.fields("tcp_table"), *engine.fields("udp_table")]
    engine.close()
    tstat = set(re.findall(r"(\w+):\d", b" ".join(headers).decode()))
    nullable = {name: null for name, _kind, null in fields if name not in tstat}
    told = {row[0].strip("`"): row[3] != "never" for row in rows(page, "field | type, unit")}
    assert told == nullable


COARSE = {
    "ALWAYS": "as it is",
    "OWN": "as it is",
    "CLIENT": "empty unless `--coarse-client pseudonym`",
    "ROUNDED": "up to a power of `--coarse-steps`",
    "RELEASED": "empty",
    "EXACT": "empty",
    "COMPUTED(client_port)": "0",
    "COMPUTED(server_port)": "0 unless 53, 80, 443 or 853",
    "COMPUTED(epoch)": "0 unless `--coarse-client pseudonym` and `--rotate` is whole minutes",
}


def coarse(column: Column) -> str:
    """What the page says that a coarse record has."""
    if column.disclosure == "ROUNDED" and column.type == "time":
        return "a whole minute, by `--coarse-end`"
    if column.disclosure == "EXACT" and column.missing is None:
        return "`none`"  # which is a word
    return COARSE[column.disclosure]


def kinds(column: Column) -> set[str]:
    """What the page may say of its type and unit."""
    if column.unit:
        return {column.unit.replace("1970-01-01", "1970")}
    return {"bool": {"0 or 1"}, "text": {"address", "text", "word"}}.get(
        column.type or "", {"number", "packets"}
    )


def test_what_is_said_of_a_field_is_in_the_table_of_columns(page: str) -> None:
    """In its order."""
    listed = [column for column in columns() if column.group == "FLOW"]
    described = rows(page, "field | type, unit")
    assert [(row[0], row[4]) for row in described] == [(f"`{c.name}`", coarse(c)) for c in listed]
    for column, row in zip(listed, described, strict=True):
        assert row[1] in kinds(column)
        assert (row[3] == "never") == (column.missing is None)


def test_words(page: str) -> None:
    statuses = tuple(row[0].strip("`") for row in rows(page, "`name_status` | meaning"))
    assert statuses == NAME_STATUSES
    (sources,) = (row for row in rows(page, "field | type, unit") if row[0] == "`name_source`")
    assert all(f"`{source}`" in sources[2] for source in NAME_SOURCES if source is not None)


COUNTERS = {name for name, _group, _text in STAT_INFO}
# The words that a part of the manifest leaves out of its counters' names.
LEFT_OUT = {"suppressed": ("suppressed_",), "dropped": ("drop_", "packets_dropped_")}


def counter_of(above: str, key: str) -> str:
    """The counter that a key below `above` stands for, or the key."""
    counters = [word + key for word in LEFT_OUT.get(above, ()) if word + key in COUNTERS]
    return counters[0] if counters else key


def keys(value: object, above: str = "") -> Iterator[str]:
    """Every key, at any depth, but for the link types, which are those of the traffic."""
    if isinstance(value, list):
        for item in value:
            yield from keys(item, above)
    elif isinstance(value, dict) and above != "link_types":
        for key, beneath in value.items():
            yield counter_of(above, key)
            yield from keys(beneath, key)


def told_keys(page: str, heading: str) -> set[str]:
    """The keys in the first cells of a table."""
    return {key for row in rows(page, heading) for key in re.findall(r"`(\w+)`", row[0])}


@pytest.mark.usefixtures("hangups_end")
def test_keys_of_a_manifest(page: str, demo_pcap: Path, tmp_path: Path) -> None:
    never = tmp_path / "never.txt"
    never.write_text("example.edu\n")
    config = Config().replace(z=3, target_p=0.9, internal="10.0.0.0/8", format=FORMATS, never=never)
    hangup = iter([signal.SIGHUP])

    def hang_up(*_progress: int) -> None:
        for number in hangup:
            signal.raise_signal(number)

    with Interruption(rotates=True) as interruption:
        report = run(
            demo_pcap,
            config,
            out=tmp_path / "out",
            progress=hang_up,
            interruption=interruption,
        )
    link = InterfaceFacts("eth0", {1: 0}, 0, 0, 0, Drops(), None).to_dict()
    manifest: dict[str, Any] = {**report.manifest, "performance": report.speed()}
    manifest["sources"] = [*manifest["sources"], link]
    told = set(re.findall(r"`(\w+)`", page[page.index("## The manifest") :]))
    assert {key for key in keys(manifest) if key not in told} == set()
    manifest_table = page[page.index("## The manifest") :]
    assert told_keys(manifest_table, "key | meaning") == manifest.keys()
    sources = page[page.index("### Sources") :]
    assert told_keys(sources, "key | meaning") == {key for s in manifest["sources"] for key in s}
    decisions = page[page.index("### Decisions") :]
    assert told_keys(decisions, "key | meaning") == manifest["decisions"].keys()
    records = page[page.index("### Records") :]
    assert told_keys(records, "key | meaning") == manifest["records"].keys()
    assert (
        told_keys(manifest_table, "key of `interface` | packets") == Sent("eth1").to_dict().keys()
    )


def test_a_name_among_the_decisions_is_a_counter_of_the_same_meaning_or_none(
    demo_pcap: Path, tmp_path: Path
) -> None:
    """`clock_jumps` was the table's there and the packets' among the counters."""
    decisions = run(demo_pcap, Config(), out=tmp_path / "out").manifest["decisions"]
    assert {name for name, _group, _text in STAT_INFO} & decisions.keys() == {
        "observations",
        "released",
        "releases_by_new_users",
        "generalized",
    }


def test_settings_of_a_manifest(page: str) -> None:
    section, told = "", set()
    for row in rows(page, "section | key"):
        section = row[0].strip("`") or section
        told |= {(section, key) for key in re.findall(r"`(\w+)`", row[1])}
    shown = Config().replace(target_p=0.9).to_dict()
    assert told == {(section, key) for section, table in shown.items() for key in table}
