# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""All settings of a run: a frozen dataclass of its sections.

The command's options, the keys of the TOML file and the fields here have the same names. The
exception is `--for` with its key `for`, a word of Python, whose field is `purpose`. A wrong value
raises `ConfigError` with a text that starts with the key.
"""

import dataclasses
import os
from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from zanon_net._record import dataclass
from zanon_net.config import cap_rules, list_rules, presets, probe_rules, rules
from zanon_net.config.packet_views import PacketView, packet_views
from zanon_net.config.parse import did_you_mean
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import (
    KEYS,
    RUN,
    SECTIONS,
    AddressPolicy,
    CountSettings,
    Input,
    Limits,
    LiveSettings,
    Output,
    PacketSettings,
    ZParams,
)
from zanon_net.config.setting import View, core_arguments, manifest_of
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from typing import Unpack

    from zanon_net.config.keywords import RunSettings

_VIEWS: dict[str, type[View]] = {
    "anonymity": ZParams,
    "addresses": AddressPolicy,
    "input": Input,
    "output": Output,
    "limits": Limits,
    "live": LiveSettings,
    "packets": PacketSettings,
    "count": CountSettings,
}


class _Signature:
    """Signature of `Config`, built when it is read."""

    def __get__(self, _instance: object, _owner: type) -> Signature:
        return _signature()


@dataclass(frozen=True, slots=True, init=False)
class Config:
    """All settings of a run; docs/reference/configuration.md explains them.

    `Config(z=10, window="30m")` sets them by their names, whatever their section.
    `Config(anonymity=ZParams(...))` sets a section at a time; settings by name override it.

    anonymity: the names that are released. addresses: the definition of a user, and pseudonyms.
    input: the sources. output: the files. limits: sizes of the tables, threads. live: interfaces.
    packets: the content of anonymized packets. count: the counter of all probes.

    Raises ConfigError for a wrong value or an unknown name.
    """

    __signature__ = _Signature()

    anonymity: ZParams
    addresses: AddressPolicy
    input: Input
    output: Output
    limits: Limits
    live: LiveSettings
    packets: PacketSettings
    count: CountSettings

    def __init__(
        self,
        anonymity: ZParams | None = None,
        addresses: AddressPolicy | None = None,
        input: Input | None = None,
        output: Output | None = None,
        limits: Limits | None = None,
        live: LiveSettings | None = None,
        packets: PacketSettings | None = None,
        count: CountSettings | None = None,
        **settings: "Unpack[RunSettings]",
    ) -> None:
        views = (anonymity, addresses, input, output, limits, live, packets, count)
        parts: dict[str, View | None] = dict(zip(SECTIONS, views, strict=True))
        changes = _by_section(settings)
        for section, part in parts.items():
            kind = _VIEWS[section]
            if part is not None and not isinstance(part, kind):
                raise TypeError(f"{section} must be {kind.__name__}, not {type(part).__name__}")
            written = changes.get(section, {})
            if part is None:
                part = kind(**written)
            elif written:
                part = dataclasses.replace(part, **written)  # type: ignore[type-var]
            object.__setattr__(self, section, part)
        rules.check_all(self.settings())
        list_rules.check_levels(self.settings())
        list_rules.check_attributes(self.settings())
        probe_rules.check_probe(self.settings())
        cap_rules.check_caps(self.settings())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads the settings in a TOML file; a setting that the file does not name keeps its
        default.

        Paths in it are relative to its folder. Raises ConfigError, also for an unknown section or
        key.
        """
        from zanon_net.config.load import load_sections  # late: most runs have no such file
        from zanon_net.config.toml_places import place_of

        if path == "":
            raise ConfigError("the settings' file has no name; was it a variable that is not set?")
        path = Path(path)
        config = cls()
        for section, settings in load_sections(path):
            try:
                config = config.replace(**settings)
            except ConfigError as error:
                place = place_of(path, section, str(error).partition(":")[0])
                raise type(error)(f"{path}: [{section}] {error}{place}") from None
        return config

    def replace(self, **settings: "Unpack[RunSettings]") -> Self:
        """Returns a copy with the settings named by their fields, such as z=5 or window="10m",
        changed.

        Raises ConfigError.
        """
        if not settings:
            return self
        parts = {section: getattr(self, section) for section in SECTIONS}
        return type(self)(**parts, **settings)

    def settings(self) -> dict[str, Any]:
        """Returns every setting by its name; a value that is not set is taken from the preset of
        `purpose`."""
        parts: list[View] = [getattr(self, section) for section in SECTIONS]
        return presets.effective(
            {name: value for part in parts for name, value in part.settings().items()}
        )

    @property
    def weaker_than(self) -> dict[str, Any]:
        """The preset and the options that disclose more than it does, for the manifest."""
        settings = self.settings()
        options = [RUN[name].label for name in presets.weaker(settings)]
        return {"preset": settings["purpose"], "options": options}

    @property
    def forged_users(self) -> dict[str, Any]:
        """The number of invented users that release a name, for the manifest."""
        return cap_rules.forged_users(self.settings())

    @property
    def rotate_ns(self) -> int:
        """The length of an epoch in nanoseconds."""
        return rules.rotate_ns(self.settings())

    @property
    def views(self) -> tuple[PacketView, ...]:
        """The views of the packets. Raises ConfigError if a view would show more than they do."""
        return packet_views(self.settings())

    @property
    def view_outputs(self) -> dict[str, tuple[str, PacketView]]:
        """Returns for each output of a view, by its core name, the output it is derived from and
        the view.

        Raises ConfigError as `views` does.
        """
        return rules.view_outputs(self.settings())

    def engine_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of `_core.PacketEngine`."""
        return core_arguments(RUN.values(), self.settings())

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings as the manifest has them.

        The key and its path, the filter, small networks and the never list are left out, because
        they could be a secret, an address or a name. The number of workers is left out, because it
        does not change the output.
        """
        settings = self.settings()
        return {section: manifest_of(rows_of("run", section), settings) for section in SECTIONS}


def _by_section(settings: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Returns the settings below their sections. Raises ConfigError for an unknown setting."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        if name not in RUN:
            hint = f"; in Python it is {KEYS[name].name!r}" if name in KEYS else ""
            raise ConfigError(f"{name}: unknown setting{hint or did_you_mean(name, RUN)}")
        sections.setdefault(RUN[name].section, {})[name] = value
    return sections


def _signature() -> Signature:
    """Returns the signature: the sections, then every setting with its default."""
    parts = [
        Parameter(section, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=kind | None)
        for section, kind in _VIEWS.items()
    ]
    types = {item.name: item.type for kind in _VIEWS.values() for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    settings = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=row.default, annotation=types[name])
        for name, row in RUN.items()
    ]
    return Signature([*parts, *settings])
