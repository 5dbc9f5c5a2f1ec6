# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The attributes that flows expose besides names (`run --attributes`)."""

from dataclasses import dataclass

from zanon_net import _core
from zanon_net.parse.result import State


@dataclass(frozen=True, slots=True)
class Attribute:
    """The text of an attribute, before it is counted.

    state: see State. The state is other if the message has no such attribute. text: the text with
    percent-encoding, and None if the state is not done. A text of more than 253 bytes is None, too,
    because a run suppresses it. Hosts are as sent. raw: the bytes of the message that the text was
    made of, such as the list of protocols for alpn. It is empty for ja4, and if the state is not
    done. offset: offset in bytes of raw in the message, None if raw is empty.
    """

    state: State
    text: str | None
    raw: bytes = b""
    offset: int | None = None


def attribute(word: str, message: bytes) -> Attribute:
    """Reads an attribute in one message.

    word: a word of `run --attributes`. message: the whole message that exposes the attribute:

    - the body of a ClientHello, from its version on, for alpn and ja4
    - the client's first bytes for ehlo and sip
    - a message of STUN for stun
    - the value of the field for user-agent
    - a certificate in DER for cert-san and cert-issuer

    Raises ValueError for another word. docs/reference/names.md describes the texts.
    """
    if word not in _core.ATTRIBUTES:
        raise ValueError(f"{word!r} is not one of {', '.join(_core.ATTRIBUTES)}")
    state, text, raw, offset = _core.read_attribute(word, message)
    return Attribute(state, text if state == "done" else None, raw, offset)
