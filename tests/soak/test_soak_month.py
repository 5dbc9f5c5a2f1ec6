# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Two days of packet time on an interface, with all events; requests to metrics; what the checks
notice.

`make soak-month` runs 30 days, `make soak-scrapes` a million requests.
"""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from month.__main__ import run_month
from month.broken import Broken
from month.checks import Secrets, check_memory, check_scrape
from month.parts import Parts
from month.releases import Releases
from month.retention import Rule, Shelf
from month.scrapes import ask
from month.traffic import Traffic, Visit, Z
from support.examples import EVERY_CASE
from support.netns import Namespace
from support.packets import MINUTE, SECOND, START

pytestmark = [
    pytest.mark.source,
    pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer must be loaded first"),
]


@pytest.mark.slow
def test_two_days(tmp_path: Path) -> None:
    try:
        Namespace().__exit__()
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("network namespaces and file systems are not permitted here")
    run_month(tmp_path, days=2, minutes=0.6, seed=1, visits=60)


@pytest.mark.slow
def test_requests_of_all_kinds() -> None:
    n = 2000 if EVERY_CASE else 1000
    told = ask(n, seed=1)
    assert told.startswith(f"{n:,} requests")
    assert " x 200" in told


# ---- what the checks notice ---------------------------------------------------------------------


def crowd(count: int, name: str = "site.example") -> list[Visit]:
    """Visits of users of their own, a second apart."""
    return [Visit(START + n * SECOND, f"10.0.0.{n}", name, "tls") for n in range(count)]


def line(visit: Visit, pseudonym: str = "") -> dict[str, Any]:
    """The observation of a visit."""
    client = pseudonym or f"of {visit.user}"
    return {"t_ns": visit.t_ns, "client": client, "name": visit.name, "name_source": "tls"}


def test_releases_of_the_oracle_pass() -> None:
    releases, visits = Releases(), crowd(Z + 5)
    releases.send(visits)
    releases.observe([line(visit) for visit in visits[Z - 1 :]])
    releases.check_so_far()


def test_other_releases_do_not() -> None:
    releases, visits = Releases(), crowd(Z + 5)
    releases.send(visits)
    releases.observe([line(visit) for visit in visits[Z:]])
    with pytest.raises(Broken, match="observations are missing: 1, lost 0"):
        releases.check_so_far()
    releases.check_so_far(lost=1)
    with pytest.raises(Broken, match="too few users"):
        releases.observe([line(visits[Z - 2])])


def test_a_clock_that_is_set_back_may_withhold_and_nothing_else() -> None:
    releases, visits = Releases(), crowd(Z + 5)
    releases.send(visits[:1])
    releases.clock_set_back()
    releases.send(visits[1:])
    releases.observe([line(visits[-1])])
    releases.check_so_far()
    with pytest.raises(Broken, match="too few users"):
        releases.observe([line(visits[Z - 2])])


def test_observations_are_of_visits_and_come_once() -> None:
    releases, visits = Releases(), crowd(Z)
    releases.send(visits)
    with pytest.raises(Broken, match="of no visit"):
        releases.observe([line(replace(visits[-1], name="other.example"))])
    releases.observe([line(visits[-1])])
    with pytest.raises(Broken, match="written twice"):
        releases.observe([line(visits[-1])])


def test_a_user_has_one_pseudonym_an_epoch() -> None:
    releases, visits = Releases(), crowd(Z + 1)
    visits.append(replace(visits[-1], start_ns=START + MINUTE))
    releases.send(visits)
    releases.observe([line(visits[Z], "10.9.9.9")])
    with pytest.raises(Broken, match="two pseudonyms"):
        releases.observe([line(visits[-1], "10.9.9.8")])
    with pytest.raises(Broken, match="two users have one"):
        releases.observe([line(visits[Z - 1], "10.9.9.9")])


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("flows-1.jsonl", b'{"name": null}\n{"na', "not whole"),
        ("flows-1.jsonl", b'{"name": }\n', "no JSON"),
        ("flows-1.jsonl", b'{"name": "qzcanary1.example"}\n', "canary"),
        ("1.out/log_tcp_complete", b"#a b\n1 2 3\n", "columns"),
    ],
)
def test_files_that_are_not_right(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(Broken, match=problem):
        Parts(tmp_path, [], lambda _path, _size: None).collect()


def test_manifests_that_are_not_right(tmp_path: Path) -> None:
    (tmp_path / "flows-1.jsonl").write_bytes(b"{}\n")
    parts = Parts(tmp_path, [], lambda _path, _size: None)
    parts.collect()
    right = {"file": "flows-1.jsonl", "bytes": 3, "records": 1}
    parts.check_against({"outputs": [right]})
    for outputs in ([], [right | {"bytes": 4}], [right | {"records": 2}], [right | {"file": "x"}]):
        with pytest.raises(Broken):
            parts.check_against({"outputs": outputs})
    (tmp_path / "flows-1.jsonl").write_bytes(b"{}\n{}\n")
    with pytest.raises(Broken, match="final"):
        parts.check_unchanged()


def test_removals_that_are_not_right(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    shelf = Shelf()
    now_s = time.monotonic()
    for path, seen_s in ((old, now_s - 1), (new, now_s)):
        path.write_bytes(b"12345")
        shelf.add(path, 5, 1, seen_s)
    with pytest.raises(Broken, match="too much"):
        shelf.check_removed(Rule(max_bytes=-100))
    with pytest.raises(Broken, match="still there"):
        shelf.check_removed(Rule(keep_s=-100.0))
    new.unlink()
    with pytest.raises(Broken, match="too early"):
        shelf.look(Rule(keep_s=100.0), run=1)
    with pytest.raises(Broken, match="before an older one"):
        shelf.look(Rule(max_bytes=1), run=1)
    old.unlink()
    assert shelf.look(Rule(max_bytes=1), run=2) == (0, 10)


def test_messages_metrics_and_memory_that_are_not_right() -> None:
    traffic = Traffic(1, 10)
    traffic.span(START, 30 * MINUTE)
    secrets = Secrets(traffic)
    secrets.check("nothing", [b"a run of 10.0.0.0/8", json.dumps({"n": 5}).encode()])
    for text in (traffic.users[0], traffic.users[-1], traffic.names[0], min(traffic.canaries)):
        with pytest.raises(Broken, match="a message says"):
            secrets.check("a line", [b"bad: " + text.encode()])
    packets = ("zanon_packets_total", "")
    check_scrape({packets: 5.0}, {packets: 6.0}, 5, 7)
    for now in (4.0, 8.0):
        with pytest.raises(Broken):
            check_scrape({packets: 5.0}, {packets: now}, 5, 7)
    check_memory([100 << 20] * 100)
    with pytest.raises(Broken, match="memory"):
        check_memory([(100 + n) << 20 for n in range(100)])
