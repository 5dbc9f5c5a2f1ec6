# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sections of a report: over time, reasons, users, names, services, z and losses.

All texts come from closed lists of this program, except for released names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from zanon_net._core import STAT_INFO
from zanon_net._text import share, short
from zanon_net.popularity import Popularity
from zanon_net.report.parts import Bars, Section, Series, Steps, Table, TimeBars
from zanon_net.report.records import NAMELESS, RELEASED, SUPPRESSED, UNKNOWN, Sums, bins
from zanon_net.report.settings_words import settings_words
from zanon_net.report.values import (
    Manifest,
    clean,
    clock,
    decided_of,
    duration,
    is_address,
    number,
    z_range,
)

NAME_LENGTH, WORDS_LENGTH = 100, 600
BARS_MAX = 10
"""Most names in a chart."""
_TEXTS = {name.lower(): text for name, _group, text in STAT_INFO}
_STATUS = {
    RELEASED: "name released",
    SUPPRESSED: "name suppressed",
    NAMELESS: "no name in the flow",
    UNKNOWN: "no name in the log",
}


def sections_of(
    manifest: Manifest,
    times: tuple[int, int] | None,
    sums: Sums | None,
    reason: str,
    popularity: Popularity | None,
) -> Iterator[Section]:
    """Yields the sections.

    times: of the first and last packet, ns since the Unix epoch. `contents_of` describes the other
    arguments.
    """
    yield _over_time(manifest, sums, reason)
    yield _reasons(manifest)
    if manifest.get("levels") is not None:
        yield _names_by_level(manifest)
    yield _users_per_name(manifest, popularity)
    if sums is not None and sums.records:
        yield _top_names(sums)
        yield _services(sums)
    yield _z_over_time(manifest, times)
    yield _losses(manifest)
    words = [(subject, clean(text, WORDS_LENGTH)) for subject, text in settings_words(manifest)]
    yield Section("Settings in words", table=Table(("subject", "setting"), words, is_words=True))


def _over_time(manifest: Manifest, sums: Sums | None, reason: str) -> Section:
    title = "Released and suppressed over time"
    if sums is None or not sums.starts:
        return Section(title, [reason or "There are no records."])
    present = [status for status in _STATUS if any(sums.by_status.get(status, ()))]
    series = [Series(_STATUS[status], status, sums.by_status[status]) for status in present]
    noun = sums.noun
    label = clock(sums.starts)
    rows = [
        [label(start), *(f"{one.values[n]:,}" for one in series)]
        for n, start in enumerate(sums.starts)
        if any(one.values[n] for one in series)
    ]
    return Section(
        title,
        list(_about_time(manifest, sums, present)),
        TimeBars(f"{noun.capitalize()} over time", sums.starts, sums.width_ns, series, noun),
        Table(("start, UTC", *(one.label for one in series)), rows),
    )


def _about_time(manifest: Manifest, sums: Sums, present: Sequence[str]) -> Iterator[str]:
    """Yields sentences about the chart over time."""
    when = "the flow ended" if sums.has_bytes else "the name was decided"
    yield (
        f"{sums.noun.capitalize()} in intervals of {duration(sums.width_ns)}, by the minute in"
        f" which {when}."
    )
    if not sums.has_bytes:
        yield "The run wrote released names only, so suppressed names are not shown."
    if SUPPRESSED in present:
        yield "A suppressed name has too few users or no evidence, is not valid, or was not read."
    if UNKNOWN in present:
        yield (
            "The logs of Tstat do not say if a flow has no name or a suppressed name; other"
            " formats do."
        )
    if parts := number(manifest["removed"]["parts"]):
        yield f"{parts:,} old parts of the output were removed, and are not shown."


def _reasons(manifest: Manifest) -> Section:
    suppressed, dns = manifest["decisions"]["suppressed"], manifest["counters"]["dns"]
    counts = [
        (_TEXTS.get(f"suppressed_{reason}", "another reason"), number(count))
        for reason, count in suppressed.items()
    ]
    counts.append(("DNS questions: below z, or too late", number(dns["dns_suppressed"])))
    counts = sorted((row for row in counts if row[1]), key=lambda row: -row[1])
    released, decided = decided_of(manifest)
    total = sum(count for _text, count in counts)
    text = [f"{share(released, decided)} names were released."]
    if generalized := number(manifest["decisions"].get("generalized", 0)):
        text.append(f"{share(generalized, decided)} names were published as labels.")
    if asked := number(dns["dns_observations"]):
        text.append(
            f"Names in DNS questions count separately: {share(number(dns['dns_released']), asked)}"
            " were released."
        )
    if not counts:
        return Section("Reasons for suppression", [*text, "No name was suppressed."])
    rows = [(reason, f"{count:,}", f"{count / total:.1%}") for reason, count in counts]
    return Section(
        "Reasons for suppression",
        text,
        Bars(
            "Suppressed names by reason",
            [(reason, count, f"{count:,}") for reason, count in counts],
            SUPPRESSED,
        ),
        Table(("reason", "names", "share"), rows),
    )


def _names_by_level(manifest: Manifest) -> Section:
    dns, published = manifest["counters"]["dns"], manifest["levels"]["published"]
    released, decided = decided_of(manifest)
    total = decided + number(dns["dns_observations"])
    shown = released + number(dns["dns_released"])
    counts = [("names only", shown)]
    for level, label in (("domain", "with domains"), ("category", "with categories")):
        if level in published:
            shown += number(published[level])
            counts.append((label, shown))
    rows = [(label, f"{n:,}", f"{n / total if total else 0:.1%}") for label, n in counts]
    bars = [(label, n, f"{n / total if total else 0:.1%}") for label, n in counts]
    about = f"All decided names, with the names in DNS questions: {total:,}."
    return Section(
        "Names by level",
        [about, "Each bar includes the bar before it."],
        Bars("Published names by level", bars),
        Table(("published as", "names", "share"), rows),
    )


def _users_per_name(manifest: Manifest, popularity: Popularity | None) -> Section:
    title = "Users per name"
    if popularity is None:
        text = (
            "The users of names are not known here. Run with --popularity FILE, and give FILE to"
            " this report."
        )
        return Section(title, [text])
    z = max(z_range(manifest)[1], popularity.z)
    sums: Counter[int] = Counter()
    for window in popularity.windows:
        sums.update({1 << power: n for power, n in enumerate(window.bins) if 1 << power >= z and n})
    if not sums:
        return Section(title, [f"No name has been counted in a range that begins at z = {z:,}."])
    windows = len(popularity.windows)
    bars = [
        (f"{low:,} to {2 * low - 1:,}", names, f"{names / windows:.1f}")
        for low, names in sorted(sums.items())
    ]
    about = (
        f"Names in a window of {duration(popularity.window_ns)}, on average over {windows:,}"
        " windows, by the number of their users. The counts are rounded to two digits."
    )
    left_out = f"Ranges that begin below z = {z:,} are left out."
    rows = [(label, mean) for label, _names, mean in bars]
    chart = Bars("Names by number of users", bars)
    return Section(title, [about, left_out], chart, Table(("users", "names"), rows))


def _top_names(sums: Sums) -> Section:
    title = "Top released names"
    names = [row for row in sums.names if not is_address(row[0])]
    if not names:
        return Section(title, ["The records have no released name."])
    about = (
        f"{len(names):,} of {sums.distinct:,} released names, by {sums.noun} in the output. What"
        " came before the z-th user of a name is not in these counts."
    )
    shown = [(clean(name, NAME_LENGTH), records, octets) for name, records, octets in names]
    bars = [(name, records, f"{records:,}") for name, records, _octets in shown[:BARS_MAX]]
    chart = Bars(f"Released names by {sums.noun}", bars)
    return Section(title, [about], chart, _counted("name", shown, sums))


def _services(sums: Sums) -> Section:
    if sums.has_bytes:
        about = (
            "Payload of both directions, by protocol and port of the server. Ports and sizes of"
            " flows with a suppressed name are coarse."
        )
        bars = [(name, octets, short(octets, "B")) for name, _records, octets in sums.services]
    else:
        about = "Observations by the protocol in which the name was read."
        bars = [(name, records, f"{records:,}") for name, records, _octets in sums.services]
    unit = "bytes of payload" if sums.has_bytes else sums.noun
    chart = Bars(f"Traffic by service, {unit}", bars, "service")
    return Section("Traffic by service", [about], chart, _counted("service", sums.services, sums))


def _counted(title: str, rows: Sequence[tuple[str, int, int]], sums: Sums) -> Table:
    """Returns a table of rows (text, records, bytes)."""
    if sums.has_bytes:
        texts = [(text, f"{records:,}", short(octets, "B")) for text, records, octets in rows]
        return Table((title, sums.noun, "bytes of payload"), texts)
    return Table((title, sums.noun), [(text, f"{records:,}") for text, records, _octets in rows])


def _z_over_time(manifest: Manifest, times: tuple[int, int] | None) -> Section:
    title = "z over time"
    changes = [
        (number(change["t_ns"]), number(change["old"]), number(change["new"]))
        for change in manifest.get("z_changes", ())
    ]
    if not changes or times is None:
        z = number(manifest["configuration"]["anonymity"]["z"])
        return Section(title, [f"z was {z:,} during the whole run."])
    first, last = min(times[0], changes[0][0]), max(times[1], changes[-1][0])
    starts, width_ns = bins(first, last)
    inside = list(_by_bin(changes, starts, width_ns))
    values = [each[-1] for each in inside]
    label = clock(starts)
    rows = [
        (label(start), f"{each[-1]:,}", f"{min(each):,}", f"{max(each):,}")
        for start, each in zip(starts, inside, strict=True)
    ]
    about = f"z changed {len(changes):,} {'time' if len(changes) == 1 else 'times'}."
    chart = Steps("z at the end of each interval", starts, width_ns, values, "users")
    return Section(
        title, [about], chart, Table(("start, UTC", "z, users", "lowest", "highest"), rows)
    )


def _by_bin(
    changes: Sequence[tuple[int, int, int]], starts: Sequence[int], width_ns: int
) -> Iterator[list[int]]:
    """Yields the values of z in each bin, in their order. changes: (time in ns, old, new)."""
    now, at = changes[0][1], 0
    for start in starts:
        values = [now]
        while at < len(changes) and changes[at][0] < start + width_ns:
            values.append(changes[at][2])
            at += 1
        now = values[-1]
        yield values


def _losses(manifest: Manifest) -> Section:
    places = {
        "ring": "lost: the ring was full",
        "interface": "lost by the interface",
        "us": "lost: a table was full",
    }
    drops = manifest["capture_drops"]
    rows = [(text, number(drops[place]), "packets") for place, text in places.items()]
    for group, unit in (("drop", "packets"), ("capacity", "times")):
        rows += [
            (_TEXTS[name], number(count), unit)
            for name, count in manifest["counters"][group].items()
            if name in _TEXTS and number(count)
        ]
    fates = [each for each in manifest["records"].values() if isinstance(each, Mapping)]
    rows.append(("records that were not written", sum(number(f["lost"]) for f in fates), "records"))
    removed, waits = manifest["removed"]["parts"], manifest["full_disk"]["times"]
    rows.append(("old parts removed by --keep or --max-disk", number(removed), "parts"))
    rows.append(("waits for space on the disk", number(waits), "times"))
    return Section(
        "Losses",
        ["Packets that are in no flow, limits that were met, and records that were not written."],
        table=Table(
            ("loss", "count", "unit"), [(text, f"{count:,}", unit) for text, count, unit in rows]
        ),
    )
