# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The metric `entropy`, next to the entropy that the model of `tune` gives for this log.

The model takes names as independent. The audit shares no code with the model, so it computes the
model's figures from the shares of pseudonyms that show each name.
"""

from typing import Any

import numpy as np

from zanon_net.audit.result import Metric
from zanon_net.audit.subject import Subject
from zanon_net.audit.thresholds import judged
from zanon_net.config.parse import format_duration

DRAWS, DRAWN = 20, 2_000_000
"""Most draws from the model, and most names of pseudonyms that all draws have."""


def entropy(subject: Subject) -> list[Metric]:
    """Measures the entropy of released sets and of names, in nats."""
    database = subject.database
    names = database.value(
        "SELECT -sum(n / total * ln(n / total)) FROM (SELECT sum(n) AS n FROM shown WHERE is_name"
        " GROUP BY name), (SELECT sum(n) AS total FROM shown WHERE is_name)"
    )
    most = database.value(
        "SELECT sum(n * ln(n)) / sum(n) FROM (SELECT count(*) AS n FROM people GROUP BY epoch)"
    )
    figure, alone = _of_classes(subject, "SELECT epoch, k FROM classes")
    parts = {
        "names": float(names or 0),
        "most": float(most),
        "unique": alone,
        "model": _model(subject),
    }
    return [
        judged(
            "entropy",
            subject.purpose,
            figure,
            sample=subject.pseudonyms,
            note=_limits(subject),
            parts=parts,
        )
    ]


def _limits(subject: Subject) -> str:
    """Returns the reason why the log alone cannot show the information without z, and the command
    that shows it."""
    release = subject.release
    periods, rest = divmod(release.rotate_ns, release.window_ns)
    note = "the entropy without z is unknown, because names of fewer than z users are not in a log"
    if rest:
        return f"{note}; tune has figures for epochs that are a multiple of the window only"
    return (
        f"{note}; with the run's popularity file, zanon-net model --z {release.z} --window"
        f" {format_duration(release.window_ns)} --periods {periods} gives both"
    )


def _of_classes(subject: Subject, classes: str) -> tuple[float, float]:
    """Returns the entropy of the sets of an epoch (mean over the epochs), and the share of unique
    sets.

    classes: query for the epoch and the size k of each class of equal sets.
    """
    (row,) = subject.database.rows(
        "SELECT -sum(k * ln(k / total)) / sum(k), coalesce(sum(k) FILTER (k = 1), 0) / sum(k) FROM"
        f" (SELECT k, sum(k) OVER (PARTITION BY epoch) AS total FROM ({classes}))"
    )
    return max(0.0, float(row[0])), float(row[1])


def _model(subject: Subject) -> dict[str, Any]:
    """Returns the figures of users whose names are independent.

    one set: entropy of one user's set, Σ_a H(p_a) for the share p_a of pseudonyms that show name a.
    It is the entropy that `tune` computes after z. sets, unique: mean over draws of sets for as
    many users as the log has pseudonyms. least, largest: of the entropy of a draw.
    """
    one = subject.database.value(
        "WITH users AS (SELECT epoch, count(*) AS users FROM people GROUP BY epoch), shares AS"
        " (SELECT epoch, users, count(*) / users AS p FROM shown JOIN users USING (epoch)"
        " GROUP BY epoch, users, name) SELECT sum(users * -(p * ln(p) + CASE WHEN p < 1"
        " THEN (1 - p) * ln(1 - p) ELSE 0 END)) / (SELECT sum(users) FROM users) FROM shares"
    )
    drawn = _draws(subject)
    entropies = [figure for figure, _unique in drawn]
    return {
        "one set": float(one or 0),
        "sets": float(np.mean(entropies)),
        "least": min(entropies),
        "largest": max(entropies),
        "unique": float(np.mean([unique for _figure, unique in drawn])),
        "draws": len(drawn),
        "one set without z": None,
    }


def _draws(subject: Subject) -> list[tuple[float, float]]:
    """Returns the entropy and the share of unique sets of draws from the model.

    Users of an epoch are put in a random circle, and each name is moved by a random number of
    places. So a name keeps its number of users, and the names of a user are independent.
    """
    database, seed = subject.database, subject.seed
    database.run(
        "CREATE TABLE places AS SELECT epoch, who, row_number() OVER (PARTITION BY epoch"
        f" ORDER BY hash(who, {seed}), who) - 1 AS place, count(*) OVER (PARTITION BY epoch) AS"
        " users FROM people"
    )
    rows = int(database.value("SELECT count(*) FROM shown"))
    draws = [
        _of_classes(
            subject,
            "SELECT epoch, count(*) AS k FROM places LEFT JOIN (SELECT epoch, (place +"
            f" (hash(name, epoch, {seed}, {draw}) % users::UBIGINT)::BIGINT) % users AS place,"
            " bit_xor(hash(name, 1)) AS names FROM shown JOIN places USING (epoch, who)"
            " GROUP BY ALL) USING (epoch, place) GROUP BY epoch, coalesce(names, 0)",
        )
        for draw in range(max(1, min(DRAWS, DRAWN // max(1, rows))))
    ]
    subject.drop("places")
    return draws
