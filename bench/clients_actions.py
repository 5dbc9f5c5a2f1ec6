# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One connection of a client that is a Python package: clients_actions.py ACTION NAME [MORE...].

clients.py runs these actions in the client's network. The certificate of the server is not checked.
"""

import asyncio
import base64
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

SERVER = "192.0.2.1"


def unchecked() -> ssl.SSLContext:
    """Returns a context that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def use_ssl(name: str, tls: str) -> None:
    """Fetches a page with the standard library."""
    context = unchecked()
    chosen = ssl.TLSVersion.TLSv1_2 if tls == "1.2" else ssl.TLSVersion.TLSv1_3
    context.minimum_version = context.maximum_version = chosen
    with (
        socket.create_connection((name, 443), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=name) as stream,
    ):
        stream.sendall(b"GET / HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n")
        stream.recv(1000)


def use_httpx(name: str) -> None:
    """Fetches a page with httpx, which offers HTTP/2."""
    import httpx

    with httpx.Client(http2=True, verify=False, timeout=5) as client:
        client.get(f"https://{name}/")


def use_curl_cffi(name: str, profile: str, form: str = "") -> None:
    """Fetches a page in the manner of a browser; form: v3 for HTTP/3, or ech."""
    from curl_cffi import CurlOpt, requests

    more: dict[str, Any] = {}
    if form == "v3":
        more["http_version"] = "v3only"
    if form == "ech":
        configs = (Path(os.environ["CLIENTS_FOLDER"]) / "ech").read_bytes()
        text = "ecl:" + base64.b64encode(configs).decode()
        more["curl_options"] = {CurlOpt.ECH: text.encode()}
    requests.get(f"https://{name}/", impersonate=profile, verify=False, timeout=5, **more)


async def use_h3(name: str, port: str, form: str = "") -> None:
    """Fetches a page by HTTP/3; form: v2 for QUIC version 2, or 0rtt."""
    from aioquic.asyncio.client import connect
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.packet import QuicProtocolVersion

    tickets: list[Any] = []
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    configuration.server_name = name
    if form == "v2":
        configuration.supported_versions = [QuicProtocolVersion.VERSION_2]
        configuration.original_version = QuicProtocolVersion.VERSION_2
    for attempt in range(2 if form == "0rtt" else 1):
        if attempt:
            configuration.session_ticket = tickets[0]
        async with connect(
            SERVER,
            int(port),
            configuration=configuration,
            session_ticket_handler=tickets.append,
            wait_connected=not attempt,
        ) as client:
            http = H3Connection(client._quic)
            stream = client._quic.get_next_available_stream_id()
            head = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/")]
            head += [(b":authority", name.encode())]
            http.send_headers(stream, head, end_stream=True)
            client.transmit()
            await asyncio.sleep(0.5)


def use_dnspython(name: str, transport: str, *more: str) -> None:
    """Asks a question in the transport; more: of HTTPS, in HTTP/3."""
    import dns.message
    import dns.query

    hidden = dns.message.make_query(f"asked.{name}", "A")
    if transport == "doq":
        dns.query.quic(hidden, SERVER, timeout=5, server_hostname=name, verify=False)
    elif transport == "dot":
        context = unchecked()
        dns.query.tls(hidden, SERVER, timeout=5, server_hostname=name, ssl_context=context)
    elif transport == "doh":
        form = dns.query.HTTPVersion.H3 if more else dns.query.HTTPVersion.H2
        where = {"bootstrap_address": SERVER, "http_version": form}
        url = f"https://{name}/dns-query"
        dns.query.https(hidden, url, timeout=5, verify=False, **where)  # type: ignore[arg-type]
    elif transport == "udp":
        dns.query.udp(dns.message.make_query(name, "A"), SERVER, timeout=5)
    else:
        dns.query.tcp(dns.message.make_query(name, "A"), SERVER, timeout=5)


def main(action: str, name: str, *more: str) -> None:
    """Run the action."""
    if action == "ssl":
        use_ssl(name, *more)
    elif action == "httpx":
        use_httpx(name)
    elif action == "curl_cffi":
        use_curl_cffi(name, *more)
    elif action == "h3":
        asyncio.run(use_h3(name, *more))
    else:
        use_dnspython(name, action, *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
