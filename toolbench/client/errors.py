"""Exceptions of the client, built from the problem documents of the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """Field of a request that has to be changed, with a sentence that says how."""

    field: str
    message: str


@dataclass(eq=False)
class ToolbenchError(Exception):
    """Error of a request that the API refused, or of an answer that is not JSON.

    The subclasses are for the statuses 401, 403, 404, 409, 422 and 429; other errors, such as 400, 413, 415, 500 and
    503, are instances of this class.

    Attributes:
        status: HTTP status.
        title: the problem in a few words.
        detail: sentences that say what happened and what to do.
        errors: fields to change; always empty with another status than 422.
        agreed: number of paid requests to confirm; None if none has to be confirmed.
        paid_requests: maximum number of paid requests by name of the provider; empty if none has to be confirmed.
        retry_after: seconds to wait before the request is sent again; None if the response does not say it in seconds.
    """

    status: int
    title: str
    detail: str
    errors: tuple[FieldError, ...] = ()
    agreed: int | None = None
    paid_requests: Mapping[str, int] = field(default_factory=dict)
    retry_after: float | None = None

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}"


class AuthenticationFailedError(ToolbenchError):
    """Error for a token that is missing, unknown, expired or revoked (401)."""


class NotAllowedError(ToolbenchError):
    """Error for a request that the token's scopes or its owner's role do not allow (403)."""


class NotFoundError(ToolbenchError):
    """Error for a run, trial or other resource that does not exist (404)."""


class ConflictError(ToolbenchError):
    """Error for a request that is not possible now, or whose paid requests must be confirmed first (409)."""


class InvalidRequestError(ToolbenchError):
    """Error for a request with values that have to be changed (422)."""


class TooManyRequestsError(ToolbenchError):
    """Error for too many requests in a minute (429).

    If the response says how long to wait, the client has already waited and repeated the request three times.
    """


class UnreachableError(Exception):
    """Error of a request that got no response, or of an address or a token that cannot be used."""


ERRORS: Mapping[int, type[ToolbenchError]] = {
    401: AuthenticationFailedError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidRequestError,
    429: TooManyRequestsError,
}


def is_temporary(error: ToolbenchError | UnreachableError) -> bool:
    """Return whether the same request may succeed later: it got no answer, or status 429, 500 or more."""
    return isinstance(error, UnreachableError | TooManyRequestsError) or error.status >= 500


def build_error(status: int, document: Mapping[str, Any], retry_after: str | None) -> ToolbenchError:
    """Return the exception for a response.

    Args:
        status: HTTP status.
        document: the problem document; empty if the body is not a JSON object.
        retry_after: value of the header Retry-After, used if it is a whole number of seconds; None without the header.
    """
    field_errors = document.get("errors")
    field_errors = field_errors if isinstance(field_errors, list) else []
    return ERRORS.get(status, ToolbenchError)(
        status=status,
        title=str(document.get("title", f"Status {status}")),
        detail=str(document.get("detail", "The answer is not a problem document. Check the address of Toolbench.")),
        errors=tuple(
            FieldError(str(item["field"]), str(item["message"])) for item in field_errors if _is_field_error(item)
        ),
        agreed=document.get("agreed"),
        paid_requests=document.get("paid_requests") or {},
        retry_after=float(retry_after) if retry_after and retry_after.isdecimal() else None,
    )


def _is_field_error(item: Any) -> bool:
    return isinstance(item, Mapping) and {"field", "message"} <= item.keys()
