# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sends anonymized packets to a network interface, for a monitor that listens there."""

from collections.abc import Mapping

from zanon_net._core import PacketSender
from zanon_net.errors import CaptureError, OutputError
from zanon_net.output.sink import Parts, Sent, Sink, Tables

OUTPUT = "packets"
# wait of a packet of a capture file, which can wait, for space in the queue
PATIENCE_NS = 100_000_000


class InterfaceSink(Sink):
    """Sends packets out of an interface as they come.

    name: an Ethernet interface that is up.
    waits: true if a packet may wait for space in a full queue, because nothing is lost meanwhile:
        for capture files.

    Raises ConfigError, or CaptureError (errno EPERM: a capability is missing).
    """

    def __init__(self, name: str, *, waits: bool = False) -> None:
        self.name = name
        self._sender = PacketSender(name, patience_ns=PATIENCE_NS if waits else 0)

    @property
    def warning(self) -> str | None:
        """Text about a problem of the interface; None without a problem."""
        if not self._sender.has_address:
            return None
        return (
            f"interface {self.name} has an IP address: this system sends and answers there, next to"
            f" the anonymized packets; take it away: ip address flush dev {self.name}, and set"
            f" net.ipv6.conf.{self.name}.disable_ipv6 to 1"
        )

    @property
    def sent(self) -> Sent:
        """See Sink."""
        return Sent(self.name, **self._sender.counts)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            if OUTPUT in texts:
                self._send(texts[OUTPUT][0])

    def _send(self, records: bytes | memoryview) -> None:
        try:
            self._sender.send(records)
        except CaptureError as error:
            raise OutputError(str(error)) from None

    def finish(self, first_ns: int | None) -> None:
        """See Sink. An interface has no end."""

    def publish(self, manifest: bytes) -> None:
        """See Sink. The manifest has no place among packets."""
        self._sender.close()

    def discard(self) -> None:
        """See Sink. Packets that left cannot be taken back."""
        self._sender.close()

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink. Includes packets that did not leave."""
        return {OUTPUT: self.sent.total}
