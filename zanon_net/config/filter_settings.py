# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `zanon-net filter`, checked when they are made.

A wrong value raises `ConfigError` with a text that starts with the field's name.
"""

from typing import Any

from zanon_net.config import ladder_rules, rules
from zanon_net.config.filter_fields import FilterFields
from zanon_net.config.setting import core_arguments, describe, manifest_of


class FilterConfig(FilterFields):
    """The settings of a run of the filter."""

    __slots__ = ()

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)

    @property
    def file_mode(self) -> int:
        """The mode of the file of `popularity`."""
        return int(self.mode, 8)

    @property
    def rotate_ns(self) -> int:
        """The length of an epoch in nanoseconds."""
        return rules.rotate_ns(self.settings())

    @property
    def has_steps(self) -> bool:
        """True if whole rows are generalized in steps."""
        return ladder_rules.has_steps(self.settings())

    @property
    def levels_of_attribute(self) -> tuple[str, ...]:
        """The levels of an attribute that is a name or an address."""
        return ladder_rules.levels_of_attribute(self.settings())

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of attributes."""
        return tuple(rules.attributes(self.settings()))

    @property
    def hierarchies(self) -> dict[str, str]:
        """The hierarchy file of each attribute, in the order of attributes."""
        files = dict(self.settings()["hierarchy"])
        return {column: files[column] for column in self.attributes if column in files}

    def row_filter_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of `_core.RowFilter`."""
        return core_arguments(self.rows, self.settings())

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings as the manifest has them, without the key and its path."""
        return manifest_of(self.rows, self.settings())


describe(FilterConfig)
