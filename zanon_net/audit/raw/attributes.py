# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of attributes besides names, from the fields of tshark.

A text is None if the packet has the attribute, and the fields do not show the text for certain.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from zanon_net.audit.raw.certificates import dns_name, issuer_of
from zanon_net.audit.raw.packets import Exposed

Fields = Mapping[str, Sequence[str]]  # the values of each field of a packet
Texts = Iterator[str | None]

CLIENT_HELLO = "1"
NAME, ALGORITHMS, ALPN, DELEGATED, VERSIONS, ALGORITHMS_OF_CERTIFICATES = 0, 13, 16, 34, 43, 50
OF_QUIC = {0x39, 0xFFA5}  # extensions
SUITES_MOST = 99
VERSION_TEXTS = {
    **{0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2"},
    **{0xFEFF: "d1", 0xFEFD: "d2", 0xFEFC: "d3"},
}
CALLS = {"REGISTER", "INVITE", "OPTIONS", "SUBSCRIBE", "MESSAGE", "PUBLISH"}
PLAIN = re.compile(r"[ -\[\]-~]+")  # tshark escapes all other characters, and the backslash
ESCAPED = re.compile('[ %",]')


def escaped(text: str) -> str | None:
    """Returns a text in the form of a log, or None if tshark may have escaped it."""
    if not PLAIN.fullmatch(text):
        return None
    return ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


# ---- hellos of TLS and DTLS ---------------------------------------------------------------------


class Hello:
    """Fields of a hello in a packet.

    layer: tls or dtls. is_certain: false if the packet has several hellos.
    """

    def __init__(self, fields: Fields, layer: str) -> None:
        self._fields, self._start = fields, f"{layer}.handshake."
        hellos = self.values("type").count(CLIENT_HELLO)
        self.is_there, self.is_certain = hellos > 0, hellos == 1
        self.is_datagram = layer == "dtls"
        self.types = [int(one) for one in self.values("extension.type")]

    def values(self, field: str) -> Sequence[str]:
        """Returns the values of a field."""
        return self._fields.get(self._start + field, ())

    def numbers(self, field: str) -> list[int]:
        """Returns the values of a field of hexadecimal numbers, except values of RFC 8701."""
        return without_invented([int(one, 16) for one in self.values(field)])

    def algorithms(self) -> list[int] | None:
        """Returns the signature algorithms, or None. Three extensions have such a list."""
        sizes = [int(one) // 2 for one in self.values("sig_hash_alg_len")]
        lists = [
            one for one in self.types if one in (ALGORITHMS, DELEGATED, ALGORITHMS_OF_CERTIFICATES)
        ]
        found = [int(one, 16) for one in self.values("sig_hash_alg")]
        if len(sizes) != len(lists) or sum(sizes) != len(found):
            return None
        if ALGORITHMS not in lists:
            return []
        start = sum(sizes[: lists.index(ALGORITHMS)])
        return without_invented(found[start : start + sizes[lists.index(ALGORITHMS)]])


def without_invented(numbers: Sequence[int]) -> list[int]:
    """Returns the numbers that no client invents: two equal bytes 0x?A (RFC 8701)."""
    return [one for one in numbers if (one >> 8) != (one & 255) or one & 15 != 10]


def is_invented(protocol: str) -> bool:
    """Returns whether a client invents the protocol, as in `without_invented`."""
    return len(protocol) == 2 and protocol[0] == protocol[1] and ord(protocol[0]) & 15 == 10


def hellos(fields: Fields) -> Iterator[Hello]:
    """Yields the hellos of clients."""
    found = (Hello(fields, layer) for layer in ("tls", "dtls"))
    return (hello for hello in found if hello.is_there)


def alpn(fields: Fields) -> Texts:
    """Yields the protocols that a ClientHello offers (RFC 7301, 3.1), joined by commas."""
    for hello in hellos(fields):
        if ALPN not in hello.types:
            continue
        protocols = hello.values("extensions_alpn_str")
        texts = [escaped(one) for one in protocols if not is_invented(one)]
        if not hello.is_certain or hello.types.count(ALPN) > 1 or not protocols or None in texts:
            yield None
        elif texts:
            yield ",".join(map(str, texts))


def ja4(fields: Fields) -> Texts:
    """Yields the JA4 fingerprint of a ClientHello, by the description of FoxIO."""
    for hello in hellos(fields):
        types = without_invented(hello.types)
        algorithms = hello.algorithms()
        protocols = [one for one in hello.values("extensions_alpn_str") if not is_invented(one)]
        is_whole = hello.is_certain and hello.values("version") and algorithms is not None
        if not is_whole or not all(map(PLAIN.fullmatch, protocols)):
            yield None
            continue
        if len(set(types)) < len(types):
            continue  # no extension may come twice
        of_quic = OF_QUIC & set(types)
        suites = hello.numbers("ciphersuite")
        versions = hello.numbers("extensions.supported_version")
        if VERSIONS not in types:
            versions = [int(hello.values("version")[0], 16)]
        version = max(versions, default=0)
        hashed = ",".join(f"{one:04x}" for one in sorted(set(types) - {NAME, ALPN}))
        if algorithms and hashed:
            hashed += "_" + ",".join(f"{one:04x}" for one in algorithms)
        yield (
            ("d" if hello.is_datagram else "q" if of_quic else "t")
            + VERSION_TEXTS.get(version, "00")
            + ("d" if NAME in types else "i")
            + f"{min(len(suites), SUITES_MOST):02}{min(len(types), SUITES_MOST):02}"
            + ends_of(protocols[0] if protocols else "")
            + "_".join(
                ("", digest(",".join(f"{one:04x}" for one in sorted(suites))), digest(hashed))
            )
        )


def ends_of(protocol: str) -> str:
    """Returns the first and the last character of a protocol, as JA4 writes them."""
    if not protocol:
        return "00"
    if protocol[0].isalnum() and protocol[-1].isalnum():
        return protocol[0] + protocol[-1]
    return f"{ord(protocol[0]):02x}"[0] + f"{ord(protocol[-1]):02x}"[1]


def digest(text: str) -> str:
    """Returns the hash of a list, as JA4 writes it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


# ---- other messages of clients ------------------------------------------------------------------


def user_agent(fields: Fields) -> Texts:
    """Yields the User-Agent of a request of HTTP."""
    agents = fields["http.user_agent"]
    if len(fields["http.request.method"]) > 1 or len(fields["http2.headers.user_agent"]) > 1:
        yield None
    elif len(agents) == 1 or fields["http2.headers.user_agent"]:
        yield escaped([*agents, *fields["http2.headers.user_agent"]][0])


def ehlo(fields: Fields) -> Texts:
    """Yields the host in the greeting of an SMTP client (RFC 5321, 4.1.1.1)."""
    commands, hosts = fields["smtp.req.command"], fields["smtp.req.parameter"]
    if any(one.upper() in ("EHLO", "HELO") for one in commands):
        yield escaped(hosts[0].strip()) if len(commands) == len(hosts) == 1 else None


def sip(fields: Fields) -> Texts:
    """Yields the host that a request of SIP is for, if the request begins a call."""
    methods, found = fields["sip.Method"], fields["sip.r-uri.host"]
    if any(one in CALLS for one in methods):
        yield escaped(found[0]) if len(methods) == len(found) == 1 else None


def stun(fields: Fields) -> Texts:
    """Yields the software of a request of STUN (RFC 8489, 14.14)."""
    if fields["stun.att.software"] and not is_stun_response(fields):
        yield escaped(fields["stun.att.software"][0])


def is_stun_response(fields: Fields) -> bool:
    """Returns whether a message of STUN is no request."""
    return any(int(one, 16) & 0x0110 for one in fields["stun.type"])


def certificates(fields: Fields) -> Iterator[bytes]:
    """Yields the certificate of the server, which is the first one of a message."""
    found = fields["tls.handshake.certificate"]
    if found:
        yield bytes.fromhex(found[0].replace(":", ""))


def cert_san(fields: Fields) -> Texts:
    """Yields the first DNS name of the server's certificate."""
    names = (dns_name(one) for one in certificates(fields))
    return (escaped(name.decode("latin-1")) for name in names if name is not None)


def cert_issuer(fields: Fields) -> Texts:
    """Yields the issuer of the server's certificate."""
    return (issuer_of(one) for one in certificates(fields))


HELLO_FIELDS = ("type", "extension.type", "extensions_alpn_str")
JA4_FIELDS = (
    *("version", "ciphersuite", "extensions.supported_version", "sig_hash_alg"),
    "sig_hash_alg_len",
)
LAYERS = ("tls.handshake.", "dtls.handshake.")
HELLOS = tuple(layer + field for layer in LAYERS for field in HELLO_FIELDS)
READERS: dict[str, tuple[tuple[str, ...], Callable[[Fields], Texts]]] = {
    "alpn": (HELLOS, alpn),
    "ja4": (HELLOS + tuple(layer + field for layer in LAYERS for field in JA4_FIELDS), ja4),
    "cert-san": (("tls.handshake.certificate",), cert_san),
    "cert-issuer": (("tls.handshake.certificate",), cert_issuer),
    "ehlo": (("smtp.req.command", "smtp.req.parameter"), ehlo),
    "sip": (("sip.Method", "sip.r-uri.host", "sip.Call-ID", "sip.CSeq"), sip),
    "stun": (("stun.type", "stun.att.software", "stun.id"), stun),
    "user-agent": (
        ("http.request.method", "http.user_agent", "http2.headers.user_agent"),
        user_agent,
    ),
}
"""Fields of tshark for each attribute, and the function that reads them."""
FIELDS_OF = {word: fields for word, (fields, _read) in READERS.items()}
OF_HELLOS = ("alpn", "ja4")
OF_CERTIFICATES = ("cert-san", "cert-issuer")  # the server exposes them
OF_HOSTS = ("ehlo", "sip", "cert-san")
OF_EXCHANGES = ("sip", "stun")  # over UDP, they need the response to their request


def attributes_in(fields: Fields, words: Sequence[str]) -> Iterator[Exposed]:
    """Yields the attributes in the fields of a packet, and responses to requests with one."""
    for word in words:
        if word not in READERS:
            continue
        question, response = "", False
        if word == "stun":
            question, response = ",".join(fields["stun.id"]), is_stun_response(fields)
        elif word == "sip":
            question = ",".join((*fields["sip.Call-ID"], *fields["sip.CSeq"]))
            response = bool(question) and not fields["sip.Method"]
        if response:
            yield Exposed(word, None, question, is_response=True)
            continue
        for text in READERS[word][1](fields):
            yield Exposed(word, text, question)
