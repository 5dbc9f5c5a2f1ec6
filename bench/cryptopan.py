# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how many addresses a second Crypto-PAn encrypts on one core, and compares other
programs.

Usage: python bench/cryptopan.py [--size F] [--repeat N]

Addresses are random, so that no cache helps. "plain" is the formula written directly with libcrypto
in C: one call of 32 (128) blocks an address. "blocks alone" is libcrypto on the number of blocks
that zanon_net encrypts and nothing else: no program on libcrypto can be faster. Figures are CPU
time, the median of the repeats. All must give equal pseudonyms. yacryptopan gets the first
addresses only.
"""

import argparse
import ctypes
import ipaddress
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from run_vs_dpkt import cpu_model

from zanon_net import CryptoPan, _core

BENCH = Path(__file__).resolve().parent
CSRC = BENCH.parent / "csrc"
COUNTS = {4: 4_000_000, 16: 1_000_000}
PEER_COUNTS = {4: 10_000, 16: 2_500}
GOALS_M = {4: 10, 16: 2}
FAMILY = {4: "IPv4", 16: "IPv6"}

Addresses = npt.NDArray[np.uint8]
Way = Callable[[Addresses], Addresses]
"""Takes uint8[n, 4 or 16] addresses and returns their pseudonyms likewise."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A program or function that encrypts addresses."""

    name: str
    way: Way
    slow: bool = False
    answers: bool = True  # whether it returns pseudonyms


def ours(key: bytes) -> Way:
    """CryptoPan.anonymize_v4 and anonymize_v6, one call."""
    pan = CryptoPan(key)

    def way(addresses: Addresses) -> Addresses:
        if addresses.shape[1] == 16:
            return pan.anonymize_v6(addresses)
        return (
            pan.anonymize_v4(addresses.view(">u4")[:, 0].astype(np.uint32))
            .astype(">u4")
            .view(np.uint8)
            .reshape(-1, 4)
        )

    return way


def yacryptopan(key: bytes) -> list[Contender]:
    """Returns the package of that name, if it is installed: Python, with the AES of
    `cryptography`."""
    try:
        from yacryptopan import CryptoPAn  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return []
    pan = CryptoPAn(key)

    def way(addresses: Addresses) -> Addresses:
        texts = (str(ipaddress.ip_address(row.tobytes())) for row in addresses)
        found = b"".join(ipaddress.ip_address(pan.anonymize(text)).packed for text in texts)
        return np.frombuffer(found, dtype=np.uint8).reshape(addresses.shape)

    return [Contender("yacryptopan", way, slow=True)]


def peer_version() -> str:
    """Returns the peer and its version, or a note that it is not installed."""
    try:
        return f"yacryptopan {version('yacryptopan')}"
    except PackageNotFoundError:
        return "yacryptopan is not installed"


def compile_calls(folder: Path) -> ctypes.CDLL:
    """Compiles cryptopan_calls.c into `folder`."""
    parts = [
        CSRC / "crypto" / "cryptopan.c",
        *(CSRC / "util" / f"{x}.c" for x in ("arena", "error")),
    ]
    flags = [
        "-std=c11",
        "-O2",
        "-fPIC",
        "-shared",
        "-D_GNU_SOURCE",
        f"-I{CSRC}",
        f"-I{CSRC}/include",
    ]
    command = ["cc", *flags, BENCH / "cryptopan_calls.c", *parts, "-lcrypto"]
    subprocess.run([*command, "-o", folder / "calls.so"], check=True)
    calls = ctypes.CDLL(str(folder / "calls.so"))
    calls.single_open.restype = ctypes.c_void_p
    return calls


def in_c(call: Any, first: Any) -> Way:
    """Wraps a C function that takes `first`, in, out, n and the length of an address."""

    def way(addresses: Addresses) -> Addresses:
        out = np.empty_like(addresses)
        n, size = (ctypes.c_size_t(k) for k in addresses.shape)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (addresses, out))
        if call(first, *pointers, n, size) != 0:
            raise SystemExit("libcrypto failed")
        return out

    return way


def blocks_alone(call: Any, key: bytes) -> Way:
    """Returns the lower limit: libcrypto's time for the blocks alone."""

    def way(addresses: Addresses) -> Addresses:
        n, size = (ctypes.c_size_t(k) for k in addresses.shape)
        if call(key, n, size) != 0:
            raise SystemExit("libcrypto failed")
        return addresses

    return way


def measure(contender: Contender, addresses: Addresses, repeat: int) -> float:
    """Returns addresses a CPU-second: the median of the repeats."""
    rates = []
    for _ in range(1 if contender.slow else repeat):
        began = time.process_time()
        contender.way(addresses)
        rates.append(len(addresses) / (time.process_time() - began))
    return statistics.median(rates)


def table(contenders: list[Contender], size: int, scale: float, repeat: int) -> None:
    """Prints the table of one family; raises SystemExit when two do not agree."""
    rng = np.random.default_rng(size)
    count = max(int(COUNTS[size] * scale), 256)
    addresses = rng.integers(0, 256, (count, size), dtype=np.uint8)
    few = addresses[: max(int(PEER_COUNTS[size] * scale), 64)]
    wanted = contenders[0].way(few)
    print(f"\n### {FAMILY[size]}\n")
    print("| | addresses | M a core-second | ratio to ours | goal |\n|---|---:|---:|---:|---:|")
    best = 0.0
    for contender in contenders:
        if contender.answers and not np.array_equal(contender.way(few), wanted):
            raise SystemExit(f"{contender.name} gives other pseudonyms")
        used = few if contender.slow else addresses
        rate = measure(contender, used, repeat)
        best = best or rate
        goal = ""
        if contender is contenders[0]:
            goal = f">= {GOALS_M[size]}: {'yes' if rate >= GOALS_M[size] * 1e6 else 'NO'}"
        print(
            f"| {contender.name} | {len(used):,} | {rate / 1e6:.4g} | {rate / best:.3g} | {goal} |"
        )


PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
WAYS = {"networks": {}, "crypto-pan": {}, "crypto-pan:24,64": {"block": (24, 64)}, "random": {}}
PSEUDONYM_GOALS_M = {4: 5, 16: 1.5}


def pseudonym_table(scale: float, repeat: int) -> None:
    """Prints the cost of pseudonyms of addresses, for each choice of the kept structure."""
    networks = [ipaddress.ip_network(text) for text in PRIVATE]
    internal = [
        (one.network_address.packed, one.prefixlen)
        if one.version == 6
        else (bytes(10) + b"\xff\xff" + one.network_address.packed, 96 + one.prefixlen)
        for one in networks
    ]
    rng = np.random.default_rng(1)
    print("\n### --pseudonyms, clients of 10.0.0.0/8 and fd00::/8\n")
    print("| | family | M a core-second | ratio to networks | goal |\n|---|---|---:|---:|---:|")
    for size, first in ((4, bytes(10) + b"\xff\xff\x0a"), (16, b"\xfd")):
        addresses = rng.integers(0, 256, (max(int(COUNTS[size] * scale), 256), 16), np.uint8)
        addresses[:, : len(first)] = np.frombuffer(first, np.uint8)
        best = 0.0
        for name, more in WAYS.items():
            kind = name.partition(":")[0]
            made = _core.Pseudonyms(os.urandom(32), os.urandom(16), kind, internal=internal, **more)
            rate = measure(Contender(name, made.make), addresses, repeat)
            best = best or rate
            wanted = PSEUDONYM_GOALS_M[size]
            goal = f">= {wanted}: {'yes' if rate >= wanted * 1e6 else 'NO'}"
            print(f"| {name} | {FAMILY[size]} | {rate / 1e6:.4g} | {rate / best:.3g} | {goal} |")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=float, default=1.0, help="share of the addresses")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    key = os.urandom(32)
    print(f"{datetime.now(UTC).date()}, {cpu_model()}, {os.cpu_count()} cores, one used")
    print(f"Python {platform.python_version()}, {peer_version()}")
    with tempfile.TemporaryDirectory() as scratch:
        calls = compile_calls(Path(scratch))
        handle = ctypes.c_void_p(calls.single_open(key))
        contenders = [
            Contender("zanon-net, arrays", ours(key)),
            Contender("zanon-net, one address a call from C", in_c(calls.single_addresses, handle)),
            Contender("plain, one libcrypto call an address", in_c(calls.plain_addresses, key)),
            *yacryptopan(key),
            Contender("blocks alone", blocks_alone(calls.blocks_alone, key), answers=False),
        ]
        for size in COUNTS:
            table(contenders, size, arguments.size, arguments.repeat)
        calls.single_close(handle)
    pseudonym_table(arguments.size, arguments.repeat)


if __name__ == "__main__":
    sys.exit(main())
