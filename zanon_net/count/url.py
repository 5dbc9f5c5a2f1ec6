# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""URLs of a counter: file:DIR, tls://HOST:PORT, nats://... and kafka://..."""

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from zanon_net.errors import ConfigError

SCHEMES = ("file", "tls", "tcp", "nats", "kafka")
WITH_NAME = ("nats", "kafka")
PLAIN = ("tcp", "nats", "kafka")
_PLACE = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]{1,253}):([0-9]{1,5})(?:/([A-Za-z0-9_-]+))?"
)
PORT_MAX = 65535


class Place(NamedTuple):
    """Place where a counter and its probes meet.

    `host` and `port` are the address of the listener. `name` is a stream or a topic.
    """

    scheme: str
    host: str = ""
    port: int = 0
    name: str = ""
    folder: str = ""

    @property
    def address(self) -> str:
        """Address as HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_place(setting: str, text: str) -> Place:
    """Reads a URL. Raises ConfigError, with the setting's name first."""
    scheme, colon, rest = text.partition(":")
    if scheme == "file" and rest:
        return Place("file", folder=rest)
    match = _PLACE.fullmatch(rest.removeprefix("//")) if rest.startswith("//") else None
    is_known = scheme in SCHEMES and colon
    if not is_known or match is None or bool(match[3]) != (scheme in WITH_NAME):
        raise ConfigError(
            f"{setting}: write file:DIR, tls://HOST:PORT, nats://HOST:PORT/STREAM or"
            " kafka://HOST:PORT/TOPIC"
        )
    host, port = match[1].strip("[]"), int(match[2])
    if port > PORT_MAX:
        raise ConfigError(f"{setting}: the port must be at most {PORT_MAX}")
    if scheme in PLAIN and not _is_loopback(host):
        instead = "use tls" if scheme == "tcp" else "reach another machine's broker by a tunnel"
        raise ConfigError(
            f"{setting}: {scheme} has no protection and is for 127.0.0.1 or [::1] only; {instead}"
        )
    return Place(scheme, host, port, match[3] or "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM: the certificate, its key, and the authority of the peers."""

    cert: str | os.PathLike[str]
    key: str | os.PathLike[str]
    ca: str | os.PathLike[str]
