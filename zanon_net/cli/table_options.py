# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Options, settings and output of the commands of `zanon-net table`."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from zanon_net._version import __version__
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import print_manifest, warn
from zanon_net.cli.options import (
    INPUT_AND_OUTPUT,
    GroupedOption,
    json_option,
    quiet_option,
    setting_options,
)
from zanon_net.config.schema import COMMANDS, rows_of
from zanon_net.config.setting import manifest_of
from zanon_net.config.table_settings import table_settings

OPTIONS = {
    name: row.options[0]
    for command in COMMANDS
    if command.startswith("table ")
    for row in rows_of(command)
    for name in (row.name, row.label)
}
"""The option of each setting; an error that begins with another word stays as it is."""


def table_options(command: str) -> list[click.Parameter]:
    """FILE and every option of a command of `table`, in the order of its help."""
    options = setting_options(command)
    last = max(i for i, option in enumerate(options) if option.group == INPUT_AND_OUTPUT)
    return [
        click.Argument(["file"]),
        *options[: last + 1],
        GroupedOption(
            ["--config", "config_file"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help="Settings from the section [table] of a TOML file, by the options' names; options"
            " override them.",
        ),
        *options[last + 1 :],
        json_option("Print the manifest, not the summary."),
        quiet_option("No summary."),
    ]


def command_settings(
    command: str, config_file: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a command. Raises ConfigError with a text that begins with the option."""
    with naming_options(OPTIONS):
        return table_settings(command, config_file, chosen(options))


def checked_plan(settings: Mapping[str, Any]) -> Any:
    """The plan of the settings; says what is odd about a hierarchy."""
    from zanon_net.microdata.settings import plan_of

    with naming_options(OPTIONS):
        plan = plan_of(settings)
    for recoding in plan.recodings.values():
        for warning in getattr(recoding, "warnings", ()):
            warn(warning)
    return plan


def print_facts(
    command: str,
    settings: Mapping[str, Any],
    facts: Mapping[str, Any],
    seconds: float,
) -> None:
    """Prints a manifest on standard output."""
    manifest = {
        "name": f"zanon-net {command}",
        "version": __version__,
        "configuration": manifest_of(rows_of(command), settings),
        **facts,
    }
    print_manifest(manifest, {"seconds": round(seconds, 6)}, err=False)


def say_summary(summary: Callable[[int], str]) -> None:
    """Prints a summary on standard output: it is what was asked for."""
    from zanon_net._text import terminal_width

    click.echo(summary(terminal_width()), nl=False)
