# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Address and port that a server of a run listens on, such as 127.0.0.1:9464."""

import ipaddress
import re
from typing import NamedTuple

from zanon_net.config.parse import reject

_WRITTEN = r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+|localhost)):([0-9]{1,5})"
LOCALHOST = "127.0.0.1"
PORT_MAX = 65535


class ListenAddress(NamedTuple):
    """An address and a port to listen on.

    host: an address as text.
    port: 0 means that the system chooses a port.
    """

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True if no other machine can reach the address."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def is_ipv6(self) -> bool:
        """True if the host is an IPv6 address."""
        return ":" in self.host

    @classmethod
    def of(cls, text: str) -> "ListenAddress":
        """Returns the address in a text that `read_listen_address` has returned."""
        host, _colon, port = text.rpartition(":")
        return cls(host.strip("[]"), int(port))


def read_listen_address(name: str, value: object) -> str:
    """Reads ADDR:PORT and shortens the address. Refuses host names other than localhost."""
    match = re.fullmatch(_WRITTEN, value) if isinstance(value, str) else None
    problem = "must be an address and a port, such as 127.0.0.1:9464 or [::1]:9464"
    if match is None:
        reject(name, problem)
    in_brackets, plain, port = match.groups()
    try:
        address = ipaddress.ip_address(in_brackets or plain.replace("localhost", LOCALHOST))
    except ValueError:
        reject(name, problem)
    if (address.version == 6) != (in_brackets is not None):
        reject(name, problem)
    if int(port) > PORT_MAX:
        reject(name, f"the port must be at most {PORT_MAX}")
    return f"[{address}]:{int(port)}" if address.version == 6 else f"{address}:{int(port)}"
