# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of `zanon-net`: one table of them, and groups that import a command at its call."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import click

from zanon_net.cli.messages import EXIT_USAGE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
EPILOG = """\b
To begin with:
  zanon-net inspect capture.pcap
  zanon-net run capture.pcap --internal 10.0.0.0/8 --out logs
  zanon-net packets capture.pcap shared.pcapng --internal 10.0.0.0/8
  zanon-net COMMAND --help
"""
COMMANDS = {
    "run": ("run_command:run_command", "Turn captures or live traffic into anonymized flow logs."),
    "packets": (
        "packets_command:packets_command",
        "Turn captures or live traffic into a capture that may be shared.",
    ),
    "filter": (
        "filter_command:filter_command",
        "Release the observations whose attribute at least z users share.",
    ),
    "publish": (
        "publish_command:publish_command",
        "Release whole rows in classes of k users, after a bounded delay.",
    ),
    "count": ("count_command:count_command", "Decide for many probes what z users share."),
    "flink": ("", "Count the votes of many probes on a cluster of Apache Flink."),
    "flink job": (
        "flink_command:flink_job",
        "Run the counting job in a cluster of its own, within this process.",
    ),
    "flink submit": (
        "flink_command:flink_submit",
        "Start the counting job on a cluster, and print its number.",
    ),
    "table": ("", "Check and generalize whole tables; say what they disclose."),
    "table check": (
        "table_command:table_check",
        "Say what holds in a table, or whether what was asked for does.",
    ),
    "table risk": (
        "table_command:table_risk",
        "Say what somebody who knows people's quasi-identifiers learns from a table.",
    ),
    "table hierarchy": (
        "table_hierarchy:table_hierarchy",
        "Make the hierarchy of a column: a line a value, from the value to '*'.",
    ),
    "table anonymize": (
        "table_anonymize:table_anonymize",
        "Generalize a table until each class has k users and the diversity asked for.",
    ),
    "key": ("", "Make or check a key file for --key-file."),
    "key new": ("key_command:key_new", "Write a new random key to FILE, which must not exist."),
    "key check": (
        "key_command:key_check",
        "Check that FILE holds a key and that nobody else can read it.",
    ),
    "config": (
        "config_command:config_command",
        "Write a configuration file with every setting and its default.",
    ),
    "report": (
        "report_command:report_command",
        "Show what a run released and suppressed, as tables or as a page.",
    ),
    "audit": (
        "audit_command:audit_command",
        "Measure what an attacker can still do with released logs.",
    ),
    "inspect": ("inspect_command:inspect_command", "Show what captures hold, in counts."),
    "model": ("model_command:model_command", "Show what a z gives and what it costs."),
    "tune": ("tune_command:tune_command", "Find the smallest z that reaches a target."),
    "top": ("top_command:top_command", "Watch a run: rates, decisions, drops and the z-table."),
    "unseal": (
        "unseal_command:unseal_command",
        "Write the observations in sealed rows as JSON Lines.",
    ),
    "bench": (
        "bench_command:bench_command",
        "Measure what this machine does, on generated traffic.",
    ),
}
"""For each command the module of this package, the function in it, and the line that describes the
command in the help of its group. A command without a module is a group."""


class LazyGroup(click.Group):
    """Group that imports a command when the command is called or completed.

    `commands` has a placeholder for each command, with its name and its line of help.
    """

    prepare: ClassVar[Callable[[click.Command], None] | None] = None
    """Function that changes each command after the import, for the whole process."""

    def __init__(self, name: str | None = None, *, path: str = "", **kwargs: Any) -> None:
        """path: the names of the group and its parents in COMMANDS."""
        self._path = path
        super().__init__(name, list(map(_placeholder, _below(path))), **kwargs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command, which is imported; None if the name is unknown."""
        command = self.commands.get(cmd_name)
        if command is None or isinstance(command, click.Group):
            return command
        command = _imported(COMMANDS[f"{self._path} {cmd_name}".strip()][0])
        if LazyGroup.prepare is not None:
            LazyGroup.prepare(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands for `--help`."""
        click.Group(commands=self.commands).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Returns the commands and options that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        return [
            *(
                CompletionItem(name, help=command.get_short_help_str())
                for name, command in sorted(self.commands.items())
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def import_command(arguments: Sequence[str]) -> None:
    """Imports the command that the arguments of a command line begin with, if there is one."""
    for words in (arguments[:1], arguments[:2]):
        place, _help = COMMANDS.get(" ".join(words), ("", ""))
        if place:
            _imported(place)


def _imported(place: str) -> click.Command:
    module, _colon, function = place.partition(":")
    command = getattr(import_module(f"zanon_net.cli.{module}"), function)
    assert isinstance(command, click.Command)
    return command


def help_alone(ctx: click.Context) -> None:
    """Ends a group that was called without a command: its help, as a usage error."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(EXIT_USAGE)


def _below(path: str) -> list[str]:
    """Returns the paths of the commands of a group."""
    return [each for each in COMMANDS if each.rpartition(" ")[0] == path]


def _placeholder(path: str) -> click.Command:
    """Returns a group, or a command that has a line of help and nothing else."""
    place, line = COMMANDS[path]
    name = path.rpartition(" ")[2]
    if place:
        return click.Command(name, help=line)
    callback = click.pass_context(help_alone)
    return LazyGroup(name, path=path, help=line, callback=callback, invoke_without_command=True)
