"""Settings with which a provider is reached from a company network: proxy, certificates, query, header of the key."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from toolbench.lab.credentials.keys import KeyUnavailableError, encrypt, read_network_access
from toolbench.lab.models import Provider
from toolbench.providers.http.network_access import (
    NetworkSettingsError,
    check_certificates,
    check_client_certificate,
    check_private_key,
    split_proxy,
)
from toolbench.providers.masking.url_keys import find_keys

PRIVATE_KEY_MARK = "PRIVATE KEY-----"
_QUERY = re.compile(r"[A-Za-z0-9_.~%+*:,/@!$'()-]+=[A-Za-z0-9_.~%+*:,/@!$'()-]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,60}")
_TAKEN_HEADERS = frozenset(
    {"accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host"}
    | {"transfer-encoding", "user-agent"}
)
KEY_IN_CERTIFICATE = (
    "This holds a private key, which is shown here: enter the key in its own field, and make a new one."
)
REROUTED = (
    "With another proxy or CA file another machine may read the key: enter the key again, or choose to remove the "
    "stored key."
)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Network settings of a provider as a person enters them.

    Attributes:
        proxy: address of a proxy, with or without a login. Without one, the stored login of the same address is kept.
        remove_proxy_login: delete the stored login.
        ca: certificates in PEM that are trusted besides those of the machine.
        client_certificate: in PEM; blank removes the stored private key as well.
        client_key: private key in PEM; blank keeps the stored one.
        query: query parameters of every request.
        key_header: header that carries the bare key; blank for that of the API.
    """

    proxy: str = field(default="", repr=False)
    remove_proxy_login: bool = False
    ca: str = ""
    client_certificate: str = ""
    client_key: str = field(default="", repr=False)
    query: str = ""
    key_header: str = ""

    @property
    def has_secret(self) -> bool:
        """Whether a login or a private key is entered."""
        return bool(self.client_key.strip()) or "@" in self.proxy


def list_network_errors(wish: NetworkSettings, provider: Provider, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each field of the form with its error; "" if the field is valid.

    Args:
        wish: the settings.
        provider: the provider as it is stored; its private key is used where none is entered.
        known: secrets that shown fields must not have.
    """
    yield "proxy_url", _find_proxy_error(wish, provider)
    yield "ca_pem", _find_certificate_error(wish.ca)
    yield "client_certificate", _find_certificate_error(wish.client_certificate)
    yield "client_key", _find_client_key_error(wish, provider)
    yield "query", _find_query_error(wish.query.strip(), known)
    yield "key_header", _find_key_header_error(wish.key_header.strip())


def is_rerouted(wish: NetworkSettings, provider: Provider) -> bool:
    """Return whether another machine could read a stored key: through another CA, or a proxy without TLS behind it."""
    with suppress(NetworkSettingsError):
        address = split_proxy(wish.proxy)[0] if wish.proxy.strip() else ""
        is_plain = provider.base_url.startswith("http://")
        if address and is_plain and address != provider.proxy_url:
            return True
    return bool(wish.ca.strip()) and _clean_pem(wish.ca) != provider.ca_pem


def change_network(provider: Provider, wish: NetworkSettings) -> None:
    """Set the network columns of the row without saving it.

    Raises:
        KeyUnavailableError: stored secrets that are kept cannot be read.
    """
    address, login = split_proxy(wish.proxy) if wish.proxy.strip() else ("", "")
    if _is_login_kept(wish, provider, address):
        login = read_network_access(provider).proxy_login
    key = wish.client_key.strip()
    if wish.client_certificate.strip() and not key:
        key = read_network_access(provider).certificate_key
    secrets = {"proxy_login": login, "client_key": key}
    provider.proxy_url = address
    provider.ca_pem, provider.client_certificate = _clean_pem(wish.ca), _clean_pem(wish.client_certificate)
    provider.query, provider.key_header = wish.query.strip().lstrip("?"), wish.key_header.strip()
    provider.network_encrypted = encrypt(json.dumps(secrets)) if any(secrets.values()) else None


def _is_login_kept(wish: NetworkSettings, provider: Provider, address: str) -> bool:
    """Return whether the stored login stays, as it does for the same address unless another one is entered."""
    is_same = bool(address) and address == provider.proxy_url and "@" not in wish.proxy
    return is_same and not wish.remove_proxy_login and provider.network_encrypted is not None


def _clean_pem(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _find_proxy_error(wish: NetworkSettings, provider: Provider) -> str:
    try:
        address, _ = split_proxy(wish.proxy) if wish.proxy.strip() else ("", "")
        if _is_login_kept(wish, provider, address):
            read_network_access(provider)
    except (NetworkSettingsError, KeyUnavailableError) as error:
        return str(error)
    return ""


def _find_certificate_error(text: str) -> str:
    if PRIVATE_KEY_MARK in text:
        return KEY_IN_CERTIFICATE
    try:
        check_certificates(text) if text.strip() else None
    except NetworkSettingsError as error:
        return str(error)
    return ""


def _find_client_key_error(wish: NetworkSettings, provider: Provider) -> str:
    certificate, key = wish.client_certificate.strip(), wish.client_key.strip()
    try:
        if key:
            check_private_key(key)
            if not certificate:
                return "Enter the certificate that belongs to this key."
        if not certificate or _find_certificate_error(certificate):
            return ""
        key = key or read_network_access(provider).certificate_key
        if not key:
            return "Enter the private key of the client certificate."
        check_client_certificate(certificate, key)
    except (NetworkSettingsError, KeyUnavailableError) as error:
        return str(error)
    return ""


def _find_query_error(text: str, known: Iterable[str]) -> str:
    if not text:
        return ""
    parts = text.lstrip("?").split("&")
    if len(text) > 200 or not all(_QUERY.fullmatch(part) for part in parts):
        return "Query parameters are pairs such as api-version=2024-10-21, joined by &."
    values = "/".join(value for _, value in parse_qsl(text, keep_blank_values=True))
    if find_keys(f"/{values}", known):
        return "Query parameters are shown and stored, so a key cannot be among them: put it into the key field."
    return ""


def _find_key_header_error(text: str) -> str:
    if not text:
        return ""
    if not _HEADER_NAME.fullmatch(text):
        return "The name of a header has letters, digits and hyphens, such as api-key."
    return f"{text} has another meaning: name the header of the key." if text.lower() in _TAKEN_HEADERS else ""
