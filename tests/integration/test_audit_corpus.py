# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit finds nothing in the logs of real captures of every kind, if they lie
beside this tree."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.audit_runs import ATTRIBUTES, SETTINGS, checked_run
from support.examples import EVERY_CASE

from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.packets import Read
from zanon_net.errors import FormatError

KNOWN = (
    "ndpi/tests/cfgs/default/pcap/capwap.pcap",  # encrypted frames of 802.11 in a tunnel
    "ndpi/tests/cfgs/default/pcap/iphone.pcap",  # servers that are multicast groups
    "ndpi/tests/cfgs/default/pcap/pops.pcapng",  # a certificate that is not whole
    "ndpi/tests/cfgs/default/pcap/rdp2.pcap",  # TLS in RDP over UDP
    "pcpp/Tests/ExamplesTest/pcap_examples/ipv6.pcapng",  # a packet quoted by LISP
    "pcpp/Tests/Pcap++Test/PcapExamples/file_heuristics/pcapng-example.pcapng.zst",  # a late time
    "suricata/tests/bug-3286-02-linux-evasion/with_evasion_linux.pcap",  # SYN-ACK behind a reset
    "suricata/tests/http2-compression-bug/input.pcap",  # several names of a flow not read
    "suricata/tests/geneve-decoder/input.pcap",  # ARP in a tunnel
    "zeek/testing/btest/Traces/http/zeek-image-post-1080-8000-x.pcap",  # HTTP taken for SOCKS
    "suricata/tests/app-layer-protocol-exact/input.pcap",  # DNS over HTTPS in clear
    "suricata/tests/detect-bytetest-03/input.pcap",  # a question for the root
)
"""Captures in which the audit once saw a violation where there was none."""


def violations(capture: Path, settings: Iterable[tuple[int, str]], folder: Path) -> list[list[str]]:
    """Returns the violations of the run at each of the settings; none of a refused capture."""
    program = tshark.find()
    if program is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    folder.mkdir(exist_ok=True)
    found = []
    packets: list[Read] = []
    for z, evidence in settings:
        out = folder / f"{capture.name}-{z}-{evidence}"
        try:
            packets = packets or list(tshark.read(program, capture, ATTRIBUTES))
            result = checked_run(capture, packets, z, evidence, out)
        except FormatError:  # a few files are there to be refused
            continue
        found.append([f"{capture.name}: {one.check}, {one.column}" for one in result.violations])
    return found


def test_no_false_alarm(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    captures = [corpus / name for name in sorted(json.loads(line)["path"] for line in lines)]
    found = []
    for number, capture in enumerate(captures[:: 1 if EVERY_CASE else 150]):
        settings = [SETTINGS[(number + more) % len(SETTINGS)] for more in (0, 5)]
        found += violations(capture, settings, tmp_path / str(number))
    assert not any(found)
    assert len(found) > 5


@pytest.mark.family(4)
@pytest.mark.parametrize("name", KNOWN, ids=lambda name: Path(name).name)
def test_no_false_alarm_comes_back(corpus: Path, tmp_path: Path, name: str) -> None:
    found = violations(corpus / name, [(1, "any"), (2, "any")], tmp_path)
    assert len(found) == 2
    assert not any(found)
