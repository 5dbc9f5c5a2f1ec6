# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `attributes`: each attribute besides names was exposed by the row's flow, z users shared
it then, and no name of the flow was withheld."""

from collections.abc import Iterator
from dataclasses import replace

from zanon_net.audit.raw.attributes import OF_CERTIFICATES, OF_HELLOS
from zanon_net.audit.raw.exposures import Exposure, Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import UNCERTAIN, Flow, Name
from zanon_net.audit.raw.names import (
    COARSE_STATES,
    Claim,
    Settings,
    found,
    is_coarse,
    judge_absent,
    matching,
    weighed,
)
from zanon_net.audit.raw.shown import Row
from zanon_net.audit.raw.withheld import hidden_name

CHECK = "attributes"


def judge_attribute(
    claim: Claim, row: Row, seen: Exposures, settings: Settings, flow: Flow | None
) -> Finding | None:
    """Returns what is wrong with an attribute that a row shows, or None.

    flow: the flow of the row if it is certain.
    """
    z = settings.z_at(claim.times.last_ns)
    if claim.name[0] not in seen.attributes:
        return found(row, CHECK, claim, 0, z, proven=False)
    is_rounded = row.form == "flows" and is_coarse(row)
    if z > 1 and (row.cells.get("name_status") in COARSE_STATES or is_rounded):
        return found(row, CHECK, claim, 0, z)
    if flow is not None and not any(one.text == claim.name[1] for one in of_word(claim, flow)):
        return found(row, CHECK, claim, 0, z, proven=is_read(claim, flow, seen))
    matches = matching(claim, row, seen)
    if flow is not None:
        matches = [one for one in matches if seen.flows[one.flow] is flow]
    if not matches and claim.name[0] in OF_CERTIFICATES:
        matches = list(of_chains(claim, seen, settings))
    if not matches and row.form == "observations":
        return found(row, CHECK, claim, 0, z, proven=are_read(claim, seen))
    if not matches:
        return judge_absent(row, CHECK, claim, seen, settings)
    shared = [one for one in matches if one.users >= settings.z_at(one.t_ns)]
    if not shared:
        first = min(one.t_ns for one in matches) - settings.window_ns
        best, last = max(one.users for one in matches), max(one.t_ns for one in matches)
        return weighed(row, CHECK, claim, seen, best, z, (first, last))
    withheld = [hidden_by(one, row, seen, settings) for one in shared]
    if settings.z == 1 or None in withheld:
        return None
    users, needed, _text, proven = min(filter(None, withheld), key=lambda one: one[3])
    return found(row, CHECK, claim, users, needed, proven=proven)


def of_chains(claim: Claim, seen: Exposures, settings: Settings) -> Iterator[Exposure]:
    """Yields the exposures of flows with a packet at the time of an observation, as if they counted
    then. tshark reads a certificate when the whole chain is there; the run reads it before."""
    first_ns, last_ns = claim.times.first_ns, claim.times.last_ns
    numbers = {flow.number for flow in seen.flows_at(first_ns, last_ns)}
    before = seen.users_in(claim.name, first_ns - settings.window_ns, last_ns)
    for one in seen.index.get(claim.name, ()):
        if seen.flows[one.flow].number in numbers:
            yield replace(one, t_ns=last_ns, users=len(before | {one.user}))


def of_word(claim: Claim, flow: Flow) -> list[Name]:
    """Returns what a flow has of a claim's attribute."""
    return [one for one in flow.attributes if one.space == claim.name[0]]


def is_read(claim: Claim, flow: Flow, seen: Exposures) -> bool:
    """Returns whether the audit read all that could have the attribute in a flow: a hello for an
    attribute of hellos, else another text of the attribute."""
    known = of_word(claim, flow)
    uncertain = any(one.why == UNCERTAIN for one in known)
    if not known and not (claim.name[0] in OF_HELLOS and flow.greeted):
        return False
    return not (uncertain or flow.may_have_more or seen.is_dark(flow.first_ns, flow.last_ns))


def are_read(claim: Claim, seen: Exposures) -> bool:
    """Returns whether the audit read all flows with a packet at the time of an observation, and
    none of these flows has the text at another time."""
    times = claim.times.first_ns, claim.times.last_ns
    return not seen.is_dark(*times) and all(
        is_read(claim, flow, seen)
        and not any(one.text == claim.name[1] for one in of_word(claim, flow))
        for flow in seen.flows_at(*times)
    )


def hidden_by(
    one: Exposure, row: Row, seen: Exposures, settings: Settings
) -> tuple[int, int, str, bool] | None:
    """Returns a withheld name of an exposure's flow, as `hidden_name` does. An observation is
    decided before later names of its flow."""
    flow = seen.flows[one.flow]
    return hidden_name(flow, seen, settings, one.t_ns if row.form == "observations" else None)
