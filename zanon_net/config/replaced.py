# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings that `filter` does not have, with what to do instead."""

REPLACED = {
    "generalize": "is now --levels chain, which suppresses more rows",
    "steps": "is now --levels: chain, or a file of steps",
    "round": "make intervals with 'zanon-net table hierarchy --intervals' and give them with"
    " --hierarchy and --levels chain",
}
