# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hierarchies for tests."""

import csv
import io
from collections.abc import Sequence

from hypothesis import strategies as st

LABELS = st.text(
    st.one_of(
        st.sampled_from("ab*;,\" '=é"),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    max_size=4,
)


@st.composite
def lines(draw: st.DrawFn, *, leaves: int = 10, levels: int = 4) -> list[list[str]]:
    """The lines of a hierarchy: at each level every node goes to one of a few."""
    values = draw(st.lists(LABELS, min_size=1, max_size=leaves, unique=True))
    rows = [[value] for value in values]
    for _level in range(draw(st.integers(0, levels - 2))):
        labels = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
        parents = {row[-1]: draw(st.sampled_from(labels)) for row in rows}
        rows = [[*row, parents[row[-1]]] for row in rows]
    return [[*row, "*"] for row in rows]


def as_file(rows: Sequence[Sequence[str]], delimiter: str = ";", *, quoted: bool = False) -> bytes:
    """The file of a hierarchy."""
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
    return text.getvalue().encode()
