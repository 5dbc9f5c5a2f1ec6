# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`--split-size`: where a file is large, another begins, at the same record whoever read ahead."""

from pathlib import Path
from typing import Any

import pytest

import zanon_net
from zanon_net import Config
from zanon_net.bench.trace import Scale, generate


@pytest.fixture(scope="module")
def browsing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four times as many packets as are read between two looks at the sizes."""
    path = tmp_path_factory.mktemp("browsing") / "isp.pcap"
    generate(path, "isp", Scale(octets=56_000_000))
    return path


@pytest.mark.parametrize(
    "more",
    [{}, {"popularity": "counts.json"}, {"target_p": 0.9, "z_max": 40}],
    ids=["alone", "popularity", "target"],
)
@pytest.mark.parametrize("window", ["1s", "1m"])
def test_parts_are_the_same_for_any_number_of_workers(
    browsing: Path, tmp_path: Path, window: str, more: dict[str, Any]
) -> None:
    key = tmp_path / "key"
    key.write_text("rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4=\n")
    key.chmod(0o600)
    config = Config().replace(z=2, window=window, rotate="1m", key_file=key, split_size="200k")
    found = []
    for workers in (1, 2, 3):
        out = tmp_path / str(workers)
        if "popularity" in more:
            more = {"popularity": tmp_path / f"{workers}.json"}
        chosen = config.replace(workers=workers, format=("tstat", "jsonl"), **more)
        zanon_net.run(browsing, chosen, out=out)
        logs = [path for path in out.rglob("*") if path.is_file() and path.suffix != ".json"]
        found.append({path.relative_to(out): path.read_bytes() for path in logs})
    assert len(found[0]) >= 3 * 4
    assert found[1] == found[0]
    assert found[2] == found[0]
