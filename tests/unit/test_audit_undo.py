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
from support.audit_logs import HOUR, Row, S, write_log
from support.cli import DEMO, Captured, run_main

from zanon_net.audit.raw.permutation import Scope
from zanon_net.audit.released import audit
from zanon_net.audit.result import BY_LENGTH
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


def write_key(folder: Path) -> None:
    """Writes a fixed key, so that the pseudonyms, and the targets drawn from them, are fixed."""
    (folder / "own.key").write_text(base64.b64encode(MASTER).decode())
    (folder / "own.key").chmod(0o600)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo under a key file, at a z at which users show names in several hours."""
    folder = tmp_path_factory.mktemp("undo")
    write_key(folder)
    assert run_main("key", "new", folder / "other.key") == 0
    settings = ("--z", 2, "--internal", "10.0.0.0/8", "--format", "csv", "-q")
    keys = ("--key-file", folder / "own.key", "--for", "internal")
    assert run_main("run", DEMO, *settings, *keys, "--out", folder / "logs") == 0
    return folder


def users_of(folder: Path, key_file: Path) -> dict[int, set[bytes]]:
    """Returns the addresses of the clients in each epoch of a log."""
    manifest = json.loads((folder / "manifest.json").read_text())
    own = manifest["configuration"]
    scope = Scope(
        z=2,
        window_ns=HOUR,
        rotate_ns=own["addresses"]["rotate_ns"],
        pseudonyms="networks",
        user_prefix=(32, 56),
        evidence=own["anonymity"]["evidence"],
        dns_votes=own["anonymity"]["dns_votes"],
        networks=manifest["pseudonyms"]["networks"],
    )
    users: dict[int, set[bytes]] = {}
    key = base64.b64decode(key_file.read_text())
    for row in csv.DictReader((folder / "flows.csv").open()):
        if row["client"]:
            epoch = int(row["epoch"])
            address = Inverse(scope, key, epoch).address(ip_address(row["client"]).packed)
            assert address is not None
            users.setdefault(epoch, set()).add(address)
    return users


def test_link_has_the_truth(logs: Path) -> None:
    windows, link = audit(
        logs / "logs",
        purpose="public",
        key_file=logs / "own.key",
        check=["link", "k_windows"],
    ).metrics
    users = users_of(logs / "logs", logs / "own.key")
    again = [len(own & users[epoch + 1]) for epoch, own in users.items() if epoch + 1 in users]
    assert link.sample == sum(again)
    assert link.verdict in ("low", "above")
    assert "lower bound" not in link.note
    assert windows.figure is not None


def test_several_epochs_are_joined_with_the_next(logs: Path) -> None:
    """The demo has nine epochs of 20 minutes."""
    settings = ("--z", 2, "--internal", "10.0.0.0/8", "--format", "csv", "-q", "--rotate", "20m")
    keys = ("--key-file", logs / "own.key", "--for", "internal")
    assert run_main("run", DEMO, *settings, *keys, "--out", logs / "short") == 0
    chosen = {"key_file": logs / "own.key", "check": ["link"]}
    (link,) = audit(logs / "short", purpose="public", **chosen).metrics
    lengths = link.parts[BY_LENGTH]
    assert list(lengths) == ["5m", "10m", "20m", "40m", "80m"]
    assert lengths["20m"]["share"] == pytest.approx(link.figure, abs=1e-6)
    users = users_of(logs / "short", logs / "own.key")
    first = min(users)
    early, late = (set().union(*(users[first + at + i] for i in range(4))) for at in (0, 4))
    assert lengths["80m"]["sample"] == len(early & late)
    assert lengths["80m"]["baseline"] == pytest.approx(1 / len(early), abs=1e-6)


def keyed_log(folder: Path, epochs: int) -> Path:
    """Returns the log of 60 users under `own.key`. In the first half of each hour pairs of users
    show a name of their own, and all users show one name in the second half."""
    write_key(folder)
    scope = Scope(
        z=2,
        window_ns=HOUR,
        rotate_ns=HOUR,
        pseudonyms="networks",
        user_prefix=(32, 56),
        evidence="established",
        dns_votes="own",
        networks=NETWORKS,
    )
    rows = []
    for epoch in range(epochs):
        inverse = Inverse(scope, MASTER, epoch)
        for user in range(60):
            who = str(ip_address(inverse.of(ip_address(f"10.0.0.{user}").packed)))
            for minute in range(0, 60, 5):
                name = f"{user // 2}.example" if minute < 30 else "all.example"
                rows.append(Row(who, name, minute * 60 * S, epoch))
    keys = {"key_mode": "derived", "user_prefix": [32, 56]}
    logs = write_log(folder / "logs", rows, {"anonymity": {"dns_votes": "own"}, "addresses": keys})
    manifest = json.loads((logs / "manifest.json").read_text())
    check = scope.key(MASTER, "check", 0, 8).hex()
    manifest["pseudonyms"] = {"networks": NETWORKS, "pseudonym_id": check}
    (logs / "manifest.json").write_text(json.dumps(manifest))
    return logs


def test_a_shorter_rotation_is_measured_with_the_key(tmp_path: Path) -> None:
    logs, chosen = keyed_log(tmp_path, 4), {"key_file": tmp_path / "own.key"}
    report = audit(logs, purpose="partner", check=["link"], **chosen)
    lengths = report.metrics[0].parts[BY_LENGTH]
    assert {length: own["share"] for length, own in lengths.items()} == pytest.approx(
        {"450s": 1 / 60, "15m": 1 / 60, "30m": 1 / 60, "1h": 0.5, "2h": 0.5}, abs=1e-6
    )
    assert {length: own["sample"] for length, own in lengths.items()} == {
        **{"450s": 180, "15m": 180, "30m": 180, "1h": 180, "2h": 60}
    }
    assert report.advice is not None
    assert report.advice.setting == "--rotate 30m"
    assert report.advice.before == pytest.approx(0.5)
    assert report.advice.measured == pytest.approx(1 / 60, abs=1e-6)
    assert report.advice.effect_low is not None
    assert report.advice.effect_low > 0.4


def test_another_key_is_refused(logs: Path, capfd: Captured) -> None:
    assert run_main("audit", logs / "logs", "--key-file", logs / "other.key") == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert "--key-file: it does not make the pseudonyms of" in said.err
    assert "other key, or another --rotate" in said.err
