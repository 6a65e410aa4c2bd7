"""Errors of proxy and TLS in sentences that name the setting that causes them."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from toolbench.providers.endpoint import NetworkAccess

_UNKNOWN_ISSUER_CODES = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_… of a chain that ends in no trusted certificate
_WRONG_HOST_CODES = frozenset({62, 64})
_EXPIRED_CODES = frozenset({9, 10})
_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR")
_HANDSHAKE_ALERT = "HANDSHAKE_FAILURE"
_LOGIN_STATUS = 407


@dataclass(frozen=True, slots=True)
class NetworkProblem:
    """A sentence about a failed connection; `is_tls` is False if the proxy could not be reached at all."""

    sentence: str
    is_tls: bool = True


def describe_network_error(error: Exception, network: NetworkAccess) -> NetworkProblem | None:
    """Return what is wrong and which setting names it; None for an error of another kind."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return NetworkProblem(_describe_refusal(error, network))
    causes = (cause for cause in _iter_causes(error) if not isinstance(cause, aiohttp.ClientError))
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return NetworkProblem(f"Proxy: {network.proxy} cannot be reached: {error.strerror or error.os_error}.", False)
    if tls is None:
        return None
    if isinstance(tls, ssl.SSLCertVerificationError):
        return NetworkProblem(_describe_untrusted(tls, network))
    reason = tls.reason or ""
    if "ALERT" in reason and any(word in reason for word in (*_CERTIFICATE_ALERTS, _HANDSHAKE_ALERT)):
        return NetworkProblem(_describe_alert(reason, network))
    return None


def describe_lost_connection(network: NetworkAccess) -> str:
    """Return what may be the cause of a connection that ends before an answer, from a company network; "" without one.

    In TLS 1.3 a server refuses a client only after the handshake, and its reset may come before its alert.
    """
    if not (network.ca or network.certificate):
        return ""
    why = "may refuse it" if network.certificate else "may require one, and none is entered"
    return f" Client certificate: the server {why}."


def _iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what it was raised from, at most ten of them."""
    for _ in range(10):
        if error is None:
            return
        yield error
        inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__


def _describe_refusal(error: aiohttp.ClientHttpProxyError, network: NetworkAccess) -> str:
    if error.status == _LOGIN_STATUS:
        why = "refuses the user and password" if network.proxy_login else "asks for a user and a password"
        return f"Proxy: {network.proxy} {why} (HTTP {error.status})."
    return f"Proxy: {network.proxy} makes no connection to the server (HTTP {error.status})."


def _describe_untrusted(error: ssl.SSLCertVerificationError, network: NetworkAccess) -> str:
    detail = error.verify_message or "certificate verify failed"
    if error.verify_code in _WRONG_HOST_CODES:
        return f"Server certificate: it is for another host than the address ({detail})."
    if error.verify_code in _EXPIRED_CODES:
        return f"Server certificate: it is not valid now ({detail})."
    if error.verify_code in _UNKNOWN_ISSUER_CODES and not network.ca:
        return f"CA file: none is entered, and no CA of this machine signed the server's certificate ({detail})."
    return f"CA file: no CA in it or of this machine signed the server's certificate ({detail})."


def _describe_alert(reason: str, network: NetworkAccess) -> str:
    detail = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
    if network.certificate:
        return f"Client certificate: the server refuses it ({detail})."
    if _HANDSHAKE_ALERT in reason:
        return f"TLS: the server ends the handshake; it may require a client certificate ({detail})."
    return f"Client certificate: the server requires one, and none is entered ({detail})."
