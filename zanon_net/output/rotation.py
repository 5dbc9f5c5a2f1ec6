# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names of the files of a run's parts. A part is identified by the time of its begin."""

from collections.abc import Set
from datetime import UTC, datetime

from zanon_net.config.rules import FORMAT_OUTPUTS
from zanon_net.output.sink import Plan


def tstat_folder(first_ns: int) -> str:
    """Returns the name of Tstat's folder for a first packet at `first_ns`, in UTC."""
    return _utc(first_ns, "%Y_%m_%d_%H_%M.out")


def part_names(plan: Plan, stamp_ns: int, taken: Set[str], *, divided: bool) -> dict[str, str]:
    """Returns the names of a part's files by output, with "-2" and so on if another part has the
    same stamp.

    stamp_ns: begin of the part, ns since the Unix epoch.
    taken: names of earlier parts' files.
    divided: true if the run has several parts, so that all names carry the stamp.
    """
    number = 1
    while True:
        names = {o: _name(plan, o, stamp_ns, number, divided=divided) for o in plan.outputs}
        if taken.isdisjoint(names.values()):
            return names
        number += 1


def _name(plan: Plan, output: str, stamp_ns: int, number: int, *, divided: bool) -> str:
    again = "" if number == 1 else f"-{number}"
    if output in FORMAT_OUTPUTS["tstat"]:
        folder = tstat_folder(stamp_ns)
        return f"{folder.removesuffix('.out')}{again}.out/{plan.file_name(output)}"
    stamp = _utc(stamp_ns, "-%Y%m%dT%H%M%SZ") + again if divided else ""
    return plan.file_name(output, stamp)


def _utc(t_ns: int, form: str) -> str:
    return datetime.fromtimestamp(t_ns // 1_000_000_000, UTC).strftime(form)
