# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms that an auditor with the key file undoes, and `link` with the truth."""

import base64
import csv
import json
import random
from ipaddress import ip_address
from pathlib import Path

import pytest
from support.audit_logs import HOUR
from support.cli import DEMO, Captured, run_main

from zanon_net.audit.raw.permutation import Scope
from zanon_net.audit.released import audit
from zanon_net.audit.undo import Inverse

NETWORKS = ("10.0.0.0/8", "10.64.0.0/12", "192.168.0.0/16", "fd00::/8")
MASTER = bytes(range(32))


@pytest.mark.parametrize("kind", ["networks", "random", "crypto-pan", "crypto-pan:16,32"])
def test_the_inverse_undoes_every_pseudonym(kind: str) -> None:
    scope = Scope(
        z=20,
        window_ns=HOUR,
        rotate_ns=HOUR,
        pseudonyms=kind,
        user_prefix=(32, 56),
        evidence="established",
        dns_votes="own",
        networks=NETWORKS,
    )
    inverse, rng = Inverse(scope, MASTER, 7), random.Random(kind)
    texts = [
        "10.0.0.1",
        "10.64.1.2",
        "10.80.0.1",
        "192.168.1.7",
        "8.8.8.8",
        "fd00::1",
        "2001:db8::2",
    ]
    addresses = [ip_address(text).packed for text in texts]
    addresses += [rng.randbytes(size) for size in (4, 16) for _ in range(10)]
    for address in addresses:
        assert inverse.address(inverse.of(address)) == address


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo under a key file, at a z at which users show names in several hours."""
    folder = tmp_path_factory.mktemp("undo")
    assert run_main("key", "new", folder / "own.key") == 0
    assert run_main("key", "new", folder / "other.key") == 0
    settings = ("--z", 2, "--internal", "10.0.0.0/8", "--format", "csv", "-q")
    keys = ("--key-file", folder / "own.key", "--for", "internal")
    assert run_main("run", DEMO, *settings, *keys, "--out", folder / "logs") == 0
    return folder


def test_link_has_the_truth(logs: Path) -> None:
    windows, link = audit(
        logs / "logs",
        purpose="public",
        key_file=logs / "own.key",
        check=["link", "k_windows"],
    ).metrics
    manifest = json.loads((logs / "logs" / "manifest.json").read_text())
    own = manifest["configuration"]
    scope = Scope(
        z=2,
        window_ns=HOUR,
        rotate_ns=HOUR,
        pseudonyms="networks",
        user_prefix=(32, 56),
        evidence=own["anonymity"]["evidence"],
        dns_votes=own["anonymity"]["dns_votes"],
        networks=manifest["pseudonyms"]["networks"],
    )
    users: dict[int, set[bytes]] = {}
    key = base64.b64decode((logs / "own.key").read_text())
    for row in csv.DictReader((logs / "logs" / "flows.csv").open()):
        if row["client"]:
            epoch = int(row["epoch"])
            address = Inverse(scope, key, epoch).address(ip_address(row["client"]).packed)
            assert address is not None
            users.setdefault(epoch, set()).add(address)
    again = [len(own & users[epoch + 1]) for epoch, own in users.items() if epoch + 1 in users]
    assert link.sample == sum(again)
    assert link.verdict in ("low", "above")
    assert "lower bound" not in link.note
    assert windows.figure is not None


def test_another_key_is_refused(logs: Path, capfd: Captured) -> None:
    assert run_main("audit", logs / "logs", "--key-file", logs / "other.key") == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert "--key-file: it does not make the pseudonyms of" in said.err
    assert "other key, or another --rotate" in said.err
