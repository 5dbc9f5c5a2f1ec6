# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The population of the demo capture: homes with their addresses, sites with names and servers.

All names are in reserved zones, all servers in documentation or benchmarking prefixes, all clients
in private ranges or 2001:db8::/32.
"""

import ipaddress
from dataclasses import dataclass

from flows import Path

from zanon_net.bench.messages import Dice

IPV4_HOMES = 262
IPV6_HOMES = 70
CLIENT_MAC = "02:00:5e:00:%02x:%02x"
ROUTER_MAC = "02:00:5e:ff:00:01"
TPID_8021Q, TPID_8021AD = 0x8100, 0x88A8
INTERNAL_RESOLVER_V4, INTERNAL_RESOLVER_V6 = "10.0.0.53", "fd00:0:0:53::53"
PUBLIC_RESOLVER_V4, PUBLIC_RESOLVER_V6 = "198.51.100.53", "2001:db8:0:53::53"
INTRANET_SERVER = "10.0.0.80"

POPULAR = (
    "www.search.example",
    "video.stream.example",
    "api.social.example",
    "www.news.example",
    "mail.post.example",
    "cdn.static.example",
    "ads.tracker.example",
    "maps.search.example",
    "music.stream.example",
    "www.shop.example",
    "weather.example.com",
    "www.wiki.example.org",
    "chat.social.example",
    "time.cloud.example.net",
    "updates.os.test",
    "fonts.static.example",
    "telemetry.os.test",
    "www.bank.example",
    "games.play.example",
    "img.shop.example",
)
TOPICS = (
    "travel", "recipes", "garden", "football", "cinema", "cars", "books", "school", "science",
    "health", "photo", "jobs", "homes", "radio", "tickets", "pets", "fashion", "code", "forum",
    "library", "hotel", "trains", "crafts", "chess", "hiking", "museum", "theatre", "podcast",
)  # fmt: skip
HOSTS = ("www", "api", "img", "static", "login")
ZONES = ("example", "test", "example.com", "example.net", "example.org")
PERSONS = (
    "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory",
    "niaj", "olivia", "peggy", "rupert", "sybil", "trent", "victor", "walter", "yara",
)  # fmt: skip
THINGS = ("nas", "insulin-pump", "divorce-case", "baby-cam", "voting-diary", "clinic-portal")


@dataclass(frozen=True, slots=True)
class Home:
    """A household: an IPv4 address, or an IPv6 /64 with several temporary addresses."""

    addresses: tuple[str, ...]
    mac: str
    vlans: tuple[tuple[int, int], ...]
    options: bool

    @property
    def is_ipv6(self) -> bool:
        """True if the home has IPv6 only."""
        return ":" in self.addresses[0]

    @property
    def resolver(self) -> str:
        """DNS server of the home. It is internal for 10.0.0.0/8 and fd00::/8."""
        if self.is_ipv6:
            inside = self.addresses[0].startswith("fd")
            return INTERNAL_RESOLVER_V6 if inside else PUBLIC_RESOLVER_V6
        inside = self.addresses[0].startswith("10.")
        return INTERNAL_RESOLVER_V4 if inside else PUBLIC_RESOLVER_V4

    def path(self, server: str, dice: Dice) -> Path:
        """Return a path from one of the home's addresses to `server`."""
        client = dice.pick(self.addresses)
        round_trip = dice.between(6_000, 60_000)
        return Path(client, server, self.mac, ROUTER_MAC, self.vlans, self.options, round_trip)


@dataclass(frozen=True, slots=True)
class Site:
    """One hostname, its servers and the usual protocol of its visits."""

    name: str
    ipv4: str
    ipv6: str
    protocol: str

    def server(self, ipv6: bool) -> str:
        """Return the server's address of one family."""
        return self.ipv6 if ipv6 else self.ipv4


def _vlans(index: int) -> tuple[tuple[int, int], ...]:
    """Return VLAN tags: one for every sixth home, 802.1ad for every tenth, two for a few."""
    if index % 6 == 1:
        return ((TPID_8021Q, 100 + index % 3),)
    if index % 10 == 4:
        return ((TPID_8021AD, 200), (TPID_8021Q, 30 + index % 4))
    if index % 25 == 8:
        return ((TPID_8021Q, 300), (TPID_8021Q, 40))
    return ()


def make_homes(dice: Dice) -> list[Home]:
    """Return all homes: IPv4 first, then IPv6."""
    homes = []
    taken: set[str] = {INTERNAL_RESOLVER_V4, INTRANET_SERVER}
    for i in range(IPV4_HOMES + IPV6_HOMES):
        mac = CLIENT_MAC % divmod(i, 256)
        if i < IPV4_HOMES:
            addresses: tuple[str, ...] = (_ipv4_address(i, taken, dice),)
            options = i % 40 == 5
        else:
            addresses = _temporary_addresses(i - IPV4_HOMES, dice.between(2, 4), dice)
            options = i % 12 == 4
        homes.append(Home(addresses, mac, _vlans(i), options))
    return homes


def _ipv4_address(index: int, taken: set[str], dice: Dice) -> str:
    """Return an unused private address. Some addresses have zero octets, to find naive code."""
    address = ""
    while not address or address in taken:
        last = dice.between(2, 250)
        if index % 4 == 3:
            address = f"192.168.{dice.between(0, 40)}.{last}"
        elif index % 20 == 0:
            address = f"10.0.0.{last}"
        else:
            address = f"10.{dice.between(100, 180)}.{dice.between(0, 250)}.{last}"
    taken.add(address)
    return address


def _temporary_addresses(index: int, count: int, dice: Dice) -> tuple[str, ...]:
    """Return RFC 8981 addresses in the home's /64; up to four neighbours share a /56: one user."""
    kind, number = index % 2, index // 2
    site, subnet = number // 4, number % 4
    prefix = f"fd20:3a7:{site:x}:{subnet:x}" if kind else f"2001:db8:{0x1000 + site:x}:{subnet:x}"
    return tuple(interface_address(prefix, dice) for _ in range(count))


def interface_address(prefix: str, dice: Dice) -> str:
    """Return `prefix` (four groups) with a random 64-bit interface identifier, no group zero."""
    groups = [f"{dice.between(0x1000, 0xFFFF):x}" for _ in range(4)]
    return str(ipaddress.ip_address(":".join([prefix, *groups])))


def site_names() -> list[str]:
    """Return the public hostnames, most popular first."""
    names = list(POPULAR)
    for i, host in enumerate(HOSTS):
        names += [f"{host}.{topic}.{ZONES[(i + j) % len(ZONES)]}" for j, topic in enumerate(TOPICS)]
    return names


def make_sites() -> list[Site]:
    """Return the public sites in order of popularity; the rarer ones share CDN addresses."""
    sites = []
    for rank, name in enumerate(site_names()):
        protocol = "http" if rank % 7 == 3 else "quic" if rank % 5 == 1 else "tls"
        if rank >= 20 and rank % 4 == 1:
            ipv4, ipv6 = f"203.0.113.{10 + rank % 3}", f"2001:db8:cd::{10 + rank % 3:x}"
        else:
            ipv4 = f"198.18.{rank // 200}.{1 + rank % 200}"
            ipv6 = f"2001:db8:ffff::{1 + rank:x}"
        sites.append(Site(name, ipv4, ipv6, protocol))
    return sites


def private_sites() -> list[Site]:
    """Return sites that only one home visits. Many of their names identify the owner."""
    names = [f"{person}-{THINGS[i % len(THINGS)]}.example" for i, person in enumerate(PERSONS)]
    names += [f"{person}.diary.test" for person in PERSONS]
    names += [f"u{0x3F00 + 977 * i:x}.pixel.tracker.example" for i in range(20)]
    return [
        Site(
            name, f"198.19.0.{1 + i}", f"2001:db8:fffe::{1 + i:x}", "http" if i % 9 == 4 else "tls"
        )
        for i, name in enumerate(names)
    ]


def zipf_weights(count: int, shift: int = 0) -> list[int]:
    """Return running sums of the weights 1/(rank + shift), ranks from 1, in integers."""
    sums, total = [], 0
    for rank in range(1, count + 1):
        total += 1_000_000 // (rank + shift)
        sums.append(total)
    return sums
