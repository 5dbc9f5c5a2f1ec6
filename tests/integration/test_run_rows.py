# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run whose observations go with its votes: the reader or the centre gets those that the run
itself writes, and nothing of the others leaves it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cli import run_main
from support.counting import counter
from support.demo import read_truth

from zanon_net.config.count_settings import CountConfig
from zanon_net.count.file_client import FileClient
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import Welcome
from zanon_net.count.settings import CounterSettings
from zanon_net.keys import new_reader_key

RULES = ("--z", "5", "--window", "1h")
PATIENT = ("--count-hold", "1h")  # of packet time: the run waits for answers at its end


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    path = tmp_path / "reader.key"
    new_reader_key(path)
    return path


@contextmanager
def counting(folder: Path, *mode: object) -> Iterator[None]:
    """A counter that has counted all when the block ends."""
    done = ("--expect-probes", 1, "--until-done")
    with counter(f"file:{folder}", *RULES, *done, *mode) as process:
        yield
        _out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err


def probe(pcap: Path, folder: Path, key: str, *more: object) -> Counter[bytes]:
    """The observations that a probe writes."""
    out = folder / "out"
    arguments = (*RULES, "--key-file", key, "--count-at", f"file:{folder}", "--probe", "north")
    code = run_main("run", pcap, *arguments, "--format", "observations", "--out", out, "-q", *more)
    assert code == 0
    return Counter((out / "observations.jsonl").read_bytes().splitlines())


def test_the_reader_gets_the_observations(
    demo_pcap: Path, key_file: str, reader: Path, tmp_path: Path
) -> None:
    sealed = tmp_path / "sealed"
    with counting(tmp_path, "--mode", "sealed", "--sealed-out", sealed):
        mode = ("--count-mode", "sealed", "--reader-key", f"{reader}.pub", *PATIENT)
        written = probe(demo_pcap, tmp_path, key_file, *mode)
    opened = tmp_path / "opened.jsonl"
    assert run_main("unseal", "--reader-key", reader, sealed, "--out", opened) == 0
    assert written
    assert Counter(opened.read_bytes().splitlines()) == written


def test_the_centre_gets_most_observations_and_no_other(
    demo_pcap: Path, key_file: str, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    with counting(tmp_path, "--mode", "threshold", "--observations-out", opened):
        written = probe(demo_pcap, tmp_path, key_file, "--count-mode", "threshold", *PATIENT)
    lines = Counter(
        line for path in opened.glob("*.jsonl") for line in path.read_bytes().splitlines()
    )
    assert not lines - written
    assert lines.total() > 0.9 * written.total()


@pytest.mark.parametrize("mode", ["sealed", "threshold"])
def test_no_name_leaves_a_probe_in_clear(
    demo_pcap: Path,
    demo_truth: Path,
    key_file: str,
    reader: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """Of a run whose counter never answers: all that it sends."""
    messages: list[bytes] = []
    send = FileClient.send

    def overheard(client: FileClient, message: bytes) -> None:
        messages.append(message)
        send(client, message)

    monkeypatch.setattr(FileClient, "send", overheard)
    files = CounterFolder(tmp_path)
    settings = CounterSettings.of(CountConfig(z=5, window="1h"))
    files.write_welcome(Welcome(1, settings.number))
    more: Sequence[object] = ("--reader-key", f"{reader}.pub") if mode == "sealed" else ()
    written = probe(
        demo_pcap,
        tmp_path,
        key_file,
        *("--count-mode", mode, *more, "--count-hold", "1s", "--count-wait", "1s"),
    )
    assert not written
    sent = b"".join(messages)
    assert len(sent) > 10_000
    names = {str(line["name"]).encode() for line in read_truth(demo_truth) if line["name"]}
    assert not {name for name in names if len(name) > 5 and name in sent}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--count-mode", "sealed"], "needs a counter"),
        (["--reader-key", "x"], "is for --count-mode sealed"),
        (["--count-mode", "open"], "is not one of"),
    ],
)
def test_a_wrong_mode_is_one_line(
    demo_pcap: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str],
    says: str,
) -> None:  # fmt: skip
    assert run_main("run", demo_pcap, "--out", tmp_path / "out", *options) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) <= 3
    assert not (tmp_path / "out").exists()


def test_other_reader_keys_are_one_line(
    demo_pcap: Path, key_file: str, reader: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place = ("--count-at", f"file:{tmp_path}", "--probe", "north", "--key-file", key_file)
    mode = ("--count-mode", "sealed", "--reader-key")
    for wrong, says, code in ((reader, "secret key", 2), (tmp_path / "none", "cannot read", 1)):
        arguments = (*RULES, *place, *mode, wrong, "--out", tmp_path / "out")
        assert run_main("run", demo_pcap, *arguments) == code
        assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# ---- unseal -------------------------------------------------------------------------------------


def test_unseal_refuses_what_it_cannot_use(
    reader: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise, folder = tmp_path / "noise.zns", tmp_path / "folder"
    noise.write_bytes(b"\xff" * 500)
    folder.mkdir()
    for source, says, code in (
        (tmp_path / "missing.zns", "cannot read", 1),
        (folder, "holds no file of sealed rows", 1),
        (noise, "holds no sealed rows", 1),
    ):
        out = tmp_path / f"out-{source.name}"
        assert run_main("unseal", "--reader-key", reader, source, "--out", out) == code
        assert says in capsys.readouterr().err
        assert not list(tmp_path.glob("*.partial"))
    assert run_main("unseal", "--reader-key", f"{reader}.pub", noise) == 2
