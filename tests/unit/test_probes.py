# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Functions for tests alone are in the core of the source tree's tests, and in no wheel."""

import pytest
from support.paths import ROOT

from zanon_net import _core

FROM_SOURCE = (ROOT / "csrc").exists()  # beside the tests of a wheel lies no source


@pytest.mark.parametrize("name", ["decode_packet", "fail_allocation"])
def test_probes_are_for_tests_of_the_source(name: str) -> None:
    assert hasattr(_core, name) == FROM_SOURCE
