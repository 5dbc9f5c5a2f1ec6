# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `coarse` by the captures: an exact record whose flow has a name that was not releasable."""

from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, Flow, Name
from zanon_net.audit.raw.names import Settings, is_coarse
from zanon_net.audit.raw.pseudonyms import FlowsOfRows
from zanon_net.audit.raw.shown import Row


def withheld(row: Row, flows: FlowsOfRows, seen: Exposures, settings: Settings) -> Finding | None:
    """Returns a finding if a name of an exact record's flow had fewer than z users."""
    if row.form == "observations" or settings.exact or settings.z == 1 or settings.times_ns > 1:
        return None
    flow = None if is_coarse(row) else flows.flow_of(row)
    if flow is None:
        return None
    hidden = hidden_name(flow, seen, settings)
    if hidden is not None:
        return Finding("coarse", row.file, row.number, "complete", *hidden)
    if flow.midstream and any(flow.payload) and row.cells.get("name_status") == "none":
        return Finding("coarse", row.file, row.number, "complete", 0, settings.z)
    return None


def hidden_name(
    flow: Flow, seen: Exposures, settings: Settings, last_ns: int | None = None
) -> tuple[int, int, str, bool] | None:
    """Returns a name of a flow that fewer than z users shared: the users, z, the name, and whether
    this is certain; None if there is no such name.

    last_ns: names that the flow exposed later do not matter.
    """
    for name in flow.names:
        if name.space not in ("name", DNS) or (last_ns is not None and name.seen_ns > last_ns):
            continue
        users = users_of(name, flow, seen)
        if users is None:
            continue
        t_ns = name.voted_ns or name.seen_ns
        z = settings.z_at(t_ns)
        if users < z:
            more = seen.doubtful((name.space, name.text), t_ns - settings.window_ns, t_ns)
            return users, z, name.text, name.why is not None or users + more < z
    return None


def users_of(name: Name, flow: Flow, seen: Exposures) -> int | None:
    """Returns the number of users of a flow's name when it counted; None: it is not certain."""
    if name.why is not None:
        return 0
    if name.voted_ns is None:
        return None
    if name.space == DNS and seen.rules.dns_votes == "no":
        first = name.voted_ns - seen.rules.window_ns
        return len(seen.users_in(("name", name.text), first, name.voted_ns))
    rows = seen.started.get(((name.space, name.text), flow.first_ns), ())
    return next((one.users for one in rows if seen.flows[one.flow] is flow), None)
