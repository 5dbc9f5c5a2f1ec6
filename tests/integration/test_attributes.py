# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attributes besides names (`run --attributes`): every decision is that of a count by brute force
over the exposures, in every format, and never next to a suppressed name."""

import csv
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.engine import TCP_COMPLETE, UDP_COMPLETE, make_engine, run
from support.handshake import browser, telling
from support.packets import (
    ACK,
    CLIENT,
    MINUTE,
    MS,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    hello,
    merged,
    user,
    visit,
)

from zanon_net import _core, read_log
from zanon_net.config import rules
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError
from zanon_net.pipeline.runner import run as run_to_folder
from zanon_net.popularity import Popularity

ALPN = 16
OFFERS = [[b"h2", b"http/1.1"], [b"http/1.1"], [b"h2"], [b"acme-tls/1"], [b"rare offer"]]
HOSTS = [b"a.example.org", b"b.example.org", b"c.example.org", b"d.example.org", None]


def alpn(*protocols: bytes) -> bytes:
    return wire.extension(ALPN, wire.vector(2, b"".join(wire.vector(1, p) for p in protocols)))


def text_of(protocols: Sequence[bytes]) -> str:
    return ",".join(protocol.decode().replace(" ", "%20") for protocol in protocols)


def offering(client: str, host: bytes | None, t_ns: int, *protocols: bytes) -> list[Frame]:
    """A whole TLS connection whose hello offers these protocols."""
    talk = Tcp(client, t_ns=t_ns).handshake().say(hello(host, alpn(*protocols)))
    return talk.say(b"\x17\x03\x03\0\x04data", SERVER).close().frames


def shown_to_four() -> list[Frame]:
    """Connections of four users whose hellos name one host and offer one protocol."""
    hosts = (b"a.example",) * 4
    return merged(
        offering(user(i), host, START + i * SECOND, b"h2") for i, host in enumerate(hosts)
    )


def test_the_words_are_the_tables() -> None:
    assert tuple(_core.ATTRIBUTES) == rules.ATTRIBUTES


# ---- the decision --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """A connection whose hello is complete at t_ns."""

    t_ns: int
    user: int
    host: bytes | None
    offer: tuple[bytes, ...]

    def frames(self) -> list[Frame]:
        return offering(user(self.user), self.host, self.t_ns - 3 * MS, *self.offer)


def shared(made: Sequence[Visit], at: int, member: str, window: int, z: int) -> bool:
    """Returns whether z users exposed the member's value in the window that ends with a visit."""
    last = made[at]
    users = {
        visit.user
        for visit in made[: at + 1]
        if visit.t_ns >= last.t_ns - window and getattr(visit, member) == getattr(last, member)
    }
    return len(users) >= z


@pytest.mark.parametrize("batch", [1, 7, 1 << 14])
@pytest.mark.parametrize("seed", range(3))
def test_each_decision_is_a_count_over_the_exposures(seed: int, batch: int) -> None:
    rng, t = random.Random(seed), START
    made = []
    for _ in range(250):
        t += rng.choice([1, 2, 30]) * SECOND
        host = HOSTS[min(rng.randrange(5), rng.randrange(5))]
        offer = OFFERS[min(rng.randrange(5), rng.randrange(5))]
        made.append(Visit(t, rng.randrange(12), host, tuple(offer)))
    window, z = 5 * MINUTE, 4
    frames = merged(visit.frames() for visit in made)
    settings: dict[str, Any] = {"z": z, "window_ns": window, "attributes": ("alpn",)}
    outcome = run(frames, batch=batch, **settings)
    expected: list[tuple[int, str, str]] = []
    cells = []
    for i, seen in enumerate(made):
        named = seen.host is None or shared(made, i, "host", window, z)
        if named and seen.host is not None:
            expected.append((seen.t_ns, "name", seen.host.decode()))
        offered = named and shared(made, i, "offer", window, z)
        cells.append(text_of(seen.offer) if offered else None)
        if offered:
            expected.append((seen.t_ns, "alpn", text_of(seen.offer)))
    assert [(o["t_ns"], o["namespace"], o["name"]) for o in outcome.observations] == expected
    assert [flow["alpn"] for flow in outcome.flows] == cells
    assert [line["alpn"] for line in outcome.log(TCP_COMPLETE)] == [cell or "-" for cell in cells]
    assert 20 < len([cell for cell in cells if cell]) < 230  # the test must be able to fail
    hidden = [i for i, cell in enumerate(cells) if not cell and shared(made, i, "offer", window, z)]
    assert len(hidden) > 5


@pytest.mark.parametrize("exact", [False, True])
def test_no_attribute_is_next_to_a_suppressed_name(exact: bool) -> None:
    frames = [
        f for i in range(4) for f in offering(user(i), b"a.example", START + i * SECOND, b"h2")
    ]
    rare = offering(user(9), b"rare.example", START + 9 * SECOND, b"h2")
    settings: dict[str, Any] = {"z": 3, "exact": exact, "attributes": ("alpn",)}
    outcome = run([*frames, *rare], **settings)
    assert [flow["alpn"] for flow in outcome.flows] == [None, None, "h2", "h2", None]
    assert [o["namespace"] for o in outcome.observations] == ["name", "alpn"] * 2
    assert run([*frames, *rare], **settings | {"z": 1}).flows[-1]["alpn"] == "h2"


@pytest.mark.parametrize("exact", [False, True])
def test_an_unread_flow_shows_none(exact: bool) -> None:
    """A flow that the capture joined in its middle may have a name that was not read."""
    frames = [
        f for i in range(4) for f in offering(user(i), b"a.example", START + i * SECOND, b"h2")
    ]
    joined = Tcp(user(8), t_ns=START + 8 * SECOND).say(hello(None, alpn(b"h2"))).frames
    outcome = run([*frames, *joined], z=2, exact=exact, established=False, attributes=("alpn",))
    assert [flow["alpn"] for flow in outcome.flows] == [None, "h2", "h2", "h2", None]
    assert len([o for o in outcome.observations if o["namespace"] == "alpn"]) == 3


def test_a_user_that_is_not_proven_does_not_vote() -> None:
    frames: list[Frame] = []
    for i in range(4):
        talk = Tcp(user(i), t_ns=START + i * SECOND).segment(CLIENT, SYN).segment(SERVER, SYN | ACK)
        talk.next[SERVER] += 7  # later acknowledgements are not of the server's bytes
        frames += talk.say(hello(None, alpn(b"h2"))).close().frames
    frames += offering(user(9), None, START + 9 * SECOND, b"h2")
    outcome = run(frames, z=2, attributes=("alpn",))
    assert outcome.observations == []
    assert [flow["alpn"] for flow in outcome.flows] == [None] * 5


def test_equal_texts_of_two_namespaces_do_not_count_together() -> None:
    text = b"a.example.org"
    frames = [*offering(user(1), None, START, text), *visit(user(2), text, START + SECOND)]
    outcome = run(frames, z=2, attributes=("alpn",))
    assert outcome.observations == []
    assert text not in outcome.everything()


def test_without_the_option_nothing_changes() -> None:
    frames = offering(user(1), b"a.example", START, b"h2")
    outcome = run(frames, z=1)
    assert "alpn" not in outcome.flow
    assert outcome.observations[0].keys() == {"t_ns", "client", "name", "name_source"}


@pytest.mark.parametrize("proven", [True, False])
def test_the_hello_of_quic(proven: bool) -> None:
    frames = [
        frame
        for i in range(4)
        for frame in browser(i, telling(b"agent"), alpn(b"h3"), proven=proven)
    ]
    outcome = run(frames, z=3, attributes=("alpn",))
    cells = [line["alpn"] for line in outcome.log(UDP_COMPLETE)]
    assert cells == (["-", "-", "h3", "h3"] if proven else ["-"] * 4)
    assert [o["name_source"] for o in outcome.observations] == ["quic"] * (2 if proven else 0)


# ---- the reader ----------------------------------------------------------------------------------


def body(*extensions: bytes) -> bytes:
    """The body of a hello, without its header of 4 bytes."""
    return wire.client_hello(*extensions)[4:]


def read(message: bytes) -> tuple[str, str | None]:
    return _core.read_attribute("alpn", message)[:2]


@pytest.mark.parametrize(
    ("protocols", "text"),
    [
        ([b"h2", b"http/1.1"], "h2,http/1.1"),
        ([b"\x0a\x0a", b"h2", b"\xfa\xfa"], "h2"),  # GREASE
        ([b"\x0a\x1a"], "%0A%1A"),
        ([b'a"b\\c,d%e f', b"\xff\0"], "a%22b%5Cc%2Cd%25e%20f,%FF%00"),
        ([b"x" * 253], "x" * 253),
        ([b"x" * 250, b"y" * 3], None),
    ],
)
def test_the_text_of_protocols(protocols: list[bytes], text: str | None) -> None:
    assert read(body(wire.server_name(b"a"), alpn(*protocols))) == ("done", text)


def test_a_hello_without_protocols() -> None:
    assert read(body()) == read(body(wire.server_name(b"a"))) == ("other", "")
    assert read(wire.client_hello()[4:]) == ("other", "")
    assert read(body(alpn(b"\x0a\x0a"))) == ("other", "")


def test_no_part_of_a_damaged_hello_is_read() -> None:
    whole = body(wire.server_name(b"a.example"), alpn(b"h2", b"http/1.1"))
    for prefix in wire.prefixes(whole):
        assert read(prefix)[0] in ("malformed", "other") or prefix == whole
    assert read(whole + b"\0")[0] == "malformed"
    assert read(body(alpn(b"h2"), alpn(b"h2")))[0] == "malformed"
    assert read(body(alpn(b"h2", b"")))[0] == "malformed"
    listed = alpn(b"h2", b"http/1.1")
    for at in (2, 3, 4, 5, 6, 9):  # each byte of a length
        for step in (-1, 1):
            damaged = bytearray(listed)
            damaged[at] = damaged[at] + step & 0xFF
            assert read(body(bytes(damaged)))[0] == "malformed"


# ---- formats, manifest, settings -----------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with every format: 5 users offer two protocols, of which a user's connection has a
    suppressed name."""
    path = tmp_path_factory.mktemp("attributes")
    frames = [
        frame
        for i in range(5)
        for frame in offering(user(i), b"a.example", START + i * SECOND, b"h2", b"http/1.1")
    ]
    frames += offering(user(7), b"rare.example", START + 9 * SECOND, b"h2", b"http/1.1")
    records = (
        pcap_record("<", frame.t_ns // SECOND, frame.t_ns % SECOND, frame.data) for frame in frames
    )
    header = pcap_header(magic=PCAP_NANOSECONDS)
    (path / "in.pcap").write_bytes(header + b"".join(records))
    config = Config(
        z=3,
        attributes="alpn",
        format="tstat,csv,jsonl,parquet,observations",
        order="closing",
        popularity=str(path / "popularity.json"),
    )
    run_to_folder(path / "in.pcap", config, out=path / "logs")
    return path


def test_every_format_has_the_column(folder: Path) -> None:
    logs = folder / "logs"
    expected = [None, None, "h2,http/1.1", "h2,http/1.1", "h2,http/1.1", None]
    with next(logs.glob("flows*.csv")).open() as file:
        assert [row["alpn"] or None for row in csv.DictReader(file)] == expected
    lines = next(logs.glob("flows*.jsonl")).read_text().splitlines()
    assert [json.loads(line)["alpn"] for line in lines] == expected
    for pattern in ("flows.csv", "flows.jsonl", "flows/tcp.parquet", "*.out/log_tcp_complete"):
        (file,) = logs.glob(pattern)
        table = read_log(file, into="arrow")
        assert sorted(map(str, table["alpn"].to_pylist())) == sorted(map(str, expected))
        assert table.schema.field("alpn").metadata[b"description"].startswith(b"protocols")


def test_the_observations_have_their_namespace(folder: Path) -> None:
    table = read_log(folder / "logs", log="observations", into="arrow")
    assert table["namespace"].to_pylist() == ["name", "alpn"] * 3
    assert set(table["name"].to_pylist()) == {"a.example", "h2,http/1.1"}


def test_the_manifest_counts_each_attribute(folder: Path) -> None:
    manifest = json.loads((folder / "logs" / "manifest.json").read_text())
    counts = {"observations": 6, "released": 3, "suppressed": 3, "malformed": 0}
    assert manifest["attributes"] == {"alpn": counts}
    assert manifest["decisions"]["observations"] == 6  # of names alone
    assert manifest["configuration"]["anonymity"]["attributes"] == ["alpn"]
    assert "http/1.1" not in json.dumps(manifest)


def test_popularity_counts_each_attribute(folder: Path) -> None:
    (window,) = Popularity.load(folder / "popularity.json").windows
    assert (window.users, window.bins) == (6, (1, 0, 1))
    counts = window.attributes["alpn"]
    assert (counts.users, counts.bins) == (6, (0, 0, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attributes": "alpn,ja5"}, "'ja5' is not one of"),
        ({"levels": "domain"}, "have no labels"),
        ({"shards": 2}, "--shards"),
        ({"count_at": "tcp://127.0.0.1:1", "probe": "p"}, "--count-at"),
        ({"format": "pcap"}, "not for packets"),
    ],
)
def test_what_does_not_combine_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        Config(**({"attributes": "alpn"} | settings))
    assert "\n" not in str(error.value)


def test_the_core_refuses_it_as_well() -> None:
    with pytest.raises(ConfigError, match="attributes exclude"):
        make_engine(attributes=("alpn",), levels=("domain",))
