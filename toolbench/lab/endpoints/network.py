"""Network settings of a provider: proxy, certificates, query parameters and the header for the key."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

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
MAX_QUERY_CHARACTERS = 200
_QUERY_PAIR = re.compile(r"[A-Za-z0-9_.~%+*:,/@!$'()-]+=[A-Za-z0-9_.~%+*:,/@!$'()-]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,60}")
_RESERVED_HEADERS = frozenset(
    {"accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host"}
    | {"transfer-encoding", "user-agent"}
)
KEY_IN_CERTIFICATE = (
    "This contains a private key, which pages would show: create a new key and enter it in its own field."
)
REROUTED_KEY_ERROR = (
    "With another proxy or CA file, another machine may read the key: enter the key again, or choose to remove the "
    "stored key."
)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Network settings of a provider as a user enters them.

    Attributes:
        proxy: URL of a proxy, with or without a login; "" for none. Without a login, the stored login of the same proxy
            is kept.
        remove_proxy_login: whether to delete the stored login.
        ca: certificates in PEM to trust in addition to those of the system; "" for none.
        client_certificate: certificate in PEM; "" for none, which also deletes the stored private key.
        client_key: private key of the certificate in PEM; "" to keep the stored key.
        query: query parameters of every request, such as api-version=2024-10-21.
        key_header: name of the header for the key; "" for the header of the API.
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


def list_network_errors(
    settings: NetworkSettings, provider: Provider, secrets: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each form field with its error; the error is "" if the field is valid.

    Args:
        settings: what the user entered.
        provider: the stored provider; its private key is checked if none is entered.
        secrets: known secrets, which the query must not contain, because pages show it.
    """
    yield "proxy_url", _find_proxy_error(settings, provider)
    yield "ca_pem", _find_certificate_error(settings.ca)
    yield "client_certificate", _find_certificate_error(settings.client_certificate)
    yield "client_key", _find_client_key_error(settings, provider)
    yield "query", _find_query_error(settings.query.strip(), secrets)
    yield "key_header", _find_key_header_error(settings.key_header.strip())


def is_rerouted(settings: NetworkSettings, provider: Provider) -> bool:
    """Return whether the settings let another machine read a stored key.

    A new CA file does, and a new proxy if the stored URL has no TLS. Removing either does not.
    """
    with suppress(NetworkSettingsError):
        address = split_proxy(settings.proxy)[0] if settings.proxy.strip() else ""
        has_no_tls = urlsplit(provider.base_url).scheme == "http"
        if address and has_no_tls and address != provider.proxy_url:
            return True
    return bool(settings.ca.strip()) and _clean_pem(settings.ca) != provider.ca_pem


def change_network(provider: Provider, settings: NetworkSettings) -> None:
    """Set the network columns of the provider; the caller saves it.

    Raises:
        KeyUnavailableError: a stored secret that is kept cannot be decrypted.
        NetworkSettingsError: the URL of the proxy is not valid.
    """
    address, login = split_proxy(settings.proxy) if settings.proxy.strip() else ("", "")
    if _is_login_kept(settings, provider, address):
        login = read_network_access(provider).proxy_login
    key = settings.client_key.strip()
    if settings.client_certificate.strip() and not key:
        key = read_network_access(provider).certificate_key
    secrets = {"proxy_login": login, "client_key": key}
    provider.proxy_url = address
    provider.ca_pem, provider.client_certificate = _clean_pem(settings.ca), _clean_pem(settings.client_certificate)
    provider.query, provider.key_header = settings.query.strip().lstrip("?"), settings.key_header.strip()
    # Encrypting equal secrets gives other bytes, and with them the list of models would be requested again.
    if secrets != _read_secrets(provider):
        provider.network_encrypted = encrypt(json.dumps(secrets)) if any(secrets.values()) else None


def list_stored_secrets(provider: Provider) -> set[str]:
    """Return the names of the stored network secrets; all names if they cannot be decrypted."""
    secrets = _read_secrets(provider)
    return {"proxy_login", "client_key"} if secrets is None else {name for name, value in secrets.items() if value}


def _read_secrets(provider: Provider) -> dict[str, str] | None:
    """Return the stored secrets; None if they cannot be decrypted."""
    try:
        network = read_network_access(provider)
    except KeyUnavailableError:
        return None
    return {"proxy_login": network.proxy_login, "client_key": network.certificate_key}


def _is_login_kept(settings: NetworkSettings, provider: Provider, address: str) -> bool:
    """Return whether the stored login is kept: the proxy is the same, and no login is entered or removed."""
    is_same = bool(address) and address == provider.proxy_url and "@" not in settings.proxy
    return is_same and not settings.remove_proxy_login and provider.network_encrypted is not None


def _clean_pem(text: str) -> str:
    """Return the text without blanks around its lines."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _find_proxy_error(settings: NetworkSettings, provider: Provider) -> str:
    try:
        address, _ = split_proxy(settings.proxy) if settings.proxy.strip() else ("", "")
        if _is_login_kept(settings, provider, address):
            read_network_access(provider)
    except (NetworkSettingsError, KeyUnavailableError) as error:
        return str(error)
    return ""


def _find_certificate_error(text: str) -> str:
    if PRIVATE_KEY_MARK in text:
        return KEY_IN_CERTIFICATE
    try:
        if text.strip():
            check_certificates(text)
    except NetworkSettingsError as error:
        return str(error)
    return ""


def _find_client_key_error(settings: NetworkSettings, provider: Provider) -> str:
    certificate, key = settings.client_certificate.strip(), settings.client_key.strip()
    try:
        if key:
            check_private_key(key)
            if not certificate:
                return "Enter the client certificate of this private key."
        if not certificate or _find_certificate_error(certificate):
            return ""
        key = key or read_network_access(provider).certificate_key
        if not key:
            return "Enter the private key of the client certificate."
        check_client_certificate(certificate, key)
    except (NetworkSettingsError, KeyUnavailableError) as error:
        return str(error)
    return ""


def _find_query_error(text: str, secrets: Iterable[str]) -> str:
    if not text:
        return ""
    parts = text.lstrip("?").split("&")
    if len(text) > MAX_QUERY_CHARACTERS or not all(_QUERY_PAIR.fullmatch(part) for part in parts):
        return f"Enter pairs such as api-version=2024-10-21, joined by &, at most {MAX_QUERY_CHARACTERS} characters."
    values = "/".join(value for _, value in parse_qsl(text, keep_blank_values=True))
    if find_keys(f"/{values}", secrets):
        return "Pages show query parameters, so a key cannot be one of them: enter it in the field of the key."
    return ""


def _find_key_header_error(text: str) -> str:
    if not text:
        return ""
    if not _HEADER_NAME.fullmatch(text):
        return "Enter the name of a header with letters, digits and hyphens, such as api-key."
    is_reserved = text.lower() in _RESERVED_HEADERS
    return f"Toolbench sets the header {text} itself: enter the header for the key." if is_reserved else ""
