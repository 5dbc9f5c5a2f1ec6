# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fields that all results of parsers have in common."""

from dataclasses import dataclass
from typing import Literal

from zanon_net import _core

State = Literal["done", "need_more", "malformed", "other"]
"""done: complete; need_more: well-formed, but bytes are missing; malformed: an inner length or
value is wrong; other: not this protocol."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result that all parsers of names have in common.

    state: see State. raw: the name as sent, empty if there is no name or the state is not done.
    name: the hostname in the form that counts (lower case, no port, no trailing dot), None if raw
    is empty or not a hostname. offset: offset in bytes of raw in the data, None if raw is empty,
    encoded or split.
    """

    state: State
    raw: bytes
    name: str | None
    offset: int | None


def hostname(raw: bytes) -> str | None:
    """Returns a name in the form that counts, as all parsers here do; None if it is no hostname."""
    kind, text = _core.normalize_host(raw)
    return text if kind in ("name", "home") else None
