# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The number of examples that Hypothesis tries."""

import os


def examples(number: int) -> int:
    """The number; under sanitizers, where C is several times slower, a third of it: few examples of
    a test reach all of its code, and sanitizers look for other faults than wrong answers."""
    return -(-number // 3) if "ZANON_SANITIZE" in os.environ else number
