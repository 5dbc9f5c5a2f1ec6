# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Users of one period who are found again in the next period by their behaviour.

A period is a part of an epoch, an epoch, or several epochs. The user is known of each record: a
pseudonym within an epoch, and an address over several epochs.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zanon_net.audit.attack_math import (
    HOUR_WEIGHT,
    HOURS,
    SIZE_BINS,
    SIZE_WEIGHT,
    Ints,
    Matrix,
    counted,
    stacked,
    unit_rows,
)
from zanon_net.audit.subject import HOUR_US, Subject

PRODUCTS = 250_000_000
"""Most products of features that a pair of periods costs."""
BLOCK = 1 << 24  # similarities that are in memory at a time
EQUAL = 1e-5  # similarities that differ by less are ties
DAY_US = 24 * HOUR_US


class Found(NamedTuple):
    """Result of an attack on pairs of periods.

    hits: expected right answers, because ties share a hit. targets: users of both periods. chances:
    expected right answers without the log.
    """

    hits: float
    targets: int
    chances: float


def total(parts: Iterable[Found]) -> Found:
    """Returns the sums of several results."""
    sums = Found(0.0, 0, 0.0)
    for one in parts:
        sums = Found(sums.hits + one.hits, sums.targets + one.targets, sums.chances + one.chances)
    return sums


def span_of(subject: Subject, epoch: int) -> tuple[int, int]:
    """Returns the first and the last start (us) of an epoch's records that have a pseudonym."""
    first, last = subject.database.rows(
        "SELECT min(start_us), max(start_us) FROM seen WHERE epoch = ?", [epoch]
    )[0]
    return int(first), int(last)


def within_epoch(
    subject: Subject, epoch: int, length_us: int, most: int, products: int | None = None
) -> Found:
    """Attacks the two periods before and after the middle of an epoch's records.

    length_us: of a period. most: number of targets. products: bound of the work.
    """
    first, last = span_of(subject, epoch)
    middle = first + (last - first) // 2
    _number_users(subject, [epoch])
    near = f"start_us BETWEEN {middle - length_us} AND {middle + length_us}"
    has_hours = min(length_us, last - middle) >= DAY_US
    late, bounds = f"(start_us > {middle})", (most, products or PRODUCTS)
    return _followed(subject, near, late, bounds, has_hours=has_hours)


def over_epochs(subject: Subject, first: int, count: int, most: int) -> Found:
    """Attacks two periods of `count` epochs each, of which `first` is the first epoch.

    The subject has the addresses behind the pseudonyms. most: number of targets.
    """
    _number_users(subject, range(first, first + 2 * count))
    length_us = subject.release.rotate_ns // 1000 * count
    has_hours = length_us >= DAY_US
    late, bounds = f"(epoch >= {first + count})", (most, PRODUCTS)
    return _followed(subject, "true", late, bounds, has_hours=has_hours)


def _number_users(subject: Subject, epochs: Sequence[int]) -> None:
    """Makes `numbers`: an even number for the user of each pseudonym, in the order of the sample.

    Over several epochs a user is an address. A pseudonym without an address is a user, too.
    """
    database, order = subject.database, f"hash(who, {subject.seed}), who"
    if len(epochs) == 1:
        database.run(
            f"CREATE TABLE numbers AS SELECT who, 2 * row_number() OVER (ORDER BY {order}) AS"
            f" number FROM people WHERE epoch = {epochs[0]}"
        )
        return
    rows = database.rows(
        "SELECT who, epoch, any_value(text) FROM people LEFT JOIN clients USING (who, epoch)"
        f" WHERE epoch BETWEEN {epochs[0]} AND {epochs[-1]} GROUP BY who, epoch ORDER BY {order}"
    )
    addresses = subject.addresses
    users: dict[bytes | int, int] = {}
    numbers = []
    for who, epoch, text in rows:
        address = addresses.of(epoch, text) if addresses is not None and text is not None else None
        numbers.append(2 * users.setdefault(who if address is None else address, len(users) + 1))
    database.run("CREATE TABLE numbers (who UBIGINT, number BIGINT)")
    pseudonyms = np.array([who for who, _epoch, _text in rows], dtype=np.uint64)
    database.append("numbers", {"who": pseudonyms, "number": np.array(numbers, dtype=np.int64)})


def _followed(
    subject: Subject, near: str, late: str, bounds: tuple[int, int], *, has_hours: bool
) -> Found:
    """Attacks the users of `numbers`, and removes the table.

    near: condition on the records of both periods. late: condition on the records of the later
    period. bounds: of the targets, and of the products of features.
    """
    half = f"number + {late}::BIGINT"
    everyone = subject.database.arrays(
        f"SELECT DISTINCT {half} AS half FROM seen JOIN numbers USING (who) WHERE {near}"
        " ORDER BY half"
    )["half"]
    if len(everyone) == 0:
        found = Found(0.0, 0, 0.0)
    else:
        rows = _behaviour(subject, everyone, half, near, has_hours=has_hours)
        found = _joined(rows, everyone % 2 == 1, everyone // 2, *bounds)
    subject.drop("numbers")
    return found


def _joined(
    rows: Matrix, is_late: npt.NDArray[np.bool_], who: Ints, most: int, products: int
) -> Found:
    """Joins late rows to the most similar early row; rows of one user have one number in `who`."""
    early, late = np.flatnonzero(~is_late), np.flatnonzero(is_late)
    order = np.argsort(who[early], kind="stable")
    at = np.minimum(np.searchsorted(who[early], who[late], sorter=order), max(0, len(early) - 1))
    partner = order[at] if len(early) else at
    there = who[early][partner] == who[late] if len(early) else np.zeros(len(late), dtype=bool)
    candidates = rows[early].T.tocsr()
    # The time of the product is the number of features that targets and candidates share.
    shared = (rows[late[there]] != 0) @ candidates.getnnz(axis=1)
    most = min(most, max(1, int(np.searchsorted(np.cumsum(shared), products))))
    targets, answers = late[there][:most], partner[there][:most]
    hits = 0.0
    step = max(1, BLOCK // max(1, len(early)))
    for begin in range(0, len(targets), step):
        part = slice(begin, begin + step)
        alike = (rows[targets[part]] @ candidates).toarray()
        best = alike.max(axis=1)
        right = alike[np.arange(len(alike)), answers[part]] >= best - EQUAL
        ties = (alike >= best[:, None] - EQUAL).sum(axis=1)
        hits += float((right / ties).sum())
    return Found(hits, len(targets), len(targets) / max(1, len(early)))


def _behaviour(
    subject: Subject, everyone: Ints, half: str, near: str, *, has_hours: bool
) -> Matrix:
    """Returns a row of features for each user and period.

    everyone: the values of the expression `half`, a number for each user and period.
    has_hours: true if hours are features.
    """
    features = {
        "point": ("name", 0, 1.0),
        "size": (
            "CASE WHEN tcp THEN least(63, floor(2 * log2(greatest(s_bytes, 1))))::BIGINT END",
            SIZE_BINS,
            SIZE_WEIGHT,
        ),
        "hour": (f"start_us // {HOUR_US} % {HOURS}", HOURS, HOUR_WEIGHT),
    }
    if not has_hours:
        del features["hour"]  # the periods have no hour in common
    parts = []
    for feature, (value, width, weight) in features.items():
        source = "points" if feature == "point" else "records"
        found = subject.database.arrays(
            f"SELECT {half} AS half, {value} AS value, count(*)::FLOAT AS times FROM"
            f" {source} JOIN numbers USING (who) WHERE {value} IS NOT NULL AND {near} GROUP BY ALL"
        )
        column = found["value"]
        if not width:
            names, column = np.unique(column, return_inverse=True)
            width = max(1, len(names))
        row = np.searchsorted(everyone, found["half"])
        parts.append(counted(row, column, (len(everyone), width), found["times"]) * weight)
    return unit_rows(stacked(parts))
