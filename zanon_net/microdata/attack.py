# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`risk`: the knowledge that an attacker who knows people's quasi-identifiers gains from a release.

`population` has the risk of an attacker who does not know whether a person is in the release.

The attack is section 4.4 of "Real-Time Stream Data Anonymization via Dynamic Reconfiguration with
l-Diversity-Enhanced SUHDSA" (Sensors 2026, 26(1), 95). For each row of the original, the target,
the attacker ranks the released rows whose written values all contain the target's, the least
general first. re-ID@K is how often the target's own row is among the first K. Attribute disclosure
is how often the most frequent sensitive value of the best class is the target's.

The attack does not sample. Rows of equal rank are in every order equally often. The target's
released row is known by its content: it is a row that contains the target and has its sensitive
values, and all such rows are equally likely. Both results are sums, not draws.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zanon_net._text import share
from zanon_net._text import table as text_table
from zanon_net.config.parse import parse_duration, reject, shown
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata.arrow import (
    ROOT,
    arrow,
    as_table,
    compute,
    empty_as_missing,
    encoded,
    texts,
)
from zanon_net.microdata.checking import (
    class_facts,
    diversity_facts,
    diversity_lines,
    html_table,
    known_hierarchies,
    loss_lines,
)
from zanon_net.microdata.guess import Numbers as GuessedNumbers
from zanon_net.microdata.hierarchy import DATE_PARTS, Dates
from zanon_net.microdata.measures import (
    Classes,
    Floats,
    Ints,
    Numbers,
    Sensitive,
    joint_numbers,
    measure,
    sensitive_of,
)
from zanon_net.microdata.plan import Plan
from zanon_net.microdata.population import counted, estimated
from zanon_net.microdata.scale import Scale
from zanon_net.microdata.times import times_of

RANKS = (1, 5)  # K of re-ID@K
EQUAL = 12  # decimals in which generalities are compared


@dataclass(frozen=True)
class _Values:
    """A column without a hierarchy: its raw values, and "*" for all of them."""

    labels: tuple[str | None, ...]
    level: Ints
    loss: Floats
    ancestors: Ints

    @classmethod
    def of(cls, raw: Sequence[str | None]) -> "_Values":
        """Returns the distinct raw values, which are the leaves, and a root above them."""
        leaves = len(raw)
        root = np.full(leaves + 1, leaves, np.int64)
        return cls(
            (*raw, ROOT),
            np.append(np.zeros(leaves, np.int64), 1),
            np.append(np.zeros(leaves), 1.0 if leaves > 1 else 0.0),
            np.stack([np.arange(leaves + 1), root]),
        )


@dataclass(frozen=True)
class _Column:
    """A quasi-identifier of both tables by the nodes of its hierarchy.

    target: the leaf of each original row; the root if the hierarchy lacks the value. written: the
    node of each released row; below 0, a number for each text, if no node is written so.
    """

    hierarchy: Any
    target: Ints
    written: Ints

    def losses(self, written: Ints) -> Floats:
        """Returns the loss of each of some entries of `written`. A text that is no node has no
        loss."""
        loss = np.asarray(self.hierarchy.loss, np.float64)
        return np.where(written < 0, 0.0, loss[np.maximum(written, 0)])


@dataclass(frozen=True)
class _Ranges:
    """Ranges of a Scale as they are written, with the members of a hierarchy that the attack uses.

    Ranges of one level do not overlap, so a number has at most one range on a level. The node of
    numbers without a range is the last one. labels: as many as there are nodes or codes.
    """

    labels: range
    level: Ints
    loss: Floats
    ancestors: Ints


def _layers(low: Ints, high: Ints) -> Ints:
    """Returns a level for each range, so that the ranges of a level do not overlap."""
    level = np.zeros(len(low), np.int64)
    free: list[tuple[int, int]] = []  # (highest code, level) of the last range of each level
    for at in map(int, np.lexsort((high, low))):
        if free and free[0][0] < low[at]:
            level[at] = heapq.heapreplace(free, (int(high[at]), free[0][1]))[1]
        else:
            level[at] = len(free)
            heapq.heappush(free, (int(high[at]), len(free)))
    return level


def _column_of_numbers(original: Any, released: Any, scale: Scale) -> _Column:
    """Returns a column whose released values are ranges, numbers or `*`."""
    numbers = len(scale.occurring)
    codes, values = encoded(released)
    written = [*texts(values).to_pylist(), None]
    low, high = np.full(len(written), -1, np.int64), np.full(len(written), -2, np.int64)
    for place, text in enumerate(written):
        found = (numbers, numbers) if text is None else None
        span = scale.read(text)
        if text == ROOT:
            found = (0, numbers + 1)
        elif span is not None:
            found = (
                int(np.searchsorted(scale.occurring, span[0])),
                int(np.searchsorted(scale.occurring, span[1], "right")) - 1,
            )
        if found is not None and found[0] <= found[1]:
            low[place], high[place] = found
    known = np.flatnonzero(low >= 0)
    level = np.zeros(len(written), np.int64)
    level[known] = _layers(low[known], high[known])
    ancestors = np.full((int(level.max(initial=0)) + 1, numbers + 2), len(written), np.int64)
    for known_place in known:
        ancestors[level[known_place], low[known_place] : high[known_place] + 1] = known_place
    labels = range(max(len(written), numbers + 1) + 1)
    ranges = _Ranges(labels, level, scale.losses(written)[0], ancestors)
    node = np.where(low >= 0, np.arange(len(written)), -1 - np.arange(len(written)))
    leaf = scale.codes(original)
    rows = compute().fill_null(codes, len(values)).to_numpy()
    return _Column(ranges, np.where(leaf < 0, numbers + 1, leaf), node[rows])


def _column(original: Any, released: Any, hierarchy: Any) -> _Column:
    if isinstance(hierarchy, Scale):
        return _column_of_numbers(original, released, hierarchy)
    codes, values = encoded(original)
    has_missing = codes.null_count > 0
    raw = [*texts(values).to_pylist(), *([None] if has_missing else [])]
    if hierarchy is None:
        hierarchy = _Values.of(raw)
        leaf = np.arange(len(raw), dtype=np.int64)
    else:
        distinct = arrow().concat_arrays([values, arrow().nulls(int(has_missing), values.type)])
        leaf = np.asarray(hierarchy.codes(distinct), np.int64)
    root = len(hierarchy.labels) - 1
    leaf = np.where(leaf < 0, root, leaf)
    rows = compute().fill_null(codes, len(values)).to_numpy()
    node_of: dict[str | None, int] = {}
    for node, label in enumerate(hierarchy.labels):  # the highest node of a label is the last
        node_of[label] = node
    codes, values = encoded(released)
    written = enumerate([*texts(values).to_pylist(), None], start=1)
    nodes = [node_of.get(text, -number) for number, text in written]
    found = compute().fill_null(codes, len(values)).to_numpy()
    return _Column(hierarchy, leaf[rows], np.array(nodes, np.int64)[found])


def _guessed(original: Any, released: Any, exact: _Column) -> _Column:
    """Returns a column without a known recoding whose released values differ from the original
    values.

    The result is the column as `anonymize` writes it without a recoding, if that explains more of
    it; else `exact`.
    """
    best = exact
    for recoding in (GuessedNumbers(), Dates(DATE_PARTS)):
        make: Any = recoding.scale if isinstance(recoding, GuessedNumbers) else recoding.hierarchy
        try:
            column = _column(original, released, make(original))
        except (ConfigError, ArithmeticError):  # no numbers, or no dates
            continue
        if (column.written < 0).sum() < (best.written < 0).sum():
            best = column
    return best


@dataclass(frozen=True)
class _Targets:
    """The distinct combinations of the original's rows.

    leaves: of each column.
    sensitive: of each sensitive column, as the released table numbers it, -1 for a value that it
        lacks. joint: of all sensitive columns together.
    rows: number of originals with the combination.
    since, until: the first and the last time at which the target's row may have left.
    """

    leaves: list[Ints]
    sensitive: list[Ints]
    joint: Ints
    rows: Ints
    since: Ints
    until: Ints


@dataclass(frozen=True)
class _Released:
    """The classes of the released table: nodes of each column, mean loss, time of release, rows;
    the values of each sensitive column, and of all together as one."""

    nodes: list[Ints]
    generality: Floats
    time: Ints
    rows: Ints
    sensitive: tuple[Sensitive, ...]
    joint: Sensitive


def _counts(column: Sensitive, class_of: Ints, value: Ints) -> Ints:
    """Returns the count of a value in a class, for each pair; 0 if it does not occur."""
    width = max(1, column.values)
    keys = column.class_of * width + column.value
    order = np.argsort(keys)
    keys, counts = keys[order], column.count[order]
    wanted = np.where(value < 0, -1, class_of * width + value)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, counts[place], 0)


@dataclass(frozen=True)
class _Pairs:
    """Targets and the released classes that contain them, by target and then by generality."""

    target: Ints
    released: Ints


def _contained(targets: _Targets, released: _Released, columns: Sequence[_Column]) -> _Pairs:
    """Returns the classes that contain each target.

    For each combination of levels that is written, the targets' ancestors at these levels are
    looked up among the classes of that combination.
    """
    usable = np.ones(len(released.rows), np.bool_)
    for nodes in released.nodes:
        usable &= nodes >= 0
    listed = np.flatnonzero(usable)
    levels = [
        np.asarray(column.hierarchy.level, np.int64)[nodes[listed]]
        for column, nodes in zip(columns, released.nodes, strict=True)
    ]
    sizes = [int(level.max(initial=0)) + 1 for level in levels]
    kind, first = joint_numbers(list(zip(levels, sizes, strict=True)), len(listed))
    times, stamp = np.unique(released.time, return_inverse=True)
    since = np.searchsorted(times, targets.since, "left")
    until = np.searchsorted(times, targets.until, "right")
    found: list[tuple[Ints, Ints]] = []
    for number, at in enumerate(first):
        members = listed[kind == number]
        keys = []
        for column, level, leaves, nodes in zip(
            columns, levels, targets.leaves, released.nodes, strict=True
        ):
            ancestor = np.asarray(column.hierarchy.ancestors[level[at]], np.int64)[leaves]
            together = np.concatenate([nodes[members], ancestor])
            keys.append((together, len(column.hierarchy.labels)))
        key = joint_numbers(keys, len(members) + len(targets.rows))[0] * (len(times) + 1)
        place = key[: len(members)] + stamp[members]
        order = np.argsort(place, kind="stable")
        place, members = place[order], members[order]
        start = np.searchsorted(place, key[len(order) :] + since, "left")
        end = np.searchsorted(place, key[len(order) :] + until, "left")
        count = np.maximum(end - start, 0)
        target = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(target)) - np.repeat(np.cumsum(count) - count, count)
        found.append((target, members[np.repeat(start, count) + within]))
    target = np.concatenate([pair[0] for pair in found] or [np.zeros(0, np.int64)])
    classes = np.concatenate([pair[1] for pair in found] or [np.zeros(0, np.int64)])
    order = np.lexsort((classes, released.generality[classes], target))
    return _Pairs(target[order], classes[order])


@dataclass(frozen=True)
class _Attack:
    """Results over targets: their number, by the features that the attacker uses; see the
    module."""

    targets: int
    re_id: dict[int, float]
    attribute: dict[str, dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Returns the results as a report has them."""
        ids = {f"re_id_{k}": value for k, value in self.re_id.items()}
        return {"targets": self.targets, **ids, "attribute": self.attribute}


def _attack(targets: _Targets, released: _Released, columns: Sequence[_Column]) -> _Attack:
    pairs = _contained(targets, released, columns)
    count = len(targets.rows)
    rows = released.rows[pairs.released]
    own = _counts(released.joint, pairs.released, targets.joint[pairs.target])
    total_own = np.bincount(pairs.target, own, count)
    # Tiers: the pairs of a target that are equally general.
    generality = released.generality[pairs.released]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (np.diff(pairs.target) != 0) | (np.diff(generality) != 0)
    tier = np.cumsum(is_first) - 1
    tiers = int(tier[-1]) + 1 if len(tier) else 0
    tier_target = pairs.target[is_first]
    tier_rows = np.bincount(tier, rows, tiers)
    tier_own = np.bincount(tier, own, tiers)
    before = np.cumsum(tier_rows) - tier_rows
    first_tier = np.ones(tiers, np.bool_)
    first_tier[1:] = np.diff(tier_target) != 0
    begins = np.maximum.accumulate(np.where(first_tier, np.arange(tiers), 0)) if tiers else before
    before = before - before[begins.astype(np.int64)] if tiers else before
    known = total_own > 0
    weight = targets.rows * known
    re_id = {}
    for k in RANKS:
        looked_at = np.clip(k - before, 0, tier_rows) / np.maximum(tier_rows, 1)
        hits = np.bincount(tier_target, tier_own * looked_at, count)
        hit = np.divide(hits, total_own, out=np.zeros(count), where=known)
        re_id[k] = float(hit @ weight / max(1, weight.sum()))
    in_best = first_tier[tier] if tiers else np.zeros(0, np.bool_)
    portion = rows / tier_rows[tier] if tiers else np.zeros(0)
    matched = np.bincount(pairs.target, minlength=count) > 0
    attribute = {
        column.name: _disclosure(column, pairs, in_best, portion, targets, number, matched)
        for number, column in enumerate(released.sensitive)
    }
    return _Attack(int(weight.sum()), re_id, attribute)


def _disclosure(
    column: Sensitive,
    pairs: _Pairs,
    in_best: Any,
    portion: Floats,
    targets: _Targets,
    number: int,
    matched: Any,
) -> dict[str, float]:
    """Returns how often the most frequent value of the best class is the target's, and how often
    the most frequent value of the whole is.

    Only targets that a class contains count.
    """
    value, released = targets.sensitive[number], pairs.released
    largest = column.largest
    modes = np.bincount(column.class_of, column.count == largest[column.class_of], column.classes)
    right = _counts(column, released, value[pairs.target]) == largest[released]
    hits = np.where(in_best & right, portion / modes[released], 0.0)
    hit = np.bincount(pairs.target, hits, len(targets.rows))
    weight = targets.rows * matched
    whole = column.whole
    is_mode = whole == (whole.max() if len(whole) else 0)
    base = np.append(is_mode / max(1, is_mode.sum()), 0.0)[value]
    total = max(1, int(weight.sum()))
    return {"hit": float(hit @ weight / total), "base": float(base @ weight / total)}


def _numbered(original: Any, released: Any) -> tuple[Numbers, Ints]:
    """Returns a sensitive column as (numbers of the released values, numbers of the original
    values).

    The number is -1 for an original value that the release lacks.
    """
    codes, values = encoded(released)
    number = {text: i for i, text in enumerate(sorted(texts(values).to_pylist()))}
    place = np.array([*(number[text] for text in texts(values).to_pylist()), len(number)], np.int64)
    has_missing = codes.null_count > 0
    there = place[compute().fill_null(codes, len(values)).to_numpy()]
    codes, values = encoded(original)
    place = np.array(
        [
            *(number.get(text, -1) for text in texts(values).to_pylist()),
            len(number) if has_missing else -1,
        ],
        np.int64,
    )
    return (there, len(number) + has_missing), place[
        compute().fill_null(codes, len(values)).to_numpy()
    ]


def _shifted(nodes: Ints) -> Numbers:
    """Returns numbers that may be below 0 as numbers from 0 on."""
    least = int(nodes.min())
    return nodes - least, int(nodes.max()) - least + 1


@dataclass(frozen=True)
class _Tables:
    """Both tables by numbers, row for row."""

    columns: list[_Column]
    sensitive: list[tuple[str, Numbers, Ints]]
    released_rows: int
    target_rows: int

    def released(self, time: Ints) -> _Released:
        """Returns the classes of the rows with equal written values that left at the same time."""
        written = [column.written for column in self.columns]
        keys = [_shifted(nodes) for nodes in written]
        times, stamp = np.unique(time, return_inverse=True)
        class_of, first = joint_numbers([*keys, (stamp, len(times))], self.released_rows)
        classes = len(first)
        ones = np.ones(self.released_rows, np.int64)
        sensitive = tuple(
            sensitive_of(name, class_of, classes, numbers, None, ones)
            for name, numbers, _targets in self.sensitive
        )
        whole, _first = joint_numbers(
            [numbers for _name, numbers, _targets in self.sensitive], self.released_rows
        )
        whole_values = int(whole.max()) + 1 if len(whole) else 0
        nodes = [column[first] for column in written]
        losses = [
            column.losses(of_class) for column, of_class in zip(self.columns, nodes, strict=True)
        ]
        return _Released(
            nodes=nodes,
            generality=np.asarray(np.round(np.mean(losses, axis=0), EQUAL), np.float64),
            time=time[first],
            rows=np.bincount(class_of, minlength=classes).astype(np.int64),
            sensitive=sensitive,
            joint=sensitive_of("", class_of, classes, (whole, whole_values), None, ones),
        )

    def targets(self, since: Ints, until: Ints) -> _Targets:
        """Returns the distinct targets."""
        keys = [(column.target, len(column.hierarchy.labels)) for column in self.columns]
        known = [(of + 1, numbers[1] + 1) for _name, numbers, of in self.sensitive]
        times, stamp = np.unique(since, return_inverse=True)
        number, first = joint_numbers([*keys, *known, (stamp, len(times))], self.target_rows)
        sensitive = [of[first] for _name, _numbers, of in self.sensitive]
        return _Targets(
            leaves=[column.target[first] for column in self.columns],
            sensitive=sensitive,
            joint=self._joint_of(sensitive, len(first)),
            rows=np.bincount(number, minlength=len(first)).astype(np.int64),
            since=since[first],
            until=until[first],
        )

    def _joint_of(self, sensitive: Sequence[Ints], targets: int) -> Ints:
        """Returns the sensitive values of targets together, numbered as `released` numbers its
        own."""
        there = [numbers for _name, numbers, _of in self.sensitive]
        together = [
            (np.concatenate([numbers + 1, of + 1]), values + 1)
            for (numbers, values), of in zip(there, sensitive, strict=True)
        ]
        number, _first = joint_numbers(together, self.released_rows + targets)
        own, _first = joint_numbers(there, self.released_rows)
        count = int(number.max()) + 1 if len(number) else 0
        of_both = np.full(count, -1, np.int64)
        of_both[number[: self.released_rows]] = own
        return of_both[number[self.released_rows :]]


@dataclass(frozen=True)
class RiskReport:
    """Result of an attack on a release. facts: the entries of `to_dict`."""

    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report for programs: counts, shares and names of columns, no value of a
        table."""
        return dict(self.facts)

    def summary(self, width: int = 80) -> str:
        """Returns the report for people, in lines of `width` columns."""
        return text_table(self._lines(), width)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return html_table(self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        facts = self.facts
        if facts["rows"]["original"] is None:
            yield "rows", f"{facts['rows']['released']:,}"
        else:
            rows = share(facts["rows"]["released"], facts["rows"]["original"])
            yield "rows", f"{rows} are released"
        yield "classes", f"{facts['classes']:,}, the smallest of {facts['k']:,}"
        prosecutor = facts["prosecutor"]
        yield "prosecutor", f"at most {prosecutor['max']:.1%}, mean {prosecutor['mean']:.1%}"
        for place, title in (("release", "re-ID"), ("window", "in its window")):
            if place in facts["attack"]:
                attack = facts["attack"][place]
                ids = ", ".join(f"@{k} {attack[f're_id_{k}']:.1%}" for k in RANKS)
                yield title, f"{ids} of {attack['targets']:,} rows"
                for name, found in attack["attribute"].items():
                    rates = f"{found['hit']:.1%} right; {found['base']:.1%} without the release"
                    yield f"  {name}", rates
        if facts["journalist"] is not None:
            yield from _journalist_lines(facts["journalist"], facts["rows"]["released"])
        for name, column in facts["sensitive"].items():
            yield from diversity_lines(name, column)
        yield from loss_lines(facts["loss"])
        for note in facts["notes"]:
            yield "note", note


def _journalist_lines(facts: Mapping[str, Any], rows: int) -> Iterator[tuple[str, str]]:
    about = "" if facts["model"] == "population" else "about "
    people = f"{about}{facts['population']:,} people"
    yield "journalist", f"at most {facts['max']:.1%}, mean {facts['mean']:.1%} of {people}"
    yield "k-map", f"{about}{facts['k_map']:,.0f}"
    portion = facts["unique_rows"] / max(1, rows)
    source = f", estimated ({facts['model']})" if about else ""
    yield "unique", f"{facts['unique_rows']:,.0f} rows ({portion:.1%}) in the population{source}"


def risk(
    original: Any,
    released: Any,
    plan: Plan,
    *,
    population: Any = None,
    sampling: float | None = None,
    time: str | None = None,
    delay: int | str | None = None,
    time_unit: str = "iso",
) -> RiskReport:
    """Measures the knowledge that an attacker who knows the quasi-identifiers gains from a release.

    original, released: tables, as `check` takes them. The released table has the plan's quasi and
        sensitive columns. original None: only the risk from sizes of classes is measured, which
        needs population or sampling.
    population: a table of all people, with the quasi columns, for the risk of an attacker who does
        not know whether a person is in the release. Its values are raw or written as in the
        release.
    sampling: share of the population that is in the release, above 0 and at most 1, to estimate
        this risk without the population.
    plan: the columns, and the generalization of each quasi-identifier, which says which values a
        written value contains. Without a Hierarchy, Round or the like a written value contains
        itself alone, and "*" contains all. The plan's requirements are ignored.
    time, delay: for a stream, the column of the time in both tables, and the longest delay of a
        row, as a text such as "60s" or in ns. The attack is then also made on rows that were
        released within the delay of the target's time.
    time_unit: of times that are no timestamps of Arrow: "iso" for texts, "s", "ms", "us" or "ns"
        for numbers.

    Raises ConfigError for a missing column, FormatError for a table without rows or a time that
    cannot be read.
    """
    columns = (*plan.quasi_columns, *plan.sensitive_columns, *(() if time is None else (time,)))
    return risk_of_rows(
        None if original is None else as_table(original, columns, "the original"),
        as_table(released, columns, "the release"),
        plan,
        population=None
        if population is None
        else as_table(population, plan.quasi_columns, "the population"),
        sampling=sampling,
        time=time,
        delay=None if delay is None else parse_duration("delay", delay),
        time_unit=time_unit,
    )


def risk_of_rows(
    original: Any,
    released: Any,
    plan: Plan,
    *,
    population: Any = None,
    sampling: float | None = None,
    time: str | None = None,
    delay: int | None = None,
    time_unit: str = "iso",
) -> RiskReport:
    """Measures the risk of tables that `as_table` or `read_table` returned, as `risk` does. delay:
    in ns."""
    tables = [table for table in (original, released, population) if table is not None]
    if not all(map(len, tables)):
        raise FormatError("there is nothing to compare: one of the tables has no row")
    if (time is None) != (delay is None):
        reject("delay" if delay is None else "time", "give time and delay together")
    if original is None and time is not None:
        reject("time", "is for the attack with the original")
    _check_population(original, population, sampling)
    released = empty_as_missing(released)
    bare = replace(plan, user=None)  # each row is a person
    if original is None:
        facts = _sizes(released, bare)
    else:
        facts = _attacked(empty_as_missing(original), released, plan, time, delay, time_unit)
    facts["journalist"] = None
    if population is not None:
        facts["journalist"] = _of_population(empty_as_missing(population), released, plan)
        beyond = facts["journalist"]["rows_beyond"]
        if beyond:
            rows = share(beyond, len(released))
            facts["notes"].append(
                f"{rows} released rows have no person of their own in the population: it lacks"
                " people, or its values are written differently"
            )
    elif sampling is not None:
        facts["journalist"] = estimated(measure(released, bare).rows, sampling)
    return RiskReport(facts)


def _check_population(original: Any, population: Any, sampling: object) -> None:
    if population is not None and sampling is not None:
        reject("sampling", "give it or the population, not both")
    if original is None and population is None and sampling is None:
        reject("original", "name the table before it was generalized, the population or sampling")
    if sampling is None:
        return
    is_number = isinstance(sampling, int | float) and not isinstance(sampling, bool)
    if not is_number or not 0 < sampling <= 1:  # type: ignore[operator]
        reject("sampling", f"must be a share above 0% and at most 100%, not {shown(sampling)}")


def _sizes(released: Any, plan: Plan) -> dict[str, Any]:
    """Returns the facts that need no other table."""
    classes = measure(released, plan)
    return {
        "rows": {"original": None, "released": len(released)},
        **class_facts(classes),
        "attack": {},
        "sensitive": {column.name: diversity_facts(column) for column in classes.sensitive},
        "loss": {"mean": None, "columns": {}, "unknown_rows": {}},
        "notes": [],
    }


def _columns(original: Any, released: Any, plan: Plan) -> dict[str, _Column]:
    """Returns the quasi-identifiers of a raw and a released table."""
    hierarchies = known_hierarchies(plan, original)
    columns = {
        name: _column(original.column(name), released.column(name), hierarchies.get(name))
        for name in plan.quasi_columns
    }
    for name, column in columns.items():
        if name not in hierarchies and (column.written < 0).any():
            columns[name] = _guessed(original.column(name), released.column(name), column)
    return columns


def _of_population(population: Any, released: Any, plan: Plan) -> dict[str, Any]:
    """Returns the risk of the classes by the people of a population that they contain."""
    columns = list(_columns(population, released, plan).values())
    tables = _Tables(columns, [], len(released), len(population))
    classes = tables.released(np.zeros(len(released), np.int64))
    always = np.zeros(len(population), np.int64)
    targets = tables.targets(always, always)
    pairs = _contained(targets, classes, columns)
    people = np.bincount(pairs.released, targets.rows[pairs.target], len(classes.rows))
    return counted(classes.rows, people.astype(np.int64), len(population))


def _attacked(
    original: Any,
    released: Any,
    plan: Plan,
    time: str | None,
    delay: int | None,
    time_unit: str,
) -> dict[str, Any]:
    """Returns the facts of the attack with the raw table."""
    tables = _Tables(
        list(_columns(original, released, plan).values()),
        [
            (name, *_numbered(original.column(name), released.column(name)))
            for name in plan.sensitive_columns
        ],
        len(released),
        len(original),
    )
    never = np.zeros(len(released), np.int64)
    always = np.zeros(len(original), np.int64)
    classes = tables.released(never)
    attacks = {"release": _attack(tables.targets(always, always), classes, tables.columns)}
    if time is not None and delay is not None:
        left = _times(released.column(time), time, time_unit, "the release")
        came = _times(original.column(time), time, time_unit, "the original")
        of_window = tables.targets(came, came + delay)
        attacks["window"] = _attack(of_window, tables.released(left), tables.columns)
    return _facts(tables, classes, attacks, plan)


def _times(column: Any, name: str, unit: str, table: str) -> Ints:
    """Returns a column of times in ns since 1970."""
    if column.null_count:
        raise FormatError(f"{table}: column {name!r} lacks a time")
    return times_of(column, name, unit, table)


def _facts(
    tables: _Tables, classes: _Released, attacks: Mapping[str, _Attack], plan: Plan
) -> dict[str, Any]:
    whole = Classes(classes.rows, classes.rows, classes.sensitive)
    named = dict(zip(plan.quasi_columns, tables.columns, strict=True))
    left_out = max(0, tables.target_rows - tables.released_rows)  # each missing row loses all of it
    loss = {
        name: float(
            (column.losses(column.written).sum() + left_out) / (tables.released_rows + left_out)
        )
        for name, column in named.items()
    }
    counts = {name: int((column.written < 0).sum()) for name, column in named.items()}
    unknown = {name: rows for name, rows in counts.items() if rows}
    notes = [
        f"{rows:,} released rows have a value of {name!r} that contains no value of the original;"
        " say how the column was generalized"
        for name, rows in unknown.items()
    ]
    return {
        "rows": {"original": tables.target_rows, "released": tables.released_rows},
        **class_facts(whole),
        "attack": {name: attack.to_dict() for name, attack in attacks.items()},
        "sensitive": {column.name: diversity_facts(column) for column in classes.sensitive},
        "loss": {
            "mean": None if unknown else float(np.mean(list(loss.values()))),
            "columns": {name: value for name, value in loss.items() if name not in unknown},
            "unknown_rows": unknown,
        },
        "notes": notes,
    }
