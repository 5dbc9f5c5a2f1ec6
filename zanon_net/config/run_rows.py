# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `run`: its rows of the table in `schema`."""

from functools import partial
from typing import Any

from zanon_net.config import cap_rows, list_rows, list_rules, presets, rules
from zanon_net.config.formats import FORMATS
from zanon_net.config.rules import COUNT_MAX, Z_MAX
from zanon_net.config.setting import KEY_HELP, RANDOM_KEY, Setting
from zanon_net.config.types import (
    AT_LEAST_TWO,
    CAPTURE_FILTER,
    DEPENDENT_NUMBER,
    DNS_VOTES,
    DURATION,
    FILE_MODE,
    FLAG,
    KEY_FILE,
    LISTEN_ADDRESS,
    METRICS_FILE,
    NETWORKS,
    NEW_FILE,
    PERCENTAGE,
    PREFIX_LENGTHS,
    PROBABILITY,
    PSEUDONYMS,
    RING_SIZE,
    ROUNDED_TIMES,
    SIZE,
    SUFFIXES,
    TUNNEL_PORTS,
    USER,
    WHOLE_MINUTES,
    any_of,
    column_sets,
    one_of,
    some_of,
    whole_number,
    word_or_number,
)

WORKERS_MAX = 64
SHARDS_MAX = 64
SNAPLEN_MAX = 1 << 18  # the largest of libpcap
COMPRESSIONS = ("none", "gzip", "zstd")
COLUMN_SETS = ("core", "layer7", "e2e", "options", "p2p", "levels")
STATUS_FORMATS = ("text", "json")
ON_FULL = ("stop", "wait")
EVIDENCE = ("established", "any")
ON_LOST = ("fail", "wait", "end")
TUPLES, ATTRIBUTES = 1 << 26, 1 << 24
BOTH, OF_LOGS = ("run", "packets"), ("run",)
"""Commands that take a setting of packets and logs, and commands that take a setting of logs."""


_anonymity = partial(Setting, commands=BOTH, section="anonymity", heading="Anonymity")
_ANONYMITY = (
    _anonymity(
        name="z",
        type=whole_number("users", 1, Z_MAX),
        default=20,
        help="Users that must share a name before it is released; 1 releases every name.",
        manifest="as it is",
        core="z",
    ),
    _anonymity(
        name="window",
        type=DURATION,
        default="1h",
        help="For how long a user's exposure to a name counts.",
        manifest=rules.shown_window,
        core="window_ns",
    ),
    _anonymity(
        name="evidence",
        type=one_of(EVIDENCE, "must be established or any"),
        default="established",
        help="Evidence that a client counts as a user: an established connection, or no evidence"
        " (any; for captures of one direction only).",
        about='whether only clients that proved to be real count ("established"), or all ("any")',
        manifest="as it is",
        core="established",
        core_value=rules.core_established,
    ),
    _anonymity(
        name="dns_votes",
        type=DNS_VOTES,
        default=None,
        usual=presets.usual("dns_votes"),
        example="own",
        help="Records that DNS questions, whose senders can be forged, vote for: DNS records,"
        " counted apart; all; or none: one is then shown if z users of other protocols share it.",
        about="the records that DNS questions vote for: DNS records (own), all, or none (no)",
        manifest="as it is",
        core="dns_votes",
        core_value=rules.core_dns_votes,
    ),
    _anonymity(
        name="never",
        type=SUFFIXES,
        default=(),
        help="A file of suffixes, one a line; names that end in one are never released. SIGHUP"
        " reads it again.",
        about="a file with suffixes of names never to release, one a line; SIGHUP reads it again",
        example="never.txt",
        manifest=rules.shown_never,
        core="never",
        core_value=rules.core_never,
        core_kind="texts",
    ),
    _anonymity(
        name="exact",
        type=FLAG,
        default=False,
        rank=2,
        option=("--exact", "--no-coarsen"),
        help="Exact measurements also in flows whose name is suppressed, and their packets with the"
        " name masked; with them other records of the same traffic can be matched to these flows.",
        usual="coarse times, packets and bytes",
        about="exact measurements also in flows whose name is suppressed",
        manifest="as it is",
        core="exact",
    ),
    _anonymity(
        name="dn_hunter",
        commands=OF_LOGS,
        type=FLAG,
        default=False,
        rank=2,
        help="Write in fqdn the name by which DNS gave the server's address, if z users share it.",
        usual="names in DNS queries only",
        about="write in fqdn the name by which DNS gave the server, if z users share it",
        manifest="as it is",
        core="dn_hunter",
    ),
    _anonymity(
        name="target_k",
        type=AT_LEAST_TWO,
        default=None,
        rank=1,
        help="The number of users, the user included, that share these names; with --target-p.",
        usual=str(rules.TARGET_K),
        about="with target_p: how many users share these names, the user included; default 2",
        example=rules.TARGET_K,
        check=rules.check_target,
        manifest=rules.shown_target_k,
    ),
    _anonymity(
        name="target_p",
        type=PROBABILITY,
        default=None,
        help="Let z follow the stream, so that with probability P a user's released names are"
        " also names of other users.",
        usual="z is fixed",
        about="z follows the stream; probability that others share a user's names",
        example=rules.TARGET_P,
        check=rules.check_target,
        manifest=rules.shown_target_p,
    ),
    _anonymity(
        name="z_max",
        type=DEPENDENT_NUMBER,
        default=None,
        rank=1,
        help="The largest z that --target-p may take; --z is the smallest.",
        usual=str(rules.TARGET_Z_MAX),
        about="with target_p: the largest z that it may set, z being the smallest; default 1000",
        example=rules.TARGET_Z_MAX,
        check=rules.check_target,
        manifest=rules.shown_z_max,
        core="z_max",
        core_value=rules.z_limit,
    ),
    _anonymity(
        name="levels",
        type=any_of(rules.LEVELS, "LEVELS"),
        default=(),
        rank=1,
        help="Publish a name or server address that too few users share as its domain, category, AS"
        " or country, if z users are behind this label: any of domain,category,as,country.",
        usual="rare values are suppressed",
        about="labels that replace rare names and addresses if z users are behind them",
        example=["domain", "category", "as"],
        check=list_rules.check_lists,
        manifest=list_rules.shown_levels,
        core="levels",
        core_kind="levels",
    ),
    _anonymity(
        name="attributes",
        commands=OF_LOGS,
        type=any_of(rules.ATTRIBUTES, "ATTRIBUTES"),
        default=(),
        rank=1,
        help="Further attributes of flows that vote like names and get columns of their own:"
        f" any of {','.join(rules.ATTRIBUTES)}.",
        usual="none",
        about="attributes of flows besides names that are released if z users share them",
        example=["alpn"],
        manifest=list_rules.shown_attributes,
        core="attributes",
        core_kind="attributes",
    ),
    *list_rows.ROWS,
)


_addresses = partial(Setting, commands=BOTH, section="addresses", heading="Addresses")
_ADDRESSES = (
    _addresses(
        name="internal",
        type=NETWORKS,
        default=None,
        help="The users' networks: a list such as 10.0.0.0/8,fd00::/8, a file with one a"
        " line, or 'any'.",
        usual="private ranges, else the side that opened the flow",
        about="the users' networks: a list, a file (such as Tstat's for -N) or \"any\"",
        example="10.0.0.0/8,fd00::/8",
        manifest=rules.shown_internal,
        core="internal",
        core_value=rules.core_internal,
        core_kind="networks",
    ),
    _addresses(
        name="user_prefix",
        type=PREFIX_LENGTHS,
        default=(32, 56),
        help="Leading bits of an IPv4 and of an IPv6 address that tell users apart.",
        manifest="as it is",
        core="user_prefix",
        core_kind="prefix lengths",
    ),
    _addresses(
        name="pseudonyms",
        type=PSEUDONYMS,
        default=None,
        usual=presets.usual("pseudonyms"),
        example="networks",
        help="Parts that pseudonyms of addresses keep: internal networks; the prefixes of blocks"
        " (all prefixes without P4,P6), by which two epochs can be joined; or nothing.",
        about="what pseudonyms keep: the internal networks, the prefixes of blocks, or nothing",
        manifest="as it is",
        core="pseudonyms",
        core_value=rules.core_pseudonyms,
        core_kind="pseudonyms",
    ),
    _addresses(
        name="keep_client_port",
        type=FLAG,
        default=False,
        rank=1,
        help="Write client ports as they are.",
        usual="0 instead",
        about="client ports as they are, instead of 0",
        manifest="as it is",
        core="keep_client_port",
    ),
    _addresses(
        name="rotate",
        type=DURATION,
        default=None,
        help="The time for which one key makes the pseudonyms.",
        usual="the window",
        about="how long one key makes the pseudonyms; left out: as long as the window",
        example="1h",
        manifest=rules.shown_rotate,
        core="rotate_ns",
        core_value=rules.rotate_ns,
    ),
    _addresses(
        name="key_file",
        type=KEY_FILE,
        default=None,
        help=KEY_HELP,
        usual=RANDOM_KEY,
        about="made by `zanon-net key new zanon.key`; left out: a key that is never stored",
        example="zanon.key",
        manifest=rules.shown_key,
        core="key_file",
        core_kind="path",
    ),
)


_input = partial(Setting, commands=BOTH, section="input", heading="Input and output")
_INPUT = (
    _input(
        name="filter",
        type=CAPTURE_FILTER,
        default="",
        rank=1,
        help="Read only packets that match this capture filter, in tcpdump's syntax: 'port 443'.",
        about="read only packets that match this capture filter, in tcpdump's syntax",
        example="tcp port 443 or udp port 53",
        manifest=rules.shown_filter,
    ),
    _input(
        name="max_bytes",
        type=SIZE,
        default=None,
        rank=1,
        help="The most that a compressed source may unpack to, such as 20G.",
        usual="200 times its size, at least 1G",
        about="most bytes a source may unpack to; left out: 200 times its size, at least 1G",
        example="20G",
        manifest="as it is",
    ),
    _input(
        name="tunnel_ports",
        option=("--tunnel-port",),
        type=TUNNEL_PORTS,
        default=(),
        rank=1,
        help="Read this UDP port as a tunnel's, too: vxlan:4799. Names: vxlan, geneve, gtp-u,"
        " teredo, l2tp, ayiya, capwap, lisp, mpls, tzsp, hp-erm, gre; repeatable.",
        usual="the assigned ports only",
        about="UDP ports that carry tunnels, in addition to the assigned ports",
        example=["vxlan:4799"],
        manifest="as it is",
        core="tunnel_ports",
        core_value=rules.core_tunnel_ports,
        core_kind="tunnel ports",
    ),
)


_output = partial(Setting, commands=BOTH, section="output", heading="Input and output")


def _detail(name: str, **row: Any) -> Setting:
    """Returns a setting about the detail of records, whose default is the preset's."""
    return _output(
        heading="Anonymity",
        name=name,
        default=None,
        rank=2,
        usual=presets.usual(name),
        example=presets.written(presets.PRESETS[name].public),
        **{"manifest": "as it is"} | row,
    )


_OUTPUT = (
    _output(
        name="format",
        commands=OF_LOGS,
        type=some_of(FORMATS),
        default=("tstat",),
        help="The format of the output; repeatable.",
        about=", ".join(FORMATS),
        check=rules.check_public,
        manifest="as it is",
        core="outputs",
        core_value=rules.outputs,
        core_kind="outputs",
    ),
    _output(
        name="columns",
        commands=OF_LOGS,
        type=column_sets(COLUMN_SETS),
        default=("core", "layer7"),
        help="Column sets of the flow logs: core, and any of layer7, e2e, options, p2p, levels.",
        about="core, and any of layer7, e2e, options, p2p, levels",
        check=rules.check_detail,
        manifest="as it is",
        core="columns",
        core_kind="column sets",
    ),
    _output(
        name="compress",
        commands=OF_LOGS,
        type=one_of(COMPRESSIONS, f"must be {', '.join(COMPRESSIONS)}"),
        default="none",
        help="Compression of files; Parquet with none uses snappy.",
        about='"none", "gzip" or "zstd"; Parquet with none uses snappy',
        manifest="as it is",
    ),
    _output(
        name="split",
        commands=OF_LOGS,
        type=WHOLE_MINUTES,
        default=None,
        help="Begin new files at each multiple of this packet time, such as 1h; whole minutes"
        " only.",
        usual="no limit",
        about="new files at each multiple of this packet time; whole minutes only",
        example="1h",
        manifest=rules.shown_split,
        core="split_ns",
        core_value=rules.core_split,
    ),
    _output(
        name="split_size",
        commands=OF_LOGS,
        type=SIZE,
        default=None,
        help="Begin new files when one reaches this size, such as 500M.",
        usual="no limit",
        about="new files when one reaches this size",
        example="2G",
        manifest="as it is",
    ),
    _output(
        name="mode",
        type=FILE_MODE,
        default="600",
        help="The mode of the manifest and of the file of --popularity, such as 640.",
        about="the mode of the manifest and of the file of `popularity`",
        manifest="nothing",
    ),
    _output(
        name="popularity",
        type=NEW_FILE,
        default=None,
        help="Count how many users share names, too, for 'zanon-net model' and 'tune'; for the"
        " operator, not for release.",
        about="counts of users per name and window, for the operator, not for release",
        example="popularity.json",
        manifest=rules.shown_popularity,
        core="popularity",
        core_value=rules.core_popularity,
    ),
    _output(
        heading="Anonymity",
        name="purpose",
        option=("--for",),
        type=one_of(presets.PURPOSES, "must be internal, partner or public"),
        default=presets.PURPOSE,
        rank=-1,
        help="Reader of the output: a preset of --pseudonyms, --dns-votes, of the detail of records"
        " with a suppressed name (--coarse-...), and of --order, --times and --sizes. Options"
        " that are set override it; the summary and the manifest name the weaker options.",
        about="the reader of the output: presets the settings below whose default depends on it",
        manifest="as it is",
    ),
    _detail(
        name="coarse_end",
        commands=OF_LOGS,
        type=one_of(rules.COARSE_ENDS, "must be floored or none"),
        help="Times of a record with a suppressed name: first and last packet, down to the minute"
        " (floored), or for both the minute in which the flow closed (none).",
        core="coarse_end",
        core_value=rules.core_coarse_end,
    ),
    _detail(
        name="coarse_steps",
        commands=OF_LOGS,
        type=word_or_number(rules.COARSE_STEPS, "must be sqrt2, 4 or 16"),
        help="Packets and bytes of a record with a suppressed name are rounded up to powers of this"
        " base.",
        core="coarse_steps",
        core_value=rules.core_coarse_steps,
    ),
    _detail(
        name="coarse_client",
        type=one_of(rules.COARSE_CLIENTS, "must be pseudonym or none"),
        help="The client in a record with a suppressed name, and in its coarse packets: a pseudonym"
        " of the client, or no client.",
        core="coarse_client",
        core_value=rules.core_coarse_client,
    ),
    _detail(
        name="order",
        commands=OF_LOGS,
        type=one_of(rules.ORDERS, "must be minute, minute-all or closing"),
        help="When records leave: those with a suppressed name when their minute is over, in random"
        " order (minute); all records and observations so, times down to the minute (minute-all);"
        " or each as its flow closes.",
        core="order",
        core_value=rules.core_order,
    ),
    _detail(
        name="times",
        commands=OF_LOGS,
        type=ROUNDED_TIMES,
        help="Times in all other records, and in observations: exact, or rounded down to multiples"
        " of a duration.",
        check=rules.check_detail,
        manifest=rules.shown_times,
        core="times_ns",
        core_value=rules.core_times,
    ),
    _detail(
        name="sizes",
        commands=OF_LOGS,
        type=word_or_number(rules.SIZES, "must be exact or 2"),
        help="Packets, bytes and other counts above 99 in these records: exact, or their two"
        " leading digits.",
        check=rules.check_detail,
        core="digits",
        core_value=rules.core_digits,
    ),
    _output(
        name="flush",
        type=DURATION,
        default="5s",
        help="The longest time that written records wait in buffers before they are readable in"
        " .partial files; a Parquet file cannot be read before its end.",
        about="how long written records wait in buffers at most; of Parquet all wait",
        manifest="nothing",
    ),
    _output(
        name="keep",
        commands=OF_LOGS,
        type=DURATION,
        default=None,
        help="Remove parts that have been over for longer than this, such as 7d; needs --split or"
        " --split-size.",
        usual="all stay",
        about="remove parts that have been over for longer than this; left out: all stay",
        example="7d",
        check=rules.check_parts,
        manifest=rules.shown_keep,
    ),
    _output(
        name="max_disk",
        commands=OF_LOGS,
        type=SIZE,
        default=None,
        help="Remove the oldest parts while all of them and the open one take more than this, such"
        " as 100G; needs --split or --split-size.",
        usual="no limit",
        about="remove the oldest parts while all take more than this; left out: no limit",
        example="100G",
        check=rules.check_parts,
        manifest="as it is",
    ),
    _output(
        name="on_full",
        commands=OF_LOGS,
        type=one_of(ON_FULL, "must be stop or wait"),
        default="stop",
        help="Reaction to a full disk: stop, with all whole records; or wait for space. On"
        " interfaces the run then continues, and counts the records that it cannot write.",
        about='on a full disk: "stop", or "wait" for space',
        manifest="as it is",
    ),
    _output(
        name="partition",
        commands=OF_LOGS,
        type=one_of(rules.PARTITIONS, "must be none, day or day,hour"),
        default="none",
        help="Put Parquet files into folders day=YYYY-MM-DD, or also hour=HH, by the time of a"
        " flow's first packet in UTC.",
        about="folders of Parquet files, by the time of a flow's first packet in UTC",
        check=rules.check_partition,
        manifest="as it is",
    ),
)


_limits = partial(Setting, commands=BOTH, section="limits", heading="Limits")
_LIMITS = (
    _limits(
        name="max_flows",
        type=whole_number("flows", 1, COUNT_MAX),
        default=1 << 20,
        help="Open flows at a time; beyond it those idle for longest are closed early, and"
        " counted.",
        about="open flows at a time; beyond it those idle for longest are closed early",
        manifest="as it is",
        core="max_flows",
    ),
    _limits(
        heading="",
        name="max_tuples",
        type=whole_number("pairs", 1, COUNT_MAX),
        default=TUPLES,
        about="(user, name) pairs remembered; beyond it the oldest are forgotten",
        manifest="as it is",
        core="max_tuples",
    ),
    _limits(
        heading="",
        name="max_attributes",
        type=whole_number("names", 1, COUNT_MAX),
        default=ATTRIBUTES,
        about="names and addresses remembered; beyond it the oldest are forgotten",
        manifest="as it is",
        core="max_attributes",
    ),
    _limits(
        name="workers",
        type=whole_number("threads", 1, WORKERS_MAX),
        default=1,
        help=f"Threads that share the work, up to {WORKERS_MAX}; they do not change the output. Two"
        " take up to twice the CPU time. They are faster for captures of long flows on idle"
        " processors, and not with mostly new flows or on busy processors. See --shards.",
        about="threads that share the work; they do not change the output",
        manifest="nothing",
        core="workers",
    ),
    _limits(
        commands=OF_LOGS,
        name="shards",
        type=whole_number("processes", 1, SHARDS_MAX),
        default=1,
        help="Processes that read their own part of the traffic and share one z: rings of an"
        " interface, or captures that share no flow. Needs --key-file.",
        about="processes that read their own part of the traffic and share one z",
        manifest=rules.shown_shards,
    ),
)


_live = partial(Setting, commands=BOTH, section="live", heading="Interfaces")
_LIVE = (
    _live(
        name="ring",
        type=RING_SIZE,
        default=64 << 20,
        help="Memory of each interface for frames that wait to be read.",
        manifest="as it is",
    ),
    _live(
        name="snaplen",
        type=whole_number("bytes", 64, SNAPLEN_MAX, "BYTES"),
        default=SNAPLEN_MAX,
        help="Bytes kept of each frame; a name beyond them is not seen.",
        manifest="as it is",
    ),
    _live(
        name="promiscuous",
        type=FLAG,
        default=True,
        help="Read frames for other hosts, too.",
        about="whether an interface takes frames for other hosts too",
        manifest="as it is",
    ),
    _live(
        name="status",
        type=DURATION,
        default=None,
        rank=-1,
        help="Time between two reports of what was read, released and lost; for captures, too.",
        about="how often to report on the run; left out: never",
        example="10s",
        manifest="nothing",
    ),
    _live(
        name="fail_on_loss",
        type=PERCENTAGE,
        default=None,
        help="Exit with 1 when more than this share of the packets was lost, in percent; the output"
        " is whole all the same.",
        usual="a loss is only reported",
        about="exit code 1 when more than this percentage of the packets was lost; left out: a loss"
        " is only reported",
        example=1,
        manifest="as it is",
    ),
    _live(
        name="drop_to",
        type=USER,
        default=None,
        help="Once everything is open, continue as this user instead of root.",
        about="the user to continue as instead of root, once everything is open",
        example="nobody",
        manifest="nothing",
    ),
    _live(
        name="status_format",
        type=one_of(STATUS_FORMATS, "must be text or json"),
        default="text",
        rank=-1,
        help="Form of --status: a line of text (a table on a terminal), or an object of JSON a"
        " line.",
        about="what status lines are: text (a table on a terminal), or objects of JSON",
        manifest="nothing",
    ),
    _live(
        heading="Metrics",
        name="metrics",
        type=LISTEN_ADDRESS,
        default=None,
        help="Serve metrics of the run for Prometheus at http://ADDR:PORT/metrics; counts only, of"
        " three digits, updated every 10 s.",
        about="serve metrics for Prometheus at this address and port",
        example="127.0.0.1:9464",
        check=rules.check_metrics,
        manifest="nothing",
    ),
    _live(
        heading="Metrics",
        name="metrics_anywhere",
        type=FLAG,
        default=False,
        help="Let other machines reach the metrics, which have neither a password nor encryption.",
        about="whether the metrics may listen where other machines reach them",
        manifest="nothing",
    ),
    _live(
        heading="Metrics",
        name="metrics_file",
        type=METRICS_FILE,
        default=None,
        help="Write the same metrics into this file, for node_exporter's textfile collector; its"
        " name ends in .prom.",
        about="write metrics into this file, for node_exporter's textfile collector",
        example="/run/zanon-net/zanon.prom",
        manifest="nothing",
    ),
    _live(
        name="on_lost",
        type=one_of(ON_LOST, "must be fail, wait or end"),
        default="fail",
        help="When an interface goes away: fail and end also end the run, with exit code 1 and 0,"
        " and the output is whole; wait reads it again when it is back, and the others meanwhile.",
        about="when an interface goes away: fail and end also end the run, with exit code 1 and 0;"
        " wait reads it again when it is back",
        manifest="as it is",
    ),
)


ROWS = (*_ANONYMITY, *cap_rows.ROWS, *_ADDRESSES, *_INPUT, *_OUTPUT, *_LIMITS, *_LIVE)
