# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of singling out: can a pseudonym be distinguished from all others?"""

from typing import Any

from zanon_net.audit.result import Metric
from zanon_net.audit.subject import HOUR_US, SECOND_US, TARGETS, Subject
from zanon_net.audit.thresholds import absent, judged, share_of, wilson

POINTS = 5
"""Most names or visits that the attacker knows."""
MATCHES = 18_000_000
"""Most pairs of a target's point and a record that has the point."""
BATCH = 6_000_000
"""Pairs that are in memory at a time."""
FEW = 11  # a risk of more than 1/11 is high for ARX and El Emam
KINDS = {
    "name": "name",
    "name and hour": f"hash(name, start_us // {HOUR_US})",
    "name and minute": f"hash(name, start_us // {60 * SECOND_US})",
}
"""Points of `unicity`, each with its expression over `points`."""
VISITS, SPANS = (1, 3, 5), (1, 60, 600)
"""Numbers of known visits, and the seconds by which their times may differ."""


def equal_sets(subject: Subject) -> list[Metric]:
    """Measures `k`, `prosecutor` and `marketer`: how many pseudonyms share their released set."""
    (row,) = subject.database.rows(
        "SELECT sum(k), sum(k) FILTER (k = 1), sum(k) FILTER (k < 5),"
        f" sum(k) FILTER (k < {subject.release.z}), sum(k) FILTER (k < {FEW}), count(*),"
        " max(1.0 / k) FROM classes"
    )
    count, alone, under_5, under_z, few, classes, most = (float(value or 0) for value in row)
    median = subject.database.value(
        "SELECT median(k) FROM people JOIN classes USING (epoch, names_set)"
    )
    baseline = subject.epochs / max(1.0, count)
    shares: dict[str, Any] = {"k<5": under_5 / count, "k<z": under_z / count}
    shares["median k"] = float(median)
    sizes = subject.database.rows(
        "SELECT floor(log2(k))::INTEGER AS power, sum(k)::BIGINT FROM classes GROUP BY power"
        " ORDER BY power"
    )
    shares["pseudonyms by power of 2 of k"] = {str(power): number for power, number in sizes}
    purpose, trials = subject.purpose, int(count)
    risk = {"share above 1/11": few / count}
    return [
        share_of("k", purpose, alone, trials, baseline, parts=shares),
        judged("prosecutor", purpose, most, baseline=baseline, sample=trials, parts=risk),
        judged(
            "marketer",
            purpose,
            classes / count,
            baseline=baseline,
            interval=wilson(classes, trials),
            sample=trials,
        ),
    ]


def unicity(subject: Subject) -> list[Metric]:
    """Measures how many pseudonyms are unique by p random points of theirs."""
    shares: dict[str, dict[str, float]] = {}
    hits, trials = 0, 0
    for kind, point in KINDS.items():
        counts, targets = unique_by(subject, point)
        if not targets:
            return [absent("unicity", "no pseudonym shows a name")]
        shares[kind] = {str(p + 1): count / targets for p, count in enumerate(counts)}
        if kind == "name":
            hits, trials = counts[2], targets
    return [
        share_of("unicity", subject.purpose, hits, trials, _chance(subject), parts=shares),
    ]


def _chance(subject: Subject) -> float:
    """Returns the chance to guess a pseudonym of an epoch."""
    return min(1.0, subject.epochs / max(1, subject.pseudonyms))


def unique_by(
    subject: Subject, point: str, allowed: str = "name IS NOT NULL"
) -> tuple[list[int], int]:
    """Returns for p = 1..POINTS how many targets have p points that no other pseudonym has, and the
    number of targets.

    point: expression over `points`. allowed: condition on the names that the attacker knows.
    """
    database = subject.database
    is_name = point == "name"
    source = "shown" if is_name else "points"
    database.run(
        "CREATE TABLE targets AS SELECT who FROM people WHERE names > 0"
        f" ORDER BY hash(who, {subject.seed}) LIMIT {TARGETS}"
    )
    database.run(
        f"CREATE TABLE picked AS SELECT who, epoch, {point} AS point, row_number() OVER"
        f" (PARTITION BY who ORDER BY hash({point}, who, {subject.seed})) - 1 AS rank FROM"
        f" (SELECT DISTINCT ON (who, {point}) * FROM {source} SEMI JOIN targets USING (who)"
        f" WHERE {allowed}) QUALIFY rank < {POINTS}"
    )
    _bound_matches(subject, source, point)
    database.run("CREATE TABLE matches (target UBIGINT, most TINYINT)")
    for batch in _batches(subject, "picked"):
        database.run(
            "INSERT INTO matches WITH masks AS (SELECT picked.who AS target, others.who,"
            " bit_or(1 << picked.rank) AS mask FROM picked JOIN"
            f" (SELECT epoch, who, {point} AS point FROM {source} WHERE who IS NOT NULL"
            " AND name IS NOT NULL) AS others ON others.epoch = picked.epoch"
            f" AND others.point = picked.point WHERE picked.batch = {batch}"
            " AND others.who <> picked.who GROUP BY ALL)"
            f" SELECT target, max({prefix('mask')}) FROM masks GROUP BY target"
        )
    counts = ", ".join(
        f"count(*) FILTER (coalesce(most, 0) < least({p}, points))" for p in range(1, POINTS + 1)
    )
    (row,) = database.rows(
        f"SELECT {counts}, count(*) FROM (SELECT who, count(*) AS points FROM picked GROUP BY who)"
        " LEFT JOIN matches ON target = who"
    )
    subject.drop("targets", "picked", "matches")
    return [int(value) for value in row[:-1]], int(row[-1])


def prefix(mask: str) -> str:
    """Returns the expression for the number of ones at the low end of a mask."""
    cases = " ".join(f"WHEN {mask} & {(2 << p) - 1} <> {(2 << p) - 1} THEN {p}"
                     for p in range(POINTS))  # fmt: skip
    return f"CASE {cases} ELSE {POINTS} END"


def _bound_matches(subject: Subject, source: str, point: str) -> None:
    """Removes targets, in the order of the sample, until the join of their points is bounded."""
    database = subject.database
    database.run(
        "CREATE TABLE costs AS SELECT picked.who, sum(users) AS cost FROM picked JOIN"
        f" (SELECT epoch, {point} AS point, count(*) AS users FROM {source}"
        f" SEMI JOIN picked ON picked.point = {point} AND picked.epoch = {source}.epoch"
        " GROUP BY ALL) AS sizes USING (epoch, point) GROUP BY picked.who"
    )
    _keep_first(subject, "picked")


def reid(subject: Subject) -> list[Metric]:
    """Measures how often m known visits of a target find its pseudonym (re-ID@1 and @5)."""
    database = subject.database
    pick_visits(subject, "true")
    figures: dict[str, dict[str, float]] = {}
    hits, sample = 0.0, 0
    if not database.value("SELECT count(*) FROM visits"):
        subject.drop("visits")
        return [absent("reid", "no pseudonym shows a name")]
    for span in SPANS:
        trials = match_visits(subject, span)
        for visits in VISITS:
            first, fifth = expected_hits(subject, visits)
            figures[f"{visits} visits, {span} s"] = {"@1": first / trials, "@5": fifth / trials}
            if (visits, span) == (3, 60):
                hits, sample = first, trials
        subject.drop("found", "known")
    subject.drop("visits")
    figures["1/z"] = {"@1": 1 / subject.release.z}
    note = f"1/z, with which z-anonymity hides a user of one name, is {1 / subject.release.z:.1%}"
    return [
        share_of("reid", subject.purpose, hits, sample, _chance(subject), parts=figures, note=note)
    ]


def pick_visits(subject: Subject, allowed: str, floor_us: int = 1) -> None:
    """Makes `visits`: up to POINTS random visits of each target, with their ranks.

    allowed: condition on the records. floor_us: length to which all times are rounded down.
    """
    subject.database.run(
        "CREATE TABLE visits AS WITH targets AS (SELECT who FROM people WHERE names > 0"
        f" ORDER BY hash(who, {subject.seed}) LIMIT {TARGETS}) SELECT who, epoch, name, seen,"
        f" row_number() OVER (PARTITION BY who ORDER BY hash(name, seen, who, {subject.seed})) - 1"
        f" AS rank FROM (SELECT DISTINCT who, epoch, name, start_us // {floor_us} * {floor_us}"
        f" AS seen FROM records SEMI JOIN targets USING (who) WHERE name IS NOT NULL"
        f" AND {subject.visited} AND ({allowed})) QUALIFY rank < {POINTS}"
    )


def _keep_first(subject: Subject, table: str) -> None:
    """Removes the last targets of a table if their `costs` are too much; adds the column `batch`,
    so that the costs of a batch are bounded."""
    subject.database.run(
        f"CREATE TABLE kept AS SELECT {table}.*, (total // {BATCH})::INTEGER AS batch FROM {table}"
        f" JOIN (SELECT who, sum(cost) OVER (ORDER BY hash(who, {subject.seed})"
        " ROWS UNBOUNDED PRECEDING) AS total FROM costs) USING (who)"
        f" WHERE total <= {MATCHES}"
    )
    subject.drop(table, "costs")
    subject.database.run(f"ALTER TABLE kept RENAME TO {table}")


def _batches(subject: Subject, table: str) -> list[int]:
    """Returns the batches of the targets of a table."""
    rows = subject.database.rows(f"SELECT DISTINCT batch FROM {table} ORDER BY batch")
    return [int(batch) for (batch,) in rows]


def match_visits(subject: Subject, span: int, floor_us: int = 1) -> int:
    """Makes `found`: for each target and each pseudonym with its first visit how many of the first
    visits the pseudonym has, at times that differ by at most `span` seconds.

    The targets are in `known`, with their visits. Returns the number of targets.
    """
    database, span_us = subject.database, span * SECOND_US
    at = f"start_us // {floor_us} * {floor_us}"
    near = f"SELECT *, seen // {span_us} + unnest([-1, 0, 1]) AS slot FROM"
    database.run("CREATE TABLE known AS FROM visits")
    database.run(
        f"CREATE TABLE costs AS WITH sizes AS (SELECT epoch, name, ({at}) // {span_us} AS slot,"
        " count(*) AS users FROM records SEMI JOIN known USING (epoch, name) GROUP BY ALL)"
        f" SELECT who, sum(users) AS cost FROM ({near} known) JOIN sizes"
        " USING (epoch, name, slot) GROUP BY who"
    )
    _keep_first(subject, "known")
    database.run("CREATE TABLE found (target UBIGINT, who UBIGINT, visits TINYINT)")
    for batch in _batches(subject, "known"):
        database.run(
            f"INSERT INTO found WITH slots AS ({near} known WHERE batch = {batch}), masks AS"
            " (SELECT slots.who AS target, others.who, bit_or(1 << rank) AS mask FROM slots JOIN"
            f" (SELECT epoch, who, name, {at} AS seen, ({at}) // {span_us} AS slot FROM records"
            " WHERE who IS NOT NULL AND name IS NOT NULL) AS others ON others.name = slots.name"
            " AND others.slot = slots.slot AND others.epoch = slots.epoch"
            f" WHERE abs(others.seen - slots.seen) <= {span_us} GROUP BY ALL)"
            f" SELECT target, who, {prefix('mask')} FROM masks WHERE mask & 1 = 1"
        )
    return int(database.value("SELECT count(DISTINCT who) FROM known"))


def expected_hits(subject: Subject, visits: int) -> tuple[float, float]:
    """Returns the expected targets among the first and the first five candidates; ties share."""
    (row,) = subject.database.rows(
        "SELECT sum(1.0 / ties), sum(least(1.0, 5.0 / ties)) FROM (SELECT target, count(*) AS ties"
        " FROM found JOIN (SELECT who AS target, count(*) AS points FROM known GROUP BY who)"
        f" USING (target) WHERE visits >= least({visits}, points) GROUP BY target)"
    )
    return float(row[0] or 0), float(row[1] or 0)


def operator(subject: Subject) -> list[Metric]:
    """Measures how many pseudonyms the operators of the largest names single out by the second."""
    figures: dict[str, float] = {}
    hits = 0
    for largest in (1, POINTS):
        hits = lonely(subject, largest, subject.slot_us)
        figures[f"{largest} largest"] = hits / subject.pseudonyms
    note = "lonely in the log; the operator's own log may have further visits in that second"
    return [
        share_of("operator", subject.purpose, hits, subject.pseudonyms, parts=figures, note=note)
    ]


def lonely(subject: Subject, largest: int, slot_us: int) -> int:
    """Returns the number of pseudonyms that visit a largest name alone in a slot of time."""
    return int(
        subject.database.value(
            "WITH largest AS (SELECT name FROM shown WHERE is_name GROUP BY name"
            f" ORDER BY count(*) DESC, hash(name, {subject.seed}) LIMIT {largest}),"
            " slots AS (SELECT any_value(who) AS who"
            f" FROM records SEMI JOIN largest USING (name) WHERE {subject.visited}"
            f" GROUP BY name, start_us // {slot_us} HAVING min(who) = max(who)"
            " AND count(*) = count(who)) SELECT count(DISTINCT who) FROM slots"
        )
    )
