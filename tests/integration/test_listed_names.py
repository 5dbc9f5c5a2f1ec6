# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names that --only and --skip keep from voting appear in no output, and are counted."""

import json
from pathlib import Path

import pytest
from support.demo import under
from support.engine import ALL, run, run_capture
from support.packets import SECOND, START, Udp, crowd, merged, user

from zanon_net.config.list_rules import ONLY, SKIP
from zanon_net.pipeline.runner import run as run_to_folder

NAMES = (b"example.org", b"www.example.org", b"badexample.org", b"a.example.net")
CROWDS = merged(crowd(name, 3, START + i * SECOND) for i, name in enumerate(NAMES))


def test_only_listed_names_leave() -> None:
    outcome = run(CROWDS, z=2, suffixes=[(b"example.org", ONLY, 0)])
    assert outcome.released() == {"example.org", "www.example.org"}
    assert outcome.stats["suppressed_not_listed"] == 6
    assert outcome.stats["observations"] == 6
    hidden = [flow for flow in outcome.flows if flow["name_status"] == "suppressed"]
    assert len(hidden) == 8  # and the first user of each listed name
    assert all(flow["server"] is None for flow in hidden)
    assert b"badexample" not in outcome.everything()


def test_skipped_names_do_not_leave() -> None:
    rows = [(b"www.example.org", SKIP, 0), (b"net", 0, 1)]
    outcome = run(CROWDS, z=2, suffixes=rows, categories=[(b"cdn", True)])
    assert outcome.released() == {"example.org", "badexample.org"}
    assert outcome.stats["suppressed_skipped"] == 6
    outcome = run(CROWDS, z=2, suffixes=rows, categories=[(b"cdn", False)])
    assert outcome.stats["suppressed_skipped"] == 3


def test_the_never_list_comes_first() -> None:
    rows = [(b"example.org", ONLY, 0), (b"www.example.org", SKIP, 0)]
    outcome = run(CROWDS, z=1, suffixes=rows, never=[b"www.example.org"])
    assert outcome.released() == {"example.org"}
    assert outcome.stats["suppressed_never_list"] == 3
    assert outcome.stats["suppressed_not_listed"] == 6


def test_a_refused_name_stays_out_of_fqdn() -> None:
    """The name by which DNS gave a server is withheld like the name itself."""
    frames = merged(
        [Udp(user(i), t_ns=START + i * SECOND).lookup(b"www.example.org").frames for i in range(3)]
    )
    settings = {"z": 2, "dns_votes": ALL, "dn_hunter": True}
    for rows, shown in (([], True), ([(b"example.org", SKIP, 0)], False)):
        outcome = run(frames, suffixes=rows, **settings)
        assert (b"www.example.org" in outcome.everything()) is shown


def test_the_demo_without_a_category(demo_pcap: Path) -> None:
    everything = run_capture(demo_pcap, z=2).released()
    suffix = sorted(name for name in everything if name.count(".") == 1)[0]
    outcome = run_capture(
        demo_pcap, z=2, suffixes=[(suffix.encode(), 0, 1)], categories=[(b"cdn", True)]
    )
    assert outcome.released() == {name for name in everything if not under(name, (suffix,))}
    assert outcome.stats["suppressed_skipped"] > 0


def test_a_run_says_which_lists_it_had(demo_pcap: Path, tmp_path: Path) -> None:
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("example\tdemo\n")
    report = run_to_folder(
        demo_pcap,
        out=tmp_path / "logs",
        z=2,
        categories=[kinds],
        skip=["category:demo"],
        format=("jsonl", "observations"),
    )
    assert report.counters["suppressed_skipped"] > 0
    manifest = json.loads((tmp_path / "logs/manifest.json").read_text())
    assert manifest["configuration"]["anonymity"]["skip"]["categories"] == ["demo"]
    assert manifest["configuration"]["anonymity"]["categories"][0]["rows"] == 1
    assert manifest["decisions"]["suppressed"]["skipped"] == report.counters["suppressed_skipped"]
    names = {json.loads(line)["name"] for line in (tmp_path / "logs/flows.jsonl").open()}
    assert not any(name and under(name, ("example",)) for name in names)


@pytest.mark.parametrize("name", ["only", "skip"])
def test_a_list_that_cannot_be_read_ends_before_the_input(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from zanon_net.cli import main

    (tmp_path / "list").write_text("fine.example\nnot a name\n")
    assert main(["run", "missing.pcap", f"--{name}", str(tmp_path / "list")]) == 2
    assert capsys.readouterr().err.endswith(
        f"--{name}: {tmp_path}/list line 2 is not a hostname suffix such as example.com"
        " (IDNs as xn--...)\n"
    )
