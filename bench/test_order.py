# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Order of records by minute, next to the order in which flows close and to sorting in Python."""

import random

import pytest
from engines import FORMATS, SETS, Written, close_flows, engine_for, full_engine
from flow_traffic import conversations
from measuring import Measure, Size, peer

FLOWS = 50_000
Z = 1000  # more users than a name has here, so all records with names wait for their minute
CLOSING, SORTED = "order closing", "sorted() of Python"
ORDERS = {"order minute": "minute", CLOSING: "closing"}


@pytest.mark.parametrize("columns", SETS)
@pytest.mark.parametrize("who", ["order minute", peer(CLOSING), peer(SORTED)])
def test_order(columns: str, who: str, size: Size, measure: Measure) -> None:
    """Closes flows and writes CSV. The peer in Python sorts the lines by random keys alone."""
    count = size.of(FLOWS)
    batches = list(conversations(count))
    group = f"minute order: records of {columns}"
    outputs = FORMATS["csv"]

    def prepare() -> tuple[object]:
        engine = engine_for(SETS[columns], count, outputs, ORDERS.get(who, "closing"), Z)
        return (full_engine(engine, batches),)

    if who != SORTED:
        measure(group, close_flows, count, prepare=prepare)
        return
    kept = Written()
    close_flows(*prepare(), kept)
    lines = kept.texts["csv"].splitlines()
    chance = random.Random(1)
    measure(group, lambda: sorted((chance.random(), line) for line in lines), len(lines))
