# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs made by hand for `audit`, and the same figures computed in plain Python."""

import csv
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

S, HOUR = 10**9, 3600 * 10**9
COLUMNS = (
    *("t_start_ns", "t_end_ns", "proto", "client", "server", "client_port", "server_port"),
    *("name", "name_source", "name_status", "ech", "epoch"),
    *("c_pkts", "s_pkts", "c_bytes", "s_bytes", "complete"),
)
SETTINGS: dict[str, Any] = {
    "anonymity": {"z": 2, "window_ns": HOUR, "evidence": "established", "exact": False},
    "addresses": {
        "internal": {"networks": ["10.0.0.0/8"]},
        "pseudonyms": "networks",
        "rotate_ns": HOUR,
        "key_mode": "ephemeral",
    },
    "output": {
        **{"format": ["csv"], "for": "partner", "coarse_end": "none", "coarse_steps": "4"},
        **{"coarse_client": "none", "order": "minute", "times": "exact", "sizes": "exact"},
    },
}


@dataclass(frozen=True)
class Row:
    """A record. at: ns since the start of epoch 0. hidden: its name is suppressed."""

    user: str | None
    name: str | None
    at: int = 0
    epoch: int = 0
    end: int | None = None
    sizes: tuple[int, int, int, int] = (1, 1, 100, 1000)
    hidden: bool = False
    unread: bool = False
    coarse: bool = False
    dns: bool = False

    @property
    def start_ns(self) -> int:
        return self.epoch * HOUR + self.at

    @property
    def end_ns(self) -> int:
        return self.start_ns if self.end is None else self.epoch * HOUR + self.end

    def cells(self) -> list[object]:
        status = "suppressed" if self.hidden else "none" if self.name is None else "released"
        source = "dns" if self.dns else "tls"
        return [
            *(self.start_ns, self.end_ns, 17 if self.dns else 6, self.user, None, 0),
            *(53 if self.dns else 443, self.name),
            source if self.name or (self.hidden and not self.unread) else None,
            *(status, "none", 0 if self.coarse else self.epoch, *self.sizes),
            None if self.coarse else 1,
        ]


def write_log(
    folder: Path,
    rows: Sequence[Row],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    parts: int = 1,
    manifest: bool = True,
) -> Path:
    """Writes the rows as a run does. settings: changes of SETTINGS."""
    folder.mkdir()
    listed = []
    for part in range(parts):
        share = rows[len(rows) * part // parts : len(rows) * (part + 1) // parts]
        name = "flows.csv" if parts == 1 else f"flows-20240514T0900{part:02d}Z.csv"
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(row.cells() for row in share)
        size = (folder / name).stat().st_size
        listed.append({"file": name, "bytes": size, "records": len(share)})
    if manifest:
        write_manifest(folder, listed, settings)
    return folder


def write_manifest(
    folder: Path,
    outputs: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    configuration = {key: {**SETTINGS[key], **(settings or {}).get(key, {})} for key in SETTINGS}
    content = {
        "name": "zanon-net",
        "error": None,
        "running": False,
        "configuration": configuration,
        "weaker_than": {"preset": "partner", "options": []},
        "outputs": list(outputs),
    }
    (folder / "manifest.json").write_text(json.dumps(content))


def sets_log(sets: Sequence[str], epoch: int = 0) -> list[Row]:
    """Returns a record for each letter of each user's set, and one without a name of each user."""
    rows = [Row(f"10.{epoch}.0.{i}", None, epoch=epoch) for i in range(len(sets))]
    for i, names in enumerate(sets):
        rows += [Row(f"10.{epoch}.0.{i}", f"{name}.example", epoch=epoch) for name in names]
    return rows


def random_log(seed: int, users: int = 80, epochs: int = 2, visits: int = 5) -> list[Row]:
    """Returns visits of users, at most `visits` of each, so that every point of a user is known."""
    rng = random.Random(seed)
    names = [f"n{i}.example" for i in range(8)]
    rows = []
    for epoch in range(epochs):
        for user in range(users):
            for _ in range(rng.randint(1, visits)):
                name = names[min(7, int(rng.expovariate(0.5)))]
                at = rng.randrange(0, 3600) * S
                sizes = (rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9))
                rows.append(Row(f"10.0.{epoch}.{user}", name, at, epoch, sizes=sizes))
    rng.shuffle(rows)
    return rows


def renamed(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows with other names and pseudonyms."""
    return [
        replace(
            row,
            user=row.user and f"172.16.{row.user[3:]}".replace("..", "."),
            name=row.name and f"www.{row.name}",
        )
        for row in rows
    ]


# ---- the figures in plain Python ----------------------------------------------------------------


Who = tuple[int, str | None]


def by_user(rows: Sequence[Row]) -> dict[Who, list[Row]]:
    """Returns the named rows of each pseudonym; a pseudonym without a name has no rows."""
    found: dict[Who, list[Row]] = {(row.epoch, row.user): [] for row in rows if row.user}
    for row in rows:
        if row.user and row.name:
            found[row.epoch, row.user].append(row)
    return found


def class_sizes(rows: Sequence[Row]) -> list[int]:
    """Returns k of each pseudonym."""
    users = by_user(rows)
    sets = {who: (who[0], frozenset(row.name for row in own)) for who, own in users.items()}
    count = Counter(sets.values())
    return [count[sets[who]] for who in users]


def unique_by_all(rows: Sequence[Row], length: int | None) -> float:
    """Returns the share of pseudonyms whose points no other pseudonym all has.

    length: of slots of time (ns); None: points are names.
    """
    users = {who: own for who, own in by_user(rows).items() if own}

    def points(own: Sequence[Row]) -> set[object]:
        return {row.name if length is None else (row.name, row.start_ns // length) for row in own}

    every = {who: points(own) for who, own in users.items()}
    unique = [
        not any(who != other and who[0] == other[0] and mine <= every[other] for other in every)
        for who, mine in every.items()
    ]
    return sum(unique) / len(unique)


def found_by_visits(rows: Sequence[Row], seconds: int) -> tuple[float, float]:
    """Returns re-ID@1 and @5 with all visits of each pseudonym known."""
    users = {who: own for who, own in by_user(rows).items() if own}
    first = fifth = 0.0
    for who, own in users.items():
        ties = sum(
            who[0] == other[0]
            and all(
                any(
                    row.name == seen.name and abs(row.start_ns - seen.start_ns) <= seconds * S
                    for row in theirs
                )
                for seen in own
            )
            for other, theirs in users.items()
        )
        first, fifth = first + 1 / ties, fifth + min(1.0, 5 / ties)
    return first / len(users), fifth / len(users)


def lonely_share(rows: Sequence[Row], names: Iterable[str]) -> float:
    """Returns the share of pseudonyms that alone visit one of the names in a second."""
    slots: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row.name in set(names):
            slots[row.name, row.start_ns // S].append(row)
    users = [{(row.epoch, row.user) for row in own} for own in slots.values()]
    alone = set().union(*(own for own in users if len(own) == 1))
    return len(alone) / len(by_user(rows))


def entropy_of(counts: Iterable[int]) -> float:
    """Returns the entropy in nats."""
    counts = list(counts)
    total = sum(counts)
    return -sum(count / total * math.log(count / total) for count in counts)


def linked_halves(rows: Sequence[Row], epoch: int) -> tuple[float, int, int]:
    """Returns hits, targets and candidates of the halves of an epoch, by cosine."""
    own = [row for row in rows if row.epoch == epoch and row.user]
    low, high = (best(row.start_ns for row in own) for best in (min, max))
    middle = low // 1000 + (high // 1000 - low // 1000) // 2
    counts: dict[tuple[bool, str], Counter[object]] = defaultdict(Counter)
    for row in own:
        side = counts[row.start_ns // 1000 > middle, str(row.user)]
        if row.name:
            side["name", row.name] += 1
        if not row.dns:
            side["size", int(2 * math.log2(max(1, row.sizes[3])))] += 1
    having = Counter(feature for side in counts.values() for feature in side)
    weight = {"name": 1.0, "size": 0.3}
    vectors = {}
    for key, side in counts.items():
        values = {
            feature: (1 + math.log(n)) * math.log((1 + len(counts)) / having[feature])
            * weight[feature[0]]  # type: ignore[index]
            for feature, n in side.items()
        }  # fmt: skip
        length = math.sqrt(sum(value**2 for value in values.values())) or 1.0
        vectors[key] = {feature: value / length for feature, value in values.items()}
    early = [user for late, user in vectors if not late]
    hits, targets = 0.0, 0
    for late, user in vectors:
        if late and user in early:
            mine = vectors[True, user]
            alike = {
                other: sum(value * vectors[False, other].get(feature, 0.0)
                           for feature, value in mine.items())
                for other in early
            }  # fmt: skip
            best = max(alike.values())
            ties = sum(value >= best - 1e-5 for value in alike.values())
            hits += (alike[user] >= best - 1e-5) / ties
            targets += 1
    return hits, targets, len(early)
