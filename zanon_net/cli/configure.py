# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a command line, and errors that name each as the user wrote it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zanon_net.config.schema import rows_of
from zanon_net.config.setting import read_settings
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from zanon_net.config.settings import Config


def chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given on the command line, by their settings' names."""
    return {name: value for name, value in options.items() if value not in (None, ())}


def configure(config_file: str | None, options: Mapping[str, Any]) -> "Config":
    """The file's settings with the chosen options over them. Raises ConfigError."""
    from zanon_net.config.settings import Config

    config = Config() if config_file is None else Config.load(config_file)
    with naming_options():
        return config.replace(**chosen(options))


def read_options(command: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a command that takes them from its options alone. Raises ConfigError."""
    rows = rows_of(command)
    return read_settings(rows, {row.name: row.default for row in rows} | chosen(options))


@contextmanager
def naming_options(options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Replaces the setting's name, with which a ConfigError begins, by that of its option.

    options: the option of each setting; an error that begins with none of them stays as it is.
        None: every error begins with the name of an option.
    """
    try:
        yield
    except ConfigError as error:
        name, _colon, problem = str(error).partition(":")
        if options is not None and name not in options:
            raise
        option = f"--{name.replace('_', '-')}" if options is None else options[name]
        raise type(error)(f"{option}:{problem}") from None


@contextmanager
def naming_origins(config_file: str | None, options: Mapping[str, Any]) -> Iterator[None]:
    """As `naming_options`; a setting out of the file is named with the file, as by `Config.load`.

    An error that begins with no setting's name stays as it is.
    """
    from zanon_net.config.sections import KEYS, RUN

    try:
        yield
    except ConfigError as error:
        name = str(error).partition(":")[0]
        if name in {RUN[chosen_name].label for chosen_name in chosen(options)}:
            with naming_options():
                raise
        if config_file is None or name not in KEYS:
            raise
        from zanon_net.config.toml_places import place_of

        place = place_of(Path(config_file), KEYS[name].section, name)
        raise type(error)(f"{config_file}: [{KEYS[name].section}] {error}{place}") from None
