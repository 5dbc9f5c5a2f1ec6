# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter and its probes over TLS: kills, a network that is cut, strangers."""

import contextlib
import gc
import logging
import random
import resource
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.certificates import Authority
from support.cli import run_main
from support.counting import Votes, counter, counts_of, key_file, start_counter
from support.ports import free_port
from support.waiting import wait_until

from zanon_net._core import VoteWriter, read_answers, write_answers
from zanon_net.count.client import connect
from zanon_net.count.client_base import CountClient
from zanon_net.count.commits import COUNTED, Commit, Entry
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import (
    Hello,
    Key,
    Refusal,
    Welcome,
    framed,
    probe_of,
    read_welcome,
    write_hello,
    write_refusal,
    write_welcome,
)
from zanon_net.count.listener import PROBES_MAX, Listener, _owner
from zanon_net.count.transport import Received
from zanon_net.count.url import TlsFiles, read_place
from zanon_net.errors import ConfigError, FormatError, UnopenedError, ZanonError

Answers = dict[tuple[int, Key], list[bool]]


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes(shards=2, seconds=40)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def tls_options(files: TlsFiles) -> list[object]:
    return ["--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca]


def take(clients: dict[int, CountClient], found: Answers, seconds: float) -> None:
    """Collects answers for so long, or until there are no more to come."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(client.unanswered_bytes for client in clients.values()):
        for client in clients.values():
            for message in client.receive(0.02):
                read = read_answers(message)
                place = read["probe"], Key(read["shard"], read["sequence"])
                assert place not in found
                found[place] = read["answers"].tolist()


@contextlib.contextmanager
def clients_of(
    votes: Votes, port: int, files: dict[int, TlsFiles] | None
) -> Iterator[dict[int, CountClient]]:
    scheme = "tcp" if files is None else "tls"
    clients = {
        probe: connect(
            f"{scheme}://127.0.0.1:{port}",
            probe=probe,
            settings=votes.settings,
            tls=None if files is None else files[probe],
        )
        for probe in votes.messages
    }
    try:
        yield clients
    finally:
        for client in clients.values():
            client.close()


@pytest.mark.parametrize("with_tls", [True, False])
def test_each_probe_has_its_answers(votes: Votes, authority: Authority, with_tls: bool) -> None:
    port = free_port()
    files = {probe: authority.certify(f"probe{probe}") for probe in votes.messages}
    options = tls_options(authority.certify("counter")) if with_tls else []
    url = f"{'tls' if with_tls else 'tcp'}://127.0.0.1:{port}"
    done = ("--expect-probes", 3, "--until-done", "--json")
    with counter(url, *votes.options, *options, *done) as process:
        with clients_of(votes, port, files if with_tls else None) as clients:
            for client in clients.values():
                welcome = client.welcome(30)
                assert welcome is not None
                assert welcome.shards == votes.shards
            for probe, message in votes.in_turns():
                clients[probe].send(message)
            found: Answers = {}
            take(clients, found, 30)
            assert found == votes.answers
        assert counts_of(process)["decided"] == 40 * 40 * 3


def test_kills_of_the_counter_lose_no_answer_and_repeat_none(
    votes: Votes, authority: Authority, tmp_path: Path
) -> None:
    port, rng = free_port(), random.Random()
    files = {probe: authority.certify(f"killed{probe}") for probe in votes.messages}
    arguments = (
        *(f"tls://127.0.0.1:{port}", *votes.options, *tls_options(authority.certify("counter"))),
        *("--expect-probes", 3, "--state", tmp_path / "state"),
        *("--state-key-file", key_file(tmp_path)),
    )
    found: Answers = {}
    turns = votes.in_turns()
    with clients_of(votes, port, files) as clients:
        for part in range(4):
            process = start_counter(*arguments)
            for probe, message in _part(turns, part, 4):
                clients[probe].send(message)
            take(clients, found, rng.uniform(0.3, 1.5))
            process.kill()
            process.communicate()
        with counter(*arguments):
            take(clients, found, 60)
    assert found == votes.answers


def _part(turns: list[tuple[int, bytes]], part: int, parts: int) -> list[tuple[int, bytes]]:
    size = len(turns) // parts
    return turns[part * size : None if part + 1 == parts else (part + 1) * size]


class Network:
    """Between probes and a counter: a relay that can be cut, without a word to either side."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        """What was under way is lost, as where a link is down for longer than TCP waits."""
        for link in self._sockets:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()
        self._open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _address = self._server.accept()
                self._open.wait()
                with contextlib.suppress(OSError):
                    far = socket.create_connection(("127.0.0.1", self._target))
                    self._sockets += [near, far]
                    for source, sink in ((near, far), (far, near)):
                        threading.Thread(
                            target=self._relay, args=(source, sink), daemon=True
                        ).start()

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if not self._open.is_set():
                    return
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.close()
        self.mend()


def test_a_network_that_is_cut_delays_answers_and_loses_none(
    votes: Votes, authority: Authority
) -> None:
    """A minute's cut, of 1.5 s here, with a patience for probes that is longer."""
    port = free_port()
    files = {probe: authority.certify(f"cut{probe}") for probe in votes.messages}
    options = tls_options(authority.certify("counter"))
    with (
        counter(f"tls://127.0.0.1:{port}", *votes.options, *options, "--expect-probes", 3),
        contextlib.closing(Network(port)) as network,
        clients_of(votes, network.port, files) as clients,
    ):
        found: Answers = {}
        turns = votes.in_turns()
        for part in range(4):
            if part == 1:
                network.cut()
            for probe, message in _part(turns, part, 4):
                clients[probe].send(message)
            take(clients, found, 1.5)
            if part == 1:
                assert len(found) < len(votes.answers) / 2
                network.mend()
        take(clients, found, 60)
        assert found == votes.answers


def test_strangers_get_no_connection(
    votes: Votes, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port, files = free_port(), authority.certify("counter")
    stranger = Authority(tmp_path, "other").certify("probe")
    stranger_to_them = TlsFiles(stranger.cert, stranger.key, authority.path)
    caplog.set_level(logging.WARNING, "zanon_net")
    with counter(f"tls://127.0.0.1:{port}", *votes.options, *tls_options(files)) as process:
        wait_for_port(port)
        url = f"tls://127.0.0.1:{port}"
        for tls in (stranger, stranger_to_them):
            client = connect(url, probe=1, settings=votes.settings, tls=tls)
            assert client.welcome(1) is None
            client.close()
        assert "its certificate is not accepted" in caplog.text
        assert "127.0.0.1" not in caplog.text
        assert answer_without_certificate(port, authority, votes.settings) == b""
        known = connect(url, probe=1, settings=votes.settings, tls=authority.certify("known"))
        assert known.welcome(10) is not None
        another = connect(url, probe=1, settings=votes.settings, tls=authority.certify("another"))
        with pytest.raises(ZanonError, match="came with another certificate"):
            another.welcome(10)
        wrong = connect(url, probe=2, settings=7, tls=authority.certify("wrong"))
        with pytest.raises(ZanonError, match="--z, --window, --rotate or --count-rotate"):
            wrong.welcome(10)
        for client in (known, another, wrong):
            client.close()
        process.terminate()
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "127.0.0.1" not in err


def answer_without_certificate(port: int, authority: Authority, settings: int) -> bytes:
    """The first byte that the counter sends to a client that shows none."""
    context = ssl.create_default_context(cafile=authority.path)
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as link,
    ):
        link.sendall(framed(write_hello(Hello(1, settings))))
        return link.recv(1)
    return b""


def wait_for_port(port: int) -> None:
    for _try in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    pytest.fail("nobody listens")


def test_a_probe_that_begins_anew_leaves_its_former_number_at_once(
    votes: Votes, authority: Authority
) -> None:
    """One certificate a probe: a new number of the same says that the one before is over."""
    port, files = free_port(), authority.certify("again")
    url, options = f"tls://127.0.0.1:{port}", tls_options(authority.certify("counter"))
    with counter(url, *votes.options, *options, "--json") as process:
        for number in (1, 2):
            client = connect(url, probe=number, settings=votes.settings, tls=files)
            assert client.welcome(30) is not None
            for shard in range(votes.shards):
                writer = VoteWriter(number, shard, votes.settings)
                client.send(writer.finish(votes.start_ns + number))
            while client.unanswered_bytes:
                client.receive(0.1)
            client.close()
            time.sleep(0.2)
        process.terminate()
        assert counts_of(process)["probe_gone"] == 1


def test_a_probe_that_is_refused_twice_costs_others_no_answer(authority: Authority) -> None:
    """Answers go to all that are connected, and one that was closed twice still is for a moment."""
    settings = 7
    place = read_place("SOURCE", f"tls://127.0.0.1:{free_port()}")
    listener = Listener(place, Welcome(1, settings), authority.certify("counter"))
    clients: dict[int, CountClient] = {}
    try:
        listener.start("series")
        for probe in (1, 2):
            files, url = authority.certify(f"twice{probe}"), f"tls://127.0.0.1:{listener.port}"
            clients[probe] = connect(url, probe=probe, settings=settings, tls=files)
            assert clients[probe].welcome(30) is not None
            clients[probe].send(bytes(VoteWriter(probe, 0, settings).finish(1)))
        received: list[Received] = []
        while len(received) < 2:
            received += listener.take(30)
        refused = next(item for item in received if probe_of(item.message) == 1)
        for _time in range(2):
            listener.refuse(refused, Refusal("its clock is ahead", is_final=False))
        answers = [write_answers(0, probe, 1, settings, []) for probe in (1, 2)]
        listener.publish(Commit(0, []), answers)
        assert clients[2].receive(30)
    finally:
        for client in clients.values():
            client.close()
        listener.close()


@pytest.fixture
def of_one_certificate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.setattr("zanon_net.count.listener._owner", lambda _writer: "the same")
    place = read_place("SOURCE", f"tcp://127.0.0.1:{free_port()}")
    listener = Listener(place, Welcome(1, 7), None)
    listener.start("series")
    yield listener
    listener.close()


def count(listener: Listener, probe: int, sequence: int) -> None:
    """As the service does that has counted a message."""
    message = bytes(VoteWriter(probe, 0, 7, sequence=sequence).finish(1))
    answer = write_answers(0, probe, sequence, 7, [])
    listener.publish(Commit(0, [Entry(COUNTED, message)]), [answer])


def leave(client: CountClient, listener: Listener) -> None:
    client.close()
    wait_until(lambda: client.hello.probe not in listener._connections)


@pytest.mark.parametrize("side", ["counter", "probe"])
def test_a_signal_at_the_end_of_a_wait_does_not_prolong_it(
    of_one_certificate: Listener, side: str
) -> None:
    """A wait ends although the handler of a signal ran until after the end of the wait."""
    counter_url = f"tcp://127.0.0.1:{of_one_certificate.port}"
    client = connect(counter_url, probe=1, settings=7)
    former = signal.signal(signal.SIGUSR1, lambda *_frame: time.sleep(0.2))
    main = threading.main_thread().ident
    sender = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGUSR1))
    try:
        assert client.welcome(30) is not None
        sender.start()
        took = client.receive(0.1) if side == "probe" else of_one_certificate.take(0.1)
        assert took == []
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, former)
        client.close()


def test_a_probe_is_not_its_own_former_number(of_one_certificate: Listener) -> None:
    """Its connection is lost before its message is counted, and the answers wait for it."""
    url = f"tcp://127.0.0.1:{of_one_certificate.port}"
    for sequence in (1, 2):
        client = connect(url, probe=5, settings=7)
        assert client.welcome(30) is not None
        leave(client, of_one_certificate)
        count(of_one_certificate, 5, sequence)
    time.sleep(0.2)  # for what must not come
    assert of_one_certificate.take_lost() == []
    kept = of_one_certificate._retained[5].messages()
    assert 2 in [read_answers(answer)["sequence"] for answer in kept]


def test_a_number_that_is_heard_late_leaves_none_that_came_after_it(
    of_one_certificate: Listener,
) -> None:
    url = f"tcp://127.0.0.1:{of_one_certificate.port}"
    clients = []
    for probe in (5, 6):
        clients.append(connect(url, probe=probe, settings=7))
        assert clients[-1].welcome(30) is not None
    leave(clients[1], of_one_certificate)
    count(of_one_certificate, 5, 1)
    time.sleep(0.2)  # for what must not come
    assert of_one_certificate.take_lost() == []
    leave(clients[0], of_one_certificate)
    again = connect(url, probe=6, settings=7)
    assert again.welcome(30) is not None
    count(of_one_certificate, 6, 1)
    wait_until(lambda: of_one_certificate._lost == [5])
    again.close()


def test_a_client_that_waits_for_a_slow_counter_is_no_garbage() -> None:
    """An event loop knows its tasks weakly, and so does a stream of asyncio its reader."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = connect(f"tcp://127.0.0.1:{server.getsockname()[1]}", probe=5, settings=7)
        link, _address = server.accept()
        with link:
            assert link.recv(len(framed(write_hello(Hello(5, 7)))))
            gc.collect()
            link.sendall(framed(write_welcome(Welcome(1, 7))))
            assert client.welcome(10) == Welcome(1, 7)
        client.close()


def ask_for_long(client: CountClient) -> None:
    for sequence in range(1, 1000):
        client.send(bytes(VoteWriter(1, 0, 7, sequence=sequence).finish(1)))
        client.receive(0.05)


@pytest.mark.parametrize("renews", [False, True])
def test_a_counter_that_comes_back_with_other_shards_is_not_asked(
    tmp_path: Path, renews: bool
) -> None:
    """What a probe tells of clients would not come to each of them."""
    problem = "the counter has 4 shards by now and had 1: start this run again"
    folder = CounterFolder(tmp_path)
    folder.write_welcome(Welcome(1, 7))
    by_file = connect(f"file:{tmp_path}", probe=1, settings=7)
    place = read_place("SOURCE", f"tcp://127.0.0.1:{free_port()}")
    listener = Listener(place, Welcome(1, 7), None)
    listener.start("series")
    by_tcp = connect(f"tcp://127.0.0.1:{listener.port}", probe=1, settings=7)
    for client in (by_file, by_tcp):
        assert client.welcome(30) is not None
    listener.close()
    folder.write_welcome(Welcome(4, 7))
    listener = Listener(place, Welcome(4, 7), None)
    listener.start("series")
    clients = [client.as_another(2) if renews else client for client in (by_file, by_tcp)]
    for client in clients:
        with pytest.raises(ZanonError, match=problem):
            ask_for_long(client)
    for client in (*clients, by_file, by_tcp):
        client.close()
    listener.close()


@pytest.mark.parametrize("scheme", ["file", "tcp"])
def test_a_probe_hears_how_often_a_counter_answers(tmp_path: Path, scheme: str) -> None:
    """A counter that comes back may answer more seldom."""
    place = read_place("SOURCE", f"tcp://127.0.0.1:{free_port()}")
    client = connect(
        f"file:{tmp_path}" if scheme == "file" else f"tcp://{place.address}", probe=1, settings=7
    )
    assert client.interval_ns == 0
    for sequence, interval_ns in enumerate((3, 86_400 * 10**9, 0), start=1):
        welcome = Welcome(1, 7, interval_ns)
        CounterFolder(tmp_path).write_welcome(welcome)
        listener = Listener(place, welcome, None)
        listener.start("series")
        assert client.welcome(30) is not None
        client.send(bytes(VoteWriter(1, 0, 7, sequence=sequence).finish(1)))
        wait_until(lambda wanted=interval_ns: client.interval_ns == wanted)
        listener.close()
    client.close()


def test_no_counter_says_that_it_answers_less_than_once_a_day(tmp_path: Path) -> None:
    welcome = Welcome(1, 7, 86_400 * 10**9 + 1)
    with pytest.raises(FormatError, match="less than once a day"):
        read_welcome(write_welcome(welcome))
    folder = CounterFolder(tmp_path)
    folder.write_welcome(welcome)
    with pytest.raises(FormatError, match="less than once a day"):
        folder.read_welcome()


def test_noise_on_the_port_ends_nothing(votes: Votes) -> None:
    port = free_port()
    with counter(f"tcp://127.0.0.1:{port}", *votes.options) as process:
        wait_for_port(port)
        rng = random.Random(5)
        hello = framed(write_hello(Hello(1, votes.settings)))
        for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", rng.randbytes(5000), hello + b"\xff" * 99):
            with socket.create_connection(("127.0.0.1", port)) as link:
                link.sendall(noise)
        with connect_one(votes, port) as client:
            assert client.welcome(10) is not None
        process.terminate()
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_more_connections_than_there_can_be_are_one_line(votes: Votes) -> None:
    port = free_port()
    with counter(f"tcp://127.0.0.1:{port}", *votes.options) as process:
        wait_for_port(port)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))
        with contextlib.ExitStack() as links:
            for _link in range(80):
                links.enter_context(socket.create_connection(("127.0.0.1", port)))
            time.sleep(2.5)
        with connect_one(votes, port) as client:
            assert client.welcome(10) is not None
        process.terminate()
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "127.0.0.1" not in err
    assert err.count("Too many open files") == 1


def test_a_certificate_is_for_a_few_probes_at_once(
    votes: Votes, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    port, files = free_port(), authority.certify("many")
    url, options = f"tls://127.0.0.1:{port}", tls_options(authority.certify("counter"))
    with (
        counter(url, *votes.options, *options) as process,
        contextlib.ExitStack() as stack,
    ):
        for number in range(PROBES_MAX):
            client = connect(url, probe=number, settings=votes.settings, tls=files)
            stack.callback(client.close)
            assert client.welcome(30) is not None
        one_more = connect(url, probe=99, settings=votes.settings, tls=files)
        stack.callback(one_more.close)
        assert one_more.welcome(1) is None
        assert "its certificate has as many probes" in caplog.text
        process.terminate()


def test_a_probe_that_is_refused_for_now_comes_back_ever_later(votes: Votes) -> None:
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(2)
        with connect_one(votes, server.getsockname()[1]), contextlib.suppress(TimeoutError):
            until = time.monotonic() + 2
            while time.monotonic() < until:
                link, _address = server.accept()
                came.append(time.monotonic())
                with link:
                    link.sendall(framed(write_welcome(Welcome(votes.shards, votes.settings))))
                    link.sendall(framed(write_refusal(Refusal("later", is_final=False))))
                    link.recv(100)
    assert 2 <= len(came) <= 6


def test_certificates_without_a_subject_are_told_apart() -> None:
    class Link:
        def __init__(self, der: bytes) -> None:
            self.der = der

        def getpeercert(self, binary_form: bool = False) -> bytes:
            assert binary_form
            return self.der

        def get_extra_info(self, name: str) -> object:
            return self if name == "ssl_object" else {"subject": (), "serialNumber": "1"}

    owners = {_owner(Link(der)) for der in (b"one", b"another")}  # type: ignore[arg-type]
    assert len(owners) == 2
    assert "" not in owners


@contextlib.contextmanager
def connect_one(votes: Votes, port: int) -> Iterator[CountClient]:
    client = connect(f"tcp://127.0.0.1:{port}", probe=1, settings=votes.settings)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["ftp://x:1"], "write file:DIR"),
        (["tcp://10.0.0.1:4000"], "tcp has no protection"),
        (["tcp://localhost:4000"], "tcp has no protection"),
        (["nats://127.0.0.1:4222"], "write file:DIR"),
        (["nats://10.0.0.1:4222/VOTES"], "nats has no protection"),
        (["kafka://broker:9092/votes"], "kafka has no protection"),
        (["tls://127.0.0.1:4000"], "tls:// needs --tls-cert"),
        (["tls://127.0.0.1:4000", "--tls-cert", "x"], "give --tls-key, --tls-ca, too"),
        (["file:x", "--shards", "3"], "power of two"),
        (["file:x", "--until-done"], "give --expect-probes"),
        (["file:x", "--state", "y"], "make a key with 'zanon-net key new'"),
        (["tcp://127.0.0.1:4000", "--out", "x"], "is for the answers of file:DIR"),
        (["file:x", "--metrics", "0.0.0.0:9"], "allow it with metrics_anywhere"),
    ],
)
def test_contradictions_are_one_line_and_exit_2(
    arguments: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main("count", *arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert line in err
    assert list(tmp_path.iterdir()) == []


def test_files_of_certificates_are_named(tmp_path: Path, authority: Authority) -> None:
    files = authority.certify("probe")
    url = "tls://127.0.0.1:1"
    missing = TlsFiles(tmp_path / "none.pem", files.key, files.ca)
    with pytest.raises(UnopenedError, match=r"tls_cert: cannot read .*none\.pem"):
        connect(url, probe=1, settings=1, tls=missing)
    with pytest.raises(ConfigError, match="no certificate and its key"):
        connect(url, probe=1, settings=1, tls=TlsFiles(files.key, files.cert, files.ca))
    with pytest.raises(ConfigError, match="holds no certificate"):
        connect(url, probe=1, settings=1, tls=TlsFiles(files.cert, files.key, files.key))
    with pytest.raises(ConfigError, match="tls needs a certificate"):
        connect(url, probe=1, settings=1)


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_counter(f"tcp://127.0.0.1:{port}")
        _out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"cannot listen on port {port}: Address already in use" in err
