# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Findings of checks, with their places."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Place that breaks the promise, or that the audit cannot confirm.

    proven: true if the promise is broken for certain. detail: the name or address, for the operator
    only.
    """

    check: str
    file: str
    row: int | None
    column: str
    measured: float | None = None
    needed: float | None = None
    detail: str = ""
    proven: bool = True
