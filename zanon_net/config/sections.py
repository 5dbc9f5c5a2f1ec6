# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a run by concern: frozen dataclasses, checked when they are made.

The dataclasses give the rows of the schema types for type checkers. A wrong value raises
`ConfigError` with a text that starts with the field's name.
"""

import os
from collections.abc import Sequence

from zanon_net._record import dataclass
from zanon_net.config import rules
from zanon_net.config.parse import Network
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View, describe

RUN = {row.name: row for row in rows_of("run")}
"""The settings of `run` by their names, which are unique over all sections."""
KEYS = {row.label: row for row in RUN.values()}
"""The settings of `run` by their names in the configuration file."""
SECTIONS = tuple(dict.fromkeys(row.section for row in RUN.values()))
"""Names of the configuration file's sections and of `Config`'s fields, in their order."""


@dataclass(frozen=True, slots=True)
class ZParams(View):
    """Settings of z-anonymity: which names are released."""

    rows = rows_of("run", "anonymity")

    z: int = RUN["z"].default
    window: int | str = RUN["window"].default
    evidence: str = RUN["evidence"].default
    dns_votes: str | bool | None = RUN["dns_votes"].default
    never: str | os.PathLike[str] | Sequence[str] = RUN["never"].default
    exact: bool = RUN["exact"].default
    dn_hunter: bool = RUN["dn_hunter"].default
    target_k: int | None = RUN["target_k"].default
    target_p: float | None = RUN["target_p"].default
    z_max: int | None = RUN["z_max"].default

    @property
    def dynamic(self) -> bool:
        """True if z follows the stream."""
        return rules.follows_stream(self.settings())

    @property
    def z_limit(self) -> int:
        """The largest z of the run; without a `z_max` it is derived from z."""
        return rules.z_limit(self.settings())

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes never to release, in lower case, without a leading dot."""
        return tuple(self.never) if isinstance(self.never, tuple) else ()

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)


@dataclass(frozen=True, slots=True)
class AddressPolicy(View):
    """The definition of a user, and the form of addresses in the output."""

    rows = rows_of("run", "addresses")

    internal: str | Sequence[str] | None = RUN["internal"].default
    user_prefix: str | Sequence[int] = RUN["user_prefix"].default
    pseudonyms: str | None = RUN["pseudonyms"].default
    keep_client_port: bool = RUN["keep_client_port"].default
    rotate: int | str | None = RUN["rotate"].default
    key_file: str | os.PathLike[str] | None = RUN["key_file"].default

    @property
    def networks(self) -> tuple[Network, ...] | None:
        """The internal networks; None: the private ranges."""
        return rules.networks(self.settings())

    @property
    def key_mode(self) -> str:
        """ "derived" from a key file, or "ephemeral"."""
        return rules.key_mode(self.settings())


@dataclass(frozen=True, slots=True)
class Input(View):
    """Settings of the input."""

    rows = rows_of("run", "input")

    filter: str = RUN["filter"].default
    max_bytes: int | str | None = RUN["max_bytes"].default
    tunnel_ports: str | Sequence[str] = RUN["tunnel_ports"].default

    @property
    def bound(self) -> int | None:
        """`max_bytes` as a number of bytes; None: no bound is set."""
        return None if self.max_bytes is None else int(self.max_bytes)


@dataclass(frozen=True, slots=True)
class Output(View):
    """Settings of the output."""

    rows = rows_of("run", "output")

    format: str | Sequence[str] = RUN["format"].default
    columns: str | Sequence[str] = RUN["columns"].default
    compress: str = RUN["compress"].default
    split: int | str | None = RUN["split"].default
    split_size: int | str | None = RUN["split_size"].default
    mode: str = RUN["mode"].default
    popularity: str | os.PathLike[str] | None = RUN["popularity"].default
    purpose: str = RUN["purpose"].default
    coarse_end: str | None = RUN["coarse_end"].default
    coarse_steps: str | int | None = RUN["coarse_steps"].default
    coarse_client: str | None = RUN["coarse_client"].default
    order: str | None = RUN["order"].default
    times: int | str | None = RUN["times"].default
    sizes: str | int | None = RUN["sizes"].default
    flush: int | str = RUN["flush"].default
    keep: int | str | None = RUN["keep"].default
    max_disk: int | str | None = RUN["max_disk"].default
    on_full: str = RUN["on_full"].default

    @property
    def file_mode(self) -> int:
        """The mode of the manifest and of the file of `popularity`."""
        return int(self.mode, 8)

    @property
    def split_ns(self) -> int:
        """The length of a part in nanoseconds; 0: no limit."""
        return rules.core_split(self.settings())

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


@dataclass(frozen=True, slots=True)
class Limits(View):
    """Hard caps of the tables, in entries. At a cap more is suppressed, and counted."""

    rows = rows_of("run", "limits")

    max_flows: int = RUN["max_flows"].default
    max_tuples: int = RUN["max_tuples"].default
    max_attributes: int = RUN["max_attributes"].default
    workers: int = RUN["workers"].default


@dataclass(frozen=True, slots=True)
class LiveSettings(View):
    """The settings of interfaces, and of reports on a run."""

    rows = rows_of("run", "live")

    ring: int | str = RUN["ring"].default
    snaplen: int = RUN["snaplen"].default
    promiscuous: bool = RUN["promiscuous"].default
    status: int | str | None = RUN["status"].default
    fail_on_loss: float | None = RUN["fail_on_loss"].default
    drop_to: str | None = RUN["drop_to"].default
    status_format: str = RUN["status_format"].default
    metrics: str | None = RUN["metrics"].default
    metrics_anywhere: bool = RUN["metrics_anywhere"].default
    metrics_file: str | os.PathLike[str] | None = RUN["metrics_file"].default
    on_lost: str = RUN["on_lost"].default

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


@dataclass(frozen=True, slots=True)
class PacketSettings(View):
    """The settings of anonymized packets."""

    rows = rows_of("run", "packets")

    hold: int | str = RUN["hold"].default
    hold_memory: int | str = RUN["hold_memory"].default
    payload: str = RUN["payload"].default
    packet_addresses: str = RUN["packet_addresses"].default
    server_address: str = RUN["server_address"].default
    mac: str = RUN["mac"].default
    tcp_timestamps: str = RUN["tcp_timestamps"].default
    ttl: str = RUN["ttl"].default
    encapsulation: str = RUN["encapsulation"].default
    fingerprint: str = RUN["fingerprint"].default
    timestamps: str = RUN["timestamps"].default
    suppressed: str = RUN["suppressed"].default
    view: str | Sequence[str] = RUN["view"].default


@dataclass(frozen=True, slots=True)
class CountSettings(View):
    """Settings of a run that is one of several probes, for which a counter decides."""

    rows = rows_of("run", "count")

    count_at: str | None = RUN["count_at"].default
    probe: str | None = RUN["probe"].default
    count_mode: str | None = RUN["count_mode"].default
    reader_key: str | os.PathLike[str] | None = RUN["reader_key"].default
    threshold_epochs: int = RUN["threshold_epochs"].default
    count_tls_cert: str | os.PathLike[str] | None = RUN["count_tls_cert"].default
    count_tls_key: str | os.PathLike[str] | None = RUN["count_tls_key"].default
    count_tls_ca: str | os.PathLike[str] | None = RUN["count_tls_ca"].default
    count_rotate: int | str | None = RUN["count_rotate"].default
    count_hold: int | str = RUN["count_hold"].default
    count_leases: bool = RUN["count_leases"].default
    count_wait: int | str = RUN["count_wait"].default

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
