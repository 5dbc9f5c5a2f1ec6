# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Synthetic certificates of every length, read by `cryptography`, by openssl and by us."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each
from support.handshake import message, server_hello

from zanon_net import _core

pytestmark = pytest.mark.source

NAME = b"*.example.org"
MIN, NAME_MAX = 260, 255
IMPOSSIBLE = 65540  # no element of DER has this length


def subject_of(certificate: bytes) -> list[str]:
    read = x509.load_der_x509_certificate(certificate)
    return [str(attribute.value) for attribute in read.subject]


def ours(certificate: bytes) -> tuple[str, bytes]:
    return _core.parse_certificate(wire.record(server_hello() + message(certificate)))


@pytest.mark.parametrize("name", [b"", NAME], ids=["nameless", "named"])
def test_every_length(name: bytes) -> None:
    expected = [name.decode()] if name else []
    for n in range(MIN + len(name), 4001):
        certificate = _core.build_x509(n, name)
        assert len(certificate) == n
        assert subject_of(certificate) == expected


@pytest.mark.parametrize("name", [b"", NAME], ids=["nameless", "named"])
def test_below_the_minimum_is_a_certificate_or_nothing(name: bytes) -> None:
    """The probe raises where something was written and no certificate."""
    expected = [name.decode()] if name else []
    for n in range(MIN + len(name)):
        certificate = _core.build_x509(n, name)
        assert certificate is None or (
            len(certificate) == n and subject_of(certificate) == expected
        )
        assert certificate is None or n > 200


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=NAME_MAX), st.data())
def test_any_name_and_length(name: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(MIN + len(name), 70000).filter(lambda n: n != IMPOSSIBLE))
    certificate = _core.build_x509(n, name.encode())
    assert len(certificate) == n
    assert subject_of(certificate) == ([name] if name else [])
    if n < 16000:
        assert ours(certificate) == (("done", name.encode()) if name else ("other", b""))


@each("n", [*range(65500, 65600), (1 << 24) - 1, (1 << 24) - 2])
def test_long_ones(n: int) -> None:
    certificate = _core.build_x509(n, NAME)
    assert (certificate is None) == (n == IMPOSSIBLE)
    if certificate is not None:
        assert subject_of(certificate) == [NAME.decode()]


def test_what_is_in_it() -> None:
    certificate = x509.load_der_x509_certificate(_core.build_x509(900, NAME))
    assert certificate.version is x509.Version.v3
    assert certificate.serial_number == 1
    assert [str(attribute.value) for attribute in certificate.issuer] == ["invalid"]
    assert certificate.not_valid_before_utc.isoformat() == "2000-01-01T00:00:00+00:00"
    assert certificate.not_valid_after_utc.isoformat() == "2049-12-31T23:59:59+00:00"
    assert certificate.signature_algorithm_oid.dotted_string == "1.3.101.112"
    assert certificate.public_key().public_bytes_raw() == bytes(32)
    (extension,) = certificate.extensions
    assert extension.oid.dotted_string == "2.999.1"
    assert not extension.critical
    assert set(extension.value.value) == {0}
    assert set(certificate.signature) == {0}


@pytest.mark.parametrize(
    "name", [b"a\0b", b"\n", b"a\x7f", "é".encode(), b"\xff", b"a" * (NAME_MAX + 1)]
)
def test_another_name_is_none(name: bytes) -> None:
    assert _core.build_x509(2000, name) is None


def test_openssl_reads_them(tmp_path: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    lengths = [260, 273, 300, 384, 385, 386, 387, 512, 1024, 4000]
    for n in lengths:
        (tmp_path / "one.der").write_bytes(_core.build_x509(n, NAME if n > 272 else b""))
        command = [program, "x509", "-inform", "DER", "-in", "one.der", "-noout", "-subject"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        subject = done.stdout.split("subject=")[1].replace(" ", "").strip()
        assert subject == ("CN=*.example.org" if n > 272 else "")
