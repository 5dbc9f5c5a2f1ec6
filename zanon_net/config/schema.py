# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Table of every setting of every command: a row per setting.

Everything about settings is read from the table: the dataclasses of `sections` and
`filter_settings`, the options and their help, the configuration file, the file that `zanon-net
config` writes, the table in docs/reference/configuration.md, the `configuration` of manifests, and
the structs that the core is opened with. A row names the commands that take it. If a setting of one
name differs between two commands, there are two rows. The order of the rows is the order of fields,
keys and manifests.

The rows of a command are built when the command asks for them, because a start has no time to build
the rows of all commands.
"""

from functools import cache
from importlib import import_module

from zanon_net.config.setting import Setting

_MODULES = {
    "run": ("run_rows", "packet_rows", "probe_rows"),
    "filter": ("filter_rows",),
    "publish": ("publish_rows",),
    "table check": ("table_rows",),
    "table risk": ("table_rows",),
    "table hierarchy": ("table_rows",),
    "table anonymize": ("anonymize_rows",),
    "audit": ("audit_rows",),
    "inspect": ("question_rows",),
    "model": ("question_rows",),
    "tune": ("question_rows",),
    "count": ("count_rows",),
    "flink": ("flink_rows",),
}
COMMANDS = tuple(_MODULES)
"""The commands that have rows of their own, in the order of the documents."""
_ROWS_OF_OTHERS = {"packets": "run", "frames": "filter"}
"""The commands, and the function of frames, whose rows are all rows of another command."""


@cache
def rows_of(command: str, section: str | None = None) -> tuple[Setting, ...]:
    """Returns the rows of a command, or of one of its sections."""
    names = _MODULES[_ROWS_OF_OTHERS.get(command, command)]
    modules = [import_module(f"zanon_net.config.{name}") for name in names]
    return tuple(
        row
        for module in modules
        for row in module.ROWS
        if command in row.commands and section in (None, row.section)
    )
