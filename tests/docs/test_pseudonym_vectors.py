# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The known answers of docs/reference/pseudonyms.md are what the core makes."""

import re
from pathlib import Path

import pytest
from oracle.epochs import HOUR, Scope
from support.engine import nets
from support.paths import ROOT

from zanon_net import _core

pytestmark = pytest.mark.source

EPOCH = 472222
PAGE = (ROOT / "docs" / "reference" / "pseudonyms.md").read_text("utf-8")


def table(first: str) -> list[list[str]]:
    """The rows below a header that begins with a cell."""
    lines = PAGE.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def keys(way: str, path: Path) -> _core.Keys:
    """The keys of the page's settings."""
    scope = Scope(HOUR, pseudonyms=way, user=(32, 56))
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
