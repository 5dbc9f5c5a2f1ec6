# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes whose hashes change, and the shards of the Flink job as their counter."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.engine import LOGS, SETTINGS
from support.packets import MINUTE, SECOND
from support.probes import Probes, counted, traffic

from zanon_net._core import VOTE_KINDS, read_votes
from zanon_net.count.frames import framed
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.logged_shard import LoggedShard

WINDOW, EPOCH = MINUTE, MINUTE // 2
LENGTH = WINDOW + 2 * EPOCH + 7 * SECOND
MESSAGES_A_RUN = 40  # of a shard, before it is made again of its state


class FlinkProbes(Probes):
    """Each message goes to a shard as the job has it, which is restarted now and then."""

    def __post_init__(self) -> None:
        super().__post_init__()
        settings = SETTINGS | self.settings
        self._of_job = CountSettings(
            votes="",
            answers="",
            z=settings["z"],
            window_ns=settings["window_ns"],
            rotate_ns=settings["rotate_ns"],
            count_rotate_ns=settings["count_rotate_ns"],
            shards=self.shards,
            expect_probes=self.count,
        )
        self._logged = [LoggedShard(self._of_job, n) for n in range(self.shards)]
        self._delivered = 0

    def deliver(self, n: int) -> None:
        if not self.waiting[n]:
            return
        message = self.waiting[n].popleft()
        number = int.from_bytes(message[6:8], "little")
        shard = self._logged[number]
        self.answer(list(shard.take(framed(message))))
        self._delivered += 1
        if self._delivered % MESSAGES_A_RUN == 0:
            self._logged[number] = LoggedShard.restore(self._of_job, number, *shard.snapshot())


@pytest.mark.parametrize(("seed", "shards"), [(0, 1), (1, 4)])
def test_generations_of_hashes_change_nothing_in_the_shards_of_the_job(
    tmp_path: Path, seed: int, shards: int
) -> None:
    """Beside the same probes under one key, with a counter that is never restarted."""
    key_file = tmp_path / "zanon.key"
    key_file.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    key_file.chmod(0o600)
    plain: dict[str, Any] = {
        "z": 4, "window_ns": WINDOW, "rotate_ns": EPOCH, "key_file": str(key_file),
    }  # fmt: skip
    chosen, parts = plain | {"count_rotate_ns": LENGTH}, traffic(800, seed=seed)
    before, _probes = counted(parts, plain, seed=seed, shards=shards)
    outcomes, probes = counted(parts, chosen, seed=seed, shards=shards, make=FlinkProbes)
    for now, then in zip(outcomes, before, strict=True):
        assert {output: Counter(now.text[output].splitlines()) for output in LOGS} == {
            output: Counter(then.text[output].splitlines()) for output in LOGS
        }
    assert sum(outcome.stats["released"] for outcome in outcomes) > 50
    again = Counter(
        int(t_ns) // LENGTH
        for votes in map(read_votes, probes.sent)
        for t_ns in votes["t_ns"][votes["kind"] == VOTE_KINDS["only"]]
    )
    assert len(again) > 2  # votes of so many generations counted in the next one too
