"""Parts of a company's network: a certificate authority, servers that require client certificates, a CONNECT proxy."""

import base64
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority that signs for 127.0.0.1."""

    def __init__(self, name: str = "Company CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self._build(self._name, self._key.public_key(), authority=True).sign(self._key, hashes.SHA256())
        self.pem = signed.public_bytes(Encoding.PEM).decode()

    def _build(
        self, name: x509.Name, public: ec.EllipticCurvePublicKey, *, authority: bool = False, days: int = 1
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, name, public, x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=3)).not_valid_after(now + timedelta(days=days))
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        subject = x509.SubjectKeyIdentifier.from_public_key(public)
        return builder.add_extension(subject, critical=False)

    def issue(
        self, *, host: str = "127.0.0.1", days: int = 1, purpose: x509.ObjectIdentifier | None = None
    ) -> tuple[str, str]:
        """Return a certificate and its private key in PEM.

        Args:
            days: days until it expires; a negative number gives an expired one.
            purpose: the only purpose of the certificate; None allows every one.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(host))]
        builder = self._build(name, key.public_key(), days=days)
        if purpose is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        signed = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(
            self._key, hashes.SHA256()
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return signed.public_bytes(Encoding.PEM).decode(), private

    def build_server_context(
        self, folder: Path, *, clients: "Authority | None" = None, **certificate: Any
    ) -> ssl.SSLContext:
        """Return the TLS context of a server.

        Args:
            folder: folder for the server's certificate.
            clients: authority whose client certificates the server requires; None for no client certificate.
            certificate: arguments of `issue`.
        """
        path = folder / "server.pem"
        path.write_text("".join(self.issue(**certificate)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=clients.pem)
        return context


class ConnectProxy:
    """A proxy that tunnels CONNECT requests, and answers every other request itself.

    Attributes:
        seen: request lines.
    """

    def __init__(self, *, login: str = "", refusal: str = "") -> None:
        self._expected = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self._refusal = refusal
        self.seen: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "ConnectProxy":
        self._threads[0].start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for open_socket in self._sockets:
            close_socket(open_socket)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            self._start(self._serve, client)

    def _start(self, target: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = client.recv(4096)
            if not chunk:
                return
            head += chunk
        lines = head.decode("latin-1").split("\r\n")
        self.seen.append(lines[0])
        method, target, _ = lines[0].split(" ")
        if self._expected and f"proxy-authorization: {self._expected}".lower() not in [line.lower() for line in lines]:
            self._refuse(client, "407 Proxy Authentication Required")
        elif self._refusal:
            self._refuse(client, self._refusal)
        elif method == "CONNECT":
            self._tunnel(client, target)
        else:
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n{"through": "the proxy"}')
            close_socket(client)

    def _refuse(self, client: socket.socket, status: str) -> None:
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        close_socket(client)

    def _tunnel(self, client: socket.socket, target: str) -> None:
        host, _, port = target.rpartition(":")
        server = socket.create_connection((host, int(port)))
        self._sockets.append(server)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._start(copy_bytes, server, client)
        copy_bytes(client, server)


def copy_bytes(source: socket.socket, target: socket.socket) -> None:
    """Pass on bytes until one side ends."""
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    for end in (source, target):
        close_socket(end)


def close_socket(open_socket: socket.socket) -> None:
    """Close a socket that another thread may read."""
    with suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)
    open_socket.close()
