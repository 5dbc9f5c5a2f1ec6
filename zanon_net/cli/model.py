# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net model` and `zanon-net tune`: tables, JSON and plots of zanon_net.model.

The model is imported when a command runs: it needs SciPy, which nothing else does.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from zanon_net.cli.configure import naming_options
from zanon_net.cli.options import GroupedCommand, GroupedOption
from zanon_net.config.parse import format_duration, parse_duration
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from zanon_net.model.scenario import Choice, Row, Scenario

USERS, ATTRIBUTES, RATE, EXPONENT = 1000, 20, 0.2, 1.0
K, TARGET = 2, 0.95
PLOT_POINTS = 60
# A complaint about a parameter of the model names the option that set it.
OPTIONS = {name: f"--{name}" for name in ("users", "attributes", "exponent", "k", "z", "periods")}
OPTIONS |= {"target": "--target", "plot": "--plot", "popularity": "--popularity"}
OPTIONS |= {"first": "--rate", "rates": "--rate"}
MODEL_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.

\b
Examples:
  zanon-net model --users 5000 --attributes 20000 --rate 0.3 --z 20 --z 100
  zanon-net model --popularity popularity.json --plot model.html
"""
TUNE_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.

\b
Examples:
  zanon-net tune --popularity popularity.json --target 0.99
  zanon-net tune --users 5000 --attributes 20000 --rate 0.3 --window 1h --window 6h --periods 24
"""


def _scenario_options() -> list[click.Parameter]:
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


def _common_options(windows: str) -> list[click.Parameter]:
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


def _model_options() -> list[click.Parameter]:
    z = GroupedOption(
        ["--z", "thresholds"],
        group="Question",
        multiple=True,
        type=int,
        metavar="N",
        help="A z to look at; repeatable. [default: a dozen up to all users]",
    )
    window = "The window. [default: that of --popularity, or 1h]"
    return [*_scenario_options(), z, *_common_options(window)]


def _tune_options() -> list[click.Parameter]:
    target = GroupedOption(
        ["--target"],
        group="Question",
        type=float,
        default=TARGET,
        metavar="P",
        help=f"Probability that k - 1 others share a user's released names. [default: {TARGET}]",
    )
    windows = "A window to find z for; repeatable. [default: that of --popularity, or 1h]"
    return [*_scenario_options(), target, *_common_options(windows)]


@click.command("model", cls=GroupedCommand, params=_model_options(), epilog=MODEL_EPILOG)
@naming_options(OPTIONS)
def model_command(
    thresholds: Sequence[int], windows: Sequence[str], as_json: bool, plot: str | None, **given: Any
) -> int:
    """Show what a z gives and what it costs.

    A row for each z: the chance that a user's released names are also those of k - 1 others, the
    share of exposures that is released, and the information kept and lost, in nats.
    """
    from zanon_net.model import charts

    target = None if plot is None else charts.check_path(plot)
    scenario, default_ns = _scenario(given)
    if len(windows) > 1:
        raise ConfigError("--window: give one; 'zanon-net tune' takes several")
    window_ns = parse_duration("--window", windows[0]) if windows else default_ns
    rows = [scenario.row(window_ns, z) for z in thresholds or _spread(scenario.users, 12)]
    if target is not None:
        _plot_model(target, scenario, window_ns)
    if as_json:
        _print_json({**scenario.to_dict(), "rows": [row.to_dict() for row in rows]})
    else:
        _print_model(scenario, rows)
    return 0


@click.command("tune", cls=GroupedCommand, params=_tune_options(), epilog=TUNE_EPILOG)
@naming_options(OPTIONS)
def tune_command(
    target: float, windows: Sequence[str], as_json: bool, plot: str | None, **given: Any
) -> int:
    """Find the smallest z that reaches a target.

    The target is the chance that a user's released names are also those of k - 1 others. Every z
    from "stable" on reaches it; "first" is the smallest that does, but a larger one may miss it.
    """
    from zanon_net.model import charts
    from zanon_net.model.scenario import Choice

    path = None if plot is None else charts.check_path(plot)
    scenario, default_ns = _scenario(given)
    lengths = [parse_duration("--window", text) for text in windows] or [default_ns]
    choices = [Choice.of(scenario, window_ns, target) for window_ns in lengths]
    if path is not None:
        _plot_tune(path, scenario, choices)
    if as_json:
        chosen = [choice.to_dict() for choice in choices]
        _print_json({**scenario.to_dict(), "target": target, "windows": chosen})
    else:
        _print_tune(scenario, choices)
    return 0


def _scenario(given: dict[str, Any]) -> "tuple[Scenario, int]":
    """What the options describe, and the window to look at when none is named."""
    from zanon_net.model import fit
    from zanon_net.model.scenario import NS_PER_HOUR, Scenario

    k, periods, path = given.pop("k"), given.pop("periods"), given.pop("popularity")
    stream = {name: value for name, value in given.items() if value is not None}
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


def _spread(users: int, points: int) -> list[int]:
    """About so many z from 1 to U, evenly on a logarithmic scale."""
    steps = (round(users ** (i / (points - 1))) for i in range(points))
    return sorted(set(steps))


def _print_json(data: dict[str, Any]) -> None:
    click.echo(json.dumps(data, indent=2))


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def _about(scenario: "Scenario") -> str:
    text = f"{scenario.users} users, {len(scenario.rates)} names, k = {scenario.k}"
    if scenario.periods > 1:
        text += f", an attacker who collects {scenario.periods} windows"
    return text


def _print_about(console: Console, scenario: "Scenario") -> None:
    console.print(_about(scenario), highlight=False)
    if scenario.fit is not None:
        low, high, _best = scenario.fit.users
        console.print(
            f"fitted to {scenario.fit.windows} windows: {low:.0f} to {high:.0f} users",
            highlight=False,
        )
        for problem in scenario.fit.problems:
            console.print(f"but {problem}", highlight=False, soft_wrap=True)


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))  # 80 columns hold it all
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _print_model(scenario: "Scenario", rows: "Sequence[Row]") -> None:
    console = Console()
    _print_about(console, scenario)
    fitted = ["fitted, 95 %"] if scenario.fit is not None else []
    table = _table(["z", "window", "k-anonymous", *fitted, "released", "nats kept", "nats lost"])
    for row in rows:
        table.add_row(str(row.z), format_duration(row.window_ns), *_cells(row))
    console.print(table)


def _cells(row: "Row") -> list[str]:
    between = [] if row.fitted is None else [_interval(row.fitted.lower, row.fitted.upper)]
    return [
        f"{row.bounds.estimate:.6f} ±{row.bounds.width / 2:.0e}",
        *between,
        f"{row.released:.1%}",
        f"{row.after:.3f}",
        f"{row.before - row.after:.3f}",
    ]


def _print_tune(scenario: "Scenario", choices: "Sequence[Choice]") -> None:
    console = Console()
    _print_about(console, scenario)
    fitted = ["fitted, 95 %"] if scenario.fit is not None else []
    columns = ["window", "", "z", "k-anonymous", *fitted, "released", "nats kept", "nats lost"]
    table = _table(columns)
    for choice in choices:
        for name, row in (("first", choice.first), ("stable", choice.stable)):
            table.add_row(format_duration(row.window_ns), name, str(row.z), *_cells(row))
    console.print(table)
    for choice in choices:
        console.print(choice.advice, highlight=False, soft_wrap=True)


def _plot_model(path: Any, scenario: "Scenario", window_ns: int) -> None:
    from zanon_net.model.charts import Line, Panel, draw

    rows = [scenario.row(window_ns, z) for z in _spread(scenario.users, PLOT_POINTS)]
    z = [row.z for row in rows]
    bands = [row.fitted or row.bounds for row in rows]
    band = [one.lower for one in bands], [one.upper for one in bands]
    alike = Line("k-anonymous", z, [row.bounds.estimate for row in rows], band=band)
    costs = [
        Line("exposures released", z, [row.released for row in rows]),
        Line("information kept", z, [row.kept for row in rows]),
    ]
    x = "z (users)"
    panels = [
        Panel("k-anonymity", x, "probability", [alike], x_log=True, y_range=(0, 1.02)),
        Panel("what is left", x, "share", costs, x_log=True, y_range=(0, None)),
    ]
    draw(path, f"{_about(scenario)}, window {format_duration(window_ns)}", panels)


def _plot_tune(path: Any, scenario: "Scenario", choices: "Sequence[Choice]") -> None:
    from zanon_net.model.charts import Line, Panel, draw
    from zanon_net.model.scenario import NS_PER_HOUR

    ordered = sorted(choices, key=lambda choice: choice.stable.window_ns)
    hours = [choice.stable.window_ns / NS_PER_HOUR for choice in ordered]
    lines = [
        Line("first", hours, [choice.first.z for choice in ordered], marked=True),
        Line("stable", hours, [choice.stable.z for choice in ordered], marked=True),
    ]
    left = [
        Line("exposures released", hours, [one.stable.released for one in ordered], marked=True),
        Line("information kept", hours, [one.stable.kept for one in ordered], marked=True),
    ]
    target = ordered[0].target
    panels = [
        Panel(f"smallest z for {target:.4g}", "window (hours)", "z (users)", lines),
        Panel("what is left at the stable z", "window (hours)", "share", left, y_range=(0, None)),
    ]
    draw(path, _about(scenario), panels)
