# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole rows with k-anonymity and l-diversity: tables, and streams that may wait.

`from zanon_net import microdata as md`:

- `Hierarchy`: the generalization of a column's values, from a file. `Round`, `Prefix`, `Networks`,
  `Intervals`, `Dates` and `Flat` make a hierarchy of a column's values.
- `Plan`: the columns of a release and the requirements of each class.
- `anonymize(table, plan)`: generalizes a table until each class meets the plan's requirements.
- `check(table, plan)`: measures the classes of a table. `risk(original, released, plan)`: how often
  an attacker who knows a person's quasi-identifiers finds the person's row, or sensitive value.

Tables are objects of pyarrow, pandas, polars and DuckDB, by Arrow's PyCapsule interface. Needs
pyarrow: `pip install 'zanon-net[table]'`.
"""

from importlib import import_module

TYPE_CHECKING = False  # typing's own, without the time of importing typing
if TYPE_CHECKING:
    from zanon_net.microdata.anonymizing import AnonymizeReport, Result, anonymize
    from zanon_net.microdata.attack import RiskReport, risk
    from zanon_net.microdata.checking import CheckReport, check
    from zanon_net.microdata.hierarchy import (
        Dates,
        Flat,
        Hierarchy,
        Intervals,
        Networks,
        Prefix,
        Round,
    )
    from zanon_net.microdata.plan import Plan
    from zanon_net.microdata.publishing import Publisher

__all__ = [
    "AnonymizeReport",
    "CheckReport",
    "Dates",
    "Flat",
    "Hierarchy",
    "Intervals",
    "Networks",
    "Plan",
    "Prefix",
    "Publisher",
    "Result",
    "RiskReport",
    "Round",
    "anonymize",
    "check",
    "risk",
]

# The public names of each module. No module may have the name of a public name: importing the
# module would replace the name.
_PLACES = {
    "anonymizing": "AnonymizeReport Result anonymize",
    "attack": "RiskReport risk",
    "checking": "CheckReport check",
    "hierarchy": "Dates Flat Hierarchy Intervals Networks Prefix Round",
    "plan": "Plan",
    "publishing": "Publisher",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use, because NumPy and pyarrow take long to import."""
    for place, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"zanon_net.microdata.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
