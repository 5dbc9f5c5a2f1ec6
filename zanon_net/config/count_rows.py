# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `count`: its rows of the table in `schema`."""

from dataclasses import replace
from functools import partial

from zanon_net.config import count_rules, rules
from zanon_net.config.probe_rules import MODES, shown_rotation
from zanon_net.config.rules import COUNT_MAX, Z_MAX
from zanon_net.config.setting import Setting
from zanon_net.config.types import (
    DURATION,
    FILE,
    FLAG,
    KEY_FILE,
    LISTEN_ADDRESS,
    METRICS_FILE,
    Type,
    one_of,
    whole_number,
)

SHARDS_MAX = 256
KNOWN_PROBES = 4096  # probes in one shard at once, as DEFAULT_PROBES of csrc/count/vote_shard.c
FOLDER: Type = replace(FILE, range="a folder", metavar="DIR")
SHARD_COUNT = replace(
    whole_number("shards", 1, SHARDS_MAX),
    read=count_rules.power_of_two,
    range=f"a power of two, 1 to {SHARDS_MAX}",
)

_anonymity = partial(Setting, commands=("count",), heading="Anonymity (as every probe has it)")
_ANONYMITY = (
    _anonymity(
        name="z",
        type=whole_number("users", 1, Z_MAX),
        default=20,
        help="Users, over all probes, that must share a name before it is released.",
        manifest="as it is",
    ),
    _anonymity(
        name="window",
        type=DURATION,
        default="1h",
        help="For how long a user's exposure to a name counts.",
        manifest=rules.shown_window,
    ),
    _anonymity(
        name="rotate",
        type=DURATION,
        default=None,
        help="The length of an epoch. An address of a client is no server's in the same epoch.",
        usual="the window",
        manifest=rules.shown_rotate,
    ),
    _anonymity(
        name="count_rotate",
        type=DURATION,
        default=None,
        help="The lifetime of the key of the probes' hashes; at least a window and two epochs.",
        usual="never",
        check=count_rules.check_rotation,
        manifest=shown_rotation,
    ),
)

_files = partial(Setting, commands=("count",), heading="Input and output", manifest="nothing")
_FILES = (
    _files(
        name="out",
        type=FOLDER,
        default=None,
        help="The folder that answers for file:DIR are written to.",
        usual="DIR/answers",
        check=count_rules.check_tls,
    ),
    _files(
        name="releases",
        type=FOLDER,
        default=None,
        help="Write what was released, too, as hashes, a file a commit; for audits.",
    ),
    _files(
        name="sealed_out",
        type=FOLDER,
        default=None,
        help="With --mode sealed: the folder of released rows, a file a commit, for 'unseal'.",
        check=count_rules.check_mode,
    ),
    _files(
        name="observations_out",
        type=FOLDER,
        default=None,
        help="With --mode threshold: the folder of observations, a file a commit.",
        check=count_rules.check_mode,
    ),
    _files(
        name="tls_cert",
        type=FILE,
        default=None,
        help="The counter's certificate, in PEM, for tls://.",
        check=count_rules.check_tls,
    ),
    _files(
        name="tls_key",
        type=FILE,
        default=None,
        help="Its private key.",
        check=count_rules.check_tls,
    ),
    _files(
        name="tls_ca",
        type=FILE,
        default=None,
        help="The authority whose certificates probes have to show.",
        check=count_rules.check_tls,
    ),
)

_rows = partial(
    Setting, commands=("count",), heading="Rows that come with votes", manifest="as it is"
)
_ROWS = (
    _rows(
        name="mode",
        type=one_of(MODES, "must be ask, sealed or threshold"),
        default="ask",
        help="Content of a vote: nothing else, a row sealed to its reader, or a row that opens"
        " with z users' shares.",
        check=count_rules.check_mode,
    ),
    _rows(
        name="threshold_epochs",
        type=whole_number("epochs", 1, 16),
        default=4,
        help="With threshold: the number of epochs that overlap; equal on every probe.",
    ),
)

_probes = partial(Setting, commands=("count",), heading="Probes", manifest="as it is")
_PROBES = (
    _probes(
        name="shards",
        type=SHARD_COUNT,
        default=1,
        help="The number of shards that the names are divided among.",
    ),
    _probes(
        name="expect_probes",
        type=whole_number("probes", 0, KNOWN_PROBES),
        default=0,
        help="Decide nothing before this number of probes has joined.",
        check=count_rules.check_until_done,
    ),
    _probes(
        name="until_done",
        type=FLAG,
        default=False,
        help="End when all expected probes have ended, as probes that read captures do.",
        check=count_rules.check_until_done,
    ),
    _probes(
        name="probe_timeout",
        type=DURATION,
        default="30s",
        help="Continue without a probe that is silent for this long; its later votes are late.",
        manifest="nothing",
    ),
    _probes(
        name="max_skew",
        type=DURATION,
        default="10m",
        help="Refuse votes that are further than this ahead of this machine's clock.",
        manifest="nothing",
    ),
    _probes(
        name="max_users_per_probe",
        type=whole_number("users", 1, COUNT_MAX),
        default=None,
        help="Users of a probe in a window; votes of further users do not count.",
        usual="no limit",
    ),
)

_state = partial(Setting, commands=("count",), heading="State", manifest="nothing")
_STATE = (
    _state(
        name="state",
        type=FOLDER,
        default=None,
        help="The folder of the sealed state, from which a counter that starts again resumes.",
        usual="none: a new count",
        check=count_rules.check_state,
    ),
    _state(
        name="state_key_file",
        type=KEY_FILE,
        default=None,
        help="The key of the state, made by 'zanon-net key new'; not the key of any probe.",
        check=count_rules.check_state,
    ),
)

_metrics = partial(
    Setting,
    commands=("count",),
    heading="Metrics",
    manifest="nothing",
    check=rules.check_metrics,
)
_METRICS = (
    _metrics(
        name="metrics",
        type=LISTEN_ADDRESS,
        default=None,
        help="Serve metrics for Prometheus on this address.",
    ),
    _metrics(
        name="metrics_anywhere",
        type=FLAG,
        default=False,
        help="Allow an address of --metrics that other machines reach.",
    ),
    _metrics(
        name="metrics_file",
        type=METRICS_FILE,
        default=None,
        help="Keep the metrics in this file, for node_exporter.",
    ),
)

_limits = partial(
    Setting,
    commands=("count",),
    heading="Limits (at which more is suppressed)",
    manifest="as it is",
)
_LIMITS = (
    _limits(
        name="max_tuples",
        type=whole_number("pairs", 1, COUNT_MAX),
        default=1 << 26,
        help="Pairs of name and user kept at once, in all shards together.",
    ),
    _limits(
        name="max_attributes",
        type=whole_number("names", 1, COUNT_MAX),
        default=1 << 24,
        help="Names and addresses kept at once.",
    ),
    _limits(
        name="max_clients",
        type=whole_number("addresses", 1, COUNT_MAX),
        default=1 << 22,
        help="Addresses of clients known in an epoch.",
    ),
    _limits(
        name="max_pending",
        type=whole_number("votes", 1, COUNT_MAX),
        default=1 << 24,
        help="Votes that wait for slower probes; a probe with more votes has to wait, too.",
    ),
)

ROWS = (*_ANONYMITY, *_FILES, *_ROWS, *_PROBES, *_STATE, *_METRICS, *_LIMITS)
