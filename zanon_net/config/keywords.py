# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.
"""Settings as keywords, for type checkers."""

import os
from collections.abc import Sequence
from typing import TypedDict


class RunSettings(TypedDict, total=False):
    """Settings of `run`."""

    z: int
    window: int | str
    evidence: str
    dns_votes: str | bool | None
    never: str | os.PathLike[str] | Sequence[str]
    exact: bool
    dn_hunter: bool
    target_k: int | None
    target_p: float | None
    z_max: int | None
    levels: str | Sequence[str]
    attributes: str | Sequence[str]
    only: str | os.PathLike[str] | Sequence[str] | None
    skip: str | Sequence[str] | None
    categories: str | Sequence[str] | None
    suffixes: str | os.PathLike[str] | None
    networks: str | Sequence[str] | None
    max_per_prefix: str | None
    max_names_per_user: int | None
    min_user_age: int | str | None
    internal: str | Sequence[str] | None
    user_prefix: str | Sequence[int]
    pseudonyms: str | None
    keep_client_port: bool
    rotate: int | str | None
    key_file: str | os.PathLike[str] | None
    filter: str
    max_bytes: int | str | None
    tunnel_ports: str | Sequence[str]
    format: str | Sequence[str]
    columns: str | Sequence[str]
    compress: str
    split: int | str | None
    split_size: int | str | None
    mode: str
    popularity: str | os.PathLike[str] | None
    purpose: str
    coarse_end: str | None
    coarse_steps: str | int | None
    coarse_client: str | None
    order: str | None
    times: int | str | None
    sizes: str | int | None
    flush: int | str
    keep: int | str | None
    max_disk: int | str | None
    on_full: str
    partition: str
    max_flows: int
    max_tuples: int
    max_attributes: int
    workers: int
    shards: int
    ring: int | str
    snaplen: int
    promiscuous: bool
    status: int | str | None
    fail_on_loss: float | None
    drop_to: str | None
    status_format: str
    metrics: str | None
    metrics_anywhere: bool
    metrics_file: str | os.PathLike[str] | None
    on_lost: str
    hold: int | str
    hold_memory: int | str
    payload: str
    packet_addresses: str
    server_address: str
    mac: str
    tcp_timestamps: str
    ttl: str
    encapsulation: str
    fingerprint: str
    timestamps: str
    suppressed: str
    view: str | Sequence[str]
    count_at: str | None
    probe: str | None
    count_mode: str | None
    reader_key: str | os.PathLike[str] | None
    threshold_epochs: int
    count_tls_cert: str | os.PathLike[str] | None
    count_tls_key: str | os.PathLike[str] | None
    count_tls_ca: str | os.PathLike[str] | None
    count_rotate: int | str | None
    count_hold: int | str
    count_leases: bool
    count_wait: int | str


class PacketsSettings(TypedDict, total=False):
    """Settings of `packets`."""

    z: int
    window: int | str
    evidence: str
    dns_votes: str | bool | None
    never: str | os.PathLike[str] | Sequence[str]
    exact: bool
    target_k: int | None
    target_p: float | None
    z_max: int | None
    levels: str | Sequence[str]
    only: str | os.PathLike[str] | Sequence[str] | None
    skip: str | Sequence[str] | None
    categories: str | Sequence[str] | None
    suffixes: str | os.PathLike[str] | None
    networks: str | Sequence[str] | None
    max_per_prefix: str | None
    max_names_per_user: int | None
    min_user_age: int | str | None
    internal: str | Sequence[str] | None
    user_prefix: str | Sequence[int]
    pseudonyms: str | None
    keep_client_port: bool
    rotate: int | str | None
    key_file: str | os.PathLike[str] | None
    filter: str
    max_bytes: int | str | None
    tunnel_ports: str | Sequence[str]
    mode: str
    popularity: str | os.PathLike[str] | None
    purpose: str
    coarse_client: str | None
    flush: int | str
    max_flows: int
    max_tuples: int
    max_attributes: int
    workers: int
    ring: int | str
    snaplen: int
    promiscuous: bool
    status: int | str | None
    fail_on_loss: float | None
    drop_to: str | None
    status_format: str
    metrics: str | None
    metrics_anywhere: bool
    metrics_file: str | os.PathLike[str] | None
    on_lost: str
    hold: int | str
    hold_memory: int | str
    payload: str
    packet_addresses: str
    server_address: str
    mac: str
    tcp_timestamps: str
    ttl: str
    encapsulation: str
    fingerprint: str
    timestamps: str
    suppressed: str
    view: str | Sequence[str]
    count_at: str | None
    probe: str | None
    count_mode: str | None
    reader_key: str | os.PathLike[str] | None
    threshold_epochs: int
    count_tls_cert: str | os.PathLike[str] | None
    count_tls_key: str | os.PathLike[str] | None
    count_tls_ca: str | os.PathLike[str] | None
    count_rotate: int | str | None
    count_hold: int | str
    count_leases: bool
    count_wait: int | str


class FrameSettings(TypedDict, total=False):
    """Settings of `frames`."""

    z: int
    window: int | str
    never: str | os.PathLike[str] | Sequence[str]
    suppressed: str
    time: str
    user: str
    attribute: str
    passed: Sequence[str]
    no_user: bool
    rotate: int | str | None
    key_file: str | os.PathLike[str] | None
    time_unit: str
    strict: bool
    max_tuples: int
    max_attributes: int
