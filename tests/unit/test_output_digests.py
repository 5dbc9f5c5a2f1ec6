# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""scripts/output_digests.py: workers that crash, and more captures than a worker takes."""

import importlib
import os
from types import ModuleType

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

Case = tuple[str, str]


@pytest.fixture(scope="module")
def module() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        return importlib.import_module("output_digests")


def digests(case: Case) -> tuple[str, dict[str, str]]:
    """Replaces the digests of a capture. The capture `crash` ends its worker."""
    name, source = case
    if name == "crash":
        os._exit(1)
    return name, {source: "digest"}


def test_more_captures_than_a_worker_takes(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "digests", digests)
    monkeypatch.setattr(module, "CASES_OF_WORKER", 1)
    names = ["one", "two", "three"]
    found = module.all_digests([(name, f"{name}.pcap") for name in names], 2)
    assert found == {name: {f"{name}.pcap": "digest"} for name in names}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_worker_that_crashes_ends_the_program(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(module, "digests", digests)
    with pytest.raises(SystemExit) as ended:
        module.all_digests([(name, "") for name in ("one", "crash", "three")], jobs)
    message = str(ended.value)
    assert message.startswith("output_digests.py: a worker crashed on ")
    assert jobs > 1 or "crashed on crash or" in message
    assert "\n" not in message
