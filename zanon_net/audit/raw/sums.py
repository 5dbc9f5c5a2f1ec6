# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `sums`: the manifest's numbers next to the files, and next to the audit's own numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, Flow, Rules
from zanon_net.audit.raw.hosts import INVALID
from zanon_net.audit.raw.packets import TCP

MANIFEST = "manifest.json"


def sums(
    manifest: Mapping[str, Any],
    rows: Mapping[str, int],
    seen: Exposures,
    z: int,
    attributes: Mapping[str, int],
) -> Iterator[Finding]:
    """Yields the numbers of a manifest that do not add up.

    rows: the number of each file. attributes: observations of each attribute besides names.
    """
    for one in manifest["outputs"]:
        if one["file"] in rows and rows[one["file"]] != one["records"]:
            yield Finding("sums", one["file"], None, "records", one["records"], rows[one["file"]])
    decisions = manifest["decisions"]
    below = sum(decisions["suppressed"][why] for why in ("below_z", "too_late"))
    total = decisions["released"] + below + decisions["suppressed"].get("unanswered", 0)
    total += decisions.get("generalized", 0)
    if decisions["observations"] != total:
        yield number("decisions.observations", decisions["observations"], total)
    yield from formats(manifest)
    released = decisions["released"] + manifest["counters"]["dns"]["dns_released"]
    released += decisions.get("generalized", 0)
    released += manifest["counters"]["dns"].get("dns_generalized", 0)
    released += sum(attributes.values())
    lines = [count for file, count in rows.items() if file.startswith("observations")]
    if lines and sum(lines) != released:
        yield number("decisions.released", released, sum(lines))
    for word, stated in (manifest.get("attributes") or {}).items():
        yield from of_attribute(word, stated, attributes.get(word, 0) if lines else None)
    unread = len(seen.dark) + sum(flow.unread and flow.recorded for flow in seen.flows)
    more, fewer = readings(manifest, seen)
    dns, records = manifest["counters"]["dns"], manifest["records"]["records"]
    for space, column, count, passed in (
        ("name", "decisions", decisions["observations"], decisions["released"]),
        (DNS, "counters.dns", dns["dns_observations"], dns["dns_released"]),
    ):
        if space == DNS and seen.rules.dns_votes == "no":
            continue  # names of DNS are looked up, and not counted
        users = np.array(users_of(seen, space), np.int64)
        name = "" if space == "name" else "dns_"
        yield from beyond(f"{column}.{name}observations", count, len(users), fewer, more)
        least = fewer + int(np.sum((users >= z) & (users < z + fewer)))
        most = more + int(np.sum((users >= z - more) & (users < z)))
        if decisions["clock_jumps"]:
            least = len(users)  # a clock that is set back forgets all users
        own = int(np.sum(users >= z))
        yield from beyond(f"{column}.{name}released", passed, own, least, most)
    sent, recorded = users_that_sent(seen), sum(flow.recorded for flow in seen.flows)
    yield from beyond("users", manifest["users"], sent, unread, unread)
    yield from beyond("records.records", records, recorded, unread, unread)


def of_attribute(word: str, stated: Mapping[str, int], lines: int | None) -> Iterator[Finding]:
    """Yields the numbers of an attribute that do not add up. lines: of observations, if any."""
    total = stated["released"] + stated["suppressed"]
    if stated["observations"] != total:
        yield number(f"attributes.{word}.observations", stated["observations"], total)
    if lines is not None and lines != stated["released"]:
        yield number(f"attributes.{word}.released", stated["released"], lines)


def beyond(column: str, stated: int, own: int, fewer: int, more: int) -> Iterator[Finding]:
    """Yields a number that is further from the audit's own number than the two readers may
    differ."""
    if not own - fewer <= stated <= own + more:
        yield number(column, stated, own)


def readings(manifest: Mapping[str, Any], seen: Exposures) -> tuple[int, int]:
    """Returns how many names the engine may have counted that the audit did not, and the reverse.

    A frame that the audit did not read may have a name, and so may each packet with a payload that
    the client of an unread flow, or of a flow with a gap, sent, if the flow has the evidence for
    a vote.
    """
    suppressed = manifest["decisions"]["suppressed"]
    forms = suppressed["invalid"] - barred(seen, INVALID)
    evidence = suppressed["unconfirmed"] - unconfirmed(seen)
    more = len(seen.dark) + sum(
        speech(flow, seen.rules) for flow in seen.flows if flow.may_have_more
    )
    more += max(-forms, 0) + max(-evidence, 0)
    return more, late(manifest) + max(forms, 0) + max(evidence, 0)


def speech(flow: Flow, rules: Rules) -> int:
    """Returns the number of packets in which the client of a flow may have named a host."""
    if flow.proto == TCP and rules.established and flow.proven_ns is None:
        return 0
    has_client = flow.proto == TCP and not flow.midstream
    return flow.spoken[flow.client] if has_client else max(flow.spoken)


def users_of(seen: Exposures, space: str) -> list[int]:
    """Returns the number of users at each exposure of a namespace."""
    return [
        one.users for (where, _text), found in seen.index.items() if where == space for one in found
    ]


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
