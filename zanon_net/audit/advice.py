# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The one setting that would help most, with its effect if the log alone can show it."""

from collections.abc import Callable, Sequence

from zanon_net._record import dataclass
from zanon_net.audit.guessing import CONTEXT, finest_steps, guess_names, has_context
from zanon_net.audit.result import ABOVE, BY_LENGTH, UNKNOWN, Advice, Metric, excess
from zanon_net.audit.singling import (
    expected_hits,
    lonely,
    match_visits,
    pick_visits,
    unique_by,
)
from zanon_net.audit.subject import MINUTE_US, Subject
from zanon_net.audit.thresholds import fall, wilson
from zanon_net.config.parse import format_duration

LARGEST_STEPS = "16"
WITHOUT_CLIENT = "--coarse-client none"
RANDOM = "random"


Trials = tuple[float, int]
"""Right answers of an attack, and all its answers."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting that lowers a metric.

    measure: returns the trials with the setting, from the log alone; None: the log cannot show it.
    """

    setting: str
    measure: Callable[[], Trials] | None = None


def advice_of(subject: Subject, metrics: Sequence[Metric]) -> Advice | None:
    """Returns the setting for the metric that is most above its threshold.

    Of several settings the one with the smallest measured figure is chosen, if the setting lowers
    the figure. None: no metric is above, or no setting is known.
    """
    above = sorted((metric for metric in metrics if metric.verdict == ABOVE), key=excess)
    for worst in reversed(above):
        found = [_advice(worst, remedy) for remedy in _remedies(subject, worst)]
        found = [one for one in found if one.effect is None or one.effect > 0]
        if found:
            return min(found, key=lambda one: 2.0 if one.measured is None else one.measured)
    unknown = {metric.name for metric in metrics if metric.verdict == UNKNOWN}
    if not above and unknown & {"disclosure", "sensitive"}:
        return Advice(
            setting="audit --sensitive FILE",
            metric="sensitive",
            why="the audit does not know which names are sensitive",
        )
    return None


def _advice(worst: Metric, remedy: Remedy) -> Advice:
    """Returns a setting with its effect on a metric, if the log shows the effect."""
    effects: dict[str, float] = {}
    if remedy.measure is not None and worst.figure is not None:
        hits, trials = remedy.measure()
        figure, (low, high) = hits / max(1, trials), wilson(hits, trials)
        before = (worst.figure, worst.low or 0.0, 1.0 if worst.high is None else worst.high)
        names = ("effect", "effect_low", "effect_high")
        effects = {"measured": figure, "low": low, "high": high}
        effects |= dict(zip(names, fall(before, (figure, low, high)), strict=True))
    return Advice(
        setting=remedy.setting,
        metric=worst.name,
        why=f"{worst.name} is above its threshold",
        before=worst.figure,
        **effects,
    )


def _remedies(subject: Subject, metric: Metric) -> list[Remedy]:
    """Returns the settings that lower a metric, except for settings that the release has."""
    z = f"--z {2 * subject.release.z}"
    minutes = "--times 60s"
    rows: dict[str, list[Remedy]] = {
        "k": [Remedy(z, lambda: _equal_sets(subject)[0])],
        "k_windows": [Remedy("--rotate with a shorter time")],
        "marketer": [Remedy(z, lambda: _equal_sets(subject)[1])],
        "unicity": [Remedy(z, lambda: _unicity(subject))],
        "reid": [
            Remedy(z, lambda: _reid(subject, 1, _popular(subject))),
            Remedy(minutes, lambda: _reid(subject, MINUTE_US, "true")),
        ],
        "operator": [Remedy(minutes, lambda: (lonely(subject, 5, MINUTE_US), subject.pseudonyms))],
        "link": [_rotation(subject, metric)],
        "bits": [Remedy(f"--pseudonyms {RANDOM}")],
        "compose": [Remedy("one output, with the largest z of all outputs")],
        "suppressed": [
            Remedy(
                f"--coarse-steps {LARGEST_STEPS}",
                lambda: _suppressed(subject, metric, base=LARGEST_STEPS),
            ),
            Remedy(WITHOUT_CLIENT, lambda: _suppressed(subject, metric, with_context=False)),
        ],
        "disclosure": [Remedy("--never FILE, with the sensitive suffixes")],
        "sensitive": [Remedy("--never FILE, with the sensitive suffixes")],
        "order": [Remedy("--order minute, without --exact")],
    }
    settings = [] if subject.slot_us < MINUTE_US else [minutes]
    if finest_steps(subject) == LARGEST_STEPS:
        settings.append(f"--coarse-steps {LARGEST_STEPS}")
    if not has_context(subject):
        settings.append(WITHOUT_CLIENT)
    return [remedy for remedy in rows.get(metric.name, []) if remedy.setting not in settings]


def _popular(subject: Subject) -> str:
    """Returns the condition that twice z pseudonyms show a name in its epoch."""
    return (
        "(epoch, name) IN (SELECT (epoch, name) FROM shown GROUP BY epoch, name"
        f" HAVING count(*) >= {2 * subject.release.z})"
    )


def _rotation(subject: Subject, metric: Metric) -> Remedy:
    """Returns the remedy to change pseudonyms after half the time.

    Without a key file, the figure itself is of half the time, so the log cannot show the effect.
    """
    half = format_duration(subject.release.rotate_ns // 2)
    found = metric.parts.get(BY_LENGTH, {}).get(half)
    if subject.addresses is None or found is None:
        return Remedy("--rotate with a shorter time")
    return Remedy(f"--rotate {half}", lambda: (found["share"] * found["sample"], found["sample"]))


def _equal_sets(subject: Subject) -> tuple[Trials, Trials]:
    """Returns `k` and `marketer` without the names that `_popular` excludes."""
    alone, classes, count = subject.database.rows(
        "WITH sets AS (SELECT who, bit_xor(hash(name, 1)) AS odd FROM shown WHERE"
        f" {_popular(subject)} GROUP BY who), classes AS (SELECT count(*) AS k FROM people"
        " LEFT JOIN sets USING (who) GROUP BY epoch, coalesce(odd, 0))"
        " SELECT coalesce(sum(k) FILTER (k = 1), 0), count(*), sum(k) FROM classes"
    )[0]
    return (int(alone), int(count)), (int(classes), int(count))


def _unicity(subject: Subject) -> Trials:
    """Returns `unicity` without the names that `_popular` excludes."""
    counts, targets = unique_by(subject, "name", _popular(subject))
    return counts[2], targets


def _reid(subject: Subject, floor_us: int, allowed: str) -> Trials:
    """Returns `reid` with times that are rounded down, for visits that a condition allows."""
    pick_visits(subject, allowed, floor_us)
    trials = match_visits(subject, 60, floor_us)
    first, _fifth = expected_hits(subject, 3)
    subject.drop("visits", "found", "known")
    return first, trials


def _suppressed(
    subject: Subject, metric: Metric, *, base: str | None = None, with_context: bool = True
) -> Trials:
    """Returns `suppressed` with another base of coarse numbers, or without pseudonyms in records of
    suppressed names."""
    found = guess_names(subject, base or finest_steps(subject), with_context=with_context)
    kind = str(metric.parts["kind"])
    if found is None:
        return 0, 0
    right = found.right[kind if with_context else kind.removesuffix(CONTEXT)]
    return int(right.sum()), len(right)
