# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Restart strategy of a job that fails.

A task manager may be away for hours, and the job continues soon after its return. A job that fails
at each attempt fails for good after a day, because an operator has to correct the cause.
"""

from collections.abc import Container, Mapping

TYPE, TYPE_BEFORE = "restart-strategy.type", "restart-strategy"  # Flink takes both
_PREFIX = "restart-strategy.exponential-delay"
NEVER: Mapping[str, str] = {TYPE: "none"}
FOR_A_DAY: Mapping[str, str] = {
    TYPE: "exponential-delay",
    f"{_PREFIX}.initial-backoff": "1 s",
    f"{_PREFIX}.max-backoff": "30 s",
    f"{_PREFIX}.reset-backoff-threshold": "10 min",
    f"{_PREFIX}.attempts-before-reset-backoff": "2880",
}


def restart_strategy(users: Container[str]) -> Mapping[str, str]:
    """Returns settings for Flink, in addition to the user's. If the user chose a strategy, it is
    empty; single settings of the user replace settings here."""
    if TYPE in users or TYPE_BEFORE in users:
        return {}
    return {key: value for key, value in FOR_A_DAY.items() if key not in users}
