# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of anonymized packets: values, what the core gets, and what is weaker than usual."""

import pytest

from zanon_net import Config, ConfigError
from zanon_net.config.presets import PACKETS, PRESETS, PURPOSES
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import RUN

SECOND = 10**9
# The core numbers the words of each in this order (csrc/include/zanon/zanon.h).
WORDS = {
    "payload": ("payload", ["zero", "cut", "keep-encrypted"]),
    "packet_addresses": ("wide_addresses", ["blocks", "wide"]),
    "server_address": ("server_addresses", ["tested", "withheld", "linkable"]),
    "mac": ("macs", ["role", "pseudonym", "zero"]),
    "tcp_timestamps": ("tcp_timestamps", ["drop", "offset", "keep"]),
    "ttl": ("keep_ttl", ["class", "keep"]),
    "encapsulation": ("keep_encapsulation", ["strip", "keep"]),
    "fingerprint": ("fingerprints", ["tested", "drop", "keep"]),
    "suppressed": ("coarse_suppressed", ["drop", "coarse"]),
}
WEAKER = {
    "payload": {"keep-encrypted"},
    "packet_addresses": {"wide"},
    "server_address": {"linkable"},
    "tcp_timestamps": {"offset", "keep"},
    "ttl": {"keep"},
    "encapsulation": {"keep"},
    "fingerprint": {"keep"},
    "suppressed": {"coarse"},
}


@pytest.mark.parametrize("name", WORDS)
def test_the_core_gets_the_number_of_each_word(name: str) -> None:
    core, words = WORDS[name]
    assert RUN[name].default == words[0]
    for number, word in enumerate(words):
        config = Config(**{name: word})
        assert config.engine_arguments()[core] == number
        assert config.to_dict()["packets"][RUN[name].label] == word
    with pytest.raises(ConfigError, match=f"^{RUN[name].label}: must be {words[0]}.*, not 'other'"):
        Config(**{name: "other"})


@pytest.mark.parametrize(("unit", "ns"), [("ns", 1), ("us", 1000), ("ms", 1_000_000)])
def test_units_of_times(unit: str, ns: int) -> None:
    assert Config(timestamps=unit).engine_arguments()["packet_times_ns"] == ns


@pytest.mark.parametrize(
    ("hold", "ns", "shown"),
    [
        ("1s", SECOND, "1s"),
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        (" 0 ms ", 0, "0s"),
        (0, 0, "0s"),
        ("1ns", 1, "1ns"),
        ("10s", 10 * SECOND, "10s"),
        (2500 * 10**6, 2500 * 10**6, "2500ms"),
    ],
)
def test_hold(hold: int | str, ns: int, shown: str) -> None:
    config = Config(hold=hold)
    assert config.engine_arguments()["hold_ns"] == config.packets.hold == ns
    assert config.to_dict()["packets"]["hold"] == shown


@pytest.mark.parametrize(
    ("hold", "message"),
    [
        ("10001ms", "must be at most 10s"),
        (10 * SECOND + 1, "must be at most 10s"),
        ("-1s", "'-1s' is not a duration"),
        ("00", "'00' is not a duration"),
        (-1, "must be longer than zero"),
        (True, "not a duration"),
        (0.0, "not a duration"),
        (None, "not a duration"),
    ],
)
def test_what_is_no_hold(hold: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^hold: {message}"):
        Config(hold=hold)


@pytest.mark.parametrize("size", ["1M", "64G", 1 << 28])
def test_memory_of_the_hold(size: int | str) -> None:
    assert Config(hold_memory=size).engine_arguments()["hold_bytes"] >= 1 << 20


@pytest.mark.parametrize("size", ["1023K", "65G", 0])
def test_what_is_no_memory_of_the_hold(size: int | str) -> None:
    with pytest.raises(ConfigError, match=r"^hold_memory: must be "):
        Config(hold_memory=size)


@pytest.mark.parametrize("name", WEAKER)
def test_what_discloses_more_is_named_with_packets_alone(name: str) -> None:
    for word in WORDS[name][1]:
        named = [RUN[name].label] if word in WEAKER[name] else []
        for purpose in ("internal", "partner"):
            config = Config(**{"purpose": purpose, "format": ("tstat", "pcap"), name: word})
            assert config.weaker_than == {"preset": purpose, "options": named}
        assert Config(**{name: word}).weaker_than["options"] == []


def test_all_that_discloses_more() -> None:
    weak = {name: sorted(words)[-1] for name, words in WEAKER.items()}
    named = [RUN[name].label for name in PACKETS]
    assert Config(format="pcapng", **weak).weaker_than["options"] == named
    del weak["suppressed"]  # what does not go with exact packets
    assert Config(format="pcapng", exact=True, **weak).weaker_than["options"] == [
        "exact",
        *(label for label in named if label != "suppressed"),
    ]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_coarse_packets_are_not_exact(purpose: str) -> None:
    with pytest.raises(ConfigError, match=r"^suppressed: coarse contradicts --exact; give one"):
        Config(purpose=purpose, exact=True, suppressed="coarse")
    assert Config(purpose=purpose, exact=False, suppressed="coarse")


def test_defaults_are_what_they_are_compared_with() -> None:
    assert PACKETS.keys() == WEAKER.keys()
    assert not PACKETS.keys() & PRESETS.keys()
    assert PACKETS.keys() <= {row.name for row in rows_of("run", "packets")}
    for name, preset in PACKETS.items():
        assert {preset.value(purpose) for purpose in PURPOSES} == {RUN[name].default}


@pytest.mark.parametrize("form", ["pcap", "pcapng", ("tstat", "pcap")])
def test_packets_are_not_for_the_public(form: str | tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^for: public is not for packets"):
        Config(purpose="public", format=form)
    assert Config(purpose="internal", format=form).output.outputs


def test_outputs() -> None:
    assert Config(format="pcap,csv,pcapng").output.outputs == ("packets", "csv", "packets_ng")
