# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What packets have in place of addresses, ports and numbers, by docs/reference/pseudonyms.md.

On networks of `ipaddress`, strings of bits and whole numbers; slow and obvious.
"""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from oracle.cryptopan import OracleCryptoPan
from oracle.epochs import Scope, derived
from oracle.pseudonyms import Address, Network, OraclePseudonyms
from oracle.siphash import siphash

RANGES = [ip_network(n) for n in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")]
FC, HALVES = ip_network("fc00::/7"), [ip_network("fc00::/8"), ip_network("fd00::/8")]
OUTSIDE = {4: ip_network("248.0.0.0/5"), 6: ip_network("3fff:800::/21")}
LAYER_IDS = (  # bits, first, last: VLAN, MPLS, PPPoE, GRE, VXLAN, GTP, L2TP (two), LISP
    (12, 1, 4094),
    (20, 16, 2**20 - 1),
    (16, 1, 2**16 - 2),
    (32, 1, 2**32 - 1),
    (24, 1, 2**24 - 1),
    (32, 1, 2**32 - 1),
    (16, 1, 2**16 - 1),
    (16, 1, 2**16 - 1),
    (24, 1, 2**24 - 1),
)
PAIR = {4: ip_network("240.0.0.0/5"), 6: ip_network("3fff::/21")}
GROUP = {4: ip_network("239.0.0.0/8"), 6: ip_network("ff0e::/16")}


def within(inner: Network, outer: Network) -> bool:
    """Whether a network lies in another one, or is it."""
    return (
        inner.version == outer.version
        and inner.network_address in outer
        and inner.prefixlen >= outer.prefixlen
    )


def overlap(one: Network, other: Network) -> bool:
    """Whether networks have addresses in common."""
    return within(one, other) or within(other, one)


def excluded(outer: Network, inner: Network) -> list[Network]:
    """The largest networks of the outer one's addresses that are not the inner one's."""
    halves = [] if inner == outer else list(outer.subnets())
    return [
        left
        for half in halves
        for left in (excluded(half, inner) if within(inner, half) else [half])
    ]


def longest(networks: Sequence[Network], address: Address) -> Network | None:
    """The longest of the networks that holds the address."""
    holding = [one for one in networks if one.version == address.version and address in one]
    return max(holding, key=lambda one: one.prefixlen, default=None)


class Blocks:
    """Roots and spaces for slots, of one family's internal networks."""

    def __init__(self, internal: Sequence[Network], version: int) -> None:
        own = {one for one in internal if one.version == version}
        ranges = RANGES if version == 4 else [FC]
        outer = [one for one in own if not any(within(one, two) for two in own - {one})]
        self.slots = sorted(
            (one for one in outer if not any(within(one, two) for two in ranges)),
            key=lambda one: (one.prefixlen, one.network_address),
        )
        if version == 6 and self.slots:
            ranges = HALVES
        self.used = [one for one in ranges if any(overlap(one, two) for two in own)]
        self.spaces = [one for one in ranges if one not in self.used]
        if version == 6:
            self.spaces = self.spaces[-1:]
        self.fits = sum(one.num_addresses for one in self.slots) <= sum(
            one.num_addresses for one in self.spaces
        )

    def free(self, taken: Sequence[Network]) -> list[Network]:
        """The largest networks of the spaces that hold nothing taken, by address."""
        left = list(self.spaces)
        for slot in taken:
            (holder,) = [one for one in left if within(slot, one)]
            left.remove(holder)
            left += excluded(holder, slot)
        return sorted(left, key=lambda one: one.network_address)


class OraclePacketKeys:
    """The pseudonyms of packets in an epoch, under keys derived from a master.

    wide: clients have the pseudonyms of logs. Raises ValueError where slots do not fit.
    """

    def __init__(
        self,
        master: bytes,
        scope: Scope,
        epoch: int,
        *,
        wide: bool = False,
        digest: bytes | None = None,
    ) -> None:
        def key(label: str, n: int = 16) -> bytes:
            return derived(master, label, scope, epoch, n, digest=digest)

        self._key, self._wide = key, wide
        self._kind, self._user = scope.pseudonyms.partition(":")[0], scope.user
        self._block = scope.block
        self._internal = scope.networks
        self._logs = OraclePseudonyms(
            key("cryptopan", 32),
            key("host"),
            self._kind,
            block=scope.block,
            user=scope.user,
            internal=scope.networks,
        )
        self._pan = OracleCryptoPan(key("cryptopan", 32))
        self.blocks = {} if wide else {v: Blocks(self._internal, v) for v in (4, 6)}
        if not all(of.fits for of in self.blocks.values()):
            raise ValueError("no room")
        self.places = dict[Network, Network]()
        for of in self.blocks.values():
            self._draw(of)

    @staticmethod
    def _form(address: Address) -> bytes:
        return address.packed if address.version == 6 else b"\0" * 10 + b"\xff\xff" + address.packed

    @staticmethod
    def _aes(key: bytes, block: bytes) -> bytes:
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    def _draw(self, of: Blocks) -> None:
        """A place for each root."""
        self.places |= {one: one for one in of.used}
        taken: list[Network] = []
        for root in of.slots:
            bits = root.prefixlen
            holes = [hole for hole in of.free(taken) if hole.prefixlen <= bits]
            total = sum(1 << (bits - hole.prefixlen) for hole in holes)
            number = self._aes(self._key("block"), self._form(root.network_address))
            left = int.from_bytes(number) % total
            for hole in holes:
                if left < 1 << (bits - hole.prefixlen):
                    first = int(hole.network_address) + (left << (root.max_prefixlen - bits))
                    place = ip_network((type(root.network_address)(first), bits))
                    break
                left -= 1 << (bits - hole.prefixlen)
            taken.append(place)
            self.places[root] = place

    def _kept(self, version: int) -> list[Network]:
        roots = [one for one in self.places if one.version == version]
        if self._kind != "networks":
            return roots
        most = self._user[version == 6] - 8
        own = (one for one in self._internal if one.version == version and one.prefixlen <= most)
        return list({*roots, *own})

    def client(self, text: str, *, internal: bool = True) -> str:
        """The pseudonym of a client's address."""
        address = ip_address(text)
        if self._wide:
            return str(self._logs.pseudonym(text))
        root = longest(list(self.places), address)
        if not internal or root is None:
            return self._behind(OUTSIDE, self._aes(self._key("outside"), self._form(address)), text)
        kept = self._kept(address.version)
        own = longest(kept, address)
        assert own is not None
        width, user = address.max_prefixlen, self._user[address.version == 6]
        if self._kind == "crypto-pan":
            p = m = max(self._block[address.version == 6], root.prefixlen)
        else:
            p = own.prefixlen
            m = max(one.prefixlen for one in kept if within(one, own))
        u = max(p, width if self._kind == "random" else user)
        result = self._logs.once(address, p, u)
        while longest(kept, result) != own:
            result = self._logs.once(result, p, u)
        pan = int.from_bytes(self._pan.pseudonym(result.packed))
        tail = (1 << (width - m)) - 1
        made = pan & ~tail | int(result) & tail
        place = self.places[root]
        mask = int(place.hostmask)
        return str(type(address)(int(place.network_address) | made & mask))

    @staticmethod
    def _behind(blocks: dict[int, Network], bits: bytes, text: str) -> str:
        """The address in a block that goes on with the first of the bits."""
        address = ip_address(text)
        block = blocks[address.version]
        n = address.max_prefixlen - block.prefixlen
        number = int(block.network_address) | int.from_bytes(bits) >> (128 - n)
        made = str(type(address)(number))
        return "255.255.255.254" if made == "255.255.255.255" else made

    def pair(self, user: str | None, text: str) -> str:
        """What stands for an address in the flows of a user."""
        key, who = self._key("pair"), bytes(16) if user is None else self._form(ip_address(user))
        mixed = int.from_bytes(self._aes(key, who)) ^ int.from_bytes(self._form(ip_address(text)))
        block = GROUP if ip_address(text).is_multicast else PAIR
        return self._behind(block, self._aes(key, mixed.to_bytes(16)), text)

    def port(self, user: str | None, port: int) -> int:
        """What stands for a port of a user."""
        if port == 0:
            return 0
        key, who = self._key("port"), bytes(16) if user is None else self._form(ip_address(user))
        bits, first, last = 10, 1, 1023
        if port >= 1024:
            bits, first, last = (16, 32768, 65535) if port >= 32768 else (16, 1024, 32767)
        half = 1 << bits // 2
        words = [int.from_bytes(who[:8]), int.from_bytes(who[8:]), bits]
        tweak = siphash(key, [*words, 3 * 8 << 56])
        while True:
            a, b = divmod(port, half)
            for i in range(1, 11):
                a, b = b, a ^ siphash(key, [tweak, i << 8 | b, 2 * 8 << 56]) % half
            port = a * half + b
            if first <= port <= last:
                return port

    def layer_id(self, kind: int, number: int) -> int:
        """What stands for an identifier of a header around a packet; kinds are from 1 on."""
        bits, first, last = LAYER_IDS[kind - 1]
        if not first <= number <= last:
            return number
        half = 1 << bits // 2
        tweak = siphash(self._key("id"), [kind, bits, 0, 3 * 8 << 56])
        while True:
            a, b = divmod(number, half)
            for i in range(1, 11):
                a, b = b, a ^ siphash(self._key("id"), [tweak, i << 16 | b, 2 * 8 << 56]) % half
            number = a * half + b
            if first <= number <= last:
                return number

    def shift(
        self, words: Sequence[int], ids: Sequence[int] = ()
    ) -> tuple[tuple[int, int], tuple[int, int], list[int]]:
        """Of sequence numbers and of timestamps by side; what stands for identifications."""

        def constant(label: str, n: int) -> int:
            return siphash(self._key(label), [*words, n, 7 * 8 << 56])

        seq, timestamp = (divmod(constant("seq", n), 1 << 32)[::-1] for n in (0, 1))
        key = b"".join(constant("id", n).to_bytes(8, "little") for n in (0, 1))
        return seq, timestamp, [siphash(key, [i, 8 << 56]) & 0xFFFF for i in ids]
