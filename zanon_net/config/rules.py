# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of several settings: checks, derived values, and forms for manifests and the core.

Every function takes the settings of a command, or of a section, by their names; the rows of the
schema name the functions.
"""

import ipaddress
from collections.abc import Mapping
from os.path import realpath
from typing import Any

from zanon_net.config import presets
from zanon_net.config.listen_address import ListenAddress
from zanon_net.config.packet_views import PacketView, packet_views
from zanon_net.config.parse import (
    ANYWHERE,
    DNS_VOTES,
    UNITS_NS,
    Network,
    core_networks,
    format_duration,
    reject,
    shown,
    whole,
)
from zanon_net.config.tunnel_ports import tunnel_ports

Settings = Mapping[str, Any]

Z_MAX = 2**31
COUNT_MAX = 2**31
RATES_MAX = 1 << 26  # half a gigabyte for each array of them
TARGET_K, TARGET_P, TARGET_Z_MAX = 2, 0.95, 1000  # of a z that follows the stream, unless given
STREAM = {"users": 1000, "attributes": 20, "rate": 0.2, "exponent": 1}  # of a model, unless given
# The manifest names no network so small that it identifies its hosts.
SHOWN_PREFIX_MAX = {4: 24, 6: 56}

FORMAT_OUTPUTS = {
    "tstat": ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete"),
    "jsonl": ("jsonl",),
    "observations": ("observations",),
    "csv": ("csv",),
    "parquet": ("tcp_table", "udp_table"),
    "pcap": ("packets",),
    "pcapng": ("packets_ng",),
}
"""The core's name of each output that a format needs."""
FORMAT_OF = {output: name for name, outputs in FORMAT_OUTPUTS.items() for output in outputs}
"""The format of each of them; a view's output is of none."""


# ---- checks: what the settings that they change become -----------------------------------------


def check_target(settings: Settings) -> dict[str, Any]:
    """If one of k and p of a target for z is given, fills in the other."""
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
    """A model's stream is fitted, or described: what was not given then gets a value."""
    if settings["popularity"] is None:
        return {name: usual for name, usual in STREAM.items() if settings[name] is None}
    for name in STREAM:
        if settings[name] is not None:
            reject(name, "is fitted to --popularity; give one of the two")
    return {}


def check_columns(settings: Settings) -> dict[str, Any]:
    """Each column of the filter has one role."""
    taken: set[str] = set()
    for role, column in _column_roles(settings):
        if not column:
            reject(role, "must be names of columns, separated by commas")
        if column in taken:
            reject(role, f"{shown(column)} is named already; each column has one role")
        taken.add(column)
    return {}


def check_detail(settings: Settings) -> dict[str, Any]:
    """Columns that are exact do not go with times or sizes that are not."""
    found = presets.effective(settings)
    short = [f"--{name} {presets.written(found[name])}" for name in ("times", "sizes")]
    short = [text for text in short if not text.endswith(" exact")]
    for name in ("e2e", "options"):
        if short and name in settings["columns"]:
            reject("columns", f"{name} tells more than {' and '.join(short)} lets records say")
    return {}


def check_metrics(settings: Settings) -> dict[str, Any]:
    """Other machines reach the metrics only where that was asked for."""
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
    """Whole parts are removed: there have to be some, each smaller than what may stay."""
    split_size, max_disk = settings["split_size"], settings["max_disk"]
    for name in ("keep", "max_disk"):
        if settings[name] is not None and settings["split"] is None and split_size is None:
            reject(name, "removes whole parts; say when one ends with --split or --split-size")
    if None not in (split_size, max_disk) and max_disk <= split_size:
        reject("max_disk", "must be more than --split-size, the size of one part's file")
    return {}


def check_public(settings: Settings) -> dict[str, Any]:
    """Packets say too much for everybody to read them."""
    if settings["purpose"] == "public" and presets.has_packets(settings):
        reject("for", "public is not for packets, of which each size and time is told; write logs")
    return {}


def check_header(settings: Settings) -> dict[str, Any]:
    """A header line is given for CSV only."""
    if settings["header"] and settings["format"] == "jsonl":
        reject("header", "JSON Lines name their columns themselves; leave it out")
    return {}


def check_all(settings: Settings) -> None:
    """Settings of several sections: a flow whose name is withheld leaves as it is, or coarsely; and
    two files are two."""
    if settings["suppressed"] == "coarse" and settings["exact"]:
        reject("suppressed", "coarse contradicts --exact; give one of the two")
    popularity, metrics = settings["popularity"], settings["metrics_file"]
    if None not in (popularity, metrics) and realpath(popularity) == realpath(metrics):
        reject("metrics_file", "is also where the popularity goes; choose another file")


def attributes(settings: Settings) -> list[str]:
    """The filter's columns of attributes: one, unless rows are generalized."""
    named = settings["attribute"]
    return [part.strip() for part in named.split(",")] if settings["generalize"] else [named]


def _column_roles(settings: Settings) -> list[tuple[str, str]]:
    roles = [(role, settings[role]) for role in ("time", "user")]
    roles += [("attribute", column) for column in attributes(settings)]
    return roles + [("pass", column) for column in settings["passed"]]


# ---- values that follow from others -------------------------------------------------------------


def follows_stream(settings: Settings) -> bool:
    """Whether z follows the stream."""
    return settings["target_k"] is not None


def z_limit(settings: Settings) -> int:
    """The largest z of the run; without a `z_max` it is derived from z."""
    z: int = settings["z"] if settings["z_max"] is None else settings["z_max"]
    if settings["z_max"] is None and follows_stream(settings):
        return max(TARGET_Z_MAX, z)
    return z


def rotate_ns(settings: Settings) -> int:
    """The length of an epoch in nanoseconds."""
    ns: int = settings["window"] if settings["rotate"] is None else settings["rotate"]
    return ns


def networks(settings: Settings) -> tuple[Network, ...] | None:
    """The internal networks; None: the private ranges."""
    internal = settings["internal"]
    return None if internal is None else tuple(ipaddress.ip_network(text) for text in internal)


def outputs(settings: Settings) -> tuple[str, ...]:
    """The core's name of each output that the formats need."""
    return tuple(output for name in settings["format"] for output in FORMAT_OUTPUTS[name])


def view_outputs(settings: Settings) -> dict[str, tuple[str, PacketView]]:
    """By the core's name of each output of a view: what it is a view of, and the view."""
    return {
        f"view{number}_{output}": (output, view)
        for number, view in enumerate(packet_views(settings), start=1)
        for name in presets.PACKET_FORMATS
        if name in settings["format"]
        for output in FORMAT_OUTPUTS[name]
    }


# ---- what the manifest has ----------------------------------------------------------------------


def shown_window(settings: Settings) -> dict[str, Any]:
    """The window for people and for machines."""
    return _both_durations("window", settings["window"])


def shown_rotate(settings: Settings) -> dict[str, Any]:
    """The epoch for people and for machines."""
    return _both_durations("rotate", rotate_ns(settings))


def _both_durations(name: str, ns: int) -> dict[str, Any]:
    return {name: format_duration(ns), f"{name}_ns": ns}


def shown_split(settings: Settings) -> dict[str, Any]:
    """The length of a part, for people."""
    return {"split": None if settings["split"] is None else format_duration(settings["split"])}


def shown_keep(settings: Settings) -> dict[str, Any]:
    """How long parts stay, for people."""
    return {"keep": None if settings["keep"] is None else format_duration(settings["keep"])}


def shown_times(settings: Settings) -> dict[str, Any]:
    """How exact times are, for people."""
    return {"times": presets.written(settings["times"])}


def shown_hold(settings: Settings) -> dict[str, Any]:
    """How long packets wait, for people."""
    return {"hold": format_duration(settings["hold"])}


def shown_never(settings: Settings) -> dict[str, Any]:
    """The number of suffixes, which are names themselves."""
    return {"never_suffixes": len(settings["never"])}


def shown_target_k(settings: Settings) -> dict[str, Any]:
    """Of a z that follows the stream."""
    return {"target_k": settings["target_k"]} if follows_stream(settings) else {}


def shown_target_p(settings: Settings) -> dict[str, Any]:
    """Of a z that follows the stream."""
    return {"target_p": settings["target_p"]} if follows_stream(settings) else {}


def shown_z_max(settings: Settings) -> dict[str, Any]:
    """Of a z that follows the stream."""
    return {"z_max": z_limit(settings)} if follows_stream(settings) else {}


def shown_internal(settings: Settings) -> dict[str, Any]:
    """The networks, and the number of those so small that they identify their hosts."""
    nets = networks(settings)
    if nets is None:
        return {"internal": "private"}
    if {str(net) for net in nets} >= set(ANYWHERE):
        return {"internal": "any"}
    shown = [str(net) for net in nets if net.prefixlen <= SHOWN_PREFIX_MAX[net.version]]
    return {"internal": {"networks": shown, "not_shown": len(nets) - len(shown)}}


def key_mode(settings: Settings) -> str:
    """ "derived" from a key file, or "ephemeral"."""
    return "ephemeral" if settings["key_file"] is None else "derived"


def shown_key(settings: Settings) -> dict[str, Any]:
    """Whether there is a key file; neither the key nor its path."""
    return {"key_mode": key_mode(settings)}


def shown_filter(settings: Settings) -> dict[str, Any]:
    """Whether there is a filter, which may hold addresses."""
    return {"filtered": bool(settings["filter"])}


def shown_popularity(settings: Settings) -> dict[str, Any]:
    """Whether users are counted; not where the file lies."""
    return {"popularity": settings["popularity"] is not None}


def shown_header(settings: Settings) -> dict[str, Any]:
    """Whether CSV came without a header line."""
    return {"header": bool(settings["header"])}


# ---- what the core takes, where it is not the value itself --------------------------------------


def core_established(settings: Settings) -> bool:
    """Whether votes need evidence that the client is real."""
    return bool(settings["evidence"] == "established")


def core_dns_votes(settings: Settings) -> int:
    """The number of the records that DNS votes for."""
    return DNS_VOTES.index(settings["dns_votes"])


ORDERS = ("minute", presets.MINUTE_ALL, "closing")
"""As the core numbers them."""


def core_order(settings: Settings) -> int:
    """The number of the order."""
    return ORDERS.index(settings["order"])


def core_internal(settings: Settings) -> list[tuple[bytes, int]] | None:
    """The networks as prefixes of 16 bytes and their lengths."""
    nets = networks(settings)
    return None if nets is None else core_networks(nets)


PSEUDONYMS = ("networks", "crypto-pan", "random")
"""As the core numbers them."""


def core_pseudonyms(settings: Settings) -> tuple[int, int, int]:
    """The number of the kind, and the bits of the blocks that crypto-pan keeps."""
    kind, _, bits = settings["pseudonyms"].partition(":")
    v4, v6 = bits.split(",") if bits else (32, 128)
    return PSEUDONYMS.index(kind), int(v4), int(v6)


COARSE_ENDS = ("floored", "none")
COARSE_STEPS = ("sqrt2", "4", "16")
COARSE_CLIENTS = ("pseudonym", "none")
SIZES = ("exact", "2")
"""All as the core numbers them, but the last, of which it takes the number itself."""


def core_coarse_end(settings: Settings) -> int:
    """The number of what coarse records say of times."""
    return COARSE_ENDS.index(settings["coarse_end"])


def core_coarse_steps(settings: Settings) -> int:
    """The number of the base whose powers coarse records have as packets and bytes."""
    return COARSE_STEPS.index(settings["coarse_steps"])


def core_coarse_client(settings: Settings) -> int:
    """The number of what coarse records say of the client."""
    return COARSE_CLIENTS.index(settings["coarse_client"])


def core_times(settings: Settings) -> int:
    """The length to whose multiples times are rounded down, in nanoseconds; 0: exact."""
    times = settings["times"]
    return 0 if times == "exact" else int(times)


def core_digits(settings: Settings) -> int:
    """The leading digits that counts keep; 0: all."""
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
"""All as the core numbers them."""
TIMESTAMPS = {unit: UNITS_NS[unit] for unit in ("ns", "us", "ms")}
"""The units of packets' times, in ns."""


def core_payload(settings: Settings) -> int:
    """The number of what becomes of payload."""
    return PAYLOADS.index(settings["payload"])


def core_wide_addresses(settings: Settings) -> bool:
    """Whether pseudonyms in packets may be any address."""
    return bool(settings["packet_addresses"] == "wide")


def core_server_addresses(settings: Settings) -> int:
    """The number of what becomes of servers' addresses in packets."""
    return SERVER_ADDRESSES.index(settings["server_address"])


def core_macs(settings: Settings) -> int:
    """The number of what becomes of MAC addresses."""
    return MACS.index(settings["mac"])


def core_tcp_timestamps(settings: Settings) -> int:
    """The number of what becomes of TCP's timestamps."""
    return TCP_TIMESTAMPS.index(settings["tcp_timestamps"])


def core_keep_ttl(settings: Settings) -> bool:
    """Whether the time to live stays."""
    return bool(settings["ttl"] == "keep")


def core_keep_encapsulation(settings: Settings) -> bool:
    """Whether what is around packets stays."""
    return bool(settings["encapsulation"] == "keep")


def core_fingerprints(settings: Settings) -> int:
    """The number of whose fingerprints packets show."""
    return FINGERPRINTS.index(settings["fingerprint"])


def core_coarse_suppressed(settings: Settings) -> bool:
    """Whether packets leave of flows whose name is withheld."""
    return bool(settings["suppressed"] == "coarse")


def core_packet_times(settings: Settings) -> int:
    """The length to whose multiples packets' times are rounded down, in ns."""
    return TIMESTAMPS[settings["timestamps"]]


def core_never(settings: Settings) -> list[bytes]:
    """The suffixes as bytes."""
    return [suffix.encode("ascii") for suffix in settings["never"]]


def core_split(settings: Settings) -> int:
    """The length of a part in nanoseconds; 0: no limit."""
    return settings["split"] or 0


def core_popularity(settings: Settings) -> bool:
    """Whether a run stops at the end of each window for its counts to be read."""
    return follows_stream(settings) or settings["popularity"] is not None


def core_row_popularity(settings: Settings) -> bool:
    """Whether users are counted by attribute and window."""
    return settings["popularity"] is not None


def core_with_user(settings: Settings) -> bool:
    """Whether rows carry a pseudonym."""
    return not settings["no_user"]


def core_keep_suppressed(settings: Settings) -> bool:
    """Whether rows with a suppressed attribute are written, without it."""
    return bool(settings["suppressed"] == "blank")


def core_columns(settings: Settings) -> list[bytes]:
    """The columns of the time, the user, the attribute, and those passed on."""
    return [column.encode() for _role, column in _column_roles(settings)]


def core_delimiter(settings: Settings) -> int:
    """The byte between columns."""
    return ord("\t" if settings["delimiter"] == "tab" else settings["delimiter"])


def quote(settings: Settings) -> str:
    """The quoting of CSV's fields: as set, or as the delimiter has it."""
    usual = "none" if settings["delimiter"] in ("tab", "\t") else "csv"
    return settings["quote"] or usual


def shown_quote(settings: Settings) -> dict[str, Any]:
    """The quoting that applies."""
    return {"quote": quote(settings)}


def core_quotes(settings: Settings) -> bool:
    """True if fields of CSV can be quoted."""
    return quote(settings) == "csv"


def core_header(settings: Settings) -> bytes:
    """The header line as bytes."""
    return bytes(settings["header"].encode())


def core_tunnel_ports(settings: Settings) -> list[tuple[str, int]]:
    """The ports of tunnels, each with the tunnel's name."""
    return tunnel_ports(settings["tunnel_ports"])


def core_views(settings: Settings) -> list[tuple[int, int, int, int, int, bool]]:
    """The views, each as the members of the core's struct."""
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
