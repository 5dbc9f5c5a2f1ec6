# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `sums` of rows: the manifest's numbers next to the numbers of the audit."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_release import ShownRows
from zanon_net.audit.raw.row_source import NOTHING, RawRows, RowRules
from zanon_net.audit.raw.sums import MANIFEST


def row_sums(
    manifest: Mapping[str, Any], rules: RowRules, raw: RawRows, shown: ShownRows
) -> Iterator[Finding]:
    """Yields the numbers of a manifest that do not add up.

    If the audit and the run could not read an equal number of rows, other numbers of raw rows may
    differ by as many.
    """
    rows, decisions = manifest["rows"], manifest["decisions"]
    dropped = sum(rows["dropped"].values())
    suppressed = decisions["suppressed"]
    released = int(np.sum(shown.names != NOTHING))
    total = decisions["released"] + sum(suppressed.values())
    numbers = [
        ("rows.written", rows["written"], shown.written, 0),
        ("decisions.released", decisions["released"], released, shown.written - len(shown.names)),
        ("decisions.observations", decisions["observations"], total, 0),
    ]
    if not manifest["interrupted"]:
        room = abs(raw.dropped - dropped)
        observed = raw.read - raw.dropped - raw.empty
        barred = int(np.sum(raw.names != NOTHING)) - int(np.sum(raw.is_named))
        numbers += [
            ("rows.read", rows["read"], raw.read, 0),
            ("rows.dropped", dropped, raw.dropped, 0),
            ("rows.no_attribute", rows["no_attribute"], raw.empty, room),
            ("decisions.observations", decisions["observations"], observed, room),
        ]
        if rules.never or not rules.never_count:
            numbers.append(("decisions.suppressed.never", suppressed["never"], barred, room))
        yield from of_releases(manifest, rules, raw, room)
    for column, stated, own, room in numbers:
        if abs(stated - own) > room:
            yield Finding("sums", MANIFEST, None, column, stated, own)


def of_releases(
    manifest: Mapping[str, Any], rules: RowRules, raw: RawRows, room: int
) -> Iterator[Finding]:
    """Yields the number of released rows if the audit's own counts do not allow it.

    Rows of equal times are decided one after the other. A run that decided rows late, or that had
    no room, may have released fewer.
    """
    decisions = manifest["decisions"]
    suppressed = decisions["suppressed"]
    if rules.never_count and not rules.never:
        return
    lost = [decisions[name] for name in ("late", "clock_jumps", "evicted")]
    lost += [suppressed[name] for name in ("too_late", "late_deep", "no_room")]
    users = raw.counts.astype(np.int64)
    most = int(np.sum(raw.is_named & (users >= rules.z))) + room
    least = 0
    if raw.is_ordered and not any(lost) and not room:
        least = int(np.sum(raw.is_named & (users - equals_behind(raw) >= rules.z)))
    stated = decisions["released"]
    if not least <= stated <= most:
        own = most if stated > most else least
        yield Finding("sums", MANIFEST, None, "decisions.released", stated, own)


def equals_behind(raw: RawRows) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns for each row the number of rows behind it with its time and attribute."""
    order = np.lexsort((np.arange(len(raw.t_ns)), raw.t_ns, raw.names))
    names, times = raw.names[order], raw.t_ns[order]
    found = np.zeros(len(order), np.int64)
    if len(order):
        is_first = np.r_[True, (names[1:] != names[:-1]) | (times[1:] != times[:-1])]
        starts = np.flatnonzero(is_first)
        sizes = np.diff(np.r_[starts, len(order)])
        ends = np.repeat(starts + sizes, sizes)
        found[order] = ends - 1 - np.arange(len(order))
    return found
