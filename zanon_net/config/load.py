# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the configuration file of a run: TOML, with the sections and keys of the schema."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zanon_net.config.parse import did_you_mean, is_harmless, read_text, refuse_key, reject, shown
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import KEYS, SECTIONS
from zanon_net.config.setting import Setting
from zanon_net.config.toml_places import place_of
from zanon_net.errors import ConfigError, UnopenedError


def load_sections(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each section with its settings by name.

    Values are as they were written, but paths have the file's folder in front. Raises ConfigError,
    also for an unknown section or key.
    """
    for section, table in read_toml(path).items():
        keys = _keys_of(path, section, table)
        for name, value in keys.items():
            try:
                refuse_key(name, value)  # before a path in it is anchored
                refuse_bare_duration(KEYS[name], value)
            except ConfigError as error:
                place = place_of(path, section, name)
                raise ConfigError(f"{path}: [{section}] {error}{place}") from None
        yield section, _anchored(keys, path.parent)


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file. Raises ConfigError, without the texts of the file."""
    import tomllib  # late: only a file of settings needs it

    text = ""
    try:
        text = read_text(path)
        return tomllib.loads(text)
    except OSError as error:
        raise UnopenedError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        problem = re.sub(r"'[^']{2,}'", "...", str(error))  # a name or a value may be a key
        end = f"(at line {text.rstrip().count(chr(10)) + 1}, the end of the file)"
        problem = problem.replace("(at end of document)", end)
        raise ConfigError(f"{path} is not valid TOML: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{path} holds lists in lists too deep to be read") from None


def refuse_bare_duration(row: Setting, value: object) -> None:
    """Raises ConfigError for a duration that is a bare number, because its unit is unknown."""
    if row.type.unit == "ns" and isinstance(value, int | float) and not isinstance(value, bool):
        reject(row.label, 'has no unit; write it like "1h", "10m", "90s" or "500ms"')


def _keys_of(path: Path, section: str, table: object) -> dict[str, Any]:
    """Returns `table` if it is a section whose every key is a setting; else raises ConfigError."""
    if section in KEYS and section not in SECTIONS:
        place = place_of(path, section)
        raise ConfigError(f"{path}: {section} belongs under [{KEYS[section].section}]{place}")
    if section not in SECTIONS:
        hint = did_you_mean(section, [*SECTIONS, *KEYS])
        named = section if is_harmless(section) else shown(section)
        raise ConfigError(f"{path}: unknown section [{named}]{hint}{place_of(path, section)}")
    if not isinstance(table, dict):
        raise ConfigError(
            f"{path}: {section} is a section; write [{section}] and its keys below"
            f"{place_of(path, section)}"
        )
    known = [row.label for row in rows_of("run", section)]
    for key in table:
        if key not in known:
            elsewhere = KEYS[key].section if key in KEYS else None
            hint = f"; it belongs under [{elsewhere}]" if elsewhere else did_you_mean(key, known)
            place = place_of(path, section, key)
            raise ConfigError(f"{path}: [{section}] unknown key {shown(key)}{hint}{place}")
    return table


def _anchored(keys: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the values of `keys` by the settings' names.

    Paths are made relative to `folder`, the folder of the configuration file.
    """
    anchored = {}
    for key, value in keys.items():
        anchor = KEYS[key].type.anchored
        if anchor is not None and isinstance(value, str) and value:
            value = anchor(value, folder)
        elif anchor is not None and KEYS[key].type.many and isinstance(value, list):
            value = [anchor(text, folder) if isinstance(text, str) else text for text in value]
        anchored[KEYS[key].name] = value
    return anchored
