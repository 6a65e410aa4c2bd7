"""Descriptions of proxy and TLS errors that name the setting at fault."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from toolbench.providers.endpoint import NetworkAccess

# OpenSSL's codes of an invalid certificate (`X509_V_ERR_…`).
_UNKNOWN_ISSUER_CODES = frozenset({2, 18, 19, 20, 21})  # the chain ends in no trusted certificate
_WRONG_HOST_CODES = frozenset({62, 64})
_NOT_VALID_NOW_CODES = frozenset({9, 10})
# Words in the TLS alerts that a server sends about a client certificate.
_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")
_HANDSHAKE_ALERT = "HANDSHAKE_FAILURE"
_MAX_CAUSES = 10
_PROXY_LOGIN_STATUS = 407


@dataclass(frozen=True, slots=True)
class NetworkProblem:
    """Description of a failed connection.

    Attributes:
        sentence: what failed and which setting is at fault, for people.
        is_tls: whether the failure gets the error code `tls`. Only a proxy that cannot be reached does not.
    """

    sentence: str
    is_tls: bool = True


def describe_network_error(error: Exception, network: NetworkAccess) -> NetworkProblem | None:
    """Return a description of a proxy error, a wrong server certificate or a handshake that the server refused.

    Other errors, also other TLS errors, give None.
    """
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NetworkProblem(_describe_proxy_refusal(error, network))
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return NetworkProblem(f"Proxy: {network.proxy} cannot be reached: {error.strerror or error.os_error}.", False)
    tls_error = next((cause for cause in _iter_causes(error) if isinstance(cause, ssl.SSLError)), None)
    if tls_error is None:
        return None
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        return NetworkProblem(_describe_wrong_certificate(tls_error, network))
    reason = tls_error.reason or ""
    if "ALERT" in reason and any(word in reason for word in (*_CERTIFICATE_ALERTS, _HANDSHAKE_ALERT)):
        return NetworkProblem(_describe_alert(reason, network))
    return None


def describe_lost_connection(network: NetworkAccess) -> str:
    """Return a sentence that names the client certificate as a possible cause of a connection lost before a response.

    In TLS 1.3 a server refuses a client only after the handshake, and its reset may arrive before its alert. A provider
    with a CA file of its own may also require client certificates.

    Returns:
        A sentence with a space before it, or "" if neither a CA file nor a client certificate is entered.
    """
    if not (network.ca or network.certificate):
        return ""
    cause = "may refuse it" if network.certificate else "may require one, and none is entered"
    return f" Client certificate: the server {cause}."


def _iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, outermost first, without aiohttp's own errors.

    Some of aiohttp's errors are also an `ssl.SSLError`, but without details. At most `_MAX_CAUSES` errors are examined.
    """
    for _ in range(_MAX_CAUSES):
        if error is None:
            return
        if not isinstance(error, aiohttp.ClientError):
            yield error
        inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__


def _describe_proxy_refusal(error: aiohttp.ClientHttpProxyError, network: NetworkAccess) -> str:
    if error.status == _PROXY_LOGIN_STATUS:
        action = "refuses the user and password" if network.proxy_login else "asks for a user and a password"
        return f"Proxy: {network.proxy} {action} (HTTP {error.status})."
    return f"Proxy: {network.proxy} makes no connection to the server (HTTP {error.status})."


def _describe_wrong_certificate(error: ssl.SSLCertVerificationError, network: NetworkAccess) -> str:
    detail = error.verify_message or "certificate verify failed"
    if error.verify_code in _WRONG_HOST_CODES:
        return f"Server certificate: it is for another host than the address ({detail})."
    if error.verify_code in _NOT_VALID_NOW_CODES:
        return f"Server certificate: it is not valid now ({detail})."
    if error.verify_code not in _UNKNOWN_ISSUER_CODES:
        return f"Server certificate: it is refused ({detail})."
    if not network.ca:
        return f"CA file: none is entered, and no default CA signed the server's certificate ({detail})."
    return f"CA file: neither a CA in it nor a default CA signed the server's certificate ({detail})."


def _describe_alert(reason: str, network: NetworkAccess) -> str:
    detail = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
    if network.certificate:
        return f"Client certificate: the server refuses it ({detail})."
    if _HANDSHAKE_ALERT in reason:
        return f"TLS: the server ends the handshake; it may require a client certificate ({detail})."
    return f"Client certificate: the server requires one, and none is entered ({detail})."
