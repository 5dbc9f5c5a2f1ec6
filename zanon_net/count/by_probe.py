# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Answers of a commit, grouped by probe."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zanon_net.count.frames import answers_header, framed, messages_in

RECORD_BYTES = 1 << 19  # of a broker's record; brokers take 1 MB, and a message has up to 131 kB


def frames_by_probe(answers: Iterable[bytes]) -> dict[int, bytes]:
    """Returns the concatenated frames of each probe. Equal answers give equal frames."""
    frames: dict[int, list[bytes]] = {}
    for message in answers:
        frames.setdefault(answers_header(message).probe, []).append(framed(message))
    return {probe: b"".join(own) for probe, own in frames.items()}


class Record(NamedTuple):
    """Record of a broker. `probe` is the session in hexadecimal, as in subjects and keys. `part` is
    the number of the record among the probe's records of one commit."""

    probe: str
    part: int
    frames: bytes


def records_by_probe(answers: Iterable[bytes]) -> Iterator[Record]:
    """Yields the frames of each probe in records of a size that brokers take."""
    for probe, frames in frames_by_probe(answers).items():
        parts = [b""]
        for message in messages_in(frames):
            if len(parts[-1]) + len(message) > RECORD_BYTES:
                parts.append(b"")
            parts[-1] += framed(message)
        for part, content in enumerate(parts):
            yield Record(f"{probe:016x}", part, content)
