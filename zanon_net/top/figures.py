# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a run for people, computed from its metrics: panels of (title, text) rows."""

from collections.abc import Iterator, Mapping

from zanon_net._text import short
from zanon_net.top.scrape import Scrape

Row = tuple[str, str]


def _share(part: float, whole: float) -> str:
    return f"{short(part)} ({part / whole:.1%})" if whole else short(part)


def _largest(values: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yields the values above 0, the largest first, with their labels as words."""
    for label, value in sorted(values.items(), key=lambda item: -item[1]):
        if value:
            yield label.replace("_", " "), value


def panels(scrape: Scrape) -> dict[str, list[Row]]:
    """Returns every panel by its title."""
    return {
        "Traffic": list(_traffic(scrape)),
        "Decisions": list(_decisions(scrape)),
        "Packets in no flow": list(_drops(scrape)),
        "z-table": list(_table(scrape)),
        "Output": list(_output(scrape)),
    }


def _traffic(scrape: Scrape) -> Iterator[Row]:
    yield "packets/s", short(scrape.number("packets_per_second"))
    yield "bits/s", short(scrape.number("bits_per_second"))
    yield "packets", short(scrape.number("packets_total"))
    yield "bytes", short(scrape.number("bytes_total"))
    yield "open flows", short(scrape.number("open_flows"))
    lost = scrape.by_label("capture_dropped_packets_total")
    yield "lost", short(sum(lost.values()))
    for place, packets in _largest(lost):
        yield f"  by {place}", short(packets)


def _decisions(scrape: Scrape) -> Iterator[Row]:
    decisions = dict(scrape.by_label("decisions_total"))
    names = sum(decisions.values())
    yield "z", short(scrape.number("z"))
    yield "names", short(names)
    yield "released", _share(decisions.pop("released", 0), names)
    for reason, count in _largest(decisions):
        yield reason, _share(count, names)


def _drops(scrape: Scrape) -> Iterator[Row]:
    drops = list(_largest(scrape.by_label("drops_total")))
    yield "all", short(sum(count for _reason, count in drops))
    for reason, count in drops:
        yield reason, short(count)


def _table(scrape: Scrape) -> Iterator[Row]:
    yield "pairs of user and name", short(scrape.number("ztable_tuples"))
    yield "names and addresses", short(scrape.number("ztable_attributes"))
    yield "memory", short(scrape.number("ztable_bytes"), "B")
    yield "memory of all tables", short(scrape.number("memory_bytes"), "B")
    yield "evicted: it was full", short(scrape.number("ztable_evicted_total"))
    yield "clock jumps", short(scrape.number("clock_jumps_total"))


def _output(scrape: Scrape) -> Iterator[Row]:
    records = scrape.by_label("output_records_total")
    for name, size in scrape.by_label("output_bytes_total").items():
        yield name, f"{short(size, 'B')}, {short(records.get(name))} records"
