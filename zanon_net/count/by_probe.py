# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The answers of a commit, sorted by the probes that they are for."""

from collections.abc import Iterable

from zanon_net.count.frames import answers_header, framed


def frames_by_probe(answers: Iterable[bytes]) -> dict[int, bytes]:
    """The frames of each probe, one behind the other; the same for the same answers."""
    frames: dict[int, list[bytes]] = {}
    for message in answers:
        frames.setdefault(answers_header(message).probe, []).append(framed(message))
    return {probe: b"".join(own) for probe, own in frames.items()}
