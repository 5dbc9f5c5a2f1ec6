# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Each parser on usual and on costly messages, next to other readers of the same bytes.

Each message is distinct and comes from a user and a flow of its own. `engine` is the whole job for
a message: its frames are decoded (over TCP also a SYN), a flow opens, the name gets its vote, and
the record is written. `parse` is one call of zanon_net.parse for each message. Other readers get an
eighth of the messages.
"""

from collections.abc import Callable

import numpy as np
import pytest
from measuring import Measure, Size, known, peer
from messages_sample import SAMPLES, Sample, frames_of

from zanon_net import Config, _core, parse

BATCH = 8192
START_NS = 1_700_000_000 * 10**9
MESSAGES = 4_000
SHARE = 8

Reader = Callable[[Sample], int]
"""Reads all of a sample and returns the number of its names that it found."""


def engine_reader(sample: Sample) -> Reader:
    """Returns a reader that feeds a fresh engine; frames are laid out before it runs."""
    frames = list(frames_of(sample))
    batches = []
    for at in range(0, len(frames), BATCH):
        part = frames[at : at + BATCH]
        sizes = np.array([len(frame) for frame in part], dtype=np.uint32)
        times = np.arange(at, at + len(part), dtype=np.int64) * 1000 + START_NS
        batches.append((b"".join(part), times, sizes))
    room = 2 * len(sample.messages) + 1024
    limits = {"max_flows": room, "max_tuples": room, "max_attributes": room}
    settings = known(evidence="any", dns_votes="all", **limits)
    config = Config(z=1, format="jsonl", columns="core", **settings)

    def read(sample: Sample) -> int:
        engine = _core.PacketEngine(**config.engine_arguments())
        for data, times, sizes in batches:
            engine.feed(data, times, sizes, sizes, 1)
            engine.take("jsonl")
        engine.finish()
        released = engine.stats["released"]
        engine.close()
        return released

    return read


def parse_reader(sample: Sample) -> int:
    """Reads each message with zanon_net.parse, which wants it in one piece."""
    parsers: dict[str, Callable[[bytes], parse.Parsed]] = {
        "QUIC": parse.quic_initial,
        "TLS": parse.tls_client_hello,
        "HTTP": parse.http_host,
        "DNS": parse.dns_question,
    }
    parser = parsers[sample.protocol]
    pairs = zip(sample.messages, sample.names, strict=True)
    return sum(parser(b"".join(payloads)).name == name for payloads, name in pairs)


def aioquic_reader(sample: Sample) -> int:
    """Opens each Initial with aioquic and reads the ClientHello with its TLS."""
    from aioquic.buffer import Buffer  # type: ignore[import-not-found]
    from aioquic.quic.crypto import CryptoPair  # type: ignore[import-not-found]
    from aioquic.quic.packet import pull_quic_header  # type: ignore[import-not-found]
    from aioquic.tls import pull_client_hello  # type: ignore[import-not-found]

    found = 0
    for (payload,), name in zip(sample.messages, sample.names, strict=True):
        datagram = Buffer(data=payload)
        header = pull_quic_header(datagram)
        pair = CryptoPair()
        pair.setup_initial(header.destination_cid, is_client=False, version=header.version)
        _, plain, _ = pair.decrypt_packet(payload, datagram.tell(), 0)
        frames, pieces = Buffer(data=plain), {}
        while not frames.eof() and (kind := frames.pull_uint_var()) != 0:
            if kind == 6:
                offset = frames.pull_uint_var()
                pieces[offset] = frames.pull_bytes(frames.pull_uint_var())
        hello = b"".join(pieces[offset] for offset in sorted(pieces))
        found += pull_client_hello(Buffer(data=hello)).server_name == name
    return found


def mercury_reader(sample: Sample) -> int:
    """Gives each frame to mercury-python and takes the name from its JSON."""
    import mercury  # type: ignore[import-not-found]

    reader = mercury.Mercury()
    wanted, found = set(sample.names), 0
    for data in frames_of(sample):
        record = reader.get_mercury_json(data) or {}
        found += record.get("tls", {}).get("client", {}).get("server_name") in wanted
        found += record.get("http", {}).get("request", {}).get("host") in wanted
    return found


def dpkt_name(sample: Sample, payload: bytes) -> str:
    """Reads the name of a payload with dpkt's TLS, HTTP or DNS."""
    import dpkt  # type: ignore[import-untyped]

    if sample.protocol == "HTTP":
        return str(dpkt.http.Request(payload).headers["host"])
    if sample.protocol == "DNS":
        return str(dpkt.dns.DNS(payload).qd[0].name)
    records, _ = dpkt.ssl.tls_multi_factory(payload)
    for kind, body in dpkt.ssl.TLSHandshake(records[0].data).data.extensions:
        if kind == 0:
            return str(body[5:].decode())
    return ""


def dpkt_reader(sample: Sample) -> int:
    """Decodes each frame with dpkt and reads the name of each joined message."""
    import dpkt

    found, streams = 0, dict[bytes, bytes]()
    for data in frames_of(sample):
        ip = dpkt.ethernet.Ethernet(data).data
        streams[ip.src] = streams.get(ip.src, b"") + bytes(ip.data.data)
    for payload, name in zip(streams.values(), sample.names, strict=True):
        found += dpkt_name(sample, payload) == name
    return found


READERS = {
    "parse": lambda _sample: parse_reader,
    "engine": engine_reader,
    "dpkt": lambda _sample: dpkt_reader,
    "aioquic": lambda _sample: aioquic_reader,
    "mercury-python": lambda _sample: mercury_reader,
}
OURS = ("parse", "engine")
MERCURY = ("TLS hello", "HTTP request", "QUIC Initial")


def pairs() -> list[object]:
    """Returns a sample and a reader of it, for each reader that can read the sample."""
    found: list[object] = []
    for what in SAMPLES:
        # The engine examines limited numbers of bytes and frames, as test_runs.py has them.
        usual = " of " not in what and "pieces" not in what
        peers = ["aioquic" if "QUIC" in what else "dpkt"]
        peers += ["mercury-python"] if what in MERCURY else []
        found += [pytest.param(what, who) for who in (OURS if usual else OURS[:1])]
        found += [pytest.param(what, who, marks=pytest.mark.peer) for who in peers]
    return found


@pytest.mark.parametrize(("what", "who"), pairs())
def test_name(what: str, who: str, size: Size, measure: Measure) -> None:
    count = size.of(MESSAGES)
    sample = SAMPLES[what](count if who in OURS else max(count // SHARE, 10))
    reader = READERS[who](sample)
    found = measure(f"parsers: {what}", reader, len(sample.names), prepare=lambda: (sample,))
    assert found == len(sample.names)


def header_blocks(count: int, worst: bool) -> list[bytes]:
    """Returns the header blocks of a connection. Each field of the worst blocks is new and long."""
    import hpack

    encoder, blocks = hpack.Encoder(), []
    for n in range(count):
        fields = [(":method", "GET"), (":path", "/"), (":authority", f"host{n}.bench.example")]
        if worst:
            fields += [(f"x-field-{n}-{i}", "~" * 200) for i in range(10)]
        blocks.append(encoder.encode(fields))
    return blocks


@pytest.mark.parametrize("worst", [False, True], ids=["usual", "worst"])
@pytest.mark.parametrize("who", ["ours", peer("hpack")])
def test_header_blocks(worst: bool, who: str, size: Size, measure: Measure) -> None:
    import hpack

    count = size.of(2_000 if who == "ours" else 500)
    blocks = header_blocks(count, worst)

    def ours() -> int:
        table = _core.HeaderTable()
        return sum(table.decode(block)[0] == "done" for block in blocks)

    def theirs() -> int:
        decoder = hpack.Decoder()
        return sum(len(decoder.decode(block)) > 0 for block in blocks)

    group = f"parsers: HTTP/2 header block, {'worst' if worst else 'usual'}"
    assert measure(group, ours if who == "ours" else theirs, count) == count
