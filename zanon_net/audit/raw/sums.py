# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `sums`: the manifest's numbers next to the files, and next to the audit's own numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS
from zanon_net.audit.raw.hosts import INVALID

MANIFEST = "manifest.json"


def sums(
    manifest: Mapping[str, Any], rows: Mapping[str, int], seen: Exposures, z: int
) -> Iterator[Finding]:
    """Yields the numbers of a manifest that do not add up. rows: the number of each file."""
    for one in manifest["outputs"]:
        if one["file"] in rows and rows[one["file"]] != one["records"]:
            yield Finding("sums", one["file"], None, "records", one["records"], rows[one["file"]])
    decisions = manifest["decisions"]
    below = sum(decisions["suppressed"][why] for why in ("below_z", "too_late"))
    total = decisions["released"] + below + decisions["suppressed"].get("unanswered", 0)
    if decisions["observations"] != total:
        yield number("decisions.observations", decisions["observations"], total)
    yield from formats(manifest)
    released = decisions["released"] + manifest["counters"]["dns"]["dns_released"]
    lines = [count for file, count in rows.items() if file.startswith("observations")]
    if lines and sum(lines) != released:
        yield number("decisions.released", released, sum(lines))
    unread = len(seen.dark) + len(seen.unread)
    # Names on which the two readers differ: their form, and their evidence.
    suppressed = decisions["suppressed"]
    # Each packet of a flow that was not read may hold a name.
    doubt = len(seen.dark) + sum(sum(flow.packets) for flow in seen.flows if flow.unread)
    doubt += late(manifest) + abs(suppressed["invalid"] - barred(seen, INVALID))
    doubt += abs(suppressed["unconfirmed"] - unconfirmed(seen))
    own = observed(seen, z)
    dns, records = manifest["counters"]["dns"], manifest["records"]["records"]
    stated = {
        "decisions.observations": (decisions["observations"], own["name"], doubt),
        "decisions.released": (decisions["released"], own["released"], doubt),
        "counters.dns.dns_observations": (dns["dns_observations"], own["dns"], doubt),
        "counters.dns.dns_released": (dns["dns_released"], own["dns_released"], doubt),
        "users": (manifest["users"], users_that_sent(seen), unread),
        "records.records": (records, sum(flow.recorded for flow in seen.flows), unread),
    }
    for name, (theirs, ours, most) in stated.items():
        if name.startswith("counters.dns") and seen.rules.dns_votes == "no":
            continue  # names of DNS are looked up, and not counted
        if decisions["clock_jumps"] and name.endswith("released") and theirs < ours:
            continue  # a clock that is set back forgets all users
        if abs(theirs - ours) > most:
            yield number(name, theirs, ours)


def observed(seen: Exposures, z: int) -> dict[str, int]:
    """Returns the audit's numbers of observations."""
    own = dict.fromkeys(("name", "released", "dns", "dns_released"), 0)
    for (space, _text), found in seen.index.items():
        if space in ("name", DNS):
            released = sum(one.users >= z for one in found)
            own[space] += len(found)
            own["released" if space == "name" else "dns_released"] += released
    return own


def users_that_sent(seen: Exposures) -> int:
    """Returns the audit's number of users that sent a packet."""
    sides = ((flow, flow.client ^ flow.user_end) for flow in seen.flows if flow.recorded)
    return len({flow.user for flow, side in sides if flow.packets[side]})


def barred(seen: Exposures, kind: str) -> int:
    """Returns the audit's number of names that never count for a reason."""
    return sum(why == kind for found in seen.barred.values() for _t_ns, why in found)


def unconfirmed(seen: Exposures) -> int:
    """Returns the audit's number of names whose client had no evidence."""
    names = (name for flow in seen.flows for name in flow.names if name.space in ("name", DNS))
    return sum(name.why is None and name.voted_ns is None for name in names)


def formats(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields formats with another number of records than closed flows."""
    records = manifest["records"]
    if records["closed"] != records["withheld"] + records["records"]:
        total = records["withheld"] + records["records"]
        yield number("records.closed", records["closed"], total)
    for form, counts in records.items():
        if isinstance(counts, Mapping) and sum(counts.values()) != records["records"]:
            yield number(f"records.{form}", sum(counts.values()), records["records"])


def late(manifest: Mapping[str, Any]) -> int:
    """Returns how many observations the engine decided out of order, or lost to a limit: it may
    suppress them."""
    decisions = manifest["decisions"]
    why = ["capacity", "conflict", "incomplete", "quic_version", "never_list", "unread", "too_late"]
    why += ["not_listed", "skipped"]  # not in manifests of earlier versions
    lost = (int(decisions["suppressed"].get(name, 0)) for name in why)
    moved = (int(decisions[name]) for name in ("late", "late_deep", "clock_jumps", "evicted"))
    return sum(lost) + sum(moved)


def number(column: str, stated: float, counted: float) -> Finding:
    """Returns a number of the manifest that is another by count."""
    return Finding("sums", MANIFEST, None, column, stated, counted)
