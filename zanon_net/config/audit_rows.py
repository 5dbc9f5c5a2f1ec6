# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `audit`: their rows of the table in `schema`."""

from dataclasses import replace
from functools import partial

from zanon_net.config.column_types import COLUMN_LIST
from zanon_net.config.presets import PURPOSES
from zanon_net.config.setting import Setting
from zanon_net.config.types import (
    DURATION,
    FILE,
    KEY_FILE,
    NETWORKS,
    SIZE,
    SUFFIXES,
    one_of,
    several,
    whole_number,
)

METRICS = (
    *("k", "k_windows", "prosecutor", "marketer", "unicity", "reid", "operator", "link", "bits"),
    *("compose", "suppressed", "disclosure", "sensitive", "order", "entropy"),
)
"""The names of the metrics."""
CHECKS = (
    *("names", "reasons", "attributes", "addresses", "hidden", "coarse", "pseudonyms", "sums"),
    "format",
)
"""The names of the checks against captures."""
_METRIC = several(
    replace(
        one_of((*METRICS, *CHECKS), f"must be one of {', '.join((*METRICS, *CHECKS))}"),
        words=(),
        metavar="NAME",
    )
)
WORKERS_MAX = 256

_audit = partial(Setting, commands=("audit",), default=None, manifest="nothing")
_judgement = partial(_audit, heading="Judgement")
_raw = partial(_audit, heading="Judgement")
_log = partial(_audit, heading="Logs without a manifest")
_table = partial(_audit, heading="Judgement")
_limits = partial(_audit, heading="Judgement")

ROWS = (
    _judgement(
        name="purpose",
        option=("--for",),
        type=one_of(PURPOSES, "must be internal, partner or public"),
        help="Recipient. [default: as the manifest states]",
        about="recipient of the logs, for whom the thresholds are",
        usual="",
    ),
    _judgement(
        name="sensitive",
        type=FILE,
        help="Sensitive names: lines SUFFIX,CATEGORY.",
    ),
    _judgement(
        name="check",
        type=_METRIC,
        default=(),
        help="Take only this metric or check; repeatable.",
    ),
    _judgement(
        name="skip", type=_METRIC, default=(), help="Leave this metric or check out; repeatable."
    ),
    _raw(
        name="raw",
        type=several(FILE),
        default=(),
        help="A file that the run read; repeatable.",
        about="a capture, or a file of rows, that the run read; repeatable",
    ),
    _raw(
        name="key_file",
        type=KEY_FILE,
        help="The key of the run, for pseudonyms and link.",
    ),
    _raw(
        name="never",
        type=SUFFIXES,
        default=(),
        help="The run's file of names never to release.",
        about="the run's file with suffixes of names never to release, one a line",
    ),
    _raw(
        name="lists",
        option=("--list",),
        type=several(FILE),
        default=(),
        help="A file of the run's lists; repeatable.",
        about="a file, or a folder of files, that the run had for only, skip, categories, suffixes"
        " or networks; the digests in the manifest tell which",
    ),
    _raw(
        name="details",
        type=FILE,
        help="A new file for the names and addresses.",
        about="a new file for the names and addresses of the places that break the promise",
    ),
    _table(
        name="quasi",
        type=COLUMN_LIST,
        default=(),
        help="Columns that identify: LOGS is a table.",
        about="columns that together can identify; LOGS is then one table: a .csv, .jsonl or"
        " .parquet file",
    ),
    _table(
        name="sensitive_columns",
        type=COLUMN_LIST,
        default=(),
        help="Columns of the table that must stay unknown.",
    ),
    _limits(name="memory", type=SIZE, default=2 << 30, help="Most memory."),
    _limits(
        name="workers",
        type=whole_number("threads", 1, WORKERS_MAX),
        default=2,
        help="Threads that share the work.",
    ),
    _log(
        name="z",
        type=whole_number("users", 1, 1 << 24),
        help="Users that must have shared a name.",
    ),
    _log(name="window", type=DURATION, help="Time for which a user's exposure counted."),
    _log(name="rotate", type=DURATION, help="Time for which a key of pseudonyms served."),
    _log(name="internal", type=NETWORKS, help="The users' networks."),
)
"""The rows, in the order of `--help`."""
