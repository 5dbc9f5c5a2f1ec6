# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole rows with k-anonymity and l-diversity: tables, and streams that may wait.

`from zanon_net import microdata as md`:

- `Hierarchy`: how values of a column are generalized, from a file; `Round`, `Prefix`, `Intervals`,
  `Dates` and `Flat` make one of a column's values.
- `Plan`: the columns of a release and what holds for each of its classes.
- `anonymize(table, plan)`: a table generalized until each class has what the plan asks for.
- `check(table, plan)`: what holds in a table. `risk(original, released, plan)`: how often somebody
  who knows a person's quasi-identifiers finds the person's row, or sensitive value.

Tables are what pyarrow, pandas, polars and DuckDB have, by Arrow's PyCapsule interface. Needs
pyarrow: `pip install 'zanon-net[table]'`.
"""

from importlib import import_module

TYPE_CHECKING = False  # typing's own, without the time that importing it takes
if TYPE_CHECKING:
    from zanon_net.microdata.anonymizing import AnonymizeReport, Result, anonymize
    from zanon_net.microdata.attack import RiskReport, risk
    from zanon_net.microdata.checking import CheckReport, check
    from zanon_net.microdata.hierarchy import Dates, Flat, Hierarchy, Intervals, Prefix, Round
    from zanon_net.microdata.plan import Plan
    from zanon_net.microdata.publishing import Publisher

__all__ = [
    "AnonymizeReport",
    "CheckReport",
    "Dates",
    "Flat",
    "Hierarchy",
    "Intervals",
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

# The public names of each module. No module may have the name of one of them: importing it would
# put the module in the name's place.
_PLACES = {
    "anonymizing": "AnonymizeReport Result anonymize",
    "attack": "RiskReport risk",
    "checking": "CheckReport check",
    "hierarchy": "Dates Flat Hierarchy Intervals Prefix Round",
    "plan": "Plan",
    "publishing": "Publisher",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use: NumPy and pyarrow take long to import."""
    for place, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"zanon_net.microdata.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
