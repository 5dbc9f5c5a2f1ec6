# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Crypto-PAn: published answers, and what a wrong key gives."""

import base64
from ipaddress import IPv4Address, IPv6Address

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from oracle.cryptopan import OracleCryptoPan
from support.examples import each

from zanon_net import _core
from zanon_net.errors import ConfigError

KEY = base64.b64decode("rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4=")
KNOWN = {"192.168.1.7": "71.149.61.251", "192.168.1.1": "71.149.61.255"}

# The key and a part of the sample trace that the authors of Crypto-PAn publish with their code.
AUTHORS_KEY = bytes.fromhex("1522178d33a4cf80130a5b1649907d10d8988f837979652762574c2d2a842202")
AUTHORS_SAMPLE = {
    "128.11.68.132": "135.242.180.132",
    "129.118.74.4": "134.136.186.123",
    "130.132.252.244": "133.68.164.234",
    "141.223.7.43": "141.167.8.160",
    "141.233.145.108": "141.129.237.235",
    "152.163.225.39": "151.140.114.167",
    "156.29.3.236": "147.225.12.42",
    "165.247.96.84": "162.9.99.234",
    "166.107.77.190": "160.132.178.185",
    "192.102.249.13": "252.138.62.131",
    "192.215.32.125": "252.43.47.189",
    "192.233.80.103": "252.25.108.8",
    "192.41.57.43": "252.222.221.184",
    "193.150.244.223": "253.169.52.216",
    "195.205.63.100": "255.186.223.5",
    "198.200.171.101": "249.199.68.213",
    "198.26.132.101": "249.36.123.202",
    "198.36.213.5": "249.7.21.132",
    "198.51.77.238": "249.18.186.254",
    "199.217.79.101": "248.38.184.213",
    "202.49.198.20": "245.206.7.234",
    "203.12.160.252": "244.248.163.4",
    "204.184.162.189": "243.192.77.90",
    "204.202.136.230": "243.178.4.198",
    "204.29.20.4": "243.33.20.123",
    "205.178.38.67": "242.108.198.51",
    "205.188.147.153": "242.96.16.101",
    "205.188.248.25": "242.96.88.27",
    "205.245.121.43": "242.21.121.163",
    "207.105.49.5": "241.118.205.138",
    "207.135.65.238": "241.202.129.222",
    "207.155.9.214": "241.220.250.22",
    "207.188.7.45": "241.255.249.220",
    "207.25.71.27": "241.33.119.156",
    "207.33.151.131": "241.1.233.131",
    "208.147.89.59": "227.237.98.191",
    "208.234.120.210": "227.154.67.17",
    "208.28.185.184": "227.39.94.90",
    "208.52.56.122": "227.8.63.165",
    "209.12.231.7": "226.243.167.8",
    "209.238.72.3": "226.6.119.243",
    "209.246.74.109": "226.22.124.76",
    "209.68.60.238": "226.184.220.233",
    "209.85.249.6": "226.170.70.6",
    "212.120.124.31": "228.135.163.231",
    "212.146.8.236": "228.19.4.234",
    "212.186.227.154": "228.59.98.98",
    "212.204.172.118": "228.71.195.169",
    "212.206.130.201": "228.69.242.193",
    "216.148.237.145": "235.84.194.111",
    "216.157.30.252": "235.89.31.26",
    "216.184.159.48": "235.96.225.78",
    "216.227.10.221": "235.28.253.36",
    "216.254.18.172": "235.7.16.162",
    "216.32.132.250": "235.192.139.38",
    "216.35.217.178": "235.195.157.81",
    "24.0.250.221": "100.15.198.226",
    "24.13.62.231": "100.2.192.247",
    "24.14.213.138": "100.1.42.141",
    "24.5.0.80": "100.9.15.210",
    "24.7.198.88": "100.10.6.25",
    "24.94.26.44": "100.88.228.35",
    "38.15.67.68": "64.3.66.187",
    "4.3.88.225": "124.60.155.63",
    "63.14.55.111": "95.9.215.7",
    "63.195.241.44": "95.179.238.44",
    "63.97.7.140": "95.97.9.123",
    "64.14.118.196": "0.255.183.58",
    "64.34.154.117": "0.221.154.117",
    "64.39.15.238": "0.219.7.41",
}


def test_oracle_aes_is_fips_197() -> None:
    """The block cipher beneath the oracle, by FIPS-197 appendix C.1."""
    aes = Cipher(algorithms.AES(bytes(range(16))), modes.ECB()).encryptor()
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert aes.update(block).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@each(
    "key, real, pseudonym",
    [(KEY, *pair) for pair in KNOWN.items()]
    + [(AUTHORS_KEY, *pair) for pair in AUTHORS_SAMPLE.items()],
)
def test_known_answers(key: bytes, real: str, pseudonym: str) -> None:
    assert _core.CryptoPan(key).anonymize(real) == pseudonym
    assert OracleCryptoPan(key).pseudonym(IPv4Address(real).packed) == (
        IPv4Address(pseudonym).packed
    )


def test_how_often_an_address_stays_what_it_is() -> None:
    """As the README says: 1/2 (3/4)^31, as bits that agree with the padding change alike."""
    rng = np.random.default_rng(1)
    asked = same = same_24 = 0
    for _ in range(150):
        real = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
        shown = _core.CryptoPan(rng.bytes(32)).anonymize_v4(real)
        asked += len(real)
        same += int((shown == real).sum())
        same_24 += int((shown >> 8 == real >> 8).sum())
    assert same / asked == pytest.approx(0.5 * 0.75**31, rel=0.3)
    assert same_24 / asked == pytest.approx(0.5 * 0.75**23, rel=0.3)


def test_answer_has_the_type_of_the_question() -> None:
    pan = _core.CryptoPan(KEY)
    assert pan.anonymize(IPv4Address("192.168.1.7")) == IPv4Address("71.149.61.251")
    v6 = IPv6Address("2001:db8::1")
    expected = IPv6Address(OracleCryptoPan(KEY).pseudonym(v6.packed))
    assert pan.anonymize(v6) == expected
    assert pan.anonymize(str(v6)) == str(expected)


@pytest.mark.parametrize("number", [5, 2**32, True])
def test_a_number_is_no_address(number: int) -> None:
    """ipaddress takes it for one of IPv4 where it fits, else for one of IPv6."""
    with pytest.raises(TypeError, match="an address is str, bytes or of ipaddress"):
        _core.CryptoPan(KEY).anonymize(number)


def test_empty_arrays() -> None:
    pan = _core.CryptoPan(KEY)
    assert pan.anonymize_v4(np.empty(0, np.uint32)).shape == (0,)
    assert pan.anonymize_v6(np.empty((0, 16), np.uint8)).shape == (0, 16)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_key_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ConfigError):
        _core.CryptoPan(bytes(size))


def test_one_without_a_key_is_of_no_use_and_no_harm() -> None:
    pan = _core.CryptoPan.__new__(_core.CryptoPan)
    with pytest.raises(ConfigError):
        pan.__init__(b"short")  # type: ignore[misc]
    for use in (
        lambda: pan.anonymize("192.0.2.1"),
        lambda: pan.anonymize_v4(np.zeros(1, np.uint32)),
        lambda: pan.anonymize_v6(np.zeros((1, 16), np.uint8)),
    ):
        with pytest.raises(RuntimeError, match="has no key"):
            use()
