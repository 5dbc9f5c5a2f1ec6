# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The form of names: hostnames, addresses spelled as names, and names of homes."""

import re
from functools import lru_cache
from ipaddress import ip_address

HOMES = ("in-addr.arpa", "ip6.arpa", "local", "home.arpa")
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")
NAME, HOME, ADDRESS, INVALID = "name", "home", "address", "invalid"
NEVER, REFUSED = "never", "refused"  # of --never, and of --only or --skip


def under(name: str, suffixes: tuple[str, ...]) -> bool:
    """Returns whether the name is one of the suffixes, or below it."""
    return any(name == suffix or name.endswith("." + suffix) for suffix in suffixes)


@lru_cache(maxsize=1 << 16)
def normal(text: str) -> tuple[str, str]:
    """Returns the kind of a text that a client sent, and the name in the form of the log."""
    text = re.sub(r":\d*$", "", text.lower()).removesuffix(".")
    bare = text[1:-1] if text[:1] + text[-1:] == "[]" else text  # IPv6 in a URL (RFC 3986, 3.2.2)
    try:
        ip_address(bare)
    except ValueError:
        pass
    else:
        return ADDRESS, ""
    labels = text.split(".")
    if all(NUMBER.fullmatch(label) for label in labels):
        return ADDRESS, ""
    if len(text) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        return INVALID, ""
    return HOME if under(text, HOMES) else NAME, text


def certified(name: str | None) -> str | None:
    """Returns the host of a certificate, perhaps behind "*."; None: it is no attribute."""
    if name is None:
        return None
    wild = "*." if name.startswith("*.") else ""
    kind, text = normal(name.removeprefix(wild))
    return wild + text if kind == NAME and "." in text else None
