# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks `names`, `reasons` and `addresses`: whether z users shared what a row shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from zanon_net.audit.raw.exposures import Exposure, Exposures, Name
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import AGENT, CERTIFICATE, DNS, DNS_PORT, RESOLVER, SERVER
from zanon_net.audit.raw.hosts import HOME, NAME, normal
from zanon_net.audit.raw.shown import Row

MINUTE_NS = 60 * 10**9
IDLE_NS = 310 * 10**9  # a flow closes so long after its last packet at the latest
LABELLED = ("name", "c_tls_SNI", "http_hostname", "quic_SNI", "server_label")
NAMES_OF_TSTAT = {"c_tls_SNI": "tls", "http_hostname": "http", "quic_SNI": "quic"}
COARSE_STATES = ("suppressed", "unconfirmed", "invalid")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a folder that say what its rows mean."""

    z: int
    z_changes: Sequence[tuple[int, int]]
    window_ns: int
    rotate_ns: int
    times_ns: int
    coarse_end: bool
    dn_hunter: bool
    dns_votes: str
    exact: bool
    attributes: tuple[str, ...] = ()  # besides names, by their words

    def z_at(self, t_ns: int) -> int:
        """Returns z at a time."""
        return next((z for since_ns, z in reversed(self.z_changes) if since_ns <= t_ns), self.z)


@dataclass(frozen=True, slots=True)
class Times:
    """When a row's flow began and ended, as far as the row tells.

    exact: the first packet came at `first_ns`.
    """

    first_ns: int
    last_ns: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that a row shows, which needs z users. peek: it casts no vote of its own."""

    column: str
    name: Name
    times: Times
    peek: bool = False


def is_coarse(row: Row) -> bool:
    """Returns whether the row's measurements are rounded."""
    if row.form == "observations":
        return False
    if row.form == "flows":
        return row.cells.get("complete") is None
    times = [row.cells.get(name) for name in ("first", "last", "c_first_abs", "s_first_abs")]
    return all(nanoseconds(text) % MINUTE_NS == 0 for text in times if text)


def nanoseconds(milliseconds: str) -> int:
    """Returns a time of Tstat's logs in ns."""
    whole, _point, rest = milliseconds.partition(".")
    return int(whole) * 10**6 + int(rest[:6].ljust(6, "0"))


def began_ns(row: Row) -> int:
    """Returns the first time of a flow's row."""
    if row.form == "tstat":
        return nanoseconds(row.cells.get("first") or row.cells["c_first_abs"])
    return int(row.cells["t_start_ns"])


def times_of(row: Row, settings: Settings) -> Times:
    """Returns the times that a row tells."""
    if row.form == "observations":
        t_ns = int(row.cells["t_ns"])
        return Times(t_ns, t_ns + settings.times_ns - 1, settings.times_ns == 1)
    first = began_ns(row)
    if row.form == "tstat":
        last = nanoseconds(row.cells["last"]) if row.cells.get("last") else None
        if last is None:
            spans = (row.cells.get(name) for name in ("c_durat", "s_durat"))
            last = first + max(int(float(text or 0) * 1e9) for text in spans) + MINUTE_NS
    else:
        last = int(row.cells["t_end_ns"])
    if is_coarse(row) and not settings.exact and settings.z > 1:
        return Times(first if settings.coarse_end else 0, last + MINUTE_NS - 1, False)
    return Times(first, last + settings.times_ns - 1, settings.times_ns == 1)


def claims_of(row: Row, settings: Settings) -> Iterator[Claim]:
    """Yields what a row shows that needs z users."""
    cells, times = row.cells, times_of(row, settings)
    if row.form == "observations":
        if cells.get("namespace") in settings.attributes:
            yield Claim("name", (cells["namespace"], cells["name"]), times)
        else:
            dns = cells.get("name_source") == "dns"
            yield name_claim("name", cells["name"], dns, times, settings)
        return
    for word in settings.attributes:
        text = cells.get(column_of(word))
        if text:
            yield Claim(column_of(word), (word, text), times)
    port = cells.get("server_port") if row.form == "flows" else cells.get("s_port")
    asks = int(port or 0) == DNS_PORT
    shown = cells.get("name")
    if shown:
        yield name_claim("name", shown, cells.get("name_source") == "dns", times, settings)
    for column in NAMES_OF_TSTAT:
        text = cells.get(column)
        if text and text != shown:
            yield name_claim(column, text, False, times, settings)
    text = cells.get("fqdn")
    if text and text != shown:
        if asks and not settings.dn_hunter:
            yield name_claim("fqdn", text, True, times, settings)
        else:
            yield Claim("fqdn", ("name", text), times, peek=True)
    for column, space in (("s_tls_SCN", CERTIFICATE), ("quic_UA", AGENT)):
        if cells.get(column):
            yield Claim(column, (space, cells[column]), times)
    server = "server" if row.form == "flows" else "s_ip"
    if cells.get(server) and not flag(cells.get("s_iscrypto")):
        space = RESOLVER if asks and settings.dns_votes == "own" else SERVER
        peek = asks and settings.dns_votes == "no"
        yield Claim(server, (space, ip_address(cells[server]).packed), times, peek)
    if cells.get("server_label"):
        space = RESOLVER if asks and settings.dns_votes == "own" else SERVER
        yield Claim("server_label", (space, cells["server_label"]), times)
    if cells.get("dns_rslv") and not flag(cells.get("dns_enc")):
        space = RESOLVER if settings.dns_votes == "own" else SERVER
        yield Claim("dns_rslv", (space, ip_address(cells["dns_rslv"]).packed), times, peek=True)


def column_of(word: str) -> str:
    """Returns the column of an attribute besides names."""
    return word.replace("-", "_")


def name_claim(column: str, text: str, dns: bool, times: Times, settings: Settings) -> Claim:
    """Returns the claim of a name, in its namespace."""
    if dns and settings.dns_votes == "no":
        return Claim(column, ("name", text), times, peek=True)
    return Claim(column, (DNS if dns and settings.dns_votes == "own" else "name", text), times)


def flag(value: Any) -> bool:
    """Returns whether a flag is set."""
    return value in (True, 1, "1", "true")


def judge(claim: Claim, row: Row, seen: Exposures, settings: Settings) -> Finding | None:
    """Returns what is wrong with a claim; None: z users shared the value, by the audit's count."""
    z = settings.z_at(claim.times.last_ns)
    is_name = claim.name[0] in ("name", DNS)
    if claim.name[0] in ("name", DNS, CERTIFICATE) and seen.rules.lists.refuses(
        str(claim.name[1]).removeprefix("*.")
    ):
        return found(row, "reasons", claim, 0, z)
    check = "names" if claim.name[0] not in (SERVER, RESOLVER) else "addresses"
    if z > 1 and is_name and normal(str(claim.name[1]))[0] != NAME:
        kind = normal(str(claim.name[1]))[0]
        return found(row, "reasons" if kind == HOME else "names", claim, 0, z)
    if claim.peek or claim.name[0] == RESOLVER:
        return judge_peek(row, check, claim, seen, settings)
    matches = matching(claim, row, seen)
    if claim.name[0] == SERVER and exposed_itself(claim.name[1], matches, seen, settings):
        return found(row, "addresses", claim, 0, z)
    if any(one.users >= settings.z_at(one.t_ns) for one in matches):
        return None
    if not matches:
        if barred(claim, seen):
            return found(row, "reasons", claim, 0, z)
        return judge_absent(row, check, claim, seen, settings)
    first = min(one.t_ns for one in matches) - settings.window_ns
    best = max(one.users for one in matches)
    return weighed(row, check, claim, seen, best, z, (first, max(one.t_ns for one in matches)))


def judge_peek(
    row: Row, check: str, claim: Claim, seen: Exposures, settings: Settings
) -> Finding | None:
    """Returns what is wrong with a value that casts no vote.

    With z = 1 a value is shown that any flow exposed, at any time before.
    """
    z = settings.z_at(claim.times.last_ns)
    needed = min((settings.z, z, *(one for _t, one in settings.z_changes)))
    span = (claim.times.first_ns - settings.window_ns, claim.times.last_ns + IDLE_NS)
    if settings.z == 1:
        span = (0, span[1])
        if has_exposed(claim.name[1], span[1], seen):
            return None
    users = len(seen.users_in(claim.name, *span))
    return None if users >= needed else weighed(row, check, claim, seen, users, needed, span)


def has_exposed(what: str | bytes, last_ns: int, seen: Exposures) -> bool:
    """Returns whether any flow exposed a name until a time, or has an address as an end."""
    if isinstance(what, bytes):
        return seen.has_end(what)
    spaces = ("name", DNS)
    times = [one.t_ns for space in spaces for one in seen.index.get((space, what), ())[:1]]
    for space in spaces:
        times += [t_ns for t_ns, _other in seen.maybe.get((space, what), ())]
        times += [t_ns for t_ns, _other in seen.barred.get((space, what), ())]
    return any(t_ns <= last_ns for t_ns in times)


def judge_absent(
    row: Row, check: str, claim: Claim, seen: Exposures, settings: Settings
) -> Finding | None:
    """Returns what is wrong with a value that no flow of the row's time exposed.

    The row is unproven if a flow of the time may have exposed the value, and z users shared it.
    """
    first, last, z = claim.times.first_ns, claim.times.last_ns, settings.z_at(claim.times.last_ns)
    if z == 1 and isinstance(claim.name[1], bytes) and seen.has_end(claim.name[1]):
        return None
    if row.form == "observations" and not may_have_exposed(claim.name, first, last, seen):
        return found(row, check, claim, 0, z)
    span = (max(first, 0) - settings.window_ns, last)
    users = len(seen.users_in(claim.name, *span))
    if users >= z:
        return found(row, check, claim, users, z, proven=False)
    return weighed(row, check, claim, seen, users, z, span)


def may_have_exposed(name: Name, first_ns: int, last_ns: int, seen: Exposures) -> bool:
    """Returns whether a flow with a packet in a span of time was not read in full, or has the name
    at another time."""
    if seen.is_dark(first_ns, last_ns):
        return True
    flows = seen.flows_at(first_ns, last_ns)
    return any(
        flow.may_have_more or any((one.space, one.text) == name for one in flow.names)
        for flow in flows
    )


def matching(claim: Claim, row: Row, seen: Exposures) -> list[Exposure]:
    """Returns the exposures of flows that began at the row's first time, else those in its time."""
    first, last = claim.times.first_ns, claim.times.last_ns
    if row.form == "observations":
        return seen.between(claim.name, first, last)
    if claim.times.exact:
        same = seen.started.get((claim.name, first))
        return same or seen.between(claim.name, first, last)
    return [one for one in seen.index.get(claim.name, ()) if fits(one, claim, row, seen)]


def fits(one: Exposure, claim: Claim, row: Row, seen: Exposures) -> bool:
    """Returns whether an exposure may be the row's, by its time and the times of its flow."""
    first, last = claim.times.first_ns, claim.times.last_ns
    if row.form == "observations":
        return first <= one.t_ns <= last
    flow = seen.flows[one.flow]
    if claim.times.exact:
        return flow.first_ns == first
    is_open = flow.last_ns >= first - IDLE_NS and flow.closed_ns >= last - MINUTE_NS + 1 - IDLE_NS
    return one.t_ns <= last and is_open


def exposed_itself(
    address: str | bytes, matches: list[Exposure], seen: Exposures, settings: Settings
) -> bool:
    """Returns whether a server's address is internal, or was a client's before in the epoch."""
    if not isinstance(address, bytes) or seen.rules.networks.hold(address):
        return True
    times = seen.clients.get(address, [])
    return bool(matches) and all(
        any(t_ns <= one.t_ns and same_epoch(t_ns, one.t_ns, settings.rotate_ns) for t_ns in times)
        for one in matches
    )


def same_epoch(a_ns: int, b_ns: int, rotate_ns: int) -> bool:
    """Returns whether two times are in one epoch."""
    return a_ns // rotate_ns == b_ns // rotate_ns


def barred(claim: Claim, seen: Exposures) -> bool:
    """Returns whether a flow of that time exposed the name in a way that never counts."""
    first, last = claim.times.first_ns, claim.times.last_ns
    return any(first <= t_ns <= last for t_ns, _why in seen.barred.get(claim.name, ()))


def weighed(
    row: Row,
    check: str,
    claim: Claim,
    seen: Exposures,
    users: int,
    needed: int,
    span: tuple[int, int],
) -> Finding:
    """Returns a violation, or a doubt if flows that were not read may make up for the users."""
    proven = users + seen.doubtful(claim.name, *span) < needed
    return found(row, check, claim, users, needed, proven=proven)


def found(
    row: Row, check: str, claim: Claim, users: int, needed: int, *, proven: bool = True
) -> Finding:
    """Returns a finding at a row."""
    what = claim.name[1]
    detail = what if isinstance(what, str) else str(ip_address(what))
    return Finding(check, row.file, row.number, claim.column, users, needed, detail, proven)
