# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""No bytes make a parser of zanon_net.parse raise an error, and its offsets lie in the data."""

import dataclasses
import random

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.parse_samples import SAMPLES, Parser

from zanon_net import parse

STATES = {"done", "need_more", "malformed", "other"}
ENCODED = (parse.DnsQuestion, parse.QuicInitial)  # offset is of the encoded name, or None
MUTATIONS = examples(1200)


def check(parsed: object, data: bytes) -> None:
    """Checks a result, and the results in it."""
    if isinstance(parsed, tuple):
        for part in parsed:
            check(part, data)
    if not dataclasses.is_dataclass(parsed):
        return
    state = getattr(parsed, "state", "done")
    assert state in STATES
    if isinstance(parsed, parse.Parsed):
        assert state == "done" or (parsed.raw, parsed.name, parsed.offset) == (b"", None, None)
        if parsed.offset is not None and not isinstance(parsed, ENCODED):
            assert data[parsed.offset :].startswith(parsed.raw)
    if isinstance(parsed, parse.Attribute):
        assert (parsed.offset is None) == (parsed.raw == b"")
        assert data[parsed.offset or 0 :].startswith(parsed.raw)
    for field in dataclasses.fields(parsed):
        check(getattr(parsed, field.name), data)
    longer = (parse.HttpChunk, parse.StreamPrefix)  # may end behind the data
    if not isinstance(parsed, (*longer, parse.DnsQuestion)):
        assert 0 <= getattr(parsed, "used", 0) <= len(data)
    if state != "done" and not isinstance(parsed, (parse.Http2Hosts, parse.DnsQuestions)):
        assert getattr(parsed, "used", 0) == 0 or isinstance(parsed, parse.QuicInitial)


def mutated(sample: bytes, dice: random.Random) -> bytes:
    """The sample with one to four changes: a bit, a byte, a cut, a repeated or an inserted part."""
    data = bytearray(sample)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = dice.choice((0, 1, 0x3F, 0x7F, 0x80, 0xC0, 0xFF))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + dice.randrange(9)]
        elif kind == 4:
            data[at:at] = data[max(0, at - dice.randrange(40)) : at]
        else:
            data[at:at] = dice.randbytes(dice.randrange(9))
    return bytes(data)


def test_mutated_messages() -> None:
    """Half of the mutations of a parser are of the samples of another."""
    dice = random.Random(20261129)
    everything = [sample for samples in SAMPLES.values() for sample in samples]
    read = 0
    for parser, samples in SAMPLES.items():
        for _ in range(MUTATIONS):
            own = dice.random() < 0.8
            data = mutated(dice.choice(samples if own else everything), dice)
            parsed = parser(data)
            check(parsed, data)
            read += getattr(parsed, "state", "done") == "done"
    assert read > MUTATIONS  # mutations leave something to read


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes(data: bytes, flag: bool) -> None:
    for parser in SAMPLES:
        check(parser(data), data)
    check(parse.tls_client_hello(data, cut=flag), data)
    check(parse.http_host(data, cut=flag), data)
    check(parse.dns_question(data, whole=flag), data)
    check(parse.dns_answers(data, whole=flag), data)
    check(parse.dtls_fragments(data, whole=flag), data)
    check(parse.quic_packets(data, whole=flag), data)


def every_cut(parser: Parser, sample: bytes) -> None:
    for n in range(len(sample)):
        check(parser(sample[:n]), sample[:n])


def test_every_prefix_of_every_sample() -> None:
    for parser, samples in SAMPLES.items():
        for sample in samples[:2]:
            every_cut(parser, sample)
