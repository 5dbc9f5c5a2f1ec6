# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `run` about lists of names and networks, which `filter` takes, too."""

from functools import partial

from zanon_net.config import list_rules
from zanon_net.config.setting import Setting
from zanon_net.config.types import (
    CATEGORIES,
    NETWORK_TABLE,
    ONLY_NAMES,
    PUBLIC_SUFFIXES,
    SKIPPED_NAMES,
)

_list = partial(Setting, commands=("run", "packets"), section="anonymity", heading="Lists of names")
ROWS = (
    _list(
        name="only",
        type=ONLY_NAMES,
        default=None,
        help="Names that may vote and leave: a file of suffixes, one a line, of ranks and suffixes"
        " (rank,domain), or of hosts.",
        usual="all names",
        about="a file of suffixes; names that end in none of them are suppressed",
        example="top.csv",
        check=list_rules.check_lists,
        manifest=list_rules.shown_only,
    ),
    _list(
        name="skip",
        type=SKIPPED_NAMES,
        default=None,
        help="Names that neither vote nor leave: a file as for --only, or category:NAME,... of"
        " --categories; repeatable.",
        usual="none",
        about="files of suffixes, and category:NAME,...; names that end in one are suppressed",
        example=["category:cdn"],
        check=list_rules.check_lists,
        manifest=list_rules.shown_skip,
    ),
    _list(
        name="categories",
        type=CATEGORIES,
        default=None,
        help="Categories of names: files with a suffix, a tab and a category a line; folders of"
        " UT1; lists of nDPI; or included, a short list of this package; repeatable.",
        usual="none",
        about="files of suffixes and their categories, or included, a short list of the package",
        example=["included"],
        manifest=list_rules.shown_categories,
        core="categories",
        core_value=list_rules.core_categories,
        core_kind="categories",
    ),
    _list(
        name="suffixes",
        type=PUBLIC_SUFFIXES,
        default=None,
        help="A file of the Public Suffix List, by which the domain of a name is found.",
        usual="none",
        about="a file of the Public Suffix List, by which the domain of a name is found",
        example="public_suffix_list.dat",
        manifest=list_rules.shown_suffixes,
        core="suffixes",
        core_value=list_rules.core_suffixes,
        core_kind="suffixes",
    ),
    _list(
        name="networks",
        type=NETWORK_TABLE,
        default=None,
        help="Files of networks, with the AS and country of each: a prefix, an AS and a country;"
        " files of pyasn and of iptoasn; repeatable.",
        usual="none",
        about="files of networks with their AS and country, also of pyasn and iptoasn",
        example=["ip2asn-combined.tsv"],
        manifest=list_rules.shown_networks,
        core="networks",
        core_value=list_rules.core_network_table,
        core_kind="network table",
    ),
)
