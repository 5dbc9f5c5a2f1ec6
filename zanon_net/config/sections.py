# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a run by concern: frozen dataclasses, checked when they are made.

`run_fields` has the fields. A wrong value raises `ConfigError` with a text that starts
with the field's name.
"""

from zanon_net.config import rules, run_fields
from zanon_net.config.parse import Network
from zanon_net.config.setting import describe

RUN = run_fields.RUN
"""The settings of `run` by their names, which are unique over all sections."""
KEYS = {row.label: row for row in RUN.values()}
"""The settings of `run` by their names in the configuration file."""
SECTIONS = tuple(dict.fromkeys(row.section for row in RUN.values()))
"""Names of the configuration file's sections and of `Config`'s fields, in their order."""


class ZParams(run_fields.AnonymityFields):
    """Settings of z-anonymity: which names are released."""

    __slots__ = ()

    @property
    def dynamic(self) -> bool:
        """True if z follows the stream."""
        return rules.follows_stream(self.settings())

    @property
    def z_limit(self) -> int:
        """The largest z of the run; without a `z_max` it is derived from z."""
        return rules.z_limit(self.settings())

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)


class AddressPolicy(run_fields.AddressesFields):
    """The definition of a user, and the form of addresses in the output."""

    __slots__ = ()

    @property
    def networks(self) -> tuple[Network, ...] | None:
        """The internal networks; None: the private ranges."""
        return rules.networks(self.settings())

    @property
    def key_mode(self) -> str:
        """ "derived" from a key file, or "ephemeral"."""
        return rules.key_mode(self.settings())


class Input(run_fields.InputFields):
    """Settings of the input."""

    __slots__ = ()

    @property
    def bound(self) -> int | None:
        """`max_bytes` as a number of bytes; None: no bound is set."""
        return None if self.max_bytes is None else int(self.max_bytes)


class Output(run_fields.OutputFields):
    """Settings of the output."""

    __slots__ = ()

    @property
    def file_mode(self) -> int:
        """The mode of the manifest and of the file of `popularity`."""
        return int(self.mode, 8)

    @property
    def split_ns(self) -> int:
        """The length of a part in nanoseconds; 0: no limit."""
        return rules.core_split(self.settings())

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The keys of the folders of Parquet files; empty: there are no such folders."""
        return () if self.partition == "none" else tuple(self.partition.split(","))

    @property
    def flush_s(self) -> float:
        """The longest wait of records in buffers, in seconds."""
        return int(self.flush) * 1e-9

    @property
    def size_limit(self) -> int:
        """Bytes of a file at which its part ends; 0: no limit."""
        return 0 if self.split_size is None else int(self.split_size)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The core's name of each output that the formats need."""
        return rules.outputs(self.settings())


class Limits(run_fields.LimitsFields):
    """Hard caps of the tables, in entries. At a cap more is suppressed, and counted."""

    __slots__ = ()


class LiveSettings(run_fields.LiveFields):
    """The settings of interfaces, and of reports on a run."""

    __slots__ = ()

    @property
    def ring_bytes(self) -> int:
        """The size of a ring in bytes."""
        return int(self.ring)

    @property
    def keeps_capture(self) -> bool:
        """True if the run continues as another user and opens interfaces afterwards."""
        return self.drop_to is not None and self.on_lost == "wait"

    @property
    def status_s(self) -> float | None:
        """Seconds between two status lines; None: no status lines."""
        return None if self.status is None else int(self.status) * 1e-9


class PacketSettings(run_fields.PacketsFields):
    """The settings of anonymized packets."""

    __slots__ = ()


class CountSettings(run_fields.CountFields):
    """Settings of a run that is one of several probes, for which a counter decides."""

    __slots__ = ()

    @property
    def hold_s(self) -> float:
        """The longest wait for a counter that is away, in seconds."""
        return int(self.count_hold) * 1e-9

    @property
    def wait_s(self) -> float:
        """The longest wait of captures for an answer, in seconds."""
        return int(self.count_wait) * 1e-9


for _view in (
    ZParams,
    AddressPolicy,
    Input,
    Output,
    Limits,
    LiveSettings,
    PacketSettings,
    CountSettings,
):
    describe(_view)
