# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A setting, which is one row of the table in `schema`, and functions over rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal

from zanon_net._record import dataclass
from zanon_net.config.parse import refuse_key
from zanon_net.config.rules import Settings
from zanon_net.config.types import Type

KEY_HELP = "The key of the pseudonyms, made by 'zanon-net key new': the same in every run."
RANDOM_KEY = "a random key that is never stored"

Shown = Callable[[Settings], Mapping[str, Any]] | Literal["as it is", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A row of the table.

    commands: the commands that take the setting; the first has it in its file and its manifest.
    section: the section of the configuration file; empty: the command reads no file.
    name: the name of the field. `label` is the name in the configuration file, which differs only
        if the option's name is a word of Python.
    type: how the value is read, its unit and its range.
    default: the default as it is written; None or empty: no default.
    help: the text of the option; empty: there is no option.
    heading: the heading in `--help` above the option; empty: there is no option.
    about: the text in configuration files and documents, if it differs from `help`.
    usual: the default that `--help` shows, if it differs from `default`.
    rank: options of a heading are sorted by rank in `--help`, and then by the order of rows.
    example: a value for the written configuration file, if there is no default.
    option: further names of the option, or its first name if that is not the setting's name.
    manifest: the setting's part of the manifest, or a function that returns it.
    core: the core's name of the setting, a path in the struct it is opened with; empty: the core
        does not have it.
    core_value: returns the core's value, if it differs from the setting's value.
    core_kind: the kind of the core's value: a number, truth values among them, or a kind that
        scripts/make_settings.py knows.
    check: checks several settings after all of the section were read; returns what changes.
    """

    commands: tuple[str, ...]
    name: str
    type: Type
    default: Any
    manifest: Shown
    section: str = ""
    help: str = ""
    heading: str = ""
    about: str = ""
    usual: str = ""
    rank: int = 0
    example: Any = None
    option: tuple[str, ...] = ()
    core: str = ""
    core_value: Callable[[Settings], Any] | None = None
    core_kind: str = "number"
    check: Callable[[Settings], Mapping[str, Any]] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the option."""
        return self.option or (f"--{self.name.replace('_', '-')}",)

    @property
    def label(self) -> str:
        """The setting's name in the configuration file, errors and manifests: the option's name,
        written as a field."""
        return self.options[0].removeprefix("--").replace("-", "_")

    @property
    def meaning(self) -> str:
        """The text in configuration files and documents."""
        return self.about or self.help[:1].lower() + self.help[1:].removesuffix(".")

    @property
    def has_default(self) -> bool:
        """True if there is a value when none was written."""
        return self.default not in (None, "", ())

    @property
    def usually(self) -> str:
        """The default that `--help` shows; empty: none."""
        is_written = self.has_default and self.default is not False
        return self.usual or (self.type.written(self.default) if is_written else "")

    @property
    def core_argument(self) -> str:
        """The keyword by which the binding takes it."""
        return self.core.rpartition(".")[2]

    def read(self, value: object) -> Any:
        """Returns the value as `Config` has it. Raises ConfigError."""
        if value is None and self.default is None:
            return None
        refuse_key(self.label, value)
        return self.type.read(self.label, value)

    def shown(self, settings: Settings) -> Mapping[str, Any]:
        """Returns the setting's part of the manifest, by key."""
        if callable(self.manifest):
            return self.manifest(settings)
        value = settings[self.name]
        as_json = list(value) if isinstance(value, tuple) else value
        return {} if self.manifest == "nothing" else {self.label: as_json}

    def for_core(self, settings: Settings) -> Any:
        """Returns the value for the core."""
        return settings[self.name] if self.core_value is None else self.core_value(settings)


def read_settings(rows: Iterable[Setting], written: Mapping[str, object]) -> dict[str, Any]:
    """Reads and checks the written values of `rows`.

    Raises ConfigError with a text that starts with the setting's name.
    """
    rows = tuple(rows)
    settings = {row.name: row.read(written[row.name]) for row in rows}
    for check in dict.fromkeys(row.check for row in rows):
        if check is not None:
            settings |= check(settings)
    return settings


def manifest_of(rows: Iterable[Setting], settings: Settings) -> dict[str, Any]:
    """Returns the part of `rows` in the manifest."""
    return {key: value for row in rows for key, value in row.shown(settings).items()}


def core_arguments(rows: Iterable[Setting], settings: Settings) -> dict[str, Any]:
    """Returns the values that the core is opened with, by the binding's keywords."""
    return {row.core_argument: row.for_core(settings) for row in rows if row.core}


class View:
    """Rows of the schema as a frozen dataclass, whose fields have the rows' names."""

    __slots__ = ()

    rows: ClassVar[tuple[Setting, ...]]

    def __post_init__(self) -> None:
        for name, value in read_settings(self.rows, self.settings()).items():
            object.__setattr__(self, name, value)

    def settings(self) -> dict[str, Any]:
        """Returns every setting by its name."""
        return {row.name: getattr(self, row.name) for row in self.rows}


def describe(view: type[View]) -> None:
    """Puts the meaning and range of each field into the docstring of `view`."""
    fields = "\n".join(f"    {row.name}: {row.meaning} ({row.type.range})." for row in view.rows)
    view.__doc__ = f"{view.__doc__}\n\n{fields}\n    "
