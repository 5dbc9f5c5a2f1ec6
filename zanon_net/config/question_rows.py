# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `inspect`, `model` and `tune`: their rows of the table in `schema`."""

from dataclasses import replace
from functools import partial

from zanon_net.config import filter_rows, rules
from zanon_net.config.rules import COUNT_MAX, RATES_MAX
from zanon_net.config.setting import Setting
from zanon_net.config.types import (
    DURATION,
    EXPONENT,
    FILE,
    NEW_FILE,
    PROBABILITY,
    RATE,
    SIZE,
    TUNNEL_PORTS,
    several,
    whole_number,
)

_INSPECT = (
    Setting(
        commands=("inspect",),
        name="max_bytes",
        type=replace(SIZE, metavar="BYTES"),
        default=None,
        help="Most bytes a compressed source may unpack to.",
        heading="Options",
        manifest="nothing",
    ),
    Setting(
        commands=("inspect",),
        name="tunnel_ports",
        option=("--tunnel-port",),
        type=TUNNEL_PORTS,
        default=(),
        help="Read this UDP port as a tunnel's, too, such as vxlan:4799; repeatable.",
        heading="Options",
        manifest="nothing",
    ),
)


# ---- model and tune ------------------------------------------------------------------------------


BOTH = ("model", "tune")
_stream = partial(
    Setting,
    commands=BOTH,
    heading="Stream",
    default=None,
    manifest="nothing",
    check=rules.check_stream,
)
_STREAM = (
    _stream(
        name="popularity",
        type=FILE,
        help="Fit the stream to the file of 'run --popularity' or 'filter --popularity' instead of"
        " giving the four below.",
    ),
    _stream(
        name="users",
        type=whole_number("users", 1, COUNT_MAX, None),
        help="Number of users.",
        usual=str(rules.STREAM["users"]),
    ),
    _stream(
        name="attributes",
        type=whole_number("names", 1, RATES_MAX, None),
        help="Number of names.",
        usual=str(rules.STREAM["attributes"]),
    ),
    _stream(
        name="rate",
        type=RATE,
        help="Hourly rate at which a user exposes the most popular name. The name of rank r has"
        " RATE / r^EXPONENT.",
        usual=str(rules.STREAM["rate"]),
    ),
    _stream(
        name="exponent",
        type=EXPONENT,
        help="See --rate.",
        usual=str(rules.STREAM["exponent"]),
    ),
)


_question = partial(Setting, commands=BOTH, heading="Question", manifest="nothing")
_window = partial(
    _question,
    name="window",
    type=several(DURATION),
    default=(),
    usual="the window of --popularity, or 1h",
)
_THRESHOLDS = (
    _question(
        name="z",
        commands=("model",),
        type=several(whole_number("users", 1, COUNT_MAX)),
        default=(),
        help="A z to look at; repeatable.",
        usual="a dozen up to all users",
    ),
    _window(commands=("model",), help="The window."),
)
_TARGET = (
    _question(
        name="target",
        commands=("tune",),
        type=PROBABILITY,
        default=0.95,
        help="Probability that k - 1 others share a user's released names.",
    ),
    _window(commands=("tune",), help="A window to find z for; repeatable."),
)
_ATTACKER = (
    _question(
        name="k",
        type=whole_number("users", 1, COUNT_MAX, None),
        default=2,
        help="Users who share all released names.",
    ),
    _question(
        name="periods",
        type=whole_number("windows", 1, COUNT_MAX, None),
        default=1,
        help="Windows for which an attacker collects one user's names.",
    ),
)
_CHART = (
    _question(
        heading="Output",
        name="plot",
        type=FILE,
        default=None,
        help="Draw the result, too, as FILE.png, .svg or .html.",
    ),
)


# ---- the steps of `filter --levels` --------------------------------------------------------------


STEPS = "Steps of filter --levels"
SAMPLE_MAX = 1_000_000  # rows in memory
_steps = partial(Setting, commands=("tune",), heading=STEPS, manifest="nothing")
_SEARCH = (
    _steps(
        name="steps",
        type=FILE,
        default=None,
        help="Search for steps instead of z. Of the steps of 'filter --levels chain', find the"
        " subsets that lose least on the rows of this file. Takes one --window.",
    ),
    _steps(
        name="sample",
        type=whole_number("rows", 2, SAMPLE_MAX),
        default=50_000,
        help="Rows to read. Steps are chosen on half of them and measured on the other half.",
    ),
    _steps(
        name="out",
        type=NEW_FILE,
        default=None,
        help="Write the best steps into this new file, for 'filter --levels FILE'.",
    ),
)
OF_FILTER = (
    "z",
    "time",
    "user",
    "attribute",
    "hierarchy",
    "hierarchy_delimiter",
    "unknown",
    "format",
    "time_unit",
    "delimiter",
    "quote",
    "null",
    "header",
)
"""Settings of `filter` that a search of steps takes."""
_OF_FILTER = tuple(
    _steps(name=row.name, type=row.type, default=row.default, help=row.help, usual=row.usual)
    for row in filter_rows.ROWS
    if row.name in OF_FILTER
)


ROWS = (
    *_INSPECT,
    *_STREAM,
    *_THRESHOLDS,
    *_TARGET,
    *_ATTACKER,
    *_SEARCH,
    *_OF_FILTER,
    *_CHART,
)
