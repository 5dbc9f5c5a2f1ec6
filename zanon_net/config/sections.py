# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a run by concern: frozen dataclasses, checked when they are made.

A wrong value raises `ConfigError` with a text that starts with the field's name.
"""

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass

from zanon_net.config.parse import (
    Network,
    capture_filter,
    flag,
    key_path,
    new_file,
    parse_duration,
    parse_networks,
    parse_never,
    parse_size,
    prefix_pair,
    reject,
    whole,
    words,
)

Z_MAX = 2**31
TARGET_K, TARGET_P, TARGET_Z_MAX = 2, 0.95, 1000  # of a z that follows the stream, unless given
SPLIT_STEP_NS = 60_000_000_000  # as the times beside a suppressed name are told
COUNT_MAX = 2**31
WORKERS_MAX = 64

FORMAT_OUTPUTS = {
    "tstat": ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete"),
    "jsonl": ("jsonl",),
    "observations": ("observations",),
    "csv": ("csv",),
    "parquet": ("tcp_table", "udp_table"),
}
COMPRESSIONS = ("none", "gzip", "zstd")
COLUMN_SETS = ("core", "layer7", "e2e", "options", "p2p")
EVIDENCE = ("established", "any")


class _Section:
    """What the sections share: a frozen dataclass may still settle its own fields."""

    __slots__ = ()

    def _settle(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class ZParams(_Section):
    """z-anonymity: which names leave.

    z: users that must share a name, >= 1; 1 releases every name.
    window: for how long an exposure counts; "1h", or ns.
    evidence: "established", or "any" for captures that show one direction only.
    dns_votes: whether a DNS query counts as an exposure.
    never: suffixes of names never to release: a file with one a line, or a sequence; afterwards a
        tuple.
    exact: exact measurements also in records whose name is suppressed.
    dn_hunter: whether fqdn has the name by which DNS gave the server's address, where z users
        share it.
    target_k, target_p, z_max: let z follow the stream, from z to z_max, so that a user's released
        names are also those of target_k - 1 others with probability target_p; None: z is fixed.
        Given one, the others are 2, 0.95 and the larger of 1000 and z.
    """

    z: int = 20
    window: int | str = "1h"
    evidence: str = "established"
    dns_votes: bool = True
    never: str | os.PathLike[str] | Sequence[str] = ()
    exact: bool = False
    dn_hunter: bool = False
    target_k: int | None = None
    target_p: float | None = None
    z_max: int | None = None

    def __post_init__(self) -> None:
        self._settle("z", whole("z", self.z, 1, Z_MAX))
        parse_duration("window", self.window)
        if self.evidence not in EVIDENCE:
            reject("evidence", f"must be {' or '.join(EVIDENCE)}, not {self.evidence!r}")
        self._settle("dns_votes", flag("dns_votes", self.dns_votes))
        self._settle("never", parse_never("never", self.never))
        self._settle("exact", flag("exact", self.exact))
        self._settle("dn_hunter", flag("dn_hunter", self.dn_hunter))
        self._settle_target()

    def _settle_target(self) -> None:
        if self.target_k is None and self.target_p is None:
            if self.z_max is not None:
                reject(
                    "z_max",
                    "is for a z that follows the stream; give target_p (--target-p), too",
                )
            return
        self._settle("target_k", TARGET_K if self.target_k is None else self.target_k)
        self._settle("target_p", TARGET_P if self.target_p is None else self.target_p)
        self._settle("target_k", whole("target_k", self.target_k, 2, COUNT_MAX))
        limit = whole("z_max", self.z_limit, self.z, Z_MAX)
        if self.z_max is not None:
            self._settle("z_max", limit)
        number: object = self.target_p
        if not isinstance(number, int | float) or not 0 < number < 1:
            reject("target_p", f"must be a probability above 0 and below 1, not {number!r}")

    @property
    def dynamic(self) -> bool:
        """Whether z follows the stream."""
        return self.target_k is not None

    @property
    def z_limit(self) -> int:
        """The largest z there may be; where none was given, it follows a z that is changed."""
        if self.z_max is not None:
            return self.z_max
        return max(TARGET_Z_MAX, self.z) if self.dynamic else self.z

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes never to release, in lower case, without a leading dot."""
        return tuple(self.never) if isinstance(self.never, tuple) else ()

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return parse_duration("window", self.window)


@dataclass(frozen=True, slots=True)
class AddressPolicy(_Section):
    """Who is a user, and how addresses are written.

    internal: the users' networks: "10.0.0.0/8,fd00::/8", a file with one a line, a sequence, or
        "any"; None: the private ranges, else whoever opened the flow. Afterwards None or a tuple.
    user_prefix: leading bits of an IPv4 and of an IPv6 address that tell users apart.
    keep_client_port: client ports as they are instead of 0.
    rotate: for how long one key makes the pseudonyms; "1h", or ns; None: as long as the window.
    key_file: a file made by `zanon-net key new`; None: a random key that nobody ever sees.
    """

    internal: str | Sequence[str] | None = None
    user_prefix: str | Sequence[int] = (32, 64)
    keep_client_port: bool = False
    rotate: int | str | None = None
    key_file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.internal is not None:
            self._settle("internal", parse_networks("internal", self.internal))
        self._settle("user_prefix", prefix_pair("user_prefix", self.user_prefix))
        self._settle("keep_client_port", flag("keep_client_port", self.keep_client_port))
        if self.rotate is not None:
            parse_duration("rotate", self.rotate)
        key_path("key_file", self.key_file)

    @property
    def networks(self) -> tuple[Network, ...] | None:
        """The internal networks; None: the private ranges."""
        if self.internal is None:
            return None
        return tuple(ipaddress.ip_network(text) for text in self.internal)

    @property
    def key_mode(self) -> str:
        """ "derived" from a key file, or "ephemeral"."""
        return "ephemeral" if self.key_file is None else "derived"


@dataclass(frozen=True, slots=True)
class Input(_Section):
    """What is read.

    filter: a BPF expression, see pcap-filter(7); empty: every packet.
    max_bytes: most bytes that a compressed source may unpack to, a number or "20G", afterwards a
        number; None: 200 times its size, and 1 GiB.
    """

    filter: str = ""
    max_bytes: int | str | None = None

    def __post_init__(self) -> None:
        if self.max_bytes is not None:
            self._settle("max_bytes", parse_size("max_bytes", self.max_bytes))
        capture_filter("filter", self.filter)

    @property
    def bound(self) -> int | None:
        """`max_bytes` as a number."""
        return None if self.max_bytes is None else parse_size("max_bytes", self.max_bytes)


@dataclass(frozen=True, slots=True)
class Output(_Section):
    """What is written.

    format: tstat, csv, jsonl, parquet, observations. columns: core and any of layer7, e2e, options,
        p2p.
    compress: how files are compressed: "none", "gzip" or "zstd"; with "none" Parquet has snappy.
    split: how long a part of the output lasts, in packet time from a whole multiple of it on;
        "1h", or ns; None: no limit.
    split_size: bytes of a file at which its part ends; "500M", or a number; None: no limit.
    popularity: a file for counts of users per name and window, for the operator only.
    """

    format: str | Sequence[str] = ("tstat",)
    columns: str | Sequence[str] = ("core", "layer7")
    compress: str = "none"
    split: int | str | None = None
    split_size: int | str | None = None
    popularity: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        self._settle("format", words("format", self.format, FORMAT_OUTPUTS))
        columns = words("columns", self.columns, COLUMN_SETS)
        if "core" not in columns:
            reject("columns", "core is always part of a log; write core,layer7")
        self._settle("columns", columns)
        if self.compress not in COMPRESSIONS:
            reject("compress", f"must be {', '.join(COMPRESSIONS)}, not {self.compress!r}")
        if self.split_ns % SPLIT_STEP_NS != 0:
            reject("split", "must be whole minutes: others would tell times that records withhold")
        if self.split_size is not None:
            parse_size("split_size", self.split_size)
        new_file("popularity", self.popularity)

    @property
    def split_ns(self) -> int:
        """How long a part lasts, in nanoseconds; 0: no limit."""
        return 0 if self.split is None else parse_duration("split", self.split)

    @property
    def size_limit(self) -> int:
        """Bytes of a file at which its part ends; 0: no limit."""
        return 0 if self.split_size is None else parse_size("split_size", self.split_size)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The core's name of each output that the formats need."""
        return tuple(output for name in self.format for output in FORMAT_OUTPUTS[name])


@dataclass(frozen=True, slots=True)
class Limits(_Section):
    """Hard caps of the tables, in entries. At a cap only more is suppressed, and counted.

    max_flows: open flows at a time; beyond it those idle for longest are closed early.
    max_tuples: (name or server, user) pairs in the window; beyond it the oldest are forgotten.
    max_attributes: names and servers in the window; beyond it the oldest are forgotten.
    workers: threads that share the work; the output is the same for any number.
    """

    max_flows: int = 1 << 20
    max_tuples: int = 1 << 26
    max_attributes: int = 1 << 24
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("max_flows", "max_tuples", "max_attributes"):
            self._settle(name, whole(name, getattr(self, name), 1, COUNT_MAX))
        self._settle("workers", whole("workers", self.workers, 1, WORKERS_MAX))
