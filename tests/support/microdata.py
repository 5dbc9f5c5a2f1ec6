# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of rows for tests of zanon_net.microdata."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

# What a reader could take apart, texts that differ little, and any script.
WORDS = st.one_of(
    st.sampled_from(["a", "A", "b", "a ", "*", "é", "e\u0301", '"', ",", "x\ty", "-", "null"]),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=4),
)


def arrow_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in columns})


def rows_of(
    columns: Mapping[str, Sequence[Any]], *, most: int = 12, least: int = 0
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows whose columns have few values each, so that rows meet."""
    cells = {name: st.sampled_from(list(values)) for name, values in columns.items()}
    return st.lists(st.fixed_dictionaries(cells), min_size=least, max_size=most)
