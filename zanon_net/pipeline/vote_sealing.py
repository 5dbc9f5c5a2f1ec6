# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attachments of a probe's votes: none, or observations that no counter opens alone."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from zanon_net._core import (
    Keys,
    PacketEngine,
    RowSealer,
    ThresholdSealer,
    reader_public_key,
)
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError, UnopenedError

PEM_BYTES_MAX = 4096
SHARES_LABEL = b"zanon-net/1/threshold"
_ANY_EPOCH_NS = 3_600_000_000_000


class VoteSealer(Protocol):
    """Makes the messages to be sent from the messages of an engine."""

    def messages(self, ready: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the messages."""


class NothingAttached:
    """Mode *ask*."""

    def messages(self, ready: Iterable[bytes]) -> Iterator[bytes]:
        """See VoteSealer."""
        return iter(ready)


class SealedRows:
    """Mode *sealed*: rows for a reader, with keys of the probe that are new at each call."""

    def __init__(self, reader: bytes) -> None:
        self._sealer = RowSealer(reader)

    def messages(self, ready: Iterable[bytes]) -> Iterator[bytes]:
        """See VoteSealer."""
        frames = list(ready)
        if frames:
            self._sealer.renew()
        for message, rows in zip(frames[::2], frames[1::2], strict=True):
            yield self._sealer.attach(message, PacketEngine.count_rows_of(rows))


class SharedRows:
    """Mode *threshold*: shares of keys, and rows under them."""

    def __init__(self, sealer: ThresholdSealer) -> None:
        self._sealer = sealer

    def messages(self, ready: Iterable[bytes]) -> Iterator[bytes]:
        """See VoteSealer."""
        frames = iter(ready)
        for message, rows in zip(frames, frames, strict=True):
            yield self._sealer.attach(message, PacketEngine.count_rows_of(rows))


def sealer_of(config: Config) -> VoteSealer:
    """Returns the sealer of a run's mode. Raises ConfigError or UnopenedError for a key file."""
    count = config.count
    if count.count_mode == "sealed":
        assert count.reader_key is not None, "the mode was checked"
        return SealedRows(read_reader_key(Path(count.reader_key)))
    if count.count_mode == "threshold":
        assert config.addresses.key_file is not None, "the settings were checked"
        keys = Keys(_ANY_EPOCH_NS, os.fspath(config.addresses.key_file))
        return SharedRows(
            ThresholdSealer(
                keys.derive_shared(SHARES_LABEL, 0, 32),
                z=config.anonymity.z,
                window_ns=config.anonymity.window_ns,
                epochs=count.threshold_epochs,
            )
        )
    return NothingAttached()


def read_reader_key(path: Path) -> bytes:
    """Reads the public key of a reader from its file. Raises ConfigError or UnopenedError."""
    try:
        with path.open("rb") as file:
            pem = file.read(PEM_BYTES_MAX)
    except OSError as error:
        raise UnopenedError(f"reader_key: cannot read {path}: {error.strerror}") from None
    try:
        return reader_public_key(pem)
    except ConfigError as error:
        raise ConfigError(f"reader_key: {path} {error}") from None
