# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Mutual TLS: both sides show a certificate of the one configured authority."""

import ssl
from collections.abc import Callable

from zanon_net.count.url import TlsFiles
from zanon_net.errors import ConfigError, UnopenedError


def server_context(files: TlsFiles, on_refused: Callable[[str], None]) -> ssl.SSLContext:
    """Returns the context of a counter, which accepts clients with a certificate of the authority.

    on_refused: function that is called with the reason of a refused certificate, because asyncio
    reports the reason to neither side.

    Raises ConfigError if a file holds other data, UnopenedError if it cannot be read.
    """

    class Connection(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except ssl.SSLCertVerificationError as error:
                on_refused(not_accepted(error))
                raise

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = Connection
    _load(context, files)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Returns the context of a probe. The counter's certificate has to name its host. Raises
    ConfigError and UnopenedError as `server_context` does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, files)
    return context


def not_accepted(error: ssl.SSLCertVerificationError) -> str:
    """Returns the reason why a certificate is not accepted, without the expected host."""
    reason = error.verify_message.partition(", certificate is not valid for")[0]
    return f"its certificate is not accepted ({reason})"


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    for name, path in (("tls_cert", files.cert), ("tls_key", files.key), ("tls_ca", files.ca)):
        try:
            with open(path, "rb"):  # noqa: PTH123  (ssl names no file in its errors)
                pass
        except OSError as error:
            raise UnopenedError(f"{name}: cannot read {path}: {error.strerror}") from None
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except ssl.SSLError:
        raise ConfigError(
            f"tls_cert: {files.cert} and {files.key} are no certificate and its key, in PEM and"
            " without a password"
        ) from None
    try:
        context.load_verify_locations(files.ca)
    except ssl.SSLError:
        raise ConfigError(f"tls_ca: {files.ca} holds no certificate in PEM") from None


def _no_password() -> bytes:
    """Returns an empty password, so that OpenSSL does not ask on the terminal."""
    return b""
