# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The first DNS name and the issuer of certificates, read by us and by cryptography."""

import ipaddress
import random
import re

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type as Kind
from cryptography.x509.oid import NameOID
from support import wire
from support.handshake import builder, signed

from zanon_net import _core

TYPES = [NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.COUNTRY_NAME, NameOID.USER_ID]
TYPES += [NameOID.DOMAIN_COMPONENT, NameOID.STREET_ADDRESS, NameOID.LOCALITY_NAME]
TYPES += [NameOID.STATE_OR_PROVINCE_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME]
TYPES += [NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER, x509.ObjectIdentifier("2.999.1")]
TYPES += [x509.ObjectIdentifier("1.3.6.1.4.1.268435455"), x509.ObjectIdentifier("0.9.1")]
NARROW = {
    Kind.UTF8String: r"",
    Kind.T61String: r"",
    Kind.IA5String: r"[^\0-\x7f]",
    Kind.PrintableString: r"[^A-Za-z0-9 '()+,./:=?-]",
    Kind.VisibleString: r"[^ -~]",
    Kind.NumericString: r"[^0-9 ]",
}
"""The kinds of strings, and the characters that they cannot have."""
VALUES = ["R3", "Let's Encrypt", 'a,b+c=d"e\\f%', "\0x\x7f", "é ü", "字", " ", "~!#;<>", "x" * 40]
SAFE = {chr(byte) for byte in range(0x21, 0x7F)} - set('%",\\+')


def named(kind: x509.ObjectIdentifier, value: str, string: Kind) -> x509.NameAttribute:
    return x509.NameAttribute(kind, value, string, _validate=False)


def certificate(issuer: x509.Name, *names: x509.GeneralName) -> bytes:
    subject = x509.Name([named(NameOID.COMMON_NAME, "subject", Kind.UTF8String)])
    constraints = x509.BasicConstraints(ca=False, path_length=None)
    made = builder(subject, issuer).add_extension(constraints, critical=True)
    if names:
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=len(names) > 2)
    return signed(made)


def read(attribute: str, message: bytes) -> tuple[str, str | None]:
    return _core.read_attribute(attribute, message)[:2]


def escaped(text: str, *, plus: bool = True) -> str:
    safe = SAFE if plus else SAFE | {"+"}
    return "".join(c if c in safe else "".join(f"%{b:02X}" for b in c.encode()) for c in text)


def bounded(text: str) -> tuple[str, str | None]:
    return "done", text if len(text) <= 253 else None


def issuer_text(name: x509.Name) -> str:
    relative = (
        "+".join(f"{a.rfc4514_attribute_name}={escaped(str(a.value))}" for a in rdn)
        for rdn in reversed(name.rdns)
    )
    return ",".join(relative)


def expected_san(message: bytes) -> tuple[str, str | None]:
    extensions = x509.load_der_x509_certificate(message).extensions
    try:
        alternative = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return "other", ""
    hosts = alternative.value.get_values_for_type(x509.DNSName)
    return bounded(escaped(hosts[0], plus=False)) if hosts else ("other", "")


def expected_issuer(message: bytes) -> tuple[str, str | None]:
    issuer = x509.load_der_x509_certificate(message).issuer
    return bounded(issuer_text(issuer)) if issuer.rdns else ("other", "")


@pytest.mark.filterwarnings("ignore:Attribute's length")
@pytest.mark.parametrize("seed", range(40))
def test_random_issuers(seed: int) -> None:
    rng = random.Random(seed)
    rdns = []
    for _ in range(rng.randrange(8)):
        kinds = rng.sample(TYPES, rng.choice([1, 1, 2, 3]))
        made = []
        for kind in kinds:
            string, wrong = rng.choice([*NARROW.items(), (Kind.BMPString, "")])
            value = re.sub(wrong, "", rng.choice(VALUES)) if wrong else rng.choice(VALUES)
            made.append(named(kind, value or "0", string))
        rdns.append(x509.RelativeDistinguishedName(made))
    message = certificate(x509.Name(rdns))
    assert read("cert-issuer", message) == expected_issuer(message)


def test_an_issuer() -> None:
    names = [(NameOID.COUNTRY_NAME, "US"), (NameOID.ORGANIZATION_NAME, "Let's Encrypt")]
    names.append((NameOID.COMMON_NAME, "R3"))
    issuer = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
    assert read("cert-issuer", certificate(issuer)) == ("done", "CN=R3,O=Let's%20Encrypt,C=US")


def test_strings_that_are_refused() -> None:
    for value, string in [("a", Kind.UniversalString), ("a", Kind.BitString)]:
        wrong = named(NameOID.COMMON_NAME, value, Kind.UTF8String)
        message = certificate(x509.Name([wrong])).replace(
            b"\x0c\1a", bytes([string.value]) + b"\1a"
        )
        assert read("cert-issuer", message)[0] == "malformed"
    wide = certificate(x509.Name([named(NameOID.COMMON_NAME, "ab", Kind.BMPString)]))
    for units in (b"\xd8\0\0a", b"\0a\xdf\xff"):
        message = wide.replace(b"\x1e\4\0a\0b", b"\x1e\4" + units)
        assert read("cert-issuer", message)[0] == "malformed"
    odd = wide.replace(b"\x1e\4\0a\0b", b"\x1e\3\0a\0\x30")
    assert read("cert-issuer", odd)[0] == "malformed"


OTHERS = [
    x509.IPAddress(ipaddress.ip_address("192.0.2.1")),
    x509.RFC822Name("someone@example.org"),
    x509.UniformResourceIdentifier("https://example.org/"),
    x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
    x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "other.example")])),
]
HOSTS = ["a.example.org", "*.example.org", "xn--bcher-kva.example", "UPPER.example", "x" * 300]
HOSTS += ["nul\0.example", 'q"uo,ta\\+.example', " "]
ISSUER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An issuer")])


@pytest.mark.parametrize("seed", range(30))
def test_random_names(seed: int) -> None:
    rng = random.Random(seed)
    names = [*rng.sample(OTHERS, rng.randrange(3))]
    names += [x509.DNSName(host) for host in rng.sample(HOSTS, rng.randrange(4))]
    rng.shuffle(names)
    message = certificate(ISSUER, *names)
    assert read("cert-san", message) == expected_san(message)
    assert read("cert-issuer", message) == ("done", "CN=An%20issuer")


def test_no_part_of_a_damaged_certificate_is_read() -> None:
    message = certificate(ISSUER, OTHERS[0], x509.DNSName("a.example.org"), OTHERS[4])
    for prefix in wire.prefixes(message):
        assert read("cert-san", prefix)[0] == read("cert-issuer", prefix)[0] == "malformed"
    assert read("cert-san", message + b"\0")[0] == "malformed"
    same = {"cert-san": 0, "cert-issuer": 0}
    for _, changed in wire.off_by_one(message):
        for attribute, oracle in (("cert-san", expected_san), ("cert-issuer", expected_issuer)):
            state, text = read(attribute, changed)
            if state != "done":
                continue
            try:
                assert (state, text) == oracle(changed)
            except (ValueError, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
                continue  # cryptography also checks what these values do not depend on
            same[attribute] += 1
    assert min(same.values()) > 300


def test_two_lists_of_names_are_refused() -> None:
    message = certificate(ISSUER, x509.DNSName("a.example"), x509.DNSName("b.example"))
    constraints, names = b"\x06\3\x55\x1d\x13", b"\x06\3\x55\x1d\x11"
    twice = message.replace(constraints, names)
    assert read("cert-san", message) == ("done", "a.example")
    assert read("cert-san", twice)[0] == "malformed"
