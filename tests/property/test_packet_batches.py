# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Batches and workers change no byte, whatever is lost, repeated or late, and however short packets
are held: what has left by the end of a batch must not decide what is shown."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario.transfers import Plan, Transfer
from support.examples import examples
from support.packet_run import Emitted, emitted
from support.packets import MS, SECOND, SERVER_ADDRESS, Frame, merged

pytestmark = pytest.mark.source

PACKETS = "packets_"
HOLDS = (0, MS, 100 * MS, SECOND)
PAYLOADS = (0, 2)  # zeros, and encrypted data as it is
OTHERS = ({"batch": 1}, {"batch": 13}, {"workers": 2}, {"workers": 3, "batch": 50})


def talks(dice: random.Random) -> list[Frame]:
    """Connections of some clients with one server."""
    plan = Plan(segment=dice.choice((536, 1460)), sizes=(3000, dice.choice((3000, 60_000))))
    return merged(
        Transfer(
            replace(
                plan,
                client=f"10.7.0.{n}",
                server=SERVER_ADDRESS,
                host=b"%d.example" % (n % 2),
                faults=dice.choice((0.0, 0.1, 0.4)),
                whole=dice.random() < 0.9,
            ),
            dice,
        ).frames
        for n in range(1, 6)
    )


def counts(run: Emitted) -> dict[str, int]:
    """What is counted of packets."""
    return {name: n for name, n in run.stats.items() if name.startswith(PACKETS)}


@settings(max_examples=examples(16))
@given(seed=st.integers(0, 1 << 32))
def test_batches_and_workers_change_no_byte(key_file: str, seed: int) -> None:
    dice = random.Random(seed)
    frames = talks(dice)
    chosen = {
        "key_file": key_file,
        "z": dice.choice((1, 2)),
        "hold_ns": dice.choice(HOLDS),
        "payload": dice.choice(PAYLOADS),
        "exact": dice.random() < 0.3,
    }
    first = emitted(frames, **chosen)
    for more in OTHERS:
        run = emitted(frames, **chosen, **more)
        assert run.frames == first.frames
        assert counts(run) == counts(first)
