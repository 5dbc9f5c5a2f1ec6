# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a run on a cable, what the service manager hears of it, and what Prometheus makes of
both."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.counting import Votes, key_file, put_file, start_counter
from support.live import (
    ENVIRONMENT,
    PATIENCE_S,
    USUAL,
    Live,
    data_of,
    datagrams,
    thread_statuses,
)
from support.metrics import HURRIED, SERVING, samples, scrape, until
from support.netns import Namespace
from support.packets import SECOND, crowd
from support.paths import ROOT

PACKAGING = ROOT / "packaging"


class Hurried(Live):
    """A run whose metrics are renewed four times a second."""

    command = (*HURRIED, "run")

    def usual(self) -> list[str]:
        """See Live."""
        return ["a", *super().usual()]


@pytest.fixture
def hurried(net: Namespace, tmp_path: Path) -> Iterator[Callable[..., Hurried]]:
    """Starts a Hurried; whatever happens, none is left running."""
    net.ip("link set lo up")
    started: list[Hurried] = []

    def start(*arguments: object) -> Hurried:
        started.append(Hurried(net, tmp_path / f"out{len(started)}", *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def port_of(run: Live) -> int:
    found = SERVING.search(run.said)
    assert found is not None, run.said
    return int(found[1])


def packets_at(net: Namespace, port: int) -> float:
    with net.inside():
        return samples(scrape(port))["zanon_packets_total", ""]


def test_a_run_on_a_cable(net: Namespace, hurried: Callable[..., Hurried], tmp_path: Path) -> None:
    run = hurried("--metrics", "127.0.0.1:0", "--metrics-file", tmp_path / "zanon.prom")
    port = port_of(run)
    assert packets_at(net, port) == 0
    net.send("b", datagrams(2345))
    until(lambda: packets_at(net, port) == 2340)  # three digits
    manifest = run.end()
    assert manifest["counters"]["read"]["frames"] == 2345
    assert samples((tmp_path / "zanon.prom").read_text())["zanon_packets_total", ""] == 2340


def test_another_user_serves_and_writes(
    net: Namespace, hurried: Callable[..., Hurried], tmp_path: Path
) -> None:
    """The port is root's, and the file the user's."""
    place = tmp_path / "metrics"
    place.mkdir()
    os.chown(place, 65534, 65534)
    for folder in [tmp_path, *tmp_path.parents]:
        if "pytest" in str(folder):
            folder.chmod(0o755)
    run = hurried(
        *("--metrics", "127.0.0.1:97", "--metrics-file", place / "zanon.prom"),
        *("--drop-to", "nobody"),
    )
    assert packets_at(net, 97) == 0
    assert (place / "zanon.prom").stat().st_uid == 65534
    for status in thread_statuses(run):
        assert "Uid:\t65534\t65534\t65534\t65534" in status
        assert "NoNewPrivs:\t1" in status
    run.end()


def test_what_the_service_manager_hears(
    net: Namespace,
    hurried: Callable[..., Hurried],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = str(tmp_path / "notify")
    monkeypatch.setitem(ENVIRONMENT, "NOTIFY_SOCKET", path)
    monkeypatch.setitem(ENVIRONMENT, "WATCHDOG_USEC", "400000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(path)
        end.settimeout(PATIENCE_S)
        run = hurried()
        heard = [end.recv(4096).decode() for _time in range(2)]
        net.send("b", datagrams(7))  # what arrives from now on is read
        while "STATUS=7 packets" not in heard[-1]:
            heard.append(end.recv(4096).decode())
        while heard[-3:] != ["WATCHDOG=1"] * 3 and heard.count("WATCHDOG=1") < 5:
            heard.append(end.recv(4096).decode())
        manifest = run.end()
        end.setblocking(False)
        while heard[-1] != "STOPPING=1":
            heard.append(end.recv(4096).decode())
    assert manifest["counters"]["read"]["frames"] == 7
    assert heard[0].startswith("STATUS=0 packets")
    assert heard[1] == "READY=1"
    assert heard.count("READY=1") == 1
    kinds = {text.partition("=")[0] for text in heard}
    assert kinds == {"STATUS", "READY", "WATCHDOG", "STOPPING"}


# ---- Prometheus ---------------------------------------------------------------------------------


def prometheus(name: str) -> str:
    """A program of Debian's package, which `make test` does not install: where systemd runs, the
    package starts a server of its own."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not on this machine; `make test-metrics` brings it")
    return program


def test_the_rules_are_rules() -> None:
    done = subprocess.run(
        [prometheus("promtool"), "check", "rules", str(PACKAGING / "alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


ALERTS = """
rule_files: [{rules}]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - series: 'up{{job="zanon-net", instance="well"}}'
        values: '1x60'
      - series: 'up{{job="zanon-net", instance="gone"}}'
        values: '0x60'
      - series: 'zanon_build_info{{instance="well", version="1"}}'
        values: '1x60'
      - series: 'zanon_snapshot_age_seconds{{instance="waits"}}'
        values: '0+30x60'
      - series: 'node_textfile_mtime_seconds{{instance="waits", file="/run/zanon-net/zanon.prom"}}'
        values: '0x60'
      - series: 'zanon_capture_lost_ratio{{instance="loses"}}'
        values: '0.01x60'
      - series: 'zanon_full_disk_waiting{{instance="stuck"}}'
        values: '1x60'
      - series: 'zanon_interface_up{{instance="unplugged", interface="eth0"}}'
        values: '0x60'
      - series: 'zanon_interface_up{{instance="well", interface="eth0"}}'
        values: '1x60'
      - series: 'zanon_packets_per_second{{instance="silent"}}'
        values: '0x60'
      - series: 'zanon_ztable_evicted_total{{instance="full"}}'
        values: '0x30 1000x30'
      - series: 'zanon_clock_jumps_total{{instance="jumps"}}'
        values: '0x30 1x30'
      - series: 'zanon_z{{instance="open"}}'
        values: '1x60'
      - series: 'zanon_z{{instance="well"}}'
        values: '20x60'
      - series: 'zanon_probe_lag_seconds{{instance="late", probe="1"}}'
        values: '100x60'
      - series: 'zanon_probe_lag_seconds{{instance="late", probe="2"}}'
        values: '1x60'
      - series: 'zanon_probe_lag_seconds{{instance="well", probe="1"}}'
        values: '100x60'
      - series: 'zanon_probe_late_seconds{{instance="joins", probe="1"}}'
        values: '30x60'
      - series: 'zanon_probe_late_seconds{{instance="well", probe="1"}}'
        values: '0x60'
      - series: 'zanon_counter_probe_gone_total{{instance="lost"}}'
        values: '0x40 1x20'
      - series: 'zanon_counter_probes_missing{{instance="waiting"}}'
        values: '1x60'
      - series: 'zanon_counter_refused_total{{instance="refuses", reason="gap"}}'
        values: '0x40 5x20'
      - series: 'zanon_counter_refused_total{{instance="refuses", reason="future"}}'
        values: '5x60'
      - series: 'zanon_counter_state_age_seconds{{instance="slow"}}'
        values: '2000x60'
      - series: 'zanon_counter_window_seconds{{instance="slow"}}'
        values: '3600x60'
      - series: 'zanon_counter_messages_total{{instance="slow"}}'
        values: '0+10x60'
      - series: 'zanon_counter_pending{{instance="crowded"}}'
        values: '90x60'
      - series: 'zanon_counter_pending_limit{{instance="crowded"}}'
        values: '100x60'
      - series: 'zanon_counter_limit_reached_total{{instance="forgets", limit="senders"}}'
        values: '0x30 1x30'
      - series: 'zanon_counter_limit_reached_total{{instance="well", limit="probes"}}'
        values: '0x30 1x30'
    alert_rule_test:
{expected}
"""
FIRING = {
    "ZanonDown": "gone",
    "ZanonStalled": "waits",
    "ZanonFileOld": "waits",
    "ZanonPacketsLost": "loses",
    "ZanonDiskFull": "stuck",
    "ZanonInterfaceAway": "unplugged",
    "ZanonNoTraffic": "silent",
    "ZanonTableFull": "full",
    "ZanonClockJumped": "jumps",
    "ZanonReleasesEverything": "open",
    "ZanonProbeBehind": "late",
    "ZanonProbeLate": "joins",
    "ZanonProbeGone": "lost",
    "ZanonProbeMissing": "waiting",
    "ZanonVotesRefused": "refuses",
    "ZanonStateOld": "slow",
    "ZanonPendingNearLimit": "crowded",
    "ZanonCounterForgets": "forgets",
}


def test_each_alert_fires_where_it_should_and_nowhere_else(tmp_path: Path) -> None:
    """promtool is told to expect none, and lists those that fire."""
    promtool = prometheus("promtool")
    expected = "\n".join(
        f"""      - alertname: {name}
        eval_time: 25m
        exp_alerts: []"""
        for name in FIRING
    )
    (tmp_path / "tests.yml").write_text(
        ALERTS.format(rules=PACKAGING / "alerts.yml", expected=expected)
    )
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "tests.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    for name, instance in FIRING.items():
        (told,) = (part for part in said.split("alertname: ")[1:] if part.startswith(f"{name},"))
        assert told.count("Labels:{") == 1, told
        assert f'instance="{instance}"' in told


CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: zanon-net
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@contextmanager
def scraping(net: Namespace, port: int, folder: Path) -> Iterator[Callable[..., Any]]:
    """Prometheus, in the run's namespace; yields what asks it a path with parameters."""
    program, own = prometheus("prometheus"), 9090  # the namespace has no other server
    (folder / "prometheus.yml").write_text(
        CONFIGURATION.format(rules=PACKAGING / "alerts.yml", port=port)
    )
    with net.inside(), (folder / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{own}",
            ],
            stdout=log,
            stderr=log,
        )

    def ask(path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with net.inside():
            url = f"http://127.0.0.1:{own}/api/v1/{path}?{query}"
            try:
                with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                    return json.load(answer)["data"]
            except urllib.error.URLError:
                return {}

    try:
        yield ask
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def panels(*, of_counters: bool) -> list[dict[str, Any]]:
    """Those of the dashboard with queries."""
    dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text("utf-8"))
    kinds = [panel["type"] for panel in dashboard["panels"]]
    begin = kinds.index("row")
    found: list[dict[str, Any]] = dashboard["panels"]
    return found[begin + 1 :] if of_counters else found[:begin]


def check(panels: list[dict[str, Any]], ask: Callable[..., Any]) -> None:
    """Each query has a result, and the label that its legend names."""
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"].replace("$instance", ".*")
            rows = ask("query", query=expression)["result"]
            assert rows, (panel["title"], expression)
            legend = target["legendFormat"]
            assert "{{" not in legend or legend[2:].partition("}}")[0] in rows[0]["metric"]


@pytest.mark.slow
def test_every_panel_has_data(
    net: Namespace, hurried: Callable[..., Hurried], tmp_path: Path
) -> None:
    prometheus("prometheus")
    run = hurried("--metrics", "127.0.0.1:0", "--format", "jsonl")
    port = port_of(run)
    with scraping(net, port, tmp_path) as ask:
        net.send("b", data_of(crowd(b"popular.example", 20)))
        until(lambda: packets_at(net, port) > 0)
        packets = packets_at(net, port)
        query = {"query": "zanon_packets_total"}
        until(
            lambda: (
                [row["value"][1] for row in ask("query", **query).get("result", [])]
                == [f"{packets:g}"]
            )
        )
        check(panels(of_counters=False), ask)
        (target,) = ask("targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
        series = ask("series", **{"match[]": '{__name__=~"zanon_.*"}'})
        assert {name for one in series for name in one} == {
            *("__name__", "instance", "job", "version", "place", "reason"),
            *("decision", "name_status", "format", "interface"),
        }
        assert ask("metadata")["zanon_packets"][0]["type"] == "counter"
    run.end()


@pytest.mark.slow
def test_every_panel_of_counters_has_data(net: Namespace, tmp_path: Path) -> None:
    prometheus("prometheus")
    net.ip("link set lo up")
    start_ns = time.time_ns() - 60 * SECOND
    votes = Votes(probes=2, shards=1, seconds=30, start_ns=start_ns)
    options = (*votes.options, "--probe-timeout", "1h", "--metrics", "127.0.0.1:9465")
    state = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
    with net.inside():
        process = start_counter(f"file:{tmp_path}", *options, *state, command=HURRIED)
    try:
        with scraping(net, 9465, tmp_path) as ask:
            for probe, message in votes.in_turns()[:-2]:  # none ends
                put_file(tmp_path, probe, message)
            query = {"query": "zanon_counter_messages_total"}
            until(
                lambda: (
                    [row["value"][1] for row in ask("query", **query).get("result", [])] == ["58"]
                )
            )
            rates = {"query": "rate(zanon_counter_votes_total[1m])"}  # of two scrapes
            until(lambda: bool(ask("query", **rates).get("result")))
            check(panels(of_counters=True), ask)
            series = ask("series", **{"match[]": '{__name__=~"zanon_.*"}'})
            assert {name for one in series for name in one} == {
                *("__name__", "instance", "job", "version", "probe", "reason", "limit"),
            }
            lags = ask("query", query="zanon_probe_lag_seconds")["result"]
            assert len(lags) == 2
            assert all(20 < float(row["value"][1]) < 200 for row in lags)
    finally:
        process.terminate()
        _out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
