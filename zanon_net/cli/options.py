# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `zanon-net run` and their help. `Config` has the defaults; here they are told.

An option that sets something carries the name of the setting.
"""

from typing import Any

import click

from zanon_net.config.sections import TARGET_K, TARGET_Z_MAX
from zanon_net.config.settings import COMPRESSIONS, EVIDENCE, FORMAT_OUTPUTS, WORKERS_MAX, Config

MESSAGES = "Messages"
INPUT_AND_OUTPUT = "Input and output"
HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
EPILOG = """\b
To begin with:
  zanon-net inspect capture.pcap
  zanon-net run capture.pcap --internal 10.0.0.0/8 --out logs
  zanon-net COMMAND --help
"""

RUN_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d. SIZE is bytes: 500M, 20G.
An option overrides the same setting of --config.
Exit codes: 0 done, 1 could not be done, 2 wrong option or setting.

\b
Examples:
  zanon-net run capture.pcap
  sudo zanon-net run eth0 --internal 10.0.0.0/8 --status 10s --drop-to nobody --out /srv/logs
  zanon-net run --z 10 --window 30m --internal 10.0.0.0/8 --out logs mon.pcap tue.pcap
  zanon-net run captures/ more.pcap.zst --format observations --out - | head
"""


class GroupedOption(click.Option):
    """An option that `--help` lists under the heading `group`."""

    def __init__(self, *args: Any, group: str = MESSAGES, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose options stand under headings, in the order they were written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command; an error tells also here of which command it is."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options' part of `--help`."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", MESSAGES), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def setting(group: str, name: str, text: str, usual: object = None, **more: Any) -> GroupedOption:
    """An option under the heading `group`; `usual` is the default that its help tells."""
    shown = text if usual is None else f"{text} [default: {usual}]"
    return GroupedOption([name], group=group, help=shown, **more)


def switch(group: str, name: str, text: str, usual: str) -> GroupedOption:
    """An option without a value; `usual` says what holds when it is left out."""
    return setting(group, name, text, usual, is_flag=True, default=None)


def run_options() -> list[click.Parameter]:
    """SOURCE and every option of `run`, in the order of its help."""
    return [
        click.Argument(["source"], nargs=-1, required=True),
        *_anonymity(),
        *_addresses(),
        *_output(),
        *_input(),
        *_limits(),
        *_live(),
        *_messages(),
    ]


def _anonymity() -> list[GroupedOption]:
    group, default = "Anonymity", Config().anonymity
    return [
        setting(
            group,
            "--z",
            "Users that must share a name before it is released; 1 releases every name.",
            default.z,
            metavar="N",
            type=int,
        ),
        setting(
            group,
            "--window",
            "For how long a user's exposure to a name counts.",
            default.window,
            metavar="DURATION",
        ),
        setting(
            group,
            "--evidence",
            "What a client must show to count as a user: an established connection, or nothing"
            " (any; for captures of one direction only).",
            default.evidence,
            type=click.Choice(EVIDENCE),
        ),
        setting(
            group,
            "--dns-votes",
            "Whether names in DNS queries count; their senders can be forged.",
            "yes" if default.dns_votes else "no",
            type=click.Choice(["yes", "no"]),
        ),
        setting(
            group,
            "--never",
            "A file of suffixes, one a line; names that end in one are never released.",
            metavar="FILE",
        ),
        *_following_z(group),
        switch(
            group,
            "--exact",
            "Exact measurements also in flows whose name is suppressed.",
            "coarse times, packets and bytes",
        ),
        switch(
            group,
            "--dn-hunter",
            "Write in fqdn the name by which DNS gave the server's address, if z users share it.",
            "names in DNS queries only",
        ),
    ]


def _following_z(group: str) -> list[GroupedOption]:
    return [
        setting(
            group,
            "--target-p",
            "Let z follow the stream, so that with probability P a user's released names are also"
            " those of other users.",
            "z is fixed",
            metavar="P",
            type=float,
        ),
        setting(
            group,
            "--target-k",
            "How many users, the user included, share these names; for --target-p.",
            TARGET_K,
            metavar="K",
            type=int,
        ),
        setting(
            group,
            "--z-max",
            "The largest z that --target-p may take; --z is the smallest.",
            TARGET_Z_MAX,
            metavar="N",
            type=int,
        ),
    ]


def _addresses() -> list[GroupedOption]:
    group, default = "Addresses", Config().addresses
    return [
        setting(
            group,
            "--internal",
            "The users' networks: a list such as 10.0.0.0/8,fd00::/8, a file with one a line, or"
            " 'any'.",
            "private ranges, else whoever opened the flow",
            metavar="NETS",
        ),
        setting(
            group,
            "--user-prefix",
            "Leading bits of an IPv4 and of an IPv6 address that tell users apart.",
            ",".join(map(str, default.user_prefix)),
            metavar="BITS,BITS",
        ),
        setting(
            group,
            "--rotate",
            "How long one key makes the pseudonyms.",
            "the window",
            metavar="DURATION",
        ),
        setting(
            group,
            "--key-file",
            "The key of the pseudonyms, made by 'zanon-net key new': the same in every run.",
            "a random key that is never stored",
            metavar="FILE",
        ),
        switch(group, "--keep-client-port", "Write client ports as they are.", "0 instead"),
    ]


def _output() -> list[GroupedOption]:
    group, default = INPUT_AND_OUTPUT, Config().output
    return [
        setting(
            group,
            "--out",
            "A folder that is new or empty, or '-' for standard output (csv, jsonl, observations).",
            "./zanon-<UTC start>",
            metavar="DIR",
        ),
        setting(
            group,
            "--format",
            "What to write; repeatable.",
            " ".join(default.format),
            type=click.Choice(list(FORMAT_OUTPUTS)),
            multiple=True,
        ),
        setting(
            group,
            "--columns",
            "Column sets of the flow logs: core, and any of layer7, e2e, options, p2p.",
            ",".join(default.columns),
            metavar="SETS",
        ),
        setting(
            group,
            "--compress",
            "How files are compressed; Parquet with none: snappy.",
            default.compress,
            type=click.Choice(COMPRESSIONS),
        ),
        setting(
            group,
            "--split",
            "Begin new files at each multiple of this packet time, such as 1h; whole minutes only.",
            "no limit",
            metavar="DURATION",
        ),
        setting(
            group,
            "--split-size",
            "Begin new files when one reaches this size, such as 500M.",
            "no limit",
            metavar="SIZE",
        ),
        setting(
            group,
            "--popularity",
            "Also count how many users share names, for 'zanon-net model' and 'tune'; for the"
            " operator, not for release.",
            metavar="FILE",
        ),
    ]


def _input() -> list[GroupedOption]:
    group = INPUT_AND_OUTPUT
    return [
        setting(
            group,
            "--filter",
            "Read only packets that match this capture filter, as of tcpdump: 'port 443'.",
            metavar="BPF",
        ),
        setting(
            group,
            "--max-bytes",
            "The most that a compressed source may unpack to, such as 20G.",
            "200 times its size, at least 1G",
            metavar="SIZE",
        ),
        GroupedOption(
            ["--config", "config_file"],
            group=group,
            metavar="FILE",
            help="Settings from a TOML file; 'zanon-net config' writes one.",
        ),
    ]


def _limits() -> list[GroupedOption]:
    group, default = "Limits", Config().limits
    return [
        setting(
            group,
            "--max-flows",
            "Open flows at a time; beyond it those idle for longest are closed early, and counted.",
            default.max_flows,
            metavar="N",
            type=int,
        ),
        setting(
            group,
            "--workers",
            f"Threads that share the work, up to {WORKERS_MAX}; what is written stays the same.",
            default.workers,
            metavar="N",
            type=int,
        ),
    ]


def _live() -> list[GroupedOption]:
    group, default = "Interfaces", Config().live
    return [
        setting(
            group,
            "--status",
            "How often to report what was read, released and lost; for captures, too.",
            metavar="DURATION",
        ),
        setting(
            group,
            "--ring",
            "Memory of each interface for frames that wait to be read.",
            f"{default.ring_bytes >> 20}M",
            metavar="SIZE",
        ),
        setting(
            group,
            "--snaplen",
            "Bytes kept of each frame; a name beyond them is not seen.",
            default.snaplen,
            metavar="BYTES",
            type=int,
        ),
        setting(
            group,
            "--promiscuous",
            "Whether to take frames for other hosts, too.",
            "yes" if default.promiscuous else "no",
            type=click.Choice(["yes", "no"]),
        ),
        setting(
            group,
            "--drop-to",
            "Once everything is open, go on as this user instead of root.",
            metavar="USER",
        ),
    ]


def json_option(text: str) -> GroupedOption:
    """--json, with `text` to say where the manifest goes."""
    return GroupedOption(["--json", "as_json"], group=MESSAGES, is_flag=True, help=text)


def _messages() -> list[GroupedOption]:
    group = MESSAGES
    return [
        json_option("Print the manifest, not the summary: on stdout, or on stderr with --out -."),
        GroupedOption(
            ["-q", "--quiet"], group=group, is_flag=True, help="No summary and no progress bar."
        ),
        GroupedOption(
            ["-v", "--verbose"], group=group, is_flag=True, help="Also say what is being done."
        ),
    ]
