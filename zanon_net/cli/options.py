# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The options of commands and their help: those of settings are rows of the schema.

An option that sets something carries the name of the setting.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from zanon_net.config.formats import ON_STDOUT
from zanon_net.config.replaced import REPLACED
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import Setting

MESSAGES = "Messages"
INPUT_AND_OUTPUT = "Input and output"
HELP_ALL = "help_all"
"""Name of the option `--help-all`, and the mark of a context that shows all options."""
EXAMPLES = "Examples:\n"
EXAMPLE_LINES = 3
"""Lines of examples in the short help."""
LINE = 44
"""Longest line about an option on a terminal of 80 columns."""

RUN_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d. SIZE is bytes: 500M, 20G.
An option overrides the same setting of --config.
Exit codes: 0 done, 1 could not be done, 2 wrong option or setting.

\b
Examples:
  zanon-net run capture.pcap
  sudo zanon-net run eth0 --internal 10.0.0.0/8 --status 10s --drop-to nobody --out /srv/logs
  zanon-net run --z 10 --window 30m --internal 10.0.0.0/8 --out logs mon.pcap tue.pcap
  zanon-net run captures/ more.pcap.zst --format observations --out - | head
"""

FILTER_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.
Exit codes: 0 done, 1 could not be done, 2 wrong option, or a column that is not there.

\b
Examples:
  zanon-net filter --z 5 --window 7d --user card --attribute product shop.csv > shared.csv
  zanon-net filter --time t --time-unit ms --attribute cell --suppressed blank trips.jsonl
  tail -n +1 -f meter.csv | zanon-net filter --user home --attribute appliance --no-user
  zanon-net filter --preset zeek-dns dns.log > dns-shared.log
"""


class GroupedOption(click.Option):
    """An option that `--help` lists under the heading `group`."""

    def __init__(self, *args: Any, group: str = MESSAGES, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help has its options under headings, in the order of definition.

    common: names of the options that people need, each with a line about it. `--help` then lists
    only these options, and `--help-all` lists all.
    """

    def __init__(self, *args: Any, common: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.context_settings.setdefault("max_content_width", 100)
        self.common = common
        if common:
            self.params.append(_help_all())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command; an error of the parser, too, knows its command."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the part of the help with the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or not isinstance(parameter, click.Option):
                continue
            group = getattr(parameter, "group", MESSAGES)
            if self._is_short(ctx):
                record, group = self._short_record(parameter, record), "Common options"
            if record:
                groups.setdefault(group, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the end of the help: in the short help only the first examples."""
        if self._is_short(ctx) and self.epilog:
            _notes, heading, examples = self.epilog.partition(EXAMPLES)
            lines = [heading.rstrip(), *examples.splitlines()[:EXAMPLE_LINES]]
            formatter.write_paragraph()
            formatter.write_text("\b\n" + "\n".join(lines))
        else:
            super().format_epilog(ctx, formatter)

    def _is_short(self, ctx: click.Context) -> bool:
        return bool(self.common) and HELP_ALL not in ctx.meta

    def _short_record(
        self, option: click.Option, record: tuple[str, str]
    ) -> tuple[str, str] | None:
        """Returns the names and the line of a common option; None for other options."""
        if option.is_eager:  # --help and --help-all
            return record
        line = (self.common or {}).get(option.name or "")
        if not line:
            return None
        default = record[1].partition("[default: ")[2].rstrip("]").partition(";")[0]
        fits = default and len(line) + len(default) + len(" []") <= LINE
        return record[0], f"{line} [{default}]" if fits else line


def _help_all() -> GroupedOption:
    """Returns the option that shows the whole help."""

    def show(ctx: click.Context, option: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[HELP_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return GroupedOption(
        ["--help-all", HELP_ALL],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options and exit.",
    )


def run_options() -> list[click.Parameter]:
    """SOURCE and every option of `run`, in the order of its help."""
    return [
        click.Argument(["source"], nargs=-1, required=True),
        *with_config_file(setting_options("run"), [_out()]),
        json_option("Print the manifest, not the summary: on stdout, or on stderr with --out -."),
        quiet_option("No summary and no progress bar."),
        GroupedOption(["-v", "--verbose"], is_flag=True, help="Also say what is being done."),
    ]


def filter_options() -> list[click.Parameter]:
    """FILE and every option of `filter`, in the order of its help."""
    return [
        click.Argument(["source"], nargs=-1, metavar="[FILE]..."),
        *setting_options("filter"),
        GroupedOption(
            ["--config", "config_file"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help="Settings from the section [filter] of a TOML file, by the options' names; options"
            " override them.",
        ),
        json_option("Print the manifest, not the summary, on stderr."),
        quiet_option("No summary, only warnings."),
        *(_refused_option(f"--{name}", about) for name, about in REPLACED.items()),
    ]


def _refused_option(name: str, about: str) -> click.Option:
    """Returns an option that is not in the help and ends the command with what to do instead."""

    def refuse(_context: click.Context, _option: click.Parameter, value: object) -> None:
        if value:
            raise click.UsageError(f"{name}: {about}")

    words: dict[str, Any] = {"is_flag": True} if name == "--generalize" else {}
    return click.Option([name], hidden=True, expose_value=False, callback=refuse, **words)


def setting_options(command: str) -> list[GroupedOption]:
    """The options of a command's settings, in the order of its help."""
    rows = [row for row in rows_of(command) if row.heading]
    headings = list(dict.fromkeys(row.heading for row in rows))
    rows.sort(key=lambda row: (headings.index(row.heading), row.rank))
    return [_setting_option(row) for row in rows]


def _setting_option(row: Setting) -> GroupedOption:
    default = row.usually
    return GroupedOption(
        [*row.options, row.name],
        group=row.heading,
        help=f"{row.help} [default: {default}]" if default else row.help,
        **_reading(row),
    )


def _reading(row: Setting) -> dict[str, Any]:
    """Keywords for click: a switch for a truth value that is off by default."""
    kind = row.type
    if kind.switch and not row.default:
        return {"is_flag": True, "default": None}
    words = ("yes", "no") if kind.switch else kind.words
    read = click.Choice(words) if words else kind.number
    return {"type": read, "metavar": kind.metavar, "multiple": kind.many}


def with_config_file(
    options: Sequence[GroupedOption], first: Sequence[GroupedOption]
) -> list[GroupedOption]:
    """The options with `first` in front of those of input and output, and --config behind them."""
    groups = [option.group for option in options]
    start = groups.index(INPUT_AND_OUTPUT)
    end = start + groups.count(INPUT_AND_OUTPUT)
    return [*options[:start], *first, *options[start:end], _config_file(), *options[end:]]


def json_option(text: str, group: str = MESSAGES) -> GroupedOption:
    """--json, with `text` to say what is printed and where."""
    return GroupedOption(["--json", "as_json"], group=group, is_flag=True, help=text)


def quiet_option(text: str) -> GroupedOption:
    """--quiet, with `text` to say what is left out."""
    return GroupedOption(["-q", "--quiet"], is_flag=True, help=text)


def _out() -> GroupedOption:
    return GroupedOption(
        ["--out"],
        group=INPUT_AND_OUTPUT,
        metavar="DIR",
        help=f"A folder that is new or empty, or '-' for standard output"
        f" ({', '.join(sorted(ON_STDOUT))}). [default: ./zanon-<UTC start>]",
    )


def _config_file() -> GroupedOption:
    return GroupedOption(
        ["--config", "config_file"],
        group=INPUT_AND_OUTPUT,
        metavar="FILE",
        help="Settings from a TOML file; 'zanon-net config' writes one.",
    )
