# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The values of each attribute besides names, from packets to columns."""

import pytest
from support import wire
from support.engine import TCP_COMPLETE, UDP_COMPLETE, Outcome, run
from support.handshake import browser, telling
from support.packets import SECOND, SERVER, START, Frame, Udp, hello, user
from support.packets import Tcp as Talk
from support.quic_wire import dtls_fragment, dtls_hello, dtls_record, verify_request

HOST = b"a.example"


def cells(outcome: Outcome, attribute: str, log: str = TCP_COMPLETE) -> list[str | None]:
    """The attribute of each flow, which every output agrees on."""
    shown = [flow[attribute] for flow in outcome.flows]
    assert [line[attribute] for line in outcome.log(log)] == [cell or "-" for cell in shown]
    seen = [o["name"] for o in outcome.observations if o["namespace"] == attribute]
    assert seen == [cell for cell in shown if cell]
    return shown


def talks(*streams: bytes, port: int = 443) -> list[Frame]:
    """A connection of each user, in which the client sends these bytes."""
    out: list[Frame] = []
    for i, stream in enumerate(streams):
        talk = Talk(user(i), ports=(40000, port), t_ns=START + i * SECOND).handshake()
        out += talk.say(stream).say(b"answer", SERVER).close().frames
    return out


# ---- ja4 -----------------------------------------------------------------------------------------

PLAIN = wire.extension(23)


def test_the_fingerprint_of_tls() -> None:
    named = [hello(HOST, PLAIN)] * 4
    outcome = run(talks(*named, hello(None, PLAIN), hello(HOST)), z=3, attributes=("ja4",))
    shown = "t12d030200_3b9dd5f0ab5e_78e6aca7449b"
    assert len(set(cells(outcome, "ja4"))) == 2
    text = next(cell for cell in cells(outcome, "ja4") if cell)
    assert cells(outcome, "ja4") == [None, None, text, text, None, None]
    assert (text[:11], len(text)) == (shown[:11], len(shown))


@pytest.mark.parametrize("proven", [True, False])
def test_the_fingerprint_of_quic(proven: bool) -> None:
    frames = [f for i in range(4) for f in browser(i, telling(b"agent"), proven=proven)]
    shown = cells(run(frames, z=3, attributes=("ja4",)), "ja4", UDP_COMPLETE)
    assert [cell and cell[:4] for cell in shown] == [None, None] + ["q13i" if proven else None] * 2


@pytest.mark.parametrize("established", [True, False])
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize("host", [HOST, None])
def test_the_fingerprint_of_dtls(established: bool, proven: bool, host: bytes | None) -> None:
    """The hello with the server's cookie counts, not the hello before it, which may be forged."""
    frames: list[Frame] = []
    for i in range(4):
        cookie = bytes(range(60 + i, 80 + i))
        answer = dtls_hello(PLAIN, host=host, cookie=cookie if proven else cookie[::-1])
        talk = Udp(user(i), ports=(40000, 4433), t_ns=START + i * SECOND)
        talk.send(dtls_record(dtls_fragment(dtls_hello(host=host))))
        talk.send(verify_request(cookie), SERVER)
        frames += talk.send(dtls_record(dtls_fragment(answer, message=1), number=1)).frames
    outcome = run(frames, z=3, attributes=("ja4",), established=established)
    extensions = ("2" if established else "1") if host else ("1" if established else "0")
    text = f"dd2{'d' if host else 'i'}020{extensions}00"
    seen = text if proven or not established else None
    shown = cells(outcome, "ja4", UDP_COMPLETE)
    assert [cell and cell[:10] for cell in shown] == [None, None, seen, seen]
