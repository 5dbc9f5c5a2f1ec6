# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The schema of settings: what is made of it is there."""

import runpy
from typing import Any

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

PAGE = "docs/reference/configuration.md"


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "make_settings.py"))


def test_what_is_made_of_the_schema_is_there(script: dict[str, Any]) -> None:
    """Else run scripts/make_settings.py."""
    page = (ROOT / PAGE).read_text("utf-8")
    assert script["page_with_tables"](page) == page
    for made, source in script["made_sources"]().items():
        assert made.read_text("utf-8") == source, made
