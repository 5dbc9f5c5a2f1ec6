# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net top`, beside a server of the metrics that a run over the demo capture had."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from support.cli import Captured, run_main
from support.paths import TESTS

from zanon_net._text import short
from zanon_net.errors import ConfigError, ZanonError
from zanon_net.top import app as screen
from zanon_net.top.app import Panel, Top
from zanon_net.top.figures import panels
from zanon_net.top.released_names import ReleasedNames
from zanon_net.top.scrape import Endpoint, Scrape

pytestmark = pytest.mark.source

RECORDED = TESTS / "integration" / "metrics_of_demo.prom"


class Server:
    """Serves `text`, which a test may change; `None` closes the connection at once."""

    def __init__(self) -> None:
        self.text: str | None = RECORDED.read_text("utf-8")
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if server.text is None or self.path != "/metrics":
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(server.text.encode())

            def log_message(self, *_arguments: object) -> None:
                """Says nothing."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.http.server_port}"
        self.thread = Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "PERIOD_S", 0.05)


def rows_of(app: Top, panel: str) -> dict[str, str]:
    """The rows of a panel as they are shown."""
    names, values = app.query_one(f"#{panel}", Panel).visual._renderable.columns
    return {str(name): str(value) for name, value in zip(names.cells, values.cells, strict=True)}


def drive(app: Top, steps: Callable[[], Awaitable[None]]) -> None:
    """Runs the screen without a terminal, and `steps` beside it."""

    async def run() -> None:
        async with app.run_test(size=(120, 50)) as pilot:
            await pilot.pause()
            await steps()
            await pilot.press("q")

    asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what the next scrape shows."""
    for _ in range(200):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it was not shown")


def test_labels_cannot_steer_the_terminal() -> None:
    text = 'zanon_packets_total 1\nzanon_drops_total{reason="\x1b]0;title\x07"} 2\n'
    ((label, number),) = Scrape(text).by_label("drops_total").items()
    assert label.isprintable()
    assert number == 2


def test_figures_are_those_of_the_run() -> None:
    shown = {title: dict(rows) for title, rows in panels(Scrape(RECORDED.read_text())).items()}
    assert shown["Traffic"]["packets"] == "15.6 k"
    assert shown["Traffic"]["bits/s"] == "363 M"
    assert shown["Decisions"]["released"] == "487 (39.8%)"
    assert shown["Decisions"]["below z"] == "548 (44.8%)"
    assert "too late" not in shown["Decisions"]
    assert shown["Packets in no flow"] == {"all": "24", "not ip": "12", "not tcp udp": "12"}
    assert shown["z-table"]["pairs of user and name"] == "916"
    assert shown["Output"] == {"observations": "72.4 kB, 657 records"}


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [(0, "", "0"), (999, "B", "999 B"), (1000, "B", "1 kB"), (2.5e13, "", "25 T"), (None, "", "-")],
)
def test_short_numbers(number: float | None, unit: str, text: str) -> None:
    assert short(number, unit) == text


def test_the_screen_follows_the_run(server: Server) -> None:
    endpoint = Endpoint(server.address)
    app = Top(endpoint, endpoint.scrape())

    async def steps() -> None:
        assert rows_of(app, "traffic")["packets"] == "15.6 k"
        assert server.text is not None
        server.text = server.text.replace("packets_total 15600.0", "packets_total 17000.0")
        await until(lambda: rows_of(app, "traffic")["packets"] == "17 k")
        server.text = None
        await until(lambda: "no answer" in app.sub_title or "answers" in app.sub_title)
        assert rows_of(app, "traffic")["packets"] == "17 k"
        server.text = RECORDED.read_text("utf-8")
        await until(lambda: app.sub_title == server.address)

    drive(app, steps)


def test_a_run_that_stands_still_is_told_of(server: Server) -> None:
    assert server.text is not None
    server.text = server.text.replace("age_seconds 0.000542", "age_seconds 95.0")
    endpoint = Endpoint(server.address)
    app = Top(endpoint, endpoint.scrape())

    async def steps() -> None:
        assert "nothing new for 95 s" in app.sub_title

    drive(app, steps)


def test_released_names_of_the_folder_are_shown(server: Server, tmp_path: Path) -> None:
    part = tmp_path / "observations-20240514T090000Z.jsonl.partial"
    line = '{"t_ns":1,"client":"10.0.0.1","name":"%s","name_source":"tls"}\n'
    part.write_text(line % "a.example" * 3 + line % "[b]b.example" + line[:20])
    endpoint = Endpoint(server.address)
    app = Top(endpoint, endpoint.scrape(), ReleasedNames(tmp_path))

    async def steps() -> None:
        await until(lambda: app.query_one("#names", Panel).border_title is not None)
        assert rows_of(app, "names") == {"a.example": "3", "[b]b.example": "1"}

    drive(app, steps)


def test_names_are_counted_once_whatever_their_files_are_called(tmp_path: Path) -> None:
    part = tmp_path / "observations.jsonl.partial"
    part.write_text('{"name":"a.example"}\n{"name":"b.exa')
    names = ReleasedNames(tmp_path)
    names.update()
    with part.open("a") as file:
        file.write('mple"}\nnonsense\n[]\n{"name":"\\u001b[2Jc"}\n')
    part.rename(tmp_path / "observations.jsonl")
    (tmp_path / "flows.jsonl").write_text('{"name":"d.example"}\n')
    names.update()
    names.update()
    assert names.counts == {"a.example": 1, "b.example": 1, " [2Jc": 1}
    assert names.unreadable == 2
    (tmp_path / "observations.jsonl").write_text("{}\n")  # shorter: another file
    names.update()
    assert names.unreadable == 3


@pytest.mark.parametrize(
    "text", ["", "9464", "host", "host:", ":9464", "a@b:1", "h:99999", "h:1/x", "a b:1", "a\t:1"]
)
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="ADDR:PORT"):
        Endpoint(text)


def test_other_servers_are_refused(server: Server) -> None:
    for text in ("<html>", "up 1\n", 'x{a="\n'):
        server.text = text
        with pytest.raises(ZanonError, match="no metrics of zanon-net"):
            Endpoint(server.address).scrape()


def test_bad_input_gets_one_line(server: Server, tmp_path: Path, capfd: Captured) -> None:
    for arguments, code, text in (
        (["nonsense"], 2, "ADDR:PORT: must be"),
        ([server.address, "--names", str(tmp_path / "gone")], 2, "is no folder"),
        ([server.address], 1, "needs a terminal"),
        (["127.0.0.1:1"], 1, "no answer: Connection refused"),
    ):
        assert run_main("top", *arguments) == code
        out, err = capfd.readouterr()
        assert text in err
        assert err.count("\n") == 1
        assert out == ""
