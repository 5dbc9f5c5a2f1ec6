# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Kinds of tables that readers return, for mypy alone. It reports each `type: ignore` that hides no
error."""

from typing import assert_type

import pandas
import polars
import pyarrow

from zanon_net import Report, read_log


def right(report: Report) -> None:
    """Calls that mypy must accept."""
    assert_type(read_log("logs"), pandas.DataFrame)
    assert_type(read_log("logs", "udp_complete", into="polars"), polars.DataFrame)
    assert_type(read_log("logs", into="arrow", names="tstat"), pyarrow.Table)
    assert_type(report.read(), pandas.DataFrame)
    assert_type(report.read("observations", into="polars"), polars.DataFrame)
    assert_type(report.read(into="arrow"), pyarrow.Table)


def wrong(report: Report) -> None:
    """Calls that mypy must refuse."""
    read_log("logs", into="excel")  # type: ignore[call-overload]
    read_log("logs", "video")  # type: ignore[call-overload]
    report.read(names="short")  # type: ignore[call-overload]
