# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Stage of the demo: the homes and sites, and ordinary visits between them."""

from conversations import (
    QTYPE_A,
    QTYPE_AAAA,
    Lookup,
    QuicPlan,
    Request,
    TlsPlan,
    dns_flow,
    http_flow,
    quic_flow,
    tls_flow,
)
from flows import Flow, Packet
from packets import TcpTalk, UdpTalk
from population import Home, Site, make_homes, make_sites

from zanon_net.bench.messages import Dice, HelloShape, dns_labels

MINUTE_US = 60_000_000
SPAN_US = 165 * MINUTE_US  # 2.75 default windows of one hour
SMALL_MSS = 700  # cuts a hello of 1.8 KB into three segments
ENDINGS = ("client_fin",) * 12 + ("server_fin",) * 5 + ("client_rst", "server_rst", "open")


class Stage:
    """Homes, sites and their flows so far. Times are microseconds from the start."""

    def __init__(self, seed: int) -> None:
        self.dice = Dice(f"zanon demo {seed}")
        self.homes = make_homes(self.dice.fork("homes"))
        self.sites = make_sites()
        self.flows: list[Flow] = []
        self.strays: list[Packet] = []
        self._used: set[tuple[str, str, int, int]] = set()

    def _ports(self, client: str, server: str, server_port: int) -> tuple[int, int]:
        """Return an unused ephemeral port between the two addresses, and the server's port."""
        while True:
            port = self.dice.between(32768, 60999)
            key = (client, server, port, server_port)
            if key not in self._used:
                self._used.add(key)
                return port, server_port

    def tcp(self, home: Home, server: str, server_port: int, start_us: int) -> TcpTalk:
        """Return a TCP connection from one of the home's addresses, not yet opened."""
        path = home.path(server, self.dice)
        ports = self._ports(path.client, server, server_port)
        return TcpTalk(path, ports, start_us, self.dice)

    def udp(self, home: Home, server: str, server_port: int, start_us: int) -> UdpTalk:
        """Return a UDP exchange from one of the home's addresses."""
        path = home.path(server, self.dice)
        ports = self._ports(path.client, server, server_port)
        return UdpTalk(path, ports, start_us, self.dice)

    def lookup(self, home: Home, labels: list[bytes], start_us: int, site: Site | None) -> int:
        """Make the home query its resolver, mostly with success. Return the end time."""
        talk = self.udp(home, home.resolver, 53, start_us)
        mark = self.dice.below(100)
        behaviour = (
            "silent" if mark < 3 else
            "late" if mark < 5 else
            "wrong_id" if mark < 7 else
            "corrected" if mark < 9 else
            "both" if mark < 22 else
            "answered"
        )  # fmt: skip
        addresses = (site.ipv4, site.ipv6) if site else ()
        qtype = QTYPE_AAAA if home.is_ipv6 and behaviour != "both" else QTYPE_A
        if mark > 96:
            # DNS 0x20: mixed case in the question, which the resolver repeats.
            labels = [label.title().swapcase() for label in labels]
        self.flows.append(dns_flow(talk, Lookup(tuple(labels), addresses, qtype, behaviour)))
        return talk.now

    def visit(self, home: Home, site: Site, start_us: int) -> None:
        """Let a home visit a site: often a lookup, then a connection by the site's protocol."""
        now = start_us
        if self.dice.chance(55):
            now = self.lookup(home, dns_labels(site.name.encode()), now, site)
        now += self.dice.between(2_000, 40_000)
        if site.protocol == "http":
            self.http(home, site, now)
        elif site.protocol == "quic" and self.dice.chance(60):
            self.quic(home, site, now)
        else:
            self.tls(home, site, now)

    def tls(self, home: Home, site: Site, start_us: int) -> None:
        """Add a TLS connection in one of the forms of today's clients."""
        dice = self.dice
        port = 8443 if dice.chance(3) else 443
        talk = self.tcp(home, site.server(home.is_ipv6), port, start_us)
        tls13 = dice.chance(80)
        mlkem = tls13 and dice.chance(36)
        after_sni = dice.pick(("", "", "renegotiation", "grease"))
        shape = HelloShape(tls13, mlkem, after_sni, ech=tls13 and dice.chance(6))
        delivery = "in_order"
        if mlkem:
            talk.mss = SMALL_MSS if dice.chance(40) else talk.mss
            delivery = dice.pick(("in_order", "in_order", "reordered", "repeated"))
        elif dice.chance(5):
            delivery = "repeated"
        mark = dice.below(100)
        opening = "hello_acks" if mark < 4 else "syn_repeated" if mark < 6 else "full"
        name = site.name.encode()
        name = name.upper() if dice.chance(3) else name
        plan = TlsPlan(name, shape, delivery, opening, dice.pick(ENDINGS))
        self.flows.append(tls_flow(talk, plan))

    def http(self, home: Home, site: Site, start_us: int) -> None:
        """Add an HTTP connection with one request. Its Host has one of the legal forms."""
        dice = self.dice
        port = 8080 if dice.chance(10) else 80
        name = site.name.encode()
        host = dice.pick((name, name, name, name, name.title(), name + b":%d" % port, name + b"."))
        request = Request(host, target=b"/page/%d" % dice.below(100))
        if dice.chance(25):
            request = Request(host, b"POST", b"/form", b"field=%d" % dice.below(10**6))
        elif dice.chance(8):
            request = Request(host, b"GET", b"http://" + name + b"/absolute")
        elif dice.chance(4):
            request = Request(name + b":443", b"CONNECT", name + b":443")
        talk = self.tcp(home, site.server(home.is_ipv6), port, start_us)
        ending = dice.pick(ENDINGS)
        self.flows.append(http_flow(talk, [request], dice.chance(12), ending))

    def quic(self, home: Home, site: Site, start_us: int) -> None:
        """Add a QUIC connection."""
        mark = self.dice.below(100)
        behaviour = (
            "silent" if mark < 3 else
            "no_return" if mark < 6 else
            "repeated" if mark < 10 else
            "full"
        )  # fmt: skip
        talk = self.udp(home, site.server(home.is_ipv6), 443, start_us)
        plan = QuicPlan(site.name.encode(), self.dice.chance(30), behaviour)
        self.flows.append(quic_flow(talk, plan))
