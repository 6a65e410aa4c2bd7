"""Proxy and certificates of an endpoint as arguments for aiohttp, and checks of the values that users enter."""

import functools
import os
import ssl
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp
import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from toolbench.providers.endpoint import NetworkAccess

PROXY_SCHEMES = ("http", "https")
_PEM_EXAMPLE = "-----BEGIN CERTIFICATE-----"


class NetworkSettingsError(ValueError):
    """Error of a proxy, certificate or key that cannot be used.

    The message says which one and why, without quoting it.
    """


@functools.lru_cache(maxsize=64)
def build_ssl_context(network: NetworkAccess) -> ssl.SSLContext:
    """Build the TLS settings, with the default CAs, the provider's CAs and the client certificate.

    The default CAs are those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else those of the package certifi.

    Raises:
        NetworkSettingsError: a certificate or key cannot be read.
    """
    context = httpx.create_ssl_context()
    if network.ca:
        try:
            context.load_verify_locations(cadata=network.ca)
        except (ssl.SSLError, ValueError) as error:
            raise NetworkSettingsError("CA file: it holds no certificate in PEM that can be read.") from error
    if network.certificate:
        _load_client_certificate(context, network)
    return context


def build_proxy_arguments(network: NetworkAccess, headers: list[tuple[str, str]], *, tunnel: bool) -> dict[str, Any]:
    """Build aiohttp's arguments for the proxy of a request.

    Args:
        network: proxy and its login.
        headers: headers of the request; the login is added to them if there is no tunnel.
        tunnel: whether the proxy opens a tunnel (HTTPS); the login is then sent with the request for the tunnel.

    Returns:
        {} if there is no proxy.
    """
    if not network.proxy:
        return {}
    login = _build_proxy_header(network.proxy_login)
    if not tunnel:
        headers.extend(login.items())
    return {"proxy": network.proxy, "proxy_headers": login if tunnel else None}


def _build_proxy_header(login: str) -> dict[str, str]:
    user, _, password = login.partition(":")
    return {"Proxy-Authorization": aiohttp.encode_basic_auth(user, password, "utf-8")} if login else {}


def _load_client_certificate(context: ssl.SSLContext, network: NetworkAccess) -> None:
    """Load the client certificate through a file in memory.

    Python loads a certificate only from a file, and the private key must not be written to a disk.

    Raises:
        NetworkSettingsError: the certificate or its key cannot be read.
    """
    descriptor = os.memfd_create("client-certificate")
    try:
        os.write(descriptor, f"{network.certificate.strip()}\n{network.certificate_key.strip()}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except (ssl.SSLError, OSError) as error:
        raise NetworkSettingsError("Client certificate: certificate and private key cannot be used.") from error
    finally:
        os.close(descriptor)


def split_proxy(text: str) -> tuple[str, str]:
    """Split the address of a proxy that a user entered.

    Returns:
        The address without its login, and the login as `user:password`, decoded, or "" if there is none.

    Raises:
        NetworkSettingsError: the text is not the address of a proxy.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _build_proxy_error() from None
    if (
        parts.scheme not in PROXY_SCHEMES
        or not host
        or port == 0
        or _has_path_or_query(parts)
        or set(text.strip()) & set(" \t\n")
    ):
        raise _build_proxy_error()
    login, _, location = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    return f"{parts.scheme}://{location}", f"{unquote(user)}:{unquote(password)}" if login else ""


def _has_path_or_query(parts: SplitResult) -> bool:
    return bool(parts.path.strip("/") or parts.query or parts.fragment)


def _build_proxy_error() -> NetworkSettingsError:
    return NetworkSettingsError(
        "A proxy is an address such as http://proxy.example:3128, or http://user:password@proxy.example:3128."
    )


def check_certificates(text: str) -> None:
    """Check that a text holds at least one certificate in PEM.

    Raises:
        NetworkSettingsError: the text holds no certificate that can be read.
    """
    _read_certificates(text)


def check_client_certificate(certificate: str, key: str) -> None:
    """Check that a certificate and a private key belong together.

    Args:
        certificate: the certificate in PEM; in a chain it comes first.
        key: the private key in PEM.

    Raises:
        NetworkSettingsError: one of them cannot be read, or they do not belong together.
    """
    certified_public_key = _read_certificates(certificate)[0].public_key()
    public_key = _read_private_key(key).public_key()
    if _render_public_key(public_key) != _render_public_key(certified_public_key):
        raise NetworkSettingsError("The private key does not belong to the client certificate.")


def check_private_key(text: str) -> None:
    """Check that a text is a private key in PEM without a password.

    Raises:
        NetworkSettingsError: the text is not such a key.
    """
    _read_private_key(text)


def _read_certificates(text: str) -> list[x509.Certificate]:
    try:
        certificates = x509.load_pem_x509_certificates(text.strip().encode())
    except ValueError:
        certificates = []
    if not certificates:
        raise NetworkSettingsError(f"No certificate in PEM can be read here: one begins with {_PEM_EXAMPLE}.")
    return certificates


def _read_private_key(text: str) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(text.strip().encode(), password=None)
    except TypeError:
        raise NetworkSettingsError("The private key has a password: enter it without one.") from None
    except Exception as error:  # cryptography raises not only ValueError for unknown keys
        raise NetworkSettingsError("No private key in PEM can be read here.") from error


def _render_public_key(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
