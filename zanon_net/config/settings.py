# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""All settings: one frozen dataclass per concern, checked when it is made.

The command's options, the keys of the TOML file and the fields here carry the same names. A wrong
value raises `ConfigError` with a text that starts with the field's name.
"""

import dataclasses
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from zanon_net.config.live_section import LiveSettings
from zanon_net.config.parse import (
    core_networks,
    did_you_mean,
    exists,
    format_duration,
    parse_duration,
    read_text,
    shown_networks,
)
from zanon_net.config.sections import (
    COLUMN_SETS,
    COMPRESSIONS,
    COUNT_MAX,
    EVIDENCE,
    FORMAT_OUTPUTS,
    SPLIT_STEP_NS,
    WORKERS_MAX,
    Z_MAX,
    AddressPolicy,
    Input,
    Limits,
    Output,
    ZParams,
)
from zanon_net.errors import ConfigError

__all__ = [
    "COLUMN_SETS",
    "COMPRESSIONS",
    "COUNT_MAX",
    "EVIDENCE",
    "FORMAT_OUTPUTS",
    "SECTION_OF",
    "SPLIT_STEP_NS",
    "WORKERS_MAX",
    "Z_MAX",
    "AddressPolicy",
    "Config",
    "Input",
    "Limits",
    "LiveSettings",
    "Output",
    "ZParams",
]


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a run, each in its section; docs/reference/configuration.md explains them.

    anonymity: which names are released. addresses: who is a user, and pseudonyms. input: what is
    read. output: what is written. limits: sizes of the tables, threads. live: interfaces.

    `Config().replace(z=10, window="30m")` sets settings by their names, whatever their section.
    Making one raises ConfigError for a wrong value.
    """

    anonymity: ZParams = field(default_factory=ZParams)
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    input: Input = field(default_factory=Input)
    output: Output = field(default_factory=Output)
    limits: Limits = field(default_factory=Limits)
    live: LiveSettings = field(default_factory=LiveSettings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The settings in a TOML file; what it does not name keeps its default.

        Paths in it are relative to its folder. Raises ConfigError, also for an unknown section or
        key.
        """
        if path == "":
            raise ConfigError("the settings' file has no name; was it a variable that is not set?")
        path = Path(path)
        try:
            data = tomllib.loads(read_text(path))
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
            raise ConfigError(f"{path} is not valid TOML: {error}") from None
        except RecursionError:
            raise ConfigError(f"{path} holds lists in lists too deep to be read") from None
        config = cls()
        for section, table in data.items():
            keys = _keys_of(path, section, table)
            try:
                config = config.replace(**_anchored(keys, path.parent))
            except ConfigError as error:
                raise ConfigError(f"{path}: [{section}] {error}") from None
        return config

    def replace(self, **settings: Any) -> Self:
        """A copy with the settings named by their fields, such as z=5 or window="10m", changed.

        Raises ConfigError.
        """
        sections: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            if name not in SECTION_OF:
                raise ConfigError(f"{name}: unknown setting{did_you_mean(name, SECTION_OF)}")
            sections.setdefault(SECTION_OF[name], {})[name] = value
        changed = {
            section: dataclasses.replace(getattr(self, section), **values)
            for section, values in sections.items()
        }
        return dataclasses.replace(self, **changed)

    @property
    def rotate_ns(self) -> int:
        """How long an epoch lasts, in nanoseconds."""
        if self.addresses.rotate is None:
            return self.anonymity.window_ns
        return parse_duration("rotate", self.addresses.rotate)

    def engine_arguments(self) -> dict[str, Any]:
        """The keyword arguments of `_core.Engine`."""
        networks, key_file = self.addresses.networks, self.addresses.key_file
        return {
            "z": self.anonymity.z,
            "window_ns": self.anonymity.window_ns,
            "rotate_ns": self.rotate_ns,
            "established": self.anonymity.evidence == "established",
            "dns_votes": self.anonymity.dns_votes,
            "internal": None if networks is None else core_networks(networks),
            "never": [suffix.encode("ascii") for suffix in self.anonymity.suffixes],
            "user_prefix": self.addresses.user_prefix,
            "key_file": None if key_file is None else os.fspath(key_file),
            "keep_client_port": self.addresses.keep_client_port,
            "exact": self.anonymity.exact,
            "dn_hunter": self.anonymity.dn_hunter,
            "outputs": self.output.outputs,
            "split_ns": self.output.split_ns,
            "columns": self.output.columns,
            "max_flows": self.limits.max_flows,
            "max_tuples": self.limits.max_tuples,
            "max_attributes": self.limits.max_attributes,
            "workers": self.limits.workers,
            "z_max": self.anonymity.z_limit,
            "popularity": self.anonymity.dynamic or self.output.popularity is not None,
        }

    def to_dict(self) -> dict[str, Any]:
        """The settings as the manifest has them.

        Left out is what could be a secret, an address or a name (the key and its path, the filter,
        small networks, the never list) and how many workers there are, which changes nothing.
        """
        anonymity, addresses = self.anonymity, self.addresses
        return {
            "anonymity": {
                "z": anonymity.z,
                "window": format_duration(anonymity.window_ns),
                "window_ns": anonymity.window_ns,
                "evidence": anonymity.evidence,
                "dns_votes": anonymity.dns_votes,
                "never_suffixes": len(anonymity.suffixes),
                "exact": anonymity.exact,
                "dn_hunter": anonymity.dn_hunter,
                **self._target(),
            },
            "addresses": {
                "internal": shown_networks(addresses.networks),
                "user_prefix": list(addresses.user_prefix),
                "keep_client_port": addresses.keep_client_port,
                "rotate": format_duration(self.rotate_ns),
                "rotate_ns": self.rotate_ns,
                "key_mode": addresses.key_mode,
            },
            "input": {"filtered": bool(self.input.filter), "max_bytes": self.input.max_bytes},
            "output": {
                "format": list(self.output.format),
                "columns": list(self.output.columns),
                "compress": self.output.compress,
                "split": format_duration(self.output.split_ns) if self.output.split_ns else None,
                "split_size": self.output.size_limit or None,
                "popularity": self.output.popularity is not None,
            },
            "limits": {k: v for k, v in dataclasses.asdict(self.limits).items() if k != "workers"},
            "live": {
                "ring": self.live.ring_bytes,
                "snaplen": self.live.snaplen,
                "promiscuous": self.live.promiscuous,
            },
        }

    def _target(self) -> dict[str, Any]:
        """What a z that follows the stream is to reach."""
        anonymity = self.anonymity
        if not anonymity.dynamic:
            return {}
        return {
            "target_k": anonymity.target_k,
            "target_p": anonymity.target_p,
            "z_max": anonymity.z_limit,
        }


_SECTIONS: dict[str, type] = {
    "anonymity": ZParams,
    "addresses": AddressPolicy,
    "input": Input,
    "output": Output,
    "limits": Limits,
    "live": LiveSettings,
}
SECTION_OF = {
    item.name: section for section, kind in _SECTIONS.items() for item in dataclasses.fields(kind)
}
"""The section of each setting; a setting's name is unique over all sections."""


def _keys_of(path: Path, section: str, table: object) -> dict[str, Any]:
    """`table`, known to be a section whose every key is a setting. Raises ConfigError."""
    if section in SECTION_OF:
        raise ConfigError(f"{path}: {section} belongs under [{SECTION_OF[section]}]")
    if section not in _SECTIONS:
        hint = did_you_mean(section, [*_SECTIONS, *SECTION_OF])
        raise ConfigError(f"{path}: unknown section [{section}]{hint}")
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {section} is a section; write [{section}] and its keys below")
    known = [name for name, home in SECTION_OF.items() if home == section]
    for key in table:
        if key not in known:
            elsewhere = SECTION_OF.get(key)
            hint = f"; it belongs under [{elsewhere}]" if elsewhere else did_you_mean(key, known)
            raise ConfigError(f"{path}: [{section}] unknown key {key!r}{hint}")
    return table


def _anchored(keys: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`keys` with the paths among their values relative to `folder`, the configuration file's."""
    anchored = dict(keys)
    for name in ("never", "key_file", "internal", "popularity"):
        value = anchored.get(name)
        if isinstance(value, str) and value and (name != "internal" or exists(folder / value)):
            anchored[name] = str(folder / value)
    return anchored
