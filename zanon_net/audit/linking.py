# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of linking: can records of one user be joined across epochs, outputs or addresses?"""

import ipaddress
from collections.abc import Sequence

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
from zanon_net.audit.coarse import coarse_sql
from zanon_net.audit.records import MINUTE_US, RELEASED, SUPPRESSED
from zanon_net.audit.result import Metric
from zanon_net.audit.subject import HOUR_US, TARGETS, Subject
from zanon_net.audit.thresholds import absent, judged, share_of, unknown, wilson

EPOCHS = 4
"""Most epochs that are cut in two for `link`."""
PRODUCTS = 250_000_000
"""Most products of features that an epoch costs."""
BLOCK = 1 << 24  # similarities that are in memory at a time
EQUAL = 1e-5  # similarities that differ by less are ties
NS_PER_DAY = 86_400_000_000_000
DAY_US = 24 * HOUR_US
KNOWN = (1, 16, 256)
"""Numbers of known hosts for `bits`."""
TREE = "lower bound, because pseudonyms may keep prefixes, by which a tree joins epochs, too"
LOWER_BOUND = "lower bound, because half an epoch shows little; the truth needs the key file"


# ---- from epoch to epoch ------------------------------------------------------------------------


def link(subject: Subject) -> list[Metric]:
    """Measures `link` and `k_windows`.

    With the key file, epochs are joined with their next. Without it, the second half of an epoch
    gets new pseudonyms.
    """
    is_exact = subject.addresses is not None
    follows = "AND epoch + 1 IN (SELECT epoch FROM people)" if is_exact else ""
    epochs = subject.database.rows(
        f"SELECT epoch FROM people WHERE true {follows} GROUP BY epoch HAVING count(*) > 1"
        f" ORDER BY hash(epoch, {subject.seed}) LIMIT {EPOCHS}"
    )
    most = TARGETS // max(1, len(epochs))
    counts = [(_of_epochs if is_exact else _of_halves)(subject, epoch, most) for (epoch,) in epochs]
    hits, trials, chances = (sum(count[i] for count in counts) for i in range(3))
    if not trials:
        reason = "no pseudonym has records in both halves of an epoch, or in two epochs"
        return [unknown(name, subject.purpose, reason) for name in ("link", "k_windows")]
    keeps = _keeps_prefixes(subject)
    note = "; ".join([LOWER_BOUND] * (not is_exact) + [TREE] * keeps)
    found = share_of(
        "link",
        subject.purpose,
        hits,
        int(trials),
        chances / trials,
        note=note,
        is_lower_bound=keeps or (subject.purpose == "public" and not is_exact),
    )
    return [found, _over_windows(subject, hits, int(trials), note)]


def _keeps_prefixes(subject: Subject) -> bool:
    """Returns true if a folder's pseudonyms may keep prefixes, by which a tree joins epochs."""
    kinds = [folder.pseudonyms for folder in subject.release.folders]
    return any(kind not in ("networks", "random") for kind in kinds)


def _of_halves(subject: Subject, epoch: int, most: int) -> tuple[float, int, float]:
    """Returns the expected hits in an epoch, the targets, and the expected hits by chance."""
    first, last = subject.database.rows(
        "SELECT min(start_us), max(start_us) FROM records WHERE who IS NOT NULL AND epoch = ?",
        [epoch],
    )[0]
    middle = first + (last - first) // 2
    rows, is_late, who = _behaviour(
        subject, [epoch], f"(start_us > {middle})", has_hours=last - middle >= DAY_US
    )
    return _joined(rows, is_late, who, most)


def _of_epochs(subject: Subject, epoch: int, most: int) -> tuple[float, int, float]:
    """Returns the hits, the targets and the hits by chance for an epoch that is joined with the
    next. The addresses of both are known."""
    epochs = [epoch, epoch + 1]
    spans = subject.release.rotate_ns // 1000
    rows, is_late, number = _behaviour(
        subject, epochs, f"(epoch = {epoch + 1})", has_hours=spans >= DAY_US
    )
    texts = subject.database.rows(
        f"SELECT DISTINCT number // 2, epoch, text FROM ({_numbered(subject, epochs)})"
        " JOIN clients USING (who)"
    )
    known: dict[bytes, int] = {}
    place = np.full(len(number), -1)
    for one, of, text in texts:
        address = subject.addresses.of(of, text) if subject.addresses else None
        if address is not None:
            place[np.searchsorted(number, one)] = known.setdefault(address, len(known))
    # A pseudonym without an address is a user who does not come again.
    place[place < 0] = len(known) + np.flatnonzero(place < 0)
    return _joined(rows, is_late, place, most)


def _joined(
    rows: Matrix, is_late: npt.NDArray[np.bool_], who: Ints, most: int
) -> tuple[float, int, float]:
    """Joins late rows to the most similar early row; rows of one user have one number in `who`.

    Returns the expected hits, because ties share a hit, the targets, and the hits by chance.
    """
    early, late = np.flatnonzero(~is_late), np.flatnonzero(is_late)
    order = np.argsort(who[early], kind="stable")
    at = np.minimum(np.searchsorted(who[early], who[late], sorter=order), max(0, len(early) - 1))
    partner = order[at] if len(early) else at
    there = who[early][partner] == who[late] if len(early) else np.zeros(len(late), dtype=bool)
    candidates = rows[early].T.tocsr()
    # The time of the product is the number of features that targets and candidates share.
    shared = (rows[late[there]] != 0) @ candidates.getnnz(axis=1)
    most = min(most, max(1, int(np.searchsorted(np.cumsum(shared), PRODUCTS))))
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
    return hits, len(targets), len(targets) / max(1, len(early))


def _numbered(subject: Subject, epochs: Sequence[int]) -> str:
    """Returns the query for the numbers of pseudonyms, in the order of the sample."""
    return (
        f"SELECT who, 2 * row_number() OVER (ORDER BY hash(who, {subject.seed}), who) AS number"
        f" FROM people WHERE epoch IN ({', '.join(map(str, epochs))})"
    )


def _behaviour(
    subject: Subject, epochs: Sequence[int], late: str, *, has_hours: bool
) -> tuple[Matrix, npt.NDArray[np.bool_], Ints]:
    """Returns a row of features for each pseudonym and side; true for the late side; and the
    number of the pseudonym.

    late: condition on the records of the late side. has_hours: true if hours are features.
    """
    database = subject.database
    database.run(f"CREATE TABLE numbers AS {_numbered(subject, epochs)}")
    half = f"number + {late}::BIGINT"
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
        del features["hour"]  # the sides have no hour in common
    everyone = database.arrays(
        f"SELECT DISTINCT {half} AS half FROM (SELECT epoch, who, start_us FROM records UNION ALL"
        " SELECT epoch, who, start_us FROM attributes) JOIN numbers USING (who) ORDER BY half"
    )["half"]
    parts = []
    for feature, (value, width, weight) in features.items():
        source = "points" if feature == "point" else "records"
        found = database.arrays(
            f"SELECT {half} AS half, {value} AS value, count(*)::FLOAT AS times FROM"
            f" {source} JOIN numbers USING (who) WHERE {value} IS NOT NULL GROUP BY ALL"
        )
        column = found["value"]
        if not width:
            names, column = np.unique(column, return_inverse=True)
            width = max(1, len(names))
        row = np.searchsorted(everyone, found["half"])
        parts.append(counted(row, column, (len(everyone), width), found["times"]) * weight)
    subject.drop("numbers")
    return unit_rows(stacked(parts)), everyone % 2 == 1, everyone // 2


def _over_windows(subject: Subject, hits: float, trials: int, note: str) -> Metric:
    """Returns the share of pseudonyms that are unique in one of N windows that were joined.

    A pseudonym is joined to the next window with the probability `link`, and is unique in a window
    with the probability `k`.
    """
    day = max(1, round(NS_PER_DAY / subject.release.rotate_ns))
    windows = sorted({1, 2, 4, 8, day} - set(range(day + 1, 9)))
    alone, count = subject.database.rows(
        "SELECT coalesce(sum(k) FILTER (k = 1), 0), sum(k) FROM classes"
    )[0]
    unique, joined = wilson(int(alone), int(count)), wilson(hits, trials)
    shares = {n: joined_share(int(alone) / int(count), hits / trials, n) for n in windows}
    return judged(
        "k_windows",
        subject.purpose,
        shares[day],
        baseline=subject.epochs / int(count),
        interval=(
            joined_share(unique[0], joined[0], day),
            joined_share(unique[1], joined[1], day),
        ),
        sample=int(count),
        note=note if day > 1 else "",
        parts={str(n): share for n, share in shares.items()},
        is_lower_bound=day > 1 and note != "",
    )


def joined_share(unique: float, joined: float, windows: int) -> float:
    """Returns the probability to be unique in a window, if each further window is joined with a
    probability."""
    missed, chain = 1 - unique, 1.0
    for _ in range(windows - 1):
        chain *= joined
        missed *= 1 - chain * unique
    return 1 - missed


# ---- addresses ----------------------------------------------------------------------------------


def bits(subject: Subject) -> list[Metric]:
    """Measures the leading bits of a client's address that known hosts disclose."""
    marked = _marked(subject)
    kinds = {folder.pseudonyms for folder in subject.release.folders}
    network = _network_bits(subject)
    if kinds <= {"random"}:
        network = 0.0
    if kinds <= {"networks", "random"}:
        return [
            judged(
                "bits",
                subject.purpose,
                network,
                baseline=network,
                sample=subject.pseudonyms,
                note="pseudonyms keep the network only",
                parts=marked,
            )
        ]
    if not kinds <= {"networks", "random", "crypto-pan"}:
        return [
            unknown("bits", subject.purpose, "the manifest does not state what pseudonyms keep")
        ]
    learned = _learned(subject)
    if not learned:
        return [absent("bits", "no pseudonym is an IPv4 address")]
    return [
        judged(
            "bits",
            subject.purpose,
            learned[str(KNOWN[-1])],
            baseline=network,
            sample=subject.pseudonyms,
            parts=learned | marked,
        )
    ]


def _network_bits(subject: Subject) -> float:
    """Returns the bits of the shortest IPv4 network of the users, which the release states."""
    stated = [
        text
        for folder in subject.release.folders
        for text in (folder.manifest.get("pseudonyms") or {}).get("networks") or ()
    ]
    networks = []
    for text in stated or subject.release.internal:
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            continue  # the word "any"
    return float(min((one.prefixlen for one in networks if one.version == 4), default=0))


def _marked(subject: Subject) -> dict[str, float]:
    """Returns the share of pseudonyms with a record whose bytes and second no other record has."""
    count = subject.database.value(
        "SELECT count(DISTINCT who) FROM (SELECT any_value(who) AS who FROM records"
        " WHERE c_bytes > 0 AND NOT coarse GROUP BY c_bytes, start_us // 1000000"
        " HAVING count(*) = 1)"
    )
    return {"pseudonyms with a unique marker": int(count) / max(1, subject.pseudonyms)}


def _learned(subject: Subject) -> dict[str, float]:
    """Returns the mean bits that each number of known hosts discloses of all other IPv4 hosts, in
    the largest epoch: the common prefix with the nearest known host, and the bit after it."""
    texts = subject.database.rows(
        "WITH largest AS (SELECT epoch FROM people GROUP BY epoch ORDER BY count(*) DESC, epoch"
        " LIMIT 1) SELECT DISTINCT text, hash(who, ?) AS place FROM clients"
        " SEMI JOIN largest USING (epoch) WHERE text NOT LIKE '%:%' ORDER BY place",
        [subject.seed],
    )
    numbers = np.array([int(ipaddress.IPv4Address(text)) for text, _place in texts], dtype=np.int64)
    figures = {}
    for known in KNOWN:
        if len(numbers) > known:
            figures[str(known)] = mean_bits(numbers[:known], numbers[known:])
    if figures:
        last = list(figures.values())[-1]
        figures = {str(known): figures.get(str(known), last) for known in KNOWN}
    return figures


def mean_bits(known: Ints, others: Ints) -> float:
    """Returns the mean bits of other addresses that follow from known ones."""
    ordered = np.sort(known)
    at = np.searchsorted(ordered, others)
    neighbours = [ordered[np.clip(at + step, 0, len(ordered) - 1)] for step in (-1, 0)]
    nearest = np.minimum(*(others ^ neighbour for neighbour in neighbours))
    common = 32 - np.ceil(np.log2(nearest.astype(np.float64) + 1))
    return float(np.minimum(common + 1, 32).mean())


# ---- several outputs ----------------------------------------------------------------------------


def compose(subject: Subject) -> list[Metric]:
    """Measures suppressed records of an output that exactly one named record of another output
    matches."""
    if len(subject.release.folders) < 2:
        return [absent("compose", "the release has one output")]
    counts = [_named_elsewhere(subject, index) for index in range(len(subject.release.folders))]
    hits, trials = (sum(count[i] for count in counts) for i in range(2))
    if not trials:
        return [absent("compose", "no output has records of suppressed names")]
    return [share_of("compose", subject.purpose, hits, trials)]


def _named_elsewhere(subject: Subject, index: int) -> tuple[int, int]:
    """Returns the suppressed records of a folder that another folder names, and all of them."""
    folder = subject.release.folders[index]
    is_coarse = bool(
        subject.database.value(
            f"SELECT count(*) FROM records WHERE folder = {index} AND status >= {SUPPRESSED}"
            " AND coarse"
        )
    )
    time = "start_us" if folder.coarse_end == "floored" else "end_us"
    minute = f"{time} // {MINUTE_US}" if is_coarse else "start_us"
    names = ("c_pkts", "s_pkts", "c_bytes", "s_bytes")
    numbers = ", ".join(
        f"{coarse_sql(name, folder.coarse_steps) if is_coarse else name} AS {name}"
        for name in names
    )
    columns = f"minute, tcp, dns, {', '.join(names)}"
    (row,) = subject.database.rows(
        f"WITH hidden AS (SELECT {minute} AS minute, tcp, port = 53 AS dns, {', '.join(names)},"
        f" count(*) AS n FROM records WHERE folder = {index} AND status >= {SUPPRESSED}"
        f" AND c_pkts IS NOT NULL GROUP BY ALL),"
        f" there AS (SELECT folder, {minute} AS minute, tcp, port = 53 AS dns, {numbers},"
        f" count(*) AS n FROM records WHERE status = {RELEASED} AND NOT coarse"
        " AND c_pkts IS NOT NULL GROUP BY ALL),"
        f" own AS (SELECT {columns}, n AS own_n FROM there WHERE folder = {index}),"
        f" others AS (SELECT {columns}, max(n) AS other_n FROM there WHERE folder <> {index}"
        " GROUP BY ALL)"
        " SELECT count(*) FILTER (n = 1 AND other_n - coalesce(own_n, 0) = 1),"
        f" sum(n) FROM hidden LEFT JOIN others USING ({columns}) LEFT JOIN own USING ({columns})"
    )
    return int(row[0]), int(row[1] or 0)
