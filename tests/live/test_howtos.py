# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The shell commands of the how-tos, followed word by word on a machine of the test's own.

The machine is a network namespace with the interface eth0, on which traffic arrives, a namespace of
processes, and one of mounts, in which /etc, /run, /srv and /var/lib are copies or empty. Programs
of others are scripts here that look whether they get what the page says.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pytest
import zstandard
from support.cli import DEMO, ENVIRONMENT
from support.howtos import HOWTOS, blocks
from support.live import data_of
from support.netns import Namespace
from support.packets import crowd
from support.paths import ROOT

pytestmark = [pytest.mark.source, pytest.mark.slow]

COMMAND_OF_UNIT = re.compile(r"^ExecStart=/usr/bin/(.+)$", re.MULTILINE)
CREDENTIAL = re.compile(r"^LoadCredential=(\S+)$", re.MULTILINE)
UNITS = {"operating.md": "zanon-net.service", "many-probes.md": "zanon-net-counter.service"}


@dataclass(frozen=True)
class Step:
    """Commands of the shell around a block of a page.

    until: condition that ends the block. The test sends SIGTERM when the condition holds.
    left_out: reason for which the test cannot follow the block.
    """

    before: str = ""
    until: str = ""
    after: str = ""
    left_out: str = ""


PAGES = {
    "choosing-z.md": [Step(after="grep -q '<svg' model.html")],
    "clickhouse.md": [Step(left_out="tests/docs/test_data_howtos.py follows it")],
    "dataframes.md": [Step(left_out="tests/docs/test_data_howtos.py follows it")],
    "duckdb.md": [Step(left_out="tests/docs/test_data_howtos.py follows it")],
    "embedding.md": [Step(left_out="tests/unit/test_build.py builds the library and the program")],
    "feed-a-monitor.md": [
        Step(),
        Step(until="arrives mon1"),
        Step(
            before="sudo zanon-net packets eth0 --to mon0 --internal 10.0.0.0/8 & LAST=$!",
            after="end",
        ),
        Step(after="follow_unit 'arrives mon1'"),
    ],
    "filter.md": [
        Step(left_out="a form; tests/docs/test_filter_docs.py follows the examples"),
        Step(left_out="tests/integration/test_tune_steps.py writes steps for the filter"),
    ],
    "filter-logs.md": [],
    "flink.md": [
        Step(left_out="installs packages, as make .venv-flink/.built does"),
        *[Step(left_out="needs a cluster; tests/flink/test_howto.py has one")] * 5,
    ],
    "install.md": [
        Step(left_out="builds a wheel, as make wheel does, which tests it"),
        Step(left_out="builds packages; tests/packages/test_deb.py installs them"),
        Step(left_out="needs podman; tests/packages/test_container.py uses the image"),
        Step(left_out="installs on the machine; tests/unit/test_build.py stages the files"),
        Step(left_out="installs packages of the system"),
    ],
    "labels.md": [
        Step(after="grep -q 'Published names by level' report.html"),
        Step(),
        Step(),
    ],
    "live.md": [
        Step(
            before="mkdir /srv/logs",
            until="grep -q 'packets [1-9]' said",
            after="grep -q '\"complete\": true' /srv/logs/today/manifest.json",
        )
    ],
    "many-probes.md": [
        Step(before="cp capture.pcap north.pcap; cp capture.pcap south.pcap"),
        Step(after="wait; grep -q '\"unanswered\": 0' north/manifest.json south/manifest.json"),
        Step(),
        Step(),
        Step(),
        Step(until="grep -q 'counting on port 9471' said && ask_with probe-1 networked"),
        Step(after="follow_unit 'grep -q counting said && ask_with probe-1 served'"),
    ],
    "operating.md": [
        Step(left_out="installs on the machine; tests/packages installs what is built"),
        Step(left_out="needs podman; tests/packages/test_container.py uses the image"),
        Step(after="grep -qx 'enable --now zanon-net' systemctl.said; follow_unit 'is_listening'"),
        Step(after="zanon-net key check /etc/zanon-net/key"),
        Step(
            after="follow_unit 'grep -q ^zanon_packets_total /run/zanon-net/zanon.prom'",
        ),
        Step(
            before="mkdir /srv/outbox; for n in tstat jsonl; do zanon-net run -q capture.pcap"
            " --z 5 --internal 10.0.0.0/8 --split 10m --format $n"
            " --out /var/lib/zanon-net/zanon-$n; done",
            after="ls -d /srv/outbox/*.out /srv/outbox/*.jsonl",
        ),
        Step(until="is_listening", after="ls zanon-*/manifest.json"),
        Step(
            before="cd /var/lib/zanon-net; zanon-net run eth0 --internal 10.0.0.0/8 --split 1h"
            " 2> /dev/null & LAST=$!; holds 'ls /var/lib/zanon-net/zanon-2*/manifest.json.partial'",
            after="end",
        ),
        Step(left_out="needs a terminal; tests/integration/test_top.py has one"),
        Step(left_out="an option alone"),
    ],
    "publish.md": [],
    "share-a-capture.md": [  # tests/docs/test_howto_commands.py checks the files, too
        Step(),
        Step(after="ls logs/packets.pcapng logs/*/log_tcp_complete"),
        Step(before="rm shared*"),
        Step(left_out="tests/docs/test_howto_commands.py follows it; two commands need a link"),
    ],
    "shards.md": [
        Step(left_out="needs 16 processors; tests/live/test_shards.py reads an interface"),
        Step(
            before="zanon-net key new zanon.key; for n in 0 1 2 3; do mkdir -p queues/$n;"
            " cp capture.pcap queue-$n.pcap; cp capture.pcap queues/$n; done",
            after="ls logs/shard-3/manifest.json logs-of-queues/manifest.json",
        ),
    ],
    "tune-a-tap.md": [
        *[Step(left_out="the machine of the test has no card with offloads, rings and queues")] * 5,
        Step(left_out="the huge pages of the whole machine would change"),
    ],
}
"""The steps of each page, one a block."""

MACHINE = r"""
set -e -o pipefail
mount --make-rprivate /
cp -a /etc etc && mount --bind etc /etc
for folder in /run /srv /var/lib; do mount -t tmpfs none $folder; done
mkdir /var/lib/zanon-net /run/zanon-net /run/zanon-net-counter
ip link set dev lo up

arrives() { "$PYTHON" -c '
import socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
raw.bind((sys.argv[1], 3))
raw.settimeout(5)
raw.recv(1 << 17)' "$1" 2> /dev/null; }
export -f arrives
is_listening() { grep -q 'listening on' "$FOLDER"/said; }
holds() { for _ in $(seq 300); do if eval "$1" > /dev/null 2>&1; then return 0; fi
    kill -0 $LAST || break; sleep 0.2; done
    echo "it never held: $1" >&2; cat "$FOLDER"/said >&2; return 1; }
end() { kill -TERM $(tail -n 1 "$PIDS"); wait $LAST; }
ask_with() { zanon-net run -q capture.pcap --internal 10.0.0.0/8 --key-file zanon.key --probe $2 \
    --count-at tls://127.0.0.1:9471 --count-tls-cert $1.pem --count-tls-key $1.key \
    --count-tls-ca ca.pem --out $2 > $2.said 2>&1 || { cat $2.said >&2; return 1; }
    sed -i '$d' "$PIDS"; }
follow_unit() {
    ARGUMENTS=$(sed 's/^[A-Z_]*=//' /etc/default/zanon-net*)
    for given in $CREDENTIALS; do
        test ! -e ${given#*:} || install -D -m 400 ${given#*:} given/${given%%:*}
    done
    COMMAND=$(printf %s "$UNIT" | sed "s#\$ZANON_[A-Z_]*#$ARGUMENTS#; s#%d/#given/#g")
    $COMMAND > "$FOLDER"/said 2>&1 & LAST=$!
    holds "$1"; end; }
"""

# Computing the sixty points of a plot takes several seconds.
PLOT_FEW_POINTS = """
from zanon_net.__main__ import start
from zanon_net.cli import model_command
model_command.PLOT_POINTS = 6
start()
"""
PROGRAMS = {
    "zanon-net": 'echo $$ >> "$PIDS"\n'
    'test "$1" != model || exec "$PYTHON" -c "$PLOT_FEW_POINTS" "$@"\n'
    'exec "$PYTHON" -m zanon_net "$@"',
    "sudo": 'exec "$@"',
    "systemctl": 'echo "$@" >> "$FOLDER"/systemctl.said',
    "zeek": 'test "$1" = -i && arrives "$2"',
    "suricata": 'test "$1" = -i && arrives "$2"',
    "prometheus-node-exporter": "test -d ${1#--collector.textfile.directory=}",
}


def test_no_block_is_forgotten() -> None:
    pages = sorted(path.name for path in HOWTOS.glob("*.md"))
    assert {page: len(blocks(page)) for page in pages} == {
        page: len(steps) for page, steps in sorted(PAGES.items())
    }


def script_of(page: str) -> str:
    lines = []
    for block, step in zip(blocks(page), PAGES[page], strict=True):
        if step.left_out:
            continue
        lines += [f"ready() {{ {step.until or 'true'}; }}", step.before]
        if step.until:
            lines += ["{", block, '} > "$FOLDER"/said 2>&1 & LAST=$!', "holds ready; end"]
        else:
            lines.append(block)
        lines.append(step.after)
    return MACHINE + "\n".join(lines) + "\n"


def unit_of(page: str) -> str:
    """The last command for systemd on a page, or in the unit that the page is about."""
    unit = ROOT / "packaging" / UNITS.get(page, "zanon-net.service")
    found = COMMAND_OF_UNIT.findall((HOWTOS / page).read_text(encoding="utf-8"))
    if page == "operating.md":  # the last one there needs credentials of systemd
        found = []
    return str([*COMMAND_OF_UNIT.findall(unit.read_text(encoding="utf-8")), *found][-1])


@contextmanager
def traffic(net: Namespace, interface: str) -> Iterator[None]:
    """Thirty users visit a host, again and again."""
    frames, raw, is_over = data_of(crowd(b"shared.example", 30)), net.sender(interface), Event()

    def send() -> None:
        while not is_over.wait(0.1):
            for frame in frames:
                raw.send(frame)

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("page", [page for page in PAGES if PAGES[page]])
def test_commands_do_what_the_page_says(page: str, net: Namespace, tmp_path: Path) -> None:
    if all(step.left_out for step in PAGES[page]):
        pytest.skip("; ".join(step.left_out for step in PAGES[page]))
    net.cable("eth0", "tap")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "capture.pcap").write_bytes(DEMO.read_bytes())
    (tmp_path / "monday").mkdir()
    (tmp_path / "monday" / "morning.pcap").write_bytes(DEMO.read_bytes())
    (tmp_path / "tuesday.pcap.zst").write_bytes(zstandard.compress(DEMO.read_bytes()))
    (tmp_path / "nets.txt").write_text("10.0.0.0/8\n")
    environ = {
        **ENVIRONMENT,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "PLOT_FEW_POINTS": PLOT_FEW_POINTS,
        "FOLDER": str(tmp_path),
        "PIDS": str(tmp_path / "pids"),
        "UNIT": unit_of(page),
        "CREDENTIALS": " ".join(CREDENTIAL.findall((HOWTOS / page).read_text(encoding="utf-8"))),
    }
    (tmp_path / "script").write_text(script_of(page))
    new = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with net.inside():
        process = subprocess.Popen(
            [*new, "bash", "script"],
            cwd=tmp_path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        with traffic(net, "tap"):
            said, _nothing = process.communicate(timeout=200)
    finally:
        process.kill()  # ends all that it started
    assert process.returncode == 0, said
