# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of inference: what do records disclose that they do not state?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.audit.attack_math import Ints
from zanon_net.audit.guessing import DECILES, NAME, finest_steps, guess_names
from zanon_net.audit.records import MINUTE_US, SUPPRESSED
from zanon_net.audit.result import Metric
from zanon_net.audit.singling import match_visits, pick_visits
from zanon_net.audit.subject import Subject
from zanon_net.audit.thresholds import absent, judged, share_of, unknown

NO_CATEGORY = "(none)"

Bools = npt.NDArray[np.bool_]


# ---- suppressed names ---------------------------------------------------------------------------


def suppressed(subject: Subject) -> list[Metric]:
    """Measures how often the name of a coarse record, or its category, is guessed.

    The figure is the share of right answers of the guess that is most above its baseline.
    """
    hidden = subject.database.value(
        f"SELECT count(*) FROM records WHERE status >= {SUPPRESSED} AND c_pkts IS NOT NULL"
    )
    if not hidden:
        return [absent("suppressed", "the log has no records of suppressed names")]
    found = guess_names(subject, finest_steps(subject))
    if found is None:
        reason = "too few records with a name to learn from"
        return [unknown("suppressed", subject.purpose, reason)]
    right, decile = found.right[found.worst], found.decile
    shares: dict[str, Any] = {
        f"decile {i + 1}": float(right[decile == i].mean())
        for i in range(DECILES)
        if (decile == i).any()
    }
    shares["kind"] = found.worst
    shares["guesses"] = {kind: found.share(kind) for kind in found.right}
    note = "estimate from records with a name: popular names are easier to guess"
    if found.worst != NAME:
        note = f"guessed: the {found.worst}; {note}"
    return [
        share_of(
            "suppressed",
            subject.purpose,
            int(right.sum()),
            len(right),
            found.chance[found.worst],
            note=note,
            parts=shares,
        )
    ]


# ---- sensitive categories -----------------------------------------------------------------------


def disclosure(subject: Subject) -> list[Metric]:
    """Measures how often the sensitive category of a target is guessed from pseudonyms that share
    three visits with it."""
    if not subject.has_categories:
        return [unknown("disclosure", subject.purpose, "needs a file of categories (--sensitive)")]
    database = subject.database
    pick_visits(subject, "name NOT IN (SELECT name FROM categories)")
    match_visits(subject, 60)
    database.run(
        "CREATE TABLE own AS SELECT who, coalesce(arg_max(category, (n, category)), "
        f"'{NO_CATEGORY}') AS category FROM people LEFT JOIN (SELECT who, category, sum(n) AS n"
        " FROM shown JOIN categories USING (name) GROUP BY ALL) USING (who) GROUP BY who"
    )
    hits, trials = database.rows(
        "WITH near AS (SELECT target, who FROM found JOIN (SELECT who AS target, count(*) AS points"
        " FROM known GROUP BY who) USING (target) WHERE visits >= least(3, points)),"
        " votes AS (SELECT target, category, count(*) AS n FROM near JOIN own USING (who)"
        " GROUP BY ALL), best AS (SELECT target, category FROM votes"
        " QUALIFY n = max(n) OVER (PARTITION BY target)),"
        " ties AS (SELECT target, count(*) AS n FROM best GROUP BY target)"
        " SELECT sum(CASE WHEN best.category = own.category THEN 1.0 / n ELSE 0 END),"
        " count(DISTINCT target) FROM best JOIN ties USING (target) JOIN own ON own.who = target"
    )[0]
    most = database.value("SELECT max(n) / sum(n) FROM (SELECT count(*) AS n FROM own"
                          " GROUP BY category)")  # fmt: skip
    subject.drop("visits", "found", "known", "own")
    if not trials:
        return [absent("disclosure", "no pseudonym shows a name that is not sensitive")]
    return [share_of("disclosure", subject.purpose, float(hits), int(trials), float(most))]


def sensitive(subject: Subject) -> list[Metric]:
    """Measures how many pseudonyms that show a sensitive name are unique by their names."""
    if not subject.has_categories:
        return [unknown("sensitive", subject.purpose, "needs a file of categories (--sensitive)")]
    showing, alone, fewest = subject.database.rows(
        "WITH exposed AS (SELECT who, count(DISTINCT category) AS categories FROM shown"
        " JOIN categories USING (name) GROUP BY who) SELECT count(*), count(*) FILTER (k = 1),"
        " min(categories) FROM exposed JOIN people USING (who) JOIN classes"
        " USING (epoch, names_set)"
    )[0]
    if not showing:
        return [absent("sensitive", "no pseudonym shows a sensitive name")]
    figures = {"pseudonyms": int(showing), "fewest categories of one": int(fewest)}
    return [share_of("sensitive", subject.purpose, int(alone), int(showing), parts=figures)]


# ---- order --------------------------------------------------------------------------------------


def order(subject: Subject) -> list[Metric]:
    """Measures the median error of the end of a coarse record, guessed from its place.

    If a minute's coarse records all follow its other records, places disclose the minute. Else
    the end lies between the ends of the records around it. The guess is the middle of that span,
    and its median error is a quarter of the span.
    """
    database = subject.database
    counts = database.rows(
        f"SELECT count(*), count(*) FILTER (coarse) FROM records WHERE status >= {SUPPRESSED}"
        " AND c_pkts IS NOT NULL"
    )[0]
    if not counts[0]:
        return [absent("order", "the log has no records of suppressed names")]
    if counts[1] < counts[0]:
        note = "records of suppressed names state their times exactly"
        return [judged("order", subject.purpose, 0.0, sample=int(counts[0]), note=note)]
    mixed = database.arrays(
        f"SELECT file::BIGINT AS file, end_us // {MINUTE_US} AS minute FROM records"
        " GROUP BY ALL HAVING min(rowid) FILTER (coarse) < max(rowid) FILTER (NOT coarse)"
    )
    median, count, more = MINUTE_US / 4e6, int(counts[1]), 0
    if len(mixed["file"]):
        rows = database.arrays("SELECT file, coarse, end_us FROM records")
        minutes = _minute_keys(mixed["file"], mixed["minute"])
        rounding = int(
            database.value(
                f"SELECT CASE WHEN bool_and(end_us % {MINUTE_US} = 0) THEN {MINUTE_US} ELSE 0 END"
                " FROM records WHERE NOT coarse"
            )
        )
        places = (rows["file"], rows["coarse"], rows["end_us"])
        median, more, count = order_error(*places, minutes, rounding)
    parts = {"share in minutes whose order discloses more": more / count}
    return [judged("order", subject.purpose, median, sample=count, parts=parts)]


def _minute_keys(file: Ints, minute: Ints) -> Ints:
    """Returns a number for each pair of a file and a minute."""
    keys: Ints = (file.astype(np.int64) << 40) + minute
    return keys


def order_error(
    file: Ints, is_coarse: Bools, end_us: Ints, mixed: Ints, rounding: int = 0
) -> tuple[float, int, int]:
    """Returns the median error (s) of coarse records' ends, the number of coarse records in minutes
    whose order discloses more than the minute, and the number of all coarse records.

    The arrays are in the order of the records. mixed: the keys of these minutes. rounding: length
    (us) to which the times of all other records are rounded down.
    """
    place = np.flatnonzero(is_coarse)
    is_mixed = np.isin(_minute_keys(file[place], end_us[place] // MINUTE_US), mixed)
    span = np.full(len(place), MINUTE_US)
    inner = place[is_mixed]
    exact = np.flatnonzero(~is_coarse)
    if len(exact) and len(inner):
        after = np.searchsorted(exact, inner)
        low, high = exact[np.maximum(after - 1, 0)], exact[np.minimum(after, len(exact) - 1)]
        is_between = (low < inner) & (file[low] == file[inner]) & (file[high] == file[inner])
        gap = np.abs(end_us[high] - end_us[low]) + rounding
        span[is_mixed] = np.where(is_between, np.minimum(gap, MINUTE_US), MINUTE_US)
    return float(np.median(span)) / 4e6, len(inner), len(place)
