# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/howto/operating.md are those of the program."""

import re
from pathlib import Path

import pytest
from support.paths import ROOT

from zanon_net import Config, caps_for_bytes, run
from zanon_net._core import PacketEngine
from zanon_net.config.run_rows import COLUMN_SETS

pytestmark = pytest.mark.source


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "howto" / "operating.md").read_text(encoding="utf-8")


def flow_bytes_max(columns: tuple[str, ...], max_flows: int) -> int:
    config = Config().replace(columns=columns, max_flows=max_flows)
    engine = PacketEngine(**config.engine_arguments())
    size = engine.flow_bytes_max
    engine.close()
    return size


def test_memory(page: str) -> None:
    usual, flows = Config().output.columns, Config().limits.max_flows
    size = flow_bytes_max(usual, flows)
    assert f"up to {flows:,} flows, in up to {size:,} bytes of memory" in page
    for columns in (("core",), usual, COLUMN_SETS):
        assert f" {flow_bytes_max(columns, flows) // flows:,} " in page
    assert f"{flow_bytes_max(usual, 1000) // 1000} bytes with `--max-flows 1000`" in page
    tuples, attributes = caps_for_bytes(1 << 30, keep=20)
    assert f"({tuples}, {attributes})" in page
    assert f"max_tuples = {tuples}\nmax_attributes = {attributes}\n" in page


def test_internal(page: str, demo_pcap: Path, tmp_path: Path) -> None:
    rows = re.findall(
        r"^\| `([\w./]+)`[^|]*\| ([\d,]+) \| ([\d,]+) \| (\d+) \| (\d+) \|$", page, re.M
    )
    assert len(rows) == 4
    for number, (internal, *told) in enumerate(rows):
        config = Config().replace(z=3, internal=internal)
        manifest = run(demo_pcap, config, out=tmp_path / str(number)).manifest
        decisions, flow = manifest["decisions"], manifest["counters"]["flow"]
        found = [manifest["users"], flow["flows_external"]]
        found += [decisions["suppressed"]["outside"], decisions["released"]]
        assert [f"{count:,}" for count in found] == told
