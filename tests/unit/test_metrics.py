# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The table of metrics, the clock that makes them, and where they may be served."""

import dataclasses
import functools
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from support.examples import each
from support.metrics import samples, scrape, shapes, until

from zanon_net import Config
from zanon_net._core import STAT_INFO, PacketEngine
from zanon_net.config.formats import FORMATS
from zanon_net.config.listen_address import ListenAddress
from zanon_net.errors import ConfigError, OutputError, ZanonError
from zanon_net.pipeline import metrics_export
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.metrics import DIGITS, METRICS, Snapshot, rounded
from zanon_net.pipeline.metrics_clock import REFRESH_S, MetricsClock
from zanon_net.pipeline.metrics_export import MetricsCollector, MetricsFile, MetricsServer
from zanon_net.pipeline.totals import Totals
from zanon_net.pipeline.window_hooks import WindowHooks


@functools.cache
def no_totals() -> Totals:
    """Those of an engine that has read nothing."""
    engine = PacketEngine(**Config().engine_arguments())
    totals = Totals.of(engine)
    engine.close()
    return totals


def snapshot_of(**changes: Any) -> Snapshot:
    usual = {"totals": no_totals(), "drops": Drops(), "z": 20, "rotate_ns": 3600 * 10**9}
    return Snapshot(**usual | changes)


# ---- the table ----------------------------------------------------------------------------------


def test_names_are_prometheus_names() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"zanon_[a-z]+(_[a-z]+)*", metric.full_name)
        assert metric.full_name.endswith("_total") == (metric.kind == "counter")
        assert metric.kind in ("counter", "gauge", "time", "info")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_no_label_comes_from_traffic() -> None:
    """Values of labels are words of ours, the same before the first packet and after the last."""
    counters = {name for name, _group, _text in STAT_INFO}
    known = {"ring", "interface", "us", "released", *FORMATS}
    known |= {re.sub(r"^(drop|suppressed|status)_", "", name) for name in counters}
    snapshot = snapshot_of(output={"tstat": (0, 0)})
    for metric in METRICS:
        for labels, _number in metric.samples(snapshot):
            assert metric.name == "build_info" or set(labels) <= known


SCRAPES = 1_000_000 if "ZANON_SOAK" in os.environ else 300


def test_whatever_was_counted_only_numbers_differ() -> None:
    """Every scrape has the lines of a run that has read nothing, and numbers of three digits in
    them. With ZANON_SOAK=1, of a million runs."""
    random_ = random.Random(11)

    def count() -> int:
        return random_.getrandbits(random_.randrange(65))

    collector, registry = MetricsCollector(), CollectorRegistry()
    registry.register(collector)
    collector.take(snapshot_of(totals=dataclasses.replace(no_totals(), time_range_ns=(0, 0))))
    expected = shapes(generate_latest(registry).decode())
    for _scrape in range(SCRAPES):
        totals = dataclasses.replace(
            no_totals(),
            counters={name: count() for name, _group, _text in STAT_INFO},
            table={name: count() for name in no_totals().table},
            time_range_ns=(0, random_.getrandbits(63)),
            memory_bytes=count(),
        )
        drops = Drops(count(), count(), count())
        collector.take(snapshot_of(totals=totals, drops=drops, lost_share=random_.random()))
        text = generate_latest(registry).decode()
        assert shapes(text) == expected
        for line in text.splitlines():
            name, _space, number = line.rpartition(" ")
            if line[0] != "#" and name != "zanon_key_epoch_start_seconds":
                mantissa = number.partition("e")[0].replace(".", "").strip("-0")
                assert len(mantissa) <= DIGITS, line


def test_every_counter_of_a_group_is_there_once() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    for name, group in (("drops_total", "drop"), ("flows_total", "status")):
        found = [labels[0] for labels, _number in by_name[name].samples(snapshot_of())]
        members = [counter for counter, of, _text in STAT_INFO if of == group]
        assert found == [re.sub(r"^(drop|status)_", "", member) for member in members]


@given(st.floats(0, 1e18))
def test_three_digits_and_no_more(number: float) -> None:
    assert rounded(number) == float(f"{rounded(number):.3g}")
    assert abs(rounded(number) - number) <= number / 200


@given(st.integers(0, 1 << 60), st.integers(0, 1 << 60))
def test_rounded_counters_never_decrease(a: int, b: int) -> None:
    assert rounded(min(a, b)) <= rounded(max(a, b))


@given(st.integers(0, 1 << 62), st.sampled_from([10**9, 60 * 10**9, 3600 * 10**9, 7]))
def test_an_epoch_tells_no_time_of_a_packet(last_ns: int, rotate_ns: int) -> None:
    (metric,) = (metric for metric in METRICS if metric.kind == "time")
    totals = dataclasses.replace(no_totals(), time_range_ns=(0, last_ns))
    ((_labels, start),) = metric.samples(snapshot_of(totals=totals, rotate_ns=rotate_ns))
    assert start % 60 == 0
    assert start <= last_ns // 10**9 < start + 60 + rotate_ns // 10**9


def test_no_epoch_before_the_first_packet() -> None:
    (metric,) = (metric for metric in METRICS if metric.kind == "time")
    assert metric.samples(snapshot_of()) == []


# ---- the clock ----------------------------------------------------------------------------------


def test_a_snapshot_every_ten_seconds() -> None:
    assert REFRESH_S >= 10
    taken: list[Snapshot] = []
    config = Config()
    engine = PacketEngine(**config.engine_arguments())
    drops = [Drops(), Drops(ring=30, us=10)]
    clock = MetricsClock(engine, lambda: drops[len(taken) > 0], WindowHooks(config), taken.append)
    start = clock._before
    for tenth in range(351):
        clock.tick(start + tenth / 10)
    assert len(taken) == 4
    assert [snapshot.lost_share for snapshot in taken] == [0, 1, 0, 0]
    engine.close()


# ---- the address --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("127.0.0.1:9464", "127.0.0.1:9464"),
        ("localhost:0", "127.0.0.1:0"),
        ("[::1]:09464", "[::1]:9464"),
        ("[0:0::1]:1", "[::1]:1"),
        ("127.8.9.1:65535", "127.8.9.1:65535"),
    ],
)
def test_addresses(written: str, read: str) -> None:
    config = Config(metrics=written)
    assert config.live.metrics == read
    address = ListenAddress.of(read)
    assert (address.is_loopback, address.is_ipv6) == (True, "[" in read)
    assert "9464" not in str(config.to_dict())


@each(
    "wrong",
    [
        *("", ":1", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:9464"),
        *("[127.0.0.1]:1", "probe.example:9464", "[fe80::1%eth0]:1", "127.1:80"),
        *("127.0.0.1:-1", "127.0.0.1:٣", 9464),
    ],
)
def test_what_is_no_address(wrong: object) -> None:
    with pytest.raises(ConfigError, match="metrics: "):
        Config(metrics=wrong)


@pytest.mark.parametrize("public", ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:7f00:1]:1"])
def test_other_machines_are_a_choice(public: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics: other machines .*--metrics-anywhere"):
        Config(metrics=public)
    assert Config(metrics=public, metrics_anywhere=True).live.metrics == public


def test_contradictions() -> None:
    with pytest.raises(ConfigError, match="metrics_anywhere: is for metrics"):
        Config(metrics_anywhere=True)
    with pytest.raises(ConfigError, match=r"metrics_file: .*\.prom"):
        Config(metrics_file="metrics.txt")
    with pytest.raises(ConfigError, match="metrics_file: is also where the popularity goes"):
        Config(metrics_file="p.prom", popularity="./p.prom")


# ---- the server and the file --------------------------------------------------------------------


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    collector = MetricsCollector()
    registry.register(collector)
    collector.take(snapshot_of())
    return registry


@pytest.fixture
def served(registry: CollectorRegistry) -> Any:
    server = MetricsServer(ListenAddress("127.0.0.1", 0), registry)
    server.start()
    yield server
    server.close()
    server.close()
    assert "metrics" not in {thread.name for thread in threading.enumerate()}


def test_a_scrape(served: MetricsServer, registry: CollectorRegistry) -> None:
    text = scrape(served.server_port)
    assert samples(text).keys() == samples(generate_latest(registry).decode()).keys()
    told = {name for name, _label in samples(text)}
    assert told == {m.full_name for m in METRICS if m.kind != "time"} - {
        "zanon_interface_up",
        "zanon_output_bytes_total",
        "zanon_output_records_total",
    } | {"zanon_snapshot_age_seconds"}


def test_a_port_in_use(served: MetricsServer, registry: CollectorRegistry) -> None:
    with pytest.raises(ZanonError, match=r"port \d+: Address already in use; choose another port"):
        MetricsServer(ListenAddress("127.0.0.1", served.server_port), registry)


def test_an_address_of_another_machine(registry: CollectorRegistry) -> None:
    with pytest.raises(ZanonError, match="choose an address of this machine"):
        MetricsServer(ListenAddress("192.0.2.1", 0), registry)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\xff" * 70000,
        b"POST / HTTP/1.0\r\n\r\n",
        b"GET /?name[]=%ff%00 HTTP/1.0\r\n\r\n",
        b"GET /" + b"a" * 70000 + b" HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nAccept: \xff;version=\r\nAccept-Encoding: gzip\r\n\r\n",
    ],
)
def test_clients_that_misbehave(
    sent: bytes, served: MetricsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", served.server_port)) as client:
        client.sendall(sent)
    assert "zanon_packets_total" in scrape(served.server_port)
    assert capfd.readouterr().err == ""


def test_a_client_that_is_silent(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(metrics_export._HANDLING, "timeout", 0.1)
    server = MetricsServer(ListenAddress("127.0.0.1", 0), registry)
    server.start()
    with socket.create_connection(("127.0.0.1", server.server_port)):
        assert "zanon_packets_total" in scrape(server.server_port)
    server.close()


def test_a_client_that_drips_is_cut_off(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_export, "CLIENT_TIMEOUT_S", 0.3)
    server = MetricsServer(ListenAddress("127.0.0.1", 0), registry)
    server.start()
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:

        def drip() -> None:
            with suppress(OSError):
                for _byte in range(100):
                    client.sendall(b"G")
                    time.sleep(0.05)

        dripping = threading.Thread(target=drip)
        dripping.start()
        began = time.monotonic()
        assert "zanon_packets_total" in scrape(server.server_port)
        dripping.join()
        assert time.monotonic() - began < 4
    server.close()


def test_a_client_that_is_slow_does_not_hold_the_end(registry: CollectorRegistry) -> None:
    server = MetricsServer(ListenAddress("127.0.0.1", 0), registry)
    server.start()
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"GET / HT")
        until(lambda: bool(server._clients))
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < metrics_export.CLIENT_TIMEOUT_S / 2


def test_clients_that_are_slow_keep_no_scrape_out(
    served: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They send a byte at times, and come again when they are cut off."""
    monkeypatch.setattr(metrics_export, "CLIENT_TIMEOUT_S", 60.0)
    place, most = ("127.0.0.1", served.server_port), 0
    with ExitStack() as stack:
        for n in range(100):
            client = stack.enter_context(socket.create_connection(place))
            client.sendall(b"GET / HT")
            if n % 10 == 9:
                until(lambda: len(served._clients) == metrics_export.CLIENTS_MAX)
                began = time.monotonic()
                assert "zanon_packets_total" in scrape(served.server_port)
                assert time.monotonic() - began < 5
            most = max(most, len(served._clients))
        assert most <= metrics_export.CLIENTS_MAX
        assert threading.active_count() <= metrics_export.CLIENTS_MAX + 10


def test_a_file(registry: CollectorRegistry, tmp_path: Path) -> None:
    path = tmp_path / "zanon.prom"
    file = MetricsFile(path, registry)
    path.with_name(".zanon.prom.partial").write_text("of a run that was killed")
    file.write()
    MetricsFile(path, registry).write()
    assert samples(path.read_text())["zanon_packets_total", ""] == 0
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_something_else_stays(registry: CollectorRegistry, tmp_path: Path) -> None:
    path = tmp_path / "capture.prom"
    path.write_bytes(b"\xd4\xc3\xb2\xa1 a capture")
    with pytest.raises(ConfigError, match=r"capture\.prom exists and holds no metrics"):
        MetricsFile(path, registry)
    assert path.read_bytes().endswith(b"a capture")


def test_a_pipe_in_the_place_of_the_next_file_holds_nothing_up(
    registry: CollectorRegistry, tmp_path: Path
) -> None:
    path = tmp_path / "zanon.prom"
    os.mkfifo(path.with_name(".zanon.prom.partial"))
    MetricsFile(path, registry).write()
    assert [one.name for one in tmp_path.iterdir()] == ["zanon.prom"]


@pytest.mark.parametrize("spoil", [lambda path: path.mkdir(), lambda path: path.parent.rmdir()])
def test_a_file_that_cannot_be_written(
    spoil: Callable[[Path], None], registry: CollectorRegistry, tmp_path: Path
) -> None:
    path = tmp_path / "inside" / "zanon.prom"
    path.parent.mkdir()
    spoil(path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match="cannot write"):
        MetricsFile(path, registry).write()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_that_is_full_later(
    registry: CollectorRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "inside" / "zanon.prom"
    path.parent.mkdir()
    file = MetricsFile(path, registry)
    file.write()
    path.unlink()
    path.parent.rmdir()
    for _time in range(3):
        file.write()
    (record,) = caplog.records
    assert "the run continues" in record.getMessage()
    path.parent.mkdir()
    file.write()
    assert path.exists()
