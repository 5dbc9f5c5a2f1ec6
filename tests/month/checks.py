# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What must hold of metrics, manifests, memory and messages, whatever happened."""

import ipaddress
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from support.canary import Canaries
from support.metrics import Samples

from month.broken import Broken, check_equal
from month.traffic import Traffic
from zanon_net.pipeline.metrics import rounded

GROWTH_MAX = 1.10
GROWTH_BYTES = 4 << 20  # less is no growth: pages of the allocator
BLOCK_BYTES = 24 << 20  # of columns, which wait for Parquet at some looks and at others do not
SAMPLES_MIN = 48  # of memory, before its growth says something
TOTAL = "_total"

Manifest = dict[str, Any]


def check_memory(resident: Sequence[int]) -> None:
    """Resident bytes, hour by hour of packet time: flat once the tables are warm.

    What waits to be written comes and goes; what is lost is in the least as in the most.
    """
    if len(resident) < SAMPLES_MIN:
        return
    quarter = len(resident) // 4
    early = statistics.quantiles(resident[quarter : 2 * quarter], n=10)
    late = statistics.quantiles(resident[-quarter:], n=10)
    for before, now, more in ((early[0], late[0], 0), (early[-1], late[-1], BLOCK_BYTES)):
        if now > max(before * GROWTH_MAX, before + GROWTH_BYTES) + more:
            raise Broken("memory grows", f"{before / 2**20:.1f} MiB to {now / 2**20:.1f}")


def check_scrape(before: Samples, now: Samples, read_before: int, sent: int) -> None:
    """Counters never decrease, and packets are some that were read or sent meanwhile.

    read_before: packets that were read when the oldest snapshot that may be served was taken.
    """
    for key, value in before.items():
        if key[0].endswith(TOTAL) and now.get(key, 0.0) < value:
            raise Broken("a counter decreased", f"{key} from {value} to {now.get(key)}")
    packets = now["zanon_packets_total", ""]
    if not rounded(read_before) <= packets <= rounded(sent):
        what = f"{packets}, with {read_before} read long ago and {sent} sent by now"
        raise Broken("packets of a scrape", what)


def check_last_metrics(last: Samples, manifest: Manifest) -> None:
    """The last metrics of a run say what its manifest says."""
    decisions, read = manifest["decisions"], manifest["counters"]["read"]
    expected: dict[tuple[str, str], float] = {
        ("zanon_packets_total", ""): read["frames"],
        ("zanon_bytes_total", ""): read["bytes_wire"],
        ("zanon_open_flows", ""): 0,
        ("zanon_late_total", ""): decisions["late"],
        ("zanon_clock_jumps_total", ""): decisions["clock_jumps"],
        ("zanon_decisions_total", "released"): decisions["released"],
        ("zanon_decisions_total", "generalized"): decisions["generalized"],
    }
    expected |= {("zanon_decisions_total", k): n for k, n in decisions["suppressed"].items()}
    removed, unwritten = manifest["removed"], manifest["full_disk"]["records_lost"]
    parts = removed["parts"] + removed["earlier_runs"]["parts"]
    expected["zanon_removed_parts_total", ""] = parts
    expected["zanon_full_disk_lost_records_total", ""] = sum(unwritten.values())
    for place, lost in manifest["capture_drops"].items():
        expected["zanon_capture_dropped_packets_total", place] = lost
    for key, value in expected.items():
        check_equal("a metric at the end", last.get(key), rounded(value), str(key))


def check_accounts(manifest: Manifest) -> None:
    """Each record that left the flow table is written, left out, or lost as the disk was full."""
    accounts, lost = manifest["records"], manifest["full_disk"]["records_lost"]
    check_equal("closed flows", accounts["closed"], accounts["records"] + accounts["withheld"])
    for name in ("jsonl", "parquet", "tstat"):
        account = accounts[name]
        counted = account["written"] + account["left_out"] + account["lost"]
        check_equal("records", counted, accounts["records"], name)
        if manifest["error"] is None:
            check_equal("records lost", account["lost"], lost.get(name, 0), name)


class Secrets:
    """Names and addresses that no message may have, in whatever notation."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def check(self, where: str, texts: Iterable[bytes]) -> None:
        """Raises Broken where one occurs."""
        addresses = [*self._traffic.users, *self._traffic.servers]
        names = [*self._traffic.names, *self._traffic.canaries]
        found = Canaries.of(map(ipaddress.ip_address, addresses), names).found_in(b"\n".join(texts))
        if found:
            raise Broken("a message says", f"{sorted(found)[0]} in {where}")
