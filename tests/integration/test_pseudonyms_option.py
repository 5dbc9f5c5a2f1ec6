# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""--pseudonyms: what runs write, and what their manifests say of it."""

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from oracle.epochs import HOUR, Scope, derived, pseudonym
from support.packets import START, visit
from support.parts import capture_of

from zanon_net import Config, run
from zanon_net.cli import main

KEY = bytes(range(7, 39))
CLIENTS = [f"10.1.{n}.7" for n in range(3)] + ["192.168.0.9"]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A visit of each client to the same name."""
    frames = [
        frame
        for n, client in enumerate(CLIENTS)
        for frame in visit(client, b"shared.example", START + n * 10**9)
    ]
    path = tmp_path / "capture.pcap"
    path.write_bytes(capture_of(frames))
    return path


def result(capture: Path, out: Path, key_file: str, **settings: Any) -> tuple[set[str], Any]:
    """The pseudonyms of the clients, and the manifest."""
    chosen = {"z": 2, "format": "jsonl", "key_file": key_file, "coarse_client": "pseudonym"}
    chosen |= settings
    run(capture, Config(**chosen), out=out)
    lines = (out / "flows.jsonl").read_text("utf-8").splitlines()
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    return {json.loads(line)["client"] for line in lines}, manifest


@pytest.mark.parametrize("way", ["networks", "crypto-pan", "crypto-pan:20,48", "random"])
@pytest.mark.parametrize("internal", [None, ("10.0.0.0/8", "10.1.0.0/16", "192.168.0.0/16")])
def test_they_are_the_oracles(
    way: str, internal: tuple[str, ...] | None, capture: Path, tmp_path: Path, key_file: str
) -> None:
    networks = None if internal is None else ",".join(internal)
    found, manifest = result(capture, tmp_path / "out", key_file, pseudonyms=way, internal=networks)
    scope = Scope(HOUR, z=2, pseudonyms=way, internal=internal)
    epoch = START // HOUR
    assert found == {
        pseudonym(KEY, scope, epoch, ipaddress.ip_address(client)) for client in CLIENTS
    }
    said = manifest["pseudonyms"]
    assert said["networks"] == [n for n in scope.text().partition("networks=")[2].split(",") if n]
    assert said["pseudonym_id"] == derived(KEY, "check", scope, 0, 8).hex()
    assert manifest["configuration"]["addresses"]["pseudonyms"] == way


@pytest.mark.parametrize(
    "other", [{"z": 3}, {"window": "2h", "rotate": "1h"}, {"evidence": "any"}, {"internal": "any"}]
)
def test_other_settings_are_other_pseudonyms(
    other: dict[str, Any], capture: Path, tmp_path: Path, key_file: str
) -> None:
    """So two outputs of the same traffic cannot be laid side by side."""
    one, told = result(capture, tmp_path / "one", key_file)
    again, told_again = result(capture, tmp_path / "again", key_file)
    two, told_two = result(capture, tmp_path / "two", key_file, **other)
    assert one == again
    assert not one & two
    ids = [m["pseudonyms"]["pseudonym_id"] for m in (told, told_again, told_two)]
    assert ids[0] == ids[1] != ids[2]


def test_without_a_key_file_there_is_no_id(capture: Path, tmp_path: Path) -> None:
    report = run(capture, Config(z=2), out=tmp_path / "out")
    assert report.manifest["pseudonyms"]["pseudonym_id"] is None


def test_networks_that_are_too_long_are_counted(
    capture: Path, tmp_path: Path, key_file: str
) -> None:
    nets = "10.1.0.0/24,10.1.1.0/25,192.168.0.0/28"
    _, manifest = result(capture, tmp_path / "out", key_file, internal=nets)
    assert manifest["pseudonyms"]["networks"] == ["10.1.0.0/24"]
    assert manifest["pseudonyms"]["networks_left_out"] == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--pseudonyms", "none"], "--pseudonyms: must be networks, random, crypto-pan"),
        (["--pseudonyms", "crypto-pan:33,64"], "P4 from 1 to 32"),
        (["--pseudonyms", "crypto-pan:24"], "--pseudonyms: must be"),
        (
            [
                "--internal",
                "10.0.0.0/8,10.0.0.0/9,10.128.0.0/10,10.192.0.0/11,10.224.0.0/12,10.240.0.0/13",
            ],
            "more than 15/16",
        ),
    ],
)
def test_refused(
    options: list[str],
    problem: str,
    capture: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", str(capture), "--out", str(tmp_path / "out"), *options]) == 2
    said = capsys.readouterr()
    assert problem in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
