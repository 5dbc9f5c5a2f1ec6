# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Make `demo.pcap` and its ground truth `demo.truth.jsonl`, with equal bytes on every machine.

Usage: python pcaps/make_demo.py [--out FOLDER] [--seed N]
"""

import argparse
import calendar
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows import NS_PER_US, Flow, Packet
from packets import merge, pcap_bytes
from population import zipf_weights
from scenes import play_all
from stage import MINUTE_US, SPAN_US, Stage
from truth import truth_lines, user_of

START_S = calendar.timegm((2024, 5, 14, 9, 0, 0))  # a full hour, UTC
DEFAULT_SEED = 2024
VISITS = 760


def ordinary_visits(stage: Stage) -> None:
    """Let homes visit public sites. Sites and homes follow Zipf, so favourites are repeated."""
    dice = stage.dice
    sites = zipf_weights(len(stage.sites), shift=1)
    order = dice.shuffled(stage.homes)
    # A quarter of the visits come from a Zipf choice of homes. The rest walk through all homes, so
    # that each home appears and some homes appear often.
    busy = zipf_weights(len(order))
    for i in range(VISITS):
        home = order[i % len(order)] if i % 4 else order[dice.weighted(busy)]
        site = stage.sites[dice.weighted(sites)]
        stage.visit(home, site, dice.between(MINUTE_US, SPAN_US - 2 * MINUTE_US))


def summary(flows: Sequence[Flow], packets: Sequence[Packet], lines: Sequence[str]) -> str:
    """Return the meta line that opens the truth file."""
    observations = [json.loads(line) for line in lines]
    clients = {flow.path.client for flow in flows}
    meta = {
        "format": 1,
        "flows": len(flows),
        "packets": len(packets),
        "bytes": sum(len(packet.frame) for packet in packets),
        "first_ns": packets[0].t_us * NS_PER_US,
        "last_ns": packets[-1].t_us * NS_PER_US,
        "client_addresses": len(clients),
        "users": len({user_of(client) for client in clients}),
        "observations": len(observations),
        "established": sum(item["established"] for item in observations),
        "names": len({item["name"] for item in observations if item["valid"]}),
        "by_source": dict(sorted(Counter(item["source"] for item in observations).items())),
    }
    return json.dumps({"meta": meta})


def main() -> None:
    """Write the capture and the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    arguments = parser.parse_args()
    stage = Stage(arguments.seed)
    ordinary_visits(stage)
    play_all(stage)
    scattered = [packet for flow in stage.flows for packet in flow.packets]
    packets = merge(stage.strays + scattered, START_S * 1_000_000)
    flows = sorted(stage.flows, key=lambda flow: flow.packets[0].t_us)
    lines = truth_lines(flows)
    head = json.loads(summary(flows, packets, lines))
    head["meta"]["seed"] = arguments.seed
    capture = pcap_bytes(packets)
    truth = "\n".join([json.dumps(head), *lines]) + "\n"
    (arguments.out / "demo.pcap").write_bytes(capture)
    (arguments.out / "demo.truth.jsonl").write_text(truth, encoding="utf-8")
    digest = hashlib.sha256(capture).hexdigest()
    print(f"demo.pcap: {len(capture)} bytes, {len(packets)} packets, {len(flows)} flows")
    print(f"sha256 {digest}")


if __name__ == "__main__":
    main()
