# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the caps against invented users: rows of `run_rows`, which `packets` has, too."""

from functools import partial

from zanon_net.config import cap_rules
from zanon_net.config.rules import COUNT_MAX
from zanon_net.config.setting import Setting
from zanon_net.config.types import DURATION, Type, whole_number

_cap = partial(
    Setting, commands=("run", "packets"), section="anonymity", heading="Anonymity", default=None
)

ROWS = (
    _cap(
        name="max_per_prefix",
        type=Type(
            read=cap_rules.read_per_prefix,
            range="two prefix lengths and a number of users, such as 24,48=4",
            metavar="BITS,BITS=M",
        ),
        rank=2,
        help="In a window, at most M users of an IPv4 and of an IPv6 network with these prefix"
        " lengths count for a name or an address.",
        usual="no cap",
        about="in a window, at most this number of users of a network with these prefix lengths"
        " (IPv4, IPv6) count for a name or an address",
        example="24,48=4",
        manifest="as it is",
        core="max_per_prefix",
        core_value=cap_rules.per_prefix,
        core_kind="users of networks",
    ),
    _cap(
        name="max_names_per_user",
        type=whole_number("names", 1, COUNT_MAX),
        rank=2,
        help="In a window, a user counts for at most N names.",
        usual="no cap",
        about="in a window, a user counts for at most this number of names",
        example=1000,
        manifest="as it is",
        core="max_names_per_user",
        core_kind="optional number",
    ),
    _cap(
        name="min_user_age",
        type=DURATION,
        rank=2,
        help="A user counts this time after it was first seen; with this option,"
        " releases_by_new_users counts names that users of less than a window released.",
        usual="at once",
        about="a user counts this time after it was first seen",
        example="10m",
        manifest=cap_rules.shown_age,
        core="min_user_age_ns",
        core_kind="optional number",
    ),
)
