# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for tests, and certificates of it."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from zanon_net.count.url import TlsFiles


class Authority:
    """Writes PEM files into a folder: ca.pem, and NAME.pem and NAME.key of each certificate."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder, self._name = folder, _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._build(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def certify(
        self, name: str, *, host: str = "127.0.0.1", days: int = 1, only_servers: bool = False
    ) -> TlsFiles:
        """A certificate for this name, and for an address and localhost.

        days: for which it is valid from now on. only_servers: no client may show it.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address(host)), x509.DNSName("localhost")]
        )
        certificate = self._build(_named(name), key, days).add_extension(hosts, critical=False)
        if only_servers:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            certificate = certificate.add_extension(usage, critical=False)
        cert_path, key_path = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert_path.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return TlsFiles(cert_path, key_path, self.path)

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=30))
            .not_valid_after(now + datetime.timedelta(days=days))
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
