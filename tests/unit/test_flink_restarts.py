# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""How often a job of Flink begins again, and whose settings say so."""

from zanon_net.flink.restarts import FOR_A_DAY, TYPE, restart_strategy

ATTEMPTS = "restart-strategy.exponential-delay.attempts-before-reset-backoff"
LONGEST = "restart-strategy.exponential-delay.max-backoff"


def test_a_job_that_always_fails_begins_again_for_a_day() -> None:
    chosen = restart_strategy({"rest.port"})
    assert chosen == FOR_A_DAY
    assert int(chosen[ATTEMPTS]) * int(chosen[LONGEST].removesuffix(" s")) == 24 * 3600


def test_the_users_own_strategy_is_taken_as_it_is() -> None:
    assert restart_strategy({TYPE}) == {}
    assert restart_strategy({TYPE, ATTEMPTS}) == {}
    assert restart_strategy({"restart-strategy"}) == {}  # the key's former name


def test_one_setting_of_the_user_replaces_one() -> None:
    chosen = restart_strategy({ATTEMPTS})
    assert chosen == {key: value for key, value in FOR_A_DAY.items() if key != ATTEMPTS}
