# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net tune --steps`: the steps of `filter --levels` that lose least on a sample of rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from zanon_net._text import table, terminal_width
from zanon_net.cli.messages import warn
from zanon_net.cli.scenario import print_json
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.ladder_rules import CHAIN
from zanon_net.config.parse import format_duration, reject
from zanon_net.config.question_rows import OF_FILTER
from zanon_net.output.new_file import refuse_existing
from zanon_net.rows.ladder import Ladder
from zanon_net.rows.step_search import (
    Choice,
    Sample,
    Search,
    read_sample,
    search_steps,
    write_steps,
)

LONG_WINDOW = (
    "the window is longer than half of the sample's time: a run on more rows decides otherwise"
)


def tune_steps(settings: Mapping[str, Any], *, as_json: bool) -> int:
    """Searches the steps, prints them, and writes them if a file is named."""
    path = None if settings["out"] is None else Path(settings["out"])
    if path is not None:
        refuse_existing(path)
    config = _config(settings)
    ladder = Ladder.of(config)
    assert ladder is not None
    for warning in ladder.warnings:
        warn(warning)
    sample = read_sample(settings["steps"], config, ladder, settings["sample"], warn)
    found = search_steps(sample, config, ladder)
    if path is not None:
        write_steps(found.advised.steps, path)
    first_ns, last_ns = sample.range_ns
    notes = [LONG_WINDOW] if 2 * config.window_ns > last_ns - first_ns else []
    if as_json:
        print_json(_facts(config, sample, found) | {"notes": notes})
    else:
        _print(config, sample, found)
        for note in notes:
            click.echo(note)
    return 0


def _config(settings: Mapping[str, Any]) -> FilterConfig:
    windows = settings["window"]
    if len(windows) > 1:
        reject("window", "give one with --steps")
    options = {name: settings[name] for name in OF_FILTER}
    if windows:
        options["window"] = windows[0]
    return FilterConfig(levels=CHAIN, no_user=True, **options)


def _facts(config: FilterConfig, sample: Sample, found: Search) -> dict[str, Any]:
    return {
        "source": sample.name,
        "columns": list(config.attributes),
        "z": config.z,
        "window_ns": config.window_ns,
        "rows": {
            "chosen_on": found.chain.chosen.rows,
            "measured_on": found.chain.measured.rows,
        },
        "subsets_tried": found.tried,
        "all_subsets": found.is_complete,
        "chain": _facts_of(found.chain),
        "best": [_facts_of(choice) for choice in found.best],
        "advised": _facts_of(found.advised),
    }


def _facts_of(choice: Choice) -> dict[str, Any]:
    return {
        "steps": [list(step) for step in choice.steps],
        "chosen_loss": round(choice.chosen.loss, 6),
        "loss": round(choice.measured.loss, 6),
        "suppressed": round(choice.measured.suppressed / choice.measured.rows, 6),
    }


def _print(config: FilterConfig, sample: Sample, found: Search) -> None:
    chain, advised = found.chain, found.advised
    click.echo(
        f"{sample.name}: z = {config.z}, window {format_duration(config.window_ns)}; steps chosen"
        f" on {chain.chosen.rows:,} rows, loss and suppressed rows measured on the next"
        f" {chain.measured.rows:,}"
    )
    way = "all of them" if found.is_complete else "one more step at a time"
    click.echo(
        f"{found.tried:,} subsets of the chain's {len(chain.steps)} steps tried: {way}. Levels of"
        f" {', '.join(config.attributes)}:"
    )
    rows = [_line("chain", chain)]
    rows += [_line(str(len(one.steps)), one) for one in found.best if one != chain]
    titles = ["steps", "loss", "suppressed", "levels, finest first"]
    click.echo(table([titles, *rows], terminal_width(), right=range(3)), nl=False)
    if advised is chain:
        click.echo("Take --levels chain: no other choice was found to lose less.")
    else:
        click.echo(
            f"Take {len(advised.steps)} steps: they lose {advised.measured.loss:.3f}, and the"
            f" chain {chain.measured.loss:.3f}."
        )


def _line(title: str, choice: Choice) -> list[str]:
    measured = choice.measured
    return [
        title,
        f"{measured.loss:.3f}",
        f"{measured.suppressed / measured.rows:.1%}",
        " ".join(",".join(map(str, step)) for step in choice.steps),
    ]
