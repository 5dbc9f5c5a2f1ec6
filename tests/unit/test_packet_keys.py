# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Keys of packets: as the oracle has them, inside their blocks, one to one, and gone when over."""

import base64
import json
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.epochs import HOUR, Scope
from oracle.packet_keys import FC, GROUP, LAYER_IDS, OUTSIDE, PAIR, RANGES, OraclePacketKeys, within
from oracle.pseudonyms import Network
from support.engine import nets
from support.examples import each, examples

from zanon_net import ConfigError, ZanonError, _core
from zanon_net.config.parse import core_networks

pytestmark = pytest.mark.source

MASTER = bytes(range(7, 39))
EPOCH = 472222
BROADCAST = "3.30.99.39"
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
PUBLIC = ("10.0.0.0/8", "131.114.0.0/16", "131.114.7.0/24", "8.8.8.0/25", "8.8.4.4/32")
NESTED = ("172.0.0.0/8", "172.16.4.0/22", "172.20.0.0/14", "172.128.0.0/9", "100.64.3.0/24")
V6 = ("fc12::/16", "2001:db8::/32", "2001:db8:5::/48", "2a00:1450::/29", "2a01::1/128")
NETWORKS = {
    "private": PRIVATE,
    "inside ranges": ("10.1.0.0/16", "10.1.2.0/25", "192.168.7.0/24", "fd00:1::/32"),
    "public": PUBLIC + V6,
    "a range inside a network": (*NESTED, "fd12::/16", "2001:db8::/32", "::/16"),
    "none of IPv4": ("2001:db8::/47",),
    "full": ("10.0.0.0/8", "172.16.0.0/12", "8.0.0.0/10", "9.9.0.0/16", "fc00::/8", "2000::/8"),
}
KINDS = ["networks", "crypto-pan", "crypto-pan:24,64", "crypto-pan:5,19", "random"]
ADDRESSES = ["10.0.0.1", "10.1.2.3", "10.1.2.200", "172.16.5.1", "172.20.9.9", "172.200.1.1"]
ADDRESSES += ["192.168.7.9", "100.64.3.3", "131.114.7.1", "131.114.9.9", "8.8.8.8", "8.8.4.4"]
ADDRESSES += ["8.1.2.3", "9.9.1.1", "1.1.1.1", "fd00:1::7", "fc12::1", "fd12::5", "fc00::9"]
ADDRESSES += ["2001:db8::1", "2001:db8:5::1", "2001:db8:1::1", "2a00:1457::1", "2a01::1", "2000::1"]
ADDRESSES += ["::5", "2a00:9999::1"]
USERS = [None, "10.0.0.1", "131.114.7.1", "2001:db8::1"]


def file_keys(folder: Path, scope: Scope) -> _core.Keys:
    """Keys of a file with MASTER."""
    path = folder / "key"
    path.write_bytes(base64.b64encode(MASTER) + b"\n")
    path.chmod(0o600)
    return _core.Keys(
        scope.rotate_ns,
        str(path),
        z=scope.z,
        window_ns=scope.window_ns,
        digest=scope.digest(),
        pseudonyms=scope.pseudonyms.partition(":")[0],
        block=scope.block,
        user=scope.user,
        internal=core_networks(scope.networks),
    )


def opened(keys: _core.Keys, scope: Scope, *, wide: bool = False) -> Any:
    """Keys of packets, of no epoch yet."""
    return _core.PacketKeys(
        keys,
        wide=wide,
        pseudonyms=scope.pseudonyms.partition(":")[0],
        block=scope.block,
        user=scope.user,
        internal=core_networks(scope.networks),
    )


def random_opened(*internal: str, kind: str = "networks", wide: bool = False) -> Any:
    """Keys of packets without a key file."""
    scope = Scope(HOUR, pseudonyms=kind, internal=internal)
    made = opened(_core.Keys(HOUR), scope, wide=wide)
    made.enter(EPOCH)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this module."""
    return tmp_path_factory.mktemp("packet_keys")


def both(folder: Path, scope: Scope, *, wide: bool = False) -> tuple[Any, OraclePacketKeys]:
    """The core's and the oracle's, in EPOCH."""
    ours = opened(file_keys(folder, scope), scope, wide=wide)
    ours.enter(EPOCH)
    return ours, OraclePacketKeys(MASTER, scope, EPOCH, wide=wide)


def numbers_of(rows: np.ndarray) -> np.ndarray:
    """uint32 of IPv4 addresses in such an array."""
    assert (rows[:, :10] == 0).all()
    assert (rows[:, 10:12] == 255).all()
    return np.ascontiguousarray(rows[:, 12:]).view(">u4").ravel().astype(np.int64)


def rows_of(*blocks: str) -> np.ndarray:
    """uint8[n, 16] of all addresses of networks of IPv4."""
    numbers = [
        np.arange(int(net[0]), int(net[-1]) + 1, dtype=">u4") for net in map(IPv4Network, blocks)
    ]
    four = np.concatenate(numbers).astype(">u4").view(np.uint8).reshape(-1, 4)
    return np.hstack([np.tile(np.array([0] * 10 + [255] * 2, np.uint8), (len(four), 1)), four])


def inside(numbers: np.ndarray, block: str) -> np.ndarray:
    """Which of the addresses lie in a network."""
    net = IPv4Network(block)
    return numbers >> (32 - net.prefixlen) == int(net[0]) >> (32 - net.prefixlen)


def common(one: str, other: str) -> int:
    """How many first bits two addresses of a family share."""
    a, b = ip_address(one), ip_address(other)
    return a.max_prefixlen - (int(a) ^ int(b)).bit_length()


def an_address_in(network: Network, number: int) -> str:
    """One of its addresses."""
    return str(network[number % network.num_addresses])


# ---- equal to the oracle ------------------------------------------------------------------------


@each("kind", KINDS)
@each("internal", NETWORKS)
def test_clients_are_the_oracles(folder: Path, kind: str, internal: str) -> None:
    scope = Scope(HOUR, pseudonyms=kind, internal=NETWORKS[internal])
    ours, oracle = both(folder, scope)
    for address in ADDRESSES:
        for inside in (True, False):
            made = ours.client(address, inside)
            assert made == oracle.client(address, internal=inside), (address, inside)


@pytest.mark.parametrize("user", [(24, 48), (32, 128), (9, 20)])
def test_clients_are_the_oracles_with_other_users(folder: Path, user: tuple[int, int]) -> None:
    for internal in NETWORKS.values():
        ours, oracle = both(folder, Scope(HOUR, user=user, internal=internal))
        for address in ADDRESSES:
            assert ours.client(address) == oracle.client(address)


NETWORK = st.one_of(
    st.builds(
        lambda n, bits: str(ip_network((n, bits), strict=False)),
        st.integers(0, 2**32 - 1).map(IPv4Address),
        st.integers(12, 32),
    ),
    st.builds(
        lambda n, bits: str(ip_network((n, bits), strict=False)),
        st.integers(2**120, 2**128 - 1).map(IPv6Address),  # one that holds IPv4 is enough
        st.integers(9, 128),
    ),
    st.sampled_from([one for few in NETWORKS.values() for one in few]),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(NETWORK, min_size=1, max_size=8), st.sampled_from(KINDS), st.data())
def test_any_networks(folder: Path, internal: list[str], kind: str, data: st.DataObject) -> None:
    """Equal to the oracle, or refused as it is; inside the blocks, and slots apart."""
    scope = Scope(HOUR, pseudonyms=kind, internal=tuple(internal))
    try:
        oracle = OraclePacketKeys(MASTER, scope, EPOCH)
    except ValueError:
        with pytest.raises(ConfigError, match="no room"):
            opened(_core.Keys(HOUR), scope)
        return
    ours = opened(file_keys(folder, scope), scope)
    ours.enter(EPOCH)
    blocks = [ip_network(text) for text in json.loads(ours.blocks())]
    places = list(oracle.places.items())
    for _, place in places:
        assert any(within(place, of) for of in blocks)
    for (_, one), (_, other) in combinations(places, 2):
        assert not one.overlaps(other)
    for text in internal:
        address = an_address_in(ip_network(text), data.draw(st.integers(0, 2**128 - 1)))
        made = ours.client(address)
        assert made == oracle.client(address)
        assert not ip_address(made).is_multicast
        assert sum(ip_address(made) in of for of in blocks) == 1


def test_pairs_are_the_oracles(folder: Path) -> None:
    ours, oracle = both(folder, Scope(HOUR))
    seen = set()
    for address in ADDRESSES:
        for user in USERS:
            made = ours.pair(user, address)
            assert made == oracle.pair(user, address)
            assert ip_address(made) in PAIR[ip_address(address).version]
            seen.add(made)
    assert len(seen) == len(ADDRESSES) * len(USERS)


def test_a_group_stays_a_group(folder: Path) -> None:
    ours, oracle = both(folder, Scope(HOUR))
    groups = ("224.0.1.38", "232.5.6.7", "239.77.66.55", "ff05::7766", "ff0e::1", "ff3e:40::1")
    made = {(user, group): ours.pair(user, group) for user in USERS for group in groups}
    for (user, group), pseudonym in made.items():
        assert pseudonym == oracle.pair(user, group)
        assert ip_address(pseudonym) in GROUP[ip_address(group).version]
    assert len(set(made.values())) == len(made)


@pytest.mark.parametrize("user", USERS)
def test_ports_are_the_oracles_and_permuted(folder: Path, user: str | None) -> None:
    ours, oracle = both(folder, Scope(HOUR))
    some = [0, 1, 2, 22, 443, 1022, 1023, 1024, 1025, 9999, 32767, 32768, 51234, 65534, 65535]
    assert ours.ports(user, some) == [oracle.port(user, port) for port in some]
    made = ours.ports(user, range(65536))
    assert made[0] == 0
    assert sorted(made[1:1024]) == list(range(1, 1024))
    assert sorted(made[1024:32768]) == list(range(1024, 32768))
    assert sorted(made[32768:]) == list(range(32768, 65536))
    assert sum(port == of for port, of in enumerate(made)) < 30


@pytest.mark.parametrize("kind", range(1, len(LAYER_IDS) + 1))
def test_layer_ids_are_the_oracles_and_permuted(folder: Path, kind: int) -> None:
    """Reserved numbers stay; all others are one to one, and of their kind and epoch."""
    ours, oracle = both(folder, Scope(HOUR, internal=PRIVATE))
    bits, first, last = LAYER_IDS[kind - 1]
    some = [0, first, first + 1, 7, 100, 999, last - 1, last, (1 << bits) - 1]
    assert ours.layer_ids(kind, some) == [oracle.layer_id(kind, number) for number in some]
    own = range(first, min(last, first + 5000) + 1)
    made = ours.layer_ids(kind, own)
    assert len(set(made)) == len(own)
    assert all(first <= number <= last for number in made)
    if last < 5000:
        assert sorted(made) == list(own)
    reserved = [number for number in some if not first <= number <= last]
    assert ours.layer_ids(kind, reserved) == reserved
    others = [ours.layer_ids(other, own) for other in range(1, len(LAYER_IDS) + 1) if other != kind]
    ours.enter(EPOCH + 1)
    assert made not in (*others, ours.layer_ids(kind, own))


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6),
    st.lists(st.integers(0, 65535), max_size=4),
)
@settings(max_examples=examples(50), deadline=None)
def test_constants_are_the_oracles(folder: Path, words: list[int], ids: list[int]) -> None:
    ours, oracle = both(folder, Scope(HOUR))
    assert ours.shift(words, ids) == oracle.shift(words, ids)


def test_constants_differ_by_flow_side_and_use(folder: Path) -> None:
    ours, _ = both(folder, Scope(HOUR))
    flows = [[int(i == k) for i in range(6)] for k in range(7)]
    made = [ours.shift(words, range(50)) for words in flows]
    constants = [number for seq, timestamp, _ in made for number in seq + timestamp]
    assert len(set(constants)) == 4 * len(flows)
    assert len({tuple(ids) for *_, ids in made}) == len(flows)


@each("kind", KINDS)
@each("internal", [*NETWORKS.values(), ("0.0.0.0/0", "::/0")])
def test_wide_is_the_pseudonym_of_logs(folder: Path, kind: str, internal: tuple[str, ...]) -> None:
    scope = Scope(HOUR, pseudonyms=kind, internal=internal)
    keys = file_keys(folder, scope)
    ours = opened(keys, scope, wide=True)
    ours.enter(EPOCH)
    for address in ADDRESSES:
        for inside in (True, False):
            assert ours.client(address, inside) == keys.pseudonym(EPOCH * HOUR, address)[0]
    assert json.loads(ours.blocks()) == [
        *("0.0.0.0/0", "240.0.0.0/5", "239.0.0.0/8", "::/0", "3fff::/21", "ff0e::/16")
    ]


# ---- blocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("internal", "block", "range_of"),
    [
        (("10.0.0.0/8",), "10.77.0.0/16", "10.0.0.0/8"),
        (("10.77.0.0/16", "10.77.128.0/18"), "10.77.0.0/16", "10.0.0.0/8"),
        (("192.168.0.0/16",), "192.168.0.0/16", "192.168.0.0/16"),
        (("131.114.0.0/16", "131.114.7.0/24"), "131.114.0.0/16", None),
    ],
)
def test_a_slash_16_is_permuted_in_its_block(
    kind: str, internal: tuple[str, ...], block: str, range_of: str | None
) -> None:
    made = numbers_of(random_opened(*internal, kind=kind).clients(rows_of(block)))
    assert len(np.unique(made)) == 65536
    if range_of is None:  # a slot is as long as its network
        assert len(np.unique(made >> 16)) == 1
        assert any(inside(made, str(of)).all() for of in RANGES)
    else:
        assert inside(made, range_of).all()


def test_a_range_inside_a_network_has_its_own_pseudonyms() -> None:
    """The rest of 172.0.0.0/8 lies in a slot; both are one to one."""
    ours = random_opened("172.0.0.0/8")
    made = numbers_of(ours.clients(rows_of("172.15.128.0/17", "172.16.0.0/17")))
    assert len(np.unique(made)) == 65536
    assert inside(made[:32768], "10.0.0.0/8").all()
    assert inside(made[32768:], "172.16.0.0/12").all()


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from([*RANGES, FC, ip_network("131.114.0.0/16")]), st.data())
def test_crypto_pan_keeps_all_prefixes_in_a_block(network: Network, data: st.DataObject) -> None:
    ours = random_opened(*PUBLIC[1:2], *PRIVATE[:2], *PRIVATE[3:], kind="crypto-pan")
    one, other = (an_address_in(network, data.draw(st.integers(0, 2**121))) for _ in range(2))
    if network != ip_network("192.168.0.0/16"):
        assert common(ours.client(one), ours.client(other)) == common(one, other)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
def test_networks_stay_apart_and_comparable(one: int, other: int) -> None:
    """Kept networks of a range: addresses share a pseudonym's network where they share theirs."""
    ours = random_opened("10.1.0.0/16", "10.2.0.0/16", "8.8.0.0/16", "8.8.128.0/20")
    pairs = [("10.1.0.0/16", "10.1.0.0/16"), ("10.1.0.0/16", "10.2.0.0/16")]
    pairs += [("8.8.128.0/20", "8.8.128.0/20"), ("8.8.128.0/20", "8.8.0.0/20")]
    for network, second in pairs:
        a, b = (an_address_in(ip_network(n), k) for n, k in ((network, one), (second, other)))
        bits = int(network.partition("/")[2])
        assert (common(ours.client(a), ours.client(b)) >= bits) == (network == second)


def test_outside_clients_lie_in_their_block_and_are_none_that_is_special() -> None:
    """Broadcast comes up once in 2^27: its neighbour is an answer like any other."""
    ours = random_opened(*PRIVATE)
    made = [ip_address(ours.client(f"8.8.{i >> 8}.{i & 255}", False)) for i in range(5000)]
    made += [ip_address(ours.client(f"2001:db8::{i:x}", False)) for i in range(500)]
    assert all(one in OUTSIDE[one.version] for one in made)
    assert len(set(made)) > 5490
    assert ip_address(ours.client("8.8.8.8")) in OUTSIDE[4]  # internal, says the caller: no block


def test_no_pseudonym_is_broadcast(folder: Path) -> None:
    """BROADCAST is the address whose 27 bits are all ones under MASTER."""
    keys = file_keys(folder, Scope(HOUR))
    ours = opened(keys, Scope(HOUR))
    ours.enter(EPOCH)
    aes = Cipher(algorithms.AES(keys.derive(b"zanon-net/2/outside", EPOCH, 16)), modes.ECB())
    form = bytes(10) + b"\xff\xff" + IPv4Address(BROADCAST).packed
    assert int.from_bytes(aes.encryptor().update(form)) >> 101 == (1 << 27) - 1
    assert ours.client(BROADCAST, False) == "255.255.255.254"


def test_slots_move_with_the_epoch_and_fill_what_is_there() -> None:
    """64 x /16 and a /8 fill 100.64.0.0/10 and 10.0.0.0/8: none is lost, and the order changes."""
    internal = [f"131.{n}.0.0/16" for n in range(64)]
    ours = random_opened(*internal, "9.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12")
    seen = set()
    for epoch in range(EPOCH, EPOCH + 3):
        ours.enter(epoch)
        slots = [int(IPv4Address(ours.client(n.partition("/")[0]))) >> 16 for n in internal]
        assert sorted(slots) == list(range(0x6440, 0x6480))
        assert ours.client("9.1.1.1").startswith("10.")
        seen.add(tuple(slots))
    assert len(seen) == 3


def test_places_of_a_slot_are_drawn_alike() -> None:
    """A /10 has four places in 10/8, and one in 100.64/10: chi-squared of 4 degrees, 1e-6."""
    ours = random_opened("8.0.0.0/10")
    counts: dict[int, int] = {}
    for epoch in range(EPOCH, EPOCH + 500):
        ours.enter(epoch)
        place = int(ip_address(ours.client("8.0.0.0"))) >> 22
        counts[place] = counts.get(place, 0) + 1
    assert sorted(counts) == [10 << 2, (10 << 2) + 1, (10 << 2) + 2, (10 << 2) + 3, 0x6440 >> 6]
    assert sum((n - 100) ** 2 / 100 for n in counts.values()) < 33


@pytest.mark.parametrize(
    ("internal", "blocks"),
    [
        (PRIVATE, [*PRIVATE[:1], "100.64.0.0/10", *PRIVATE[1:3], "fc00::/7"]),
        (("10.1.0.0/16",), ["10.0.0.0/8"]),
        (("8.0.0.0/11",), ["10.0.0.0/8", "100.64.0.0/10"]),
        (
            ("8.0.0.0/11", "2001:db8::/32", "10.0.0.0/9"),
            ["10.0.0.0/8", "100.64.0.0/10", "fd00::/8"],
        ),
        (("2001:db8::/32", "fc00:1::/32"), ["fc00::/8", "fd00::/8"]),
        (("2001:db8::/32", "fd00:1::/32"), ["fc00::/8", "fd00::/8"]),
    ],
)
def test_blocks_are_listed(internal: tuple[str, ...], blocks: list[str]) -> None:
    listed = json.loads(random_opened(*internal).blocks())
    others = {
        *("240.0.0.0/5", "248.0.0.0/5", "239.0.0.0/8"),
        *("3fff::/21", "3fff:800::/21", "ff0e::/16"),
    }
    assert len(listed) == len(set(listed))
    assert sorted(set(listed) - others) == sorted(blocks)
    assert others <= set(listed)


def test_slots_of_ipv6_take_the_other_half() -> None:
    for half, other in (("fc", "fd"), ("fd", "fc")):
        ours = random_opened("2001:db8::/32", f"{half}00:1::/32")
        for _ in range(20):
            assert ours.client("2001:db8::1").startswith(other)
            assert ours.client(f"{half}00:1::1").startswith(half)


# ---- refusals -----------------------------------------------------------------------------------


@each("internal", [("0.0.0.0/0", "::/0"), ("0.0.0.0/0",), ("::/1", "8000::/1")])
@each("kind", KINDS)
def test_any_needs_wide(internal: tuple[str, ...], kind: str) -> None:
    with pytest.raises(ConfigError, match="`--internal any` needs `--addresses wide`"):
        random_opened(*internal, kind=kind)
    random_opened(*internal, kind=kind, wide=True)


def test_any_as_one_network_needs_wide() -> None:
    """As the core takes it from a C program."""
    with pytest.raises(ConfigError, match="--addresses wide"):
        _core.PacketKeys(_core.Keys(HOUR), internal=nets("::/0", "2001:db8::/32"))


@pytest.mark.parametrize(
    ("internal", "sums"),
    [
        ((*PRIVATE, "131.114.0.0/16"), (65536, 0)),
        (("10.0.0.0/8", "8.0.0.0/9"), (1 << 23, (1 << 22) + (1 << 20) + (1 << 16))),
        (
            ("10.0.0.0/8", "172.16.0.0/12", "8.0.0.0/10", "9.9.0.0/16", "9.8.0.0/32"),
            (4259841, 4259840),
        ),
        (("0.0.0.0/1", "128.0.0.0/1"), (1 << 32, (1 << 22) - (1 << 22))),
    ],
)
def test_no_room_says_the_sum(internal: tuple[str, ...], sums: tuple[int, int]) -> None:
    for kind in KINDS:
        with pytest.raises(ConfigError) as error:
            random_opened(*internal, kind=kind)
        text = str(error.value)
        assert [int(word) for word in text.replace(";", "").split() if word.isdigit()] == list(sums)
        assert "\n" not in text
        assert "--addresses wide" in text


@pytest.mark.parametrize(
    ("internal", "sums"),
    [
        (("fc00::/7", "2001:db8::/32"), (1 << 32, 0)),
        (("fc00::/8", "2000::/8", "2a00::1/128"), ((1 << 56) + 1, 1 << 56)),
        (("fc00::/6",), (1 << 58, 0)),
        (("fd00::1/128", "fc00::/9", "2a00::1/128"), (1, 0)),
        (("4000::/2", "8000::/1", "2001:db8::/32"), ((3 << 62) + (1 << 32), 0)),
    ],
)
def test_no_room_in_ipv6_says_the_sum(internal: tuple[str, ...], sums: tuple[int, int]) -> None:
    with pytest.raises(ConfigError) as error:
        random_opened(*internal)
    text = str(error.value).replace(";", "")
    assert [int(word) for word in text.split() if word.isdigit()] == list(sums)
    assert "--addresses wide" in text


def test_networks_that_leave_nearly_nothing_are_refused() -> None:
    inner = [f"10.{n}.0.0/12" for n in range(0, 240, 16)]
    with pytest.raises(ConfigError, match="15/16"):
        random_opened(*inner, "10.240.0.0/13")


def test_no_memory_is_an_error() -> None:
    keys = _core.Keys(HOUR)
    scope = Scope(HOUR, internal=NETWORKS["public"])
    for n in range(1, 40):
        _core.fail_allocation(n)
        try:
            opened(keys, scope)
        except ZanonError:
            continue
        finally:
            _core.fail_allocation(0)
        assert n > 8
        return
    pytest.fail("it never opened")


# ---- epochs -------------------------------------------------------------------------------------

WORDS = [1, 2, 3, 4, 5, 6]


def all_of(ours: Any) -> list[Any]:
    """What the keys make of something of each kind."""
    made = [ours.client(address) for address in ("10.1.2.3", "131.114.7.1", "2001:db8::1")]
    made += [ours.client("9.9.9.9", False), ours.pair("10.1.2.3", "1.1.1.1")]
    made += [ours.ports("10.1.2.3", [40000]), ours.layer_ids(1, [100])]
    return [*made, ours.shift(WORDS, [7])]


def test_the_last_two_epochs_stay_after_the_ratchet() -> None:
    scope = Scope(HOUR, internal=NETWORKS["public"])
    keys = _core.Keys(HOUR)
    ours = opened(keys, scope)
    made = []
    for epoch in (3, 4):
        ours.enter(epoch)
        made.append(all_of(ours))
    assert all(one != other for one, other in zip(*made, strict=True))
    keys.pseudonym(9 * HOUR, "10.0.0.1")  # the ratchet goes on
    for _ in range(2):
        for epoch in (3, 4):
            ours.enter(epoch)
            assert all_of(ours) == made[epoch - 3]
    with pytest.raises(ZanonError):
        ours.enter(5)
    assert all_of(ours)[:7] == [None] * 7  # no keys are better than another epoch's
    ours.enter(4)
    assert all_of(ours) == made[1]
    ours.enter(9)
    ours.enter(4)
    assert all_of(ours) == made[1]
    with pytest.raises(ZanonError):
        ours.enter(3)


def test_a_derived_epoch_is_the_same_whatever_was_entered_before(folder: Path) -> None:
    scope = Scope(HOUR, internal=NETWORKS["public"])
    walked, expected = opened(file_keys(folder, scope), scope), dict[int, list[Any]]()
    for epoch in (5, 6, 5, 9, 6, 5, 0, 9):
        walked.enter(epoch)
        fresh = opened(file_keys(folder, scope), scope)
        fresh.enter(epoch)
        assert all_of(walked) == all_of(fresh) == expected.setdefault(epoch, all_of(fresh))
    assert len({str(made) for made in expected.values()}) == 4


def test_nothing_is_made_before_an_epoch_and_after_a_rebase() -> None:
    scope = Scope(HOUR, internal=NETWORKS["public"])
    keys = _core.Keys(HOUR)
    ours = opened(keys, scope)
    assert all_of(ours)[:7] == [None] * 7
    before = ours.shift(WORDS, [7])
    assert before != opened(keys, scope).shift(WORDS, [7])  # random, not unkeyed
    with pytest.raises(ZanonError):
        ours.enter(-1)
    ours.enter(7)
    made = all_of(ours)
    assert None not in made
    ours.rebase()
    assert all_of(ours)[:7] == [None] * 7
    assert all_of(ours)[7] == before
    keys.rebase(7 * HOUR)
    ours.enter(7)
    assert all(one != other for one, other in zip(made, all_of(ours), strict=True))


@pytest.mark.parametrize("other", [{"z": 21}, {"user": (32, 64)}, {"dns_votes": "no"}])
def test_other_settings_share_nothing(folder: Path, other: dict[str, Any]) -> None:
    one, _ = both(folder, Scope(HOUR, internal=NETWORKS["public"]))
    two, _ = both(folder, Scope(HOUR, internal=NETWORKS["public"], **other))
    assert all(a != b for a, b in zip(all_of(one), all_of(two), strict=True))


def test_keys_of_packets_are_apart(folder: Path) -> None:
    """No two uses have one key."""
    keys = file_keys(folder, Scope(HOUR))
    labels = ("cryptopan", "host", "block", "outside", "pair", "port", "seq", "id", "order")
    made = {keys.derive(f"zanon-net/2/{label}".encode(), EPOCH, 16) for label in labels}
    assert len(made) == len(labels)
