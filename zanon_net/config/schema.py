# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Table of every setting of every command: a row per setting and command.

Everything about settings is read from the table: the dataclasses of `sections` and
`filter_settings`, the options and their help, the configuration file, the file that `zanon-net
config` writes, the table in docs/reference/configuration.md, the `configuration` of manifests, and
the structs that the core is opened with. If a setting of one name differs between two commands,
there are two rows. The order of the rows is the order of fields, keys and manifests.
"""

from zanon_net.config import (
    anonymize_rows,
    count_rows,
    filter_rows,
    flink_rows,
    packet_rows,
    probe_rows,
    publish_rows,
    question_rows,
    run_rows,
    table_rows,
)
from zanon_net.config.setting import Setting

SETTINGS = (
    *run_rows.ROWS,
    *packet_rows.ROWS,
    *probe_rows.ROWS,
    *filter_rows.ROWS,
    *publish_rows.ROWS,
    *table_rows.ROWS,
    *anonymize_rows.ROWS,
    *question_rows.ROWS,
    *count_rows.ROWS,
    *flink_rows.ROWS,
)


def rows_of(command: str, section: str | None = None) -> tuple[Setting, ...]:
    """Returns the rows of a command, or of one of its sections."""
    return tuple(
        row for row in SETTINGS if row.command == command and section in (None, row.section)
    )


RUN = {row.name: row for row in rows_of("run")}
"""The settings of `run` by their names, which are unique over all sections."""
KEYS = {row.label: row for row in RUN.values()}
"""The settings of `run` by their names in the configuration file."""
FILTER = {row.name: row for row in rows_of("filter")}
"""The settings of `filter` by their names."""
PUBLISH = {row.name: row for row in rows_of("publish")}
"""The settings of `publish` by their names."""
COUNT = {row.name: row for row in rows_of("count")}
"""The settings of `count` by their names."""
