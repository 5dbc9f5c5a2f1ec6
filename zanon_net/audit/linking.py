# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of linking: can records of one user be joined across epochs, outputs or addresses?"""

import ipaddress

import numpy as np

from zanon_net.audit.attack_math import Ints
from zanon_net.audit.coarse import coarse_sql
from zanon_net.audit.epoch_lengths import EPOCHS, by_length
from zanon_net.audit.following import over_epochs, total, within_epoch
from zanon_net.audit.records import MINUTE_US, RELEASED, SUPPRESSED
from zanon_net.audit.result import BY_LENGTH, Metric
from zanon_net.audit.subject import TARGETS, Subject
from zanon_net.audit.thresholds import absent, judged, share_of, unknown, wilson

NS_PER_DAY = 86_400_000_000_000
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
    most, whole_us = TARGETS // max(1, len(epochs)), subject.release.rotate_ns // 1000
    own = {
        epoch: over_epochs(subject, epoch, 1, most)
        if is_exact
        else within_epoch(subject, epoch, whole_us, most)
        for (epoch,) in epochs
    }
    hits, trials, chances = total(own.values())
    if not trials:
        reason = "no pseudonym has records in both halves of an epoch, or in two epochs"
        return [unknown(name, subject.purpose, reason) for name in ("link", "k_windows")]
    keeps = _keeps_prefixes(subject)
    note = "; ".join([LOWER_BOUND] * (not is_exact) + [TREE] * keeps)
    found = share_of(
        "link",
        subject.purpose,
        hits,
        trials,
        chances / trials,
        note=note,
        parts={BY_LENGTH: by_length(subject, own)},
        is_lower_bound=keeps or (subject.purpose == "public" and not is_exact),
    )
    return [found, _over_windows(subject, hits, trials, note)]


def _keeps_prefixes(subject: Subject) -> bool:
    """Returns true if a folder's pseudonyms may keep prefixes, by which a tree joins epochs."""
    kinds = [folder.pseudonyms for folder in subject.release.folders]
    return any(kind not in ("networks", "random") for kind in kinds)


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
