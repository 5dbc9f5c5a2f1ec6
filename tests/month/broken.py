# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The first check that failed, which ends the month."""


class Broken(Exception):  # noqa: N818  (what is broken is the product)
    """what: the check, in words. where: a file, an event or a time, and what was seen there."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what}: {where}")


def check_equal(what: str, seen: object, expected: object, where: str = "") -> None:
    """Raises Broken where they differ."""
    if seen != expected:
        raise Broken(what, f"{where} {seen!r}, not {expected!r}".strip())
