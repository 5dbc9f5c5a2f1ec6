# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `filter`, `publish` and the commands of `table`: options override those of a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net.config.load import read_toml, refuse_bare_duration
from zanon_net.config.parse import did_you_mean, refuse_key, shown
from zanon_net.config.replaced import REPLACED
from zanon_net.config.schema import COMMANDS, rows_of
from zanon_net.config.setting import Setting, read_settings
from zanon_net.config.toml_places import place_of
from zanon_net.errors import ConfigError


def load_table(path: Path, command: str) -> dict[str, Any]:
    """Reads the settings of `command` in its section of a file, as they were written, by their
    names.

    Paths have the file's folder in front. The commands of `table` share a section: a setting of
    another command is left out. Raises ConfigError for an unknown section or key, and for a value
    that the setting cannot have.
    """
    sections, own_section = read_toml(path), rows_of(command)[0].section
    for section in sections:
        if section != own_section:
            hint = did_you_mean(section, [own_section])
            place = place_of(path, section)
            raise ConfigError(f"{path}: unknown section [{shown(section)}]{hint}{place}")
    keys = sections.get(own_section, {})
    if not isinstance(keys, dict):
        name = own_section
        raise ConfigError(
            f"{path}: {name} is a section; write [{name}] and its keys below{place_of(path, name)}"
        )
    rows = (row for name in COMMANDS for row in rows_of(name))
    known = {row.label for row in rows if row.section == own_section}
    own = {row.label: row for row in rows_of(command)}
    found = {}
    for key, value in keys.items():
        if key not in known:
            hint = did_you_mean(key, known)
            if command == "filter" and key in REPLACED:
                hint = f"; {key} {REPLACED[key]}"
            place = place_of(path, own_section, key)
            raise ConfigError(f"{path}: [{own_section}] unknown key {shown(key)}{hint}{place}")
        if key in own:
            found[own[key].name] = _checked(own[key], value, path)
    return found


def _checked(row: Setting, value: Any, path: Path) -> Any:
    """Returns the value with the file's folder in front of paths. Raises ConfigError."""
    try:
        refuse_key(row.label, value)
        refuse_bare_duration(row, value)
        if row.type.anchored is not None:
            value = _anchored(row, value, path.parent)
        row.read(value)
    except ConfigError as error:
        place = place_of(path, row.section, row.label)
        raise type(error)(f"{path}: [{row.section}] {error}{place}") from None
    return value


def _anchored(row: Setting, value: Any, folder: Path) -> Any:
    assert row.type.anchored is not None
    if isinstance(value, Mapping):
        value = [f"{column}={text}" for column, text in value.items()]
    if isinstance(value, list):
        return [row.type.anchored(str(text), folder) for text in value]
    return row.type.anchored(value, folder) if isinstance(value, str) and value else value


def table_settings(
    command: str, config_file: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the settings of a command.

    options: the options of the command line that were given, by the settings' names; they override
    the file's settings. Raises ConfigError with a text that begins with the setting's name, or the
    file's.
    """
    rows = rows_of(command)
    written = {row.name: row.default for row in rows}
    if config_file is not None:
        written |= load_table(Path(config_file), command)
    return read_settings(rows, written | dict(options))
