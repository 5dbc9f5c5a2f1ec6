# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter --preset` dnstap, bind and unbound: the logs of resolvers."""

import re
import shutil
import socket
import subprocess
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import pytest
from fstrm import (
    FSTRM_CONTROL_ACCEPT,
    FSTRM_CONTROL_FINISH,
    FSTRM_CONTROL_READY,
    FSTRM_CONTROL_STOP,
    FSTRM_DATA_FRAME,
    FstrmCodec,
)
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.dns import DNS
from support.dnstap import (
    CLIENT_QUERY,
    CLIENT_RESPONSE,
    CONTENT,
    NS,
    RESOLVER_QUERY,
    Message,
    read,
    stream,
)
from support.filter import COMMAND, ENVIRONMENT, run_filter
from support.filter_run import Captured, run_main
from support.waiting import running, wait_until

from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig

T = 1_795_922_823 * NS
PRIVATE = "127.0.0.0/8,10.0.0.0/8,192.168.0.0/16,fc00::/7"
Visit = tuple[int, int, str]
"""Seconds after T, number of a client, name."""

VISITS: list[Visit] = [
    (0, 1, "Popular.example"),
    (1, 2, "popular.EXAMPLE"),
    (2, 3, "hush.example"),
    (3, 3, "popular.example"),
    (4, 3, "hush.example"),
    (70, 4, "popular.example"),
    (71, 1, "later.example"),
    (72, 4, "later.example"),
    (73, 1, "4.0.0.10.in-addr.arpa"),
    (74, 2, "4.0.0.10.in-addr.arpa"),
]
SECRETS = ("hush", "10.0.0.", "fd00:", "arpa", "resolver-7", "key")
visits = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.integers(1, 5),
        st.sampled_from(["a.example", "b.example", "c.example"]),
    ),
    max_size=30,
).map(sorted)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def released(rows: list[Visit], z: int = 2, window: int = 60) -> list[tuple[int, str]]:
    """The oracle: time and name of each visit that z clients made within the window."""
    found = []
    for i, (t, _client, name) in enumerate(rows):
        name = name.lower()
        users = {
            c for u, c, other in rows[: i + 1] if other.lower() == name and t - window <= u <= t
        }
        if len(users) >= z and not name.endswith(".arpa"):
            found.append((t, name))
    return found


def sift(preset: str, content: bytes, *more: object) -> bytes:
    """What the preset writes, z = 2 and a window of one minute, with `more`."""
    Path("log").write_bytes(content)
    command = [*COMMAND, "--preset", preset, "--z", "2", "--window", "1m", "-q", *map(str, more)]
    done = subprocess.run([*command, "log"], capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    for secret in SECRETS:
        assert secret.encode() not in done.stdout + done.stderr.lower()
    return done.stdout


# ---- dnstap -------------------------------------------------------------------------------------


def client_of(number: int) -> str:
    """Clients of both families."""
    return f"10.0.0.{number}" if number < 4 else f"fd00:{number}::1"


def taps(rows: list[Visit]) -> bytes:
    """A tap in which the server answers each visit, and asks others about it."""
    frames = []
    for t, client, name in rows:
        for kind in (CLIENT_QUERY, RESOLVER_QUERY, CLIENT_RESPONSE):
            frames.append(Message(kind, T + t * NS + kind, client_of(client), name).frame())
    return stream(frames)


def answers(content: bytes) -> list[tuple[int, str]]:
    """Time and name of each response in a tap, whose fields are what a reader may see."""
    found = []
    for fields in read(content):
        assert fields.pop(1) == CLIENT_RESPONSE
        message = fields.pop(14)
        dns = DNS(message)
        assert (dns.id, dns.qdcount, dns.ancount, dns.nscount, dns.arcount) == (0, 1, 0, 0, 0)
        assert dns.qr == dns.rd == 1
        name = dns.qd[0].qname.decode().removesuffix(".")
        assert bytes(DNS(id=0, qr=1, rd=1, qd=dns.qd[0])) == message
        assert fields.pop(13) == CLIENT_RESPONSE
        found.append((fields.pop(12) - T // NS, name))
        assert len(fields.pop(4)) in (4, 16)
        assert fields.pop(6) == 0
        assert {3: 1, 7: 53}.items() <= fields.items()
        assert fields.keys() <= {2, 3, 5, 7}
    return found


def test_dnstap_shows_released_names_of_answered_queries() -> None:
    out = sift("dnstap", taps(VISITS))
    assert answers(out) == released(VISITS)
    clients = {fields[4] for fields in read(out)}
    assert not clients & {ip_address(client_of(n)).packed for n in range(1, 5)}


@given(rows=visits, part=st.integers(1, 400))
def test_dnstap_decides_as_the_oracle(rows: list[Visit], part: int) -> None:
    config = FilterConfig(preset="dnstap", z=2, window="1m")
    row_filter = RowFilter(**config.row_filter_arguments())
    content, out = taps(rows), b""
    for at in range(0, len(content), part):
        row_filter.feed(content[at : at + part])
        out += row_filter.take()
    row_filter.end()
    row_filter.finish()
    assert answers(out + row_filter.take()) == released(rows)


def test_dnstap_blanks_suppressed_messages() -> None:
    frames = read(sift("dnstap", taps(VISITS), "--suppressed", "blank"))
    assert len(frames) == 2 * len(VISITS)
    names = [fields for fields in frames if 14 in fields]
    assert len(names) == len(released(VISITS))
    for fields in frames:
        if 14 in fields:
            continue
        assert fields.keys() <= {1, 6, 7, 8, 9, 12, 13}
        assert fields.get(8, fields.get(12, 0)) % 60 == 0
        assert fields.get(9, fields.get(13)) == 0


def test_dnstap_without_evidence() -> None:
    queries = [Message(CLIENT_QUERY, T + t, f"10.0.0.{t}", "a.example").frame() for t in (1, 2)]
    assert read(sift("dnstap", stream(queries))) == []
    [fields] = read(sift("dnstap", stream(queries), "--evidence", "any"))
    assert DNS(fields[10]).qd[0].qname == b"a.example."


@pytest.mark.skipif(shutil.which("dnstap-read") is None, reason="BIND's dnstap-read is missing")
def test_dnstap_opens_in_the_reader_of_bind() -> None:
    Path("out.tap").write_bytes(sift("dnstap", taps(VISITS)))
    command = ["dnstap-read", "out.tap"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in text.splitlines()]
    assert names == [f"{name}/IN/A" for _t, name in released(VISITS)]


def test_dnstap_counts_what_it_cannot_read() -> None:
    good = two_answers()
    odd = [b"\xff", good[0][:40], stream([])[8:], good[0].replace(b"\x07example", b"\xc0example")]
    Path("log").write_bytes(stream([*odd, *good], stop=False) + b"\0\0\1\0cut")
    done = run_filter("--preset", "dnstap", "--z", 2, "--json", "log")
    assert done.returncode == 0
    assert len(read(done.stdout)) == 1
    assert b'"other": 5' in done.stderr
    assert b"log: line 2: not about a query of a client; the row is dropped" in done.stderr


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"time,user,attribute\n", "no control frame of Frame Streams begins the data"),
        (stream([])[:-12].replace(b"dnstap", b"dmstap"), "the Frame Streams data is not of dnstap"),
        (stream([], stop=False) + b"\x7f\0\0\0", "a frame is longer than 1 MiB"),
        (bytes(4) + b"\0\0\0\4\0\0\0\x09", "a control frame of Frame Streams is malformed"),
    ],
)
def test_dnstap_that_is_none_is_one_line(content: bytes, problem: str, capsys: Captured) -> None:
    Path("log").write_bytes(content)
    assert run_main("--preset", "dnstap", "--z", 2, "-q", "log") == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"zanon-net: log: {problem}")
    assert said.err.count("\n") == 1


def two_answers() -> list[bytes]:
    """Frames of two clients, of which the second releases the name."""
    return [Message(CLIENT_RESPONSE, T + i, f"10.0.0.{i}", "a.example").frame() for i in (1, 2)]


def test_dnstap_from_a_unix_socket() -> None:
    """Two programs, one after the other; the first shakes hands, the second does not."""
    codec = FstrmCodec()
    options = ["--preset", "dnstap", "--z", "2", "-q", "unix:tap.sock"]
    with (
        Path("out.tap").open("wb") as out,
        running(
            [*COMMAND, *options], stdout=out, stderr=subprocess.PIPE, env=ENVIRONMENT
        ) as process,
    ):
        wait_until(lambda: Path("tap.sock").exists())
        frames = [
            Message(CLIENT_RESPONSE, T + i, f"10.0.0.{i}", "a.example").frame() for i in (1, 2)
        ]
        with socket.socket(socket.AF_UNIX) as program:
            program.connect("tap.sock")
            program.sendall(codec.encode(FSTRM_CONTROL_READY, [CONTENT]))
            assert program.recv(1000) == codec.encode(FSTRM_CONTROL_ACCEPT, [CONTENT])
            program.sendall(stream(frames)[:-12])
            wait_until(lambda: Path("out.tap").stat().st_size > 0)  # before the stream ends
            program.sendall(codec.encode(FSTRM_CONTROL_STOP))
            assert program.recv(1000) == codec.encode(FSTRM_CONTROL_FINISH)
        size = Path("out.tap").stat().st_size
        with socket.socket(socket.AF_UNIX) as program:
            program.connect("tap.sock")
            program.sendall(stream(frames[1:]) + codec.encode(FSTRM_DATA_FRAME, payload=b"x")[:3])
        wait_until(lambda: Path("out.tap").stat().st_size > size)
        process.terminate()
        assert process.wait(60) == 1  # interrupted
    assert len(read(Path("out.tap").read_bytes())) == 2
    assert not Path("tap.sock").exists()


def test_a_socket_of_another_program_is_left_alone(capsys: Captured) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind("tap.sock")
        other.listen()
        assert run_main("--preset", "dnstap", "unix:tap.sock") == 1
        said = capsys.readouterr()
        assert said.err.startswith("zanon-net: tap.sock: the socket cannot be made: ")
        assert Path("tap.sock").exists()


# ---- query logs of BIND -------------------------------------------------------------------------

FORMS = {
    "local": "%d-%b-%Y %H:%M:%S.000",
    "iso8601": "%Y-%m-%dT%H:%M:%S.000",
    "iso8601-utc": "%Y-%m-%dT%H:%M:%S.000Z",
}
BIND_LINE = re.compile(
    r"(?P<time>\d\d-\S+ \S+|\d{4}-\S+) (?:queries: )?(?:info: )?"
    r"client @0x0 (?P<client>[0-9a-f.:]+)#0 \((?P<shown>\S+)\): query: (?P<name>\S+) IN A"
    r" \+E\(0\)T \((?P<server>-|[0-9a-f.:]+)\)\n"
)


def bind_log(rows: list[Visit], form: str, prefix: str = "queries: info: ") -> str:
    """Lines as BIND 9.18 writes them."""
    lines = []
    for t, client, name in rows:
        time = datetime.fromtimestamp(T // NS + t, UTC).strftime(FORMS[form])
        subnet = " [ECS 10.0.0.0/24/0]" if client == 2 else ""
        view = "view customers-of-key: " if client == 1 else ""
        lines.append(
            f"{time} {prefix}client @0x7fb8a7a6d098 {client_of(client)}#50123 ({name}): {view}"
            f"query: {name} IN A +E(0)T (10.0.0.9){subnet}\n"
        )
    return "".join(lines)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prefix", ["", "queries: info: ", "info: "])
def test_bind_keeps_its_form(form: str, prefix: str) -> None:
    out = sift("bind", bind_log(VISITS, form, prefix).encode()).decode()
    found = []
    for line in out.splitlines(keepends=True):
        match = BIND_LINE.fullmatch(line)
        assert match is not None, line
        assert prefix in line
        assert match["shown"] == match["name"]
        time = datetime.strptime(match["time"], FORMS[form]).replace(tzinfo=UTC)
        found.append((int(time.timestamp()) - T // NS, match["name"]))
    assert found == released(VISITS)


def test_bind_needs_a_sign_of_a_real_client() -> None:
    log = bind_log(VISITS, "local").replace("+E(0)T", "+E(0)K")
    assert sift("bind", log.encode()) == b""
    out = sift("bind", log.encode(), "--evidence", "any")
    assert out.count(b"\n") == len(released(VISITS))
    cookies = log.replace("+E(0)K", "+E(0)V")
    assert sift("bind", cookies.encode()).count(b"\n") == len(released(VISITS))


def test_bind_drops_other_lines(capsys: Captured) -> None:
    good = bind_log([(0, 1, "a.example"), (1, 2, "a.example")], "local")
    first = good.splitlines()[0]
    odd = [
        "29-Nov-2026 03:27:03.415 general: info: running",
        first.replace("(a.example)", "(b.example)"),
        first.replace("#50123", "#50123/key hush"),
        first.replace("10.0.0.1", "10.0.0.1x"),
        first.replace("29-Nov-2026 ", ""),
        first + " more",
        first.replace(" IN A ", " IN A; "),
    ]
    Path("log").write_text("\n".join(odd) + "\n" + good)
    assert run_main("--preset", "bind", "--z", 2, "--json", "log") == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert f'"other": {len(odd)}' in said.err
    assert "log: line 1: not about a query of a client; the row is dropped" in said.err


def test_bind_blanks_suppressed_lines() -> None:
    out = sift("bind", bind_log(VISITS[2:3], "local").encode(), "--suppressed", "blank")
    assert out == (
        b"29-Nov-2026 03:27:00.000 queries: info: client @0x0 -#0 (-): query: - - - - (-)\n"
    )


# ---- query logs of Unbound ----------------------------------------------------------------------

UNBOUND_LINE = re.compile(
    r"(?P<time>\[\d+\]|\S+ \S+ \S+|\S+) unbound\[0:0\] (?P<tag>info|reply): (?P<client>[0-9a-f.:]+)"
    r" (?P<name>\S+)\. A IN NOERROR 0\.000000 1 60\n"
)
UNBOUND_TIMES = {"epoch": "[%s]", "ascii": "%b %d %H:%M:%S", "iso": "%Y-%m-%dT%H:%M:%S.000+00:00"}


def unbound_log(rows: list[Visit], form: str, *, tags: bool = False) -> str:
    """Lines of log-queries and log-replies as Unbound writes them."""
    lines = ["[1795922818] unbound[24118:0] notice: init module 0: subnetcache\n"]
    query, reply = ("query", "reply") if tags else ("info", "info")
    for t, client, name in rows:
        at = datetime.fromtimestamp(T // NS + t, UTC)
        time = at.strftime(UNBOUND_TIMES[form].replace("%s", str(T // NS + t)))
        words = f"{client_of(client)} {name}. A IN"
        lines.append(f"{time} unbound[24118:2] {query}: {words}\n")
        lines.append(f"{time} unbound[24118:2] {reply}: {words} NOERROR 0.000000 1 60\n")
    return "".join(lines)


@pytest.mark.parametrize("form", UNBOUND_TIMES)
@pytest.mark.parametrize("tags", [True, False])
def test_unbound_keeps_its_form(form: str, tags: bool) -> None:
    log = unbound_log(VISITS, form, tags=tags)
    out = sift("unbound", log.encode()).decode()
    times = [line.split(" unbound", 1)[0] for line in log.splitlines()]
    found = []
    for line in out.splitlines(keepends=True):
        match = UNBOUND_LINE.fullmatch(line)
        assert match is not None, line
        assert match["tag"] == ("reply" if tags else "info")
        found.append((match["time"], match["name"]))
    expected = [
        (times[2 + 2 * VISITS.index(visit)], visit[2].lower())
        for visit in VISITS
        if (visit[0], visit[2].lower()) in released(VISITS)
    ]
    assert found == expected


def test_unbound_without_years_goes_over_new_year() -> None:
    def line(time: str, client: int) -> str:
        return f"{time} unbound[1:0] info: 10.0.0.{client} a.example. A IN NOERROR 0.0 0 40\n"

    times = [("Dec 31 23:59:58", 1), ("Dec 31 23:59:59", 2), ("Jan 01 00:00:01", 1)]
    times += [("Jan 01 00:00:02", 2), ("Feb 29 10:00:00", 1), ("Feb 29 10:00:01", 3)]
    out = sift("unbound", "".join(line(*time) for time in times).encode()).decode()
    shown = [text[:15] for text in out.splitlines()]
    assert shown == ["Dec 31 23:59:59", "Jan 01 00:00:02", "Feb 29 10:00:01"]


def test_unbound_drops_other_lines(capsys: Captured) -> None:
    good = unbound_log([(0, 1, "a.example"), (1, 2, "a.example")], "epoch")
    odd = [
        "[1795922824] unbound[1:0] info: resolving hush.example. A IN",
        "[1795922824] unbound[1:0] info: 10.0.0.1 hush.example. A IN NOERROR",
        "[1795922824] unbound[1:0] error: 10.0.0.1 hush.example. A IN",
        "[1795922824] unbound[1:0] info: example. static 10.0.0.1@53 hush.example. A IN",
        "unbound[1:0] info: 10.0.0.1 hush.example. A IN",
    ]
    Path("log").write_text(good + "\n".join(odd) + "\n")
    assert run_main("--preset", "unbound", "--z", 2, "--json", "log") == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert f'"other": {len(odd) + 1}' in said.err
    assert not any(secret in said.out + said.err for secret in ("hush", "10.0.0.1"))
