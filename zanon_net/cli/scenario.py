# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Options and output that `model` and `tune` share: the stream, and tables of answers.

The model is imported when a command runs: it needs SciPy, which nothing else does.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from zanon_net._text import table, terminal_width
from zanon_net.cli.options import json_option, setting_options
from zanon_net.config.schema import rows_of

if TYPE_CHECKING:
    from zanon_net.model.scenario import Row, Scenario
    from zanon_net.popularity import LevelShares

# A complaint about a parameter of the model names the option that set it.
OPTIONS = {row.label: row.options[0] for row in (*rows_of("model"), *rows_of("tune"))}
OPTIONS |= {"first": "--rate", "rates": "--rate"}


def scenario_options(command: str) -> list[click.Parameter]:
    """The options of `model` or `tune`, in the order of its help."""
    *question, plot = setting_options(command)
    return [*question, json_option("Print JSON instead of a table.", plot.group), plot]


def scenario_of(settings: Mapping[str, Any]) -> "tuple[Scenario, int]":
    """The scenario of the settings, and the window in ns to use when none is named."""
    from zanon_net.model import fit
    from zanon_net.model.scenario import NS_PER_HOUR, Scenario

    k, periods, path = settings["k"], settings["periods"], settings["popularity"]
    if path is None:
        rates = settings["attributes"], settings["rate"], settings["exponent"]
        return Scenario.zipf(settings["users"], rates, k, periods), NS_PER_HOUR
    fitted = fit(path)
    return Scenario.fitted(fitted, k, periods), fitted.window_ns


def spread(users: int, points: int) -> list[int]:
    """About `points` values of z from 1 to U, evenly spaced on a logarithmic scale."""
    steps = (round(users ** (i / (points - 1))) for i in range(points))
    return sorted(set(steps))


def print_json(data: dict[str, Any]) -> None:
    """Prints indented JSON on standard output."""
    click.echo(json.dumps(data, indent=2))


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


CAVEAT = (
    "The model takes users as equally active and independent. A log of users who differ may show"
    " less: at a z for which 0.951 was computed, 0.904 of them shared their names."
)
"""Printed beside each answer; measured on generated traffic, z = 274."""


def about(scenario: "Scenario") -> str:
    """Describes the stream in a line."""
    text = f"{scenario.users} users, {len(scenario.rates)} names, k = {scenario.k}"
    if scenario.periods > 1:
        text += f", an attacker who collects {scenario.periods} windows"
    return text


def print_about(scenario: "Scenario") -> None:
    """Prints the stream that the answer is about, and how well it was fitted."""
    click.echo(about(scenario))
    if scenario.fit is not None:
        low, high, _best = scenario.fit.users
        click.echo(f"fitted to {scenario.fit.windows} windows: {low:.0f} to {high:.0f} users")
        for problem in scenario.fit.problems:
            click.echo(f"but {problem}")


def print_numbers(
    scenario: "Scenario", first: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Prints a table of numbers. `first` has the titles of the columns before cells()."""
    fitted = ["fitted, 95 %"] if scenario.fit is not None else []
    titles = [*first, "k-anonymous", *fitted, "released", "nats kept", "nats lost"]
    text = table([titles, *rows], terminal_width(), right=range(len(titles)))
    click.echo(text, nl=False)


def print_levels(rows: "Sequence[Row]") -> None:
    """Prints shares by level, if the popularity file has counts by level for a row's window."""
    numbers = [
        [str(row.z), *(f"{share:.1%}" for share in _shares(row.levels))]
        for row in rows
        if row.levels is not None
    ]
    if not numbers:
        return
    click.echo("With labels (run --levels), counted and not fitted, of all exposures:")
    titles = ["z", "name", "domain", "category", "nothing", "information kept"]
    click.echo(table([titles, *numbers], terminal_width(), right=range(len(titles))), nl=False)


def _shares(levels: "LevelShares") -> tuple[float, ...]:
    return levels.name, levels.domain, levels.category, levels.nothing, levels.kept


def print_caveat() -> None:
    """Prints why a log may show less than was computed."""
    click.echo(CAVEAT)


def cells(row: "Row") -> list[str]:
    """The cells that both commands print of a z."""
    between = [] if row.fitted is None else [_interval(row.fitted.lower, row.fitted.upper)]
    return [
        f"{row.bounds.estimate:.6f} ±{row.bounds.width / 2:.0e}",
        *between,
        f"{row.released:.1%}",
        f"{row.after:.3f}",
        f"{row.before - row.after:.3f}",
    ]
