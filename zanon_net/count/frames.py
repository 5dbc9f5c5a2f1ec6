# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames between probes and a counter, headers of their messages, and messages of a connection.

A frame is a u32 length and a message. docs/reference/vote-messages.md describes the messages of
votes and of answers. All numbers are little endian.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zanon_net.errors import FormatError

VERSION = 1
FRAME_MAX = 1 << 26  # largest message, in bytes
ENDED = (1 << 63) - 1
"""The watermark of a probe's last message."""
VOTES, ANSWERS = b"ZNVM", b"ZNVA"
HELLO, WELCOME, RECEIPT, REFUSAL = b"ZNVH", b"ZNVW", b"ZNVK", b"ZNVR"
CHECKSUM_BYTES = 8

_LENGTH = struct.Struct("<I")
_VOTES = struct.Struct("<4sBBHQQQqqIII4xIB")
NEW_SESSION_AT, OPTIONS_MASK = 22, (1 << 22) - 1  # of the first bytes of the rules
KEY_CHECK_AT, KEY_CHECK_HIGH_AT = 24, 56  # of its first four bytes and of the last, in the rules
_ANSWERS = struct.Struct("<4sBBHQQQI")
_PROBE = slice(8, 16)  # of _VOTES
_HELLO = struct.Struct("<4sBBHQQ")
_WELCOME = struct.Struct("<4sBBHQQ")
_COUNT = struct.Struct("<4sBBHI")
_RECEIPT = struct.Struct("<HQ")
HELLO_BYTES = _HELLO.size
INTERVAL_MAX_NS = 86_400_000_000_000  # longest time between two answers, a day

OTHER_SETTINGS = "its --z, --window, --rotate or --count-rotate are not those of the counter"


class Key(NamedTuple):
    """Shard and sequence of a message and its answer, for one session."""

    shard: int
    sequence: int


class VotesHeader(NamedTuple):
    """Header of a message of votes.

    `rules` is a value of vote_rules(). `new_session` is true for the first message of a session
    that replaces a previous session, and for the last message of a session that a new session
    replaces.
    `latest` is a bound on the times of the votes.
    """

    shard: int
    probe: int
    sequence: int
    settings: int
    rules: int
    new_session: bool
    watermark: int
    latest: int
    votes: int

    @property
    def key(self) -> Key:
        """Shard and sequence of the message."""
        return Key(self.shard, self.sequence)


class AnswersHeader(NamedTuple):
    """Header of a message of answers."""

    shard: int
    probe: int
    sequence: int
    votes: int

    @property
    def key(self) -> Key:
        """Shard and sequence of the answered message."""
        return Key(self.shard, self.sequence)


class Hello(NamedTuple):
    """First message of a client, with its session and the digest of its settings."""

    probe: int
    settings: int


class Welcome(NamedTuple):
    """Answer to a hello.

    interval_ns: longest time between two answers to a probe, which waits at least twice as long.
    """

    shards: int
    settings: int
    interval_ns: int = 0


class Refusal(NamedTuple):
    """Last message of a counter. is_final: true if the session would be refused again."""

    text: str
    is_final: bool


def framed(message: bytes) -> bytes:
    """Returns the frame of a message."""
    return _LENGTH.pack(len(message)) + message


def messages_in(data: bytes | memoryview) -> Iterator[bytes]:
    """Yields the messages of concatenated frames. Raises FormatError."""
    view, at = memoryview(data), 0
    while at < len(view):
        start = at + _LENGTH.size
        at = start + (length_of(view[at:start]) if start <= len(view) else 0)
        if at > len(view):
            raise FormatError("the file ends in the midst of a message")
        yield bytes(view[start:at])


def length_of(prefix: bytes | memoryview) -> int:
    """Returns the length of a message, from the four bytes before it. Raises FormatError."""
    (length,) = _LENGTH.unpack(prefix)
    if not len(VOTES) <= length <= FRAME_MAX:
        raise FormatError(f"a message cannot have {length} bytes")
    return int(length)


def _unpacked(layout: struct.Struct, message: bytes, magic: bytes) -> tuple[int, ...]:
    """Returns the numbers behind magic and version. Raises FormatError."""
    if len(message) < layout.size or message[:4] != magic:
        raise FormatError("this is no message of that kind")
    _magic, version, *numbers = layout.unpack_from(message)
    if version != VERSION:
        raise FormatError(f"the message has version {version}, and only {VERSION} is known")
    return tuple(numbers)


def votes_header(message: bytes) -> VotesHeader:
    """Reads the header only: the core checks the rest. Raises FormatError."""
    _flags, shard, probe, sequence, settings, watermark, base, _groups, votes, *upper = _unpacked(
        _VOTES, message, VOTES
    )
    word, key_low, key_high = upper
    width, word = word & 0xFF, word >> 8
    new_session = bool(word >> NEW_SESSION_AT & 1)
    rules = word & OPTIONS_MASK | key_low << KEY_CHECK_AT | key_high << KEY_CHECK_HIGH_AT
    latest = base + (1 << 8 * width) if votes else 0
    return VotesHeader(
        shard, probe, sequence, settings, rules, new_session, watermark, latest, votes
    )


def probe_of(message: bytes) -> int:
    """Returns the session in the header of a message of votes, without any check."""
    return int.from_bytes(message[_PROBE], "little")


def answers_header(message: bytes) -> AnswersHeader:
    """Reads the header only: the core checks the rest. Raises FormatError."""
    _flags, shard, probe, sequence, _settings, votes = _unpacked(_ANSWERS, message, ANSWERS)
    return AnswersHeader(shard, probe, sequence, votes)


def write_hello(hello: Hello) -> bytes:
    """Returns the message of a hello."""
    return _HELLO.pack(HELLO, VERSION, 0, 0, hello.probe, hello.settings)


def read_hello(message: bytes) -> Hello:
    """Reads a message of a hello. Raises FormatError."""
    _flags, _zero, probe, settings = _unpacked(_HELLO, message, HELLO)
    return Hello(probe, settings)


def write_welcome(welcome: Welcome) -> bytes:
    """Returns the message of a welcome."""
    return _WELCOME.pack(WELCOME, VERSION, 0, *welcome)


def read_welcome(message: bytes) -> Welcome:
    """Reads a message of a welcome. Raises FormatError."""
    _flags, *numbers = _unpacked(_WELCOME, message, WELCOME)
    return checked_welcome(Welcome(*numbers))


def checked_welcome(welcome: Welcome) -> Welcome:
    """Returns the welcome. Raises FormatError if its interval is longer than a day."""
    if not 0 <= welcome.interval_ns <= INTERVAL_MAX_NS:
        raise FormatError("the counter says that answers come less than once a day")
    return welcome


def write_receipts(keys: Iterable[Key]) -> bytes:
    """Returns the message by which a client confirms answers."""
    packed = [_RECEIPT.pack(*key) for key in keys]
    return _COUNT.pack(RECEIPT, VERSION, 0, 0, len(packed)) + b"".join(packed)


def read_receipts(message: bytes) -> list[Key]:
    """Reads the confirmed keys of a message of receipts. Raises FormatError."""
    _flags, _zero, count = _unpacked(_COUNT, message, RECEIPT)
    if len(message) != _COUNT.size + count * _RECEIPT.size:
        raise FormatError("a message of receipts has another length than it says")
    return [Key(*pair) for pair in _RECEIPT.iter_unpack(message[_COUNT.size :])]


def write_refusal(refusal: Refusal) -> bytes:
    """Returns the message of a refusal."""
    text = refusal.text.encode()
    return _COUNT.pack(REFUSAL, VERSION, refusal.is_final, 0, len(text)) + text


def read_refusal(message: bytes) -> Refusal:
    """Reads a message of a refusal. Raises FormatError."""
    flags, _zero, length = _unpacked(_COUNT, message, REFUSAL)
    text = message[_COUNT.size :]
    if len(text) != length:
        raise FormatError("a refusal has another length than it says")
    return Refusal(text.decode("utf-8", "replace"), bool(flags & 1))
