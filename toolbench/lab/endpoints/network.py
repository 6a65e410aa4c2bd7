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

PRIVATE_KEY_MARK = "PRIVATE KEY-----"  # end of the first line of a private key in PEM
MAX_QUERY_CHARACTERS = 200
# One parameter, such as api-version=2024-10-21.
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
        ca: certificates in PEM to trust in addition to the default ones; "" for none.
        client_certificate: certificate in PEM; "" for none, which also deletes the stored private key.
        client_key: private key of the client certificate in PEM; "" to keep the stored private key.
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
        """Whether the user entered a login of the proxy or a private key."""
        return bool(self.client_key.strip()) or "@" in self.proxy


def list_network_errors(
    settings: NetworkSettings, provider: Provider, secrets: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each form field with its error; the error is "" if the field is valid.

    Args:
        settings: what the user entered.
        provider: the stored provider; its private key and login are checked if they are kept.
        secrets: known secrets, which the query must not contain, because pages show it.
    """
    yield "proxy_url", _find_proxy_error(settings, provider)
    yield "ca_pem", _find_certificate_error(settings.ca)
    yield "client_certificate", _find_certificate_error(settings.client_certificate)
    yield "client_key", _find_client_key_error(settings, provider)
    yield "query", _find_query_error(settings.query.strip(), secrets)
    yield "key_header", _find_key_header_error(settings.key_header.strip())


def is_rerouted(settings: NetworkSettings, provider: Provider) -> bool:
    """Return whether the settings could let another machine read a stored key.

    A new or changed CA file could, and so could a new or changed proxy if the stored base URL has no TLS. A removed CA
    file or proxy could not. An invalid proxy is ignored.
    """
    with suppress(NetworkSettingsError):
        proxy_url = split_proxy(settings.proxy)[0] if settings.proxy.strip() else ""
        has_no_tls = urlsplit(provider.base_url).scheme == "http"
        if proxy_url and has_no_tls and proxy_url != provider.proxy_url:
            return True
    return bool(settings.ca.strip()) and _clean_pem(settings.ca) != provider.ca_pem


def change_network(provider: Provider, settings: NetworkSettings) -> None:
    """Set the network columns of the provider; the caller saves it.

    Raises:
        KeyUnavailableError: a stored secret that is kept cannot be decrypted.
        NetworkSettingsError: the URL of the proxy is not valid.
    """
    proxy_url, login = split_proxy(settings.proxy) if settings.proxy.strip() else ("", "")
    if _is_login_kept(settings, provider, proxy_url):
        login = read_network_access(provider).proxy_login
    key = settings.client_key.strip()
    if settings.client_certificate.strip() and not key:
        key = read_network_access(provider).certificate_key
    secrets = {"proxy_login": login, "client_key": key}
    provider.proxy_url = proxy_url
    provider.ca_pem, provider.client_certificate = _clean_pem(settings.ca), _clean_pem(settings.client_certificate)
    provider.query, provider.key_header = settings.query.strip().lstrip("?"), settings.key_header.strip()
    # Encryption gives other bytes each time, and the cache key of the list of models depends on the bytes.
    if secrets != _read_secrets(provider):
        provider.network_encrypted = encrypt(json.dumps(secrets)) if any(secrets.values()) else None


def list_network_secret_names(provider: Provider) -> set[str]:
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


def _is_login_kept(settings: NetworkSettings, provider: Provider, proxy_url: str) -> bool:
    """Return whether the stored login is kept: the proxy is the same, and the user neither enters nor removes a login.

    Args:
        settings: what the user entered.
        provider: the stored provider.
        proxy_url: the entered URL of the proxy, without a login.
    """
    is_same_proxy = bool(proxy_url) and proxy_url == provider.proxy_url and "@" not in settings.proxy
    return is_same_proxy and not settings.remove_proxy_login and provider.network_encrypted is not None


def _clean_pem(text: str) -> str:
    """Return the text without blanks around its lines and without blank lines at its ends."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _find_proxy_error(settings: NetworkSettings, provider: Provider) -> str:
    try:
        proxy_url, _ = split_proxy(settings.proxy) if settings.proxy.strip() else ("", "")
        if _is_login_kept(settings, provider, proxy_url):
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
    # The leading slash makes this a path: in a URL, `find_keys` would skip the host.
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
