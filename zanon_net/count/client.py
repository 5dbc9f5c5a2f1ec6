# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A probe's side of a counter: sends votes, has the answers, and sends again what has none."""

from abc import ABC, abstractmethod

from zanon_net.count.frames import Hello, Key, Welcome, answers_header, votes_header
from zanon_net.count.tls import TlsFiles
from zanon_net.count.url import read_place
from zanon_net.errors import ConfigError, ZanonError

SETTING = "count_at"
OVERHEAD_BYTES = 256  # of a message in memory, beside its own


class CountClient(ABC):
    """Keeps each message until it is answered, over any loss of the counter or of the network.

    One thread at a time may call it; nothing waits for the counter but `welcome` and `receive`.

    hello: what this probe says of itself. welcome: what the counter said to a number before this.
    """

    def __init__(self, hello: Hello, welcome: Welcome | None = None) -> None:
        self.hello, self._welcome = hello, welcome
        self._unanswered: dict[Key, bytes] = {}
        self._unanswered_bytes = 0

    @property
    def unanswered_bytes(self) -> int:
        """Memory of the messages that wait for their answers."""
        return self._unanswered_bytes

    @property
    def interval_ns(self) -> int:
        """Time between two answers, as the counter said last; 0: it has said nothing yet."""
        return 0 if self._welcome is None else self._welcome.interval_ns

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether there is a counter at the moment, as far as can be known."""

    @abstractmethod
    def welcome(self, timeout: float) -> Welcome | None:
        """What the counter says of itself; None where none answers in that many seconds.

        Raises ZanonError where it refuses this probe.
        """

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Sends a message of votes. Raises ZanonError where the counter refuses this probe."""

    @abstractmethod
    def receive(self, timeout: float) -> list[bytes]:
        """The messages of answers that came; each answer once, and waits for the first.

        Raises ZanonError where the counter refuses this probe.
        """

    @abstractmethod
    def as_another(self, probe: int) -> "CountClient":
        """A client of the same counter under another number; no file of the certificate is read
        again, as this process may no longer be allowed to."""

    @abstractmethod
    def close(self) -> None:
        """Ends it; what has no answer has none. Again is fine."""

    @staticmethod
    def _refused(text: str) -> ZanonError:
        """What is raised where the counter refuses this probe for good."""
        return ZanonError(f"the counter refuses this probe: {text}")

    def _problem_of(self, welcome: Welcome) -> str:
        """Why a counter cannot be asked that has begun anew meanwhile; empty: it can. What this
        probe tells of clients would not come to all of its shards."""
        before = self._welcome
        if before is None or before.shards == welcome.shards:
            return ""
        return (
            f"the counter has {welcome.shards} shards by now and had {before.shards}:"
            " start this run again"
        )

    def abandon(self) -> None:
        """Ends it, and forgets the messages that have no answer."""
        self.close()
        self._unanswered.clear()
        self._unanswered_bytes = 0

    def _keep(self, message: bytes) -> Key:
        """Notes that a message waits for its answer."""
        key = votes_header(message).key
        self._unanswered[key] = message
        self._unanswered_bytes += len(message) + OVERHEAD_BYTES
        return key

    def _is_expected(self, answers: bytes) -> bool:
        """Whether the message that it answers has waited for it; it does so no longer."""
        header = answers_header(answers)
        is_ours = header.probe == self.hello.probe
        message = self._unanswered.pop(header.key, None) if is_ours else None
        if message is None:
            return False
        self._unanswered_bytes -= len(message) + OVERHEAD_BYTES
        return True


def connect(url: str, *, probe: int, settings: int, tls: TlsFiles | None = None) -> CountClient:
    """A client of the counter at `url`: tls://HOST:PORT, tcp on the same machine, or file:DIR.

    probe: its number, as in its messages. settings: as in its messages. tls: needed for tls.

    Raises ConfigError, with `count_at` first, for another text, or files that hold no certificates.
    """
    place, hello = read_place(SETTING, url), Hello(probe, settings)
    if place.scheme == "file":
        from zanon_net.count.file_client import FileClient

        return FileClient(place.folder, hello)
    if place.scheme not in ("tls", "tcp"):
        raise ConfigError(f"{SETTING}: probes reach a counter by tls or by files")
    if (place.scheme == "tls") != (tls is not None):
        raise ConfigError(f"{SETTING}: tls needs a certificate, its key and an authority; tcp none")
    from zanon_net.count.stream_client import StreamClient
    from zanon_net.count.tls import client_context

    return StreamClient(place, hello, None if tls is None else client_context(tls))
