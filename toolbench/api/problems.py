"""Errors of the API as problem documents (RFC 9457), and the handlers that build them from exceptions."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, UnreadablePostError
from ninja.errors import AuthenticationError, HttpError, ValidationError

from toolbench.api.documents.described import Schema
from toolbench.api.sentences import describe_error, name_field
from toolbench.lab.errors import NOT_FOUND, InvalidFieldsError
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.query_params import describe_unreadable
from toolbench.lab.results.scopes import NAMED_RUNS
from toolbench.lab.runs.idempotent_launch import LaunchKeyError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
TITLES: Mapping[int, str] = {
    400: "The body cannot be read",
    401: "A valid token is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible now",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "Values have to be changed",
    429: "Too many requests",
    500: "Internal error",
    503: "The database does not answer",
}
CONFIRMATION_TITLE = "Paid requests have to be confirmed"
MAX_ERRORS = 100  # fields in one problem document


class FieldProblem(Schema):
    """Field of a request that has to be changed, with a sentence that says how."""

    field: str
    message: str


class ProblemDocument(Schema):
    """Problem document (RFC 9457).

    Attributes:
        title: the problem in a few words.
        status: HTTP status.
        detail: sentences that say what happened and what to do.
        errors: fields to change, at most 100; only with status 422.
        paid_requests: maximum number of paid requests by name of the provider; only if they have to be confirmed.
        agreed: number to send as `agreed` to confirm the paid requests.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None
    paid_requests: dict[str, int] | None = None
    agreed: int | None = None


class ProblemError(Exception):
    """Error of a request that is answered with a problem document.

    Attributes:
        status: HTTP status, a key of TITLES.
        detail: sentences that say what happened and what to do.
        headers: headers to add to the response.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)


def build_problem(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> HttpResponse:
    """Return a problem as a response.

    Args:
        status: HTTP status, a key of TITLES.
        detail: sentences that say what happened and what to do.
        headers: headers to add to the response.
        members: further members of the document; `title` replaces the usual title.
    """
    document = ProblemDocument.model_validate({"title": TITLES[status], "status": status, "detail": detail, **members})
    text = json.dumps(document.model_dump(exclude_none=True))
    return HttpResponse(text, status=status, content_type=CONTENT_TYPE, headers=headers)


def build_field_problem(errors: Sequence[FieldProblem]) -> HttpResponse:
    """Return the problem (422) of a request with values that have to be changed; its detail has up to 5 messages."""
    detail = " ".join(dict.fromkeys(error.message for error in errors[:5]))
    return build_problem(422, detail, errors=[error.model_dump() for error in errors[:MAX_ERRORS]])


def find_unreadable_problem(unreadable_names: Sequence[str]) -> HttpResponse | None:
    """Return the problem (422) of a request with query parameters that cannot be read; None without such parameters.

    Args:
        unreadable_names: names of the parameters.
    """
    if not unreadable_names:
        return None
    return build_field_problem(
        [FieldProblem(field=name, message=describe_unreadable([name])) for name in unreadable_names]
    )


def list_excluded_names(query: QueryDict) -> tuple[str, ...]:
    """Return ("run",) if a query names a run and a scope other than NAMED_RUNS, which pages ignore; else ()."""
    return ("run",) if query.get("run") and query.get("scope", "") not in ("", NAMED_RUNS) else ()


def handle_problem(request: HttpRequest, error: ProblemError) -> HttpResponse:
    """Return the problem document of the exception."""
    return build_problem(error.status, error.detail, headers=error.headers)


def handle_not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    """Return 404 with the sentence of the exception."""
    return build_problem(404, str(error) or NOT_FOUND)


def handle_missing_row(request: HttpRequest, error: ObjectDoesNotExist) -> HttpResponse:
    """Log a row that does not exist, such as one deleted while the request was answered; return 404."""
    logger.warning("API request for a row that does not exist: %s %s", request.method, request.path, exc_info=error)
    return build_problem(404, NOT_FOUND)


def handle_unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    """Return 401 for a request without a valid token."""
    has_token = "Authorization" in request.headers
    detail = (
        "The token is unknown, expired or revoked, or its account is closed. Create a new one on the page Tokens."
        if has_token
        else "Send a token in the header Authorization: Bearer TOKEN. Create it on the page Tokens."
    )
    challenge = 'Bearer realm="Toolbench"' + (', error="invalid_token"' if has_token else "")
    return build_problem(401, detail, headers={"WWW-Authenticate": challenge})


def handle_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Return the problem document of an error that Ninja raised, or of the ProblemError that caused it."""
    cause = error.__cause__
    if isinstance(cause, ProblemError):
        return handle_problem(request, cause)
    return build_problem(error.status_code if error.status_code in TITLES else 400, str(error))


def handle_invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Return 422 with a sentence for each value that does not fit its schema."""
    return build_field_problem(
        [FieldProblem(field=name_field(detail["loc"]), message=describe_error(detail)) for detail in error.errors]
    )


def handle_invalid_fields(request: HttpRequest, error: InvalidFieldsError) -> HttpResponse:
    """Return 422 with the sentences of the exception for each field."""
    return build_field_problem(
        [FieldProblem(field=name, message=text) for name, texts in error.errors.items() for text in texts]
    )


def handle_confirmation(request: HttpRequest, error: PaidRequestsUnconfirmedError) -> HttpResponse:
    """Return 409 with the number of paid requests to confirm."""
    detail = f"{error} Send the same request with agreed: {error.max_paid_requests}. Nothing was sent."
    return build_problem(
        409, detail, title=CONFIRMATION_TITLE, paid_requests=error.paid_requests, agreed=error.max_paid_requests
    )


def handle_launch_key(request: HttpRequest, error: LaunchKeyError) -> HttpResponse:
    """Return 409 for an idempotency key that belongs to another request or to a deleted run."""
    return build_problem(409, str(error))


def handle_large_body(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    """Return 413 with the size limit of a body."""
    return build_problem(413, f"Send a body of at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes.")


def handle_broken_body(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
    """Return 400 for a body that did not arrive completely."""
    return build_problem(400, "The body did not arrive completely. Send the request again.")


def handle_defect(request: HttpRequest, error: Exception) -> HttpResponse:
    """Log an unexpected exception; return 503 if the database does not answer, else 500."""
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("API request without a database: %s %s", request.method, request.path, exc_info=error)
        return build_problem(503, "The database does not answer. Send the request again later.")
    got_request_exception.send(sender=None, request=request)  # Django's test client raises the exception at this signal
    logger.error("API request failed: %s %s", request.method, request.path, exc_info=error)
    return build_problem(
        500, "This is a defect of Toolbench. Before you send the request again, check whether the change was made."
    )
