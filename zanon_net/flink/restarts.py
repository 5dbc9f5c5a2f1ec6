# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""How often a job that fails begins again from its last checkpoint.

A task manager may be away for hours, and the job goes on soon after it is back. What fails each
time does so for a day, and the job fails then: somebody has to look at it.
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
    """Settings for Flink, beside those that its user has made: a strategy of theirs is taken as it
    is, and single settings of this one replace what is here."""
    if TYPE in users or TYPE_BEFORE in users:
        return {}
    return {key: value for key, value in FOR_A_DAY.items() if key not in users}
