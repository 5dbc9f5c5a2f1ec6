# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Check `pseudonyms`: one to one within an epoch, and different in each epoch."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address

from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, Flow
from zanon_net.audit.raw.names import Settings, began_ns, is_coarse
from zanon_net.audit.raw.networks import is_special
from zanon_net.audit.raw.packets import TCP, UDP
from zanon_net.audit.raw.permutation import KeyedPseudonyms
from zanon_net.audit.raw.shown import Row
from zanon_net.audit.raw.traces import unlikely

Place = tuple[str, int, str]
Epoch = tuple[int, int]  # jumps of the clock, and number of the epoch


@dataclass(slots=True)
class FlowsOfRows:
    """The flow of each row that only one flow fits."""

    settings: Settings
    _flows: dict[tuple[int, int, int], list[Flow]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @classmethod
    def of(cls, seen: Exposures, settings: Settings) -> "FlowsOfRows":
        """Sorts the flows by the values of a row that identify a flow."""
        found = cls(settings)
        for flow in seen.flows:
            found._flows[flow.first_ns, flow.proto, flow.server_port].append(flow)
        return found

    def flow_of(self, row: Row) -> Flow | None:
        """Returns the flow of an exact record, or None if it is not certain."""
        found = self.flows_of(row)
        return found[0] if len(found) == 1 else None

    def flows_of(self, row: Row) -> list[Flow]:
        """Returns the flows that fit an exact record."""
        port = int(row.cells.get("server_port" if row.form == "flows" else "s_port") or 0)
        is_udp_log = row.form == "tstat" and "c_durat" in row.cells
        udp = is_udp_log or row.cells.get("proto") in (UDP, str(UDP))
        return self._flows.get((began_ns(row), UDP if udp else TCP, port), [])


@dataclass(slots=True)
class PseudonymCheck:
    """Pairs of address and pseudonym in each epoch, from rows whose flow is certain."""

    seen: Exposures
    settings: Settings
    flows: FlowsOfRows
    keyed: KeyedPseudonyms | None = None
    _of: dict[tuple[Epoch, bytes], dict[str, list[Place]]] = field(default_factory=dict)
    _as: dict[tuple[Epoch, str], dict[bytes, list[Place]]] = field(default_factory=dict)
    checked: int = 0

    def take(self, row: Row) -> None:
        """Takes a row: the pseudonym of its client, or of its user."""
        if is_coarse(row) or self.settings.times_ns > 1:
            return
        for column, text, epoch, address in self._pairs(row):
            if is_special(address) or self.seen.is_tunnelled(address):
                continue
            self.checked += 1
            place = (row.file, row.number, column)
            self._of.setdefault((epoch, address), {}).setdefault(text, []).append(place)
            self._as.setdefault((epoch, text), {}).setdefault(address, []).append(place)

    def _pairs(self, row: Row) -> Iterator[tuple[str, str, Epoch, bytes]]:
        if row.form == "observations":
            flow = self._of_observation(row)
            if flow is not None and row.cells.get("client"):
                yield "client", row.cells["client"], flow.epoch, flow.known_as[flow.user_end]
            return
        flow = self.flows.flow_of(row)
        client = "client" if row.form == "flows" else "c_ip"
        if flow is not None and row.cells.get(client):
            yield client, row.cells[client], flow.epoch, flow.known_as[0]

    def _of_observation(self, row: Row) -> Flow | None:
        space = "name"
        if row.cells.get("namespace") in self.settings.attributes:
            space = row.cells["namespace"]
        elif row.cells.get("name_source") == "dns" and self.settings.dns_votes == "own":
            space = DNS
        t_ns = int(row.cells["t_ns"])
        rows = self.seen.between((space, row.cells["name"]), t_ns, t_ns)
        found = {one.flow for one in rows}
        return self.seen.flows[found.pop()] if len(found) == 1 else None

    def findings(self) -> Iterator[Finding]:
        """Yields what is not one to one, and with a key each pseudonym that is another."""
        for (epoch, address), texts in self._of.items():
            detail = str(ip_address(address))
            if self.keyed is not None:
                right = self.keyed.of(epoch[1], address)
                wrong = [
                    place for text, places in texts.items() if text != right for place in places
                ]
            else:
                usual = max(texts.values(), key=len)
                wrong = [
                    place for places in texts.values() if places is not usual for place in places
                ]
            yield from (Finding("pseudonyms", *place, len(texts), 1, detail) for place in wrong)
        for addresses in self._as.values():
            if len(addresses) > 1:
                usual = max(addresses.values(), key=len)
                for address, places in addresses.items():
                    if places is not usual:
                        detail = str(ip_address(address))
                        yield Finding("pseudonyms", *places[0], len(addresses), 1, detail)
        if self.keyed is None:
            yield from self._across()

    def _across(self) -> Iterator[Finding]:
        """Yields a pseudonym that an address has in several epochs, unless chance explains it."""
        epochs: dict[tuple[bytes, str], list[Place]] = defaultdict(list)
        of_address: dict[bytes, set[Epoch]] = defaultdict(set)
        for (epoch, address), texts in self._of.items():
            of_address[address].add(epoch)
            for text, places in texts.items():
                epochs[address, text].append(places[0])
        again = [(what, places) for what, places in epochs.items() if len(places) > 1]
        pairs = sum(len(found) * (len(found) - 1) // 2 for found in of_address.values())
        if again and unlikely(len(again), pairs / 256):
            for (address, _text), places in again:
                yield Finding("pseudonyms", *places[-1], len(places), 1, str(ip_address(address)))
