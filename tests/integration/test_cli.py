# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command: its help, and what it says where."""

import base64
import json
import os
import re
import resource
import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from support.cli import COMMAND, DEMO, ENVIRONMENT, TRUTH, Captured, manifest_of, run_main
from support.every_command import commands_of
from support.packets import HOUR, SECOND, START, Tcp
from support.parts import capture_of, flow, in_this_order
from support.waiting import PATIENCE_S, running

import zanon_net
from zanon_net.cli.commands import COMMANDS
from zanon_net.cli.common import COMMON
from zanon_net.cli.entry import cli
from zanon_net.cli.options import run_options
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import RUN


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- help ---------------------------------------------------------------------------------------


def test_version(capsys: Captured) -> None:
    assert run_main("--version") == 0
    assert capsys.readouterr().out == f"zanon-net {zanon_net.__version__}\n"


def test_the_list_of_commands_is_whole(capsys: Captured) -> None:
    assert run_main("--help") == 0
    assert "..." not in capsys.readouterr().out.partition("Commands:")[2]


def test_the_whole_help_of_run(capsys: Captured) -> None:
    assert run_main("run", "--help-all") == 0
    text = capsys.readouterr().out
    titles = re.findall(r"^(\w[\w ]+):$", text, re.MULTILINE)
    groups = ["Anonymity", "Lists of names", "Addresses", "Input and output", "Limits"]
    groups += ["Interfaces", "Metrics", "Packets", "Counter of all probes", "Messages"]
    assert titles == groups
    assert text.count("zanon-net run") >= 3
    for shown in ("[default: 20]", "[default: 1h]", "[default: 32,56]", "[default: tstat]"):
        assert shown in " ".join(text.split())


@pytest.mark.parametrize("columns", [80, 100])
def test_help_fits_a_screen(
    columns: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal of 40 lines shows the help of each command."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lengths = {}
    for path in COMMANDS:
        assert run_main(*path.split(), "--help") == 0
        lengths[path] = len(capsys.readouterr().out.splitlines())
    assert {path: lines for path, lines in lengths.items() if lines > 40} == {}


@pytest.mark.parametrize("path", COMMON)
def test_the_whole_help_has_each_option_and_the_short_help_the_common_ones(
    path: str, capsys: Captured
) -> None:
    command: click.Command = cli
    for word in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    assert COMMON[path].keys() <= options.keys()
    shown = {}
    for flag in ("--help", "--help-all"):
        assert run_main(*path.split(), flag) == 0
        text = capsys.readouterr().out
        shown[flag] = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE))
    ends = {"--help", "--help-all"}
    names = {
        name: next(o for o in each.opts if o[:2] == "--")
        for name, each in options.items()
        if not each.hidden
    }
    assert shown["--help"] == {names[name] for name in COMMON[path]} | ends
    assert shown["--help-all"] == set(names.values()) | ends
    assert len(COMMON[path]) <= 20 < len(shown["--help-all"]) + 8


def test_commands_can_be_made_with_the_oldest_click() -> None:
    """It refuses a default for an argument that takes any number, and with it every command."""
    many = [
        parameter.to_info_dict()
        for command in commands_of(cli).values()
        for parameter in command.params
        if parameter.nargs == -1
    ]
    assert [(about["name"], about["default"]) for about in many] == [
        (name, None) for name in ("source", "paths", "source", "source", "logs", "source", "sealed")
    ]


def with_groups_of(group: click.Group) -> Iterator[tuple[click.Command, click.Command]]:
    """Each command of a group as the group lists it, and as it is imported."""
    for name, command in commands_of(group).items():
        yield group.commands[name], command
        if isinstance(command, click.Group):
            yield from with_groups_of(command)


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    pairs = list(with_groups_of(cli))
    assert len(pairs) == len(COMMANDS)
    for listed, command in pairs:
        assert listed.name == command.name
        assert listed.get_short_help_str(limit=200) == command.get_short_help_str(limit=200)


@pytest.mark.parametrize("arguments", [("--help",), ("inspect", "-h"), ("key", "new", "--help")])
def test_help_is_no_error(arguments: Sequence[str], capsys: Captured) -> None:
    assert run_main(*arguments) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Usage: zanon-net ")
    assert said.err == ""


@pytest.mark.parametrize("arguments", [(), ("key",)])
def test_a_group_alone_shows_its_help(arguments: Sequence[str], capsys: Captured) -> None:
    assert run_main(*arguments) == 2
    said = capsys.readouterr()
    assert said.err.startswith("Usage: zanon-net ")
    assert said.out == ""


def test_every_setting_but_two_limits_has_its_option() -> None:
    options = {parameter.name for parameter in run_options()}
    settings = set(RUN) - {"max_tuples", "max_attributes"}
    others = {"source", "out", "config_file", "as_json", "quiet", "verbose"}
    assert options == settings | others


@pytest.mark.parametrize("command", ["inspect", "model", "tune"])
def test_options_of_other_commands_are_settings(command: str) -> None:
    options = {parameter.name for parameter in commands_of(cli)[command].params}
    others = {"source", "as_json", "verbose", "help_all"}
    assert options - others == {row.name for row in rows_of(command)}


def test_exact_has_a_second_name() -> None:
    for number, name in enumerate(("--exact", "--no-coarsen")):
        assert run_main("run", DEMO, "--out", f"out{number}", "-q", name) == 0
        assert '"exact": true' in Path(f"out{number}", "manifest.json").read_text()


# ---- what is said where -------------------------------------------------------------------------


def test_summary(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--z", 5, "--out", "out") == 0
    said = capsys.readouterr()
    assert said.out == ""
    rows = dict(re.findall(r"^(\w[\w ]+?)  +(.*?) *$", said.err, re.MULTILINE))
    titles = ["packets", "flows", "names seen", "released", "users", "time span", "speed"]
    assert set(titles) <= rows.keys()
    assert rows["packets"] == "15,629"
    assert re.fullmatch(r"[\d,]+ of [\d,]+ \(\d+\.\d%\)", rows["released"])
    assert re.search(r"^suppressed +[\d,]+  exposed by fewer than z users", said.err, re.MULTILINE)
    assert rows["output"] == "out"
    assert "note" not in rows


def test_the_summary_tells_which_limits_were_met(capsys: Captured) -> None:
    head = b"POST / HTTP/1.1\r\nHost: www.example.org\r\nTransfer-Encoding: chunked\r\n\r\nno chunk"
    talk = Tcp().handshake().say(head)
    Path("one.pcap").write_bytes(capture_of(talk.frames))
    assert run_main("run", "one.pcap", "--out", "out") == 0
    said = capsys.readouterr().err
    assert re.search(r"^limits met +1  request bodies whose end was not found", said, re.MULTILINE)
    assert manifest_of("out")["counters"]["capacity"]["bodies_lost"] == 1  # type: ignore[index]


def test_the_summary_tells_how_z_followed_the_stream(capsys: Captured) -> None:
    options = ["--z", 2, "--z-max", 3, "--target-p", 0.99, "--window", "10m", "--out", "out"]
    assert run_main("run", DEMO, *options) == 0
    said = re.findall(r"^z  +(.*?) *$", capsys.readouterr().err, re.MULTILINE)
    manifest = manifest_of("out")
    z = [change["new"] for change in manifest["z_changes"]]
    beyond = manifest["z_windows"]["needed_more_than_z_max"]
    assert said == [
        f"changed {len(z)} times, to {min(z)} at least and {max(z)} at most",
        f"{beyond} windows needed more than --z-max",
    ]


def test_a_step_of_the_clock_is_a_note_and_a_warning(capsys: Captured) -> None:
    ahead = [START + 30 * HOUR + n * SECOND for n in range(3)]
    back = [START + n * SECOND for n in range(300)]
    frames = [frame for n, t_ns in enumerate(ahead + back) for frame in flow(n, t_ns)]
    Path("back.pcap").write_bytes(in_this_order(frames))
    assert run_main("run", "back.pcap", "--z", 2, "--out", "out", "-q") == 0
    (said,) = capsys.readouterr().err.splitlines()
    manifest = manifest_of("out")
    assert manifest["counters"]["clock"]["clock_rebased"] == 1  # type: ignore[index]
    assert manifest["notes"][-1].startswith("the time of the packets was set back once: all ")  # type: ignore[index]
    assert said == f"zanon-net: warning: {manifest['notes'][-1]}"  # type: ignore[index]
    assert manifest["complete"]
    assert run_main("packets", "back.pcap", "out.pcap", "--z", 2) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("the time of the packets was set back once") == 2


def test_z_of_1_is_announced(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--z", 1, "--out", "out") == 0
    assert "note             z = 1: every name is released" in capsys.readouterr().err
    assert manifest_of("out")["notes"]


@pytest.mark.parametrize("more", [(), ("-q",)])
def test_json(more: Sequence[str], capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", "out", "--json", *more) == 0
    said = capsys.readouterr()
    assert said.err == ""
    shown = json.loads(said.out)
    assert shown.pop("performance").keys() == {
        *("seconds", "packets_per_s", "gbit_per_s", "memory_bytes")
    }
    assert shown == manifest_of("out")


def test_json_beside_data(capsys: Captured) -> None:
    arguments = ("--out", "-", "--format", "observations", "--json", "--z", 5)
    assert run_main("run", DEMO, *arguments) == 0
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    manifest = json.loads(said.err)
    released = manifest["decisions"]["released"], manifest["counters"]["dns"]["dns_released"]
    assert len(lines) == sum(released)
    assert min(released) > 100
    assert all(line.keys() == {"t_ns", "client", "name", "name_source"} for line in lines)
    assert not list(Path.cwd().iterdir())


def test_quiet_and_verbose(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", "quiet", "-q") == 0
    assert capsys.readouterr() == ("", "")
    assert run_main("run", DEMO, "--out", "verbose", "-v") == 0
    assert capsys.readouterr().err.startswith("zanon-net: reading demo.pcap\n")


def test_the_default_folder() -> None:
    """Each run has one, although runs may start in the same second."""
    for _ in range(3):
        assert run_main("run", DEMO, "-q") == 0
    folders = [folder.name for folder in Path.cwd().iterdir()]
    assert len(folders) == 3
    assert all(re.fullmatch(r"zanon-\d{8}T\d{6}Z", name) for name in folders)


def test_options_go_before_the_file() -> None:
    text = "[anonymity]\nz = 3\nwindow = '10m'\n[output]\nformat = ['jsonl', 'observations']\n"
    Path("zanon.toml").write_text(text)
    arguments = ("--config", "zanon.toml", "--z", 7, "--format", "jsonl", "--dns-votes", "no")
    assert run_main("run", DEMO, "--out", "out", "-q", *arguments) == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["flows.jsonl", "manifest.json"]
    settings = manifest_of("out")["configuration"]
    assert isinstance(settings, dict)
    anonymity = settings["anonymity"]
    assert (anonymity["z"], anonymity["window"], anonymity["dns_votes"]) == (7, "10m", "no")


def test_a_filter_is_used_and_not_shown() -> None:
    assert run_main("run", DEMO, "--out", "out", "--filter", "tcp and not host 10.1.2.3") == 0
    text = Path("out/manifest.json").read_text()
    assert '"filtered": true' in text
    assert '"packets_udp": 0' in text
    assert "10.1.2.3" not in text


# ---- key and inspect ----------------------------------------------------------------------------


def test_a_new_key(capsys: Captured) -> None:
    former = os.umask(0)
    try:
        assert run_main("key", "new", "key") == 0
    finally:
        os.umask(former)
    line = Path("key").read_bytes()
    assert Path("key").stat().st_mode & 0o777 == 0o600
    assert len(base64.b64decode(line, validate=False)) == 32
    assert line.endswith(b"\n")
    assert run_main("key", "check", "key") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert line.decode().strip() not in said.err
    assert run_main("key", "new", "other") == 0
    assert Path("other").read_bytes() != line


def test_a_key_leaves_no_trace(capsys: Captured) -> None:
    assert run_main("key", "new", "my.key") == 0
    key = Path("my.key").read_text().strip()
    capsys.readouterr()
    assert run_main("run", DEMO, "--out", "out", "--key-file", "my.key", "-v") == 0
    said = capsys.readouterr()
    written = "".join(path.read_text() for path in Path("out").rglob("*") if path.is_file())
    assert '"key_mode": "derived"' in written
    for secret in (key, base64.b64decode(key).hex(), "my.key"):
        assert secret not in written + said.out + said.err


def test_inspect(capsys: Captured) -> None:
    assert run_main("inspect", DEMO) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for expected in ("frames of ETHERNET", "names seen in TLS", "neither IPv4 nor IPv6"):
        assert expected in said.out
    assert run_main("inspect", "--json", DEMO) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sources"][0]["link_types"] == {"ETHERNET": 15629}
    assert facts["read"]["frames"] == 15629
    assert facts["decisions"]["observations"] > 1000
    assert not list(Path.cwd().iterdir())


def test_a_file_name_that_is_no_text_leaves_valid_json(capfd: pytest.CaptureFixture[str]) -> None:
    """Half a surrogate pair is refused by strict readers, or ends them."""
    source = os.fsencode("caf\u00e9-") + b"\xff.pcap"
    Path(os.fsdecode(source)).write_bytes(Path(DEMO).read_bytes())
    assert run_main("run", os.fsdecode(source), "--out", "out", "-q") == 0
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["sources"][0]["name"] == "caf\u00e9-\ufffd.pcap"
    assert run_main("inspect", os.fsdecode(source), "--json") == 0
    assert json.loads(capfd.readouterr().out)["sources"][0]["name"] == "caf\u00e9-\ufffd.pcap"


def test_inspect_prints_no_name_and_no_address(capsys: Captured) -> None:
    assert run_main("inspect", DEMO) == 0
    assert run_main("inspect", "--json", DEMO) == 0
    assert run_main("run", DEMO, "--out", "out") == 0
    assert run_main("run", DEMO, "--out", "more", "--json") == 0
    said = "".join(capsys.readouterr()) + Path("out/manifest.json").read_text()
    with TRUTH.open() as lines:
        sightings = [json.loads(line) for line in lines][1:]
    canaries = {sighting[key] for sighting in sightings for key in ("client", "server", "name")}
    assert len(canaries) > 500
    assert not [canary for canary in canaries if canary and canary in said]


def test_the_summary_accounts_for_every_name_seen(capsys: Captured) -> None:
    """Those decided, those of DNS that are decided apart, and those that a flow repeats."""
    assert run_main("run", DEMO, "--out", "out", "--z", 5) == 0
    said = capsys.readouterr().err.splitlines()
    numbers = {}
    for line in said:
        title, text = re.split("  +", line, maxsplit=1)
        found = re.findall(r"\b[0-9][0-9,]*\b", text)
        numbers[title] = [int(number.replace(",", "")) for number in found]
    decided, of_dns = numbers["released"][1], numbers["released in DNS"][1]
    assert sum(numbers["names seen"]) == decided + of_dns + numbers["repeated"][0]


# ---- the terminal -------------------------------------------------------------------------------


def on_terminal(*arguments: str) -> str:
    """What a run says when stderr is a terminal."""
    master, slave = os.openpty()
    environment = ENVIRONMENT | {"TERM": "xterm"}  # on a dumb one nothing moves
    with running([*COMMAND, *arguments], env=environment, stderr=slave) as process:
        os.close(slave)
        said = b""
        while True:
            assert select.select([master], [], [], PATIENCE_S)[0], said
            try:
                more = os.read(master, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not more:
                break
            said += more
        process.wait(PATIENCE_S)
    os.close(master)
    assert process.returncode == 0
    return said.decode()


def test_who_reads_a_table_may_go() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "inspect", str(DEMO)],
        env=ENVIRONMENT,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_progress_bar_on_a_terminal() -> None:
    said = on_terminal("run", str(DEMO), "--out", "out")
    assert "packets/s" in said.split("names seen")[0]
    assert "2.8/2.8 MB" in said
    assert on_terminal("run", str(DEMO), "--out", "quiet", "-q") == ""


@pytest.mark.parametrize("status", [[], ["--status", "1ns"]])
def test_a_message_on_a_terminal_has_a_line_of_its_own(status: list[str]) -> None:
    """Above the bar, or the table, that moves there."""
    said = on_terminal("run", str(DEMO), "--out", "out", "-v", *status)
    moves = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
    lines = [line.rpartition("\r")[2] for line in moves.sub("", said).split("\r\n")]
    assert [line for line in lines if "reading" in line] == ["zanon-net: reading demo.pcap"]
    assert next(line for line in lines if "flow table" in line).startswith("zanon-net: the flow")


def test_a_status_on_a_terminal_is_a_table() -> None:
    said = on_terminal("run", str(DEMO), "--out", "out", "-q", "--status", "1ns")
    assert re.search(r"packets +[0-9,]+ \([0-9,]+/s\)", said)
    assert "status:" not in said


def test_a_status_elsewhere_is_a_line(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", "out", "-q", "--status", "1ns") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("zanon-net: status: 20") for line in lines)
    assert "packets 15,629 " in lines[-1]


# ---- config -------------------------------------------------------------------------------------


def test_config_to_standard_output_and_to_a_file(capsys: Captured) -> None:
    assert run_main("config") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert run_main("config", "zanon.toml") == 0
    assert Path("zanon.toml").read_text() == told.out
    assert run_main("run", DEMO, "--config", "zanon.toml", "--out", "out", "-q") == 0


def test_config_overwrites_nothing(capsys: Captured) -> None:
    Path("mine").write_text("mine")
    assert run_main("config", "mine") == 2
    assert "mine exists, and nothing is ever overwritten" in capsys.readouterr().err
    assert Path("mine").read_text() == "mine"
    assert run_main("config", "no/such/folder") == 1
    assert "No such file or directory" in capsys.readouterr().err
    assert run_main("config", "") == 2
    assert "has no name" in capsys.readouterr().err


def test_half_a_config_is_not_left(capsys: Captured) -> None:
    """It would be read as a whole one, with the defaults for what was cut."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, former[1]))
    try:
        assert run_main("config", "zanon.toml") == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    assert "cannot write zanon.toml: File too large" in capsys.readouterr().err
    assert not Path("zanon.toml").exists()


def test_a_run_tells_what_its_flows_take_if_asked(capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", "quiet", "--max-flows", 1000) == 0
    assert "flow table" not in capsys.readouterr().err
    assert run_main("run", DEMO, "--out", "out", "--max-flows", 1000, "-v") == 0
    found = re.search(
        "zanon-net: the flow table holds up to 1,000 flows, in up to ([0-9,]+) bytes of memory\n",
        capsys.readouterr().err,
    )
    assert found
    assert 320_000 < int(found[1].replace(",", "")) < 2_000_000
