# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The known answers of docs/reference/pseudonyms.md are what the core makes."""

import re
from pathlib import Path
from typing import Any

import pytest
from oracle.epochs import HOUR, Scope
from support.engine import nets
from support.paths import ROOT

from zanon_net import _core

pytestmark = pytest.mark.source

EPOCH = 472222
LABELS = ("block", "outside", "pair", "port", "seq", "id")
PAGE = (ROOT / "docs" / "reference" / "pseudonyms.md").read_text("utf-8")


def table(first: str) -> list[list[str]]:
    """The rows below a header that begins with a cell."""
    lines = PAGE.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def keys(way: str, path: Path, internal: tuple[str, ...] | None = None) -> _core.Keys:
    """The keys of the page's settings; internal: None for the private ranges."""
    scope = Scope(HOUR, pseudonyms=way, user=(32, 56), internal=internal)
    path.write_text(re.findall(r"Key file `([^`]+)`", PAGE)[0] + "\n", "ascii")
    path.chmod(0o600)
    return _core.Keys(
        HOUR,
        str(path),
        digest=scope.digest(),
        pseudonyms=way.partition(":")[0],
        block=scope.block,
        user=scope.user,
        internal=nets(*map(str, scope.networks)),
    )


def test_keys(tmp_path: Path) -> None:
    rows = table("`--pseudonyms` | host key | `pseudonym_id`")
    assert len(rows) == 4
    for way, host, check in rows:
        made = keys(way, tmp_path / "key")
        assert made.derive(b"zanon-net/2/check", 0, 8).hex() == check
        assert made.derive(b"zanon-net/2/host", EPOCH, 16).hex() == host


def test_pseudonyms(tmp_path: Path) -> None:
    ways = re.findall(r"^\| address \| (.*) \|$", PAGE, re.MULTILINE)[0].split(" | ")
    rows = table("address")
    assert len(rows) == 6
    for place, way in enumerate(ways, 1):
        made = keys(way, tmp_path / "key")
        for row in rows:
            assert made.pseudonym(EPOCH * HOUR, row[0]) == (row[place], EPOCH)


def packet_keys(way: str, path: Path) -> tuple[_core.Keys, Any]:
    """The keys of packets of the page's settings, in EPOCH."""
    internal = re.findall(r"is said, and `--internal\s([^`]+)`", PAGE)[0].split(",")
    scope = Scope(HOUR, pseudonyms=way, user=(32, 56), internal=tuple(internal))
    of = keys(way, path, tuple(internal))
    made = _core.PacketKeys(
        of,
        pseudonyms=way.partition(":")[0],
        block=scope.block,
        user=scope.user,
        internal=nets(*internal),
    )
    made.enter(EPOCH)
    return of, made


def test_packet_keys(tmp_path: Path) -> None:
    rows = table("label | key")
    assert [row[0] for row in rows] == list(LABELS)
    of, _ = packet_keys("networks", tmp_path / "key")
    for label, key in rows:
        assert of.derive(f"zanon-net/2/{label}".encode(), EPOCH, 16).hex() == key


def test_packet_clients(tmp_path: Path) -> None:
    ways = re.findall(r"^\| client \| (.*) \|$", PAGE, re.MULTILINE)[0].split(" | ")
    rows = table("client")
    assert len(ways) == 4
    assert len(rows) == 7
    for place, way in enumerate(ways, 1):
        _, made = packet_keys(way, tmp_path / "key")
        for row in rows:
            assert made.client(row[0]) == row[place]


def test_what_else_packets_have(tmp_path: Path) -> None:
    _, made = packet_keys("networks", tmp_path / "key")
    rows = table("user | what")
    assert len(rows) == 7
    for user, what, result in rows:
        who = None if user == "none" else user
        is_port = what.isdigit()
        assert (str(*made.ports(who, [int(what)])) if is_port else made.pair(who, what)) == result
    around = table("kind of number around a packet")
    assert len(around) == 9
    for kind, number, result in around:
        assert made.layer_ids(int(kind), [int(number)]) == [int(result)]
    shown = re.findall(
        r"words 1 to 6: sequence numbers (\d+), (\d+); timestamps (\d+), (\d+); "
        r"identification\s1: (\d+)",
        PAGE,
    )
    seq, timestamp, ids = made.shift([1, 2, 3, 4, 5, 6], [1])
    assert shown == [tuple(map(str, (*seq, *timestamp, *ids)))]
