# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A release in the database, as the metrics read it."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zanon_net.audit.database import Database
from zanon_net.audit.records import SUPPRESSED
from zanon_net.audit.release import Release
from zanon_net.audit.result import Metric

if TYPE_CHECKING:
    from zanon_net.audit.undo import Addresses

FEWEST = 50
"""Fewest pseudonyms for which a risk is a figure."""
TARGETS = 2000
"""Most pseudonyms that are attacked."""
SECOND_US, MINUTE_US, HOUR_US = 1_000_000, 60_000_000, 3_600_000_000


class Subject:
    """A release in the database.

    addresses: addresses behind the pseudonyms if the auditor has the key file; else None.

    `points` has the names and the attributes besides names in all records of pseudonyms. `seen` has
    the start of each record of a pseudonym. `shown`
    has the number of records of each pseudonym and point; `is_name` is false for an attribute.
    `people` has each pseudonym with two hashes of its set of points; equal sets have equal hashes.
    """

    def __init__(
        self,
        database: Database,
        release: Release,
        purpose: str,
        *,
        has_categories: bool = False,
        addresses: "Addresses | None" = None,
    ) -> None:
        self.database, self.release, self.purpose = database, release, purpose
        self.has_categories, self.addresses = has_categories, addresses
        database.run(
            "CREATE VIEW points AS SELECT epoch, who, name, start_us, true AS is_name FROM records"
            " WHERE who IS NOT NULL AND name IS NOT NULL UNION ALL"
            " SELECT epoch, who, name, start_us, false FROM attributes"
        )
        database.run(
            "CREATE VIEW seen AS SELECT epoch, who, start_us FROM records WHERE who IS NOT NULL"
            " UNION ALL SELECT epoch, who, start_us FROM attributes"
        )
        database.run(
            "CREATE TABLE shown AS SELECT epoch, who, name, is_name, count(*)::UINTEGER AS n"
            " FROM points GROUP BY epoch, who, name, is_name"
        )
        database.run(
            "CREATE TABLE people AS WITH sets AS (SELECT who, count(*)::UINTEGER AS names,"
            " bit_xor(hash(name, 1)) AS odd, sum((hash(name, 2) >> 24)::BIGINT) AS total"
            " FROM shown GROUP BY who), everyone AS (SELECT DISTINCT epoch, who FROM seen)"
            " SELECT epoch, everyone.who, coalesce(names, 0) AS names,"
            " hash(odd, total) AS names_set FROM everyone LEFT JOIN sets USING (who)"
        )
        database.run(
            "CREATE TABLE classes AS SELECT epoch, names_set, count(*) AS k FROM people"
            " GROUP BY epoch, names_set"
        )

    @cached_property
    def pseudonyms(self) -> int:
        """Number of pseudonyms; one client in two epochs has two."""
        return int(self.database.value("SELECT count(*) FROM people"))

    @cached_property
    def epochs(self) -> int:
        """Number of epochs that have a pseudonym."""
        return int(self.database.value("SELECT count(DISTINCT epoch) FROM people"))

    @cached_property
    def seed(self) -> int:
        """Seed of samples: a hash of the records, whatever their order."""
        return int(
            self.database.value(
                "SELECT coalesce(bit_xor(hash(start_us, end_us, who, name, c_bytes, s_bytes)), 0)"
                " >> 16 FROM records"
            )
        )

    @cached_property
    def slot_us(self) -> int:
        """Length to which times of records with a name are rounded, at least a second (us)."""
        times = [folder.setting("output", "times") for folder in self.release.folders]
        return max([SECOND_US, *(duration_us(value) for value in times)])

    @cached_property
    def visited(self) -> str:
        """Condition on records that are visits: not DNS, unless the log has nothing else."""
        count = self.database.value(
            "SELECT count(*) FROM records WHERE name IS NOT NULL AND NOT dns"
        )
        return "NOT dns" if count else "true"

    @cached_property
    def is_exact(self) -> bool:
        """True if records of suppressed names have exact measurements."""
        count = self.database.value(
            f"SELECT count(*) FROM records WHERE status >= {SUPPRESSED} AND coarse"
        )
        return int(count) == 0

    def drop(self, *tables: str) -> None:
        """Removes tables of a metric."""
        for table in tables:
            self.database.run(f"DROP TABLE IF EXISTS {table}")


Measure = Callable[[Subject], list[Metric]]


def duration_us(value: Any) -> int:
    """Returns a duration of a manifest, such as 60s, in us; 0 for "exact" and for none."""
    units = {"ms": 1000, "us": 1, "s": SECOND_US, "m": 60 * SECOND_US, "h": HOUR_US}
    if isinstance(value, Mapping) or not isinstance(value, str):
        return 0
    number = value.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = units.get(value[len(number) :], 0)
    return int(number) * unit if number.isdigit() else 0
