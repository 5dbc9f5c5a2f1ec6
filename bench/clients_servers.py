# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Servers for the clients of clients.py: clients_servers.py ADDRESS FOLDER [OPENSSL].

They answer enough for a client to end its connection. FOLDER has cert.pem and key.pem; a file
`ready` appears in it when all servers listen. OPENSSL is the program of OpenSSL 4, which decrypts
hellos with the key in ech.pem.
"""

import asyncio
import signal
import ssl
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
GREETING = b"220 mail ESMTP\r\n"


def answered(question: bytes) -> bytes:
    """Returns a DNS response with one address."""
    end = 12
    while question[end]:
        end += question[end] + 1
    head = question[:2] + struct.pack(">5H", 0x8180, 1, 1, 0, 0)
    answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + b"\xc0\0\2\7"
    return head + question[12 : end + 5] + answer


async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers one request of HTTP/1.1, or of DNS over HTTPS."""
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        page = PAGE
        if b"dns-query" in head and head.startswith(b"POST"):
            (size,) = (x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length"))
            message = answered(await reader.readexactly(int(size.split(b":")[1])))
            kind = b"Content-Type: application/dns-message\r\n"
            page = b"HTTP/1.1 200 OK\r\n" + kind
            page += b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(message) + message
        writer.write(page)
        await writer.drain()
    except (OSError, EOFError, TimeoutError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def names(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a question of DNS over TCP or TLS."""
    try:
        (size,) = struct.unpack(">H", await asyncio.wait_for(reader.readexactly(2), 5))
        message = answered(await reader.readexactly(size))
        writer.write(struct.pack(">H", len(message)) + message)
        await writer.drain()
        await asyncio.wait_for(reader.read(), 5)
    except (OSError, EOFError, TimeoutError, ssl.SSLError):
        pass
    finally:
        writer.close()


def mail(tls: ssl.SSLContext) -> Any:
    """Returns a mail server that offers STARTTLS."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(GREETING)
            while line := await asyncio.wait_for(reader.readline(), 5):
                if line.upper().startswith(b"STARTTLS"):
                    writer.write(b"220 go\r\n")
                    await writer.drain()
                    await writer.start_tls(tls)
                    await asyncio.wait_for(reader.read(), 5)
                    break
                writer.write(b"250-mail\r\n250 STARTTLS\r\n")
        except (OSError, EOFError, TimeoutError, ssl.SSLError):
            pass
        finally:
            writer.close()

    return serve


class Resolver(asyncio.DatagramProtocol):
    """Answers questions of DNS over UDP."""

    def connection_made(self, transport: Any) -> None:
        """Keeps the transport."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """Answers."""
        self._transport.sendto(answered(data), addr)


async def serve_quic(address: str, folder: Path) -> None:
    """Serves HTTP/3 on several ports, with a Retry on 4432, and DNS over QUIC."""
    from aioquic.asyncio import QuicConnectionProtocol, serve
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import HeadersReceived
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import ProtocolNegotiated, StreamDataReceived

    class Pages(QuicConnectionProtocol):
        """Answers requests of HTTP/3."""

        http = None

        def quic_event_received(self, event: Any) -> None:
            if isinstance(event, ProtocolNegotiated):
                self.http = H3Connection(self._quic)
            for found in self.http.handle_event(event) if self.http is not None else ():
                if isinstance(found, HeadersReceived):
                    self.http.send_headers(found.stream_id, [(b":status", b"200")])
                    self.http.send_data(found.stream_id, b"ok", end_stream=True)
                    self.transmit()

    class Names(QuicConnectionProtocol):
        """Answers questions of DNS over QUIC."""

        def quic_event_received(self, event: Any) -> None:
            if isinstance(event, StreamDataReceived) and len(event.data) > 14:
                message = answered(event.data[2:])
                data = struct.pack(">H", len(message)) + message
                self._quic.send_stream_data(event.stream_id, data, end_stream=True)
                self.transmit()

    tickets: dict[bytes, Any] = {}
    for port, kind in ((443, Pages), (4431, Pages), (4432, Pages), (853, Names)):
        protocols = H3_ALPN if kind is Pages else ["doq"]
        configuration = QuicConfiguration(is_client=False, alpn_protocols=protocols)
        configuration.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        await serve(
            address,
            port,
            configuration=configuration,
            create_protocol=kind,
            retry=port == 4432,
            session_ticket_fetcher=tickets.get,
            session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        )


def start_s_server(program: str, address: str, folder: Path, *options: str) -> Any:
    """Starts a server of OpenSSL at an address and port."""
    files = ["-cert", str(folder / "cert.pem"), "-key", str(folder / "key.pem")]
    command = [program, "s_server", "-accept", address, "-quiet", *files, *options]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


async def main(address: str, folder: Path, openssl4: str = "") -> None:
    """Serve until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    started = [start_s_server("openssl", f"{address}:4433", folder, "-dtls1_2")]
    if openssl4:
        key = ["-www", "-ech_key", str(folder / "ech.pem")]
        started.append(start_s_server(openssl4, f"{address}:4434", folder, *key))
    try:
        await asyncio.start_server(web, address, 443, ssl=tls)
        await asyncio.start_server(web, address, 80)
        await asyncio.start_server(mail(tls), address, 25)
        await asyncio.start_server(names, address, 853, ssl=tls)
        await asyncio.start_server(names, address, 53)
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(Resolver, local_addr=(address, 53))
        await serve_quic(address, folder)
        (folder / "ready").touch()
        await ended.wait()
    finally:
        for process in started:
            process.kill()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
