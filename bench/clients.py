# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Captures of real clients in network namespaces, and what zanon-net reads of them.

Usage: clients.py [--out DIR] [--only TEXT] [--openssl4 DIR]   (as root)

Each client connects to a server in a second namespace, under a name of its own, and its packets are
recorded. zanon-net reads each capture with every name released and evidence asked for. The table
says client by client whether it read the name and nothing else. Exit code 1: a name is missing, or
another one was read. Clients that are not installed are left out, and said so.

No distribution has OpenSSL 4 yet. --openssl4 is the prefix of an installation: bin/openssl of
version 4, and bin/curl built with it and with ECH (curl --version names both).
"""

import argparse
import ctypes
import datetime
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.x509.oid import NameOID

import zanon_net
from zanon_net import parse

HERE = Path(__file__).resolve().parent
DOMAIN = "clients.example"
CLIENT, SERVER = "10.9.0.1", "192.0.2.1"
CLONE_NEWNET, CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x40000000, 0x20000, 4096, 16384, 1 << 18
ETH_P_ALL = 3
ECH_PORT = 4434
PUBLIC = "public." + DOMAIN
CURL_PROFILES = ("chrome", "firefox", "safari", "safari_ios", "edge101", "chrome_android")
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Client:
    """A program that connects to the server under a name.

    title: of the table. command: gets the name, and returns the command. source: the protocol in
    which zanon-net should read the name. package: Python's, for its version; otherwise the
    program's own `version` command. also: another name that the packets show. is_hidden: true if a
    server decrypts the client's own name, so that no packet shows it.
    """

    title: str
    command: Callable[[str], list[str]]
    source: str
    package: str = ""
    version: tuple[str, ...] = ()
    also: str = ""
    is_hidden: bool = False

    @property
    def name(self) -> str:
        """Returns the name under which the client connects."""
        letters = "".join(c if c.isalnum() else "-" for c in self.title.lower())
        return "-".join(filter(None, letters.split("-"))) + "." + DOMAIN


def python(action: str, *more: str) -> Callable[[str], list[str]]:
    """Returns the command that runs an action of clients_actions.py."""
    return lambda name: [sys.executable, str(HERE / "clients_actions.py"), action, name, *more]


def curl(*options: str, program: str = "curl", port: int = 443) -> Callable[[str], list[str]]:
    """Returns curl's command for a page of HTTPS, or of HTTP with the option --http-page."""
    chosen = [option for option in options if option != "--http-page"]
    start = "http://" if "--http-page" in options else "https://"
    end = "/" if port == 443 else f":{port}/"
    fixed = [program, "-qsk", "-m", "5", "-o", "/dev/null", *chosen]
    return lambda name: [*fixed, start + name + end]


def s_client(
    *options: str, program: str = "openssl", port: int = 443
) -> Callable[[str], list[str]]:
    """Returns the command of openssl's client."""
    where = ["-connect", f"{SERVER}:{port}", "-servername"]
    return lambda name: [program, "s_client", *where, name, *options]


def chromium(*options: str) -> Callable[[str], list[str]]:
    """Returns the command of a headless Chromium."""
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"]
    fixed += ["--disable-background-networking", "--virtual-time-budget=2000", "--dump-dom"]
    return lambda name: ["chromium", *fixed, *options, f"https://{name}/"]


CURL, OPENSSL = ("curl", "--version"), ("openssl", "version")
CLIENTS = [
    Client("curl, HTTP/1.1 in clear", curl("--http-page"), "http", version=CURL),
    Client(
        "curl, HTTP/2 in clear",
        curl("--http-page", "--http2-prior-knowledge"),
        "http",
        version=CURL,
    ),
    Client("curl, TLS 1.2", curl("--tls-max", "1.2"), "tls", version=CURL),
    Client("curl, TLS 1.3", curl("--tlsv1.3"), "tls", version=CURL),
    Client("openssl s_client, TLS 1.2", s_client("-tls1_2"), "tls", version=OPENSSL),
    Client("openssl s_client, TLS 1.3", s_client("-tls1_3"), "tls", version=OPENSSL),
    Client(
        "openssl s_client, STARTTLS of SMTP",
        s_client("-starttls", "smtp", port=25),
        "tls",
        version=OPENSSL,
    ),
    Client("openssl s_client, DTLS 1.2", s_client("-dtls1_2", port=4433), "tls", version=OPENSSL),
    Client("Python ssl, TLS 1.2", python("ssl", "1.2"), "tls", version=("python3", "--version")),
    Client("Python ssl, TLS 1.3", python("ssl", "1.3"), "tls", version=("python3", "--version")),
    Client("httpx, HTTP/2 over TLS", python("httpx"), "tls", "httpx"),
    Client(
        "GNU Wget, TLS",
        lambda n: [
            "wget",
            "-q",
            "-T",
            "5",
            "-t",
            "1",
            "--no-check-certificate",
            "-O",
            "/dev/null",
            f"https://{n}/",
        ],
        "tls",
        version=("wget", "--version"),
    ),
    Client(
        "Node.js, TLS",
        lambda n: [
            "node",
            "-e",
            f"require('https').get({{host:'{n}',rejectUnauthorized:false}},r=>r.resume())",
        ],
        "tls",
        version=("node", "--version"),
    ),
    Client("Chromium, TLS", chromium("--disable-quic"), "tls", version=("chromium", "--version")),
    *(
        Client(f"curl_cffi as {profile}", python("curl_cffi", profile), "tls", "curl_cffi")
        for profile in CURL_PROFILES
    ),
    Client("curl_cffi, HTTP/3", python("curl_cffi", "chrome", "v3"), "quic", "curl_cffi"),
    Client(
        "curl_cffi, Encrypted ClientHello",
        python("curl_cffi", "chrome", "ech"),
        "tls",
        "curl_cffi",
        also=PUBLIC,
    ),
    Client("aioquic, HTTP/3", python("h3", "4431"), "quic", "aioquic"),
    Client("aioquic, HTTP/3, version 2", python("h3", "4431", "v2"), "quic", "aioquic"),
    Client("aioquic, HTTP/3 after a Retry", python("h3", "4432"), "quic", "aioquic"),
    Client("aioquic, HTTP/3 with 0-RTT", python("h3", "4431", "0rtt"), "quic", "aioquic"),
    Client("dnspython, DNS over QUIC", python("doq"), "quic", "dnspython"),
    Client("dnspython, DNS over TLS", python("dot"), "tls", "dnspython"),
    Client("dnspython, DNS over HTTPS", python("doh"), "tls", "dnspython"),
    Client("dnspython, DNS over HTTP/3", python("doh", "h3"), "quic", "dnspython"),
    Client("dnspython, UDP", python("udp"), "dns", "dnspython"),
    Client("dnspython, TCP", python("tcp"), "dns", "dnspython"),
]


def clients_of_openssl4(prefix: Path, accepted: str) -> list[Client]:
    """Returns the clients of an installation of OpenSSL 4.

    accepted: ECHConfigList of the server on ECH_PORT, in base64. Other servers ignore ECH.
    """
    program, page = str(prefix / "bin" / "openssl"), str(prefix / "bin" / "curl")
    made_by, with_curl = {"version": (program, "version")}, {"version": (page, "--version")}
    hidden: dict[str, Any] = {"also": PUBLIC, "is_hidden": True}
    configs = ("-ech_config_list", accepted)

    def openssl(title: str, *options: str, port: int = 443, **more: Any) -> Client:
        command = s_client(*options, program=program, port=port)
        return Client(f"openssl s_client 4, {title}", command, "tls", **made_by, **more)

    def fetch(title: str, ech: str, port: int = 443, **more: Any) -> Client:
        command = curl("--ech", ech, program=page, port=port)
        return Client(f"curl with OpenSSL 4, {title}", command, "tls", **with_curl, **more)

    quic = s_client("-quic", "-alpn", "h3", program=program, port=4431)
    return [
        openssl("X25519MLKEM768"),
        openssl("ECH", *configs, port=ECH_PORT, **hidden),
        openssl("ECH without SNI", "-ech_no_outer_sni", *configs, port=ECH_PORT, is_hidden=True),
        openssl("ECH that the server ignores", *configs, **hidden),
        openssl("GREASE of ECH", "-ech_grease"),
        Client("openssl s_client 4, QUIC", quic, "quic", **made_by),
        fetch("ECH", "ecl:" + accepted, port=ECH_PORT, **hidden),
        fetch("ECH that the server ignores", "ecl:" + accepted, **hidden),
        fetch("GREASE of ECH", "grease"),
    ]


def write_ech_key(prefix: Path, path: Path) -> str:
    """Writes the key of a server that decrypts hellos, as OpenSSL reads it. Returns the
    configuration for its clients."""
    program = str(prefix / "bin" / "openssl")
    command = [program, "ech", "-public_name", PUBLIC, "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    lines = path.read_text("ascii").split("-----BEGIN ECHCONFIG-----\n")[1].splitlines()
    return "".join(line for line in lines if not line.startswith("-----"))


# ---- namespaces ---------------------------------------------------------------------------------


def _unshare(flags: int) -> None:
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a namespace; run as root")


def make_network(names: list[str], folder: Path) -> int:
    """Moves this process into namespaces of its own: the server's network, and an /etc/hosts that
    has the names. Returns a descriptor of the client's network, at the other end of a cable."""
    _unshare(CLONE_NEWNET | CLONE_NEWNS)
    client = os.open("/proc/self/ns/net", os.O_RDONLY)
    run = lambda command: subprocess.run(["ip", *command.split()], check=True)  # noqa: E731
    run("link set lo up")
    keeper = subprocess.Popen(["sleep", "3600"])
    _unshare(CLONE_NEWNET)
    run("link set lo up")
    run(f"link add server type veth peer name client netns {keeper.pid}")
    run(f"addr add {SERVER}/24 dev server")
    run("link set server up")
    run(f"route add 10.9.0.0/24 dev server src {SERVER}")
    with inside(client):
        run(f"addr add {CLIENT}/24 dev client")
        run("link set client up")
        run(f"route add 192.0.2.0/24 dev client src {CLIENT}")
    keeper.kill()
    keeper.wait()
    libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{SERVER} {name}\n" for name in ["localhost", *names]), "ascii")
    if libc.mount(str(hosts).encode(), b"/etc/hosts", None, MS_BIND, None) != 0:
        raise OSError(ctypes.get_errno(), "cannot replace /etc/hosts")
    return client


@contextmanager
def inside(network: int) -> Iterator[None]:
    """Keeps this thread, and the processes that it starts, in the network of the descriptor."""
    outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        libc.setns(network, CLONE_NEWNET)
        yield
    finally:
        libc.setns(outside, CLONE_NEWNET)
        os.close(outside)


class Recorder:
    """Records the frames of the client's interface into a capture."""

    def __init__(self, network: int) -> None:
        with inside(network):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self._socket.bind(("client", 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self._socket.settimeout(0.1)
        self._frames: list[tuple[int, bytes]] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                self._frames.append((time.time_ns(), self._socket.recv(1 << 17)))
            except TimeoutError:
                if self._ends.is_set():
                    return

    def write(self, path: Path) -> None:
        """Ends recording when no frame comes any more, and writes the capture."""
        self._ends.set()
        self._thread.join()
        self._socket.close()
        out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)]
        for t_ns, data in self._frames:
            sizes = (len(data), len(data))
            out.append(struct.pack("<IIII", t_ns // 10**9, t_ns % 10**9, *sizes) + data)
        path.write_bytes(b"".join(out))


# ---- certificates -------------------------------------------------------------------------------


def write_certificate(folder: Path, names: list[str]) -> None:
    """Writes cert.pem and key.pem, for all names."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DOMAIN)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=10))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, plain))


def ech_configs(public_name: str) -> bytes:
    """Returns an ECHConfigList (RFC 9849, 4) of a server that is not there."""
    key = x25519.X25519PrivateKey.generate().public_key().public_bytes_raw()
    contents = struct.pack(">BHH", 7, 0x0020, len(key)) + key + struct.pack(">HHH", 4, 1, 1)
    contents += struct.pack(">BB", 0, len(public_name)) + public_name.encode() + b"\0\0"
    config = struct.pack(">HH", 0xFE0D, len(contents)) + contents
    return struct.pack(">H", len(config)) + config


# ---- runs and table -----------------------------------------------------------------------------


def is_installed(client: Client) -> bool:
    """Returns true if the client can run here."""
    if client.package:
        return bool(version_of(client))
    return shutil.which(client.version[0]) is not None


def version_of(client: Client) -> str:
    """Returns the client's version, or an empty text."""
    if client.package:
        try:
            return version(client.package)
        except PackageNotFoundError:
            return ""
    done = subprocess.run(client.version, capture_output=True, text=True, check=False)
    words = done.stdout.split("\n")[0].split()
    return next((word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit()), "")


def record(client: Client, network: int, path: Path) -> None:
    """Runs a client and records its packets."""
    recorder = Recorder(network)
    with inside(network):
        process = subprocess.Popen(
            client.command(client.name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    recorder.write(path)


def read(path: Path) -> tuple[set[tuple[str, str]], set[str], bool]:
    """Returns the (source, name) pairs that zanon-net reads of a capture, states of the client's
    flows without a name, and true if a flow offered ECH. A server may repeat datagrams that the
    client before has not acknowledged."""
    command = [str(Path(sys.executable).with_name("zanon-net")), "run", str(path), "--z", "1"]
    command += ["--internal", f"{CLIENT}/32", "--dns-votes", "all", "--format", "jsonl"]
    command += ["--format", "observations", "--out", str(path.with_suffix(""))]
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    subprocess.run([*command, "-q"], check=True)
    folder = path.with_suffix("")
    flows, seen = lines_of(folder / "flows.jsonl"), lines_of(folder / "observations.jsonl")
    found = {(entry["name_source"], entry["name"]) for entry in seen}
    states = {flow["name_status"] for flow in flows if flow["c_pkts"]} - {"released", "none"}
    return found, states, any(flow["ech"] == "offered" for flow in flows)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Returns the lines of a log, which is not there if it would be empty."""
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    )


def kinds_of_quic(path: Path) -> set[str]:
    """Returns the types of the long headers in the datagrams of a capture, whose frames are IPv4
    in Ethernet."""
    found: set[str] = set()
    for frame in zanon_net.frames(path, filter="ip and udp", count=1):
        found |= {packet.type for packet in parse.quic_packets(frame.buffer[42:]).packets}
    return found


def expected(client: Client) -> set[tuple[str, str]]:
    """Returns the pairs that a client's packets show."""
    names = {client.also, "" if client.is_hidden else client.name} - {""}
    return {(client.source, name) for name in names}


def table(rows: list[tuple[str, ...]]) -> str:
    """Returns the rows as a table of Markdown."""
    head = ("client", "version", "name read in", "ECH", "QUIC packets", "result")
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows))


def main() -> int:
    """Record, read and print."""
    parser = argparse.ArgumentParser(description="Captures of real clients, read by zanon-net.")
    parser.add_argument("--out", type=Path, help="folder for the captures")
    parser.add_argument("--only", default="", help="clients whose title contains this text")
    parser.add_argument("--openssl4", type=Path, help="prefix of OpenSSL 4, and of curl with it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        clients = list(CLIENTS)
        if options.openssl4 is not None:
            accepted = write_ech_key(options.openssl4, folder / "ech.pem")
            clients += clients_of_openssl4(options.openssl4, accepted)
        chosen = [client for client in clients if options.only in client.title]
        installed = [client for client in chosen if is_installed(client)]
        out = options.out or folder / "captures"
        out.mkdir(parents=True, exist_ok=True)
        names = [client.name for client in installed]
        write_certificate(folder, [*names, PUBLIC])
        (folder / "ech").write_bytes(ech_configs(PUBLIC))
        os.environ["CLIENTS_FOLDER"] = made
        network = make_network(names, folder)
        command = [sys.executable, str(HERE / "clients_servers.py"), SERVER, made]
        if options.openssl4 is not None:
            command.append(str(options.openssl4 / "bin" / "openssl"))
        servers = subprocess.Popen(command)
        try:
            wait_for(folder / "ready", servers)
            rows, wrong = [], 0
            for client in installed:
                path = out / (client.name.removesuffix("." + DOMAIN) + ".pcap")
                record(client, network, path)
                found, states, ech = read(path)
                good = found == expected(client) and not states
                wrong += not good
                sources = ", ".join(sorted({source for source, _ in found})) or "none"
                special = sorted(kinds_of_quic(path) & {"retry", "0-rtt", "negotiation"})
                result = f"wrong: {sorted(found)} {sorted(states)}"
                if good:
                    result = ", ".join(sorted(name for _, name in found)) or "no name"
                    result = result.replace(client.name, "its name")
                offered = "offered" if ech else ""
                facts = (version_of(client), sources, offered, ", ".join(special), result)
                rows.append((client.title, *facts))
                print(f"{client.title}: {result}", file=sys.stderr)
        finally:
            servers.terminate()
            servers.wait()
    print(table(rows))
    for client in chosen:
        if client not in installed:
            print(f"not installed: {client.title}")
    if options.openssl4 is None:
        print("left out: clients of OpenSSL 4; give their prefix with --openssl4")
    return 1 if wrong else 0


def wait_for(path: Path, servers: subprocess.Popen[bytes]) -> None:
    """Waits until the servers listen."""
    for _ in range(200):
        if path.exists():
            return
        if servers.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("clients: the servers did not start")


if __name__ == "__main__":
    raise SystemExit(main())
