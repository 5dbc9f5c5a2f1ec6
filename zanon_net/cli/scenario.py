# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What `model` and `tune` share: the stream they look at, and the form of their answers.

The model is imported when a command runs: it needs SciPy, which nothing else does.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from zanon_net.cli.options import GroupedOption
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from zanon_net.model.scenario import Row, Scenario

USERS, ATTRIBUTES, RATE, EXPONENT = 1000, 20, 0.2, 1.0
K = 2
# A complaint about a parameter of the model names the option that set it.
OPTIONS = {name: f"--{name}" for name in ("users", "attributes", "exponent", "k", "z", "periods")}
OPTIONS |= {"target": "--target", "plot": "--plot", "popularity": "--popularity"}
OPTIONS |= {"first": "--rate", "rates": "--rate"}


def scenario_options() -> list[click.Parameter]:
    """What the stream is: fitted to counts of a run, or described."""
    group = "Stream"

    def option(name: str, text: str, **more: Any) -> GroupedOption:
        return GroupedOption([name], group=group, help=text, **more)

    return [
        option(
            "--popularity",
            "Fit the stream to what 'run --popularity' or 'filter --popularity' wrote, instead of"
            " giving the four below.",
            metavar="FILE",
        ),
        option("--users", f"Number of users. [default: {USERS}]", type=int),
        option("--attributes", f"Number of names. [default: {ATTRIBUTES}]", type=int),
        option(
            "--rate",
            "How often per hour a user exposes the most popular name; the one of rank r:"
            f" RATE / r^EXPONENT. [default: {RATE}]",
            type=float,
        ),
        option("--exponent", f"See --rate. [default: {EXPONENT:g}]", type=float),
    ]


def question_options(windows: str) -> list[click.Parameter]:
    """What is asked about it, and the form of the answer. windows: help of --window."""
    group = "Question"
    return [
        GroupedOption(
            ["--window", "windows"], group=group, multiple=True, metavar="DURATION", help=windows
        ),
        GroupedOption(
            ["--k"],
            group=group,
            type=int,
            default=K,
            help=f"Users who share all released names. [default: {K}]",
        ),
        GroupedOption(
            ["--periods"],
            group=group,
            type=int,
            default=1,
            help="Windows for which an attacker collects one user's names. [default: 1]",
        ),
        GroupedOption(
            ["--json", "as_json"],
            group="Output",
            is_flag=True,
            help="Print JSON instead of a table.",
        ),
        GroupedOption(
            ["--plot"],
            group="Output",
            metavar="FILE",
            help="Also draw it, as FILE.png, .svg or .html.",
        ),
    ]


def scenario_of(options: dict[str, Any]) -> "tuple[Scenario, int]":
    """What the options describe, and the window to look at when none is named."""
    from zanon_net.model import fit
    from zanon_net.model.scenario import NS_PER_HOUR, Scenario

    k, periods, path = options.pop("k"), options.pop("periods"), options.pop("popularity")
    stream = {name: value for name, value in options.items() if value is not None}
    if path is None:
        rates = (
            stream.get("attributes", ATTRIBUTES),
            stream.get("rate", RATE),
            stream.get("exponent", EXPONENT),
        )
        return Scenario.zipf(stream.get("users", USERS), rates, k, periods), NS_PER_HOUR
    if stream:
        raise ConfigError(f"--{next(iter(stream))}: is fitted to --popularity; give one of the two")
    fitted = fit(path)
    return Scenario.fitted(fitted, k, periods), fitted.window_ns


def spread(users: int, points: int) -> list[int]:
    """About so many z from 1 to U, evenly on a logarithmic scale."""
    steps = (round(users ** (i / (points - 1))) for i in range(points))
    return sorted(set(steps))


def print_json(data: dict[str, Any]) -> None:
    """Prints JSON for people and machines."""
    click.echo(json.dumps(data, indent=2))


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def about(scenario: "Scenario") -> str:
    """The stream in a line."""
    text = f"{scenario.users} users, {len(scenario.rates)} names, k = {scenario.k}"
    if scenario.periods > 1:
        text += f", an attacker who collects {scenario.periods} windows"
    return text


def print_about(console: "Console", scenario: "Scenario") -> None:
    """Prints what the answer is about."""
    console.print(about(scenario), highlight=False)
    if scenario.fit is not None:
        low, high, _best = scenario.fit.users
        console.print(
            f"fitted to {scenario.fit.windows} windows: {low:.0f} to {high:.0f} users",
            highlight=False,
        )
        for problem in scenario.fit.problems:
            console.print(f"but {problem}", highlight=False, soft_wrap=True)


def new_table(columns: Sequence[str]) -> "Table":
    """A table without rows, of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))  # 80 columns hold it all
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def cells(row: "Row") -> list[str]:
    """What both commands print of a z."""
    between = [] if row.fitted is None else [_interval(row.fitted.lower, row.fitted.upper)]
    return [
        f"{row.bounds.estimate:.6f} ±{row.bounds.width / 2:.0e}",
        *between,
        f"{row.released:.1%}",
        f"{row.after:.3f}",
        f"{row.before - row.after:.3f}",
    ]
