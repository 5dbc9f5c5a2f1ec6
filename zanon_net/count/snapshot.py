# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter's state at one offset, before it is sealed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snapshot:
    """offset: of the next entry. about: whatever is small, as JSON has it. parts: by name."""

    offset: int
    about: Mapping[str, Any]
    parts: Mapping[str, bytes]
