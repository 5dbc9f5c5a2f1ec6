# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table hierarchy`: makes the hierarchy of a column."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.options import GroupedCommand, setting_options
from zanon_net.config.parse import reject
from zanon_net.config.schema import rows_of
from zanon_net.config.table_settings import table_settings
from zanon_net.errors import ConfigError

COMMAND = "table hierarchy"
RULES = ("prefix", "intervals", "dates")

HIERARCHY_EPILOG = """\b
Exit codes: 0 done, 1 could not be done, 2 wrong option, or values that it does not fit.

\b
Examples:
  zanon-net table hierarchy data.csv --column zip --prefix 5,3,2,0 > zip.csv
  zanon-net table hierarchy data.parquet --column birth --dates month,year,decade > birth.csv
"""


def hierarchy_options() -> list[click.Parameter]:
    """FILE and every option, in the order of the help."""
    return [click.Argument(["file"]), *setting_options(COMMAND)]


@click.command("hierarchy", cls=GroupedCommand, params=hierarchy_options(), epilog=HIERARCHY_EPILOG)
def table_hierarchy(file: str, **options: Any) -> int:
    """Make the hierarchy of a column: a line a value, from the value to '*'.

    FILE is CSV, JSON Lines or Parquet, or - for standard input. The whole hierarchy goes to
    standard output. Edit it to group values differently.
    """
    from zanon_net.microdata.tables import read_table
    from zanon_net.output.stdout import write_stdout

    with naming_options({row.name: row.options[0] for row in rows_of(COMMAND)}):
        settings = table_settings(COMMAND, None, chosen(options))
        if settings["column"] is None:
            reject("column", "name the column")
        rule = _rule(settings)
        column = settings["column"]
        table = read_table(
            file,
            [column],
            form=settings["format"],
            delimiter=settings["delimiter"],
            quote=settings["quote"],
        )
    try:
        built = rule.hierarchy(table.column(0))
        if built.leaf_of is not None:
            raise ConfigError(
                f"it has {len(built.leaf_of):,} different values, too many for a file; shorten"
                " them, or let table anonymize group them with --dates"
            )
        content = built.to_bytes()
    except ConfigError as error:
        raise ConfigError(f"column {column!r}: {error}") from None
    write_stdout(content)
    return 0


def _rule(settings: Mapping[str, Any]) -> Any:
    """How the hierarchy is made. Raises ConfigError with a text that begins with the setting."""
    from zanon_net.microdata.hierarchy import Dates, Flat, Intervals, Networks, Prefix, read_number

    named = [name for name in RULES if settings[name] is not None]
    if len(named) > 1:
        reject(named[1], f"give it or --{named[0]}, not both")
    if not named:
        return Flat()
    (name,) = named
    with_bits = name == "prefix" and all(text.startswith("/") for text in settings[name])
    prefix_of: Callable[[Any], Any] = Networks if with_bits else Prefix
    rules: dict[str, Callable[[Any], Any]] = {
        "prefix": lambda texts: prefix_of([read_number(name, text.lstrip("/")) for text in texts]),
        "intervals": lambda texts: Intervals([read_number(name, text) for text in texts]),
        "dates": Dates,
    }
    try:
        return rules[name](settings[name])
    except ConfigError as error:
        reject(name, str(error).partition(": ")[2])
