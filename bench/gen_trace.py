# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generates a large capture of realistic traffic, and the number of names that it shows.

See zanon_net/bench/trace.py.
"""

import argparse
import json
import sys
import time
from pathlib import Path

try:
    from zanon_net.bench.trace import Scale, generate
    from zanon_net.bench.traffic import TRAFFIC
    from zanon_net.config.parse import parse_size
    from zanon_net.errors import ConfigError
except ImportError as error:
    sys.exit(
        f"gen_trace.py: {error.name} is not installed for this Python; in the source folder type"
        " make .venv/.built, then .venv/bin/python bench/gen_trace.py"
    )


def size(text: str) -> int:
    """Returns bytes from a text such as 500M; raise ArgumentTypeError for anything else."""
    try:
        return parse_size("bytes", text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    usual = Scale()
    profiles = (f"  {name:8} {text}" for name, text in TRAFFIC.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n".join(["profiles:", *profiles]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, metavar="OUT.pcap")
    parser.add_argument("--bytes", type=size, default=usual.octets, metavar="500M")
    parser.add_argument("--profile", choices=list(TRAFFIC), default="isp")
    parser.add_argument("--clients", type=int, default=usual.homes, help="homes (default 20000)")
    parser.add_argument("--names", type=int, default=usual.names, help="hostnames (default 100000)")
    parser.add_argument("--seconds", type=int, default=usual.seconds, help="of flow starts (300)")
    parser.add_argument("--data", type=int, default=usual.data, help="times as much data a flow")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--truth", type=Path, metavar="OUT.truth.json")
    parser.add_argument("--list", action="store_true", help="put source,name,count in the truth")
    return parser.parse_args()


def main() -> None:
    """Writes the trace and, if requested, its truth."""
    arguments = parse_arguments()
    began = time.monotonic()
    scale = Scale(
        arguments.bytes,
        arguments.clients,
        arguments.names,
        arguments.seconds,
        arguments.seed,
        arguments.data,
    )
    truth = generate(arguments.out, arguments.profile, scale, with_list=arguments.list)
    if arguments.truth:
        arguments.truth.write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    print(f"{truth['packets']} packets, {truth['flows']} flows, {truth['file_bytes']} bytes, "
          f"{truth['mean_packet_bytes']} a packet, {time.monotonic() - began:.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
