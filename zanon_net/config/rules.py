# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rules over several settings: checks, derived values, and forms for manifests and the core.

Every function takes the settings of a command, or of a section, by their names. The rows of the
schema name the functions.
"""

import ipaddress
from collections.abc import Mapping
from os.path import realpath
from typing import Any

from zanon_net.config import presets
from zanon_net.config.formats import PACKET_FORMATS, outputs_of
from zanon_net.config.listen_address import ListenAddress
from zanon_net.config.packet_views import PacketView, packet_views
from zanon_net.config.parse import (
    ANYWHERE,
    DNS_VOTES,
    UNITS_NS,
    Network,
    core_networks,
    format_duration,
    names_in,
    reject,
    shown,
    whole,
)
from zanon_net.config.tunnel_ports import tunnel_ports

Settings = Mapping[str, Any]

Z_MAX = 2**31
LEVELS = ("domain", "category", "as", "country")
"""Levels of generalization, finest first; of a name the first two, of an address the others."""
ATTRIBUTES = (
    "alpn",
    "ja4",
    "ehlo",
    "sip",
    "stun",
    "user-agent",
    "cert-san",
    "cert-issuer",
)
"""Attributes of flows besides names, in the order of csrc/util/attributes.h."""
LEVELS_Z_MAX = 1000  # as in csrc/anonymity/levels.h
COUNT_MAX = 2**31
RATES_MAX = 1 << 26  # half a gigabyte for each array of them
TARGET_K, TARGET_P, TARGET_Z_MAX = 2, 0.95, 1000  # defaults of a z that follows the stream
STREAM = {"users": 1000, "attributes": 20, "rate": 0.2, "exponent": 1}  # defaults of a model
# The manifest names no network so small that it identifies its hosts.
SHOWN_PREFIX_MAX = {4: 24, 6: 56}


# ---- checks: each returns the settings that it changes -------------------------------------------


def check_target(settings: Settings) -> dict[str, Any]:
    """Fills in k or p of a target for z if only the other is given."""
    k, p, z_max = settings["target_k"], settings["target_p"], settings["z_max"]
    if k is None and p is None:
        if z_max is not None:
            reject("z_max", "is for a z that follows the stream; give target_p (--target-p), too")
        return {}
    k = whole("target_k", TARGET_K if k is None else k, 2, COUNT_MAX)
    p = TARGET_P if p is None else p
    limit = whole("z_max", z_limit({**settings, "target_k": k}), settings["z"], Z_MAX)
    if not isinstance(p, int | float) or not 0 < p < 1:
        reject("target_p", f"must be a probability above 0 and below 1, not {shown(p)}")
    return {"target_k": k, "target_p": p, "z_max": None if z_max is None else limit}


def check_stream(settings: Settings) -> dict[str, Any]:
    """Fills in the parameters of a model's stream that are neither given nor fitted."""
    if settings["popularity"] is None:
        return {name: usual for name, usual in STREAM.items() if settings[name] is None}
    for name in STREAM:
        if settings[name] is not None:
            reject(name, "is fitted to --popularity; give one of the two")
    return {}


def check_columns(settings: Settings) -> dict[str, Any]:
    """Checks that each column of the filter has one role."""
    taken: set[str] = set()
    for role, column in _column_roles(settings):
        if not column:
            reject(role, "must be names of columns, separated by commas")
        if column in taken:
            reject(role, f"{shown(column)} is named already; each column has one role")
        taken.add(column)
    return {}


def check_detail(settings: Settings) -> dict[str, Any]:
    """Checks that no column is exact while times or sizes are rounded."""
    found = presets.effective(settings)
    short = [f"--{name} {presets.written(found[name])}" for name in ("times", "sizes")]
    short = [text for text in short if not text.endswith(" exact")]
    for name in ("e2e", "options"):
        if short and name in settings["columns"]:
            reject("columns", f"{name} discloses more than {' and '.join(short)} lets records say")
    return {}


def check_metrics(settings: Settings) -> dict[str, Any]:
    """Checks that other machines reach the metrics only if a setting allows it."""
    served, anywhere = settings["metrics"], settings["metrics_anywhere"]
    if served is None and anywhere:
        reject("metrics_anywhere", "is for metrics; give their address, too (--metrics ADDR:PORT)")
    if served is not None and not anywhere and not ListenAddress.of(served).is_loopback:
        reject(
            "metrics",
            "other machines reach this address; listen on 127.0.0.1 or [::1],"
            " or allow it with metrics_anywhere (--metrics-anywhere)",
        )
    return {}


def check_parts(settings: Settings) -> dict[str, Any]:
    """Checks that retention has parts to remove, each smaller than the space that may be used."""
    split_size, max_disk = settings["split_size"], settings["max_disk"]
    for name in ("keep", "max_disk"):
        if settings[name] is not None and settings["split"] is None and split_size is None:
            reject(name, "removes whole parts; say when one ends with --split or --split-size")
    if None not in (split_size, max_disk) and max_disk <= split_size:
        reject("max_disk", "must be more than --split-size, the size of one part's file")
    return {}


def check_partition(settings: Settings) -> dict[str, Any]:
    """Checks that there are files to divide."""
    if settings["partition"] != "none" and "parquet" not in settings["format"]:
        reject("partition", "is for Parquet; add --format parquet, or leave it out")
    return {}


def check_public(settings: Settings) -> dict[str, Any]:
    """Checks that packets do not go to the public: they disclose too much."""
    if settings["purpose"] == "public" and presets.has_packets(settings):
        reject("for", "public is not for packets, which show all sizes and times; write logs")
    return {}


def check_header(settings: Settings) -> dict[str, Any]:
    """Checks that only CSV has a header line."""
    if settings["header"] and settings["format"] == "jsonl":
        reject("header", "JSON Lines name their columns themselves; leave it out")
    return {}


def check_all(settings: Settings) -> None:
    """Checks settings of several sections: suppressed flows against exact ones, and names of
    files."""
    if settings["suppressed"] == "coarse" and settings["exact"]:
        reject("suppressed", "coarse contradicts --exact; give one of the two")
    popularity, metrics = settings["popularity"], settings["metrics_file"]
    if None not in (popularity, metrics) and realpath(popularity) == realpath(metrics):
        reject("metrics_file", "is also where the popularity goes; choose another file")


def attributes(settings: Settings) -> list[str]:
    """Returns the filter's columns of attributes: one, unless rows are generalized."""
    named = settings["attribute"]
    return names_in("attribute", named) if settings["levels"] else [named]


def _column_roles(settings: Settings) -> list[tuple[str, str]]:
    roles = [(role, settings[role]) for role in ("time", "user")]
    roles += [("attribute", column) for column in attributes(settings)]
    return roles + [("pass", column) for column in settings["passed"]]


# ---- values that follow from other settings ------------------------------------------------------


def follows_stream(settings: Settings) -> bool:
    """Returns true if z follows the stream."""
    return settings["target_k"] is not None


def z_limit(settings: Settings) -> int:
    """Returns the largest z of the run; without a `z_max` it is derived from z."""
    z: int = settings["z"] if settings["z_max"] is None else settings["z_max"]
    if settings["z_max"] is None and follows_stream(settings):
        return max(TARGET_Z_MAX, z)
    return z


def rotate_ns(settings: Settings) -> int:
    """Returns the length of an epoch in nanoseconds."""
    ns: int = settings["window"] if settings["rotate"] is None else settings["rotate"]
    return ns


def networks(settings: Settings) -> tuple[Network, ...] | None:
    """Returns the internal networks; None: the private ranges."""
    internal = settings["internal"]
    return None if internal is None else tuple(ipaddress.ip_network(text) for text in internal)


def outputs(settings: Settings) -> tuple[str, ...]:
    """Returns the core's name of each output that the formats need."""
    return outputs_of(settings["format"])


def view_outputs(settings: Settings) -> dict[str, tuple[str, PacketView]]:
    """Returns for each output of a view, by its core name, the output it is derived from and the
    view."""
    return {
        f"view{number}_{output}": (output, view)
        for number, view in enumerate(packet_views(settings), start=1)
        for output in outputs_of(name for name in PACKET_FORMATS if name in settings["format"])
    }


# ---- entries of the manifest ---------------------------------------------------------------------


def shown_shards(settings: Settings) -> dict[str, Any]:
    """Returns the manifest's entry for the processes; empty if there is one."""
    return {} if settings["shards"] == 1 else {"shards": settings["shards"]}


def shown_window(settings: Settings) -> dict[str, Any]:
    """Returns the window as text and in nanoseconds."""
    return _both_durations("window", settings["window"])


def shown_rotate(settings: Settings) -> dict[str, Any]:
    """Returns the epoch as text and in nanoseconds."""
    return _both_durations("rotate", rotate_ns(settings))


def _both_durations(name: str, ns: int) -> dict[str, Any]:
    return {name: format_duration(ns), f"{name}_ns": ns}


def shown_split(settings: Settings) -> dict[str, Any]:
    """Returns the length of a part as text."""
    return {"split": None if settings["split"] is None else format_duration(settings["split"])}


def shown_keep(settings: Settings) -> dict[str, Any]:
    """Returns the time that parts stay as text."""
    return {"keep": None if settings["keep"] is None else format_duration(settings["keep"])}


def shown_times(settings: Settings) -> dict[str, Any]:
    """Returns the precision of times as text."""
    return {"times": presets.written(settings["times"])}


def shown_hold(settings: Settings) -> dict[str, Any]:
    """Returns the time that packets wait as text."""
    return {"hold": format_duration(settings["hold"])}


def shown_never(settings: Settings) -> dict[str, Any]:
    """Returns the number of suffixes only, because suffixes are names themselves."""
    return {"never_suffixes": len(settings["never"])}


def shown_target_k(settings: Settings) -> dict[str, Any]:
    """Returns k of a z that follows the stream."""
    return {"target_k": settings["target_k"]} if follows_stream(settings) else {}


def shown_target_p(settings: Settings) -> dict[str, Any]:
    """Returns p of a z that follows the stream."""
    return {"target_p": settings["target_p"]} if follows_stream(settings) else {}


def shown_z_max(settings: Settings) -> dict[str, Any]:
    """Returns the largest z of a z that follows the stream."""
    return {"z_max": z_limit(settings)} if follows_stream(settings) else {}


def shown_internal(settings: Settings) -> dict[str, Any]:
    """Returns the networks, and the number of networks so small that they identify their hosts."""
    nets = networks(settings)
    if nets is None:
        return {"internal": "private"}
    if {str(net) for net in nets} >= set(ANYWHERE):
        return {"internal": "any"}
    shown = [str(net) for net in nets if net.prefixlen <= SHOWN_PREFIX_MAX[net.version]]
    return {"internal": {"networks": shown, "not_shown": len(nets) - len(shown)}}


def key_mode(settings: Settings) -> str:
    """Returns "derived" if there is a key file, else "ephemeral"."""
    return "ephemeral" if settings["key_file"] is None else "derived"


def shown_key(settings: Settings) -> dict[str, Any]:
    """Returns the mode of the key, without the key and its path."""
    return {"key_mode": key_mode(settings)}


def shown_filter(settings: Settings) -> dict[str, Any]:
    """Returns whether a filter is set, without its text, which may contain addresses."""
    return {"filtered": bool(settings["filter"])}


def shown_popularity(settings: Settings) -> dict[str, Any]:
    """Returns whether users are counted, without the path of the file."""
    return {"popularity": settings["popularity"] is not None}


def shown_header(settings: Settings) -> dict[str, Any]:
    """Returns the header line of CSV that was given as a setting, or False."""
    return {"header": settings["header"] or False}


# ---- values for the core that differ from the setting's value ------------------------------------


def core_established(settings: Settings) -> bool:
    """Returns true if votes need evidence that the client is real."""
    return bool(settings["evidence"] == "established")


def core_dns_votes(settings: Settings) -> int:
    """Returns the number of the records that DNS votes for."""
    return DNS_VOTES.index(settings["dns_votes"])


ORDERS = ("minute", presets.MINUTE_ALL, "closing")
"""Values in the order of the core's enumeration."""


def core_order(settings: Settings) -> int:
    """Returns the number of the order."""
    return ORDERS.index(settings["order"])


def core_internal(settings: Settings) -> list[tuple[bytes, int]] | None:
    """Returns the networks as prefixes of 16 bytes and their lengths."""
    nets = networks(settings)
    return None if nets is None else core_networks(nets)


PSEUDONYMS = ("networks", "crypto-pan", "random")
"""Values in the order of the core's enumeration."""


def core_pseudonyms(settings: Settings) -> tuple[int, int, int]:
    """Returns the number of the kind, and the bits of the blocks that crypto-pan keeps."""
    kind, _, bits = settings["pseudonyms"].partition(":")
    v4, v6 = bits.split(",") if bits else (32, 128)
    return PSEUDONYMS.index(kind), int(v4), int(v6)


PARTITIONS = ("none", "day", "day,hour")
COARSE_ENDS = ("floored", "none")
COARSE_STEPS = ("sqrt2", "4", "16")
COARSE_CLIENTS = ("pseudonym", "none")
SIZES = ("exact", "2")
"""Values in the order of the core's enumerations; of a size other than these the core takes the
number."""


def core_coarse_end(settings: Settings) -> int:
    """Returns the number of the form that times have in coarse records."""
    return COARSE_ENDS.index(settings["coarse_end"])


def core_coarse_steps(settings: Settings) -> int:
    """Returns the number of the base whose powers coarse records have as packets and bytes."""
    return COARSE_STEPS.index(settings["coarse_steps"])


def core_coarse_client(settings: Settings) -> int:
    """Returns the number of the form that the client has in coarse records."""
    return COARSE_CLIENTS.index(settings["coarse_client"])


def core_times(settings: Settings) -> int:
    """Returns the length to whose multiples times are rounded down, in nanoseconds; 0: exact."""
    times = settings["times"]
    return 0 if times == "exact" else int(times)


def core_digits(settings: Settings) -> int:
    """Returns the leading digits that counts keep; 0: all."""
    sizes = settings["sizes"]
    return 0 if sizes == "exact" else int(sizes)


PAYLOADS = ("zero", "cut", "keep-encrypted")
PACKET_ADDRESSES = ("blocks", "wide")
SERVER_ADDRESSES = ("tested", "withheld", "linkable")
MACS = ("role", "pseudonym", "zero")
TCP_TIMESTAMPS = ("drop", "offset", "keep")
TTLS = ("class", "keep")
ENCAPSULATIONS = ("strip", "keep")
FINGERPRINTS = ("tested", "drop", "keep")
SUPPRESSED = ("drop", "coarse")
QUOTES = ("csv", "none")
"""Values in the order of the core's enumerations."""
TIMESTAMPS = {unit: UNITS_NS[unit] for unit in ("ns", "us", "ms")}
"""The units of packets' times, in ns."""


def core_payload(settings: Settings) -> int:
    """Returns the number of the form that payload takes."""
    return PAYLOADS.index(settings["payload"])


def core_wide_addresses(settings: Settings) -> bool:
    """Returns true if pseudonyms in packets may be any address."""
    return bool(settings["packet_addresses"] == "wide")


def core_server_addresses(settings: Settings) -> int:
    """Returns the number of the form that servers' addresses take in packets."""
    return SERVER_ADDRESSES.index(settings["server_address"])


def core_macs(settings: Settings) -> int:
    """Returns the number of the form that MAC addresses take."""
    return MACS.index(settings["mac"])


def core_tcp_timestamps(settings: Settings) -> int:
    """Returns the number of the form that TCP's timestamps take."""
    return TCP_TIMESTAMPS.index(settings["tcp_timestamps"])


def core_keep_ttl(settings: Settings) -> bool:
    """Returns true if the time to live stays."""
    return bool(settings["ttl"] == "keep")


def core_keep_encapsulation(settings: Settings) -> bool:
    """Returns true if the headers around packets stay."""
    return bool(settings["encapsulation"] == "keep")


def core_fingerprints(settings: Settings) -> int:
    """Returns the number of the rule for fingerprints in packets."""
    return FINGERPRINTS.index(settings["fingerprint"])


def core_coarse_suppressed(settings: Settings) -> bool:
    """Returns true if packets of flows whose name is suppressed leave."""
    return bool(settings["suppressed"] == "coarse")


def core_packet_times(settings: Settings) -> int:
    """Returns the length to whose multiples packets' times are rounded down, in ns."""
    return TIMESTAMPS[settings["timestamps"]]


def core_never(settings: Settings) -> list[bytes]:
    """Returns the suffixes as bytes."""
    return [suffix.encode("ascii") for suffix in settings["never"]]


def core_split(settings: Settings) -> int:
    """Returns the length of a part in nanoseconds; 0: no limit."""
    return settings["split"] or 0


def core_popularity(settings: Settings) -> int:
    """Returns what is counted, as zn_engine_config says: a run stops at the end of each window so
    that its counts are read. A z that follows the stream reads the users of names only."""
    if settings["popularity"] is not None:
        return 1
    return 2 if follows_stream(settings) else 0


def core_row_popularity(settings: Settings) -> bool:
    """Returns true if users are counted by attribute and window."""
    return settings["popularity"] is not None


def core_with_user(settings: Settings) -> bool:
    """Returns true if rows carry a pseudonym."""
    return not settings["no_user"]


def core_to(settings: Settings) -> str:
    """Returns the format in which the core writes; CSV becomes Parquet afterwards."""
    return "csv" if settings["to"] == "parquet" else str(settings["to"])


def core_keep_suppressed(settings: Settings) -> bool:
    """Returns true if rows with a suppressed attribute are written without it."""
    return bool(settings["suppressed"] == "blank")


def core_columns(settings: Settings) -> list[bytes]:
    """Returns the columns of the time, the user, the attribute, and the columns passed on."""
    return [column.encode() for _role, column in _column_roles(settings)]


def core_delimiter(settings: Settings) -> int:
    """Returns the byte between columns."""
    return ord("\t" if settings["delimiter"] == "tab" else settings["delimiter"])


def quote(settings: Settings) -> str:
    """Returns the quoting of CSV's fields: as set, or the default of the delimiter."""
    usual = "none" if settings["delimiter"] in ("tab", "\t") else "csv"
    return settings["quote"] or usual


def shown_quote(settings: Settings) -> dict[str, Any]:
    """Returns the quoting that applies."""
    return {"quote": quote(settings)}


def core_quotes(settings: Settings) -> bool:
    """Returns true if fields of CSV can be quoted."""
    return quote(settings) == "csv"


def core_header(settings: Settings) -> bytes:
    """Returns the header line as bytes."""
    return bytes(settings["header"].encode())


def core_tunnel_ports(settings: Settings) -> list[tuple[str, int]]:
    """Returns the ports of tunnels, each with the tunnel's name."""
    return tunnel_ports(settings["tunnel_ports"])


def core_views(settings: Settings) -> list[tuple[int, int, int, int, int, bool]]:
    """Returns the views, each as the members of the core's struct."""
    return [
        (
            view.z,
            PAYLOADS.index(view.payload),
            SERVER_ADDRESSES.index(view.server_address),
            FINGERPRINTS.index(view.fingerprint),
            TIMESTAMPS[view.timestamps],
            view.exact,
        )
        for view in packet_views(settings)
    ]
