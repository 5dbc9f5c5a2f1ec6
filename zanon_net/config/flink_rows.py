# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `flink job` and `flink submit`: their rows of the table in `schema`.

Settings that a counter of one process has, too, are copies of its rows with the differences.
"""

from dataclasses import replace
from functools import partial

from zanon_net.config.count_rows import FOLDER
from zanon_net.config.count_rows import ROWS as COUNT_ROWS
from zanon_net.config.parse import reject
from zanon_net.config.probe_rules import check_generations
from zanon_net.config.rules import Settings
from zanon_net.config.setting import Setting
from zanon_net.config.types import DURATION, FILE, FLAG, whole_number

PARALLELISM_MAX = 256
DEFAULTS = {"shards": 16, "expect_probes": 1}
SAME = ("z", "window", "rotate", "count_rotate", "shards", "expect_probes", "probe_timeout")


def check_flink(settings: Settings) -> dict[str, object]:
    """Checks that every setting without a default was given."""
    if settings["votes"] is None:
        reject("votes", "give the folder that the probes share")
    check_generations(settings)
    return {}


_same = {row.name: row for row in COUNT_ROWS if row.name in SAME}
_ROWS_OF_COUNT = tuple(
    replace(row, commands=("flink",), default=DEFAULTS.get(name, row.default), check=None)
    for name, row in ((name, _same[name]) for name in SAME)
)

_files = partial(Setting, commands=("flink",), heading="Input and output", manifest="nothing")
_FILES = (
    _files(
        name="votes",
        type=FOLDER,
        default=None,
        help="The folder that the probes share (file:DIR there); needed.",
        check=check_flink,
    ),
    _files(
        name="answers",
        type=FOLDER,
        default=None,
        help="The folder of the answers, with a folder a probe in it.",
        usual="answers in the folder of the votes",
    ),
    _files(
        name="ends",
        type=FLAG,
        default=False,
        help="Read the files that are there and end, instead of watching the folder.",
    ),
)

_job = partial(Setting, commands=("flink",), heading="Job", manifest="nothing")
_JOB = (
    _job(
        name="parallelism",
        type=whole_number("tasks", 1, PARALLELISM_MAX),
        default=1,
        help="Tasks that the shards are spread over; no more than shards.",
    ),
    _job(
        name="checkpoint_every",
        type=DURATION,
        default="10s",
        help="Time between two checkpoints of the state; answers appear as often.",
    ),
    _job(
        name="checkpoints",
        type=FOLDER,
        default=None,
        help="The folder of the checkpoints.",
        usual="as the cluster is configured",
    ),
    _job(
        name="savepoint",
        type=FOLDER,
        default=None,
        help="Resume from this savepoint or checkpoint.",
    ),
    _job(
        name="python",
        type=FILE,
        default=None,
        help="The Python of the task managers, with zanon-net[flink].",
        usual="the Python of this command",
    ),
)
ROWS = (*_ROWS_OF_COUNT, *_FILES, *_JOB)
