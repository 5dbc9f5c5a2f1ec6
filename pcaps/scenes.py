# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's special scenes: each shows one promise of the program, or one way to break it."""

from conversations import QTYPE_PTR, Lookup, Request, TlsPlan, dns_flow, http_flow, tls_flow
from flows import CLIENT, SERVER, Packet
from population import (
    INTRANET_SERVER,
    IPV4_HOMES,
    PERSONS,
    ROUTER_MAC,
    Home,
    Site,
    interface_address,
    private_sites,
)
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from stage import MINUTE_US, SPAN_US, Stage

from zanon_net.bench.messages import HelloShape

CROWD = 24  # homes in a crowd: more than the default z of 20
SPOOFED_SOURCES = 24


def _crowd(stage: Stage, count: int) -> list[Home]:
    return stage.dice.shuffled(stage.homes)[:count]


def _any_time(stage: Stage) -> int:
    return stage.dice.between(MINUTE_US, SPAN_US - 3 * MINUTE_US)


def lonely_names(stage: Stage) -> None:
    """Names that only one home visits, some several times. They must not be released at z > 1."""
    homes = _crowd(stage, len(PERSONS) * 3)
    for home, site in zip(homes, private_sites(), strict=True):
        for _ in range(6 if site.name.startswith("alice") else stage.dice.between(1, 2)):
            stage.visit(home, site, _any_time(stage))


def many_addresses_one_home(stage: Stage) -> None:
    """One /64 with 24 temporary addresses visits its own camera. The addresses are one user."""
    home = stage.homes[IPV4_HOMES]
    prefix = ":".join(home.addresses[0].split(":")[:4])
    addresses = tuple(interface_address(prefix, stage.dice) for _ in range(24))
    site = Site("kitchen-cam.example", "198.19.1.1", "2001:db8:fffd::1", "tls")
    for i, address in enumerate(addresses):
        one = Home((address,), home.mac, home.vlans, options=False)
        stage.tls(one, site, 40 * MINUTE_US + i * MINUTE_US)


def crowd_at_once(stage: Stage) -> None:
    """Name with many visitors within ten minutes and few at other times, public for an hour."""
    site = Site("match-live.example", "198.19.1.2", "2001:db8:fffd::2", "tls")
    crowd = _crowd(stage, CROWD)
    for home in crowd:
        stage.visit(home, site, stage.dice.between(65 * MINUTE_US, 75 * MINUTE_US))
    for home in crowd[:3]:
        stage.visit(home, site, stage.dice.between(145 * MINUTE_US, 160 * MINUTE_US))


def crowd_spread_out(stage: Stage) -> None:
    """Name with many visitors, but never enough of them within one window: suppressed."""
    site = Site("slow-club.example", "198.19.1.3", "2001:db8:fffd::3", "tls")
    for i, home in enumerate(_crowd(stage, CROWD)):
        stage.visit(home, site, 4 * MINUTE_US + i * 6 * MINUTE_US)


def spoofed_votes(stage: Stage) -> None:
    """Half-open flows from invented sources try to release a name before its real visitor comes."""
    site = Site("target-clinic.example", "198.19.1.4", "2001:db8:fffd::4", "tls")
    for i in range(SPOOFED_SOURCES):
        attacker = Home((f"10.222.{i}.{100 + i}",), "02:00:5e:66:66:66", (), options=False)
        talk = stage.tcp(attacker, site.ipv4, 443, 90 * MINUTE_US + i * 2_000_000)
        plan = TlsPlan(site.name.encode(), opening=("no_answer", "wrong_ack")[i % 2])
        stage.flows.append(tls_flow(talk, plan))
    stage.tls(stage.homes[7], site, 92 * MINUTE_US)


def intranet(stage: Stage) -> None:
    """Internal web application. Its name may be released, and its address never."""
    office = [home for home in stage.homes if home.addresses[0].startswith("10.")]
    for home in stage.dice.shuffled(office)[: CROWD + 8]:
        start = stage.dice.between(100 * MINUTE_US, 150 * MINUTE_US)
        talk = stage.tcp(home, INTRANET_SERVER, 80, start)
        request = Request(b"intranet.corp.test", target=b"/timesheet")
        stage.flows.append(http_flow(talk, [request], split=False, ending="client_fin"))


def kept_alive(stage: Stage) -> None:
    """Connections through a shared proxy address that carry requests to several hosts."""
    for home in _crowd(stage, 16):
        count = stage.dice.between(2, 4)
        names = [stage.sites[stage.dice.below(60)].name.encode() for _ in range(count)]
        requests = [Request(name, target=b"/%d" % i) for i, name in enumerate(names)]
        requests.append(Request(names[0].upper() + b":80", b"POST", b"/again", b"x=1"))
        server = "2001:db8:cd::80" if home.is_ipv6 else "203.0.113.80"
        talk = stage.tcp(home, server, 80, _any_time(stage))
        stage.flows.append(http_flow(talk, requests, stage.dice.chance(20), "server_fin"))


def long_names(stage: Stage) -> None:
    """Valid host of more than 63 bytes in total that is popular enough to be released."""
    name = "a-host-name-that-is-longer-than-sixty-three-bytes.but-whose-labels-are-not.example"
    site = Site(name, "198.19.1.5", "2001:db8:fffd::5", "http")
    for home in _crowd(stage, CROWD + 6):
        stage.http(home, site, stage.dice.between(20 * MINUTE_US, 55 * MINUTE_US))


def addresses_as_hosts(stage: Stage) -> None:
    """IP literals in place of a host. They are addresses and not names."""
    for home in _crowd(stage, 12):
        literals = (b"198.18.0.9", b"198.18.0.9:8080", b"[2001:db8:ffff::9]", b"[::1]:80")
        server = "2001:db8:ffff::9" if home.is_ipv6 else "198.18.0.9"
        talk = stage.tcp(home, server, 8080, _any_time(stage))
        requests = [Request(stage.dice.pick(literals))]
        stage.flows.append(http_flow(talk, requests, split=False, ending="client_fin"))


def invalid_names(stage: Stage) -> None:
    """Names that break the rules of hostnames. The first name in each group has a crowd."""
    hosts = (
        b"two words.example", b"ctrl\x01name.example", b"tab\tname.example",
        b"l" * 64 + b".example", b".".join([b"deep"] * 51) + b".example", b"quote\"d.example",
    )  # fmt: skip
    names = (b"bad\x07bell.example", b"caf\xc3\xa9.example", b"empty..label.example", b"-,-;=cmd")
    questions = (
        (b"wpad server", b"test"), (b"pop.ular", b"example"), (b"nul\0byte", b"example"),
        (b"new\nline", b"example"),
    )  # fmt: skip
    for host in hosts:
        for home in _crowd(stage, CROWD if host is hosts[0] else 1):
            talk = stage.tcp(home, stage.sites[0].server(home.is_ipv6), 80, _any_time(stage))
            stage.flows.append(http_flow(talk, [Request(host)], split=False, ending="server_fin"))
    for name in names:
        for home in _crowd(stage, 2):
            talk = stage.tcp(home, stage.sites[0].server(home.is_ipv6), 443, _any_time(stage))
            stage.flows.append(tls_flow(talk, TlsPlan(name)))
    for labels in questions:
        for home in _crowd(stage, CROWD if labels is questions[0] else 1):
            start = stage.dice.between(30 * MINUTE_US, 60 * MINUTE_US)
            asking = stage.udp(home, home.resolver, 53, start)
            stage.flows.append(dns_flow(asking, Lookup(labels, behaviour="denied")))


def names_of_homes(stage: Stage) -> None:
    """Addresses and homes spelled as names. Crowds ask for them, and they must not be released."""
    groups = (
        ((b"printer", b"local"), 1),
        ((b"1", b"0", b"0", b"10", b"in-addr", b"arpa"), QTYPE_PTR),
        ((b"router", b"home", b"arpa"), 1),
        ((*b"1.0.0.0.8.b.d.0.1.0.0.2".split(b"."), b"ip6", b"arpa"), QTYPE_PTR),
    )
    for labels, qtype in groups:
        for home in _crowd(stage, CROWD if len(labels) < 10 else 4):
            start = stage.dice.between(110 * MINUTE_US, 150 * MINUTE_US)
            talk = stage.udp(home, home.resolver, 53, start)
            behaviour = "answered" if qtype == QTYPE_PTR else "denied"
            lookup = Lookup(labels, qtype=qtype, behaviour=behaviour)
            stage.flows.append(dns_flow(talk, lookup))


def nameless(stage: Stage) -> None:
    """Flows that show no name: hellos without SNI, SSH, scans, NTP."""
    for home in _crowd(stage, 10):
        server = stage.sites[3].server(home.is_ipv6)
        talk = stage.tcp(home, server, 443, _any_time(stage))
        plan = TlsPlan(None, HelloShape(tls13=stage.dice.chance(50)))
        stage.flows.append(tls_flow(talk, plan))
        shell = stage.tcp(home, server, 22, _any_time(stage))
        shell.open()
        shell.say(SERVER, b"SSH-2.0-demo\r\n")
        shell.say(CLIENT, b"SSH-2.0-demo_client\r\n")
        shell.close(CLIENT)
        scan = stage.tcp(home, server, 8000 + stage.dice.below(900), _any_time(stage))
        scan.emit(CLIENT, "S")
        clock = stage.udp(home, server, 123, _any_time(stage))
        clock.send(CLIENT, b"\x23" + b"\0" * 39 + stage.dice.bytes(8))
        clock.cross()
        clock.send(SERVER, b"\x24\x02\x06\xe9" + b"\0" * 36 + stage.dice.bytes(8))
        stage.flows += [shell.flow, scan.flow, clock.flow]


def strays(stage: Stage) -> None:
    """Frames that are not in a flow: ARP (the very first frame) and pings."""
    for i in range(12):
        home = stage.homes[i]
        start = 0 if i == 0 else _any_time(stage)
        request = Ether(src=home.mac, dst="ff:ff:ff:ff:ff:ff", type=0x0806) / ARP(
            hwtype=1, ptype=0x0800, hwlen=6, plen=4, op=1,
            hwsrc=home.mac, psrc=home.addresses[0], hwdst="00:00:00:00:00:00", pdst="10.0.0.1",
        )  # fmt: skip
        stage.strays.append(Packet(start, bytes(request)))
        ping = (
            Ether(src=home.mac, dst=ROUTER_MAC, type=0x0800)
            / IP(version=4, tos=0, id=i, flags="DF", frag=0, ttl=64, proto=1,
                 src=home.addresses[0], dst="198.18.0.1")
            / ICMP(type=8, code=0, id=i, seq=1)
            / Raw(b"demo ping payload")
        )  # fmt: skip
        stage.strays.append(Packet(_any_time(stage), bytes(ping)))


ALL_SCENES = (
    lonely_names,
    many_addresses_one_home,
    crowd_at_once,
    crowd_spread_out,
    spoofed_votes,
    intranet,
    kept_alive,
    long_names,
    addresses_as_hosts,
    invalid_names,
    names_of_homes,
    nameless,
    strays,
)


def play_all(stage: Stage) -> None:
    """Play every scene on its own stream of draws, so that a new scene does not change others."""
    base = stage.dice
    for scene in ALL_SCENES:
        stage.dice = base.fork(scene.__name__)
        scene(stage)
