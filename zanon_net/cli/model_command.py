# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net model`: the k-anonymity that a z gives, and its cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from zanon_net.cli.configure import naming_options, read_options
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
    spread,
)
from zanon_net.config.parse import format_duration
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from zanon_net.model.charts import Line
    from zanon_net.model.scenario import Row, Scenario

PLOT_POINTS = 60
MODEL_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.

\b
Examples:
  zanon-net model --users 5000 --attributes 20000 --rate 0.3 --z 20 --z 100
  zanon-net model --popularity popularity.json --plot model.html
"""


@click.command("model", cls=GroupedCommand, params=scenario_options("model"), epilog=MODEL_EPILOG)
@naming_options(OPTIONS)
def model_command(as_json: bool, **options: Any) -> int:
    """Show what a z gives and what it costs.

    A row for each z: the chance that a user's released names are also those of k - 1 others, the
    share of exposures that is released, and the information kept and lost, in nats.
    """
    from zanon_net.model import charts

    settings = read_options("model", options)
    target = None if settings["plot"] is None else charts.check_path(settings["plot"])
    if len(settings["window"]) > 1:
        raise ConfigError("--window: give one; 'zanon-net tune' takes several")
    scenario, default_ns = scenario_of(settings)
    (window_ns,) = settings["window"] or (default_ns,)
    thresholds = settings["z"] or spread(scenario.users, 12)
    rows = [scenario.row(window_ns, z) for z in thresholds]
    if target is not None:
        _plot_model(target, scenario, window_ns)
    if as_json:
        print_json(
            {**scenario.to_dict(), "rows": [row.to_dict() for row in rows], "caveat": CAVEAT}
        )
    else:
        _print_model(scenario, rows)
    return 0


def _print_model(scenario: "Scenario", rows: "Sequence[Row]") -> None:
    print_about(scenario)
    numbers = [[str(row.z), format_duration(row.window_ns), *cells(row)] for row in rows]
    print_numbers(scenario, ["z", "window"], numbers)
    print_levels(rows)
    print_caveat()


def _plot_model(path: Any, scenario: "Scenario", window_ns: int) -> None:
    from zanon_net.model.charts import Line, Panel, draw

    rows = [scenario.row(window_ns, z) for z in spread(scenario.users, PLOT_POINTS)]
    z = [row.z for row in rows]
    bands = [row.fitted or row.bounds for row in rows]
    band = [one.lower for one in bands], [one.upper for one in bands]
    alike = Line("k-anonymous", z, [row.bounds.estimate for row in rows], band=band)
    costs = [
        Line("exposures released", z, [row.released for row in rows]),
        Line("information kept", z, [row.kept for row in rows]),
    ]
    costs += _levels_of(rows)
    x = "z (users)"
    panels = [
        Panel("k-anonymity", x, "probability", [alike], x_log=True, y_range=(0, 1.02)),
        Panel("what is left", x, "share", costs, x_log=True, y_range=(0, None)),
    ]
    draw(path, f"{about(scenario)}, window {format_duration(window_ns)}", panels)


def _levels_of(rows: "Sequence[Row]") -> "list[Line]":
    """Returns a line for each level: the share that is published at this level or a finer one."""
    from zanon_net.model.charts import Line

    known = [(row.z, row.levels) for row in rows if row.levels is not None]
    if not known:
        return []
    z = [one for one, _shares in known]
    return [
        Line("names or domains", z, [shares.name + shares.domain for _z, shares in known]),
        Line("names, domains or categories", z, [1 - shares.nothing for _z, shares in known]),
    ]
