# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a row that came sealed may be: a line of `run --format observations`, and nothing else."""

import re

_LINE = re.compile(
    rb'\{"t_ns":[0-9]{1,19},'
    rb'"client":(?:null|"[0-9a-f:.]{2,45}"),'
    rb'"name":"[a-z0-9_][a-z0-9_.-]{0,252}",'
    rb'"name_source":"[a-z0-9]{1,8}"\}'
)


def is_observation(row: bytes) -> bool:
    """Whether a row is such a line, without its end. Whoever seals a row can put anything in it."""
    return _LINE.fullmatch(row) is not None
