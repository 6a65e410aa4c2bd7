"""Views of errors: too large requests, unknown addresses, unavailable database, internal errors."""

import re
import sys

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from toolbench.lab.serving.aliases import find_gateway_url

SHORTEN_HINT = "Send less text. Files do not count: import test cases as a file under Library, Test cases."
FEWER_VALUES_HINT = "Choose fewer at once, and do the rest afterwards."
_DJANGO_MESSAGE_END = " matches the given query."  # end of the messages of `get_object_or_404`
# Paths to which SDKs of OpenAI and Anthropic send requests if their base_url is this site instead of the gateway.
_MODEL_API_PATH = re.compile(r"/(v1/|chat/completions$|responses$)")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return 413 with the limit if the request is too large, else 400. Django calls this view."""
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


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return 404 as a page with the reason or, for a path of a model API, as JSON that names the gateway.

    Django calls this view.
    """
    if not _MODEL_API_PATH.match(request.path):
        return HttpResponse(render_to_string("404.html", {"reason": _find_reason(exception)}), status=404)
    url = find_gateway_url()
    base_url = url if "/messages" in request.path else f"{url}/v1"  # Anthropic's SDK adds /v1 itself
    advice = f"Set base_url to the address of the gateway: {base_url}" if url else "No gateway runs."
    message = f"This is the address of Toolbench's pages, which serve no models. {advice}"
    error = {"message": message, "type": "not_found_error", "param": None, "code": "not_the_gateway"}
    return JsonResponse({"type": "error", "error": error}, status=404)


def _find_reason(exception: Exception) -> str:
    """Return the reason for a 404; "" for a path without a view and for a message that Django wrote."""
    reason = exception.args[0] if exception.args else ""
    return reason if isinstance(reason, str) and not reason.endswith(_DJANGO_MESSAGE_END) else ""


def server_error(request: HttpRequest) -> HttpResponse:
    """Return 503 if the database does not answer, else 500.

    Django calls this view. The page needs neither a session nor the database.
    """
    is_database_down = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status = 503 if is_database_down else 500
    return HttpResponse(render_to_string(f"{status}.html"), status=status)


def _describe_size(length: str) -> str:
    """Return sentences about the limit of a request's size.

    Args:
        length: header Content-Length of the request, in bytes; empty without it.
    """
    sent_size = f"{int(length):,} bytes, files included" if length.isdecimal() else "more"
    max_bytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return (
        f"Typed and pasted text may have up to {max_bytes:,} bytes as the browser sends it; this was {sent_size}. "
        "A quote or a bracket may count as three bytes, a Chinese character as nine."
    )


def _render_too_large(sentence: str, hint: str) -> HttpResponse:
    return HttpResponse(render_to_string("413.html", {"sentence": sentence, "hint": hint}), status=413)
