# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a run on network interfaces."""

from dataclasses import dataclass

from zanon_net.config.parse import flag, parse_duration, parse_size, reject, whole

SNAPLEN_MAX = 1 << 18  # libpcap's own
RING_MIN, RING_MAX = 1 << 20, (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """How interfaces are read, and what is reported meanwhile.

    ring: memory for frames that wait to be read, of each interface; bytes or "64M", afterwards a
        number.
    snaplen: bytes that are kept of a frame; a name that lies behind them is not seen.
    promiscuous: whether frames for other hosts are taken too.
    status: how often to report on the run; "10s", or ns; None: never. Of captures, too.
    drop_to: the user to go on as once everything is open; None: the one that started it.
    """

    ring: int | str = 64 << 20
    snaplen: int = SNAPLEN_MAX
    promiscuous: bool = True
    status: int | str | None = None
    drop_to: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ring", parse_size("ring", self.ring))
        if not RING_MIN <= self.ring_bytes <= RING_MAX:
            reject("ring", "must be from 1M to just below 2G")
        object.__setattr__(self, "snaplen", whole("snaplen", self.snaplen, 64, SNAPLEN_MAX))
        object.__setattr__(self, "promiscuous", flag("promiscuous", self.promiscuous))
        if self.status is not None:
            parse_duration("status", self.status)
        name: object = self.drop_to
        if name is not None and (not isinstance(name, str) or not name):
            reject("drop_to", "must be the name of a user, such as nobody")

    @property
    def ring_bytes(self) -> int:
        """The size of a ring in bytes."""
        return parse_size("ring", self.ring)

    @property
    def status_s(self) -> float | None:
        """Seconds between two status lines; None: there are none."""
        return None if self.status is None else parse_duration("status", self.status) * 1e-9
