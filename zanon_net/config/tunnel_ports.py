# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""UDP ports that carry a tunnel, in addition to the ports that were assigned to tunnels.

A setting contains a port as it is written, NAME:PORT; the core gets both.
"""

from zanon_net.config.parse import reject, shown

PORTS_MAX = 16
DNS_PORT = 53
TUNNELS = (
    "vxlan",
    "geneve",
    "gtp-u",
    "teredo",
    "l2tp",
    "ayiya",
    "capwap",
    "lisp",
    "mpls",
    "tzsp",
    "hp-erm",
    "gre",
)
"""The tunnels in UDP, in the order of the core's enumeration."""


def read_tunnel_ports(name: str, value: object) -> tuple[str, ...]:
    """Returns the texts NAME:PORT, each once. Raises ConfigError."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        reject(name, f"must be texts such as vxlan:4799, not {shown(value)}")
    read: dict[int, str] = {}
    for text in texts:
        tunnel, port = _parts(name, text)
        if read.setdefault(port, tunnel) != tunnel:
            reject(name, f"port {port} is given to {read[port]} and to {tunnel}")
    if len(read) > PORTS_MAX:
        reject(name, f"there may be {PORTS_MAX} ports, not {len(read)}")
    return tuple(f"{tunnel}:{port}" for port, tunnel in read.items())


def _parts(name: str, text: str) -> tuple[str, int]:
    tunnel, colon, port = (part.strip() for part in text.partition(":"))
    if not colon:
        reject(name, f"must be a tunnel and a port such as vxlan:4799, not {shown(text)}")
    if tunnel not in TUNNELS:
        import difflib  # late: only errors need it

        near = difflib.get_close_matches(tunnel, TUNNELS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(TUNNELS)}"
        reject(name, f"{shown(tunnel)} is not a tunnel that is read; {hint}")
    if not (port.isascii() and port.isdigit() and 1 <= len(port) <= 5 and 1 <= int(port) <= 65535):
        reject(name, f"a port must be from 1 to 65535, not {shown(port)}")
    if int(port) == DNS_PORT:
        reject(name, f"port {DNS_PORT} carries DNS, which is never read as a tunnel")
    return tunnel, int(port)


def tunnel_ports(texts: tuple[str, ...]) -> list[tuple[str, int]]:
    """Returns the tunnels and ports of texts that `read_tunnel_ports` returned."""
    return [(tunnel, int(port)) for tunnel, _colon, port in (text.partition(":") for text in texts)]
