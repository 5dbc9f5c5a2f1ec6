# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.
"""Fields of the settings of `run`, with types for type checkers."""

import os
from collections.abc import Sequence

from zanon_net._record import dataclass
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View

RUN = {row.name: row for row in rows_of("run")}
"""The settings by their names."""


@dataclass(frozen=True, slots=True)
class AnonymityFields(View):
    """Fields of the settings of `run anonymity`."""

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
    levels: str | Sequence[str] = RUN["levels"].default
    attributes: str | Sequence[str] = RUN["attributes"].default
    only: str | os.PathLike[str] | Sequence[str] | None = RUN["only"].default
    skip: str | Sequence[str] | None = RUN["skip"].default
    categories: str | Sequence[str] | None = RUN["categories"].default
    suffixes: str | os.PathLike[str] | None = RUN["suffixes"].default
    networks: str | Sequence[str] | None = RUN["networks"].default
    max_per_prefix: str | None = RUN["max_per_prefix"].default
    max_names_per_user: int | None = RUN["max_names_per_user"].default
    min_user_age: int | str | None = RUN["min_user_age"].default


@dataclass(frozen=True, slots=True)
class AddressesFields(View):
    """Fields of the settings of `run addresses`."""

    rows = rows_of("run", "addresses")

    internal: str | Sequence[str] | None = RUN["internal"].default
    user_prefix: str | Sequence[int] = RUN["user_prefix"].default
    pseudonyms: str | None = RUN["pseudonyms"].default
    keep_client_port: bool = RUN["keep_client_port"].default
    rotate: int | str | None = RUN["rotate"].default
    key_file: str | os.PathLike[str] | None = RUN["key_file"].default


@dataclass(frozen=True, slots=True)
class InputFields(View):
    """Fields of the settings of `run input`."""

    rows = rows_of("run", "input")

    filter: str = RUN["filter"].default
    max_bytes: int | str | None = RUN["max_bytes"].default
    tunnel_ports: str | Sequence[str] = RUN["tunnel_ports"].default


@dataclass(frozen=True, slots=True)
class OutputFields(View):
    """Fields of the settings of `run output`."""

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
    partition: str = RUN["partition"].default


@dataclass(frozen=True, slots=True)
class LimitsFields(View):
    """Fields of the settings of `run limits`."""

    rows = rows_of("run", "limits")

    max_flows: int = RUN["max_flows"].default
    max_tuples: int = RUN["max_tuples"].default
    max_attributes: int = RUN["max_attributes"].default
    workers: int = RUN["workers"].default
    shards: int = RUN["shards"].default


@dataclass(frozen=True, slots=True)
class LiveFields(View):
    """Fields of the settings of `run live`."""

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


@dataclass(frozen=True, slots=True)
class PacketsFields(View):
    """Fields of the settings of `run packets`."""

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
class CountFields(View):
    """Fields of the settings of `run count`."""

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
