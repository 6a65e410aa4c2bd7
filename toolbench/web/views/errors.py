"""Views of errors: requests that are too large, a database that is not available, and internal errors."""

import sys

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

SHORTEN_HINT = "Send less text. Files do not count: import test cases as a file under Library, Test cases."
FEWER_VALUES_HINT = "Choose fewer at once, and do the rest afterwards."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return 413 with the limit if the request is too large, else 400. Django calls it."""
    if isinstance(exception, RequestDataTooBig):
        return _render_too_large(_describe_size(request.META.get("CONTENT_LENGTH", "")), SHORTEN_HINT)
    if isinstance(exception, TooManyFieldsSent):
        maximum = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return _render_too_large(
            f"This form or address has more than {maximum:,} values. It may have up to {maximum:,} values.",
            FEWER_VALUES_HINT,
        )
    if isinstance(exception, TooManyFilesSent):
        maximum = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        return _render_too_large(f"You can send up to {maximum:,} files at once; you sent more.", FEWER_VALUES_HINT)
    return HttpResponse(render_to_string("400.html"), status=400)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return 503 if the database does not answer, else 500, without session and database. Django calls it."""
    is_database_down = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status = 503 if is_database_down else 500
    return HttpResponse(render_to_string(f"{status}.html"), status=status)


def _describe_size(length: str) -> str:
    sent_size = f"{int(length):,} bytes, files included" if length.isdecimal() else "more"
    max_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return (
        f"Typed and pasted text may have up to {max_bytes:,} bytes as the browser sends it; this was {sent_size}. "
        "A quote or a bracket may count as three bytes, a Chinese character as nine."
    )


def _render_too_large(sentence: str, hint: str) -> HttpResponse:
    return HttpResponse(render_to_string("413.html", {"sentence": sentence, "hint": hint}), status=413)
