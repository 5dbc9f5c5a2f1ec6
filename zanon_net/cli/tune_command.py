# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net tune`: the smallest z that reaches a target, or steps that lose least."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import chosen, naming_options, read_options
from zanon_net.cli.options import GroupedCommand
from zanon_net.cli.scenario import (
    CAVEAT,
    OPTIONS,
    about,
    cells,
    print_about,
    print_caveat,
    print_json,
    print_levels,
    print_numbers,
    scenario_of,
    scenario_options,
)
from zanon_net.config.parse import format_duration, reject
from zanon_net.config.question_rows import STEPS
from zanon_net.config.schema import rows_of

if TYPE_CHECKING:
    from zanon_net.model.scenario import Choice, Scenario

TUNE_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.

\b
Examples:
  zanon-net tune --popularity popularity.json --target 0.99
  zanon-net tune --users 5000 --attributes 20000 --rate 0.3 --window 1h --window 6h --periods 24
  zanon-net tune --steps rows.csv --attribute town,job --hierarchy town=t.csv --hierarchy job=j.csv
"""


@click.command(
    "tune",
    cls=GroupedCommand,
    common=COMMON["tune"],
    params=scenario_options("tune"),
    epilog=TUNE_EPILOG,
)
@naming_options(OPTIONS)
def tune_command(as_json: bool, **options: Any) -> int:
    """Find the smallest z that reaches a target.

    The target is the chance that a user's released names are also those of k - 1 others. Every z
    from "stable" on reaches it; "first" is the smallest that does, but a larger one may miss it.
    With --steps, find the steps that lose least when 'filter' generalizes rows.
    """
    if _searches_steps(options):
        from zanon_net.cli.tune_steps import tune_steps

        return tune_steps(read_options("tune", options), as_json=as_json)
    from zanon_net.model import charts
    from zanon_net.model.scenario import Choice

    settings = read_options("tune", options)
    target = settings["target"]
    path = None if settings["plot"] is None else charts.check_path(settings["plot"])
    scenario, default_ns = scenario_of(settings)
    lengths = settings["window"] or (default_ns,)
    choices = [Choice.of(scenario, window_ns, target) for window_ns in lengths]
    if path is not None:
        _plot_tune(path, scenario, choices)
    if as_json:
        chosen = [choice.to_dict() for choice in choices]
        print_json({**scenario.to_dict(), "target": target, "windows": chosen, "caveat": CAVEAT})
    else:
        _print_tune(scenario, choices)
    return 0


def _searches_steps(options: Mapping[str, Any]) -> bool:
    """Returns true if steps are searched. Raises ConfigError for an option of the other search."""
    searches = options["steps"] is not None
    for row in rows_of("tune"):
        if row.name in chosen(options) and row.name != "window":
            if searches and row.heading != STEPS:
                reject(row.name, "is for the search of z; leave it out with --steps")
            if not searches and row.heading == STEPS:
                reject(row.name, "is for the search of steps; add --steps FILE")
    return searches


def _print_tune(scenario: "Scenario", choices: "Sequence[Choice]") -> None:
    print_about(scenario)
    numbers = [
        [format_duration(row.window_ns), name, str(row.z), *cells(row)]
        for choice in choices
        for name, row in (("first", choice.first), ("stable", choice.stable))
    ]
    print_numbers(scenario, ["window", "", "z"], numbers)
    print_levels([row for choice in choices for row in (choice.first, choice.stable)])
    for choice in choices:
        click.echo(choice.advice)
    print_caveat()


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
    draw(path, about(scenario), panels)
