"""Errors of the client, from the problem documents of the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldError:
    """A field that has to be changed, and how."""

    field: str
    message: str


@dataclass(eq=False)
class ToolbenchError(Exception):
    """A request that the API refused; the detail says what to do.

    Attributes:
        status: the HTTP status.
        errors: the fields to change, with status 422.
        agreed: the number of paid requests to confirm; None where none have to be.
        retry_after: seconds to wait, with status 429.
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
    """The token is missing, unknown, expired or revoked (401)."""


class NotAllowedError(ToolbenchError):
    """The scope of the token or the role of its maker does not allow it (403)."""


class NotFoundError(ToolbenchError):
    """There is no such thing (404)."""


class ConflictError(ToolbenchError):
    """Not possible now, or paid requests have to be confirmed first (409)."""


class InvalidRequestError(ToolbenchError):
    """Values have to be changed (422)."""


class TooManyRequestsError(ToolbenchError):
    """Too many requests in a minute (429)."""


class UnreachableError(Exception):
    """The server did not answer."""


ERRORS: Mapping[int, type[ToolbenchError]] = {
    401: AuthenticationFailedError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    422: InvalidRequestError,
    429: TooManyRequestsError,
}


def build_error(status: int, document: Mapping[str, Any], retry_after: str | None) -> ToolbenchError:
    """Return the error of a problem document, which may be empty."""
    listed = document.get("errors")
    listed = listed if isinstance(listed, list) else []
    return ERRORS.get(status, ToolbenchError)(
        status=status,
        title=str(document.get("title", f"Status {status}")),
        detail=str(document.get("detail", "The answer is no problem document. Is this the address of Toolbench?")),
        errors=tuple(
            FieldError(str(found["field"]), str(found["message"])) for found in listed if _is_field_error(found)
        ),
        agreed=document.get("agreed"),
        paid_requests=document.get("paid_requests") or {},
        retry_after=float(retry_after) if retry_after and retry_after.isdigit() else None,
    )


def _is_field_error(found: Any) -> bool:
    return isinstance(found, Mapping) and {"field", "message"} <= found.keys()
