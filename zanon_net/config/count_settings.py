# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `count`: a frozen dataclass, checked when it is made."""

from zanon_net.config import rules
from zanon_net.config.count_fields import CountFields
from zanon_net.config.setting import describe


class CountConfig(CountFields):
    """The settings of a counter."""

    __slots__ = ()

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)

    @property
    def rotate_ns(self) -> int:
        """The length of an epoch in nanoseconds."""
        return rules.rotate_ns(self.settings())

    @property
    def count_rotate_ns(self) -> int | None:
        """The length of a generation of hash keys in nanoseconds; None: one key for all time."""
        return None if self.count_rotate is None else int(self.count_rotate)


describe(CountConfig)
