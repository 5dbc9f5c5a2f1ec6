# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Calls with settings, for mypy alone. It reports each `type: ignore` that hides no error."""

from zanon_net import Config, Engine, ZParams, flows, packets, run


def right() -> None:
    """Calls that mypy must accept."""
    run("in.pcap", z=5, window="30m", format=("csv", "jsonl"), dns_votes="own", target_p=0.9)
    packets("in.pcap", "out.pcap", z=5, payload="cut")
    flows("in.pcap", columns="core,e2e")
    Engine(z=5, window=3_600_000_000_000)
    Config(anonymity=ZParams(z=5)).replace(internal=None, key_file="zanon.key")


def wrong() -> None:
    """Calls that mypy must refuse."""
    run("in.pcap", z="five")  # type: ignore[arg-type]
    run("in.pcap", zz=5)  # type: ignore[call-arg]
    packets("in.pcap", "out.pcap", z="five")  # type: ignore[arg-type]
    packets("in.pcap", "out.pcap", split="1h")  # type: ignore[call-arg]
    flows("in.pcap", window=0.5)  # type: ignore[arg-type]
    Engine(exact="yes")  # type: ignore[arg-type]
    Config(workers="2")  # type: ignore[arg-type]
    ZParams(z="five")  # type: ignore[arg-type]
    Config().replace(never=5)  # type: ignore[arg-type]
