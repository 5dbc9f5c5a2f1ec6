# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Secondary attributes: the names in certificates and user agents, z-anonymized too.

Each is an attribute in a namespace of its own, told when z users share it, and beside a name that
is withheld not even then.
"""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import quic_wire as quic
from support import wire
from support.engine import TCP_COMPLETE, UDP_COMPLETE, Outcome, run
from support.examples import each, examples
from support.handshake import (
    AGENT,
    COMMON_NAME,
    PARAMETERS,
    PARAMETERS_OF_DRAFTS,
    browser,
    flight,
    named,
    parameters,
    shown,
    telling,
)
from support.packets import (
    MS,
    SECOND,
    SERVER,
    START,
    Frame,
    Tcp,
    Udp,
    hello,
    user,
    visit,
)
from support.quic_wire import SERVER_ID, V1, Initial, crypto

ECH = 0xFE0D
DRAFT_29, T050 = 0xFF00001D, 0x54303530
NAME = b"www.example.org"
BROWSER = b"Chrome/115.0.5790.110 Windows NT 10.0; Win64; x64"


def chrome(i: int, **more: object) -> list[Frame]:
    return browser(i, telling(BROWSER), **more)  # type: ignore[arg-type]


def agents(outcome: Outcome) -> list[str]:
    return [line["quic_UA"] for line in outcome.log(UDP_COMPLETE)]


def certificates(outcome: Outcome) -> list[str]:
    return [line["s_tls_SCN"] for line in outcome.log(TCP_COMPLETE)]


Story = Callable[..., list[Frame]]
KINDS: dict[str, tuple[Story, Callable[[Outcome], list[str]], str, str]] = {
    "agent": (chrome, agents, quote(BROWSER, safe=""), "agents"),
    "certificate": (shown, certificates, COMMON_NAME, "certificates"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_z_users_share_it(kind: str) -> None:
    story, told, text, counter = KINDS[kind]
    outcome = run([frame for i in range(1, 5) for frame in story(i)], z=3)
    assert told(outcome) == ["-", "-", text, text]
    assert outcome.stats[counter] == 4
    assert (outcome.stats[f"{counter}_released"], outcome.stats[f"{counter}_suppressed"]) == (2, 2)
    column = "quic_UA" if kind == "agent" else "s_tls_SCN"
    assert [flow[column] for flow in outcome.flows] == [None, None, text, text]


@pytest.mark.parametrize("kind", KINDS)
def test_one_user_many_times_is_one(kind: str) -> None:
    story, told, text, _counter = KINDS[kind]
    frames = [f for i in range(1, 4) for f in _moved(story(1), i)]
    outcome = run([*frames, *story(60)], z=3)
    assert set(told(outcome)) == {"-"}
    assert text.encode() not in outcome.everything()


def _moved(frames: list[Frame], seconds: int) -> list[Frame]:
    later = seconds * 20 * SECOND
    return [replace(frame, t_ns=frame.t_ns + later) for frame in frames]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_withheld_where_the_name_is(kind: str) -> None:
    story, told, text, _counter = KINDS[kind]
    frames = [frame for i in range(1, 4) for frame in story(i)]
    rare = story(9, host=b"rare.example")
    for exact in (False, True):
        outcome = run([*frames, *rare], z=3, exact=exact)
        assert told(outcome)[2:] == [text, "-"]
        assert b"rare.example" not in outcome.everything()


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_that_is_not_proven_does_not_vote(kind: str) -> None:
    story, told, text, counter = KINDS[kind]
    frames = [frame for i in range(1, 4) for frame in story(i, proven=False)]
    outcome = run([*frames, *story(9)], z=2)
    assert text not in told(outcome)
    assert outcome.stats[f"{counter}_suppressed"] == outcome.stats[counter] >= 4
    if kind == "agent":  # nor does it need to be where the policy asks for nothing
        assert told(run(frames, z=2, established=False)) == ["-", text, text]


def test_namespaces_share_no_count() -> None:
    """A text that three users expose in three ways has three users in none."""
    text = b"a.example"
    story = [*visit(user(1), text, START), *browser(2, telling(text))]
    server = wire.record(flight(named(text.decode())))
    talk = Tcp(user(3), t_ns=START + 9 * SECOND).handshake().say(hello(None)).say(server, SERVER)
    outcome = run([*story, *talk.close().frames], z=2)
    assert text not in outcome.everything()


# ---- user agents --------------------------------------------------------------------------------


def agent_of(*extensions: bytes, version: int = V1) -> str:
    """The disclosure of a single connection at z = 1."""
    (line,) = run(browser(1, *extensions, version=version), z=1).log(UDP_COMPLETE)
    return line["quic_UA"]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=84))
def test_an_agent_is_percent_encoded(text: str) -> None:
    assert agent_of(telling(text.encode())) == quote(text, safe="")


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=90))
def test_whatever_an_agent_is_the_columns_stay(text: bytes) -> None:
    outcome = run(browser(1, telling(text)), z=1)
    (line,) = outcome.log(UDP_COMPLETE)
    printable = all(0x20 <= byte <= 0x7E for byte in text) and text
    assert line["quic_UA"] == (quote(text, safe="") if printable else "-")
    assert outcome.stats["agents"] == bool(text)


def test_agents_that_are_not_told() -> None:
    assert agent_of(telling(b"x" * 254)) == "-" != agent_of(telling(b"x" * 253))
    assert agent_of(telling(b"%" * 85)) == "-" != agent_of(telling(b"%" * 84))
    assert agent_of(telling(b"")) == "-"
    assert agent_of(parameters((AGENT, BROWSER), (AGENT, BROWSER))) == "-"
    assert agent_of(parameters((AGENT - 1, BROWSER))) == "-"
    whole = telling(BROWSER)[4:]
    for cut in (whole[:-1], whole + b"\x40", whole + b"\x01\x01"):
        assert agent_of(wire.extension(PARAMETERS, cut)) == "-"


def test_agents_of_drafts() -> None:
    old = parameters((AGENT, BROWSER), kind=PARAMETERS_OF_DRAFTS)
    assert agent_of(old, version=DRAFT_29) == quote(BROWSER, safe="")


def test_evidence_of_one_connection_is_none_for_the_agent_of_another() -> None:
    """Who knows a user's ports could otherwise make it vote."""
    forged = Initial(
        crypto(quic.hello(telling(b"forged"), host=None)), dcid=b"forged connection"
    ).seal()
    talk = Udp(user(1), ports=(40000, 443)).send(forged)
    for datagram in quic.first_flight(quic.hello(host=None)):
        talk.send(datagram)
    talk.send(quic.server_answer(), SERVER).send(quic.short(SERVER_ID))
    outcome = run(talk.frames, z=1)
    assert agents(outcome) == ["-"]
    assert outcome.stats["agents_suppressed"] == 1
    assert b"forged" not in outcome.everything()


# ---- the other QUIC columns ---------------------------------------------------------------------

COLUMNS = ("c_type", "s_type", "quic_c_vers", "quic_s_vers", "quic_zero_rtt", "quic_ech")


def columns(talk: Udp | list[Frame], **more: object) -> tuple[str, ...]:
    frames = talk if isinstance(talk, list) else talk.frames
    (line,) = run(frames, **({"z": 1} | more)).log(UDP_COMPLETE)
    return tuple(line[name] for name in COLUMNS)


@each("version", quic.VERSIONS)
def test_versions(version: int) -> None:
    assert columns(browser(1, version=version)) == ("27", "27", *[f"0x{version:08x}"] * 2, "0", "0")


def test_a_version_that_is_not_read_is_told() -> None:
    first = quic.opaque(quic.INITIAL, b"12345678", b"", 1300, T050)
    talk = Udp(user(1), ports=(40000, 443)).send(first)
    nothing = ("0", "0", "-", "-", "0", "0")
    assert columns(talk) == nothing
    assert columns(talk.send(quic.negotiation(b"", b"12345678", V1), SERVER)) == nothing
    talk.send(quic.opaque(quic.INITIAL, b"", b"12345678", 1300, T050), SERVER)
    outcome = run(talk.frames, z=1)
    (line,) = outcome.log(UDP_COMPLETE)
    assert [line[name] for name in COLUMNS[:4]] == ["27", "27", "0x54303530", "0x54303530"]
    assert outcome.flow["name_status"] == "suppressed"


def test_zero_rtt_packets_and_ech() -> None:
    hello_with_ech = quic.hello(wire.extension(ECH, bytes(601)), host=NAME)
    early = quic.opaque(quic.ZERO_RTT, quic.DCID, quic.SCID)
    first, *rest = quic.first_flight(hello_with_ech)
    talk = Udp(user(1), ports=(40000, 443)).send(first)
    for datagram in rest:
        talk.send(datagram)
    talk.send(early).send(early)
    assert columns(talk) == ("0", "0", "-", "-", "0", "0")  # one side, as Tstat has it
    talk.send(quic.server_answer(), SERVER).send(quic.short(SERVER_ID))
    assert columns(talk)[4:] == ("2", "601")
    assert columns(talk, z=2)[2:] == ("-", "-", "0", "0")  # coarse beside a withheld name


def test_the_type_of_dns_tells_nothing_of_a_withheld_name() -> None:
    """Tstat's type is 0 for a name that begins with an underscore."""
    types = {}
    for z in (1, 2):
        for name in (b"_sip.example.org", b"www.example.org"):
            talk = Udp(user(1), ports=(40000, 53), t_ns=START + MS).lookup(name)
            for exact in (False, True):
                (line,) = run(talk.frames, z=z, exact=exact).log(UDP_COMPLETE)
                types[z, name[:1], exact] = (line["c_type"], line["s_type"])
    assert types[1, b"_", False] == ("0", "0") != types[1, b"w", False] == ("19", "19")
    assert {types[2, start, exact] for start in (b"_", b"w") for exact in (False, True)} == {
        ("19", "19")
    }
