# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Show the names of the demo that z-anonymity released and the names that it suppressed.

Usage: python pcaps/withheld.py TRUTH LOGDIR

Released names and their counts come from the Tstat logs in LOGDIR. The program never prints a
suppressed name. So suppressed names come from TRUTH, which exists because the traffic is invented.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from truth import user_of

NAME_COLUMNS = ("c_tls_SNI", "http_hostname", "fqdn", "quic_SNI")
LOGS = ("log_tcp_complete", "log_udp_complete")
SHOWN = 20


@dataclass(slots=True)
class Exposure:
    """Distinct users who exposed a name, confirmed by the protocol or not."""

    confirmed: set[str] = field(default_factory=set)
    unconfirmed: set[str] = field(default_factory=set)


def column_names(header: str) -> list[str]:
    """Return the column names of a Tstat header such as `#02#c_ip:1 c_port:2 ...`."""
    return [word.rpartition("#")[2].partition(":")[0] for word in header.split()]


def names_in_log(path: Path) -> Iterator[str]:
    """Yield the names of each flow in one log, each name once per flow. `-` means no name."""
    with path.open(encoding="ascii") as lines:
        columns = column_names(next(lines, ""))
        wanted = [i for i, column in enumerate(columns) if column in NAME_COLUMNS]
        for line in lines:
            fields = line.split()
            yield from {fields[i] for i in wanted if fields[i] != "-"}


def released_names(folder: Path) -> Counter[str]:
    """Return the number of flows with each name in the logs in `folder`."""
    found = [path for log in LOGS for path in sorted(folder.glob(f"*.out/{log}"))]
    if not found:
        raise SystemExit(f"no Tstat log (*.out/{LOGS[0]}) in {folder}")
    return Counter(name for path in found for name in names_in_log(path))


def exposures(truth: Path) -> dict[str, Exposure]:
    """Return the users who exposed each valid name, from the ground truth."""
    result: dict[str, Exposure] = defaultdict(Exposure)
    with truth.open(encoding="utf-8") as lines:
        for item in map(json.loads, lines):
            if "meta" not in item and item["valid"]:
                exposure = result[item["name"]]
                users = exposure.confirmed if item["established"] else exposure.unconfirmed
                users.add(user_of(item["client"]))
    return result


def print_withheld(withheld: dict[str, Exposure]) -> None:
    """Print the number of suppressed names by number of users, and the rarest names."""
    sizes = Counter(min(len(exposure.confirmed), 3) for exposure in withheld.values())
    print(f"withheld: {len(withheld)} names, of which {sizes[0] + sizes[1]} have at most one user")
    print("(from the synthetic ground truth: the tool itself never prints a withheld name)")
    ordered = sorted(withheld.items(), key=lambda item: (len(item[1].confirmed), item[0]))
    for name, exposure in ordered[:SHOWN]:
        forged = len(exposure.unconfirmed - exposure.confirmed)
        note = f" (and {forged} unconfirmed)" if forged else ""
        users = len(exposure.confirmed)
        print(f"  {users:4} user{'s' if users != 1 else ' '}{note}  {name}")
    if len(ordered) > SHOWN:
        print(f"  ... and {len(ordered) - SHOWN} more")


def main() -> int:
    """Print both lists."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("truth", type=Path, metavar="TRUTH", help="demo.truth.jsonl")
    parser.add_argument("logs", type=Path, metavar="LOGDIR", help="output folder of zanon-net run")
    arguments = parser.parse_args()
    released = released_names(arguments.logs)
    exposed = exposures(arguments.truth)
    print(f"released: {len(released)} names, counted in the logs")
    for name, flows in sorted(released.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {flows:4} flows  {name}")
    print()
    print_withheld({name: users for name, users in exposed.items() if name not in released})
    return 0


if __name__ == "__main__":
    sys.exit(main())
