"""Error codes of failed exchanges, and classification of responses by the table in data/outcomes.json."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources

import httpx

from toolbench.engine.events import ExchangeError
from toolbench.engine.types import JsonObject
from toolbench.providers.http.aiohttp_transport import DnsError, ServerDisconnectedError, TlsError
from toolbench.providers.http.error_body import UpstreamError, has_answer_begun, has_json_event, parse_error, parse_json

MAX_MESSAGE_CHARS = 2000
_ANSWER_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|:|(?:data|event|error|id|retry):)")  # JSON or an event stream
_STATUS_BY_TEXT = {str(status): status for status in range(400, 600)}

# The first matching row counts, so subclasses come before their base classes.
_CODES_OF_EXCEPTIONS: tuple[tuple[type[Exception], str], ...] = (
    (DnsError, "dns"),
    (TlsError, "tls"),
    (httpx.ConnectTimeout, "connect_timeout"),
    (httpx.PoolTimeout, "connect_timeout"),
    (httpx.ConnectError, "connection_refused"),
    (httpx.TimeoutException, "read_timeout"),
    (ServerDisconnectedError, "disconnected"),
    (httpx.NetworkError, "connection_reset"),
    (httpx.UnsupportedProtocol, "not_sendable"),
    (httpx.LocalProtocolError, "not_sendable"),
    (httpx.DecodingError, "encoding_unreadable"),
    (httpx.HTTPError, "not_http"),
)


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Row of the table of error codes.

    Attributes:
        code: the name under which the failure is stored.
        error_class: network, garbage, server, limit, access, rejected, model, content, or ours (Toolbench ended it).
        infrastructure: whether the failure counts as an infrastructure error.
        retryable: whether the same request may be sent again.
        sentence: message for an error without one.
    """

    code: str
    error_class: str
    infrastructure: bool
    retryable: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class _TextRule:
    """Rule that selects `code` if an error with one of the statuses contains one of the lower-case words."""

    code: str
    statuses: frozenset[int]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ErrorTable:
    """Contents of data/outcomes.json.

    Attributes:
        rows: row by code.
        text_rules: rules in order of precedence.
        code_by_status: code by HTTP status.
        code_by_hundred: code by the first digit of the status, if `code_by_status` lacks it.
        word_statuses: (word in an error's code or type, HTTP status that it means), in order of precedence.
    """

    rows: Mapping[str, ErrorCode]
    text_rules: tuple[_TextRule, ...]
    code_by_status: Mapping[int, str]
    code_by_hundred: Mapping[int, str]
    word_statuses: tuple[tuple[str, int], ...]


@functools.cache
def _load_table() -> _ErrorTable:
    data = json.loads(resources.files("toolbench.providers").joinpath("data/outcomes.json").read_text("utf-8"))
    rows = {
        row["code"]: ErrorCode(row["code"], row["class"], row["infrastructure"], row["retryable"], row["sentence"])
        for row in data["rows"]
    }
    return _ErrorTable(
        rows=rows,
        text_rules=tuple(
            _TextRule(row["code"], frozenset(row["statuses"]), tuple(row["any"])) for row in data["by_text"]
        ),
        code_by_status={int(status): code for status, code in data["by_status"].items()},
        code_by_hundred={int(hundred): code for hundred, code in data["by_hundred"].items()},
        word_statuses=tuple((word, status) for word, status in data["status_of_word"]),
    )


def lookup_error_code(code: str) -> ErrorCode:
    """Return the table's row for a code.

    Raises:
        KeyError: the table does not have the code.
    """
    return _load_table().rows[code]


def build_exchange_error(code: str, message: str = "", *, status: int | None = None, hint: str = "") -> ExchangeError:
    """Build an error with the properties that the table has for its code.

    Args:
        code: a code of the table.
        message: "" for the table's sentence; truncated to `MAX_MESSAGE_CHARS`, as is `hint`.
        status: the HTTP status, None if no response head arrived.
        hint: further text for people, such as the message of the server behind a router.

    Raises:
        KeyError: the table does not have the code.
    """
    row = lookup_error_code(code)
    return ExchangeError(
        code=code,
        message=message[:MAX_MESSAGE_CHARS] or row.sentence,
        status=status,
        infrastructure=row.infrastructure,
        retryable=row.retryable,
        tool_support=code == "tools_unsupported",
        hint=hint[:MAX_MESSAGE_CHARS],
    )


def classify_response(
    *,
    status: int | None,
    headers: JsonObject,
    body: bytes,
    exception: Exception | None = None,
) -> ExchangeError | None:
    """Return the error of a response, or None for a success whose body may be an answer.

    If the decoder cannot read such a body, `classify_unreadable` gives the error.

    Args:
        status: the HTTP status, None if no response head arrived.
        headers: response headers with lower-case names.
        body: the body without content coding, or the part that arrived before the exception.
        exception: the error that ended the exchange, or None. If the status is 300 or above, the status shows the error
            and the exception is ignored.
    """
    if exception is not None and (status is None or status < 300):
        return _classify_exception(exception, status, body)
    if status is None:
        return build_exchange_error("not_http")
    if 300 <= status < 400:
        target = headers.get("location", "an address that it does not name")
        message = f"The server redirects to {target}. Toolbench does not follow redirects."
        return build_exchange_error("redirect_refused", message, status=status)
    if status >= 400:
        error = parse_error(body, is_error=True)
        assert error is not None  # any body of an error status is read as an error
        return _classify_error(error, status, status)
    return _classify_success(status, body)


def classify_unreadable(status: int | None, body: bytes, reason: str = "") -> ExchangeError:
    """Return the error for a success whose body could not be read as an answer.

    An unexpected JSON object or stream is not an infrastructure error; any other body is one.

    Args:
        status: the HTTP status.
        body: the body without content coding.
        reason: why the decoder could not read a JSON object or a stream, for the message; "" for the table's sentence.
    """
    if isinstance(parse_json(body), dict) or has_json_event(body):
        return build_exchange_error("malformed_answer", reason, status=status)
    start = body[:200].decode("utf-8", "replace").strip()
    message = f"The body is not an answer: {start}" if start else "The body is empty."
    return build_exchange_error("not_an_answer", message, status=status)


def _classify_exception(exception: Exception, status: int | None, body: bytes) -> ExchangeError:
    code = next((code for kind, code in _CODES_OF_EXCEPTIONS if isinstance(exception, kind)), "not_http")
    if code != "encoding_unreadable" and has_answer_begun(body):
        code = "answer_cut"
    return build_exchange_error(code, str(exception), status=status)


def _classify_success(status: int, body: bytes) -> ExchangeError | None:
    if b'"error"' in body:
        error = parse_error(body, is_error=False)
        if error is not None:
            if error.after_output and not error.refuses_call:
                return build_exchange_error("answer_cut", error.message, status=status, hint=error.hint)
            return _classify_error(error, _find_status(error) or status, status)
    if _ANSWER_START.match(body):
        return None
    return classify_unreadable(status, body)


def _classify_error(error: UpstreamError, named_status: int, status: int) -> ExchangeError:
    """Return the error with the code of the first text rule that applies, else with that of `named_status`.

    Args:
        error: the parsed error.
        named_status: the status that the error names, else `status`. Below 400, text rules of all statuses apply.
        status: the status of the response.
    """
    table = _load_table()
    rules = (rule for rule in table.text_rules if named_status in rule.statuses or named_status < 400)
    code = next((rule.code for rule in rules if any(word in error.text for word in rule.words)), None)
    code = code or table.code_by_status.get(named_status) or table.code_by_hundred.get(named_status // 100, "not_http")
    return replace(
        build_exchange_error(code, error.message, status=status, hint=error.hint),
        generation=error.generation,
        named=error.named_places,
    )


def _find_status(error: UpstreamError) -> int | None:
    """Return the HTTP status that an error names by its code or by a word in its code or type, or None."""
    if error.code in _STATUS_BY_TEXT:
        return _STATUS_BY_TEXT[error.code]
    words = f"{error.code} {error.kind}".lower()
    return next((status for word, status in _load_table().word_statuses if word in words), None)
