"""Middleware: request ids, the redirect to the sign-in page, 404 for missing rows, a page for 405."""

import logging
import re
import secrets
import time
from collections.abc import Callable

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import ObjectDoesNotExist
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.loader import render_to_string

from toolbench.lab.errors import NOT_FOUND
from toolbench.log_lines import log_ids
from toolbench.web.rendering import is_part_request

GetResponse = Callable[[HttpRequest], HttpResponse]
REQUEST_ID_HEADER = "X-Request-ID"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
logger = logging.getLogger(__name__)


def identify_request(get_response: GetResponse) -> GetResponse:
    """Return middleware that gives each request an id, for its response and for log lines.

    An id in the header X-Request-ID, such as one from a proxy, is used if it matches _REQUEST_ID. At level INFO, one
    line is logged for each request. The line has the URL name of the page instead of the path, since a path may contain
    the token of a sign-in link or share link.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        sent_id = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else secrets.token_hex(8)
        started_at = time.perf_counter()
        with log_ids(request=request_id):
            response = get_response(request)
            page = request.resolver_match.view_name if request.resolver_match else "no page"
            milliseconds = (time.perf_counter() - started_at) * 1000
            logger.info("%s %s: %s in %.0f ms", request.method, page, response.status_code, milliseconds)
        response.headers[REQUEST_ID_HEADER] = request_id
        return response

    return respond


class SignInMiddleware(LoginRequiredMiddleware):
    """Middleware that redirects a user who is not signed in to the sign-in page, with the page as ?next=.

    If htmx requests a part of a page, the response makes htmx open the sign-in page. After a usual redirect, htmx would
    insert the sign-in page into the current page.
    """

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        """Return the redirect to the sign-in page, for htmx in the header HX-Redirect."""
        response = super().handle_no_permission(request, view_func)
        if is_part_request(request):
            response.status_code = 200
            response.headers["HX-Redirect"] = response.headers["Location"]
            del response.headers["Location"]
        return response


def explain_not_allowed(get_response: GetResponse) -> GetResponse:
    """Return middleware that replaces the content of responses with status 405 by an explanation."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed):
            response.content = render_to_string("405.html")
        return response

    return respond


class MissingRowMiddleware:
    """Middleware that answers 404 if a view needs a database row that does not exist."""

    def __init__(self, get_response: GetResponse) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response of the next middleware; `process_exception` does the rest."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Turn the exception for a missing row into Http404 and log it with its traceback.

        Raises:
            Http404: `exception` is ObjectDoesNotExist.
        """
        if isinstance(exception, ObjectDoesNotExist):
            logger.warning("A request needs a row that does not exist", exc_info=exception)
            raise Http404(NOT_FOUND) from exception
