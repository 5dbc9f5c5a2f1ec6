# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Real captures of every kind, if they lie beside this tree: whole lines, no name too many."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from oracle.ztable import ZOracle
from support.demo import HOME_SUFFIXES, under
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE, Outcome, run_capture
from support.examples import EVERY_CASE
from support.packets import DAY, HOUR, MINUTE

from zanon_net.errors import FormatError

ONE_EPOCH = 3000 * DAY
# One user an address and one epoch: then the stream at z = 1 is the whole truth about any z.
AUDIT = {"user_prefix": (32, 128), "rotate_ns": ONE_EPOCH, "max_flows": 1 << 16}


@pytest.fixture(scope="module")
def captures(corpus: Path) -> list[Path]:
    """Returns all captures; for `make test`, every third."""
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    found = [corpus / name for name in sorted(json.loads(line)["path"] for line in lines)]
    assert len(found) > 100
    return found[:: 1 if EVERY_CASE else 3]


def outcomes(captures: list[Path], **settings: object) -> Iterator[tuple[str, Outcome]]:
    """Runs of all that are captures; a few files are there to be refused."""
    refused = 0
    for path in captures:
        try:
            yield str(path), run_capture(path, **settings)
        except FormatError:
            refused += 1
    assert refused <= len(captures) // 20


def test_every_line_is_whole(captures: list[Path]) -> None:
    for name, outcome in outcomes(captures, z=1, established=False, max_flows=1 << 16):
        for log in (TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE):
            outcome.log(log)  # splits into exactly the header's columns
        assert len(outcome.flows) == outcome.stats["records"], name
        for text in outcome.text.values():
            assert not re.search(rb"[^\x20-\x7e\n]", text), name


@pytest.mark.parametrize(("z", "window_ns"), [(2, HOUR), (3, MINUTE)])
def test_brute_force_over_z_1_bounds_every_other_z(
    captures: list[Path], z: int, window_ns: int
) -> None:
    more = {"window_ns": window_ns, "established": False, **AUDIT}
    everything = dict(outcomes(captures, z=1, **more))
    for name, outcome in outcomes(captures, z=z, **more):
        oracle = ZOracle(z, window_ns)
        allowed = [
            o
            for o in everything[name].observations
            if not under(o["name"], HOME_SUFFIXES)
            and oracle.observe(o["t_ns"], o["client"], (o["name_source"] == "dns", o["name"]))
        ]
        released = [(o["t_ns"], o["name"]) for o in outcome.observations]
        permitted = [(o["t_ns"], o["name"]) for o in allowed]
        times = [o["t_ns"] for o in everything[name].observations]
        if times == sorted(times):
            assert released == permitted, name
        else:
            assert set(released) <= set(permitted), name
