"""Proxy and certificates of an endpoint in the form that the transport takes, and checks of what a person entered."""

import functools
import os
import ssl
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp
import httpx
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from toolbench.providers.endpoint import NetworkAccess

PROXY_SCHEMES = ("http", "https")
_PEM_EXAMPLE = "-----BEGIN CERTIFICATE-----"


class NetworkSettingsError(ValueError):
    """A proxy, certificate or key cannot be used; the text says which and why, without quoting it."""


@functools.lru_cache(maxsize=64)
def build_ssl_context(network: NetworkAccess) -> ssl.SSLContext:
    """Return the TLS settings: the CAs of this machine and the provider's, and its client certificate.

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
    """Return the arguments of a request for its proxy; {} without one.

    The login is sent with the request for a tunnel. Without a tunnel it is added to the `headers` of the request.
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
    """Load the client certificate from memory: Python reads it from a file only, and the key belongs on no disk."""
    held = os.memfd_create("client-certificate")
    try:
        os.write(held, f"{network.certificate.strip()}\n{network.certificate_key.strip()}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{held}")
    except (ssl.SSLError, OSError) as error:
        raise NetworkSettingsError("Client certificate: certificate and private key cannot be used.") from error
    finally:
        os.close(held)


def split_proxy(text: str) -> tuple[str, str]:
    """Return the address of a proxy without its login, and the login as `user:password`, "" for none.

    Raises:
        NetworkSettingsError: the text is no address of a proxy.
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
        or _has_path(parts)
        or set(text.strip()) & set(" \t\n")
    ):
        raise _build_proxy_error()
    login, _, place = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    return f"{parts.scheme}://{place}", f"{unquote(user)}:{unquote(password)}" if login else ""


def _has_path(parts: SplitResult) -> bool:
    return bool(parts.path.strip("/") or parts.query or parts.fragment)


def _build_proxy_error() -> NetworkSettingsError:
    return NetworkSettingsError(
        "A proxy is an address such as http://proxy.example:3128, or http://user:password@proxy.example:3128."
    )


def check_certificates(text: str) -> None:
    """Check that a text holds certificates in PEM.

    Raises:
        NetworkSettingsError: it does not.
    """
    _read_certificates(text)


def check_client_certificate(certificate: str, key: str) -> None:
    """Check that a certificate and a private key belong together.

    Raises:
        NetworkSettingsError: one of them cannot be read, or they do not belong together.
    """
    first = _read_certificates(certificate)[0]
    if _render_public_key(_read_private_key(key)) != first.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    ):
        raise NetworkSettingsError("The private key does not belong to the client certificate.")


def check_private_key(text: str) -> None:
    """Check that a text is a private key in PEM without a password.

    Raises:
        NetworkSettingsError: it is not.
    """
    _read_private_key(text)


def _read_certificates(text: str) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(text.strip().encode())
    except ValueError:
        found = []
    if not found:
        raise NetworkSettingsError(f"No certificate in PEM can be read here: one begins with {_PEM_EXAMPLE}.")
    return found


def _read_private_key(text: str) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(text.strip().encode(), password=None)
    except TypeError:
        raise NetworkSettingsError("The private key has a password: enter it without one.") from None
    except Exception as error:  # cryptography raises classes of its own for unknown kinds of keys
        raise NetworkSettingsError("No private key in PEM can be read here.") from error


def _render_public_key(key: PrivateKeyTypes) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
